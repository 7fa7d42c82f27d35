"""Every decision about a Model: download, claim and Job. Source: LK-2."""

import posixpath

import msgspec

from app.llmkube import names
from app.llmkube.download import Download, download, is_by_pods
from app.llmkube.model.types import Model, ModelSpec
from app.llmkube.source import Source, SourceClass, parse, source_of
from app.settings import Settings, variable_name


class ModelPlan(msgspec.Struct, frozen=True):
    """The decisions about a Model. There is a Job only with ``download``."""

    model: Model
    source: Source
    download: Download | None
    job: str
    """Name of the Job that downloads the file; empty without a Job."""
    claim: str
    """Claim that the Job fills; empty without a Job."""
    makes_claim: bool
    """The claim is a child of the Model, not the operator's claim of the namespace."""
    second_claim: str
    """The claim, if the plain name was in use; else empty."""
    accelerator_resource: str
    refused: str
    """Why a new Model may not have this source, and what to do; empty if it may."""
    awaits_pod: bool | None
    """The first pod fills the claim; ``None``: if its pods need other nodes than the Job, and its class binds late."""

    @property
    def copies(self) -> bool:
        """Return whether the Job copies a file of the node; otherwise it downloads."""
        return self.source.kind is SourceClass.LOCAL


def plan(model: Model, settings: Settings, operator_claim: str = "", *, taken: bool = False) -> ModelPlan:
    """Return the decisions about a Model. ``taken``: an earlier Model's claim has the plain name."""
    metadata, spec, source = model.metadata, model.spec, source_of(model.spec)
    key = source.cache_key if settings.llmkube_model_cache_path else ""
    fetched = download(spec, source, metadata.namespace, metadata.name, key)
    by_pods = not fetched.cached or is_by_pods(metadata, source)  # without a cache, or on request (LK-2.9)
    model_download = fetched if source.is_file and not spec.on_metal and not by_pods else None
    second = names.claim_name(metadata.name, metadata.uid) if taken else ""
    model_claim = second or names.claim_name(metadata.name)
    claim = operator_claim or model_claim if model_download else ""
    makes_claim = claim in (model_claim, names.claim_name(metadata.name))
    return ModelPlan(
        model=model,
        source=source,
        download=model_download,
        job=_job(metadata.name, source, model_download, second if makes_claim else "") if model_download else "",
        claim=claim,
        makes_claim=makes_claim,
        second_claim=second if makes_claim else "",
        accelerator_resource=accelerator_resource(spec, settings),
        refused=refusal(spec, settings),
        awaits_pod=_awaits_pod(model, settings),
    )


def _awaits_pod(model: Model, settings: Settings) -> bool | None:
    chosen = (model.metadata.annotations or {}).get(names.DOWNLOAD)
    if chosen in (names.BY_FIRST_POD, names.BY_JOB):
        return chosen == names.BY_FIRST_POD
    return None if needs_gpu_nodes(model.spec, settings) else False


def needs_gpu_nodes(spec: ModelSpec, settings: Settings) -> bool:
    """Return whether serving pods ask for devices, and so for other nodes than a Job."""
    return bool(spec.gpu.count or spec.gpu.resource_claims or accelerator_resource(spec, settings))


def _job(model: str, source: Source, fetched: Download, second_claim: str) -> str:
    more = [*source.files, *([f"Secret {fetched.secret}"] if fetched.secret else [])]
    return names.job_name(model, source.cache_key, "\n".join([source.text, *more]), fetched.sha256, second_claim)


def accelerator_resource(spec: ModelSpec, settings: Settings) -> str:
    """Return the resource that a node must have for ``status.acceleratorReady`` (LK-2.8)."""
    needs_none = spec.accelerator == "cpu" or spec.on_metal
    return "" if needs_none else gpu_resource(spec, (spec.accelerator,), settings)


def gpu_resource(spec: ModelSpec, kinds: tuple[str, ...], settings: Settings) -> str:
    """Return the resource of whole GPUs of some accelerators or vendors, Intel's before AMD's; empty for others."""
    if spec.gpu.resource_name or spec.gpu.amd_device:
        return spec.gpu.resource_name or names.DRI_RENDER
    resources = {
        "intel": settings.llmkube_intel_gpu_resource or names.INTEL_GPU,
        "rocm": names.AMD_GPU,
        "amd": names.AMD_GPU,
        "vulkan": names.DRI_RENDER,
        "cuda": names.NVIDIA_GPU,
    }
    return next((resource for kind, resource in resources.items() if kind in kinds), "")


def operator_claim(spec: ModelSpec, settings: Settings) -> str:
    """Return the operator's claim for all Models if this one would use it, else an empty string."""
    needs = source_of(spec).is_file and not spec.on_metal and settings.llmkube_model_cache_path
    return settings.llmkube_model_cache_claim if needs else ""


# Which files of a node a Model may name: those below the directories that the operator lists, none by default. A
# hostPath volume reads as the kubelet does, so that any user who may create a Model could read any file of any node.


def refusal(spec: ModelSpec, settings: Settings) -> str:
    """Return why the Model's file must not be mounted, and what to do; empty if it may be, or nothing is mounted."""
    source = parse(spec.source)
    if source.kind is not SourceClass.LOCAL or spec.on_metal:
        return ""
    path, listed = _normal(source.path), settings.llmkube_allowed_host_paths
    if path != "/" and any(path.startswith(_normal(root).rstrip("/") + "/") for root in listed):
        return ""
    return (
        f"path {path} is not below a directory that the operator of this cluster allows "
        f"({', '.join(listed) or 'none'}); ask for it to be listed in {variable_name('llmkube_allowed_host_paths')}"
    )


def _normal(path: str) -> str:
    """Resolve ``.``, ``..`` and repeated slashes, two leading ones included, which POSIX treats differently."""
    return posixpath.normpath("/" + path.lstrip("/"))
