"""The ``Model`` kind: where weights come from, which hardware they want, and how far their download is.

Source: LK-1.2 and LK-1.3.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from pydantic import Field

from app.kube.base import DateTime, Int32, Int64, KubeModel, pattern
from app.kube.conditions import Condition
from app.kube.fieldclass import DEFAULTED, HONOURED, NO_EFFECT, defaulted, honoured, passed_through

_HUB_SCHEME = re.compile(r"(?:hf|hf-hub|huggingface|hub)(?::|://)/*(.+)", re.IGNORECASE)


def _without_scheme(text: str) -> str:
    """Other APIs write a repository with a scheme."""
    written = _HUB_SCHEME.fullmatch(text)
    return f"; write {written[1]}" if written else ""


SOURCE_FORM = (
    "must be <owner>/<name> for a Hugging Face repository, an http or https URL of one file, pvc://<claim>/<path>, or "
    "an absolute path on the node"
)
SOURCE_PATTERN = pattern(
    r"^(https?|file|pvc)://.*|^/[^\t\n\f\r ]+$|^[a-zA-Z0-9][0-9A-Za-z_\-./]+$", SOURCE_FORM, _without_scheme
)
"""Spec 1.2, with the character classes written out: ``\\w`` and ``\\s`` are ASCII for the API server."""


class Sharding(KubeModel):
    """How one model is split over several GPUs."""

    strategy: Annotated[Literal["layer", "tensor", "row", "pipeline", "none"], defaulted("runtime llamacpp")] = Field(
        default="layer",
        description="How llama.cpp splits the model: by layers, by rows (tensor and row mean the same), or not at all. "
        "pipeline does not exist in llama.cpp and acts like layer.",
    )
    layer_split: Annotated[list[str], honoured("runtime llamacpp")] = Field(
        default_factory=list,
        description="Layers of each GPU as start-end, one entry per GPU, such as 0-19. Other forms give equal shares.",
    )


_NUMBER = re.compile(r"[+-]?[0-9]+")


def layers(entry: str) -> tuple[int, int] | None:
    """First and last layer of a ``start-end`` entry of ``layerSplit`` (LK-3.4), ``None`` for another form."""
    start, dash, end = entry.partition("-")
    numbers = start.strip(), end.strip()
    if not dash or not all(_NUMBER.fullmatch(number) for number in numbers):
        return None
    first, last = (int(number) for number in numbers)
    return (first, last) if 0 <= first <= last else None


class GPU(KubeModel):
    """The GPUs of one pod."""

    enabled: Annotated[bool | None, NO_EFFECT] = Field(
        default=None, description="No effect: whether a GPU is requested is decided by the counts alone."
    )
    count: Annotated[Int32 | None, honoured("pods of the cluster")] = Field(
        default=None, ge=0, le=8, description="GPUs per pod. When above 0 it wins over the service's resources.gpu."
    )
    memory: Annotated[str, NO_EFFECT] = Field(
        default="", description="No effect: the GPU memory the model needs, for people only."
    )
    vendor: Annotated[Literal["nvidia", "amd", "intel"], defaulted("pods of the cluster")] = Field(
        default="nvidia", description="Maker of the GPU; with the accelerator it decides which resource is requested."
    )
    layers: Annotated[Int32 | None, defaulted("runtime llamacpp, and metal")] = Field(
        default=None, ge=-1, description="Layers that llama.cpp puts on the GPU. 0, -1 and absent mean all of them."
    )
    sharding: Sharding | None = Field(
        default=None, description="How the model is split when a pod has more than one GPU."
    )


class Hardware(KubeModel):
    """What the model runs on."""

    accelerator: Annotated[Literal["cpu", "metal", "cuda", "rocm", "intel"], DEFAULTED] = Field(
        default="cpu",
        description="Kind of hardware. metal hands the model over to an agent on a Mac outside the cluster.",
    )
    gpu: GPU | None = Field(default=None, description="GPUs of each pod.")
    memory_budget: Annotated[str, passed_through("to the agent, on metal only")] = Field(
        default="",
        description="Most memory the process on a metal host may take, as a quantity. No effect inside the cluster.",
    )
    memory_fraction: Annotated[float | None, passed_through("to the agent, on metal only")] = Field(
        default=None,
        description="Share of a metal host's memory that the process may take, above 0 and at most 1. "
        "No effect inside the cluster or beside memoryBudget.",
    )


class ModelResources(KubeModel):
    """Requests for services that state none themselves."""

    cpu: Annotated[str, honoured("where the service requests none, not on metal")] = Field(
        default="", description="CPU request of a pod whose service states none, as a quantity."
    )
    memory: Annotated[str, honoured("where the service requests none, not on metal")] = Field(
        default="", description="Memory request of a pod whose service states none, as a quantity."
    )


class ModelSpec(KubeModel):
    """One set of weights."""

    source: Annotated[str, HONOURED] = Field(
        pattern=SOURCE_PATTERN,
        description="Where the weights are: an http or https URL of one file, a Hugging Face repository as owner/name, "
        "pvc://claim/path for a volume of the same namespace, or an absolute path (also as file://) on the node.",
    )
    sha256: Annotated[str, honoured("where a Job or a pod of the cluster fetches the file")] = Field(
        default="",
        pattern=pattern("^[a-fA-F0-9]{64}$", "must be the 64 hexadecimal digits that sha256sum prints"),
        description="SHA-256 of the file in hexadecimal. A download that does not match it is thrown away.",
    )
    refresh_policy: Annotated[
        Literal["IfNotPresent", "OnChange"], defaulted("http and https sources without `sha256`, not on metal")
    ] = Field(
        default="IfNotPresent",
        description="Whether a pod that starts keeps the file that is there, or asks the server if it has changed.",
    )
    format: Annotated[
        Literal["gguf", "mlx", "safetensors", "pytorch", "custom"],
        defaulted("services report a runtime that cannot load it"),
    ] = Field(
        default="gguf", description="File format of the weights. Runtimes are warned about formats they cannot load."
    )
    quantization: Annotated[str, NO_EFFECT] = Field(
        default="", description="No effect: name of the quantization, for people only."
    )
    hardware: Hardware | None = Field(default=None, description="Hardware the model needs. Absent means CPU.")
    resources: ModelResources | None = Field(
        default=None, description="Requests for pods of services that state none themselves."
    )


class Phase(StrEnum):
    """Where a Model is in its life."""

    PENDING = "Pending"
    """Waits for its claim to be bound."""
    DOWNLOADING = "Downloading"
    """The download Job runs."""
    COPYING = "Copying"
    """The Job copies a file of the node."""
    READY = "Ready"
    """Services may use it."""
    FAILED = "Failed"
    """Nothing will happen until somebody acts; the conditions say what."""


class ConditionType(StrEnum):
    """What a Model's conditions are about."""

    READY = "Ready"
    """The one condition all families have; while not True its message lists why."""
    AVAILABLE = "Available"
    """The weights can be used."""
    PROGRESSING = "Progressing"
    """Something is under way that will make them usable."""
    DEGRADED = "Degraded"
    """Something is wrong."""
    SOURCE_DRIFTED = "SourceDrifted"
    """The source changed since the download. Never set by us: a hook asks no server (LK-2.6)."""


class Reason(StrEnum):
    """Why a Model's condition is as it is."""

    INVALID_SPEC = "InvalidSpec"
    """The object breaks a rule; nothing is changed."""
    INVALID_SOURCE = "InvalidSource"
    """The source cannot be read as any known form."""
    SOURCE_NOT_ALLOWED = "SourceNotAllowed"
    """An operator's allow-list, or the ban on cluster metadata addresses, forbids the source."""
    PVC_NOT_FOUND = "PVCNotFound"
    """The claim of a pvc source does not exist."""
    PVC_NOT_BOUND = "PVCNotBound"
    """The claim of a pvc source has no volume yet."""
    PVC_MODEL_READY = "PVCModelReady"
    """The claim of a pvc source is usable."""
    WORKLOAD_RESOLVED = "WorkloadResolved"
    """Each pod (or the metal agent) downloads for itself."""
    RUNTIME_RESOLVED = "RuntimeResolved"
    """The serving runtime fetches the repository itself."""
    METAL_AGENT_MANAGED = "MetalAgentManaged"
    """The metal agent opens the file on its own disk."""
    DOWNLOAD_STARTED = "DownloadStarted"
    """The download Job was created or runs."""
    COPY_STARTED = "CopyStarted"
    """The copy Job was created or runs."""
    MODEL_READY = "ModelReady"
    """The Job finished: the file is on the claim."""
    DOWNLOAD_FAILED = "DownloadFailed"
    """The download Job gave up."""
    COPY_FAILED = "CopyFailed"
    """The copy Job gave up."""
    INVALID_SETTINGS = "InvalidSettings"
    """The operator's settings make a download impossible; only the operator can do something."""
    INTEGRITY_CHECK_FAILED = "IntegrityCheckFailed"
    """The file does not have the SHA-256 that the spec demands."""
    SUPERSEDED = "Superseded"
    """An earlier trouble or progress is over, because the Model is Ready."""
    TERMINATING = "Terminating"
    """The Model is being deleted."""


class GGUF(msgspec.Struct, rename="camel", omit_defaults=True):
    """What a GGUF file says of itself. Kept as others wrote it; the download does not parse the file."""

    architecture: Annotated[str, Meta(description="Model architecture, such as llama.")] = ""
    model_name: Annotated[str, Meta(description="Name of the model in the file.")] = ""
    quantization: Annotated[str, Meta(description="Quantization of the weights.")] = ""
    context_length: Annotated[Int64, Meta(description="Context length the model was trained with.")] = 0
    embedding_size: Annotated[Int64, Meta(description="Width of the embedding.")] = 0
    layer_count: Annotated[Int64, Meta(description="Number of layers.")] = 0
    head_count: Annotated[Int64, Meta(description="Number of attention heads.")] = 0
    tensor_count: Annotated[Int64, Meta(description="Number of tensors in the file.")] = 0
    file_version: Annotated[Int32, Meta(description="Version of the GGUF container.")] = 0
    license: Annotated[str, Meta(description="Licence of the weights.")] = ""


class ModelStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    """What is known of a Model. Zero values are left out, as upstream does."""

    phase: Annotated[
        str, Meta(description="Where the Model is in its life.", extra_json_schema={"enum": [str(p) for p in Phase]})
    ] = ""
    size: Annotated[str, Meta(description="Size of the file for people; 0 while nothing was downloaded by us.")] = ""
    path: Annotated[str, Meta(description="Path of the file inside a serving pod.")] = ""
    cache_key: Annotated[str, Meta(description="Directory of the file in the model cache.")] = ""
    cache_claim: Annotated[
        str, Meta(description="PersistentVolumeClaim of the file, where the claim <name>-cache is an earlier Model's.")
    ] = ""
    sha256: Annotated[str, Meta(description="SHA-256 of the downloaded file.")] = ""
    source_etag: Annotated[str, Meta(description="ETag the server sent with the file.")] = msgspec.field(
        default="", name="sourceETag"
    )
    source_content_length: Annotated[Int64, Meta(description="Size of the downloaded file in bytes.")] = 0
    last_revalidated: Annotated[
        DateTime | None,
        Meta(description="When the source was last compared with the file. Only kept, never set by us."),
    ] = None
    accelerator_ready: Annotated[
        bool, Meta(description="Whether some node has the accelerator; true where none is needed.")
    ] = False
    gguf: Annotated[GGUF | None, Meta(description="What the GGUF file says of itself, where it is known.")] = None
    last_updated: Annotated[DateTime | None, Meta(description="When another field of this status last changed.")] = None
    conditions: Annotated[list[Condition], Meta(description="What is true of the Model, by type.")] = msgspec.field(
        default_factory=list
    )
