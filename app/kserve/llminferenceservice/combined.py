"""Advice about a service together with its configs, where each value was written (KS-7.6).

The layers that users wrote are merged without the presets, and judged as if one user had written all of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from app.hooks.protocol import get, sorted_values
from app.hooks.reader import read_related
from app.kserve import results
from app.kserve.advice.kvevents import unheard_servers
from app.kserve.advice.picker import picker_of, unread_parameters
from app.kserve.constants import DEFAULT_CONFIG_KEY
from app.kserve.llminferenceservice.checks import warnings
from app.kserve.llminferenceservice.inputs import effective_spec
from app.kserve.llminferenceservice.merged import SCHEDULER
from app.kserve.llminferenceservice.observed import LLMService, ReconcileContext, Request, is_stopped, reconcile_context
from app.kserve.llminferenceservice.podview import presets_below
from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec
from app.kserve.llminferenceserviceconfig import checks as configs
from app.kserve.llminferenceserviceconfig.types import LLMInferenceServiceConfigSpec, LLMInferenceServiceConfigStatus
from app.kserve.operator import NO_TLS, OperatorConfigError
from app.kserve.references import references
from app.kserve.spec.effective import DIRECTIVE
from app.kserve.spec.find import find_scheduler_config
from app.kserve.spec.merge import SERVICE, CombineError, Keyed, Layer, MissingConfigMapError, keyed
from app.kserve.workload.plan import MissingAccountError, workload_plan
from app.kube.base import Json
from app.kube.field import SPEC, Advice, Owner, Path, advice
from app.kube.merge import find, merge
from app.kube.objects import ObservedMeta
from app.kube.reading.decode import decode_document
from app.kube.resource import Resource
from app.settings import Settings


def cross_object_warnings(service: LLMService, request: Request, settings: Settings) -> list[Advice]:
    """Warn of operator settings without effect, and of what ``PresetsCombined`` reports in a cluster."""
    if is_stopped(service.metadata):
        return []
    advices: list[Advice] = []
    places = (service.metadata.namespace, settings.kserve_system_namespace)
    named = references(service.spec.model_dump(by_alias=True, exclude_none=True)).configs
    try:
        context = reconcile_context(service, request, settings)
        if context.encrypts:
            text = f"pods wait for certificates in Secret {context.names.certificates}; cert-manager can write it"
            advices.append(advice(SPEC, text))
        elif context.operator.ingress.tls:
            advices.append(advice(SPEC, NO_TLS, "no-effect"))
        advices += _picker_advice(service, context)
        is_known = all(any(get(request.related.configs, name, place) is not None for place in places) for name in named)
        if not named and service.spec.scheduler is not None:
            advices += _divided_pools(service, context, ())
        if named and is_known:
            effective = effective_spec(context)
            advices += _combined_advice(service, effective.merged.layers)
            advices += _divided_pools(service, context, effective.merged.layers)
            workload_plan(effective.spec, context)
    except (MissingConfigMapError, MissingAccountError):
        pass
    except (OperatorConfigError, CombineError, results.PhaseError) as error:
        advices.append(advice(SPEC.child("baseRefs") if named else SPEC, str(error)))
    return advices


def _picker_advice(service: LLMService, context: ReconcileContext) -> Iterator[Advice]:
    """Warn of what the endpoint picker does not read of a configuration in a ConfigMap, where no config has a part."""
    scheduler = service.spec.scheduler
    reference = scheduler.config.ref if scheduler is not None and scheduler.config is not None else None
    if scheduler is None or reference is None or service.spec.base_refs:
        return
    text = find_scheduler_config(context, reference.name, reference.key or DEFAULT_CONFIG_KEY)
    presets = presets_below(service.spec)
    below = find(presets, ("router", "scheduler")) or {}
    yield from unread_parameters(text, picker_of(scheduler, below), SCHEDULER.child("config", "ref"))
    yield from unheard_servers(service.spec, presets, [text])


def _divided_pools(service: LLMService, context: ReconcileContext, layers: Sequence[Layer]) -> Iterator[Advice]:
    """Warn of a group whose gateway has to divide requests between endpoint pickers, which few gateways do."""
    group = service.spec.route.group if service.spec.route is not None else None
    running = [peer for peer in sorted_values(context.related.peers) if group and not is_stopped(peer.metadata)]
    members = {peer.metadata.name for peer in running if peer.spec.router.route.group == group}
    if context.children.routes is None or not members - {service.metadata.name}:
        return
    written = [layer for layer in layers if layer.raw and find(layer.spec, ("router", "scheduler")) is not None]
    if written or not layers:
        owner = _owner(service, written[-1]) if written else None
        yield Advice(advice(SCHEDULER, _DIVIDED.format(group=group)), SCHEDULER, "advice", owner)


_DIVIDED = (
    "of the gateways that were tried only Istio divides the requests of group {group} between InferencePools, and with "
    "a picker for each only in releases after 2026-09-21; without router.scheduler in its members all of them do"
)


def _combined_advice(service: LLMService, layers: Sequence[Layer]) -> Iterator[Advice]:
    """Warn of what only the layers of a service together show; the last layer is the service's."""
    written = [layer for layer in layers if layer.raw]
    document: Json = {}
    for layer in written:
        document = merge(document, layer.spec, SERVICE, directives=DIRECTIVE in layer.raw)
    document.pop("baseRefs", None)
    spec, errors = decode_document(document, LLMInferenceServiceSpec)
    if spec is None or errors:
        return
    reported = {_key(layer, item) for layer in written for item in _alone(service, layer)}
    for item in warnings(Resource(service.metadata, spec, service.status)):
        layer, path = _written(document, written, item.path)
        moved = Advice(advice(path, item.message), path, item.id, _owner(service, layer))
        if _key(layer, moved) not in reported:
            yield moved


def _owner(service: LLMService, layer: Layer) -> Owner:
    if layer.name:
        return "LLMInferenceServiceConfig", layer.namespace, layer.name
    return "LLMInferenceService", service.metadata.namespace, service.metadata.name


def _alone(service: LLMService, layer: Layer) -> Iterable[Advice]:
    """Return the advice that the object of a layer gets by itself, when it is stored."""
    if not layer.name:
        return warnings(service)
    reading = read_related(layer.raw, LLMInferenceServiceConfigSpec)
    if reading.spec is None:
        return ()
    metadata = ObservedMeta(name=layer.name, namespace=layer.namespace)
    return configs.warnings(Resource(metadata, reading.spec, LLMInferenceServiceConfigStatus()))


def _key(layer: Layer, item: Advice) -> tuple[str, str, str]:
    return layer.source, str(item.path), item.id


def _written(document: Json, layers: Sequence[Layer], path: Path) -> tuple[Layer, Path]:
    """Return the last layer that has a place of the merged document, or what the place is a part of, and its place."""
    segments = path.segments[1:]
    if path.segments[:1] != SPEC.segments:
        return layers[-1], path
    while segments:
        names = keyed(document, segments)
        for layer in reversed(layers):
            if find(layer.spec, names) is not None:
                return layer, _place(layer.spec, names, segments)
        segments = segments[:-1]
    return layers[-1], SPEC


def _place(spec: Json, names: Keyed, segments: Sequence[str | int]) -> Path:
    """Return the path by positions in a layer for one by merge keys, and what follows below it."""
    path, value = SPEC, cast("Any", spec)
    for name in names:
        if isinstance(name, str):
            path, value = path.member(name), value[name]
            continue
        position = next(place for place, item in enumerate(value) if item.get(name[0]) == name[1])
        path, value = path.index(position), value[position]
    for segment in segments[len(names) :]:
        path = path.member(segment) if isinstance(segment, str) else path.index(segment)
    return path
