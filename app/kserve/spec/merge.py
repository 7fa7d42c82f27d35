"""The layers of a merge: specs as documents, the one form that merging understands. Source: KS-1.4.1 and KS-2.4.

A document has no nulls, no zero values that mean "not set", and no unknown fields; rules
that only the API server put into a route are gone.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from app.kserve.constants import MODEL_SERVERS
from app.kserve.gatewayapi import DEFAULT_RULES, HTTPRouteSpec
from app.kserve.llminferenceservice.types import EndpointPickerReference, LLMInferenceServiceSpec
from app.kserve.spec.route import ROUTE
from app.kube.base import Json
from app.kube.merge import MergeRules, find, replaced
from app.kube.modelfields import known_fields, with_defaults
from app.kube.podspec import MERGE_KEYS, POD, normalised
from app.kube.reading.stored import without_nulls

Keyed = Sequence[str | tuple[str, Any]]
"""A path whose list items are named by their merge key (:func:`app.kube.merge.find`)."""


class CombineError(Exception):
    """The effective spec cannot be computed; ``reasons`` are sentences for people."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))


class MissingConfigError(CombineError):
    """A config or a preset that the spec refers to does not exist."""


class MissingConfigMapError(CombineError):
    """A ConfigMap that the spec refers to does not exist."""


class Layer(msgspec.Struct, frozen=True):
    """One spec that takes part in the merge, and what it is called in messages."""

    source: str
    spec: Json
    raw: bytes = b""
    """The user's JSON; empty for a preset."""
    name: str = ""
    """Of the config; empty for the service's own spec."""
    namespace: str = ""
    """Of the config; empty for a built-in preset too."""


def keyed(document: object, segments: Sequence[str | int]) -> list[str | tuple[str, object]]:
    """A path by positions as one by merge keys; it ends at a list that has none, which only one layer can have set."""
    path: list[str | tuple[str, object]] = []
    for segment in segments:
        if isinstance(segment, str):
            path.append(segment)
            continue
        key = MERGE_KEYS.get(path[-1]) if path and isinstance(path[-1], str) else None
        items = find(document, path)
        if key is None or not isinstance(items, list) or not isinstance(items[segment], dict):
            break
        path.append((key, items[segment].get(key)))
    return path


def source_of(layers: Sequence[Layer], path: Keyed) -> str:
    """The last layer that has something at ``path``."""
    return next((layer.source for layer in reversed(layers) if find(layer.spec, path) is not None), "")


_WORKLOAD_FIELDS = {"template": POD, "worker": POD}
_PICKER_CONFIG = ("router", "scheduler", "config")
_CONFIG = MergeRules(atomic=frozenset({"inline"}), one_of=frozenset({"inline", "ref"}))
"""A config that is written wins over a reference of a base, and the other way round."""
SERVICE = MergeRules(
    fields={
        **_WORKLOAD_FIELDS,
        "prefill": MergeRules(fields=_WORKLOAD_FIELDS),
        "router": MergeRules(fields={"scheduler": MergeRules(fields={"template": POD, "config": _CONFIG})}),
    }
)


def document(spec: Json) -> Json:
    """A spec of either kind, as its user wrote it, in the form that merging understands."""
    result: Json = without_nulls(known_fields(spec, LLMInferenceServiceSpec))
    config = find(spec, _PICKER_CONFIG)
    if isinstance(config, dict):  # inline is the picker's own: its nulls may mean something
        result = replaced(result, _PICKER_CONFIG, {key: value for key, value in config.items() if value is not None})
    for path, normalise in _PARTS.items():
        if isinstance(part := find(result, path), dict):
            result = replaced(result, path, normalise(part))
    return result


def _without_empty(*keys: str) -> Callable[[Json], Json]:
    """Empty values of these fields count as absent."""
    return lambda part: {key: value for key, value in part.items() if value or key not in keys}


def _without_empty_lists(value: Json) -> Json:
    return {key: item for key, item in value.items() if item != []}


def _scheduler(scheduler: Json) -> Json:
    """The tokenizer has no effect."""
    return {key: value for key, value in scheduler.items() if key != "tokenizer"}


def _route(spec: Json) -> Json:
    """Return a route with what the API server adds: Metacontroller replaces lists as a whole, so they are complete."""
    spec = _without_empty_lists(spec)
    if spec.get("rules") == DEFAULT_RULES:
        del spec["rules"]
    return {key: value for key, value in with_defaults(spec, HTTPRouteSpec).items() if key in spec}


def pool_spec(spec: Json) -> Json:
    """Return a pool's spec with the API server's defaults of a reference; a selector without labels is dropped."""
    result = {key: spec[key] for key in ("selector", "targetPorts", "appProtocol") if spec.get(key)}
    picker = spec.get("endpointPickerRef")
    if isinstance(picker, dict):
        result["endpointPickerRef"] = with_defaults(picker, EndpointPickerReference)
    return result


_PARTS: Mapping[tuple[str, ...], Callable[[Json], Json]] = {
    ("model",): _without_empty("name", "uri"),
    ("tracing",): _without_empty("sampler", "samplerArg", "exporter"),  # an empty endpoint turns a preset's off
    ("parallelism",): _without_empty("expert"),
    ("prefill", "parallelism"): _without_empty("expert"),
    **dict.fromkeys((*MODEL_SERVERS, ("router", "scheduler", "template")), normalised),
    ("router", "gateway"): _without_empty_lists,
    ("router", "ingress"): _without_empty_lists,
    ("router", "route", "http"): _without_empty_lists,
    ROUTE: _route,
    ("router", "scheduler"): _scheduler,
    ("router", "scheduler", "pool", "spec"): pool_spec,
}
