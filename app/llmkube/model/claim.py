"""The claim that keeps a Model's file (LK-4.4 and D.4)."""

from __future__ import annotations

from app.kube.desired import (
    ObjectMeta,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    ResourceRequirements,
)
from app.kube.quantity import QuantityError, canonical
from app.llmkube import names
from app.llmkube.model.plan import Plan
from app.settings import Settings

DEFAULT_SIZE = "100Gi"
SHARED = "ReadWriteMany"


def claim(plan: Plan, settings: Settings) -> PersistentVolumeClaim:
    """The Model's own claim. A size that is no quantity raises; :func:`size_problem` says so first."""
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name=plan.claim, namespace=plan.namespace, labels=names.claim_labels(plan.name)),
        spec=PersistentVolumeClaimSpec(
            access_modes=[SHARED if settings.llmkube_model_cache_access_mode == SHARED else "ReadWriteOnce"],
            resources=ResourceRequirements(requests={"storage": _size(settings)}),
            storage_class_name=settings.llmkube_model_cache_storage_class or None,
        ),
    )


def _size(settings: Settings) -> str:
    return canonical(settings.llmkube_model_cache_size or DEFAULT_SIZE)


def size_problem(settings: Settings) -> str:
    """Why no claim can be made with the operator's settings, or an empty text."""
    try:
        _size(settings)
    except QuantityError:
        return f"the operator's cache size {settings.llmkube_model_cache_size!r} is no quantity"
    return ""
