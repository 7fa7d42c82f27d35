"""A Model's children: the claim that keeps its file (LK-4.4) and the Job that fetches it (LK-2.9)."""

import posixpath
from collections.abc import Iterable

from app.kube import quantity
from app.kube.base import Json
from app.kube.child import child, metadata, template_metadata, without_none
from app.kube.regex import regex
from app.llmkube import names
from app.llmkube.download import EXIT_USELESS, EXIT_WRONG_SHA256, Download, container, job_pod_security, volumes
from app.llmkube.model.observed import SHARED, DownloadJob, ModelPod, kept_keys, users, variable
from app.llmkube.model.plan import ModelPlan
from app.settings import Settings, variable_name

DEFAULT_SIZE = "100Gi"
_HOPELESS = {"containerName": names.DOWNLOADER, "operator": "In", "values": [EXIT_USELESS, EXIT_WRONG_SHA256]}
_KEY = regex(r"[0-9a-f]{16}")


def claim(plan: ModelPlan, settings: Settings) -> Json:
    """Build the Model's claim. Raises QuantityError for a size that :func:`size_problem` rejects.

    It is never updated, as little of it may change. Leaving it out of an answer would delete the data.
    """
    model = plan.model.metadata
    size = quantity.canonical(settings.llmkube_model_cache_size or DEFAULT_SIZE)
    spec = without_none(
        accessModes=[SHARED if settings.llmkube_model_cache_access_mode == SHARED else "ReadWriteOnce"],
        resources={"requests": {"storage": size}},
        storageClassName=settings.llmkube_model_cache_storage_class or None,
    )
    meta = metadata(plan.claim, model.namespace, names.claim_labels(model.name))
    return child("v1", "PersistentVolumeClaim", meta, spec=spec)


def size_problem(settings: Settings) -> str:
    size = settings.llmkube_model_cache_size
    if not size or quantity.is_quantity(size):
        return ""
    return f"{variable_name('llmkube_model_cache_size')} must be a quantity, not {size!r}"


def job(plan: ModelPlan, download: Download, attempt: int, keep: str | None, settings: Settings) -> Json:
    """Build the Job, which is immutable. It has no TTL: a deleted Job would be recreated, and download again."""
    downloader = container(download, settings, in_job=True)
    pod_labels = {names.LABEL_COMPONENT: "model-download", names.LABEL_MODEL: plan.model.metadata.name}
    if keep is not None:
        downloader["env"].append({"name": names.KEEP_KEYS, **({"value": keep} if keep else {})})
    pod = {
        "containers": [downloader],
        "volumes": volumes(download, plan.claim, settings),
        "restartPolicy": "Never",
        "securityContext": job_pod_security(settings),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
    }
    if settings.llmkube_download_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in settings.llmkube_download_pull_secrets]
    spec = {
        "backoffLimit": 2,  # each pod tries several times itself
        "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": _HOPELESS}]},
        "template": {"metadata": template_metadata(pod_labels), "spec": pod},
    }
    labels = {names.LABEL_NAME: "llmkube", names.LABEL_MANAGED_BY: names.MANAGED_BY, **pod_labels}
    tried = {names.ATTEMPT: str(attempt)} if attempt > 1 else None
    meta = metadata(names.attempt_name(plan.job, attempt), plan.model.metadata.namespace, labels, tried)
    return child("batch/v1", "Job", meta, spec=spec)


def keys_to_keep(
    plan: ModelPlan, failed: DownloadJob | None, pods: Iterable[ModelPod] | None, settings: Settings
) -> str | None:
    """Return the cache keys whose files a new Job keeps, separated by spaces; ``None`` keeps all files."""
    owns_claim = plan.makes_claim and plan.claim != settings.llmkube_model_cache_claim
    if settings.llmkube_keep_old_files or not owns_claim or pods is None:
        return None
    # The failed Job may keep a key that the status no longer has.
    keys = {plan.model.status.cache_key, *((failed and kept_keys(failed)) or "").split()}
    for downloader in (step for pod in users(plan.claim, pods) for step in pod.spec.downloaders):
        directory = variable(downloader, "CACHE_DIR") or posixpath.dirname(variable(downloader, "MODEL_PATH") or "")
        keys.add(posixpath.basename(directory))
    return " ".join(sorted(key for key in keys - {plan.source.cache_key} if _KEY.fullmatch(key)))
