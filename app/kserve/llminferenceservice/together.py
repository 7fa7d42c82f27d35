"""Conflicts between the services of one set at their Gateways: warnings of the command line alone (KS-7.6)."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from app.kserve.llminferenceservice.checks import MODEL_NAME, WEIGHT
from app.kserve.llminferenceservice.observed import LLMService, is_stopped
from app.kube.field import Advice, advice
from app.limits import MAX_CAUSE_CHARACTERS
from app.workload.readiness.cause import bounded

Warned = tuple[LLMService, Advice]


def warnings(services: Sequence[LLMService]) -> Iterator[Warned]:
    """Warn of services that take each other's requests, and of groups whose requests reach no service."""
    running = [service for service in services if not is_stopped(service.metadata) and _has_managed_route(service)]
    yield from _namesakes([service for service in running if _has_preset_rules(service)])
    yield from _without_weight(running)


def _namesakes(services: Sequence[LLMService]) -> Iterator[Warned]:
    """Warn of services with one model's name on a Gateway, which sends all its requests to the oldest route."""
    for (namespace, model), same in _by(services, lambda s: (s.metadata.namespace, _model(s))).items():
        for service in same:
            if others := sorted(_name(other) for other in same if _is_rival(service, other)):
                message = (
                    f"publishers/{namespace}/models/{model} at the same Gateway is also {_listed(others)}, and the "
                    "oldest route gets all requests for it; give them different names, or one router.route.group"
                )
                yield service, advice(MODEL_NAME, message)


def _is_rival(service: LLMService, other: LLMService) -> bool:
    hosts, others = _hosts(service), _hosts(other)
    if service is other or not _gateways(service) & _gateways(other) or (hosts and others and not hosts & others):
        return False
    group = _group(service)
    return not group or group != _group(other)


def _without_weight(services: Sequence[LLMService]) -> Iterator[Warned]:
    """Warn of a group of services of which none has a weight above 0."""
    grouped = _by([s for s in services if _group(s)], lambda s: (s.metadata.namespace, _group(s)))
    for (_, group), members in grouped.items():
        if all(member.spec.route is not None and member.spec.route.weight == 0 for member in members):
            message = f"no service of group {group} that runs has a weight above 0, so nobody gets its requests"
            yield from ((member, advice(WEIGHT, message)) for member in members)


def _by(
    services: Sequence[LLMService], key: Callable[[LLMService], tuple[str, str]]
) -> Mapping[tuple[str, str], list[LLMService]]:
    groups: dict[tuple[str, str], list[LLMService]] = defaultdict(list)
    for service in services:
        groups[key(service)].append(service)
    return groups


def _has_managed_route(service: LLMService) -> bool:
    spec = service.spec
    return spec.route is not None and not (spec.http is not None and spec.http.refs)


def _has_preset_rules(service: LLMService) -> bool:
    """Report whether the built-in rules are used; a base may have others, and another name for the model."""
    http, based = service.spec.http, bool(service.spec.base_refs)
    return not based and (http is None or http.spec is None or not http.spec.rules)


def _listed(names: Sequence[str]) -> str:
    return bounded(", ".join(names), MAX_CAUSE_CHARACTERS)


def _name(service: LLMService) -> str:
    return service.metadata.name


def _model(service: LLMService) -> str:
    return (service.spec.model.name if service.spec.model is not None else None) or service.metadata.name


def _group(service: LLMService) -> str:
    return (service.spec.route.group if service.spec.route is not None else None) or ""


def _gateways(service: LLMService) -> set[tuple[str, str]]:
    """Namespaces and names; empty strings for the default Gateway."""
    router, http = service.spec.router, service.spec.http
    route = http.spec if http is not None else None
    refs = router.gateway.refs if router is not None and router.gateway is not None else None
    parents = refs or (route.parent_refs if route is not None else None) or ()
    return {(parent.namespace or service.metadata.namespace, parent.name or "") for parent in parents} or {("", "")}


def _hosts(service: LLMService) -> set[str]:
    http = service.spec.http
    return set((http.spec.hostnames if http is not None and http.spec is not None else None) or ())
