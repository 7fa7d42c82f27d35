"""Criticality: InferenceObjectives, and the header by which requests select them (KS-4.9)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.kube.base import Json
from app.settings import Settings
from tests.kserve.objects import OPTIONAL_KINDS, V017, Cluster, config, gateway, service

ALL = OPTIONAL_KINDS | {"InferenceObjective"}
MODEL = "internal.serving.kserve.io/model-criticality"
ADAPTERS = "internal.serving.kserve.io/lora-criticalities"
HEADER = "x-gateway-inference-objective"
ROUTER: Json = {"route": {}, "scheduler": {}}
NAME = "demo-inference-objective"


def synced(parent: Json, *related: Json, optional: frozenset[str] = ALL, settings: Settings = V017) -> Cluster:
    cluster = Cluster(parent, gateway(), *related, optional=optional, settings=settings)
    cluster.sync()
    return cluster


def critical(criticality: str = "Critical", adapters: dict[str, str] | None = None, **spec: Any) -> Json:
    """Return a service of v1alpha2; ``adapters`` maps names to criticalities."""
    notes = {MODEL: criticality} if criticality else {}
    model: Json = {"uri": "hf://org/model"}
    if adapters:
        model["lora"] = {"adapters": [{"name": name, "uri": f"hf://org/{name}"} for name in adapters]}
        notes[ADAPTERS] = json.dumps({str(n): text for n, text in enumerate(adapters.values()) if text})
    return service(notes=notes, **{"model": model, "router": ROUTER, **spec})


def priorities(cluster: Cluster) -> dict[str, int]:
    """Return the priority of each objective by name."""
    objectives = [child for child in cluster.children if child["kind"] == "InferenceObjective"]
    return {child["metadata"]["name"]: child["spec"]["priority"] for child in objectives}


def header(rule: Json) -> str:
    """Return the objective that a rule names."""
    steps = [step for step in rule.get("filters") or () if step["type"] == "RequestHeaderModifier"]
    assert len(steps) <= 1
    headers = [h for step in steps for h in step["requestHeaderModifier"].get("set") or () if h["name"] == HEADER]
    return headers[0]["value"] if headers else ""


def rules(cluster: Cluster) -> list[Json]:
    listed: list[Json] = cluster.child("HTTPRoute", "demo-kserve-route")["spec"]["rules"]
    return listed


@pytest.mark.parametrize(("criticality", "priority"), [("Critical", 100), ("Standard", 0), ("Sheddable", -1)])
def test_each_criticality_has_its_priority(criticality: str, priority: int) -> None:
    """The objective has the priority, and refers to the pool."""
    cluster = synced(critical(criticality))
    objective = cluster.child("InferenceObjective", NAME)
    assert objective["apiVersion"] == "inference.networking.x-k8s.io/v1alpha2"
    pool = {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "demo-inference-pool"}
    assert objective["spec"] == {"priority": priority, "poolRef": pool}
    assert cluster.says("CriticalityApplied") == "True"


def test_priorities_are_settings() -> None:
    cluster = synced(critical(), settings=Settings(kserve_priority_critical=7))
    assert priorities(cluster) == {NAME: 7}


def test_the_route_names_the_objective_of_requests_to_the_pool() -> None:
    """Only rules for the pool get the header; the rest of the route, and routes without criticality, are unchanged."""
    plain, with_criticality = synced(critical("")), synced(critical())
    assert [header(rule) for rule in rules(plain)] == ["", "", ""]
    assert [header(rule) for rule in rules(with_criticality)] == [NAME, NAME, ""]
    without = [
        {**rule, "filters": [f for f in rule["filters"] if f["type"] != "RequestHeaderModifier"]}
        for rule in rules(with_criticality)
    ]
    assert without == rules(plain)


def test_adapters_have_objectives_and_rules_of_their_own() -> None:
    """Adapters are matched by the body-based router's header. Prefix rewrites require rules with one match."""
    cluster = synced(critical("Standard", {"code": "Critical", "Org/Fun": "Sheddable", "plain": ""}))
    fun = f"{NAME}-org-fun-"
    (hashed,) = [name for name in priorities(cluster) if name.startswith(fun)]
    assert priorities(cluster) == {NAME: 0, f"{NAME}-code": 100, hashed: -1}
    assert [header(rule) for rule in rules(cluster)] == [hashed, f"{NAME}-code", NAME, hashed, f"{NAME}-code", NAME, ""]
    (match,) = rules(cluster)[1]["matches"]
    assert match["headers"] == [{"type": "Exact", "name": "X-Gateway-Model-Name", "value": "code"}]
    assert match["path"]["value"] == "/default/demo/v1/completions"


def test_matches_that_are_about_a_model_already() -> None:
    """A match by model stays with the rule of that model; a second header of that name would be refused."""
    backend = {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "demo-inference-pool"}
    wanted = ("demo", "publishers/default/models/code", "publishers/default/models/other")
    matches = [{"headers": [{"type": "Exact", "name": "x-gateway-model-name", "value": name}]} for name in wanted]

    def named(*given: Json) -> list[tuple[str, list[str]]]:
        rule = {"matches": list(given), "backendRefs": [{**backend, "port": 8000}]}
        router = {"scheduler": {}, "route": {"http": {"spec": {"rules": [rule]}}}}
        resulting = rules(synced(critical("Critical", {"code": "Standard"}, router=router)))
        return [(header(r), [h["value"] for m in r["matches"] for h in m["headers"]]) for r in resulting]

    assert named(*matches) == [(f"{NAME}-code", [wanted[1]]), (NAME, [wanted[0], wanted[2]])]
    assert named(matches[0]) == [(NAME, [wanted[0]])]
    assert named(matches[1]) == [(f"{NAME}-code", [wanted[1]])]


def test_a_header_that_the_user_sets_stays() -> None:
    """The condition reports it. Other headers of the filter are kept beside the objective."""
    backend = {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "demo-inference-pool"}
    users_header = {"name": "X-GATEWAY-Inference-Objective", "value": "mine"}

    def of(*headers: Json) -> Cluster:
        step = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": list(headers)}}
        rule = {"backendRefs": [{**backend, "port": 8000}], "filters": [step]}
        return synced(critical(router={"scheduler": {}, "route": {"http": {"spec": {"rules": [rule]}}}}))

    cluster = of(users_header)
    assert rules(cluster)[0]["filters"][0]["requestHeaderModifier"]["set"] == [users_header]
    assert cluster.says("CriticalityApplied") == "NotRouted"
    cluster = of({"name": "a", "value": "b"})
    assert rules(cluster)[0]["filters"][0]["requestHeaderModifier"]["set"] == [
        {"name": "a", "value": "b"},
        {"name": HEADER, "value": NAME},
    ]


def test_a_route_has_room_for_sixteen_rules() -> None:
    """If adapters need more, only the model's objective is named, and the condition lists the others."""
    cluster = synced(critical("Critical", {f"a{n}": "Standard" for n in range(7)}))
    assert len(priorities(cluster)) == 8
    assert [header(rule) for rule in rules(cluster)] == [NAME, NAME, ""]
    assert cluster.says("CriticalityApplied") == "NotRouted"
    assert f"{NAME}-a6" in (cluster.condition("CriticalityApplied") or {})["message"]
    assert len(rules(synced(critical("Critical", {f"a{n}": "Standard" for n in range(6)})))) == 15


def test_rules_with_names() -> None:
    """Rule names must be unique in a route, so the copied rule has none."""
    backend = {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "demo-inference-pool"}
    rule = {"name": "chat", "backendRefs": [{**backend, "port": 8000}]}
    router = {"scheduler": {}, "route": {"http": {"spec": {"rules": [rule]}}}}
    cluster = synced(critical("", {"code": "Critical"}, router=router))
    assert [rule.get("name") for rule in rules(cluster)] == [None, "chat"]


def test_objectives_of_a_users_pool() -> None:
    """The objective refers to the user's pool, and the same rules get the header."""
    pool = {
        "apiVersion": "inference.networking.k8s.io/v1",
        "kind": "InferencePool",
        "metadata": {"name": "mine", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app.kubernetes.io/name": "demo"}}},
    }
    cluster = synced(critical(router={"route": {}, "scheduler": {"pool": {"ref": {"name": "mine"}}}}), pool)
    assert cluster.child("InferenceObjective", NAME)["spec"]["poolRef"]["name"] == "mine"
    assert [header(rule) for rule in rules(cluster)] == [NAME, NAME, ""]


def test_a_base_may_say_how_critical_its_model_is() -> None:
    """The service's criticality overrides the base's; those of adapters come with the list of adapters."""
    base = config(model={"uri": "hf://org/model", "lora": {"adapters": [{"name": "code", "uri": "hf://org/code"}]}})
    base["metadata"]["annotations"] = {MODEL: "Sheddable", ADAPTERS: '{"0": "Critical"}'}
    parent = service(uri=None, baseRefs=[{"name": "base"}], router=ROUTER)
    assert priorities(synced(parent, base)) == {NAME: -1, f"{NAME}-code": 100}
    parent["metadata"]["annotations"] = {MODEL: "Standard"}
    assert priorities(synced(parent, base)) == {NAME: 0, f"{NAME}-code": 100}


@pytest.mark.parametrize(
    ("parent", "optional", "reason"),
    [
        (critical(router={"route": {}}), ALL, "NoScheduler"),
        (critical(), OPTIONAL_KINDS, "KindNotInstalled"),
        (critical("Urgent"), ALL, "UnknownCriticality"),
    ],
)
def test_where_it_has_no_effect(parent: Json, optional: frozenset[str], reason: str) -> None:
    """No objective is created, the route is unchanged, and a condition that ``Ready`` ignores has the reason."""
    cluster = synced(parent, optional=optional)
    assert priorities(cluster) == {}
    assert {header(rule) for rule in rules(cluster)} == {""}
    assert cluster.says("CriticalityApplied") == reason
    assert "CriticalityApplied" not in str(cluster.condition("Ready"))
    assert cluster.says("RouterReady") == synced(critical("", router=parent["spec"]["router"])).says("RouterReady")


def test_no_condition_without_criticality() -> None:
    assert synced(critical("")).condition("CriticalityApplied") is None


def test_objectives_stay_while_the_router_fails() -> None:
    """Objectives are kept with the router's other children, and removed when the service is stopped."""
    cluster = synced(critical())
    cluster.related = []
    cluster.sync()
    assert cluster.says("HTTPRoutesReady") == "RefsInvalid"
    assert priorities(cluster) == {NAME: 100}
    cluster.parent["metadata"]["annotations"]["serving.kserve.io/stop"] = "true"
    cluster.sync()
    assert cluster.children == []
    assert cluster.condition("CriticalityApplied") is None
