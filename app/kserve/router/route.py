"""The managed HTTPRoute. Source: KS-4.6."""

from app.kserve.child import child, metadata
from app.kserve.constants import COMPONENT_ROUTER, GATEWAY_API, POOL_GROUP, POOL_GROUP_ALPHA, POOL_MIGRATED
from app.kserve.llminferenceservice.observed import ObservedRoute
from app.kserve.names import Names, component_labels
from app.kserve.spec.complete import with_backends
from app.kube.base import Json
from app.kube.conditions import find

_MIGRATED = "v1"


def http_route(names: Names, namespace: str, spec: Json, group: str | None) -> Json:
    """The route as effective ``router.route.http.spec`` has it.

    ``group``: API group of the managed pool (:func:`pool_group`), ``None`` where the route has no managed pool.
    """
    migrated = {POOL_MIGRATED: _MIGRATED} if group == POOL_GROUP else None
    labels = component_labels(names.service, COMPONENT_ROUTER)
    if group is not None:
        spec = with_backends(spec, names.pool, {"group": group})
    return child(GATEWAY_API, "HTTPRoute", metadata(names.route, namespace, labels, migrated), spec=spec)


def pool_group(observed: ObservedRoute | None) -> str:
    """The API group by which the route refers to the managed pool.

    This is the present group, which the annotation then records. Only a route taken over from another operator that
    still has the former group keeps it, with that operator's pool, until its gateway refuses it, or supports the
    present one.
    """
    rules = observed.spec.rules if observed is not None else None
    backends = [backend for rule in rules or () for backend in rule.backend_refs or ()]
    groups = {backend.group for backend in backends if backend.kind == "InferencePool"}
    if observed is None or POOL_GROUP_ALPHA not in groups or observed.annotations.get(POOL_MIGRATED) == _MIGRATED:
        return POOL_GROUP
    supported = _is_supported(observed)
    return POOL_GROUP if supported is False or (POOL_GROUP in groups and supported) else POOL_GROUP_ALPHA


def _is_supported(route: ObservedRoute) -> bool | None:
    """Return whether the first gateway supports the kind of the route's backends; None until it reports."""
    parents = route.status.parents or []
    resolved = find(parents[0].conditions, "ResolvedRefs") if parents else None
    if resolved is None:
        return None
    return not (resolved.status == "False" and resolved.reason == "InvalidKind")
