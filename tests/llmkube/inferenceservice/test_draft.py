"""The draft model of speculative decoding (LK-B-09): a missing Model does not change running pods."""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.base import Json
from tests.llmkube.inferenceservice.world import applied, args, condition, kinds, model, service, sync
from tests.llmkube.objects import errors
from tests.llmkube.objects import service as written

RUNNING = {"readyReplicas": 1, "replicas": 1}
DRAFT_URL = "https://example.com/d.gguf"


def speculating(draft: str = "draft", **spec: Any) -> Json:
    return service(runtime="vllm", vllmConfig={"speculative": {"enabled": True, "model": draft}}, **spec)


def running(draft: Json) -> tuple[Json, ...]:
    """Return the children of a ready service whose draft Model is ``draft``."""
    return applied(sync(speculating(), model(), draft), Deployment=RUNNING)


@pytest.mark.parametrize("source", [DRAFT_URL, "/mnt/d.gguf", "pvc://claim/d.gguf"])
def test_pods_wait_for_the_draft_file(source: str) -> None:
    """No child is created before the draft file is downloaded, and Ready names the Model."""
    answer = sync(speculating(), model(), model("draft", phase="Downloading", source=source))
    assert kinds(answer) == []
    assert condition(answer, "Ready")["reason"] == "ModelNotReady"
    assert condition(answer, "Ready")["message"].startswith("draft Model draft is Downloading")
    assert answer["status"]["modelReady"] is True
    assert kinds(sync(speculating(), model(), model("draft", source=source))) == ["Deployment", "Service"]


def test_a_repository_is_not_waited_for() -> None:
    """vLLM fetches a repository itself, so the Model's phase does not matter."""
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
    """Pods are not replaced if the draft Model is missing or not ready; Ready names it."""
    before = running(model("draft", source=DRAFT_URL))
    answer = sync(speculating(), model(), *related, children=before)
    assert applied(answer, before, Deployment=RUNNING) == before
    assert answer["status"]["phase"] == "Ready"
    assert condition(answer, "Ready")["status"] == "False"
    assert condition(answer, "Ready")["message"].startswith("draft Model draft ")


def test_a_draft_that_is_being_deleted_keeps_the_pods() -> None:
    leaving = model("draft", source="org/small")
    before = running(leaving)
    leaving["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    answer = sync(speculating(), model(), leaving, children=before)
    assert applied(answer, before, Deployment=RUNNING) == before


def test_flags_of_a_missing_draft_are_left_out() -> None:
    """A name without a slash refers to a Model; a repository in its place takes effect at once."""
    assert "--speculative-config" not in args(sync(speculating(), model()))
    before = running(model("draft", source=DRAFT_URL))
    assert '--speculative-config {"model":"org/new",' in args(sync(speculating("org/new"), model(), children=before))


def test_keeps_an_unresolved_draft_model() -> None:
    """If the service started without the draft Model, other changes are still applied."""
    before = applied(sync(speculating(), model()), Deployment=RUNNING)
    answer = sync(speculating(image="new"), model(), children=before)
    assert kinds(answer) == ["Deployment", "Service"]
    assert "new" in str(answer["children"])


@pytest.mark.parametrize("record", ['{"kind":"Deployment","spec":[]}', '{"kind":"Other"}', "x"])
def test_ignores_a_broken_record(record: str) -> None:
    before = running(model("draft", source=DRAFT_URL))
    before[0]["metadata"]["annotations"] = {"metacontroller.k8s.io/last-applied-configuration": record}
    assert "--speculative-config" not in args(sync(speculating(), model(), children=before))


def test_a_missing_draft_model_has_a_condition() -> None:
    """The condition is True while the service starts, and after the Model was deleted (LK-B-08)."""
    before = sync(speculating(), model())
    invalid = condition(before, "SpeculativeInvalid")
    assert (invalid["status"], invalid["reason"]) == ("True", "SpeculativeInvalid")
    assert invalid["message"] == "draft Model draft does not exist in this namespace"
    assert invalid["message"] in condition(before, "Ready")["message"]
    ran = running(model("draft", source=DRAFT_URL))
    gone = sync(speculating(), model(), children=ran)
    assert condition(gone, "SpeculativeInvalid")["status"] == "True"
    assert condition(gone, "Ready")["reason"] == "SpeculativeInvalid"
    assert condition(gone, "Ready")["message"].count("draft Model draft") == 1


def test_the_condition_ends_with_its_cause() -> None:
    """The condition is absent without a failure, False once the Model exists, and removed with the setting."""
    there = model("draft", source=DRAFT_URL)
    assert condition(sync(speculating(), model(), there), "SpeculativeInvalid") == {}
    assert condition(sync(speculating("org/small"), model()), "SpeculativeInvalid") == {}
    status = sync(speculating(), model())["status"]
    repaired = sync(speculating(status=status), model(), there)
    assert condition(repaired, "SpeculativeInvalid")["status"] == "False"
    without = sync(service(runtime="vllm", status=status), model())
    assert condition(without, "SpeculativeInvalid") == {}


def test_speculation_without_a_draft_has_the_same_condition() -> None:
    answer = sync(service(runtime="vllm", vllmConfig={"speculative": {"enabled": True}}), model())
    invalid = condition(answer, "SpeculativeInvalid")
    assert (invalid["status"], invalid["reason"]) == ("True", "SpeculativeInvalid")
    assert "speculative.enabled requires model" in invalid["message"]
    assert "--num-speculative-tokens" not in args(answer)


# With llama.cpp a draft is a Model, or a file of the Model.


def drafting(**speculation: Any) -> Json:
    return service(speculativeDecoding={"type": "draft", **speculation})


def test_a_draft_model_of_llamacpp_is_mounted() -> None:
    answer = sync(
        drafting(draftModelRef="d", nDraftMax=16, pMin=1e-05), model(), model("d", source="pvc://claim/d.gguf")
    )
    wanted = "--spec-type draft-simple -md /draft-model/d.gguf --spec-draft-n-max 16 --spec-draft-p-min 1e-05 "
    assert wanted in args(answer)


@pytest.mark.parametrize(
    ("type_", "flag"), [("mtp", "draft-mtp"), ("ngram-mod", "ngram-mod"), ("draft-mtp", "draft-mtp")]
)
def test_types_without_a_draft(type_: str, flag: str) -> None:
    answer = sync(service(speculativeDecoding={"type": type_}), model())
    assert args(answer).endswith(f"--spec-type {flag} --metrics")


@pytest.mark.parametrize("type_", ["none", "disabled"])
def test_speculation_that_is_off_has_no_flags(type_: str) -> None:
    assert "--spec" not in args(sync(service(speculativeDecoding={"type": type_, "nDraftMax": 8}), model()))


def test_a_draft_file_lies_beside_the_models() -> None:
    files = model(source="hf://o/r", files=["m.gguf", "d.gguf"], status={"stagedFiles": ["m.gguf", "d.gguf"]})
    line = args(sync(drafting(draftModel="d.gguf"), files))
    directory = line.split("--model ")[1].split("/m.gguf")[0]
    assert f"-md {directory}/d.gguf " in line


def test_pods_that_download_also_download_the_draft() -> None:
    parent = drafting(draftModelRef="d")
    parent["spec"]["modelCache"] = {"persistence": "Ephemeral"}
    answer = sync(parent, model(), model("d", source=DRAFT_URL))
    pod = answer["children"][0]["spec"]["template"]["spec"]
    assert [step["name"] for step in pod["initContainers"]] == ["model-downloader", "draft-model-downloader"]
    assert [volume["name"] for volume in pod["volumes"]] == ["model-storage"]
    assert "-md /models/ns1-d.gguf " in args(answer)


@pytest.mark.parametrize(
    ("related", "phase", "reason"),
    [
        ((), "Failed", "ModelNotFound"),
        ((model("d", phase="Downloading", source=DRAFT_URL),), "Pending", "ModelNotReady"),
    ],
    ids=["missing", "not ready"],
)
def test_llamacpp_waits_for_its_draft_model(related: tuple[Json, ...], phase: str, reason: str) -> None:
    """No child is created, and existing children are kept."""
    answer = sync(drafting(draftModelRef="d"), model(), *related)
    assert kinds(answer) == []
    assert answer["status"]["phase"] == phase
    assert condition(answer, "Ready")["reason"] == reason
    assert condition(answer, "Ready")["message"].startswith("draft Model d ")
    before = applied(sync(drafting(draftModelRef="d"), model(), model("d", source=DRAFT_URL)), Deployment=RUNNING)
    kept = sync(drafting(draftModelRef="d"), model(), *related, children=before)
    assert applied(kept, before, Deployment=RUNNING) == before


def test_no_draft_model_without_the_models_volume() -> None:
    parent = drafting(draftModelRef="d")
    parent["spec"] |= {"skipModelInit": True, "extraArgs": ["-m", "/x.gguf"]}
    assert "--spec-type draft-simple -m /x.gguf" in args(sync(parent, model(), model("d", source=DRAFT_URL)))


@pytest.mark.parametrize(
    ("speculation", "words"),
    [
        ({"type": "draft"}, "this type requires draftModelRef or draftModel"),
        ({"type": "mtp", "draftModelRef": "d"}, "must only be set with a type that uses a draft model"),
        ({"type": "draft", "draftModelRef": "d", "draftModel": "d"}, "must not both be set"),
        ({"type": "draft", "draftModel": "../d"}, "draftModel: Invalid value"),
        ({"type": "draft", "draftModelRef": "D"}, "draftModelRef: Invalid value"),
        ({"type": "eagle"}, "Unsupported value"),
    ],
)
def test_rejects_speculation_that_cannot_work(speculation: Json, words: str) -> None:
    """Types, files and references of draft models must be valid and fit together (LK-V-I78, LK-V-I81)."""
    assert words in str(errors(written(speculativeDecoding=speculation)))
