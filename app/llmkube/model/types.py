"""The ``Model`` kind: the source of weights, their hardware, and the state of their download (LK-1.2, LK-1.3)."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta
from pydantic import Field

from app.kube.base import DateTime, Int32, Int64, KubeModel, MemoryAmount, pattern
from app.kube.conditions import Condition
from app.kube.field import Hint, did_you_mean, with_hint
from app.kube.quantity import integer
from app.kube.regex import regex
from app.kube.resource import Resource
from app.kube.schema.fieldclass import DEFAULTED, HONOURED, defaulted, honoured, no_effect, passed_through
from app.kube.schema.rules import Rule, Rules
from app.workload.address import scheme_hint

_HUB_SCHEME = regex(r"(?:hf|hf-hub|huggingface|hub)(?::|://)/*([^/]+/[^/]+)", re.IGNORECASE)

_SCHEMES = ("https", "http", "file", "pvc", "hf", "s3")
EXTENDED_RESOURCE = pattern(
    r"^[a-z0-9.\-]+/[a-z0-9._\-]+$", "must be <domain>/<name> in lower case, for example nvidia.com/mig-1g.10gb"
)
_ONE_CLAIM = Rules(
    Rule(
        "self.all(claim, has(claim.resourceClaimName) != has(claim.resourceClaimTemplateName))",
        "each claim must set either resourceClaimName or resourceClaimTemplateName",
        lambda claims: all((c.resource_claim_name is None) != (c.resource_claim_template_name is None) for c in claims),
    )
)
_FILE_TYPES = """
F32 F16 Q4_0 Q4_1 - - - Q8_0 Q5_0 Q5_1 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K IQ2_XXS IQ2_XS Q2_K_S
IQ3_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ3_M IQ2_S IQ2_M IQ4_XS IQ1_M BF16 - - - TQ1_0 TQ2_0 MXFP4_MOE
"""
QUANTIZATIONS = {number: name for number, name in enumerate(_FILE_TYPES.split()) if name != "-"}
"""llama.cpp's names of ``general.file_type`` (``llama_ftype`` in its llama.h)."""


def source_hint(text: str) -> Hint:
    """Return a hint for a repository written with the scheme of another API, or an address with a misspelt one."""
    written = _HUB_SCHEME.fullmatch(text)
    if written:
        return Hint(f"; write {written[1]}", written[1])
    if text != text.strip() and re.match(SOURCE_PATTERN, text.strip()):
        return with_hint("; remove the white space around it", did_you_mean(text.strip()))
    return scheme_hint(text, _SCHEMES, re.compile(SOURCE_PATTERN).match)


SOURCE_FORM = (
    "must be <owner>/<name> for a Hugging Face repository, hf://<owner>/<name>/<file> for a file of one, an http or "
    "https URL of one file, s3://<bucket>/<key>, pvc://<claim>/<path>, or an absolute path on the node"
)
SOURCE_PATTERN = pattern(
    r"^(https?|file|pvc|hf|s3)://.*|^/[^\t\n\f\r ]+$|^[a-zA-Z0-9][0-9A-Za-z_\-./]+$", SOURCE_FORM, source_hint
)
r"""Upstream's, with the character classes written out: ``\\w`` and ``\\s`` are ASCII for the API server."""

TO_AGENT = passed_through("to the agent, on metal only")
COMPARED = honoured("compared with what the model needs; GPUs are requested by number")
_BY_PODS = honoured("pods of the cluster")


class Sharding(KubeModel):
    strategy: Annotated[Literal["layer", "tensor", "row", "pipeline", "none"], defaulted("runtime llamacpp")] = "layer"
    """Mode in which llama.cpp splits the model: by layers, by rows (tensor and row mean the same), or none. pipeline
    does not exist in llama.cpp and acts like layer."""
    layer_split: Annotated[list[str], honoured("runtime llamacpp")] = Field(default_factory=list)
    """Layers of each GPU as start-end, one entry per GPU, such as 0-19. Other forms give equal shares."""


def layers(entry: str) -> tuple[int, int] | None:
    """Return the first and last layer of a ``layerSplit`` entry ``start-end`` (LK-3.4), ``None`` for another form."""
    start, dash, end = entry.partition("-")
    first, last = integer(start.strip()), integer(end.strip())
    return (first, last) if dash and first is not None and last is not None and 0 <= first <= last else None


class DeviceClaim(KubeModel):
    name: str
    """Name of the claim in the pod."""
    resource_claim_name: str | None = None
    """Name of a ResourceClaim, in the same namespace."""
    resource_claim_template_name: str | None = None
    """Name of a ResourceClaimTemplate, in the same namespace."""


class GPU(KubeModel):
    constraints: ClassVar = (
        Rule(
            "has(self.resourceName) && has(self.resourceClaims) ? self.resourceClaims == [] : true",
            "resourceName and resourceClaims must not both be set",
            lambda gpu: not (gpu.resource_name and gpu.resource_claims),
        ),
    )

    enabled: Annotated[bool | None, no_effect(asks=lambda _: False)] = None  # rules over count warn
    """No effect: whether a GPU is requested is decided by the counts alone."""
    count: Annotated[Int32 | None, _BY_PODS] = Field(default=None, ge=0, le=8)
    """GPUs per pod. When above 0 it wins over the service's resources.gpu."""
    memory: Annotated[MemoryAmount, COMPARED] = ""
    """Memory of one GPU as a quantity, such as 24Gi. It is compared with what the model needs; GPUs are requested by
    number."""
    vendor: Annotated[Literal["nvidia", "amd", "intel"], defaulted("pods of the cluster")] = "nvidia"
    """Maker of the GPU; with the accelerator it decides which resource is requested."""
    resource_name: Annotated[str, _BY_PODS] = Field(default="", pattern=EXTENDED_RESOURCE)
    """Extended resource that is requested, such as nvidia.com/mig-1g.10gb. It wins over the vendor's."""
    toleration_key: Annotated[str, _BY_PODS] = Field(default="", pattern=EXTENDED_RESOURCE)
    """Taint that pods with a GPU tolerate. Absent: the name of the requested resource."""
    runtime: Annotated[Literal["vulkan", "rocm"] | None, honoured("runtime llamacpp, vendor amd")] = None
    """Interface by which llama.cpp reaches an AMD GPU: devic.es/dri-render is requested, and a service without an image
    has one that is built for it."""
    resource_claims: Annotated[list[DeviceClaim], passed_through("to pods of the cluster"), _ONE_CLAIM] = Field(
        default_factory=list, max_length=16
    )
    """Claims of dynamic resource allocation for the devices of each pod, instead of count and resourceName."""
    layers: Annotated[Int32 | None, defaulted("runtime llamacpp, and metal")] = Field(default=None, ge=-1)
    """Layers that llama.cpp puts on the GPU. 0, -1 and absent mean all of them."""
    sharding: Sharding | None = None
    """Split of the model when a pod has more than one GPU."""

    @property
    def amd_device(self) -> str:
        """Return the API by which llama.cpp uses an AMD GPU; empty for other GPUs."""
        return self.runtime or "" if self.vendor == "amd" else ""


_NO_GPU = GPU()


class Hardware(KubeModel):
    accelerator: Annotated[Literal["cpu", "metal", "cuda", "rocm", "intel", "vulkan"], DEFAULTED] = "cpu"
    """Kind of hardware. metal hands the model over to an agent on a Mac outside the cluster."""
    gpu: GPU | None = None
    """GPUs of each pod."""
    memory_budget: Annotated[MemoryAmount, TO_AGENT] = ""
    """Maximum memory of the process on a metal host, as a quantity. No effect inside the cluster."""
    memory_fraction: Annotated[float | None, TO_AGENT] = None
    """Share of a metal host's memory that the process may take, above 0 and at most 1. No effect inside the cluster or
    beside memoryBudget."""


class ModelResources(KubeModel):
    cpu: Annotated[str, honoured("where the service requests none, not on metal")] = ""
    """CPU request of a pod whose service states none, as a quantity."""
    memory: Annotated[MemoryAmount, honoured("where the service requests none, not on metal")] = ""
    """Memory request of a pod whose service states none, as a quantity."""


class SecretReference(KubeModel):
    name: str = ""
    """Name of the Secret."""


class ModelSpec(KubeModel):
    synonyms: ClassVar[Mapping[str, str]] = {
        "all": "-1",
        "amd": "rocm",
        "apple": "metal",
        "gpu": "cuda",
        "mps": "metal",
        "nvidia": "cuda",
    }
    other_names: ClassVar[Mapping[str, str]] = {
        "checksum": "sha256",
        "digest": "sha256",
        "uri": "source",
        "url": "source",
    }
    habits: ClassVar[Mapping[str, str]] = {
        "revision": "write it into source: hf://<owner>/<name>@<revision>",
        "prefetchTolerations": "it is newer than LLMKube v0.9.19; annotate the Model with "
        "modelhooks.dev/download=Pods, so that the pods of its service download, with the tolerations of the service",
    }

    source: Annotated[str, HONOURED] = Field(pattern=SOURCE_PATTERN)
    """Address of the weights: an http or https URL of one file, a Hugging Face repository as owner/name,
    hf://owner/name[@revision][/file] for one of its revisions or files, s3://bucket/key, pvc://claim/path for a volume
    of the same namespace, or an absolute path (also as file://) on the node."""
    source_secret_ref: Annotated[SecretReference | None, honoured("where a Job or a pod of the cluster fetches")] = None
    """Secret whose keys the downloader has as variables: HF_TOKEN for the Hugging Face Hub; AWS_ACCESS_KEY_ID,
    AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION and AWS_ENDPOINT_URL for s3."""
    files: Annotated[list[str], honoured("sources hf and s3")] = Field(default_factory=list)
    """Files to fetch, by their paths in the repository or below the prefix. The first is served."""
    mmproj: Annotated[str, honoured("runtime llamacpp")] = ""
    """Multimodal projector beside files: a path in the repository or below the prefix."""
    prefetch: Annotated[bool, no_effect("what is fetched here, a Job fetches before pods start")] = False
    """No effect: a Job always fetches the files before pods start."""
    sha256: Annotated[str, honoured("where a Job or a pod of the cluster fetches the file")] = Field(
        default="", pattern=pattern("^[a-fA-F0-9]{64}$", "must be the 64 hexadecimal digits that sha256sum prints")
    )
    """SHA-256 of the file in hexadecimal. A download that does not match it is thrown away."""
    refresh_policy: Annotated[
        Literal["IfNotPresent", "OnChange"], defaulted("sources http, https, hf and s3 without `sha256`, not on metal")
    ] = "IfNotPresent"
    """Lets a pod that starts keep the file that is there, or ask the server if it has changed."""
    format: Annotated[
        Literal["gguf", "mlx", "safetensors", "pytorch", "custom"],
        defaulted("services report a runtime that cannot load it"),
    ] = "gguf"
    """File format of the weights. Runtimes are warned about formats they cannot load."""
    quantization: Annotated[str, passed_through("to `status.quantization`, its column and its metric")] = ""
    """Name of the quantization, for display. Defaults to the quantization of a GGUF file."""
    hardware: Hardware | None = None
    """Hardware the model needs. Absent means CPU."""
    resources: ModelResources | None = None
    """Requests for pods of services that state none themselves."""

    @property
    def accelerator(self) -> str:
        return self.hardware.accelerator if self.hardware else "cpu"

    @property
    def on_metal(self) -> bool:
        """Return whether an agent on a Mac serves the model."""
        return self.accelerator == "metal"

    @property
    def gpu(self) -> GPU:
        return (self.hardware.gpu if self.hardware else None) or _NO_GPU


class ModelPhase(StrEnum):
    PENDING = "Pending"
    DOWNLOADING = "Downloading"
    COPYING = "Copying"
    READY = "Ready"
    FAILED = "Failed"
    """Nothing changes until a user acts."""


class ModelCondition(StrEnum):
    READY = "Ready"
    AVAILABLE = "Available"
    PROGRESSING = "Progressing"
    DEGRADED = "Degraded"


class ModelReason(StrEnum):
    INVALID_SPEC = "InvalidSpec"
    INVALID_SOURCE = "InvalidSource"
    INVALID_FILE_SET = "InvalidFileSet"
    SOURCE_NOT_ALLOWED = "SourceNotAllowed"
    """By the operator's allow-list, or because it is a cluster metadata address."""
    PVC_NOT_FOUND = "PVCNotFound"
    PVC_NOT_BOUND = "PVCNotBound"
    PVC_MODEL_READY = "PVCModelReady"
    WORKLOAD_RESOLVED = "WorkloadResolved"
    RUNTIME_RESOLVED = "RuntimeResolved"
    METAL_AGENT_MANAGED = "MetalAgentManaged"
    DOWNLOAD_STARTED = "DownloadStarted"
    COPY_STARTED = "CopyStarted"
    MODEL_READY = "ModelReady"
    DOWNLOAD_FAILED = "DownloadFailed"
    COPY_FAILED = "CopyFailed"
    INVALID_SETTINGS = "InvalidSettings"
    INTEGRITY_CHECK_FAILED = "IntegrityCheckFailed"
    SUPERSEDED = "Superseded"
    TERMINATING = "Terminating"


class GGUF(msgspec.Struct, rename="camel", omit_defaults=True):
    architecture: Annotated[str, Meta(description="Model architecture, such as llama.")] = ""
    model_name: Annotated[str, Meta(description="Name of the model in the file.")] = ""
    quantization: Annotated[str, Meta(description="Quantization of the weights.")] = ""
    context_length: Annotated[Int64, Meta(description="Context length the model was trained with.")] = 0
    embedding_size: Annotated[Int64, Meta(description="Width of the embedding.")] = 0
    layer_count: Annotated[Int64, Meta(description="Number of layers.")] = 0
    head_count: Annotated[Int64, Meta(description="Number of attention heads.")] = 0
    head_count_kv: Annotated[Int64, Meta(description="Number of key-value heads, where attention is grouped.")] = 0
    key_length: Annotated[Int64, Meta(description="Width of a head for keys, where the file tells it.")] = 0
    value_length: Annotated[Int64, Meta(description="Width of a head for values, where the file tells it.")] = 0
    sliding_window: Annotated[Int64, Meta(description="Tokens that layers with a window attend to.")] = 0
    kv_lora_rank: Annotated[Int64, Meta(description="Rank of latent attention, which caches one vector.")] = 0
    parameter_count: Annotated[Int64, Meta(description="Number of weights: the elements of all tensors.")] = 0
    tensor_count: Annotated[Int64, Meta(description="Number of tensors in the file.")] = 0
    file_version: Annotated[Int32, Meta(description="Version of the GGUF container.")] = 0
    license: Annotated[str, Meta(description="Licence of the weights.")] = ""


class ModelStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    """The status of a Model. Zero values are left out, as upstream does."""

    phase: Annotated[
        str,
        Meta(description="Where the Model is in its life.", extra_json_schema={"enum": [str(p) for p in ModelPhase]}),
    ] = ""
    size: Annotated[str, Meta(description="Size of the file for people; 0 while nothing was downloaded by us.")] = ""
    quantization: Annotated[str, Meta(description="Quantization of the weights, from the spec or from the file.")] = ""
    path: Annotated[str, Meta(description="Path of the file inside a serving pod.")] = ""
    staged_files: Annotated[
        list[str], Meta(description="Files that were fetched of a repository or below a prefix.")
    ] = []
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
    gguf: Annotated[GGUF | None, Meta(description="Metadata of the GGUF file, if known.")] = None
    last_updated: Annotated[DateTime | None, Meta(description="When another field of this status last changed.")] = None
    conditions: Annotated[list[Condition], Meta(description="What is true of the Model, by type.")] = []


Model = Resource[ModelSpec, ModelStatus]
