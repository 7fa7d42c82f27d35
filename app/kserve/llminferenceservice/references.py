"""Whether everything exists that the router refers to by name; nothing is made before. Source: kserve spec 4.2."""

from __future__ import annotations

from collections.abc import Iterable

from app.hooks.protocol import one
from app.kserve.llminferenceservice.conditions import GATEWAYS_READY, HTTP_ROUTES_READY, REFS_INVALID
from app.kserve.llminferenceservice.findings import Finding
from app.kserve.llminferenceservice.objects import ParentReference
from app.kserve.llminferenceservice.routerview import RouterError, RouterView


def check_references(view: RouterView, findings: dict[str, Finding | None]) -> None:
    """Clears each condition whose references exist. Raises :class:`RouterError` at the first kind that lacks some.

    Without the Gateway API there is nothing to look up; the conditions say so later.
    """
    if view.children.routes is None:
        return
    _require_gateways(view, view.gateway_refs, GATEWAYS_READY)
    findings[GATEWAYS_READY] = None
    missing = [name for name in view.route_refs if one(view.related.routes, name, view.namespace) is None]
    if missing:
        text = ", ".join(f"HTTPRoute {view.namespace}/{name}" for name in missing)
        raise RouterError(HTTP_ROUTES_READY, REFS_INVALID, f"{text} does not exist")
    findings[HTTP_ROUTES_READY] = None
    managed = view.managed_spec
    if managed is not None:
        _require_gateways(view, managed.parent_refs or (), HTTP_ROUTES_READY)
    for route in view.referenced_routes():
        if not route.spec.parent_refs:
            text = f"HTTPRoute {view.namespace}/{route.metadata.name} has no parentRefs, so no Gateway serves it"
            raise RouterError(HTTP_ROUTES_READY, REFS_INVALID, text)
        _require_gateways(view, route.spec.parent_refs, HTTP_ROUTES_READY)


def _require_gateways(view: RouterView, references: Iterable[ParentReference], condition: str) -> None:
    if view.related.gateways is None:  # not delivered: what exists is not known, and nothing may wait for it
        return
    missing = [reference for reference in references if view.gateway(reference) is None]
    if missing:
        raise RouterError(condition, REFS_INVALID, f"{view.gateway_text(missing)} does not exist")
