"""``modelhooks render``: the children of manifests, without a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from app.kube.base import Json
from tests.cli.files import Command, model, service
from tests.kserve import objects as kserve


def kinds(documents: list[Json]) -> list[str]:
    return [document.get("kind", "status") for document in documents]


@pytest.mark.parametrize("more", [[], ["--status"]])
def test_children_are_yaml(command: Command, more: list[str]) -> None:
    """Each child is one document that can be applied; a status is a comment."""
    result = command("render", command.file("all.yaml", model(), service()), *more)
    documents = [document for document in yaml.load_all(result.out, yaml.CSafeLoader) if document is not None]
    assert result.status == 0
    assert all(document["apiVersion"] and document["kind"] for document in documents)
    assert ("#   phase: Ready" in result.out) == bool(more)
    assert {"Job", "PersistentVolumeClaim", "Deployment", "Service"} <= set(kinds(documents))
    assert "# child of InferenceService/s" in result.out


def test_nothing_of_the_cluster_in_memory_shows(command: Command) -> None:
    """Neither owner nor record is printed."""
    out = command("render", command.file("all.yaml", model(), service())).out
    assert not any(word in out for word in ("controller-uid", "last-applied", "uid:", "generation:"))


def test_the_same_files_render_the_same(command: Command) -> None:
    file = command.file("all.yaml", model(), service())
    assert command("render", file).out == command("render", file).out


def test_related_objects_may_be_in_other_files(command: Command) -> None:
    """Children of related objects are not printed."""
    result = command(
        "render", command.file("s.yaml", service()), "--with", command.file("m.yaml", model()), "--output", "json"
    )
    (answer,) = result.json
    assert answer["parent"] == "InferenceService/s"
    assert "Deployment" in kinds(answer["children"])
    assert answer["status"]["phase"] == "Ready"


def test_components_that_are_not_installed_make_no_children(command: Command) -> None:
    """As in a cluster without their kinds."""
    file = command.file("all.yaml", model(), service())
    every = command("render", file, "--output", "json").json[1]["children"]
    fewer = command("render", file, "--without", "podmonitor", "--output", "json").json[1]["children"]
    assert set(kinds(every)) - set(kinds(fewer)) == {"PodMonitor"}


def test_an_invalid_object_has_a_status_only(command: Command) -> None:
    """As in a cluster."""
    result = command("render", command.file("all.yaml", model(), service({"replicas": 99})), "--output", "json")
    answer = result.json[1]
    assert result.status == 1
    assert "spec.replicas: Invalid value: 99" in result.err
    assert answer["children"] == []
    assert next(c["reason"] for c in answer["status"]["conditions"] if c["type"] == "Ready") == "InvalidSpec"


@pytest.mark.parametrize(
    ("documents", "reason"),
    [
        ([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}], "the files have objects of kind Pod"),
        ([{**model(), "metadata": {}}], "metadata.name: Required value"),
        ([{**model(), "metadata": {"name": "m", "labels": []}}], "metadata.labels"),
    ],
)
def test_what_cannot_be_rendered(command: Command, documents: list[Json], reason: str) -> None:
    """There is a reason, and no output."""
    result = command("render", command.file("all.yaml", *documents))
    assert (bool(result.status), result.out) == (True, "")
    assert reason in result.err


def test_an_object_that_is_nested_too_deeply(command: Command) -> None:
    """The field is named, as in admission."""
    deep: Json = {}
    for _ in range(70):
        deep = {"a": deep}
    result = command("render", command.file("all.json", service({"tolerations": [deep]})))
    assert result.status == 1
    assert "spec.tolerations: Invalid value" in result.err
    assert "nested too deeply, at most 64 levels" in result.err


def test_an_object_that_can_have_no_children(command: Command) -> None:
    """The reason is on standard error, and the exit status is 1; a stopped object is not an error."""
    uri = {"uri": "hf://facebook/opt-125m"}
    lost = kserve.service(model=uri, baseRefs=[{"name": "missing"}])
    result = command("render", command.file("lost.yaml", lost))
    assert (result.status, result.out) == (1, "")
    assert "LLMInferenceService/demo has no children: LLMInferenceServiceConfig 'missing' is neither" in result.err
    stopped = kserve.service(model=uri, notes={"serving.kserve.io/stop": "true"})
    result = command("render", "--without", "installation", command.file("stopped.yaml", stopped))
    assert result == (0, "", "")


def written(command: Command, text: str) -> str:
    file = command.file("s.yaml")
    Path(file).write_text(text)
    return file


@pytest.mark.parametrize(
    ("before", "after"),
    [("spec:\n", "spec:\n  replicaCount: 2\n"), ("spec:\n", "resource: {}\nspec:\n"), ("name: s\n", "name: s_1\n")],
    ids=["unknown field", "beside the spec", "name"],
)
def test_an_object_with_an_error_has_one_answer(command: Command, before: str, after: str) -> None:
    """Also for errors that a hook never sees: the API server drops the field, or refuses the object."""
    text = yaml.safe_dump(service(), sort_keys=False).replace(before, after, 1)
    files = [command.file("m.yaml", model()), written(command, text)]
    errors = command("validate", *files).out.splitlines()
    assert len(errors) == 1
    rendered = command("render", *files, "--status")
    assert (rendered.status, errors[0] in rendered.err) == (1, True)
    assert "# child of Model/m" in rendered.out
    assert "# child of InferenceService" not in rendered.out
    assert "reason: InvalidSpec" in rendered.out
    fit = command("fit", *files)
    assert fit.status in (1, 2)
    assert errors[0] in fit.err
    assert "InferenceService" not in fit.out
    images = command("images", *files)
    assert (images.status, "llama.cpp" in images.out) == (1, False)
    assert ": invalid" in command("explain", *files).out


def test_a_muted_error_hides_no_child(command: Command) -> None:
    text = yaml.safe_dump(service(), sort_keys=False)
    muted = text.replace("spec:\n", "spec:\n  replicaCount: 2  # modelhooks: ignore unknown-field\n", 1)
    files = [command.file("m.yaml", model()), written(command, muted)]
    assert command("validate", *files).status == 0
    rendered = command("render", *files)
    assert (rendered.status, "# child of InferenceService/s" in rendered.out) == (0, True)
