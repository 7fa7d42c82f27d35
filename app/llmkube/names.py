"""Every object name, label key and path of the family (LK-2.2, LK-2.9, LK-3.3, LK-3.6, LK-4.1, LK-4.4, LK-C, LK-D)."""

from app.kube.names import fit, short_hash

FAMILY = "llmkube"
GROUP = "inference.llmkube.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
POD_MONITOR_API = "monitoring.coreos.com/v1"

LABEL_APP = "app"
LABEL_MODEL = f"{GROUP}/model"
LABEL_SERVICE = f"{GROUP}/service"
LABEL_RUNTIME = f"{GROUP}/runtime"
OPERATOR_LABELS = (LABEL_APP, LABEL_MODEL, LABEL_SERVICE, LABEL_RUNTIME)
"""Labels of a serving pod that ``podLabels`` cannot change."""

LABEL_NAME = "app.kubernetes.io/name"
LABEL_COMPONENT = "app.kubernetes.io/component"
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_BY = "llmkube-controller"
"""The Go operator's value, so that selectors for its cache claims still match."""

ATTEMPT = f"{GROUP}/attempt"
"""Annotation of a download Job: the number of Jobs for the same file so far."""

DOWNLOAD = "modelhooks.dev/download"
"""Annotation of a Model: who downloads its files. Absent: a Job onto its claim, or the first pod (LK-2.9.13)."""
BY_PODS = "Pods"
"""Each pod, into its own directory."""
BY_FIRST_POD = "FirstPod"
"""The first pod, onto the Model's claim, which gets its volume where that pod runs."""
BY_JOB = "Job"
"""A Job onto the claim, wherever the Job runs."""

KEEP_KEYS = "KEEP_KEYS"
"""Variable of a download Job: cache keys of other sources whose files are kept. Without it all are kept."""

DOWNLOADER = "model-downloader"
DRAFT_DOWNLOADER = f"draft-{DOWNLOADER}"
CACHE_VOLUME = "model-cache"
STORAGE_VOLUME = "model-storage"
SOURCE_VOLUME = "model-source"
HOST_VOLUME = "host-model"
CA_VOLUME = "custom-ca-cert"
DRAFT_VOLUME = "draft-model"
SHM_VOLUME = "dshm"

GENERATED_VOLUMES = (CACHE_VOLUME, STORAGE_VOLUME, SOURCE_VOLUME, HOST_VOLUME, CA_VOLUME, DRAFT_VOLUME)

MODELS_DIR = "/models"
"""Mount path of the cache claim, or of the empty directory in its place."""
SOURCE_DIR = "/model-source"
HOST_FILE = "/host-model/model.gguf"
"""Path in the downloader of a file of the node."""
CA_DIR = "/custom-certs"
DRAFT_DIR = "/draft-model"
SHM_DIR = "/dev/shm"  # noqa: S108 - in the pod
GENERATED_MOUNTS = (MODELS_DIR, SOURCE_DIR, DRAFT_DIR)

PRIORITY_CLASS_PREFIX = "llmkube-"

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
"""Annotation of a pod whose node Karpenter leaves alone."""

METAL_HEARTBEAT = "llmkube.ai/agent-heartbeat"
"""Annotation in which a metal agent writes the time of its last heartbeat (LK-C.3)."""


def service_labels(service: str) -> dict[str, str]:
    return {LABEL_APP: service, LABEL_SERVICE: service}


def selector_text(service: str) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(service_labels(service).items()))


def pod_labels(service: str, model: str, runtime: str) -> dict[str, str]:
    return {LABEL_APP: service, LABEL_MODEL: model, LABEL_SERVICE: service, LABEL_RUNTIME: runtime}


def service_name(service: str) -> str:
    """Return the name of an InferenceService's Service, in which dots are not allowed."""
    return service.replace(".", "-")


def claim_name(model: str, uid: str = "") -> str:
    """Return the name of a Model's cache claim; with its uid while an earlier Model's claim has the plain name."""
    return fit(f"{model}-cache-{short_hash(uid, 8)}" if uid else f"{model}-cache")


def claim_labels(model: str) -> dict[str, str]:
    return {LABEL_NAME: "llmkube", LABEL_COMPONENT: "model-cache", LABEL_MANAGED_BY: MANAGED_BY, LABEL_MODEL: model}


def job_name(model: str, cache_key: str, source: str, sha256: str, second_claim: str = "") -> str:
    """Name a download Job, which is immutable: ``source`` also has lines with files and credentials."""
    plain = not sha256 and "\n" not in source
    key = cache_key if plain else short_hash(f"{source}\n{sha256}", 16)
    if second_claim:
        key = short_hash(f"{key}\n{second_claim}", 16)
    return fit(f"{model}-dl-{key}")


def attempt_name(job: str, attempt: int) -> str:
    """Return the name of the Job of an attempt; attempts are counted from 1."""
    return fit(f"{job}-{attempt}") if attempt > 1 else job


PRIORITY_VALUES = {"critical": 1_000_000, "high": 100_000, "normal": 10_000, "low": 1_000, "batch": 100}
"""Values of the PriorityClasses that are installed with the family."""

NVIDIA_GPU = "nvidia.com/gpu"
MIG_PARTITION = "nvidia.com/mig-"
"""Prefix of the resource of a MIG partition, before its profile."""
AMD_GPU = "amd.com/gpu"
DRI_RENDER = "devic.es/dri-render"
INTEL_GPU = "gpu.intel.com/i915"
INTEL_XE_GPU = "gpu.intel.com/xe"
"""Extended resources of the vendors' device plugins; a setting may replace Intel's."""
