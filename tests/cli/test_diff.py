"""``modelhooks diff``: which children change, and whether pods restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from app.desk.differences import stops_all
from app.hooks.template import INPUTS
from app.kube.base import Json
from tests.cli.files import Command, Result, model, service
from tests.corpus.requests import DEPLOYMENT_RECORD


def differing(command: Command, old: list[Json], new: list[Json], *arguments: str) -> Result:
    return command("diff", command.file("old.yaml", *old), command.file("new.yaml", *new), *arguments)


def rows(result: Result) -> dict[str, Json]:
    """Return the changed children, by kind without version and group."""
    return {row["kind"].partition(".")[0]: row for row in result.json["children"]}


def compared(command: Command, old: Json, new: Json) -> dict[str, Json]:
    """Return the changed children for two specs of a service with the same Model."""
    result = differing(command, [model(), service(old)], [model(), service(new)], "--output", "json")
    changed = rows(result)
    assert result.status == (1 if changed else 0)
    return changed


def test_the_same_files_change_nothing(command: Command) -> None:
    """The exit status is 0."""
    result = differing(command, [model(), service()], [model(), service({"replicas": 1})])
    assert (result.status, result.out) == (0, "Nothing changes.\n")


def test_a_change_of_the_pod_restarts_it(command: Command) -> None:
    """The row has the field with its old and its new value."""
    changed = compared(command, {"image": "a:1"}, {"image": "a:2"})
    assert list(changed) == ["Deployment"]
    assert (changed["Deployment"]["restart"], changed["Deployment"]["effect"]) == (True, "restart")
    (change,) = changed["Deployment"]["fields"]
    assert change["path"].endswith("containers[llama-server].image")
    assert (change["old"], change["new"]) == ("a:1", "a:2")


def gpu_service(replicas: int, image: str, limits: Json) -> Json:
    container = {"name": "main", "image": image, "resources": {"limits": limits}}
    spec = {"model": {"uri": "hf://Qwen/Qwen3-8B", "name": "q"}, "replicas": replicas}
    spec["template"] = {"containers": [container]}
    head = {"apiVersion": "serving.kserve.io/v1alpha2", "kind": "LLMInferenceService", "metadata": {"name": "one"}}
    return {**head, "spec": spec}


@pytest.mark.parametrize(
    ("replicas", "limits", "noted"),
    [
        (1, {"nvidia.com/gpu": "2"}, True),
        (3, {"amd.com/gpu": "1"}, True),
        (4, {"nvidia.com/gpu": "1"}, False),
        (1, {"cpu": "8"}, False),
        (0, {"nvidia.com/gpu": "1"}, False),
    ],
)
def test_a_rollout_that_needs_a_second_device_is_told_beforehand(
    command: Command, replicas: int, limits: Json, noted: bool
) -> None:
    """With fewer than four replicas a Deployment takes no old pod away before a new one is ready."""
    old, new = ([gpu_service(replicas, image, limits)] for image in ("a:1", "a:2"))
    text = differing(command, old, new).out
    assert ("the new pod starts before an old one ends" in text) is noted
    if noted:
        ((name, count),) = limits.items()
        assert f"({count} {name} for a pod): without free ones set replicas to 0 and back" in text
        row = rows(differing(command, old, new, "--output", "json"))["Deployment"]
        assert row["note"] in text


def test_a_service_that_takes_its_old_pod_away_first_has_no_note(command: Command) -> None:
    old, new = ([model(), service({"image": image, "resources": {"gpu": 1}})] for image in ("a:1", "a:2"))
    result = differing(command, old, new)
    assert "recreates: all pods stop before new ones start" in result.out
    assert "note:" not in result.out


def test_more_replicas_restart_nothing(command: Command) -> None:
    """Scaling has no effect on running pods."""
    changed = compared(command, {"replicas": 1}, {"replicas": 3})
    assert (changed["Deployment"]["effect"], changed["Deployment"]["restart"]) == ("scale", False)


def test_a_change_of_a_service_restarts_no_pod(command: Command) -> None:
    """The type of a Service changes without an effect on pods."""
    changed = compared(command, {}, {"endpoint": {"type": "NodePort"}})
    assert {kind: row["effect"] for kind, row in changed.items()} == {"Service": "none"}


def test_autoscaling_adds_a_child(command: Command) -> None:
    """Removing autoscaling deletes it."""
    scaled: Json = {"autoscaling": {"maxReplicas": 3}}
    assert compared(command, {}, scaled)["HorizontalPodAutoscaler"]["action"] == "create"
    assert compared(command, scaled, {})["HorizontalPodAutoscaler"]["action"] == "delete"


def test_prints_the_effect_of_each_change(command: Command) -> None:
    """One line per child, one per field, and a summary."""
    result = differing(command, [model(), service({"image": "a:1"})], [model(), service({"image": "a:2"})])
    lines = result.out.splitlines()
    assert lines[0] == "change Deployment default/s: pods restart"
    assert lines[1].endswith('containers[llama-server].image: "a:1" → "a:2"')
    assert lines[-1] == "1 child changes; the pods of default/s restart."


GPU: Json = {"resources": {"gpu": 1}}


def test_says_that_all_pods_stop_first(command: Command) -> None:
    """A Deployment with GPUs is recreated: there may be no second GPU for a new pod beside the old one."""
    old, new = ([model(), service({**GPU, "image": image})] for image in ("a:1", "a:2"))
    result = differing(command, old, new)
    assert result.out.startswith("change Deployment default/s: recreates: all pods stop before new ones start\n")
    assert result.out.endswith("1 child changes; all pods of default/s stop before new ones start.\n")
    row = rows(differing(command, old, new, "--output", "json"))["Deployment"]
    assert (row["effect"], row["restart"]) == ("recreate", True)


STRATEGIES: dict[str, tuple[Json, bool]] = {
    "Recreate": ({"replicas": 3, "strategy": {"type": "Recreate"}}, True),
    "the defaults": ({"replicas": 1}, False),
    "one of two": ({"replicas": 2, "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}, False),
    "one of one": ({"replicas": 1, "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}, True),
    "half of them": ({"replicas": 2, "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "50%"}}}, False),
    "all of them": ({"replicas": 9, "strategy": {"rollingUpdate": {"maxSurge": "0%", "maxUnavailable": "100%"}}}, True),
    "new ones first": ({"replicas": 1, "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}}, False),
    "a single group": ({"replicas": 1, "rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": 1}}}, True),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_may_leave_no_pod(name: str) -> None:
    spec, expected = STRATEGIES[name]
    assert stops_all(spec) is expected


def test_prints_a_table_for_a_pull_request(command: Command) -> None:
    result = differing(
        command, [model(), service({"image": "a:1"})], [model(), service({"image": "a:2"})], "-o", "markdown"
    )
    assert result.out.splitlines() == [
        "1 child changes; the pods of default/s restart.",
        "",
        "| Child | Action | Effect |",
        "|---|---|---|",
        "| Deployment default/s | change | pods restart |",
        "",
        "<details><summary>Fields</summary>",
        "",
        "```",
        'Deployment default/s: spec.template.spec.containers[llama-server].image: "a:1" → "a:2"',
        "```",
        "",
        "</details>",
    ]


def test_what_a_cluster_keeps_is_kept(command: Command) -> None:
    """A service whose Model is missing keeps its children, so the Deployment does not change."""
    result = differing(command, [model(), service()], [service()], "--output", "json")
    assert "Deployment" not in rows(result)


def test_a_service_that_is_gone_takes_its_children_along(command: Command) -> None:
    """Garbage collection deletes them."""
    result = differing(command, [model(), service()], [model()], "--output", "json")
    assert {row["action"] for row in rows(result).values()} == {"delete"}
    assert rows(result)["Deployment"]["effect"] == "stop"


def test_a_change_of_the_model_reaches_its_services(command: Command) -> None:
    """They change although their own fields did not."""
    new = model(spec={"source": "https://models.example.com/m.gguf", "hardware": {"gpu": {"count": 2}}})
    changed = rows(differing(command, [model(), service()], [new, service()], "--output", "json"))
    assert changed["Deployment"]["restart"]


def test_an_invalid_object_has_no_answer(command: Command) -> None:
    """It would change nothing; the error is printed."""
    result = differing(command, [model(), service()], [model(), service({"replicas": 99})])
    assert (result.status, result.out) == (2, "")
    assert "spec.replicas" in result.err


def answer(**over: Any) -> Json:
    return {"status": {}, "children": [{**DEPLOYMENT_RECORD, **over}]}


def test_recorded_answers_are_compared_as_they_are(command: Command) -> None:
    """For example answers of two releases."""
    spec = orjson.loads(orjson.dumps(DEPLOYMENT_RECORD["spec"]))
    spec["template"]["spec"]["containers"][0]["image"] = "other:2"
    result = command("diff", command.file("a.json", answer()), command.file("b.json", answer(spec=spec)))
    assert result.status == 1
    assert 'spec.template.spec.containers[kept].image: "kept:1" → "other:2"' in result.out
    assert command("diff", command.file("a.json", answer()), command.file("b.json", answer())).status == 0


def test_what_render_printed_is_a_recorded_answer(command: Command) -> None:
    """The output of an older release can be saved and compared."""
    manifests = command.file("all.yaml", model(), service())
    rendered = command("render", manifests, "--output", "json")
    files = [command.file("before.json", rendered.json), command.file("after.json", rendered.json)]
    assert command("diff", *files).status == 0
    rendered.json[1]["children"].clear()
    assert command("diff", files[0], command.file("after.json", [rendered.json[0]])).status == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"children": [{"kind": "x"}]}, {"children": []}),
        ({"children": []}, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},) * 2,
    ],
)
def test_what_cannot_be_compared(command: Command, old: Json, new: Json) -> None:
    """The exit status is 2, with a reason."""
    result = command("diff", command.file("a.json", old), command.file("b.json", new))
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("modelhooks diff: ")


def test_related_objects_may_be_in_other_files(command: Command) -> None:
    """Files of --with are added to both sides."""
    files = [command.file("old.yaml", service()), command.file("new.yaml", service({"image": "a:2"}))]
    assert command("diff", *files).status == 0  # without its Model, a service has no children yet
    result = command("diff", *files, "--with", command.file("m.yaml", model()))
    assert (result.status, "pods restart" in result.out) == (1, True)


def test_what_a_release_changes_waits(command: Command) -> None:
    """A template that differs although its inputs are equal waits for the next change of the user, if it may."""

    def answer(image: str, inputs: str, **pod: Any) -> Json:
        child: Json = orjson.loads(orjson.dumps(DEPLOYMENT_RECORD))
        child["metadata"]["annotations"] = {INPUTS: inputs}
        child["spec"]["template"]["spec"]["containers"][0]["image"] = image
        child["spec"]["template"]["spec"] |= pod
        return {"status": {}, "children": [child]}

    old = command.file("old.json", answer("a:1", "x"))
    same = command("diff", old, command.file("new.json", answer("a:2", "x")))
    assert ": waits for the next change to the pods" in same.out
    assert same.out.endswith("1 child changes; no running pod restarts.\n")
    other = command("diff", old, command.file("new.json", answer("a:2", "y")))
    assert other.out.endswith("restart.\n")
    assert "annotations" not in other.out
    without_host = command("diff", command.file("host.json", answer("a:1", "x", hostNetwork=True)), old)
    assert without_host.out.endswith("restart.\n"), "a kept template has no more rights than the plan"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n", "the files have objects of kind ConfigMap"),
        ("replicas: 1\n", "the files have no manifest (.yaml, .yml or .json); passed over: "),
        ("a: [\n", "error: "),
    ],
)
def test_says_what_it_read_where_nothing_is_served(command: Command, text: str, reason: str) -> None:
    new = command.file("new.yaml", model(), service())
    old = Path(new).with_name("old.yaml")
    old.write_text(text)
    result = command("diff", str(old), new)
    assert result.status == 2
    assert str(old) in result.err
    assert reason in result.err


def test_what_no_cluster_holds_is_passed_over(command: Command) -> None:
    """A kustomization among the files is not an object."""
    kustomization = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": ["a.yaml"]}
    old = command.file("old.yaml", model(), service(), kustomization)
    new = command.file("new.yaml", model(), service({"contextSize": 8192}), kustomization)
    assert [row["kind"] for row in command("diff", old, new, "-o", "json").json["children"]] == ["Deployment.apps/v1"]
