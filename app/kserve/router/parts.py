"""``status.router``: Gateways, endpoint picker and routing group of a service. Source: KS-6.5."""

from collections.abc import Iterator

from app.kserve.constants import GATEWAY_GROUP, POOL_GROUP, PUBLIC_PORT
from app.kserve.llminferenceservice import types
from app.kserve.llminferenceservice.observed import ObservedParentReference
from app.kserve.router.group import Member
from app.kserve.router.view import RouterView


def router_parts(view: RouterView) -> types.Router | None:
    """Build ``status.router``; ``None`` without a route that is attached to a Gateway."""
    attached: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    for route, parent in _parents(view):
        namespace = view.namespace if parent.namespace is None else parent.namespace
        listeners, routes = attached.setdefault((namespace, parent.name), ([], []))
        if parent.section_name and parent.section_name not in listeners:
            listeners.append(parent.section_name)
        if route not in routes:
            routes.append(route)
    if not attached:
        return None
    gateways = [
        types.RouterGateway(
            GATEWAY_GROUP,
            "Gateway",
            name,
            namespace,
            listeners=listeners,
            http_routes=[types.ObjectIdentity(GATEWAY_GROUP, "HTTPRoute", route, view.namespace) for route in routes],
        )
        for (namespace, name), (listeners, routes) in attached.items()
    ]
    return types.Router(gateways, _scheduler(view), _group(view))


def _parents(view: RouterView) -> Iterator[tuple[str, ObservedParentReference]]:
    """Yield each route of the service with each of its parents."""
    if view.children.routes is None:
        return
    if view.managed_spec is not None:
        yield from ((view.names.route, parent) for parent in view.managed_spec.parent_refs or ())
    for route in view.referenced_routes():
        yield from ((route.metadata.name, parent) for parent in route.spec.parent_refs or ())


def _scheduler(view: RouterView) -> types.RouterScheduler | None:
    if view.spec.scheduler is None:
        return None
    pool = types.ObjectIdentity(POOL_GROUP, "InferencePool", view.pool)
    return types.RouterScheduler(pool, types.ObjectIdentity("", "Service", view.picker_service))


def _group(view: RouterView) -> types.RouterGroup | None:
    if view.group is None:
        return None
    return types.RouterGroup(view.group.name, [_member(member) for member in view.group.members])


def _member(member: Member) -> types.RouterMember:
    backend = types.MemberBackend(**member.backend, port=PUBLIC_PORT)
    return types.RouterMember(member.name, member.weight, member.stopped, backend)
