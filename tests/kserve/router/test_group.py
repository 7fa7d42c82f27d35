"""Services that share requests by ``router.route.group``."""

from __future__ import annotations

from typing import Any

import pytest

from app.desk.files.manifests import ManifestError
from app.kube.base import Json
from tests.kserve.objects import Cluster, customize, fields, gateway, service

PREFIX = {"path": {"type": "PathPrefix", "value": "/chat"}}
POOL = {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "demo-inference-pool", "port": 8000}


def member(name: str, weight: int = 10, *, group: str = "chat", ready: bool = True, **spec: Any) -> Json:
    route = {"group": group, "weight": weight}
    parent = service(name, model={"uri": "hf://a/b", "name": "base"}, router={"route": route, "scheduler": {}}, **spec)
    conditions = [{"type": type_, "status": str(ready)} for type_ in ("RouterReady", "WorkloadsReady")]
    return {**parent, "status": {"conditions": conditions}}


def shared(*peers: Json, weight: int = 30, **route: Any) -> Cluster:
    """Return a service of the group whose route has two rules: one for the group's path, one for its own path."""
    own_path = {"path": {"type": "PathPrefix", "value": "/default/demo/v1"}}
    rules = [{"matches": [match], "backendRefs": [POOL]} for match in (PREFIX, own_path)]
    parent = service(
        model={"uri": "hf://a/b", "name": "base"},
        router={
            "route": {"group": "chat", "weight": weight, "http": {"spec": {"rules": rules}}, **route},
            "scheduler": {},
        },
    )
    cluster = Cluster(parent, gateway(), *peers)
    cluster.sync()
    return cluster


def weights(cluster: Cluster, rule: int = 0) -> dict[str, int]:
    backends = cluster.child("HTTPRoute", "demo-kserve-route")["spec"]["rules"][rule]["backendRefs"]
    return {backend["name"]: backend.get("weight", 1) for backend in backends}


def test_requests_are_shared_by_weight() -> None:
    """Only rules outside the service's own path are shared."""
    cluster = shared(member("other", 70), member("stranger", group="different"))
    assert weights(cluster) == {"demo-inference-pool": 30, "other-inference-pool": 70}
    assert weights(cluster, 1) == {"demo-inference-pool": 1}
    assert cluster.says("GroupReady") == "True"


@pytest.mark.parametrize(
    ("spec", "backend"),
    [
        ({"route": {"group": "chat", "weight": 5}}, "other-kserve-workload-svc"),
        ({"route": {"group": "chat", "weight": 5}, "scheduler": {"pool": {"ref": {"name": "mine"}}}}, "mine"),
    ],
)
def test_a_member_is_its_pool_or_its_service(spec: Json, backend: str) -> None:
    peer = member("other")
    peer["spec"]["router"] = spec
    assert weights(shared(peer)) == {"demo-inference-pool": 30, backend: 5}


@pytest.mark.parametrize("value", [5, [None], True])
@pytest.mark.parametrize("path", [("route",), ("scheduler", "pool", "ref"), ("scheduler", "pool", "ref", "name")])
def test_a_peer_that_no_api_server_sends_is_refused(path: tuple[str, ...], value: object) -> None:
    """The hook never fails for the form of another object."""
    router: Any = value
    for name in reversed(path):
        router = {name: router}
    peer = member("other")
    peer["spec"]["router"] = {"route": {"group": "chat"}, **router}
    with pytest.raises(ManifestError, match="not a v2 hook request"):
        shared(peer)


def test_a_member_that_is_not_ready_waits() -> None:
    """A member is added once it is ready, stays during its updates, and leaves while it is stopped."""
    peer = member("other", ready=False)
    cluster = shared(peer)
    assert weights(cluster) == {"demo-inference-pool": 30}
    cluster.related[-1] = member("other")
    cluster.sync()
    assert weights(cluster) == {"demo-inference-pool": 30, "other-inference-pool": 10}
    for position in (0, 1):  # once its route is updated, once its pods are
        updating = member("other")
        updating["status"]["conditions"][position]["status"] = "False"
        cluster.related[-1] = updating
        cluster.sync()
        assert weights(cluster) == {"demo-inference-pool": 30, "other-inference-pool": 10}
    stopped = member("other", ready=False)
    stopped["metadata"]["annotations"] = {"serving.kserve.io/stop": "true"}
    cluster.related[-1] = stopped
    cluster.sync()
    assert weights(cluster) == {"demo-inference-pool": 30}


def test_other_models_are_not_served_by_the_group() -> None:
    """A member with other models or adapters gets no requests; the condition names it."""
    peer = member("other")
    peer["spec"]["model"]["lora"] = {"adapters": [{"name": "a", "uri": "hf://a/b"}]}
    cluster = shared(peer)
    assert weights(cluster) == {"demo-inference-pool": 30}
    assert cluster.says("GroupReady") == "True"
    condition = cluster.condition("GroupDegraded")
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("True", "MemberDivergence")
    assert condition["message"].startswith("other: ")
    assert cluster.says("RouterReady") != "MemberDivergence"


def test_adapters_count_where_they_are_loaded() -> None:
    """Servers that fetch the model themselves load no adapters from the spec, in any member."""
    lora = {"uri": "hf://a/b", "name": "base", "lora": {"adapters": [{"name": "a", "uri": "hf://a/b"}]}}
    peer, alone = member("other"), {"model": lora, "storageInitializer": {"enabled": False}}
    peer["spec"] |= alone
    cluster = shared(peer)
    cluster.parent["spec"] |= alone
    cluster.sync()
    assert weights(cluster) == {"demo-inference-pool": 30, "other-inference-pool": 10}


def test_other_services_are_asked_for_by_members_only() -> None:
    kinds = [rule["resource"] for rule in customize(member("demo"))]
    assert "llminferenceservices" in kinds
    assert "llminferenceservices" not in [rule["resource"] for rule in customize(service())]


@pytest.mark.parametrize(
    ("router", "wrong"),
    [
        ({"route": {"group": "chat"}}, [("spec.router.route.weight", "Required")]),
        ({"route": {"weight": 1}}, [("spec.router.route.group", "Required")]),
        (
            {"route": {"group": "chat", "weight": 1, "http": {"refs": [{"name": "mine"}]}}},
            [("spec.router.route.group", "Invalid")],
        ),
        ({"route": {"group": "chat", "weight": 1}, "ingress": {}}, [("spec.router.route.group", "Invalid")]),
        ({"route": {"group": "chat", "weight": 1}}, []),
    ],
)
def test_a_member_needs_a_group_a_weight_and_shared_rules(router: Json, wrong: list[tuple[str, str]]) -> None:
    assert fields(service(router={"scheduler": {}, **router})) == wrong


def test_pools_are_reached_by_every_rule() -> None:
    """Rules for the Service, too. They have no names, so that Metacontroller does not merge their backends."""
    cluster = shared(member("other"), http={})
    assert cluster.answer["status"]["conditions"]
    route = cluster.child("HTTPRoute", "demo-kserve-route")
    assert route["metadata"]["labels"]["serving.kserve.io/routing-group"] == "chat"
    rules = route["spec"]["rules"]
    assert not any("name" in rule for rule in rules)
    divided = [rule["backendRefs"] for rule in rules if len(rule["backendRefs"]) == 2]
    assert len(divided) == 7
    assert {backend["kind"] for backends in divided for backend in backends} == {"InferencePool"}
    assert {backend["port"] for backends in divided for backend in backends} == {8000}


def test_a_stopped_member_is_no_backend() -> None:
    """It has no pool, which Envoy Gateway reports for the whole route; the status lists it."""
    peer = member("other", 70)
    peer["metadata"]["annotations"] = {"serving.kserve.io/stop": "true"}
    cluster = shared(peer)
    assert weights(cluster) == {"demo-inference-pool": 30}
    listed = cluster.answer["status"]["router"]["group"]["members"]
    assert [(item["name"], item["weight"], item.get("stopped", False)) for item in listed] == [
        ("demo", 30, False),
        ("other", 0, True),
    ]


def test_a_group_without_weight_has_no_shared_address() -> None:
    """Gateways answer requests to it with an error."""
    weightless = shared(member("other", 0), weight=0, http={})
    assert weightless.says("GroupDegraded") == "True"
    assert (weightless.condition("GroupDegraded") or {})["reason"] == "NoWeight"
    assert [address["url"] for address in weightless.answer["status"]["addresses"]] == [
        "http://203.0.113.1/default/demo"
    ]
    weighted = shared(member("other", 1), weight=0, http={})
    assert weighted.says("GroupDegraded") is None
    assert len(weighted.answer["status"]["addresses"]) == 3


def test_members_without_a_scheduler_share_by_their_services() -> None:
    router = {"route": {"group": "chat", "weight": 30}}
    cluster = Cluster(service(router=router), gateway(), peer := member("other"))
    peer["spec"] |= {"router": {"route": {"group": "chat", "weight": 5}}, "model": {"uri": "hf://a/b", "name": "demo"}}
    cluster.sync()
    backends = cluster.child("HTTPRoute", "demo-kserve-route")["spec"]["rules"][-1]["backendRefs"]
    assert [(b["kind"], b["name"], b["port"], b["weight"]) for b in backends] == [
        ("Service", "demo-kserve-workload-svc", 8000, 30),
        ("Service", "other-kserve-workload-svc", 8000, 5),
    ]


def test_a_base_may_have_the_weight() -> None:
    assert fields(service(router={"route": {"group": "chat"}}, baseRefs=[{"name": "base"}])) == []
