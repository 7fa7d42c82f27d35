"""Where a pod finds its model: volumes, mounts, the init container, and the path or name on the command line.

Source: llmkube spec 3.6, and appendix B-09 for the proposing model of speculative decoding.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, replace
from typing import Any

from app.kube.desired import Container, VolumeMount
from app.kube.resource import Resource
from app.llmkube import names
from app.llmkube.download import Download, cache_claim, container, download, serving_mount, volumes
from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.model.types import ModelSpec, ModelStatus
from app.llmkube.source import METAL, Source, SourceClass, ephemeral_path, file_name, parse
from app.settings import Settings

Json = dict[str, Any]
Model = Resource[ModelSpec, ModelStatus]


@dataclass(frozen=True, slots=True)
class Storage:
    """The model inside the pod. All empty when the server fetches the model itself."""

    path: str = ""
    volumes: tuple[Json, ...] = ()
    mounts: tuple[VolumeMount, ...] = ()
    init: Container | None = None


NOTHING = Storage()


@dataclass(frozen=True, slots=True)
class Draft:
    """The proposing model: what vLLM is told, and the volume it needs beside the main model's."""

    name: str = ""
    volumes: tuple[Json, ...] = ()
    mounts: tuple[VolumeMount, ...] = ()


def storage(model: Model, spec: InferenceServiceSpec, operator_claim: bool, settings: Settings) -> Storage:
    """The main model, for a runtime that reads it from a volume."""
    source = parse(model.spec.source)
    if source.kind is SourceClass.PVC:
        mount = VolumeMount(name=names.SOURCE_VOLUME, mount_path=names.SOURCE_DIR, read_only=True)
        return Storage(source.mounted_path, (_claim_volume(names.SOURCE_VOLUME, source.claim),), (mount,))
    if not source.is_file:
        return NOTHING
    fetched = _download(model, source, settings)
    return Storage(
        path=fetched.path,
        volumes=tuple(volumes(fetched, _claim(model, operator_claim, settings), settings)),
        mounts=(serving_mount(fetched),),
        init=container(fetched, settings, spec.pod_security_context),
    )


def _download(model: Model, source: Source, settings: Settings) -> Download:
    """The download that finds what the Model's Job left: in the directory that the Model's status names."""
    namespace, name, key = model.metadata.namespace, model.metadata.name, model.status.cache_key
    fetched = download(model.spec, source, namespace, name, settings)
    if not fetched.cached:
        return fetched
    if not key:
        return replace(fetched, cached=False, path=ephemeral_path(namespace, name))
    return replace(fetched, path=posixpath.join(names.MODELS_DIR, key, file_name(name)))


def draft(text: str, model: Model | None, main: Storage, operator_claim: bool, settings: Settings) -> Draft:
    """What ``speculative.model`` means: a Model of the namespace where there is one, else what the user wrote.

    The claim of the main model is not mounted twice.
    """
    if not text or model is None or (model.spec.hardware and model.spec.hardware.accelerator == METAL):
        return Draft(text)
    source = parse(model.spec.source)
    if source.kind is SourceClass.REPOSITORY:
        return Draft(source.repository)
    if source.kind is SourceClass.PVC:
        return _mounted(source.claim, source.path, main)
    if source.is_file and settings.llmkube_model_cache_path and model.status.cache_key:
        claim = _claim(model, operator_claim, settings)
        inside = posixpath.join(model.status.cache_key, file_name(model.metadata.name))
        return _mounted(claim, inside, main)
    return Draft(text)


def _claim(model: Model, operator_claim: bool, settings: Settings) -> str:
    """The claim that the Model fills: its status says which when it is not the one of the plain name."""
    return cache_claim(model.metadata.name, model.status.cache_claim, operator_claim, settings)


def _mounted(claim: str, inside: str, main: Storage) -> Draft:
    """A file on a claim: below the main model's mount when that is the same claim, else on a mount of its own."""
    shared = {v["name"] for v in main.volumes if v.get("persistentVolumeClaim", {}).get("claimName") == claim}
    for mount in main.mounts:
        if mount.name in shared:
            return Draft(posixpath.join(mount.mount_path, inside))
    own = VolumeMount(name=names.DRAFT_VOLUME, mount_path=names.DRAFT_DIR, read_only=True)
    return Draft(posixpath.join(names.DRAFT_DIR, inside), (_claim_volume(names.DRAFT_VOLUME, claim),), (own,))


def _claim_volume(name: str, claim: str) -> Json:
    return {"name": name, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}
