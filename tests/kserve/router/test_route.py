"""The managed route and the API group of its pool (KS-4.6)."""

from __future__ import annotations

import json

import msgspec
import pytest

from app.kserve.constants import POOL_GROUP, POOL_GROUP_ALPHA
from app.kserve.llminferenceservice.observed import ObservedRoute
from app.kserve.names import Names
from app.kserve.router.route import http_route, pool_group
from app.kube.base import Json

NAMES = Names("demo")
MIGRATED = {"serving.kserve.io/inference-pool-migrated": "v1"}


def observed(
    group: str | None, resolved: tuple[str, str] | None = None, annotations: Json | None = None
) -> ObservedRoute:
    """Return a route with one pool of that group; ``resolved`` is status and reason of ``ResolvedRefs``."""
    backends = [{"kind": "InferencePool", "name": "demo-inference-pool", "group": group}] if group is not None else []
    conditions = [{"type": "ResolvedRefs", "status": resolved[0], "reason": resolved[1]}] if resolved else []
    document = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "demo-kserve-route", "annotations": annotations},
        "spec": {"rules": [{"backendRefs": backends}]},
        "status": {"parents": [{"conditions": conditions}] if resolved else []},
    }
    return msgspec.json.decode(json.dumps(document), type=ObservedRoute)


@pytest.mark.parametrize(
    ("route", "group"),
    [
        (None, POOL_GROUP),
        (observed(POOL_GROUP_ALPHA), POOL_GROUP_ALPHA),
        (observed(POOL_GROUP_ALPHA, ("True", "ResolvedRefs")), POOL_GROUP_ALPHA),
        (observed(POOL_GROUP_ALPHA, ("False", "BackendNotFound")), POOL_GROUP_ALPHA),
        (observed(POOL_GROUP_ALPHA, ("False", "InvalidKind")), POOL_GROUP),
        (observed(None), POOL_GROUP),
        (observed(POOL_GROUP), POOL_GROUP),
        (observed(POOL_GROUP, ("True", "ResolvedRefs")), POOL_GROUP),
        (observed(POOL_GROUP, ("False", "BackendNotFound")), POOL_GROUP),
        (observed(POOL_GROUP, ("False", "InvalidKind"), MIGRATED), POOL_GROUP),
        (observed(POOL_GROUP_ALPHA, ("True", "ResolvedRefs"), MIGRATED), POOL_GROUP),
    ],
)
def test_the_group_changes_once_and_never_back(route: ObservedRoute | None, group: str) -> None:
    """Routes use the managed pool's group; an adopted route keeps the older one until the Gateway rejects it."""
    assert pool_group(route) == group


def test_only_the_managed_pool_gets_the_group() -> None:
    """Backends of the user are unchanged; the annotation marks the route as migrated."""
    other = {"kind": "InferencePool", "name": "other", "group": "x"}
    pool = {"kind": "InferencePool", "name": "demo-inference-pool", "group": "whatever", "port": 8000}
    spec = {"rules": [{"backendRefs": [other, pool]}, {"matches": [{"path": {"value": "/"}}]}]}
    route = http_route(NAMES, "ns", spec, POOL_GROUP)
    assert route["spec"]["rules"][0]["backendRefs"] == [other, {**pool, "group": POOL_GROUP}]
    assert route["metadata"]["annotations"] == MIGRATED
    assert "annotations" not in http_route(NAMES, "ns", spec, POOL_GROUP_ALPHA)["metadata"]


def test_without_a_managed_pool_the_route_is_left_as_it_is() -> None:
    """The group in the spec is kept, and the route is not marked as migrated."""
    spec = {"rules": [{"backendRefs": [{"kind": "InferencePool", "name": "mine", "group": POOL_GROUP}]}]}
    route = http_route(NAMES, "ns", spec, None)
    assert route["spec"] == spec
    assert route["metadata"] == {
        "name": "demo-kserve-route",
        "namespace": "ns",
        "labels": {
            "app.kubernetes.io/name": "demo",
            "app.kubernetes.io/part-of": "llminferenceservice",
            "app.kubernetes.io/component": "llminferenceservice-router",
        },
    }
