"""``modelhooks status`` and ``explain --live``, with objects as a cluster could have them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

from app.cli.explain import from_cluster
from app.cli.status import table
from app.desk.cluster.live import Unreadable
from app.desk.cluster.offline import World
from app.desk.cluster.pods import next_command, pod_line
from app.desk.cluster.rows import list_rows
from app.desk.cluster.store import is_namespaced, plural
from app.desk.files.manifests import ManifestError
from app.kube.base import Json
from tests.cli.files import model, service
from tests.corpus.requests import UID


@dataclass
class FakeCluster:
    """A cluster as objects by plural; a plural that is missing is not installed."""

    kinds: dict[str, list[Json]] = field(default_factory=dict)

    def objects(self, api_version: str, kind: str, namespace: str | None) -> list[Json] | None:
        objects_of_kind = self.kinds.get(plural(kind))
        if objects_of_kind is None or (objects_of_kind and objects_of_kind[0]["kind"] != kind):
            return None
        namespaced = is_namespaced(api_version, kind)
        return [
            item for item in objects_of_kind if not namespaced or namespace in (None, item["metadata"]["namespace"])
        ]


def in_cluster(document: Json, **status: object) -> Json:
    uid = UID if document["kind"] == "InferenceService" else document["metadata"]["name"]
    metadata = {**document["metadata"], "namespace": "team", "generation": 1, "uid": uid}
    return {**document, "metadata": metadata, **({"status": status} if status else {})}


def conditions(status: str, message: str = "", generation: int = 1) -> list[Json]:
    return [
        {"type": "Ready", "status": status, "reason": "R", "message": message, "observedGeneration": generation},
    ]


CASES = {
    "ready": ({"conditions": conditions("True")}, ("True", "")),
    "not ready": ({"conditions": conditions("False", "no GPU\nmore")}, ("False", "no GPU")),
    "changed": ({"conditions": conditions("True", generation=0)}, ("Unknown", "changed, and")),
    "mended": ({"conditions": conditions("False", "no GPU", generation=0)}, ("Unknown", "changed, and")),
    "changed, of KServe": (
        {"conditions": [{"type": "Ready", "status": "False"}], "observedGeneration": 0},
        ("Unknown", "changed, and"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_row_has_ready_and_the_first_cause(case: tuple[Json, tuple[str, str]]) -> None:
    status, (ready, cause) = case
    (row,) = list_rows(FakeCluster({"models": [in_cluster(model("m"), **status)]}), None)
    assert (row.namespace, row.object, row.ready) == ("team", "model.inference.llmkube.dev/m", ready)
    assert row.cause.startswith(cause)
    assert bool(row.cause) == bool(cause)
    assert table([row]).splitlines()[0].split() == ["NAMESPACE", "OBJECT", "READY", "CAUSE"]


def controllers(*resources: str) -> list[Json]:
    return [{"kind": "CompositeController", "spec": {"parentResource": {"resource": r}}} for r in resources]


@pytest.mark.parametrize(
    ("declared", "words"),
    [(["models"], "--discovery-interval"), (["others"], "no CompositeController declares this kind")],
)
def test_reports_a_kind_without_controller(declared: list[str], words: str) -> None:
    """Metacontroller has not discovered the kind yet, or has no controller for it."""
    (row,) = list_rows(
        FakeCluster({"models": [in_cluster(model("m"))], "compositecontrollers": controllers(*declared)}), None
    )
    assert row.ready == "Unknown"
    assert words in row.cause


def test_an_object_that_is_newer_than_the_others() -> None:
    answered, new = in_cluster(model("a"), conditions=conditions("True")), in_cluster(model("b"))
    assert [row.cause for row in list_rows(FakeCluster({"models": [answered, new]}), None)] == ["", "not answered yet"]


def test_a_cluster_without_the_kinds() -> None:
    with pytest.raises(Unreadable, match="none of the eight kinds"):
        list_rows(FakeCluster(), None)


def pod(phase: str, **state: Json) -> Json:
    status = {"phase": phase, "containerStatuses": [{"name": "server", "state": state}]}
    return {"metadata": {"name": "p"}, "status": status}


COMMANDS = {
    "kubectl logs p -n team -c server --previous": pod("Running", waiting={"reason": "CrashLoopBackOff"}),
    "kubectl logs p -n team -c server": pod("Failed", terminated={"reason": "Error", "exitCode": 1}),
    "kubectl logs p -n team --all-containers": pod("Running", running={}),
    "kubectl describe pod p -n team": pod("Pending", waiting={"reason": "ImagePullBackOff"}),
    "kubectl describe model/m -n team": pod("Succeeded"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_next_command_shows_what_is_wrong(command: str) -> None:
    assert next_command("model/m", "team", [COMMANDS[command]]) == command


def test_a_pod_in_a_line() -> None:
    crashing = pod("Running", waiting={"reason": "CrashLoopBackOff"})
    assert pod_line(crashing) == "p: Running, not ready, server CrashLoopBackOff"


def test_explains_an_object_with_its_events() -> None:
    """Routine events and warnings of other objects are left out; related objects explain the values."""
    asked = in_cluster(service({"image": "server:1"}), conditions=conditions("False", "no GPU"))
    cluster = FakeCluster({"inferenceservices": [asked], "models": [in_cluster(model("m"))]})
    event = {
        "kind": "Event",
        "metadata": {"namespace": "team"},
        "type": "Warning",
        "reason": "Refused",
        "message": "no",
    }
    reference = {"kind": "InferenceService", "name": "s", "uid": UID}
    cluster.kinds["events"] = [
        {**event, "involvedObject": reference},
        {**event, "involvedObject": {**reference, "uid": "another"}},
        {**event, "involvedObject": reference, "type": "Normal"},
    ]
    explanation = from_cluster(cluster, ("inferenceservice", "s"), World("team"))
    assert (explanation["state"], explanation["why"]) == ("not ready (R)", ["no GPU"])
    assert explanation["events"] == ["InferenceService/s Refused: no"]
    assert explanation["next"] == "kubectl describe inferenceservice.inference.llmkube.dev/s -n team"
    assert any(row["source"] == "spec.image" for row in explanation["values"])


def test_explains_an_object_by_what_it_refers_to_in_other_namespaces() -> None:
    head = {"apiVersion": "serving.kserve.io/v1alpha2"}
    spec = {"model": {"uri": "hf://a/b"}, "baseRefs": [{"name": "shared"}]}
    asked = in_cluster({**head, "kind": "LLMInferenceService", "metadata": {"name": "s"}, "spec": spec})
    template = {"containers": [{"name": "main", "image": "engine:7"}]}
    kind = "LLMInferenceServiceConfig"
    config = in_cluster({**head, "kind": kind, "metadata": {"name": "shared"}, "spec": {"template": template}})
    config["metadata"]["namespace"] = "kserve"
    cluster = FakeCluster({"llminferenceservices": [asked], "llminferenceserviceconfigs": [config]})
    values = from_cluster(cluster, ("llminferenceservice", "s"), World("team"))["values"]
    sources = {str(row["value"]): row["source"] for row in values}
    assert sources["engine:7"] == "LLMInferenceServiceConfig/shared spec.template.containers[0].image"


@pytest.mark.parametrize(
    ("status", "cause"), [({}, "not answered yet"), (None, "changed, and its status does not reflect that yet")]
)
def test_an_object_that_is_not_answered_is_explained_as_status_says(status: Json | None, cause: str) -> None:
    """The explanation does not predict a state."""
    asked = in_cluster(service(), conditions=conditions("True"))
    asked = {**asked, "status": status} if status is not None else asked
    asked["metadata"]["generation"] = 7
    others = [in_cluster(service(name="t"), conditions=conditions("True"))]
    cluster = FakeCluster({"inferenceservices": [asked, *others], "models": [in_cluster(model("m"))]})
    row = next(row for row in list_rows(cluster, None) if row.object.endswith("/s"))
    explanation = from_cluster(cluster, ("inferenceservice", "s"), World("team"))
    assert (explanation["state"], explanation["why"]) == ("not known to be ready", [row.cause])
    assert cause in row.cause


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ((), "KIND NAME"),
        (("modle", "m"), 'unknown resource "modle"; did you mean "model"?'),
        (("pods", "x"), "known: models."),
        (("models", "x"), 'models "x" not found'),
    ],
)
def test_what_is_asked_for_has_to_be_there(names: tuple[str, ...], words: str) -> None:
    with pytest.raises(ManifestError, match=re.escape(words)):
        from_cluster(FakeCluster({"models": []}), names, World("team"))
