"""The managed HTTPRoute. Source: kserve spec 4.6."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from app.kserve.llminferenceservice.objects import BackendReference, ObservedRoute, RouteSpec
from app.kserve.names import (
    COMPONENT_ROUTER,
    GATEWAY_API,
    POOL_GROUP,
    POOL_GROUP_ALPHA,
    POOL_MIGRATED,
    Names,
    component_labels,
)
from app.kube.conditions import find
from app.kube.objects import annotations_of

Json = dict[str, Any]

_MIGRATED = "v1"


def http_route(names: Names, namespace: str, spec: Json, group: str | None) -> Json:
    """The route as effective ``router.route.http.spec`` has it.

    ``group``: API group of the managed pool (:func:`pool_group`), ``None`` where the route has no managed pool.
    """
    metadata: Json = {
        "name": names.route,
        "namespace": namespace,
        "labels": component_labels(names.service, COMPONENT_ROUTER),
    }
    if group == POOL_GROUP:
        metadata["annotations"] = {POOL_MIGRATED: _MIGRATED}
    if group is not None and "rules" in spec:
        spec = {**spec, "rules": [_with_group(rule, names.pool, group) for rule in spec["rules"]]}
    return {"apiVersion": GATEWAY_API, "kind": "HTTPRoute", "metadata": metadata, "spec": spec}


def _with_group(rule: Json, pool: str, group: str) -> Json:
    """The rule with its references to the managed pool in one API group."""
    if "backendRefs" not in rule:
        return rule
    return {
        **rule,
        "backendRefs": [
            {**backend, "group": group}
            if (backend.get("kind"), backend.get("name")) == ("InferencePool", pool)
            else backend
            for backend in rule["backendRefs"]
        ],
    }


def pool_group(observed: ObservedRoute | None) -> str:
    """The API group by which the route refers to the managed pool.

    A new route starts with the present group, and the annotation says so from then on. A route taken over from another
    operator keeps the group that its gateway was seen to work with: the former one, until the gateway refuses it.
    """
    if observed is None or annotations_of(observed).get(POOL_MIGRATED) == _MIGRATED:
        return POOL_GROUP
    groups = {backend.group for backend in _pools(observed)}
    supported = _is_supported(observed)
    if (POOL_GROUP in groups and supported is True) or (POOL_GROUP_ALPHA in groups and supported is False):
        return POOL_GROUP
    return POOL_GROUP_ALPHA


def _pools(route: ObservedRoute) -> Iterable[BackendReference]:
    for rule in route.spec.rules or ():
        yield from (backend for backend in rule.backend_refs or () if backend.kind == "InferencePool")


def _is_supported(route: ObservedRoute) -> bool | None:
    """Whether the first gateway knows the kind of the route's backends; ``None`` while it has not said."""
    parents = route.status.parents or []
    resolved = find(parents[0].conditions, "ResolvedRefs") if parents else None
    if resolved is None:
        return None
    return not (resolved.status == "False" and resolved.reason == "InvalidKind")


def as_observed(route: Json) -> RouteSpec:
    """A route of ours in the form in which observed ones are judged. Raises ``msgspec.ValidationError``."""
    return msgspec.convert(route["spec"], RouteSpec, strict=False)
