"""Claims of an earlier Model of the same name, and who still uses a claim.

A claim goes only when no pod uses it any more (pvc-protection). A Model that is deleted and made again while services
run would wait for them, and they for the Model: it takes a claim of another name, see
docs/decisions/0013-claims-of-a-deleted-model.md.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from app.kube.objects import ObjectMeta, Observed, ObservedClaim, ObservedPod, PodSpec
from app.llmkube.names import DOWNLOADER, GROUP


class ClaimVolume(Observed):
    claim_name: str = ""


class PodVolume(Observed):
    """A volume of a pod, as far as it is a claim."""

    persistent_volume_claim: ClaimVolume | None = None


class Variable(Observed):
    name: str = ""
    value: str = ""


class Downloader(Observed):
    """A container, as far as it fetches a file."""

    name: str = ""
    env: list[Variable] | None = None


class MountingSpec(PodSpec):
    volumes: list[PodVolume] | None = None
    init_containers: list[Downloader] | None = None


class ModelPod(ObservedPod):
    """A pod of the Model's: of its Jobs, or of a service."""

    spec: MountingSpec = msgspec.field(default_factory=MountingSpec)


def is_earlier_models(claim: ObservedClaim, metadata: ObjectMeta) -> bool:
    """Whether the claim belongs to another Model, which had this one's name."""
    owners = claim.metadata.owner_references or ()
    return any(
        owner.controller
        and owner.kind == "Model"
        and owner.api_version.partition("/")[0] == GROUP
        and owner.uid != metadata.uid
        for owner in owners
    )


def users(claim: str, pods: Iterable[ModelPod]) -> list[ModelPod]:
    """The pods that keep a claim from going: those that have not ended."""
    return [pod for pod in pods if not _has_ended(pod) and _mounts(pod, claim)]


def _has_ended(pod: ModelPod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def _mounts(pod: ModelPod, claim: str) -> bool:
    mounted = (volume.persistent_volume_claim for volume in pod.spec.volumes or ())
    return any(source is not None and source.claim_name == claim for source in mounted)


def fetching(path: str, pods: Iterable[ModelPod]) -> list[ModelPod]:
    """The serving pods whose init container looks after the file at ``path``, which says of which source it is."""
    return [pod for pod in pods if any(_fetches(container, path) for container in pod.spec.init_containers or ())]


def _fetches(container: Downloader, path: str) -> bool:
    return container.name == DOWNLOADER and variable(container, "MODEL_PATH") == path


def variable(container: Downloader, name: str) -> str | None:
    """An environment variable as it is written; ``None`` where the container has none of that name."""
    return next((found.value for found in container.env or () if found.name == name), None)


def going(name: str, pods: Iterable[ModelPod]) -> str:
    """``PersistentVolumeClaim m-cache is being deleted, still used by pod chat-0``."""
    found = sorted(pod.metadata.name for pod in users(name, pods))
    by = f", still used by pod{'s' if found[1:] else ''} {', '.join(found)}" if found else ""
    return f"PersistentVolumeClaim {name} is being deleted{by}"
