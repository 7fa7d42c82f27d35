"""A Model's children: the claim that keeps its file (LK-4.4) and the Job that fetches it (LK-2.9)."""

import posixpath
import re
from collections.abc import Iterable

from app.kube import desired, quantity
from app.llmkube import names
from app.llmkube.download import EXIT_USELESS, EXIT_WRONG_SHA256, Download, container, job_pod_security, volumes
from app.llmkube.model.observed import DownloadJob, ModelPod, kept_keys, users, variable
from app.llmkube.model.plan import ModelPlan
from app.settings import Settings, variable_name

DEFAULT_SIZE = "100Gi"
SHARED = "ReadWriteMany"
_HOPELESS = {"containerName": names.DOWNLOADER, "operator": "In", "values": [EXIT_USELESS, EXIT_WRONG_SHA256]}
_KEY = re.compile(r"[0-9a-f]{16}")


def claim(plan: ModelPlan, settings: Settings) -> desired.PersistentVolumeClaim:
    """Build the Model's claim. Raises QuantityError for a size that :func:`size_problem` rejects."""
    model = plan.model.metadata
    size = quantity.canonical(settings.llmkube_model_cache_size or DEFAULT_SIZE)
    return desired.PersistentVolumeClaim(
        metadata=desired.ObjectMeta(name=plan.claim, namespace=model.namespace, labels=names.claim_labels(model.name)),
        spec=desired.PersistentVolumeClaimSpec(
            access_modes=[SHARED if settings.llmkube_model_cache_access_mode == SHARED else "ReadWriteOnce"],
            resources=desired.ResourceRequirements(requests={"storage": size}),
            storage_class_name=settings.llmkube_model_cache_storage_class or None,
        ),
    )


def size_problem(settings: Settings) -> str:
    size = settings.llmkube_model_cache_size
    if not size or quantity.is_quantity(size):
        return ""
    return f"{variable_name('llmkube_model_cache_size')} must be a quantity, not {size!r}"


def job(plan: ModelPlan, download: Download, attempt: int, keep: str | None, settings: Settings) -> desired.Job:
    """Build the Job. It has no TTL: a deleted Job would be recreated, and download again."""
    downloader = container(download, settings, in_job=True)
    pod_labels = {names.LABEL_COMPONENT: "model-download", names.LABEL_MODEL: plan.model.metadata.name}
    if keep is not None:
        downloader.env = [*(downloader.env or ()), {"name": names.KEEP_KEYS, **({"value": keep} if keep else {})}]
    return desired.Job(
        metadata=desired.ObjectMeta(
            name=names.attempt_name(plan.job, attempt),
            namespace=plan.model.metadata.namespace,
            labels={names.LABEL_NAME: "llmkube", names.LABEL_MANAGED_BY: names.MANAGED_BY, **pod_labels},
            annotations={names.ATTEMPT: str(attempt)} if attempt > 1 else None,
        ),
        spec=desired.JobSpec(
            backoff_limit=2,  # each pod tries several times itself
            pod_failure_policy={"rules": [{"action": "FailJob", "onExitCodes": _HOPELESS}]},
            template=desired.PodTemplateSpec(
                metadata=desired.TemplateMeta(labels=pod_labels),
                spec=desired.PodSpec(
                    containers=[downloader],
                    volumes=volumes(download, plan.claim, settings),
                    restart_policy="Never",
                    security_context=job_pod_security(settings),
                    automount_service_account_token=False,
                    enable_service_links=False,
                ),
            ),
        ),
    )


def keys_to_keep(
    plan: ModelPlan, failed: DownloadJob | None, pods: Iterable[ModelPod] | None, settings: Settings
) -> str | None:
    """Return the cache keys whose files a new Job keeps, separated by spaces; ``None`` keeps all files."""
    owns_claim = plan.makes_claim and plan.claim != settings.llmkube_model_cache_claim
    if settings.llmkube_keep_old_files or not owns_claim or pods is None:
        return None
    # The failed Job may keep a key that the status no longer has.
    keys = {plan.model.status.cache_key, *((failed and kept_keys(failed)) or "").split()}
    for downloader in (step for pod in users(plan.claim, pods) for step in pod.spec.init_containers or ()):
        directory = variable(downloader, "CACHE_DIR") or posixpath.dirname(variable(downloader, "MODEL_PATH") or "")
        keys.add(posixpath.basename(directory))
    return " ".join(sorted(key for key in keys - {plan.source.cache_key} if _KEY.fullmatch(key)))
