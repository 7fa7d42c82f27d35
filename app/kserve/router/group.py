"""Services that share requests: ``router.route.group`` and ``weight``. Source: KS-4.10."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.kserve.constants import POOL_GROUP, PUBLIC_PORT
from app.kserve.gatewayapi import ROOT_PATH
from app.kserve.llminferenceservice.observed import ObservedRoute, Peer, is_stopped
from app.kserve.llminferenceservice.types import LLMCondition, LLMReason
from app.kserve.names import Names
from app.kserve.results import ConditionState
from app.kserve.spec.complete import replaced_as_a_whole
from app.kube.base import Json
from app.kube.conditions import is_true


@dataclass(frozen=True, slots=True)
class Member:
    """A service of the group that gets a part of the requests."""

    name: str
    weight: int
    backend: Json
    """Its pool or its Service, as a route refers to it."""
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """The services of one group, as one of them sees it."""

    name: str
    members: Sequence[Member]
    """By name, that one included."""
    divergent: Sequence[str]
    """Names of those that serve other models, and so get none of its requests."""

    @property
    def degraded(self) -> ConditionState | None:
        """``GroupDegraded``; ``None`` if all services of the group serve the same models."""
        if not self.divergent:
            return None
        names = ", ".join(self.divergent)
        message = f"{names}: other models are served there, so no requests are sent to it"
        return ConditionState(True, LLMReason.MEMBER_DIVERGENCE, message)


def group_of(
    service: Member, group: str, models: frozenset[str], peers: Iterable[Peer], observed: ObservedRoute | None
) -> Group:
    """Return the group of a service that serves ``models``.

    A peer joins when its workloads and its router are ready, and stays while either is: a rollout makes the former
    false for a while, a change of its route the latter. A stopped peer stays with weight 0.
    """
    rules = observed.spec.rules if observed is not None else None
    present = {backend.name for rule in rules or () for backend in rule.backend_refs or ()}
    members, divergent = [service], []
    for peer in peers:
        name, route = peer.metadata.name, peer.spec.router.route
        if name == service.name or route.group != group or peer.metadata.deletion_timestamp:
            continue
        backend = _backend(peer)
        conditions, stopped = peer.status.conditions, is_stopped(peer.metadata)
        holds = [is_true(conditions, type_) for type_ in (LLMCondition.WORKLOADS_READY, LLMCondition.ROUTER_READY)]
        if peer.models != models:
            divergent.append(name)
        elif stopped or all(holds) or (any(holds) and backend["name"] in present):
            members.append(Member(name, 0 if stopped else route.weight or 0, backend, stopped))
    return Group(group, sorted(members, key=lambda member: member.name), sorted(divergent))


def pool_backend(name: str) -> Json:
    return {"group": POOL_GROUP, "kind": "InferencePool", "name": name}


def service_backend(name: str) -> Json:
    return {"group": "", "kind": "Service", "name": name}


def _backend(peer: Peer) -> Json:
    names, scheduler = Names(peer.metadata.name), peer.spec.router.scheduler
    if scheduler is None:
        return service_backend(names.workload_service)
    return pool_backend(scheduler.pool.ref.name or names.pool)


def shared(route: Json, prefix: str, prefixes: Sequence[str], members: Sequence[Member]) -> Json:
    """Return the route whose rules send requests to all members; ``own``: names of the service's own backends.

    Members are reached by their pools, also where a rule has the workload Service. Rules below ``prefix``, the
    service's own path, are for it alone.
    """
    rules = [_shared_rule(rule, prefix, prefixes, members) for rule in route.get("rules") or ()]
    return replaced_as_a_whole({**route, "rules": rules}) if rules else route


def _shared_rule(rule: Json, prefix: str, prefixes: Sequence[str], members: Sequence[Member]) -> Json:
    backends = rule.get("backendRefs") or []
    mine = next((backend for backend in backends if backend.get("name") in prefixes), None)
    paths = [str((match.get("path") or ROOT_PATH).get("value")) for match in rule.get("matches") or ()]
    if mine is None or any(path == prefix or path.startswith(f"{prefix}/") for path in paths):
        return rule
    port = mine.get("port", PUBLIC_PORT)
    spread = [{**member.backend, "port": port, "weight": member.weight} for member in members]
    return {**rule, "backendRefs": [*spread, *(b for b in backends if b.get("name") not in prefixes)]}
