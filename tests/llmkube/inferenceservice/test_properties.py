"""Properties of all services that admission accepts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.hooks.readystatus import ready_of
from app.kube.base import Json
from app.llmkube.runtimes.registry import runtime
from tests.llmkube.inferenceservice.generated import models, services
from tests.llmkube.inferenceservice.world import applied, kinds, sync

pytestmark = pytest.mark.no_cover

RUNNING = {"replicas": 1, "readyReplicas": 1, "observedGeneration": 1}
quick = settings(max_examples=150)


@quick
@given(services, models)
def test_every_service_gets_its_children(parent: Json, model: Json) -> None:
    """Sync does not refuse an admitted service, and its answer passes the response checks (else a 500)."""
    answer = sync(parent, model)
    ready = ready_of(answer["status"]["conditions"])
    assert ready["reason"] != "InvalidSpec"
    refused = ", but a pod has" in ready["message"] and answer["status"]["phase"] == "Failed"
    if model["spec"].get("hardware", {}).get("accelerator") == "metal" or refused:
        assert answer["children"] == []
        return
    expected = ["Deployment", "Service"]
    autoscaling, server = parent["spec"].get("autoscaling"), runtime(parent["spec"].get("runtime", ""))
    if autoscaling and (autoscaling.get("metrics") or server.scraped) and not parent["spec"].get("suspend"):
        expected.append("HorizontalPodAutoscaler")
    assert kinds(answer) == expected
    assert {child["metadata"]["namespace"] for child in answer["children"]} == {"ns1"}


@quick
@given(services, models)
def test_it_comes_to_rest(parent: Json, model: Json) -> None:
    """After two rounds the answers converge: the third one changes nothing."""
    children: tuple[Json, ...] = ()
    answer: Json = {}
    for _ in range(2):
        answer = sync({**parent, "status": answer.get("status", {})}, model, children=children)
        children = applied(answer, children, Deployment=RUNNING)
    third = sync({**parent, "status": answer["status"]}, model, children=children)
    assert applied(third, children, Deployment=RUNNING) == children
    assert third["status"] == answer["status"]
    assert third["children"] == answer["children"]


@quick
@given(services, models, models)
def test_any_edit_comes_to_rest_too(parent: Json, first: Json, second: Json) -> None:
    """After any change of the Model the answers converge in two rounds, and the selector stays."""
    children = applied(sync(parent, first), Deployment=RUNNING)
    selectors = {str(c["spec"]["selector"]) for c in children if c["kind"] == "Deployment"}
    for _ in range(2):
        children = applied(sync(parent, second, children=children), children, Deployment=RUNNING)
        selectors |= {str(c["spec"]["selector"]) for c in children if c["kind"] == "Deployment"}
    assert applied(sync(parent, second, children=children), children, Deployment=RUNNING) == children
    assert len(selectors) <= 1


@quick
@given(services, models, st.sampled_from(["gone", "Pending", "Failed", "Downloading"]))
def test_no_model_no_loss(parent: Json, model: Json, trouble: str) -> None:
    """If the Model is missing or not ready, no child is removed or changed."""
    children = applied(sync(parent, model), Deployment=RUNNING)
    model["status"]["phase"] = trouble
    related = () if trouble == "gone" else (model,)
    answer = sync(parent, *related, children=children)
    assert applied(answer, children, Deployment=RUNNING) == children


@quick
@given(services, models)
def test_user_input_stays_data(parent: Json, model: Json) -> None:
    """The shell script does not depend on user input, and variables are unique."""
    for child in sync(parent, model)["children"]:
        if child["kind"] != "Deployment":
            continue
        pod = child["spec"]["template"]["spec"]
        for init in pod.get("initContainers", []):
            assert init["command"][:2] == ["sh", "-c"]
            assert "example.com" not in init["command"][2]
        server = pod["containers"][0]
        command = list(runtime(parent["spec"].get("runtime", "")).command)
        assert server.get("command", []) == (parent["spec"].get("command") or command)
        names = [variable["name"] for variable in server.get("env", [])]
        assert len(names) == len(set(names))
