"""Models behind the Envoy AI Gateway, routed by name (LZ-4.11)."""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.base import Json
from app.settings import Settings
from tests.llmaz.world import SERVICE, child, condition, customize, model, model_at, observed, service, sync

KINDS = ("Backend", "AIServiceBackend", "AIGatewayRoute")


def routed(*related: Json, settings: Settings | None = None, children: list[Json] | None = None) -> Json:
    return sync(SERVICE, service(), *(related or (model(),)), gateway=True, settings=settings, children=children)


def rule(answer: Json) -> Json:
    (first,) = child(answer, "AIGatewayRoute")["spec"]["rules"]
    assert isinstance(first, dict)
    return first


def created(item: Json, time: str = "2029-01-02T03:04:05Z") -> Json:
    return {**item, "metadata": {**item["metadata"], "creationTimestamp": time}}


def test_where_the_gateway_is_not_installed() -> None:
    """None of the gateway's objects is created."""
    kinds = [c["kind"] for c in sync(SERVICE, service(), model())["children"]]
    assert not set(kinds) & set(KINDS)


def test_the_three_objects() -> None:
    """Address, protocol and route of a Service refer to each other."""
    answer = routed()
    objects = [child(answer, kind) for kind in KINDS]
    metadata = {"name": "chat-llmaz", "namespace": "team", "labels": {"llmaz.io/model-name": "opt"}}
    assert [m["metadata"] for m in objects] == [metadata] * 3
    backend, ai_backend, route = (m["spec"] for m in objects)
    assert backend == {"endpoints": [{"fqdn": {"hostname": "chat-lb.team.svc.cluster.local", "port": 8080}}]}
    reference = {"group": "gateway.envoyproxy.io", "kind": "Backend", "name": "chat-llmaz"}
    assert ai_backend == {"schema": {"name": "OpenAI"}, "backendRef": reference}
    gateway = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "ai-gateway", "name": "models"}
    assert route["parentRefs"] == [gateway]
    assert rule(answer) == {
        "matches": [{"headers": [{"name": "x-ai-eg-model", "type": "Exact", "value": "opt"}]}],
        "backendRefs": [{"name": "chat-llmaz", "priority": 0, "weight": 1}],
        "timeouts": {"request": "180s"},
        "modelsOwnedBy": "llmaz",
    }


def test_the_operators_settings() -> None:
    """The settings change the Gateway, the timeout and the cluster domain."""
    answer = routed(
        settings=Settings(llmaz_gateway="edge/public", llmaz_gateway_timeout="10m", cluster_domain="example.internal")
    )
    (parent,) = child(answer, "AIGatewayRoute")["spec"]["parentRefs"]
    assert (parent["namespace"], parent["name"]) == ("edge", "public")
    assert rule(answer)["timeouts"] == {"request": "10m"}
    (endpoint,) = child(answer, "Backend")["spec"]["endpoints"]
    assert endpoint["fqdn"]["hostname"] == "chat-lb.team.svc.example.internal"


@pytest.mark.parametrize("setting", [{"llmaz_gateway": "models"}, {"llmaz_gateway_timeout": "3 minutes"}])
def test_settings_that_cannot_be(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"namespace/name|pattern"):
        Settings(**setting)


TIMES = {
    "as the model says": (created(model(createdAt="2025-01-01T02:00:00.5+02:00")), "2025-01-01T00:00:00Z"),
    "else as its object says": (created(model()), "2029-01-02T03:04:05Z"),
}


@pytest.mark.parametrize(("given", "want"), TIMES.values(), ids=TIMES.keys())
def test_when_the_model_was_created(given: Json, want: str) -> None:
    """The time is in UTC and whole seconds, as in Kubernetes."""
    assert rule(routed(given))["modelsCreatedAt"] == want


def test_who_owns_the_model() -> None:
    assert rule(routed(model(ownedBy="research")))["modelsOwnedBy"] == "research"


def test_a_model_that_its_engine_calls_otherwise() -> None:
    """Users send the OpenModel's name, which is replaced by ollama's name for the model."""
    (reference,) = rule(routed(model_at("ollama://qwen2:0.5b")))["backendRefs"]
    assert reference["modelNameOverride"] == "qwen2:0.5b"


def test_the_main_model_is_routed() -> None:
    """The route is for the main model, because users do not request a draft model."""
    models = [{"name": "small", "role": "draft"}, {"name": "opt", "role": "main"}]
    parent = service(modelClaims={"models": models})
    answer = sync(SERVICE, parent, model(), model("small"), gateway=True)
    (match,) = rule(answer)["matches"]
    assert match["headers"][0]["value"] == "opt"
    (related,) = [r for r in customize(SERVICE, parent, gateway=True) if r["resource"] == "aigatewayroutes"]
    assert related["labelSelector"] == {"matchLabels": {"llmaz.io/model-name": "opt"}}


def test_routes_are_asked_for_where_they_are_declared_only() -> None:
    assert "aigatewayroutes" not in [r["resource"] for r in customize(SERVICE, service())]


def test_they_stay_while_the_model_is_gone() -> None:
    there = [observed(child(routed(), kind)) for kind in KINDS]
    answer = sync(SERVICE, service(), gateway=True, children=there)
    assert {c["kind"]: c["spec"] for c in answer["children"]} == {c["kind"]: c["spec"] for c in there}


def test_a_route_that_the_gateway_refuses() -> None:
    """The refusal is a note in Ready, because the Service works without the gateway."""
    refused = {"conditions": [{"type": "NotAccepted", "status": "True", "message": "no Gateway ai-gateway/models"}]}
    route = observed(child(routed(), "AIGatewayRoute"), status=refused)
    told = condition(routed(children=[route]), "Ready")["message"]
    assert "note: the gateway does not accept AIGatewayRoute chat-llmaz: no Gateway ai-gateway/models" in told


@pytest.mark.parametrize("accepted", [True, False])
def test_a_route_that_no_controller_reports_on(accepted: bool) -> None:
    reported = {"conditions": [{"type": "Accepted", "status": "True"}]} if accepted else {}
    route = observed(child(routed(), "AIGatewayRoute"), status=reported)
    told = condition(routed(children=[route]), "Ready")["message"]
    assert ("note: no controller has reported on AIGatewayRoute chat-llmaz" in told) is not accepted


@pytest.mark.parametrize(("time", "older"), [("2029-01-01T00:00:00Z", True), ("2029-06-01T00:00:00Z", False)])
def test_two_services_of_one_model(time: str, older: bool) -> None:
    """The gateway prefers the older route, and the other Service reports it."""
    own = created(observed(child(routed(), "AIGatewayRoute")), "2029-03-01T00:00:00Z")
    other = created(own, time)
    other["metadata"] |= {"namespace": "elsewhere", "name": "first-llmaz"}
    told = condition(routed(model(), own, other, children=[own]), "Ready")["message"]
    expected = "note: the gateway sends requests for model opt to AIGatewayRoute elsewhere/first-llmaz, which is older"
    assert (expected in told) is older
