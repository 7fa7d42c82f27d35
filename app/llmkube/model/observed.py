"""The typed request of a Model: children and related objects, and the reports of its Jobs, pods and claims.

A Model that is recreated while pods use its claim gets another one: decisions/0013-claims-of-a-deleted-model.md.
"""

import re
from collections.abc import Iterable

import msgspec

from app.hooks.protocol import ByName, RelatedRule, get, objects_of, sorted_values
from app.kube import conditions, objects
from app.kube.base import Json
from app.kube.merge import find as value_at
from app.kube.reading.stored import Decoder
from app.limits import MAX_QUOTE_CHARACTERS
from app.llmkube import download, names
from app.llmkube.model.plan import accelerator_resource, needs_gpu_nodes, operator_claim, plan
from app.llmkube.model.types import GGUF, QUANTIZATIONS, Model
from app.settings import Settings
from app.workload.readiness.cause import bounded
from app.workload.readiness.pods import JOB_NAMES

SHARED = "ReadWriteMany"


class ClaimVolume(objects.Observed):
    claim_name: str = ""


class PodVolume(objects.Observed):
    persistent_volume_claim: ClaimVolume | None = None


class Variable(objects.Named):
    value: str = ""


class Downloader(objects.Named):
    env: list[Variable] | None = None


class MountingSpec(objects.ObservedPodSpec):
    volumes: list[PodVolume] | None = None

    @property
    def downloaders(self) -> list[Downloader]:
        return _DOWNLOADERS.decode(self.raw_init_containers) or []


class ModelPod(objects.ObservedPod):
    spec: MountingSpec = msgspec.field(default_factory=MountingSpec)


_DOWNLOADERS: Decoder[list[Downloader] | None] = Decoder(list[Downloader] | None)


class DownloadJob(objects.ObservedJob):
    spec = objects.decoded("raw_spec", Json)


class NodeStatus(msgspec.Struct):
    capacity: dict[str, str | int] | None = None


class ObservedNode(msgspec.Struct):
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class ObservedStorageClass(objects.RelatedMeta):
    volume_binding_mode: str = ""

    @property
    def is_default(self) -> bool:
        return (self.metadata.annotations or {}).get("storageclass.kubernetes.io/is-default-class") == "true"


class ModelChildren(msgspec.Struct):
    jobs: ByName[DownloadJob] = objects_of("Job.batch/v1")
    claims: ByName[objects.ObservedClaim] = objects_of("PersistentVolumeClaim.v1")


class ModelRelated(msgspec.Struct):
    claims: ByName[objects.ObservedClaim] = objects_of("PersistentVolumeClaim.v1")
    pods: ByName[ModelPod] = objects_of("Pod.v1")
    nodes: ByName[ObservedNode] = objects_of("Node.v1")
    classes: ByName[ObservedStorageClass] = objects_of("StorageClass.storage.k8s.io/v1")


def customize(model: Model, _: frozenset[str], settings: Settings) -> list[RelatedRule]:
    """Return the rules of the related objects, from the spec only, because Metacontroller caches them."""
    namespace = model.metadata.namespace
    default = plan(model, settings)
    claims = (default.source.claim, operator_claim(model.spec, settings), default.claim)
    rules = RelatedRule.by_name("v1", "persistentvolumeclaims", *claims, namespace=namespace)
    if default.source.claim or (default.job and needs_gpu_nodes(model.spec, settings)):
        rules.append(RelatedRule("storage.k8s.io/v1", "storageclasses", label_selector={}))
    if settings.watch_pods and default.job:
        selector = {"matchLabels": {names.LABEL_MODEL: model.metadata.name}}  # downloading or serving
        rules.append(RelatedRule("v1", "pods", namespace, label_selector=selector))
    if settings.llmkube_watch_nodes and accelerator_resource(model.spec, settings):
        rules.append(RelatedRule("v1", "nodes", label_selector={}))
    return rules


# Claims, their classes, and who uses them.


def binds_late(claim: objects.ObservedClaim | None, classes: ByName[ObservedStorageClass], wanted: str) -> bool:
    """Return whether a claim gets its volume with its first pod; of a claim to be made, ``wanted`` is the class."""
    written = claim.spec.storage_class_name if claim is not None else wanted or None
    defaults = [storage_class for storage_class in sorted_values(classes) if storage_class.is_default]
    newest = max(defaults, key=lambda storage_class: storage_class.metadata.creation_timestamp or "", default=None)
    bound_by = newest if written is None else get(classes, written)
    return bound_by is not None and bound_by.volume_binding_mode == "WaitForFirstConsumer"


def is_shared(claim: objects.ObservedClaim | None, settings: Settings) -> bool:
    """Return whether pods of several nodes may mount a claim, or the one that would be made."""
    default_modes = [settings.llmkube_model_cache_access_mode]
    return SHARED in (default_modes if claim is None else claim.spec.access_modes or ())


def is_earlier_models(claim: objects.ObservedClaim, metadata: objects.ObservedMeta) -> bool:
    owners = (owner for owner in claim.metadata.owner_references or () if owner.controller and owner.kind == "Model")
    return any(o.api_version.partition("/")[0] == names.GROUP and o.uid != metadata.uid for o in owners)


def users(claim: str, pods: Iterable[ModelPod]) -> list[ModelPod]:
    """Return the pods on nodes that mount a claim, which delay its deletion. Finished ones, which do too, are Jobs'."""
    volume = PodVolume(ClaimVolume(claim))
    running = (pod for pod in pods if pod.spec.node_name and pod.status.phase not in ("Succeeded", "Failed"))
    return [pod for pod in running if volume in (pod.spec.volumes or ())]


def fetching(path: str, pods: Iterable[ModelPod]) -> list[ModelPod]:
    steps = ((pod, step) for pod in pods for step in pod.spec.downloaders if step.name == names.DOWNLOADER)
    return [pod for pod, step in steps if variable(step, "MODEL_PATH") == path]


def variable(container: Downloader, name: str) -> str | None:
    return next((item.value for item in container.env or () if item.name == name), None)


def going(name: str, pods: Iterable[ModelPod]) -> str:
    """``PersistentVolumeClaim m-cache is being deleted, still used by pod chat-0``."""
    pod_names = sorted(pod.metadata.name for pod in users(name, pods))
    shown = bounded(", ".join(pod_names), MAX_QUOTE_CHARACTERS)
    suffix = f", still used by pod{'s' if pod_names[1:] else ''} {shown}" if pod_names else ""
    return f"PersistentVolumeClaim {name} is being deleted{suffix}"


# Jobs: the attempts to download one file, and their reports.


def attempts(jobs: Iterable[DownloadJob], first: str) -> list[tuple[int, DownloadJob]]:
    """Return the Jobs of one file with their attempts, latest first. ``first`` is the name of the first Job."""
    numbered = [(_number(job), job) for job in jobs]
    matching = [(number, job) for number, job in numbered if job.metadata.name == names.attempt_name(first, number)]
    return sorted(matching, key=lambda item: item[0], reverse=True)


def _number(job: DownloadJob) -> int:
    text = job.annotations.get(names.ATTEMPT, "")
    return int(text) if re.fullmatch("[1-9][0-9]{0,5}", text) else 1


def is_outlived(job: DownloadJob, claim: objects.ObservedClaim | None, pods: Iterable[ModelPod] | None) -> bool:
    """Return whether a Job completed for a claim that was deleted, and made again or delayed by its pods alone."""
    completed = conditions.since(job.status.conditions, "Complete", "True") or ""
    if not completed or claim is None:
        return False
    delayed = claim.metadata.deletion_timestamp and pods is not None and not users(claim.metadata.name, pods)
    return bool(delayed) or (claim.metadata.creation_timestamp or "") > completed


def kept_keys(job: DownloadJob) -> str | None:
    """Return the cache keys that an observed Job keeps; ``None`` if it keeps all files."""
    pod = value_at(job.spec, ("template", "spec"))
    variable = value_at(pod, ("containers", ("name", names.DOWNLOADER), "env", ("name", names.KEEP_KEYS)))
    return None if variable is None else variable.get("value") or ""


class Header(GGUF, rename="camel"):
    """The header of the file as the downloader of a Job reports it, with the quantization as a number."""

    file_type: int | None = None

    def described(self) -> GGUF:
        values = msgspec.structs.asdict(self)
        values["quantization"] = QUANTIZATIONS.get(values.pop("file_type"), "")
        return GGUF(**values)


class Report(msgspec.Struct):
    """The downloader's termination message if it succeeds; otherwise that is the end of its log (LK-2.9.2)."""

    size: int = 0
    sha256: str = ""
    etag: str = ""
    gguf: Header | None = None


_DECODER = msgspec.json.Decoder(Report)


def pods_of(job: str, pods: Iterable[objects.ObservedPod]) -> list[objects.ObservedPod]:
    """Return the pods of one Job; earlier Jobs of the Model may still have pods."""
    return [pod for pod in pods if any((pod.metadata.labels or {}).get(label) == job for label in JOB_NAMES)]


def report(pods: Iterable[objects.ObservedPod]) -> Report | None:
    ended = (_read(end.message) for end in _endings(pods) if end.exit_code == 0)
    return next((decoded for decoded in ended if decoded is not None), None)


def refreshed(pods: Iterable[objects.ObservedPod]) -> Report | None:
    """Return the latest report of the init containers of serving pods, which may have a newer file (``OnChange``)."""
    ended = [
        status.state.terminated
        for pod in pods
        for status in pod.status.init_container_statuses or ()
        if status.name == names.DOWNLOADER and status.state.terminated and status.state.terminated.exit_code == 0
    ]
    latest = sorted(ended, key=lambda end: (end.finished_at or "", end.message), reverse=True)
    return next((decoded for end in latest if (decoded := _read(end.message)) is not None), None)


def _read(message: str) -> Report | None:
    try:
        return _DECODER.decode(message)
    except msgspec.DecodeError:
        return None


def failed_at(job: objects.ObservedJob) -> str | None:
    condition = conditions.find(job.status.conditions, "Failed")
    return condition.last_transition_time if condition is not None and condition.status == "True" else None


def wrong_sha256(job: objects.ObservedJob, pods: Iterable[objects.ObservedPod]) -> bool:
    """Return whether the file does not have the SHA-256 of the Model, by the pods, else by the Job's condition."""
    if any(ended.exit_code == download.EXIT_WRONG_SHA256 for ended in _endings(pods)):
        return True
    condition = conditions.find(job.status.conditions, "Failed")
    return condition is not None and f"exit code {download.EXIT_WRONG_SHA256}" in condition.message


def _endings(pods: Iterable[objects.ObservedPod]) -> Iterable[objects.ContainerStateTerminated]:
    for pod in sorted(pods, key=lambda pod: pod.metadata.name):
        for status in pod.status.container_statuses or ():
            ended = status.state.terminated or status.last_state.terminated
            if ended is not None:
                yield ended
