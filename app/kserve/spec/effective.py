"""The effective spec: presets, then baseRefs, then the user's own spec, rendered as templates. Source: KS-2."""

from collections.abc import Iterable, Sequence
from typing import cast

import msgspec
import orjson
from msgspec.structs import replace
from pydantic import Field, ValidationError

from app.hooks import sendable
from app.kserve.constants import MODEL_SERVERS, PIN_PREFIX
from app.kserve.devices import with_claims
from app.kserve.kvcache import with_tiers
from app.kserve.llminferenceservice import types
from app.kserve.llminferenceservice.observed import ReconcileContext
from app.kserve.llminferenceservice.types import AppliedConfig, ConfigSource
from app.kserve.llminferenceserviceconfig.types import ConfigModelSpec
from app.kserve.names import workload_selector
from app.kserve.spec import presets, route
from app.kserve.spec.find import choose_presets, find_config, layer, pins_of, with_scheduler_config
from app.kserve.spec.merge import SERVICE, CombineError, Keyed, Layer, MissingConfigError, keyed, source_of
from app.kserve.spec.parallelism import with_parallelism
from app.kserve.spec.presets.edition import ROUTE
from app.kserve.spec.render import rendered
from app.kserve.spec.template.data import ServiceData
from app.kserve.spec.tracing import traced
from app.kserve.words import with_words
from app.kube import field
from app.kube.base import Json, with_types
from app.kube.merge import find, merge, replaced
from app.kube.reading.decode import decode_document
from app.limits import MAX_COMBINED_BYTES

DIRECTIVE = b'"$patch"'
"""Only a spec with this in it can have merge directives."""
_PODS = (*MODEL_SERVERS, ("router", "scheduler", "template"))


class EffectiveModel(ConfigModelSpec):
    criticality: str | None = Field(None, description="Of v1alpha1; v1alpha2 has it in an annotation.")


@with_types({"router.route.http.spec": Json | None, "router.scheduler.pool.spec": Json | None})
class EffectiveSpec(types.LLMInferenceServiceSpec):
    """A merged and rendered spec. What goes into children is plain JSON."""

    model: EffectiveModel = Field(EffectiveModel.model_construct(), description="Which model is served.")

    @property
    def route_spec(self) -> Json | None:
        return cast("Json | None", self.http.spec if self.http is not None else None)

    @property
    def pool_spec(self) -> Json | None:
        """Content of the managed InferencePool, in the form of its v1."""
        return cast("Json | None", self.pool.spec if self.pool is not None else None)

    @property
    def made_scheduler(self) -> types.SchedulerSpec | None:
        """The scheduler, if there is an endpoint picker to make for it."""
        is_made = self.scheduler is not None and self.scheduler.template is not None and not self.pool_ref
        return self.scheduler if is_made else None


class Merged(msgspec.Struct, frozen=True):
    """The layers of a spec, and what they make together before templates are rendered."""

    layers: tuple[Layer, ...]
    """In merge order, the user's own last: the last one that has a value wins."""
    document: Json
    data: ServiceData
    applied: tuple[AppliedConfig, ...]
    """``status.appliedConfigs``."""
    pipelines: set[str]
    """The workloads whose pods a preset starts as a pipeline."""


class Effective(msgspec.Struct, frozen=True):
    """The effective spec with what it was made of."""

    spec: EffectiveSpec
    document: Json
    """The same as plain JSON."""
    merged: Merged
    templated: bool
    """True if strings were rendered that are not from a preset."""
    untraced: Json
    """The document before ``tracing`` added to its pods."""

    def source(self, path: Keyed) -> str:
        """The layer that set the value at ``path`` (:func:`app.kube.merge.find`); empty when none did."""
        return source_of(self.merged.layers, path)

    def is_users(self, path: field.Path) -> bool:
        """Report whether a layer other than a preset sets a part of ``path``, which has no positions."""
        names = [str(segment) for segment in path.segments[1:]]
        return any(layer.raw and find(layer.spec, names) is not None for layer in self.merged.layers)

    def sources(self, paths: Iterable[field.Path | None]) -> list[str]:
        """The layers that have something at each path, or at what it is a part of; each layer once."""
        sources_: dict[str, None] = {}
        for path in paths:
            where = keyed(self.document, path.segments[1:]) if path is not None else []
            while where and not self.source(where):
                where.pop()
            sources_[self.source(where) if where else ""] = None
        return [source for source in sources_ if source]


def _merged(context: ReconcileContext) -> Merged:
    """Merge presets, baseRefs and the user's spec. Raises :class:`CombineError`."""
    service_layer = layer("spec", orjson.loads(context.raw_spec), context.raw_spec, context.metadata)
    bases = _bases(context, service_layer)
    named = _named(service_layer, bases, context.metadata.name)
    everything = [named.spec, *(base.spec for base in bases)]
    chosen = {suffix: _preset(context, suffix) for suffix in choose_presets(everything)}
    layers = (*chosen.values(), *bases, named)
    merged: Json = {}
    for part in layers:
        merged = merge(merged, part.spec, SERVICE, directives=DIRECTIVE in part.raw)
    merged = _completed(merged, context.metadata.name)
    data = ServiceData(context.metadata, merged, context.operator, encrypts=context.encrypts)
    applied = [AppliedConfig(preset.name, ConfigSource.PRESET, preset.namespace) for preset in chosen.values()]
    applied += [AppliedConfig(base.name, ConfigSource.USER_REF, base.namespace) for base in bases]
    return Merged(layers, merged, data, tuple(applied), presets.pipelines(chosen))


def combine(context: ReconcileContext) -> Effective:
    """Build the effective spec (KS-2.1). Raises :class:`CombineError`."""
    merged = _merged(context)
    names, claims_devices = context.names, context.device_request is not None
    document, templated = rendered(merged.document, merged.layers, merged.data)
    document = with_words(document)
    document = route.routed(document, merged.layers[-1].spec, context)
    document = route.routed_by_model(document, merged.layers[-1].spec, context)
    document = route.routable(document, merged.layers[-1].spec, context)
    document = route.unnamed(document, merged.layers[-1].spec)
    if (managed := find(document, route.ROUTE)) is not None:
        document = replaced(document, route.ROUTE, route.replaced_as_a_whole(managed))
    document = with_scheduler_config(document, context)
    untraced = document if context.encrypts else _without_certificates(document, names.certificates)
    untraced = with_tiers(with_parallelism(untraced, merged.pipelines, adds_gpus=not claims_devices))
    if claims_devices:
        untraced = with_claims(untraced, context.metadata, names)
    document = traced(untraced, context.metadata)
    return Effective(_typed(document), document, merged, templated, untraced)


def _bases(context: ReconcileContext, service_layer: Layer) -> list[Layer]:
    """The configs that the service names; looking for more ends where they are too much together."""
    bases, size = [], len(service_layer.raw)
    for name in (str(ref.get("name") or "") for ref in service_layer.spec.get("baseRefs") or ()):
        bases.append(_config(context, name))
        size += len(bases[-1].raw)
        if size > MAX_COMBINED_BYTES:
            raise CombineError(
                f"spec.baseRefs: the spec and the configs up to {field.render(name)} have more than "
                f"{MAX_COMBINED_BYTES} bytes together; refer to fewer or smaller ones"
            )
    return bases


def _config(context: ReconcileContext, name: str) -> Layer:
    config = find_config(context, name) if name else None
    if config is None:
        where = f"{context.metadata.namespace} nor in {context.operator.system_namespace}"
        raise MissingConfigError(
            f"LLMInferenceServiceConfig {name!r} is neither in namespace {where}" if name else "a baseRef has no name"
        )
    return config


def _preset(context: ReconcileContext, suffix: str) -> Layer:
    """A preset under the name that was pinned; the route's always under its present one."""
    name = present = context.settings.kserve_config_prefix + suffix
    if suffix in presets.PINNED and suffix != ROUTE:
        name = pins_of(context.service, context.settings).get(PIN_PREFIX + suffix) or name
    preset = find_config(context, name)
    if preset is None:
        pin = f", which status.annotations[{PIN_PREFIX}{suffix}] keeps," if name != present else ""
        where = f"{context.metadata.namespace} nor in {context.operator.system_namespace}"
        raise MissingConfigError(f"preset {name}{pin} is neither in namespace {where}")
    return preset


def _named(service_layer: Layer, bases: Sequence[Layer], service: str) -> Layer:
    """The user's layer with a model name: the last baseRef's that has one, else the user's, else the service's."""
    model = service_layer.spec.get("model") or {}
    named = [name for base in bases if (name := (base.spec.get("model") or {}).get("name"))]
    name = named[-1] if named else model.get("name") or service
    if model.get("name") == name:
        return service_layer
    return replace(service_layer, spec={**service_layer.spec, "model": {**model, "name": name}})


def _completed(merged: Json, service: str) -> Json:
    """A pool without a selector selects the service's own pods (KS-2.1 step 6)."""
    path = ("router", "scheduler", "pool", "spec")
    if find(merged, path) is None or find(merged, (*path, "selector", "matchLabels")):
        return merged
    return replaced(merged, (*path, "selector"), {"matchLabels": workload_selector(service)})


def _without_certificates(document: Json, secret: str) -> Json:
    """Pods that start without the certificates that KServe's own operator would make (KS-9.3)."""
    for path in _PODS:
        if volumes := find(document, (*path, "volumes")):
            document = replaced(document, (*path, "volumes"), [_optional(volume, secret) for volume in volumes])
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
    errors = []
    for value, path in (*spec.templates(), (spec.route_spec, field.SPEC.child(*route.ROUTE))):
        if value is not None and not sendable.is_sendable(value):
            errors += sendable.check(value, path)
    if errors:
        raise CombineError(*map(str, errors))
    return spec
