"""The whole router, through the sync hook (KS-4.1 to KS-4.7, KS-9.4)."""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.base import Json
from tests.kserve.objects import (
    AVAILABLE,
    DEFAULT_PARENT,
    OPTIONAL_KINDS,
    RBAC_KINDS,
    Cluster,
    accepted,
    config,
    customize,
    gateway,
    service,
)

MANAGED: Json = {"route": {}, "gateway": {}, "scheduler": {}}
ROUTER_OBJECTS = {
    ("Deployment", "demo-kserve-router-scheduler"),
    ("Service", "demo-epp-service"),
    ("InferencePool", "demo-inference-pool"),
    ("HTTPRoute", "demo-kserve-route"),
}
WORKLOAD_OBJECTS = {("Deployment", "demo-kserve"), ("Service", "demo-kserve-workload-svc")}


def settled(router: Json | None, *related: Json, optional: frozenset[str] = OPTIONAL_KINDS, **spec: Any) -> Cluster:
    more: Json = {} if router is None else {"router": router}
    cluster = Cluster(service(**more, **spec), *related, optional=optional)
    cluster.settle()
    return cluster


def own_route(name: str = "mine", parents: list[Json] | None = None, status: Json | None = None) -> Json:
    parents = [DEFAULT_PARENT] if parents is None else parents
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": "default", "generation": 1},
        "spec": {"parentRefs": parents, "rules": [{"matches": [{"path": {"value": "/x"}}]}]},
        "status": status or {},
    }


def own_pool(name: str = "mine", selector: Json | None = None, status: Json | None = None) -> Json:
    return {
        "apiVersion": "inference.networking.k8s.io/v1",
        "kind": "InferencePool",
        "metadata": {"name": name, "namespace": "default", "generation": 1},
        "spec": {"selector": {"matchLabels": selector or {}}},
        "status": status or {},
    }


# Children (KS-4.1).

MODES: dict[str, tuple[Json | None, set[tuple[str, str]]]] = {
    "no router": (None, set()),
    "an empty router": ({}, set()),
    "only a gateway": ({"gateway": {}}, set()),
    "only an ingress": ({"ingress": {}}, set()),
    "only a route": ({"route": {}}, {("HTTPRoute", "demo-kserve-route")}),
    "everything": (MANAGED, ROUTER_OBJECTS),
    "a scheduler without a route": ({"scheduler": {}}, ROUTER_OBJECTS - {("HTTPRoute", "demo-kserve-route")}),
    "a pool of one's own": (
        {"route": {}, "scheduler": {"pool": {"ref": {"name": "mine"}}}},
        {("HTTPRoute", "demo-kserve-route")},
    ),
    "a route of one's own": ({"route": {"http": {"refs": [{"name": "mine"}]}}}, set()),
}


@pytest.mark.parametrize("mode", MODES)
def test_the_router_decides_which_children_there_are(mode: str) -> None:
    """Model servers always exist; the other children depend on the router."""
    router, expected = MODES[mode]
    assert settled(router, gateway(), own_route(), own_pool()).names == WORKLOAD_OBJECTS | expected


@pytest.mark.parametrize(
    ("router", "kind", "name"),
    [
        ({"route": {}}, "Service", "demo-kserve-workload-svc"),
        (MANAGED, "InferencePool", "demo-inference-pool"),
        ({"route": {}, "scheduler": {"pool": {"ref": {"name": "mine"}}}}, "InferencePool", "mine"),
    ],
)
def test_where_the_route_leads(router: Json, kind: str, name: str) -> None:
    """The route sends requests to the pool if there is one, else to the Service."""
    cluster = settled(router, gateway(), own_pool())
    backend = cluster.child("HTTPRoute", "demo-kserve-route")["spec"]["rules"][0]["backendRefs"][0]
    assert (backend["kind"], backend["name"]) == (kind, name)


def test_a_route_of_the_users_own_that_names_the_pool_leads_to_the_service_without_a_scheduler() -> None:
    """A reference to a Service needs a port, which one to a pool does not have."""
    pool = {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "demo-inference-pool"}
    cluster = settled({"route": {"http": {"spec": {"rules": [{"backendRefs": [pool]}]}}}}, gateway())
    (backend,) = cluster.child("HTTPRoute", "demo-kserve-route")["spec"]["rules"][0]["backendRefs"]
    assert (backend["kind"], backend["name"], backend["port"]) == ("Service", "demo-kserve-workload-svc", 8000)


def test_a_picker_that_is_not_made_needs_no_image() -> None:
    """Beside a pool of one's own the scheduler's template has no effect, and gets nothing of a preset."""
    template = {"containers": [{"name": "main", "args": ["--v=4"]}]}
    scheduler = {"pool": {"ref": {"name": "mine"}}, "template": template}
    cluster = settled({"route": {}, "scheduler": scheduler}, gateway(), own_pool())
    assert cluster.names == WORKLOAD_OBJECTS | {("HTTPRoute", "demo-kserve-route")}


PICKER = {
    "selector": {"matchLabels": {"a": "b"}},
    "targetPorts": [{"number": 8000}],
    "endpointPickerRef": {"name": "mine", "port": {"number": 9002}},
}


def test_service_of_the_endpoint_picker_has_the_name_in_the_pool() -> None:
    """The Service has the name in the pool's spec, also while the router cannot be reconciled."""
    spec = {**PICKER, "appProtocol": "kubernetes.io/h2c"}
    cluster = settled({"route": {}, "scheduler": {"pool": {"spec": spec}}}, gateway())
    assert cluster.names - WORKLOAD_OBJECTS - ROUTER_OBJECTS == {("Service", "mine")}
    assert ("Service", "demo-epp-service") not in cluster.names
    assert cluster.child("InferencePool", "demo-inference-pool")["spec"]["appProtocol"] == "kubernetes.io/h2c"
    assert cluster.answer["status"]["router"]["scheduler"]["service"]["name"] == "mine"
    cluster.related = []
    cluster.sync()
    assert cluster.says("HTTPRoutesReady") == "RefsInvalid"
    assert ("Service", "mine") in cluster.names


def test_uses_a_users_gateway() -> None:
    """It replaces the default one, which may be missing; the namespace defaults to the service's."""
    refs = [{"name": "a", "namespace": "infra"}, {"name": "b"}]
    cluster = settled({"route": {}, "gateway": {"refs": refs}}, gateway("a", "infra"), gateway("b", "default"))
    parents = cluster.child("HTTPRoute", "demo-kserve-route")["spec"]["parentRefs"]
    assert [(p["name"], p.get("namespace")) for p in parents] == [("a", "infra"), ("b", None)]
    assert cluster.says("GatewaysReady") == "True"


# References (KS-4.2).

MISSING: dict[str, tuple[Json, list[Json], str, str]] = {
    "a gateway": (
        {"route": {}, "gateway": {"refs": [{"name": "gone", "namespace": "infra"}]}},
        [gateway()],
        "GatewaysReady",
        "Gateway infra/gone",
    ),
    "the default gateway": (MANAGED, [], "HTTPRoutesReady", "Gateway kserve/kserve-ingress-gateway"),
    "a route": (
        {"route": {"http": {"refs": [{"name": "gone"}]}}},
        [gateway()],
        "HTTPRoutesReady",
        "HTTPRoute default/gone",
    ),
    "a route's parents": (
        {"route": {"http": {"refs": [{"name": "mine"}]}}},
        [own_route(parents=[])],
        "HTTPRoutesReady",
        "HTTPRoute default/mine has no parentRefs",
    ),
    "a route's gateway": (
        {"route": {"http": {"refs": [{"name": "mine"}]}}},
        [own_route()],
        "HTTPRoutesReady",
        "Gateway kserve/kserve-ingress-gateway",
    ),
}


@pytest.mark.parametrize("case", MISSING)
def test_references_must_exist_before_anything_is_made(case: str) -> None:
    """Model servers run; the router's children wait, and ``Ready`` names the missing object."""
    router, related, condition, named = MISSING[case]
    cluster = settled(router, *related)
    assert cluster.names == WORKLOAD_OBJECTS
    assert cluster.says(condition) == cluster.says("RouterReady") == cluster.says("Ready") == "RefsInvalid"
    ready = cluster.condition("Ready")
    assert ready is not None
    assert named in ready["message"]


def test_a_reference_that_goes_takes_nothing_with_it() -> None:
    """When the Gateway is deleted, children and URL are kept; they work again once it is back."""
    cluster = settled(MANAGED, gateway())
    before = cluster.names
    cluster.related.clear()
    cluster.settle()
    assert cluster.names == before
    assert cluster.says("HTTPRoutesReady") == "RefsInvalid"
    assert cluster.answer["status"]["url"] == "http://203.0.113.1/default/demo"
    cluster.related.append(gateway())
    cluster.settle()
    assert cluster.says("HTTPRoutesReady") == "HTTPRoutesNotReady"


def test_ready_has_the_gateways_own_words() -> None:
    """``Ready`` and ``HTTPRoutesReady`` quote the Gateway's reason and message for rejecting a route."""
    refused = {"type": "Accepted", "status": "False", "reason": "NotAllowedByListeners", "message": "closed"}
    parents = [{"parentRef": DEFAULT_PARENT, "controllerName": "x.dev/y", "conditions": [refused]}]
    cluster = settled(
        {"route": {"http": {"refs": [{"name": "mine"}]}}}, gateway(), own_route(status={"parents": parents})
    )
    message = f"HTTPRoute mine is refused by Gateway {DEFAULT_PARENT['name']}: NotAllowedByListeners: closed"
    conditions = {c["type"]: c.get("message", "") for c in cluster.answer["status"]["conditions"]}
    assert conditions["HTTPRoutesReady"] == message
    assert message in conditions["Ready"]


def said(type_: str, status: str, reason: str = "R", **more: int) -> Json:
    return {"type": type_, "status": status, "reason": reason, "message": "m", **more}


ACCEPTED, RESOLVED = said("Accepted", "True"), said("ResolvedRefs", "True")


NOT_TAKEN = "no controller has taken the Gateway: GatewayClass acme does not exist, or its controller does not run"
NOBODY = "if this lasts, no controller of GatewayClass acme runs, or it does not know HTTPRoutes"


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ([], f"is not yet accepted by Gateway infra-a, infra-b; {NOBODY}"),
        ([ACCEPTED, RESOLVED], "is not yet accepted by Gateway infra-b"),
        ([said("Accepted", "Unknown", "Pending"), RESOLVED], "is not yet accepted by Gateway infra-b, infra-a"),
        ([{**ACCEPTED, "observedGeneration": 1}, RESOLVED], "is not yet accepted by Gateway infra-b, infra-a"),
        ([ACCEPTED, said("ResolvedRefs", "False", "BackendNotFound")],
         "has references that Gateway infra-a cannot resolve: BackendNotFound: m"),
    ],
    ids=["nobody", "one", "not judged", "an earlier generation", "a missing backend"],
)  # fmt: skip
def test_names_the_gateways_that_a_route_waits_for(conditions: list[Json], words: str) -> None:
    parents = [{"name": "infra-a"}, {"name": "infra-b"}]
    reported = [{"parentRef": parents[0], "conditions": conditions}] if conditions else []
    route = own_route(parents=parents, status={"parents": reported})
    route["metadata"]["generation"] = 2
    gateways = [gateway(name, "default") for name in ("infra-a", "infra-b")]
    gateways[0]["spec"]["gatewayClassName"] = "acme"
    cluster = settled({"route": {"http": {"refs": [{"name": "mine"}]}}}, *gateways, route)
    condition = cluster.condition("HTTPRoutesReady")
    assert condition is not None
    assert condition["message"] == f"HTTPRoute mine {words}"


def test_the_words_of_a_gateway_are_bounded() -> None:
    refused = {"type": "Accepted", "status": "False", "reason": "R", "message": "x" * 5000}
    parents = [{"parentRef": DEFAULT_PARENT, "conditions": [refused]}]
    cluster = settled(
        {"route": {"http": {"refs": [{"name": "mine"}]}}}, gateway(), own_route(status={"parents": parents})
    )
    assert all(len(c.get("message", "")) <= 1000 for c in cluster.answer["status"]["conditions"])


# Conditions, from nothing to ready.


def test_a_full_service_comes_up_part_by_part() -> None:
    """The workload may be ready before the router (KS-6)."""
    cluster = settled(MANAGED, gateway())
    cluster.report("Deployment", "demo-kserve", **AVAILABLE)
    cluster.settle()
    assert (cluster.says("MainWorkloadReady"), cluster.says("WorkloadsReady")) == ("True", "True")
    cluster.report("HTTPRoute", "demo-kserve-route", **accepted(DEFAULT_PARENT))
    cluster.report("InferencePool", "demo-inference-pool", **accepted(DEFAULT_PARENT, resolved=False))
    cluster.report("Deployment", "demo-kserve-router-scheduler", **AVAILABLE)
    cluster.settle()
    assert {cluster.says(c["type"]) for c in cluster.answer["status"]["conditions"]} == {"True"}
    assert cluster.answer["status"]["url"] == "http://203.0.113.1/default/demo"
    assert [address["name"] for address in cluster.answer["status"]["addresses"]] == [
        *("gateway-external-model-routing", "gateway-external", "gateway-external")
    ]


def test_without_a_route_the_service_answers_within_the_cluster() -> None:
    """The status has the workload Service's URL, with scheme and port."""
    cluster = settled(None)
    url = "http://demo-kserve-workload-svc.default.svc.cluster.local:8000"
    assert cluster.answer["status"]["addresses"] == [{"url": url}]
    assert cluster.answer["status"]["url"] == url
    assert cluster.says("RouterReady") == "True"


def test_a_route_whose_gateway_has_no_address_yet() -> None:
    """Until then, the status has the workload Service's URL."""
    url = "http://demo-kserve-workload-svc.default.svc.cluster.local:8000"
    status = settled(MANAGED, gateway(addresses=[])).answer["status"]
    assert (status["url"], status["addresses"]) == (url, [{"url": url}])


def test_urls_that_cannot_be_found_out() -> None:
    """The route is created; later conditions are not evaluated."""
    broken = gateway(listeners=[{"name": "t", "port": 9, "protocol": "TCP"}])
    cluster = settled(MANAGED, broken)
    assert ("HTTPRoute", "demo-kserve-route") in cluster.names
    assert cluster.says("HTTPRoutesReady") == "HTTPRouteReconcileError"
    assert cluster.says("InferencePoolReady") is None


def test_a_gateway_that_is_not_programmed() -> None:
    """Only Gateways that the user names are evaluated."""
    cluster = settled(
        {"route": {}, "gateway": {"refs": [{"name": "g", "namespace": "gw"}]}}, gateway("g", "gw", programmed=False)
    )
    assert cluster.says("GatewaysReady") == "GatewaysNotReady"
    assert settled({"route": {}}, gateway(programmed=False)).says("GatewaysReady") is None


def test_a_gateway_without_a_controller() -> None:
    """The message says what the Gateway's own conditions say, and which class to look for, at once."""
    pending = {"type": "Accepted", "status": "Unknown", "reason": "Pending", "message": "Waiting for controller"}
    waiting = {**gateway("g", "gw"), "status": {"conditions": [pending]}}
    waiting["spec"]["gatewayClassName"] = "acme"
    cluster = settled({"route": {}, "gateway": {"refs": [{"name": "g", "namespace": "gw"}]}}, waiting)
    message = (cluster.condition("GatewaysReady") or {})["message"]
    assert message == f"Gateway gw/g is not programmed yet: Pending: Waiting for controller; {NOT_TAKEN}"
    managed = settled({"route": {}}, {**waiting, "metadata": gateway()["metadata"]}).condition("HTTPRoutesReady") or {}
    assert managed["message"].endswith(NOT_TAKEN)


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ({}, "WaitingForGateway"),
        (accepted(DEFAULT_PARENT, resolved=False), "True"),
        ({"parents": [{"conditions": [{"type": "Accepted", "status": "False"}]}]}, "InferencePoolNotReady"),
    ],
)
def test_reports_the_state_of_a_users_pool(status: Json, says: str) -> None:
    """It is evaluated like a managed pool, without waiting for an endpoint picker."""
    cluster = settled(
        {"route": {}, "scheduler": {"pool": {"ref": {"name": "mine"}}}}, gateway(), own_pool(status=status)
    )
    assert cluster.says("InferencePoolReady") == says
    assert cluster.says("SchedulerWorkloadReady") is None


def test_reports_a_missing_users_pool() -> None:
    cluster = settled({"route": {}, "scheduler": {"pool": {"ref": {"name": "gone"}}}}, gateway())
    assert cluster.says("InferencePoolReady") == "InferencePoolFetchError"
    assert cluster.says("Ready") == "InferencePoolFetchError"


def test_reports_a_users_pool_that_selects_other_pods() -> None:
    """The message names the labels that the service's pods lack."""
    router = {"route": {}, "scheduler": {"pool": {"ref": {"name": "mine"}}}}
    pool = own_pool(selector={"app": "x", "kserve.io/component": "workload"})
    message = (settled(router, gateway(), pool).condition("Ready") or {})["message"]
    assert "set app=x in spec.labels" in message
    labelled = settled(router, gateway(), pool, labels={"app": "x"})
    assert "spec.labels" not in (labelled.condition("Ready") or {})["message"]


# Kinds that are not installed.


def test_without_the_gateway_api() -> None:
    """The condition names what to install; all other children exist, and the URL is the workload Service's."""
    cluster = settled(MANAGED, optional=frozenset({"InferencePool"}))
    assert cluster.says("HTTPRoutesReady") == "KindNotInstalled"
    assert cluster.names == WORKLOAD_OBJECTS | (ROUTER_OBJECTS - {("HTTPRoute", "demo-kserve-route")})
    assert "gateway-api" in (cluster.condition("HTTPRoutesReady") or {})["message"]
    assert cluster.answer["status"]["addresses"][0]["url"].startswith("http://demo-kserve-workload-svc.")


def test_without_the_inference_extension() -> None:
    """Scheduler and route are kept; the route does not silently fall back to the Service."""
    cluster = settled(MANAGED, gateway(), optional=frozenset({"HTTPRoute"}))
    assert cluster.says("InferencePoolReady") == "InferencePoolFetchError"
    assert ("Deployment", "demo-kserve-router-scheduler") in cluster.names
    backend = cluster.child("HTTPRoute", "demo-kserve-route")["spec"]["rules"][0]["backendRefs"][0]
    assert backend["kind"] == "InferencePool"


ISTIO = OPTIONAL_KINDS | {"DestinationRule"}


@pytest.mark.parametrize(
    ("args", "has_rule"),
    [
        ([], True),
        (["--secure-serving"], True),
        (["-secure-serving=F"], False),
        (["--secure-serving=false"], False),
        (["--secure-serving=false", "--secure-serving=true"], True),
    ],
)
def test_istio_learns_that_the_picker_serves_tls(args: list[str], has_rule: bool) -> None:
    """Istio speaks plain text to a Service otherwise, and with FailOpen nobody notices that no picker is asked."""
    template = {"containers": [{"name": "main", "args": args}]}
    picker_cluster = settled({**MANAGED, "scheduler": {"template": template}}, gateway(), optional=ISTIO)
    assert (("DestinationRule", "demo-epp-service") in picker_cluster.names) == has_rule
    if has_rule:
        assert picker_cluster.child("DestinationRule", "demo-epp-service")["spec"] == {
            "host": "demo-epp-service.default.svc.cluster.local",
            "trafficPolicy": {"tls": {"mode": "SIMPLE", "insecureSkipVerify": True}},
        }


def test_a_rule_of_istio_goes_with_its_picker() -> None:
    """It stays while the router cannot be judged."""
    cluster = settled(MANAGED, gateway(), optional=ISTIO)
    assert ("DestinationRule", "demo-epp-service") in cluster.names
    cluster.related = []
    cluster.settle()
    assert ("DestinationRule", "demo-epp-service") in cluster.names
    bare = settled({"route": {}}, gateway(), optional=ISTIO)
    assert ("DestinationRule", "demo-epp-service") not in bare.names


@pytest.mark.parametrize(
    ("controller", "optional", "noted"),
    [
        ("istio.io/gateway-controller", OPTIONAL_KINDS, True),
        ("istio.io/gateway-controller", ISTIO, False),
        ("gateway.envoyproxy.io/gatewayclass-controller", OPTIONAL_KINDS, False),
    ],
)
def test_a_picker_that_istio_cannot_hear_is_noted(controller: str, optional: frozenset[str], noted: bool) -> None:
    """The condition stays true: a user may have made the DestinationRule."""
    cluster = settled(MANAGED, gateway(), optional=optional)
    accepted = [{"type": type_, "status": "True"} for type_ in ("Accepted", "ResolvedRefs")]
    parent = {"parentRef": DEFAULT_PARENT, "controllerName": controller, "conditions": accepted}
    cluster.report("HTTPRoute", "demo-kserve-route", parents=[parent])
    cluster.report("InferencePool", "demo-inference-pool", parents=[parent])
    cluster.sync()
    condition = cluster.condition("InferencePoolReady") or {}
    assert condition["status"] == "True"
    assert ("DestinationRule" in condition.get("message", "")) == noted


@pytest.mark.parametrize(
    ("adapters", "overlap", "noted"), [(2, False, ""), (22, False, "adapters"), (2, True, "older")]
)
def test_an_accepted_route_may_have_a_note(adapters: int, overlap: bool, noted: str) -> None:
    """Adapters without room, and another route with the same matches; Ready does not depend on it."""
    lora = {"adapters": [{"name": f"a{n}", "uri": "hf://a/b"} for n in range(adapters)]}
    cluster = settled({"route": {}}, gateway(), model={"uri": "hf://a/b", "lora": lora})
    conditions = [{"type": type_, "status": "True"} for type_ in ("Accepted", "ResolvedRefs")]
    if overlap:
        text = "Overlapping match conditions with route(s): HTTPRoute default/older"
        conditions.append({"type": "RouteRulesOverlap", "status": "True", "message": text})
    cluster.report("HTTPRoute", "demo-kserve-route", parents=[{"parentRef": DEFAULT_PARENT, "conditions": conditions}])
    cluster.sync()
    condition = cluster.condition("HTTPRoutesReady") or {}
    assert condition["status"] == "True"
    assert noted in condition.get("message", "")
    assert bool(condition.get("message")) == bool(noted)


def test_a_picker_without_rights_names_the_component() -> None:
    """With the RBAC component, account and Role are created; without it, the condition names the component."""
    bare = settled(MANAGED, gateway())
    template = bare.child("Deployment", "demo-kserve-router-scheduler")["spec"]["template"]["spec"]
    assert "serviceAccountName" not in template
    assert "scheduler-rbac" in (bare.condition("SchedulerWorkloadReady") or {})["message"]

    full = settled(MANAGED, gateway(), optional=OPTIONAL_KINDS | RBAC_KINDS)
    assert full.names >= {("ServiceAccount", "demo-epp-sa"), ("Role", "demo-epp-role"), ("RoleBinding", "demo-epp-rb")}
    assert "scheduler-rbac" not in (full.condition("SchedulerWorkloadReady") or {})["message"]
    template = full.child("Deployment", "demo-kserve-router-scheduler")["spec"]["template"]["spec"]
    assert template["serviceAccountName"] == "demo-epp-sa"


def test_a_users_account_must_exist() -> None:
    """Until it exists, the scheduler and all later children are not created."""
    router = {**MANAGED, "scheduler": {"template": {"serviceAccountName": "mine"}}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "mine", "namespace": "default"}}
    cluster = settled(router, gateway())
    assert cluster.says("SchedulerWorkloadReady") == "SchedulerReconcileError"
    assert cluster.names == WORKLOAD_OBJECTS
    cluster.related.append(account)
    cluster.settle()
    assert cluster.names == WORKLOAD_OBJECTS | ROUTER_OBJECTS


# Changes.


def test_the_scheduler_is_taken_away() -> None:
    """Its objects and conditions are removed, and the route sends requests to the Service."""
    cluster = settled(MANAGED, gateway())
    cluster.parent["spec"]["router"] = {"route": {}}
    cluster.settle()
    assert cluster.names == WORKLOAD_OBJECTS | {("HTTPRoute", "demo-kserve-route")}
    assert cluster.says("SchedulerWorkloadReady") is None
    assert cluster.says("InferencePoolReady") is None


def test_a_scheduler_added_later_is_found_by_the_route() -> None:
    """The route uses the API group of the created pool, even if no Gateway has evaluated the route yet."""
    cluster = settled({"route": {}}, gateway())
    cluster.parent["spec"]["router"] = {"route": {}, "scheduler": {}}
    cluster.settle()
    rules = cluster.child("HTTPRoute", "demo-kserve-route")["spec"]["rules"]
    pools = {b["group"] for rule in rules for b in rule["backendRefs"] if b["kind"] == "InferencePool"}
    assert pools == {cluster.child("InferencePool", "demo-inference-pool")["apiVersion"].partition("/")[0]}


def test_users_routes_replace_the_managed_one() -> None:
    """The managed route is deleted; URL and condition come from the user's route."""
    cluster = settled({"route": {}}, gateway(), own_route(status=accepted(DEFAULT_PARENT)))
    cluster.parent["spec"]["router"] = {"route": {"http": {"refs": [{"name": "mine"}]}}}
    cluster.settle()
    assert cluster.names == WORKLOAD_OBJECTS
    assert cluster.says("HTTPRoutesReady") == "True"
    assert cluster.answer["status"]["url"] == "http://203.0.113.1/x"


def test_prefill_added_later_changes_the_default_configuration() -> None:
    """The scheduler's configuration follows the current topology."""
    cluster = settled(MANAGED, gateway())
    cluster.parent["spec"]["prefill"] = {}
    cluster.settle()
    args = cluster.child("Deployment", "demo-kserve-router-scheduler")["spec"]["template"]["spec"]["containers"][0][
        "args"
    ]
    assert "disagg-profile-handler" in args[-1]


def test_a_stopped_service_has_no_children() -> None:
    """All children return once the annotation is removed."""
    cluster = settled(MANAGED, gateway())
    before = cluster.names
    cluster.parent["metadata"]["annotations"] = {"serving.kserve.io/stop": "True"}
    cluster.settle()
    assert cluster.answer["children"] == []
    assert (cluster.says("Ready"), cluster.says("Stopped")) == (None, "True")
    assert not {"url", "addresses"} & cluster.answer["status"].keys()
    cluster.parent["metadata"]["annotations"] = {"serving.kserve.io/stop": "false"}
    cluster.settle()
    assert cluster.names == before


PRESET_REFS: dict[str, tuple[Json, Json, str]] = {
    "a route": (
        {"route": {}},
        config("kserve-config-llm-router-route", "kserve", router={"route": {"http": {"refs": [{"name": "mine"}]}}}),
        "HTTPRoutesReady",
    ),
    "a pool": (
        {"scheduler": {}},
        config("kserve-config-llm-scheduler", "kserve", router={"scheduler": {"pool": {"ref": {"name": "mine"}}}}),
        "InferencePoolReady",
    ),
}


@pytest.mark.parametrize(("router", "preset", "type_"), PRESET_REFS.values(), ids=PRESET_REFS)
def test_what_only_a_preset_names_holds_nothing_up(router: Json, preset: Json, type_: str) -> None:
    """Such an object is not requested, so its absence cannot be detected (KS-9.2)."""
    assert settled(router, preset, gateway()).says(type_) == "True"


# Related objects.


@pytest.mark.parametrize(
    ("router", "optional", "asked"),
    [
        (None, OPTIONAL_KINDS, set()),
        ({"route": {}}, OPTIONAL_KINDS, {"gateways", "services"}),
        ({"route": {"http": {"refs": [{"name": "r"}]}}}, OPTIONAL_KINDS, {"gateways", "httproutes", "services"}),
        ({"route": {}}, frozenset(), set()),
        ({"scheduler": {}}, OPTIONAL_KINDS, set()),
        ({"scheduler": {"pool": {"ref": {"name": "p"}}}}, OPTIONAL_KINDS, {"inferencepools"}),
        ({"scheduler": {}}, frozenset({"HTTPRoute"}), set()),
    ],
)
def test_related_kinds_are_asked_for_only_where_they_are_declared(
    router: Json | None, optional: frozenset[str], asked: set[str]
) -> None:
    """A rule for a kind that is not installed would make every sync fail; Secrets are never requested."""
    spec: Json = {} if router is None else {"router": router}
    resources = {rule["resource"] for rule in customize(service(**spec), optional)}
    assert resources & {"gateways", "httproutes", "services", "inferencepools", "secrets"} == asked
