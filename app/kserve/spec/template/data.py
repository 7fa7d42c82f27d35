"""Look up the fields that a template reads: of the service's metadata and spec, and of the installation (KS-2.6).

Paths use Go's field names (``.Spec.Parallelism.DataLocal``); the types define which exist, and which are optional. A
lookup also notes whether the value may be different when the service is synced.
"""

from collections.abc import Mapping, Sequence
from functools import cache

from pydantic_core import PydanticUndefined

from app.kserve.constants import API_VERSION
from app.kserve.llminferenceserviceconfig.types import LLMInferenceServiceConfigSpec
from app.kserve.names import Names
from app.kserve.operator import OperatorConfig
from app.kserve.spec.template.bounds import STEP, Meter, TemplateError
from app.kserve.spec.template.functions import Pointer
from app.kube.base import Json, KubeModel
from app.kube.embedded.types import TYPES
from app.kube.merge import find
from app.kube.modelfields import FieldType, fields
from app.kube.objects import ObservedMeta

_ACRONYMS = {
    "uri": "URI",
    "lora": "LoRA",
    "http": "HTTP",
    "wva": "WVA",
    "hpa": "HPA",
    "keda": "KEDA",
    "kvCacheOffloading": "KVCacheOffloading",
}
"""Go names that are not the JSON name with a capital first letter."""
_METADATA = {
    "Name": ("name", ""),
    "GenerateName": ("generate_name", ""),
    "Namespace": ("namespace", ""),
    "UID": ("uid", ""),
    "Generation": ("generation", 0),
    "Labels": ("labels", {}),
    "Annotations": ("annotations", {}),
    "Finalizers": ("finalizers", []),
}
"""Attribute of the metadata and zero value of each field, by its Go name."""

_GIVEN_LATER = frozenset({"Name", "Namespace", "UID", "Generation"})
"""Metadata that every stored object has, and a manifest may lack."""


@cache
def _go_fields(model: type[KubeModel]) -> dict[str, tuple[str, FieldType, object]]:
    """Return JSON name, shape and zero value of each field by its Go name; ``None`` is an unset pointer."""
    go_fields = {}
    for alias, (name, shape) in fields(model).items():
        go_name = _ACRONYMS.get(alias) or alias[:1].upper() + alias[1:]
        default = model.model_fields[name].default
        annotation = str(model.model_fields[name].annotation)
        zero: object = "" if default is PydanticUndefined else default
        if "dict[str, str]" in annotation:
            zero = {}
        elif "list[" in annotation:
            zero = []
        go_fields[go_name] = (alias, shape, zero)
    return go_fields


class UnknownFieldError(TemplateError):
    """A field path that does not exist in the API."""


class ServiceData:
    """The data that one service's templates are rendered with.

    ``guessed`` is True once a template reads a value that may be different when the service is synced: a field that its
    spec does not set, a setting of the installation, missing metadata; of a ``sample``, every value.
    """

    def __init__(
        self,
        metadata: ObservedMeta,
        spec: Json,
        operator: OperatorConfig,
        *,
        encrypts: bool = False,
        sample: bool = False,
    ) -> None:
        self.guessed = False
        self._sample = sample
        self._metadata = metadata
        self._spec = spec
        pool = find(spec, ("router", "scheduler", "pool", "ref", "name")) or Names(metadata.name).pool
        self._global = {
            "SystemNamespace": operator.system_namespace,
            "IngressGatewayNamespace": operator.gateway[0],
            "IngressGatewayName": operator.gateway[1],
            "EnableTLS": encrypts,
            "ModelBasedRoutingHeaderName": operator.ingress.model_based_routing_header_name,
            "InferencePoolNamespacedName": f"{metadata.namespace}/{pool}",
        }

    def field(self, path: Sequence[str], meter: Meter) -> object:
        """Return the value at ``path``. Raises :class:`TemplateError` for one that does not exist."""
        root, *rest = path
        self.guessed |= self._sample or root == "GlobalConfig"
        if root == "Spec":
            before, self.guessed = self.guessed, True
            value = _spec_field(self._spec, LLMInferenceServiceConfigSpec, rest, path, meter)
            self.guessed = before or rest == ["Model", "Name"] or not _is_final(value)
            return value
        if root == "ObjectMeta":
            return self._metadata_field(rest, path, meter) if rest else "{}"
        if root in _METADATA:
            return self._metadata_field(list(path), path, meter)
        if root == "GlobalConfig":
            if len(rest) != 1 or rest[0] not in self._global:
                raise _unknown(path, tuple(self._global))
            return self._global[rest[0]]
        if root in ("Kind", "APIVersion"):
            return "LLMInferenceService" if root == "Kind" else API_VERSION
        if root == "Status":
            raise UnknownFieldError(f"{_dotted(path)}: a spec must not depend on its own status")
        raise _unknown(path, ("ObjectMeta", "Spec", "GlobalConfig"))

    def _metadata_field(self, names: Sequence[str], path: Sequence[str], meter: Meter) -> object:
        if names[0] not in _METADATA:
            raise _unknown(path, tuple(_METADATA))
        attribute, zero = _METADATA[names[0]]
        value = getattr(self._metadata, attribute)
        if not value and names[0] in _GIVEN_LATER:
            self.guessed = True
        return _below(zero if value is None else value, names[1:], path, meter)


def _spec_field(value: Json, model: type[KubeModel], names: Sequence[str], path: Sequence[str], meter: Meter) -> object:
    """Go down the types as long as they are ours, then down plain JSON."""
    for position, name in enumerate(names):
        fields = _go_fields(model)
        if name not in fields:
            raise _unknown(path, tuple(fields))
        alias, shape, zero = fields[name]
        item = value.get(alias)
        rest = names[position + 1 :]
        if item is None:
            if rest and zero is None:
                raise TemplateError(f"{_dotted(path)}: {name} is not set")
            return _below(zero, rest, path, meter)
        if shape.model is not None and not shape.in_list:
            value, model = item, shape.model
            continue
        if rest or shape.in_list:
            return _below(item, rest, path, meter, "" if shape.in_list else shape.embedded)
        return Pointer(item) if zero is None and not isinstance(item, list) else item
    return Pointer(value)


def _is_final(value: object) -> bool:
    """Report whether a service's spec sets the value for good; only a model's name can come from a base first."""
    inner = value.value if isinstance(value, Pointer) else value
    return isinstance(inner, (str, int, float)) and (isinstance(value, Pointer) or bool(value))


def _below(value: object, names: Sequence[str], path: Sequence[str], meter: Meter, type_name: str = "") -> object:
    """Go down plain JSON: keys of maps as they are, fields of Kubernetes' types by their Go names.

    ``type_name`` is the Kubernetes type of ``value``, where it has one: its fields exist even when they are not set.
    """
    for name in names:
        fields = _kubernetes_fields(type_name).get(name.lower()) if type_name else None
        if not isinstance(value, Mapping):
            raise TemplateError(f"{_dotted(path)}: {name} is not a field of a {type(value).__name__}")
        key = name if name in value else _in_any_case(name, value, meter)
        if key is not None:
            value = value[key]
        elif fields is not None:
            value = _zero(fields)
        else:
            raise TemplateError(f"{_dotted(path)}: {name} is not set")
        type_name = fields if fields is not None and fields in TYPES else ""
    return value


def _in_any_case(name: str, value: Mapping[str, object], meter: Meter) -> str | None:
    meter.spend(STEP * len(value))
    return next((key for key in value if key.lower() == name.lower()), None)


@cache
def _kubernetes_fields(type_name: str) -> dict[str, str]:
    """Return the type of each field of a Kubernetes type, by its name in lower case."""
    return {name.lower(): part.container + part.type for name, part in TYPES[type_name].items()}


def _zero(type_: str) -> object:
    """Return Go's output for an unset field; numbers and structs of pods are nearly all pointers."""
    if type_.startswith("[]"):
        return []
    if type_.startswith("{}"):
        return {}
    return {"string": "", "boolean": False}.get(type_)


def _dotted(path: Sequence[str]) -> str:
    return "." + ".".join(path)


def _unknown(path: Sequence[str], names: Sequence[str]) -> UnknownFieldError:
    return UnknownFieldError(f"{_dotted(path)} does not exist; the fields are {', '.join(names)}")
