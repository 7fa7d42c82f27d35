"""The managed HTTPRoute, and services that share requests by ``group`` and ``weight``. Source: KS-4.6 and KS-4.10.

Its spec is the user's, or the one of the router's preset (``spec/presets/``).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from app.kserve import constants, gatewayapi, results
from app.kserve.llminferenceservice.observed import ObservedRoute, Peer, is_stopped
from app.kserve.llminferenceservice.types import LLMCondition, LLMReason, MemberBackend, RouterGroup, RouterMember
from app.kserve.names import Names, component_labels
from app.kserve.spec.route import replaced_as_a_whole, with_backends
from app.kube.base import Json
from app.kube.child import metadata
from app.kube.conditions import find, is_true
from app.limits import MAX_CAUSE_CHARACTERS
from app.workload.readiness.cause import bounded

_MIGRATED = "v1"


def http_route(names: Names, namespace: str, spec: Json, group: str | None) -> Json:
    """Build the route; ``group``: API group of the managed pool (:func:`pool_group`), ``None`` without one."""
    migrated = {constants.POOL_MIGRATED: _MIGRATED} if group == constants.POOL_GROUP else None
    labels = component_labels(names.service, constants.COMPONENT_ROUTER)
    if group is not None:
        spec = with_backends(spec, names.pool, {"group": group})
    return constants.ROUTES.build(metadata(names.route, namespace, labels, migrated), spec=spec)


def pool_group(observed: ObservedRoute | None) -> str:
    """The API group by which the route refers to the managed pool.

    This is the present group, which the annotation then records. Only a route taken over from another operator that
    still has the former group keeps it, with that operator's pool, until its gateway refuses it, or supports the
    present one.
    """
    rules = observed.spec.rules if observed is not None else None
    backends = [backend for rule in rules or () for backend in rule.backend_refs or ()]
    groups = {backend.group for backend in backends if backend.kind == "InferencePool"}
    if observed is None or constants.POOL_GROUP_ALPHA not in groups:
        return constants.POOL_GROUP
    supported = _is_supported(observed)
    is_migrated = observed.annotations.get(constants.POOL_MIGRATED) == _MIGRATED
    if is_migrated or supported is False or (constants.POOL_GROUP in groups and supported):
        return constants.POOL_GROUP
    return constants.POOL_GROUP_ALPHA


def _is_supported(route: ObservedRoute) -> bool | None:
    """Return whether the first gateway supports the kind of the route's backends; None until it reports."""
    parents = route.status.parents or []
    resolved = find(parents[0].conditions, "ResolvedRefs") if parents else None
    if resolved is None:
        return None
    return not (resolved.status == "False" and resolved.reason == "InvalidKind")


class Group(NamedTuple):
    """The services that share requests, and ``GroupDegraded`` if others of the group serve other models."""

    part: RouterGroup
    degraded: results.ConditionState | None


def group_of(
    service: RouterMember, group: str, models: frozenset[str], peers: Iterable[Peer], observed: ObservedRoute | None
) -> Group:
    """Return the group of a service that serves ``models``.

    A peer joins when its workloads and its router are ready, and stays while either is: a rollout makes the former
    false for a while, a change of its route the latter. A stopped peer stays with weight 0, and without requests.
    """
    rules = observed.spec.rules if observed is not None else None
    present = {backend.name for rule in rules or () for backend in rule.backend_refs or ()}
    members, divergent = [service], []
    for peer in peers:
        name, route = peer.metadata.name, peer.spec.router.route
        if name == service.name or route.group != group or peer.metadata.deletion_timestamp:
            continue
        scheduler = peer.spec.router.scheduler
        backend = member_backend(Names(name), None if scheduler is None else scheduler.pool.ref.name)
        conditions, stopped = peer.status.conditions, is_stopped(peer.metadata)
        holds = [is_true(conditions, type_) for type_ in (LLMCondition.WORKLOADS_READY, LLMCondition.ROUTER_READY)]
        if peer.models != models:
            divergent.append(name)
        elif stopped or all(holds) or (any(holds) and backend.name in present):
            members.append(RouterMember(name, 0 if stopped else route.weight or 0, stopped, backend))
    return Group(RouterGroup(group, sorted(members, key=lambda member: member.name)), _degraded(members, divergent))


def _degraded(members: Iterable[RouterMember], divergent: Iterable[str]) -> results.ConditionState | None:
    if not has_weight(members):
        message = "no member has a weight above 0, so gateways answer requests to the group with an error; set one"
        return results.ConditionState(True, LLMReason.NO_WEIGHT, message)
    names = bounded(", ".join(sorted(divergent)), MAX_CAUSE_CHARACTERS)
    message = f"{names}: other models are served there, so no requests are sent to it"
    return results.ConditionState(True, LLMReason.MEMBER_DIVERGENCE, message) if names else None


def has_weight(members: Iterable[RouterMember]) -> bool:
    return any(member.weight for member in members)


def member_backend(names: Names, pool: str | None) -> MemberBackend:
    """Return the pool of a service, empty for the managed one, or the Service of one without a scheduler."""
    if pool is None:
        return MemberBackend(names.workload_service, "Service", port=constants.PUBLIC_PORT)
    return MemberBackend(pool or names.pool, "InferencePool", constants.POOL_GROUP, constants.PUBLIC_PORT)


def shared(route: Json, prefix: str, own: Sequence[str], members: Sequence[RouterMember]) -> Json:
    """Return the route whose rules send requests to all members; ``own``: names of the service's own backends.

    Members are reached by their pools, also where a rule has the workload Service. Rules below ``prefix``, the
    service's own path, are for it alone. A stopped member has neither pool nor Service, and gateways would report that.
    """
    members = [member for member in members if not member.stopped]
    rules = [_shared_rule(rule, prefix, own, members) for rule in route.get("rules") or ()]
    return replaced_as_a_whole({**route, "rules": rules}) if rules else route


def unshared(route: Json, prefix: str, own: Sequence[str]) -> Json:
    """Return the route with the rules alone that no group divides."""
    return {**route, "rules": [rule for rule in route.get("rules") or () if _divided(rule, prefix, own) is None]}


def _divided(rule: Json, prefix: str, own: Sequence[str]) -> Json | None:
    """Return the backend of a rule in whose place all members are, ``None`` if the rule is the service's alone."""
    paths = [str((match.get("path") or gatewayapi.ROOT_PATH).get("value")) for match in rule.get("matches") or ()]
    if any(path == prefix or path.startswith(f"{prefix}/") for path in paths):
        return None
    return next((backend for backend in rule.get("backendRefs") or () if backend.get("name") in own), None)


def _shared_rule(rule: Json, prefix: str, own: Sequence[str], members: Sequence[RouterMember]) -> Json:
    backends, mine = rule.get("backendRefs") or [], _divided(rule, prefix, own)
    if mine is None:
        return rule
    port = mine.get("port", constants.PUBLIC_PORT)
    spread = [
        {**msgspec.structs.asdict(member.backend_ref), "port": port, "weight": member.weight}
        for member in members
        if member.backend_ref is not None
    ]
    return {**rule, "backendRefs": [*spread, *(b for b in backends if b.get("name") not in own)]}
