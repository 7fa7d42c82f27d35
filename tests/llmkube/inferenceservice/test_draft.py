"""The proposing model of speculative decoding (LK-B-09): what runs is never changed by a Model that is away."""

from __future__ import annotations

from typing import Any

import pytest

from tests.llmkube.inferenceservice.world import applied, args, condition, kinds, model, service, sync

Json = dict[str, Any]

RUNNING = {"readyReplicas": 1, "replicas": 1}
DRAFT_URL = "https://example.com/d.gguf"


def speculating(draft: str = "draft", **spec: Any) -> Json:
    return service(runtime="vllm", vllmConfig={"speculative": {"enabled": True, "model": draft}}, **spec)


def running(draft: Json) -> tuple[Json, ...]:
    """The children of a service whose proposing Model is ``draft``, up and ready."""
    return applied(sync(speculating(), model(), draft), Deployment=RUNNING)


@pytest.mark.parametrize("source", [DRAFT_URL, "/mnt/d.gguf", "pvc://claim/d.gguf"])
def test_pods_wait_for_the_proposers_file(source: str) -> None:
    """Nothing is made before the file is where the pods would look for it, and Ready says what is waited for."""
    answer = sync(speculating(), model(), model("draft", phase="Downloading", source=source))
    assert kinds(answer) == []
    assert condition(answer, "Ready")["reason"] == "ModelNotReady"
    assert condition(answer, "Ready")["message"].startswith("the proposing Model draft is Downloading")
    assert answer["status"]["modelReady"] is True
    assert kinds(sync(speculating(), model(), model("draft", source=source))) == ["Deployment", "Service"]


def test_a_repository_is_not_waited_for() -> None:
    """vLLM fetches it itself, so the Model's phase says nothing."""
    assert '--speculative-config {"model":"org/small",' in args(
        sync(speculating(), model(), model("draft", phase="", source="org/small"))
    )


@pytest.mark.parametrize(
    "related",
    [
        (),
        (model("draft", phase="Downloading", source=DRAFT_URL, status={"cacheKey": ""}),),
        (model("draft", phase="Downloading", source="https://example.com/other.gguf"),),
        (model("draft", source=DRAFT_URL, format="unknown"),),
    ],
    ids=["gone", "downloads again", "new source", "broken"],
)
def test_what_runs_goes_on(related: tuple[Json, ...]) -> None:
    """No pod is replaced because the proposing Model is away; Ready names it."""
    before = running(model("draft", source=DRAFT_URL))
    answer = sync(speculating(), model(), *related, children=before)
    assert applied(answer, before, Deployment=RUNNING) == before
    assert answer["status"]["phase"] == "Ready"
    assert condition(answer, "Ready")["status"] == "False"
    assert condition(answer, "Ready")["message"].startswith("the proposing Model draft ")


def test_a_proposer_that_is_being_deleted_keeps_the_pods() -> None:
    leaving = model("draft", source="org/small")
    before = running(leaving)
    leaving["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    answer = sync(speculating(), model(), leaving, children=before)
    assert applied(answer, before, Deployment=RUNNING) == before


def test_a_text_that_names_no_model_is_passed_on() -> None:
    """A new service gets the text as it is; an edit to a repository is no missing Model."""
    assert '--speculative-config {"model":"draft",' in args(sync(speculating(), model()))
    before = running(model("draft", source=DRAFT_URL))
    assert '--speculative-config {"model":"org/new",' in args(sync(speculating("org/new"), model(), children=before))


def test_a_text_that_was_passed_on_stays() -> None:
    """Without a Model of that name, and without a change, nothing is held up."""
    before = applied(sync(speculating(), model()), Deployment=RUNNING)
    answer = sync(speculating(image="new"), model(), children=before)
    assert kinds(answer) == ["Deployment", "Service"]
    assert "new" in str(answer["children"])


@pytest.mark.parametrize("record", ['{"kind":"Deployment","spec":[]}', '{"kind":"Other"}', "x"])
def test_a_record_that_users_broke_is_none(record: str) -> None:
    before = running(model("draft", source=DRAFT_URL))
    before[0]["metadata"]["annotations"] = {"metacontroller.k8s.io/last-applied-configuration": record}
    assert '--speculative-config {"model":"draft",' in args(sync(speculating(), model(), children=before))


def test_a_proposer_that_does_not_exist_has_a_condition_of_its_own() -> None:
    """It says so while the service starts, while its pods run and after the Model was deleted (LK-B-08)."""
    before = sync(speculating(), model())
    invalid = condition(before, "SpeculativeInvalid")
    assert (invalid["status"], invalid["reason"]) == ("True", "SpeculativeInvalid")
    assert invalid["message"] == "the proposing Model draft does not exist in this namespace"
    assert invalid["message"] in condition(before, "Ready")["message"]
    ran = running(model("draft", source=DRAFT_URL))
    gone = sync(speculating(), model(), children=ran)
    assert condition(gone, "SpeculativeInvalid")["status"] == "True"
    assert condition(gone, "Ready")["reason"] == "SpeculativeInvalid"
    assert condition(gone, "Ready")["message"].count("the proposing Model draft") == 1


def test_the_condition_ends_with_its_cause() -> None:
    """Absent where nothing was ever wrong; False once the Model is there; gone with the wish for one."""
    there = model("draft", source=DRAFT_URL)
    assert condition(sync(speculating(), model(), there), "SpeculativeInvalid") == {}
    assert condition(sync(speculating("org/small"), model()), "SpeculativeInvalid") == {}
    status = sync(speculating(), model())["status"]
    repaired = sync(speculating(status=status), model(), there)
    assert condition(repaired, "SpeculativeInvalid")["status"] == "False"
    without = sync(service(runtime="vllm", status=status), model())
    assert condition(without, "SpeculativeInvalid") == {}
