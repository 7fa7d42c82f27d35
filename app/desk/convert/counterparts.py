"""The facts about a served model that the three families share, and the field in which each family has them.

A fact is read from one family's field and written to another's. A value in no table has no counterpart, and
:mod:`app.desk.convert.translate` lists it. Values change their form on the way where the families write them
differently.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from app import images
from app.kserve.sources import doubt_of, problem_of
from app.kube.base import Json
from app.kube.merge import find as value_at
from app.kube.reading.stored import without_nulls
from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.runtimes.flag import Memory, flag_values
from app.llmkube.runtimes.registry import RUNTIMES
from app.llmkube.source import SourceClass
from app.llmkube.source import parse as llmkube_source

Step = str | int
EACH = "*"
"""In a path: each key of a map, each a separate fact."""
MAIN = "[main]"
"""In a path: the item of a list that is called ``main``."""


class NoCounterpart(Exception):
    """The reason why a value has no counterpart in the other family."""


def same(value: object) -> object:
    return value


@dataclass(frozen=True)
class Field:
    """A fact and the field that has it: ``part`` is ``service`` or ``model``, the object that has the field.

    ``fact`` has a ``{}`` where the path has an :data:`EACH`. A field without ``write`` is only read.
    """

    fact: str
    part: str
    path: tuple[Step, ...]
    read: Callable[[Any], object] = same
    write: Callable[[Any], object] | None = same
    unless: Callable[[Json], str] = lambda _: ""
    """The reason why the field has no effect in this object; empty if it has one."""
    read_from: Callable[[Json], object] | None = None
    """Reads the fact from the whole object, where the field alone does not tell it."""


@dataclass(frozen=True)
class Family:
    """The fields in which a family has the facts."""

    title: str
    group: str
    """Suffix of its API groups."""
    service: tuple[str, str]
    """apiVersion and kind of what serves."""
    model: tuple[str, str] | None
    """apiVersion and kind of the model, if it is a separate object."""
    links: tuple[tuple[Step, ...], ...]
    """Paths at which a service may name its model."""
    fields: tuple[Field, ...]
    runtime: str
    """The runtime of a service that names none."""
    implied: frozenset[str] = frozenset()
    """Facts that need no field here: they follow from the form of the objects."""
    model_scoped: bool = True
    """True if the kind of its models is namespaced."""
    hints: Mapping[tuple[Step, ...], str] = field(default_factory=dict)
    """Advice about parts of a service that have no counterpart elsewhere."""
    serves_as: Callable[[str], str] = lambda _: ""
    """The name under which a model of that address is served, where that cannot be chosen."""
    options: Callable[[Json], Iterable[tuple[tuple[Step, ...], list[str]]]] = lambda _: ()
    """Fields of a service that are options of its engine, with their words."""
    required: Callable[[str, str], Iterable[tuple[str, tuple[Step, ...], object]]] = lambda *_: ()
    """Values that an object needs beside its facts, by the model's address and the runtime: part, path and value."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """The reasons why facts, or all that begin with a word, have no counterpart here."""


def _device_count(value: object) -> int:
    """A number of devices, which Kubernetes also accepts as a string."""
    text = str(value)
    if not re.fullmatch(r"[0-9]{1,3}", text):
        raise NoCounterpart("only whole numbers of GPUs are supported")
    return int(text)


# Addresses of models. A fact is an address with a scheme: hf://, https://, pvc://, s3://, gs://, oss://, host://, …


def _from_llmkube(text: str) -> str:
    source = llmkube_source(text)
    if source.kind is SourceClass.REPOSITORY:
        return f"hf://{source.repository}{f'@{source.revision}' if source.revision else ''}"
    return f"host://{source.path}" if source.kind is SourceClass.LOCAL else text


def _repository(address: str) -> str:
    """``owner/name`` of an address on the Hugging Face Hub; empty for any other."""
    scheme, _, rest = address.partition("://")
    return rest if scheme == "hf" and re.fullmatch(r"[A-Za-z0-9][\w.-]*/[\w.-]+", rest) else ""


def _to_llmkube(address: str) -> str:
    scheme, _, rest = address.partition("://")
    if repository := _repository(address):
        return repository
    if scheme in ("http", "https", "pvc", "s3"):
        return address
    if scheme == "host":
        return f"file://{rest}"
    if scheme == "hf":
        raise NoCounterpart("LLMKube has another form for this: hf://<owner>/<name>[@<revision>]")
    raise NoCounterpart(f"LLMKube does not fetch {scheme}:// addresses")


def _from_llmaz(text: str) -> str:
    return text.replace("gcs://", "gs://", 1) if text.startswith("gcs://") else text


def _to_hub(address: str) -> str:
    if repository := _repository(address):
        return repository
    raise NoCounterpart(_PART if address.startswith("hf://") else "not on the Hugging Face Hub")


_PART = "only whole repositories of the Hugging Face Hub, in their newest revision, are converted"


def _to_uri(address: str) -> str:
    scheme, _, rest = address.partition("://")
    if scheme not in ("s3", "gs", "oss", "host", "ollama"):
        raise NoCounterpart(f"llmaz does not fetch {scheme}:// addresses")
    return f"gcs://{rest}" if scheme == "gs" else address


def _to_kserve(address: str) -> str:
    if address.startswith("hf://") and not _repository(address):
        raise NoCounterpart(_PART)
    if problem := problem_of(address, enabled=True) or doubt_of(address, own_command=False):
        raise NoCounterpart(f"KServe refuses or cannot serve it: {problem}")
    return address


def _served_by_repository(text: str) -> str:
    """vLLM serves a model under the name that it loads."""
    if repository := _repository(_from_llmkube(text)):
        return repository
    raise NoCounterpart("")


def _only(*names: str, reason: str = "it does not start {}") -> Callable[[str], str]:
    """Return a function that accepts these names; ``reason`` is the message for any other."""

    def checked(name: str) -> str:
        if name not in names:
            raise NoCounterpart(reason.format(name))
        return name

    return checked


_ENGINES = {"vllm": images.VLLM, "sglang": images.SGLANG, "tgi": images.TGI}
"""Images in place of those of llmaz' BackendRuntimes, which are too old for newer models."""
_REPOSITORIES = frozenset(image.rpartition(":")[0] for image in images.LLMAZ_RUNTIMES.values())


def _to_version(image: object) -> str:
    repository, _, tag = str(image).removeprefix("docker.io/").partition(":")
    if repository not in _REPOSITORIES or not tag or "@" in tag:
        raise NoCounterpart("the BackendRuntime has the image; only version, its tag, can be chosen")
    return tag


# Fields without effect, and values that are required beside the facts.


def _from_another_hub(model: Json) -> str:
    hub = value_at(model, ("spec", "source", "modelHub", "name"))
    return f"no other family fetches from {hub}" if hub not in (None, "Huggingface") else ""


def _image_of_version(service: Json) -> str:
    """Return the image of the BackendRuntime that ``manifests/llmaz-runtimes`` has, with the service's version."""
    backend = value_at(service, _BACKEND)
    image = images.LLMAZ_RUNTIMES.get(backend.get("backendName") or _LLMAZ.runtime)
    if image is None:
        raise NoCounterpart("only llmaz chooses the image's tag alone; write the whole image")
    return f"{image.rpartition(':')[0]}:{backend['version']}"


def _several_numbers(model: Json) -> str:
    flavors = value_at(model, ("spec", "inferenceConfig", "flavors")) or ()
    numbers = {str((flavor.get("limits") or {}).get("nvidia.com/gpu")) for flavor in flavors}
    return "its flavors have different numbers of GPUs" if len(numbers) > 1 else ""


def _several_flavors(model: Json) -> str:
    several = len(value_at(model, ("spec", "inferenceConfig", "flavors")) or ()) > 1
    return "a choice of flavors exists only in llmaz" if several else ""


def _other_gpus(model: Json) -> str:
    hardware = value_at(model, ("spec", "hardware")) or {}
    vendors = {hardware.get("accelerator"), (hardware.get("gpu") or {}).get("vendor")}
    return "only NVIDIA GPUs are converted" if vendors & {"intel", "amd", "rocm", "metal"} else ""


def _nvidia(value: object) -> str:
    """Return the vendor of GPUs that a Model's accelerator, vendor or switch means."""
    if value not in ("cuda", "nvidia", True):
        raise NoCounterpart("only NVIDIA GPUs are converted")
    return "nvidia"


def _without_count(model: Json) -> str:
    counted = value_at(model, ("spec", "hardware", "gpu", "count"))
    return "" if counted else "the number of GPUs is not among the model's fields"


def _options_of_llmkube(service: Json) -> Iterator[tuple[tuple[Step, ...], list[str]]]:
    """Yield the fields that are one option each, but for the numbers of GPUs and the address to listen at."""
    spec = InferenceServiceSpec.model_validate(without_nulls(service["spec"]))  # as the API server stores it
    runtime = RUNTIMES[spec.runtime]
    for path, option, value in flag_values(spec, runtime.flags):
        is_field = path.removeprefix(f"{runtime.config}.").isidentifier() and path != "bindAddress"
        is_plain = all(isinstance(item, str | int | float) for item in (value if isinstance(value, list) else [value]))
        if is_field and is_plain and Memory.GPUS not in option.memory:
            yield ("spec", *path.split(".")), option.arguments(value)


def _of_llmkube(address: str, runtime: str) -> Iterator[tuple[str, tuple[Step, ...], object]]:
    if runtime != "llamacpp" and not address.endswith(".gguf"):
        yield "model", ("spec", "format"), "safetensors"
    if _repository(address):
        yield "service", ("spec", "skipModelInit"), True


def _of_llmaz(address: str, runtime: str) -> Iterator[tuple[str, tuple[Step, ...], object]]:
    if runtime in _ENGINES:
        yield "service", (*_BACKEND, "version"), _ENGINES[runtime].rpartition(":")[2]
    word = re.sub(r"[^a-z0-9]+", "-", address.rstrip("/").rpartition("/")[2].lower()).strip("-")
    yield "model", ("spec", "familyName"), word[:50].rstrip("-") or "model"


# Facts of the objects' metadata, the same in all families.

_METADATA = (
    Field("name", "service", ("metadata", "name")),
    Field("namespace", "service", ("metadata", "namespace")),
    Field("label {}", "service", ("metadata", "labels", EACH)),
    Field("annotation {}", "service", ("metadata", "annotations", EACH)),
)
_MODEL_METADATA = (
    Field("model name", "model", ("metadata", "name")),
    Field("model label {}", "model", ("metadata", "labels", EACH)),
    Field("model annotation {}", "model", ("metadata", "annotations", EACH)),
)

_LLMKUBE = Family(
    title="LLMKube",
    group="llmkube.dev",
    service=("inference.llmkube.dev/v1alpha1", "InferenceService"),
    model=("inference.llmkube.dev/v1alpha1", "Model"),
    links=(("spec", "modelRef"),),
    runtime="llamacpp",
    implied=frozenset({"container", "model namespace", "hub", "flavor name"}),
    required=_of_llmkube,
    serves_as=_repository,
    hints={("spec", "vllmConfig"): "write vLLM's options as arguments"},
    options=_options_of_llmkube,
    reasons={
        "limits ": "LLMKube sets no limits, except for GPUs",
        "requests ": "LLMKube requests only CPU and memory",
        "served name": "LLMKube serves a model under its repository's name",
        "revision": "write it into spec.source, as in hf://<owner>/<name>@<revision>",
    },
    fields=(
        *_METADATA,
        *_MODEL_METADATA,
        Field("model namespace", "model", ("metadata", "namespace")),
        Field("address", "model", ("spec", "source"), _from_llmkube, _to_llmkube),
        Field("served name", "model", ("spec", "source"), _served_by_repository, None),
        Field("runtime", "service", ("spec", "runtime"), same, _only("llamacpp", "vllm", "tgi", "sglang")),
        Field("replicas", "service", ("spec", "replicas")),
        Field("least replicas", "service", ("spec", "autoscaling", "minReplicas")),
        Field("maximum replicas", "service", ("spec", "autoscaling", "maxReplicas")),
        Field("image", "service", ("spec", "image")),
        Field("arguments", "service", ("spec", "extraArgs")),
        Field("environment", "service", ("spec", "env")),
        Field("requests cpu", "service", ("spec", "resources", "cpu"), same, str),
        Field("requests memory", "service", ("spec", "resources", "hostMemory"), same, None),
        Field("requests memory", "service", ("spec", "resources", "memory"), same, str),
        Field("limits nvidia.com/gpu", "model", ("spec", "hardware", "gpu", "count"), same, None, _other_gpus),
        Field("limits nvidia.com/gpu", "service", ("spec", "resources", "gpu"), same, _device_count),
        Field("GPU vendor", "model", ("spec", "hardware", "accelerator"), _nvidia, None, _without_count),
        Field("GPU vendor", "model", ("spec", "hardware", "gpu", "vendor"), _nvidia, None, _without_count),
        Field("GPU vendor", "model", ("spec", "hardware", "gpu", "enabled"), _nvidia, None, _without_count),
        Field("node label {}", "service", ("spec", "nodeSelector", EACH)),
        Field("tolerations", "service", ("spec", "tolerations")),
        Field("pull secrets", "service", ("spec", "imagePullSecrets")),
        Field("runtime class", "service", ("spec", "runtimeClassName")),
        Field("priority class", "service", ("spec", "priorityClassName")),
        Field("pod security", "service", ("spec", "podSecurityContext")),
        Field("container security", "service", ("spec", "securityContext")),
        Field("pod label {}", "service", ("spec", "podLabels", EACH)),
        Field("pod annotation {}", "service", ("spec", "podAnnotations", EACH)),
        Field("tensor parallelism", "service", ("spec", "vllmConfig", "tensorParallelSize")),
        Field("volumes", "service", ("spec", "extraVolumes")),
        Field("mounts", "service", ("spec", "extraVolumeMounts")),
        Field("token of the Hub", "service", ("spec", "vllmConfig", "hfTokenSecretRef"), same, None),
        Field("token of the Hub", "service", ("spec", "sglangConfig", "hfTokenSecretRef"), same, None),
    ),
)

_HUB = ("spec", "source", "modelHub")
_NOT_FROM_MODELSCOPE = "no other family fetches from ModelScope"
_BACKEND = ("spec", "backendRuntimeConfig")
_BACKENDS = ("llamacpp", "vllm", "tgi", "sglang", "ollama", "tensorrt-llm")
_FLAVOR = ("spec", "inferenceConfig", "flavors", 0)
_LLMAZ = Family(
    title="llmaz",
    group="llmaz.io",
    service=("inference.llmaz.io/v1alpha1", "Playground"),
    model=("llmaz.io/v1alpha1", "OpenModel"),
    model_scoped=False,
    links=(("spec", "modelClaim", "modelName"), ("spec", "modelClaims", "models", 0, "name")),
    runtime="vllm",
    implied=frozenset({"container", "model namespace", "GPU vendor"}),
    required=_of_llmaz,
    hints={
        ("spec", "modelClaims", "models"): "name a draft model in the engine's option, vLLM's --speculative-config",
        ("spec", "elasticConfig", "scaleTrigger"): "write a ScaledObject of KEDA",
    },
    reasons={
        "served name": "llmaz serves a model under the name of its OpenModel",
        "token of the Hub": "llmaz reads it from the Secret modelhub-secret",
        "tensor parallelism": "llmaz shards by the GPUs of a flavor, which the BackendRuntime's arguments name",
    },
    fields=(
        *_METADATA,
        *_MODEL_METADATA,
        Field("served name", "model", ("metadata", "name"), same, None),
        Field("hub", "model", (*_HUB, "name"), _only("Huggingface", reason=_NOT_FROM_MODELSCOPE), None),
        Field("address", "model", (*_HUB, "modelID"), lambda text: f"hf://{text}", _to_hub, _from_another_hub),
        Field("address", "model", ("spec", "source", "uri"), _from_llmaz, _to_uri),
        Field("revision", "model", (*_HUB, "revision")),
        Field("runtime", "service", (*_BACKEND, "backendName"), same, _only(*_BACKENDS)),
        Field("image", "service", (*_BACKEND, "version"), same, _to_version, read_from=_image_of_version),
        Field("replicas", "service", ("spec", "replicas")),
        Field("least replicas", "service", ("spec", "elasticConfig", "minReplicas")),
        Field("maximum replicas", "service", ("spec", "elasticConfig", "maxReplicas")),
        Field("arguments", "service", (*_BACKEND, "args")),
        Field("environment", "service", (*_BACKEND, "envs")),
        Field("flavor name", "model", (*_FLAVOR, "name"), same, None, _several_flavors),
        Field("limits nvidia.com/gpu", "model", (*_FLAVOR, "limits", "nvidia.com/gpu"), str, same, _several_numbers),
        Field("requests {}", "service", (*_BACKEND, "resources", "requests", EACH)),
        Field("limits {}", "service", (*_BACKEND, "resources", "limits", EACH)),
        Field("node label {}", "model", (*_FLAVOR, "nodeSelector", EACH), same, same, _several_flavors),
    ),
)

_POD = ("spec", "template")
_CONTAINER = (*_POD, "containers", MAIN)
_KSERVE = Family(
    title="KServe",
    group="serving.kserve.io",
    service=("serving.kserve.io/v1alpha2", "LLMInferenceService"),
    model=None,
    links=(),
    runtime="vllm",
    implied=frozenset({"link", "model namespace", "hub", "flavor name", "GPU vendor"}),
    reasons={
        "model ": "KServe has the model in the service, not in a separate object",
        "least replicas": "KServe scales by a WorkloadVariantAutoscaler, which has to be configured",
        "maximum replicas": "KServe scales by a WorkloadVariantAutoscaler, which has to be configured",
        "revision": "KServe fetches the newest revision of a repository",
        "token of the Hub": "name the Secret in the annotation serving.kserve.io/storageSecretName",
    },
    fields=(
        *_METADATA,
        Field("address", "service", ("spec", "model", "uri"), same, _to_kserve),
        Field("served name", "service", ("spec", "model", "name")),
        Field("runtime", "service", (), same, _only("vllm", reason="KServe's presets start vLLM, not {}")),
        Field("replicas", "service", ("spec", "replicas")),
        Field("container", "service", (*_CONTAINER, "name"), same, None),
        Field("image", "service", (*_CONTAINER, "image")),
        Field("arguments", "service", (*_CONTAINER, "args")),
        Field("environment", "service", (*_CONTAINER, "env")),
        Field("requests {}", "service", (*_CONTAINER, "resources", "requests", EACH)),
        Field("limits {}", "service", (*_CONTAINER, "resources", "limits", EACH), same, str),
        Field("node label {}", "service", (*_POD, "nodeSelector", EACH)),
        Field("tolerations", "service", (*_POD, "tolerations")),
        Field("pull secrets", "service", (*_POD, "imagePullSecrets")),
        Field("runtime class", "service", (*_POD, "runtimeClassName")),
        Field("priority class", "service", (*_POD, "priorityClassName")),
        Field("pod security", "service", (*_POD, "securityContext")),
        Field("container security", "service", (*_CONTAINER, "securityContext")),
        Field("pod label {}", "service", ("spec", "labels", EACH)),
        Field("pod annotation {}", "service", ("spec", "annotations", EACH)),
        Field("tensor parallelism", "service", ("spec", "parallelism", "tensor")),
        Field("volumes", "service", (*_POD, "volumes")),
        Field("mounts", "service", (*_CONTAINER, "volumeMounts")),
    ),
)

FAMILIES: Mapping[str, Family] = {"llmkube": _LLMKUBE, "llmaz": _LLMAZ, "kserve": _KSERVE}
OF_ONE_RUNTIME = ("image", "arguments")
"""Facts that mean something to the runtime they were written for, and to no other."""
