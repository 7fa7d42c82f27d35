"""The effective spec: presets, then baseRefs, then the user's own spec, rendered as templates. Source: kserve spec 2.

:func:`combine` is the whole pipeline of 2.1. What it returns also says which layer set a value (:meth:`Effective.source`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field, ValidationError

from app.kserve import presets
from app.kserve.document import SERVICE
from app.kserve.llminferenceservice import types
from app.kserve.llminferenceserviceconfig.types import ConfigModelSpec
from app.kserve.names import GATEWAY_GROUP, PIN_PREFIX, Names, workload_selector
from app.kserve.operator import OperatorConfig
from app.kserve.template import OPEN, Template, TemplateError
from app.kserve.templatedata import ServiceData
from app.kube import field
from app.kube.base import Json
from app.kube.decode import SPEC, decode_document
from app.kube.merge import find, merge
from app.kube.objects import ObjectMeta
from app.kube.podspec import MERGE_KEYS
from app.workload.sendable import check as sendable
from app.workload.sendable import is_sendable


class CombineError(Exception):
    """The effective spec cannot be computed; ``reasons`` are sentences for people."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))


# The typed result.


class EffectivePool(types.PoolSpec):
    spec: Json | None = Field(None, description="Content of the managed pool, in the form of InferencePool v1.")  # type: ignore[assignment]


class EffectiveScheduler(types.SchedulerSpec):
    pool: EffectivePool | None = Field(None, description="The pool.")
    config: Json | None = Field(None, description="The configuration: inline, as JSON or as the text of a ConfigMap.")  # type: ignore[assignment]


class EffectiveHTTP(types.HTTPRouteConfig):
    spec: Json | None = Field(None, description="Content of the managed HTTPRoute.")  # type: ignore[assignment]


class EffectiveRoute(types.RouteSpec):
    http: EffectiveHTTP | None = Field(None, description="The HTTPRoute.")


class EffectiveRouter(types.RouterSpec):
    route: EffectiveRoute | None = Field(None, description="HTTP routing.")
    scheduler: EffectiveScheduler | None = Field(None, description="The endpoint picker.")


class EffectiveSpec(types.LLMInferenceServiceSpec):
    """A merged and rendered spec. What goes into children is plain JSON."""

    model: ConfigModelSpec | None = Field(None, description="Which model is served.")
    router: EffectiveRouter | None = Field(None, description="How requests reach the model.")


@dataclass(frozen=True, slots=True)
class Layer:
    """One spec that takes part in the merge, and what it is called in messages."""

    source: str
    spec: Json
    directives: bool = False
    """Whether ``$patch`` stands in it."""


@dataclass(frozen=True, slots=True)
class Effective:
    """The effective spec with what it was made of."""

    spec: EffectiveSpec
    document: Json
    """The same as plain JSON."""
    layers: tuple[Layer, ...]
    """In merge order: the last one that has a value wins."""

    def source(self, path: Sequence[str | tuple[str, Any]]) -> str:
        """The layer that set the value at ``path`` (:func:`app.kube.merge.find`); empty when none did."""
        return source_of(self.layers, path)


def source_of(layers: Sequence[Layer], path: Sequence[str | tuple[str, Any]]) -> str:
    """The last layer that has something at ``path``."""
    return next((layer.source for layer in reversed(layers) if find(layer.spec, path) is not None), "")


FindConfig = Callable[[str], Layer | None]
"""Looks a config up by name: the service's namespace, the system namespace, the built-in presets (2.2)."""
FindSchedulerConfig = Callable[[str, str], str]
"""Text of a key of a ConfigMap (2.5). Raises :class:`CombineError`."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What one service's effective spec depends on."""

    metadata: ObjectMeta
    own: Layer
    """The user's spec as a document (:func:`app.kserve.document.document`)."""
    pins: Mapping[str, str]
    """``status.annotations`` as :func:`pinned` made them."""
    prefix: str
    """What preset names begin with."""
    operator: OperatorConfig
    find_config: FindConfig
    find_scheduler_config: FindSchedulerConfig


def pinned(previous: Mapping[str, str], prefix: str) -> dict[str, str]:
    """``status.annotations``: the preset names that this service keeps, whatever a later release calls its own (2.3)."""
    pins = dict(previous)
    for suffix in presets.PINNED:
        if not pins.get(PIN_PREFIX + suffix):
            pins[PIN_PREFIX + suffix] = prefix + suffix
    return pins


def combine(inputs: Inputs) -> Effective:
    """The effective spec (2.1). Raises :class:`CombineError`."""
    names = [str(ref.get("name") or "") for ref in inputs.own.spec.get("baseRefs") or ()]
    bases = [_config(inputs, name) for name in names]
    own = _named(inputs, bases)
    everything = [own.spec, *(base.spec for base in bases)]
    chosen = [_preset(inputs, suffix) for suffix in choose_presets(everything)]
    layers = (*chosen, *bases, own)
    merged: Json = {}
    for layer in layers:
        merged = merge(merged, layer.spec, SERVICE, directives=layer.directives)
    merged = _completed(merged, inputs.metadata.name)
    document = _rendered(merged, layers, inputs)
    document = _routed(document, Names(inputs.metadata.name))
    document = _with_scheduler_config(document, inputs.find_scheduler_config)
    document = _without_certificates(document, Names(inputs.metadata.name).certificates)
    return Effective(_typed(document), document, layers)


def _config(inputs: Inputs, name: str) -> Layer:
    layer = inputs.find_config(name) if name else None
    if layer is None:
        where = f"{inputs.metadata.namespace} nor in {inputs.operator.system_namespace}"
        raise CombineError(
            f"LLMInferenceServiceConfig {name!r} is neither in namespace {where}" if name else "a baseRef has no name"
        )
    return layer


def _preset(inputs: Inputs, suffix: str) -> Layer:
    """A preset under the name that was pinned; the route's always under its present one."""
    name = inputs.prefix + suffix
    if suffix in presets.PINNED and suffix != presets.ROUTE:
        name = inputs.pins.get(PIN_PREFIX + suffix) or name
    layer = inputs.find_config(name)
    if layer is None:
        shipped = "" if suffix in presets.PRESETS else "; no such preset is shipped, make one or use baseRefs"
        raise CombineError(f"preset {name} does not exist{shipped}")
    return layer


def _named(inputs: Inputs, bases: Sequence[Layer]) -> Layer:
    """The user's layer with a model name: the last baseRef's that has one, else the user's, else the service's."""
    model = inputs.own.spec.get("model") or {}
    named = [name for base in bases if (name := (base.spec.get("model") or {}).get("name"))]
    name = named[-1] if named else model.get("name") or inputs.metadata.name
    if model.get("name") == name:
        return inputs.own
    return Layer(inputs.own.source, {**inputs.own.spec, "model": {**model, "name": name}}, inputs.own.directives)


def choose_presets(specs: Sequence[Json]) -> list[str]:
    """Suffixes of the presets that a service of these specs gets, in merge order (2.3)."""
    chosen = []
    if _any(specs, "router", "scheduler") is not None and not _any(specs, "router", "scheduler", "pool", "ref", "name"):
        chosen.append(presets.SCHEDULER)
    if _any(specs, "router", "route") is not None and not _any(specs, "router", "route", "http", "refs"):
        chosen.append(presets.ROUTE)
    worker = _any(specs, "worker") is not None
    if _any(specs, "prefill") is None:
        return chosen + _workload_preset(
            specs, worker, (presets.TEMPLATE, presets.WORKER_DATA_PARALLEL, presets.WORKER_PIPELINE_PARALLEL)
        )
    chosen += _workload_preset(
        specs,
        _any(specs, "prefill", "worker") is not None,
        (
            presets.PREFILL_TEMPLATE,
            presets.PREFILL_WORKER_DATA_PARALLEL,
            presets.PREFILL_WORKER_PIPELINE_PARALLEL,
        ),
        "prefill",
    )
    return chosen + _workload_preset(
        specs,
        worker,
        (presets.DECODE_TEMPLATE, presets.DECODE_WORKER_DATA_PARALLEL, presets.DECODE_WORKER_PIPELINE_PARALLEL),
    )


def _workload_preset(specs: Sequence[Json], worker: bool, suffixes: tuple[str, str, str], *base: str) -> list[str]:
    if not worker:
        return [suffixes[0]]
    if _any(specs, *base, "parallelism", "data") or _any(specs, *base, "parallelism", "dataLocal"):
        return [suffixes[1]]
    return [suffixes[2]] if _any(specs, *base, "parallelism", "pipeline") else []


def _any(specs: Sequence[Json], *path: str) -> Any:
    """What stands at ``path`` in any of the specs: a true value where there is one, else an empty one, else ``None``."""
    found = None
    for spec in specs:
        value = find(spec, path)
        if value is not None:
            found = value
            if value:
                break
    return found


def _completed(merged: Json, service: str) -> Json:
    """A pool without a selector selects the service's own pods (2.1 step 6)."""
    pool = find(merged, ("router", "scheduler", "pool", "spec"))
    if pool is None or find(pool, ("selector", "matchLabels")):
        return merged
    return _replaced(merged, ("router", "scheduler", "pool", "spec", "selector"), {"matchLabels": workload_selector(service)})


def _replaced(document: Json, path: Sequence[str], value: Any) -> Json:
    """``document`` with another value at ``path``; nothing is written in place."""
    first, *rest = path
    return {**document, first: _replaced(document.get(first) or {}, rest, value) if rest else value}


# Rendering.


class _BrokenTemplate(Exception):
    def __init__(self, error: TemplateError, text: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.text = text
        self.path: list[str | int] = []


def _rendered(merged: Json, layers: Sequence[Layer], inputs: Inputs) -> Json:
    data = ServiceData(inputs.metadata, merged, inputs.operator.system_namespace, inputs.operator.gateway)
    try:
        document = render(merged, data)
    except _BrokenTemplate as broken:
        raise CombineError(_where(broken, merged, layers)) from None
    return document


def render_error(spec: Json, data: ServiceData) -> str:
    """Why a spec does not render, with the place: ``spec.template.containers[0].args[1], line 2: …``; or an empty text."""
    try:
        render(spec, data)
    except _BrokenTemplate as broken:
        return _position(broken)
    return ""


def render(value: Json, data: ServiceData) -> Json:
    """``value`` with every string in it rendered; parts without templates are shared, not copied."""
    changed: Json | None = None
    for key, item in value.items():
        kind = type(item)
        if (kind is str and OPEN not in item and OPEN not in key) or kind in _SCALARS or id(item) in presets.PLAIN:
            continue
        try:
            done = _rendered_item(item, data)
            name = _render_text(key, data) if OPEN in key else key
        except _BrokenTemplate as broken:
            broken.path.append(key)
            raise
        if done is not item or name is not key:
            if changed is None:
                changed = dict(value)
            if name is not key:
                del changed[key]
            changed[name] = done
    return value if changed is None else changed


_SCALARS = frozenset({int, bool, float, type(None)})


def _rendered_item(item: Any, data: ServiceData) -> Any:
    kind = type(item)
    if kind is str:
        return _render_text(item, data) if OPEN in item else item
    if kind is dict:
        return render(item, data)
    return _render_list(item, data) if kind is list else item


def _render_list(items: list[Any], data: ServiceData) -> list[Any]:
    changed = None
    for position, item in enumerate(items):
        kind = type(item)
        if (kind is str and OPEN not in item) or id(item) in presets.PLAIN:
            continue
        try:
            done = _rendered_item(item, data)
        except _BrokenTemplate as broken:
            broken.path.append(position)
            raise
        if done is not item:
            changed = list(items) if changed is None else changed
            changed[position] = done
    return items if changed is None else changed


def _render_text(text: str, data: ServiceData) -> str:
    try:
        template = presets.TEMPLATES.get(text) or Template(text)
        return template.render(data)
    except TemplateError as error:
        raise _BrokenTemplate(error, text) from None


def _where(broken: _BrokenTemplate, merged: Json, layers: Sequence[Layer]) -> str:
    """``config demo/base: spec.template.containers[0].args[1], line 2: function x is not defined``."""
    keyed: list[str | tuple[str, Any]] = []
    for segment in reversed(broken.path):
        if isinstance(segment, str):
            keyed.append(segment)
            continue
        key = MERGE_KEYS.get(keyed[-1]) if isinstance(keyed[-1], str) else None
        items = find(merged, keyed)
        if key is None or not isinstance(items[segment], dict):
            break
        keyed.append((key, items[segment].get(key)))
    return f"{source_of(layers, keyed)}: {_position(broken)}"


def _position(broken: _BrokenTemplate) -> str:
    return f"{_full_path(broken.path)}, line {max(broken.error.line, 1)}: {broken.error}"


def _full_path(reversed_path: Sequence[str | int]) -> field.Path:
    path = SPEC
    for segment in reversed(reversed_path):
        path = path.index(segment) if isinstance(segment, int) else path.child(segment)
    return path


# After rendering.


def _routed(document: Json, names: Names) -> Json:
    """The managed route's parents and backends as the rest of the spec wants them (2.1 steps 9 to 11)."""
    route = find(document, ("router", "route", "http", "spec"))
    if route is None:
        return document
    refs = find(document, ("router", "gateway", "refs"))
    if refs:
        route = {**route, "parentRefs": [_parent(ref) for ref in refs]}
    if find(document, ("router", "scheduler")) is None:
        service = {"group": "", "kind": "Service", "name": names.workload_service}
        route = _with_backends(route, names.pool, service)
    elif pool := find(document, ("router", "scheduler", "pool", "ref", "name")):
        route = _with_backends(route, names.pool, {"name": pool})
    return _replaced(document, ("router", "route", "http", "spec"), route)


def _parent(ref: Json) -> Json:
    parent = {"group": GATEWAY_GROUP, "kind": "Gateway", "name": ref.get("name", "")}
    if ref.get("namespace"):
        parent["namespace"] = ref["namespace"]
    return parent


def _with_backends(route: Json, pool: str, replacement: Json) -> Json:
    """``route`` with other backends wherever it has the default pool."""

    def backend(ref: Json) -> Json:
        default = ref.get("kind") == "InferencePool" and ref.get("name") == pool
        return {**ref, **replacement} if default else ref

    rules = [
        {**rule, "backendRefs": [backend(ref) for ref in rule["backendRefs"]]} if rule.get("backendRefs") else rule
        for rule in route.get("rules") or ()
    ]
    return {**route, "rules": rules} if rules else route


def _with_scheduler_config(document: Json, find_config: FindSchedulerConfig) -> Json:
    """A config by reference becomes the text it refers to (2.5)."""
    config = find(document, ("router", "scheduler", "config"))
    ref = config.get("ref") if config else None
    if not ref:
        return document
    text = find_config(str(ref.get("name") or ""), str(ref.get("key") or "epp"))
    return _replaced(document, ("router", "scheduler", "config"), {"inline": text})


_PODS = (
    ("template",),
    ("worker",),
    ("prefill", "template"),
    ("prefill", "worker"),
    ("router", "scheduler", "template"),
)


def _without_certificates(document: Json, secret: str) -> Json:
    """Pods that start without the certificates that KServe's own operator would make (9.3)."""
    for path in _PODS:
        volumes = find(document, (*path, "volumes"))
        if volumes and any((volume.get("secret") or {}).get("secretName") == secret for volume in volumes):
            document = _replaced(document, (*path, "volumes"), [_optional(volume, secret) for volume in volumes])
    return document


def _optional(volume: Json, secret: str) -> Json:
    source = volume.get("secret")
    if not isinstance(source, dict) or source.get("secretName") != secret or "optional" in source:
        return volume
    return {**volume, "secret": {**source, "optional": True}}


def _typed(document: Json) -> EffectiveSpec:
    try:
        spec = EffectiveSpec.model_validate(document)
    except ValidationError:
        _, errors = decode_document(document, EffectiveSpec)
        raise CombineError(*map(str, errors)) from None
    errors = [error for path, value in _embedded(spec) if not is_sendable(value) for error in sendable(value, path)]
    if errors:
        raise CombineError(*map(str, errors))
    return spec


def _embedded(spec: EffectiveSpec) -> list[tuple[field.Path, Json]]:
    """Everything that goes into children as it is."""
    found = [(SPEC.child("template"), spec.template), (SPEC.child("worker"), spec.worker)]
    if spec.prefill is not None:
        path = SPEC.child("prefill")
        found += [(path.child("template"), spec.prefill.template), (path.child("worker"), spec.prefill.worker)]
    router, path = spec.router, SPEC.child("router")
    if router is not None and router.scheduler is not None:
        found.append((path.child("scheduler", "template"), router.scheduler.template))
    if router is not None and router.route is not None and router.route.http is not None:
        found.append((path.child("route", "http", "spec"), router.route.http.spec))
    return [(where, value) for where, value in found if value is not None]
