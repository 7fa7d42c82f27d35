"""``modelhooks validate``: every finding with its place, also across objects."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from app.kube.base import Json
from tests.cli.files import Command, model, service
from tests.corpus.requests import API_VERSION
from tests.repository.test_readme import ROOT

BROKEN = service({"replicas": 99, "replcias": 1, "env": [{"name": "A", "vale": "x"}]})


def test_every_finding_has_its_place(command: Command) -> None:
    """Mistakes of all layers are reported together; unknown fields are errors, as in kubectl."""
    result = command("validate", command.file("all.yaml", BROKEN))
    lines = [line.partition("all.yaml:")[2].split(":")[:3] for line in result.out.splitlines()]
    assert result.status == 1
    assert lines == [
        ["7", "3", " error"],
        ["8", "3", " error"],
        ["11", "5", " error"],
    ]
    assert 'unknown field "spec.replcias", did you mean "replicas"?' in result.out
    assert "1 object checked, 3 errors, 0 warnings" in result.err


def test_a_child_as_kubectl_prints_it_is_valid(command: Command) -> None:
    """Metacontroller's own annotation is refused on objects of users alone."""
    owner = {"apiVersion": "example.com/v1", "kind": "Fleet", "name": "x", "uid": "u", "controller": True}
    child = service({})
    child["metadata"] |= {
        "annotations": {"metacontroller.k8s.io/last-applied-configuration": "{}"},
        "ownerReferences": [owner],
    }
    assert command("validate", command.file("child.yaml", child)).status == 0
    del child["metadata"]["ownerReferences"]
    assert "reserved for Metacontroller" in command("validate", command.file("own.yaml", child)).out


NEW_FIELDS: Json = {
    "apiVersion": "serving.kserve.io/v1alpha2",
    "kind": "LLMInferenceService",
    "metadata": {"name": "chat"},
    "spec": {
        "model": {"uri": "hf://Qwen/Qwen3-8B", "name": "q"},
        "template": {
            "hostUsers": False,
            "hostnameOverride": "chat",
            "containers": [{"name": "main", "lifecycle": {"stopSignal": "SIGTERM"}}],
        },
    },
}


@pytest.mark.parametrize(
    ("release", "dropped"),
    [
        ("1.30", {"hostUsers", "hostnameOverride", "stopSignal"}),
        ("v1.34.2", {"hostnameOverride", "stopSignal"}),
        ("1.37", {"stopSignal"}),
        ("", {"stopSignal"}),
    ],
)
def test_what_the_release_of_the_cluster_drops_is_a_warning(
    command: Command, monkeypatch: pytest.MonkeyPatch, release: str, dropped: set[str]
) -> None:
    """By the option, and by the setting that admission reads."""
    file = command.file("chat.yaml", NEW_FIELDS)
    by_option = command("validate", file, "--output", "json", *(["--kubernetes", release] if release else []))
    monkeypatch.setenv("MODELHOOKS_KUBERNETES_RELEASE", release)
    for result in (by_option, command("validate", file, "--output", "json")):
        dropped_fields = [f["path"].rpartition(".")[2] for f in result.findings if f["id"] == "dropped-field"]
        assert {*dropped_fields} == dropped
        assert len(dropped_fields) == len(dropped)


NEW_VALUES: Json = {
    "apiVersion": "inference.llmkube.dev/v1alpha1",
    "kind": "InferenceService",
    "metadata": {"name": "chat"},
    "spec": {"modelRef": "chat", "env": [{"name": "OLD", "value": "x"}, {"name": "2FA", "value": "x"}]},
}
NEW_POD_VALUES: Json = {
    "apiVersion": "serving.kserve.io/v1alpha2",
    "kind": "LLMInferenceService",
    "metadata": {"name": "chat"},
    "spec": {
        "model": {"uri": "hf://Qwen/Qwen3-8B", "name": "q"},
        "template": {
            "dnsConfig": {"searches": ["example.com", "a_b.example.com"]},
            "initContainers": [{"name": "first", "image": "i", "restartPolicy": "Never"}],
            "containers": [{"name": "main", "lifecycle": {"preStop": {"sleep": {"seconds": 0}}}}],
        },
    },
}


@pytest.mark.parametrize(
    ("release", "newer"),
    [
        ("1.30", {"name", "searches[1]", "restartPolicy", "seconds"}),
        ("1.32", {"searches[1]", "restartPolicy", "seconds"}),
        ("1.34", {"restartPolicy"}),
        ("1.35", set()),
        ("", set()),
    ],
)
def test_what_the_release_of_the_cluster_refuses_is_a_warning(command: Command, release: str, newer: set[str]) -> None:
    files = [command.file(f"{value['kind']}.yaml", value) for value in (NEW_VALUES, NEW_POD_VALUES)]
    option = ["--kubernetes", release] if release else []
    result = command("validate", *files, "--output", "json", *option)
    values = [f["path"].rpartition(".")[2] for f in result.findings if f["id"] == "newer-value"]
    assert (len(values), {*values}) == (len(newer), newer)


def test_an_image_volume_that_the_cluster_drops_is_a_warning(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the server would start without its model; the user wrote no volume, but an address."""
    monkeypatch.setenv("MODELHOOKS_LLMAZ_IMAGE_VOLUMES", "true")
    example = str(ROOT / "examples/llmaz/sources.yaml")
    assert "volumes[1].image: the API server may drop it" in command("validate", example, "--kubernetes", "1.34").out
    assert "dropped-field" not in command("validate", example, "--kubernetes", "1.35").out


IMAGE: Json = {"name": "weights", "image": {"pullPolicy": "Always"}}
MOUNTS: Json = {"volumeMounts": [{"name": "weights", "mountPath": "/weights"}]}
WITHOUT_REFERENCE: dict[str, Json] = {
    "LLMInferenceService": {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "model": {"uri": "hf://Qwen/Qwen3-8B", "name": "q"},
        "template": {"containers": [{"name": "main", **MOUNTS}], "volumes": [IMAGE]},
    },
    "InferenceService": {
        "apiVersion": "inference.llmkube.dev/v1alpha1",
        "modelRef": "chat",
        "extraVolumes": [IMAGE],
        "extraVolumeMounts": MOUNTS["volumeMounts"],
    },
}


@pytest.mark.parametrize("kind", WITHOUT_REFERENCE)
@pytest.mark.parametrize(
    ("release", "severity"), [("1.36", "warning"), ("1.37", "error"), ("1.40", "error"), ("", "warning")]
)
def test_an_image_volume_without_a_name_is_an_error_where_the_api_server_refuses_it(
    command: Command, monkeypatch: pytest.MonkeyPatch, kind: str, release: str, severity: str
) -> None:
    """Older releases take it in a template, and refuse each pod."""
    spec = {**WITHOUT_REFERENCE[kind]}
    head = {"apiVersion": spec.pop("apiVersion"), "kind": kind, "metadata": {"name": "chat"}}
    file = command.file("chat.yaml", {**head, "spec": spec})
    by_option = command("validate", file, "--output", "json", *(["--kubernetes", release] if release else []))
    monkeypatch.setenv("MODELHOOKS_KUBERNETES_RELEASE", release)
    for result in (by_option, command("validate", file, "--output", "json")):
        found = [f["level"] for f in result.findings if f["path"].endswith("image.reference")]
        assert found == [severity]
    rendered = command("render", file)
    assert ("image.reference: Required value" in rendered.err) == (severity == "error")


def test_render_refuses_what_validate_does(command: Command) -> None:
    """It looks for errors alone, without the warnings among which unknown fields are."""
    rejected = sorted(map(str, (ROOT / "examples").glob("*/rejected/*.yaml")))
    for file in [*rejected, command.file("all.yaml", BROKEN)]:
        errors = [f["message"] for f in command("validate", file, "--output", "json").findings if f["level"] == "error"]
        refused = command("render", file).err
        assert errors
        assert [message for message in errors if message not in refused] == []


def test_a_release_that_is_none_is_refused(command: Command) -> None:
    result = command("validate", command.file("chat.yaml", NEW_FIELDS), "--kubernetes", "newest")
    assert (result.status, "'newest' is no release of Kubernetes such as 1.34" in result.err) == (2, True)


def test_findings_as_json(command: Command) -> None:
    """Each finding is one object."""
    result = command("validate", command.file("all.yaml", BROKEN), "--output", "json")
    assert [finding["path"] for finding in result.findings][:2] == ["spec.replicas", "spec.replcias"]
    assert result.findings[1]["message"] == 'unknown field "spec.replcias", did you mean "replicas"?'


def test_findings_as_annotations_of_a_pull_request(command: Command) -> None:
    """GitHub's format, with line ends escaped."""
    unused = service({"reasoningBudgetMessage": "x"}, name="t")
    lines = command("validate", command.file("all.yaml", BROKEN, unused), "--output", "github").out.splitlines()
    assert lines[0].startswith("::error file=")
    assert ",line=7,col=3,title=invalid-value::spec.replicas: " in lines[0]
    assert lines[-1].startswith("::warning ")


def test_findings_as_sarif(command: Command) -> None:
    document = command("validate", command.file("all.yaml", BROKEN), "--output", "sarif").json
    results = document["runs"][0]["results"]
    assert document["version"] == "2.1.0"
    assert results[0]["locations"][0]["physicalLocation"]["region"] == {"startLine": 7, "startColumn": 3}
    assert [result["level"] for result in results] == ["error"] * 3


def test_a_version_that_is_not_served(command: Command) -> None:
    """It is an error; objects of other kinds are ignored."""
    documents = [{**model(), "apiVersion": "inference.llmkube.dev/v9"}, {"apiVersion": "v1", "kind": "Pod"}]
    result = command("validate", command.file("all.yaml", *documents))
    assert result.status == 1
    assert "Model is served as inference.llmkube.dev/v1alpha1 only" in result.out
    assert len(result.out.splitlines()) == 1


GPU = {"hardware": {"gpu": {"count": 2}}}
SOURCE = {"source": "https://models.example.com/m.gguf"}

TOGETHER: dict[str, tuple[Json, Json, str]] = {
    "V-X03": ({"source": "org/repo", "format": "safetensors"}, {"runtime": "vllm"}, "skipModelInit"),
    "V-X04": (SOURCE, {"runtime": "tgi"}, "tgi only serves Hugging Face repositories"),
    "V-X05": (
        {**SOURCE, **GPU},
        {"runtime": "vllm", "vllmConfig": {"tensorParallelSize": 4}},
        "tensorParallelSize is 4",
    ),
    "V-X06": ({**SOURCE, **GPU}, {"image": "x", "resources": {"gpu": 1}}, "spec.resources.gpu: no effect"),
    "V-X11": ({**SOURCE, "hardware": {"accelerator": "metal"}}, {"replicas": 3}, "one process"),
    "V-M16": ({**SOURCE, "format": "safetensors"}, {}, "cannot load format safetensors"),
    "V-I40": (
        {**SOURCE, "hardware": {"gpu": {"count": 2, "vendor": "amd"}}},
        {},
        "default image of llamacpp uses the CPU only",
    ),
    "V-I42": (SOURCE, {"flashAttention": True}, "spec.flashAttention: no effect without a GPU"),
    "V-I64": (
        {**SOURCE, "hardware": {"accelerator": "metal"}},
        {"image": "x"},
        "spec.image: no effect with a Model on metal",
    ),
}


@pytest.mark.parametrize(("model_spec", "spec", "expected"), TOGETHER.values(), ids=list(TOGETHER))
def test_what_does_not_fit_together(command: Command, model_spec: Json, spec: Json, expected: str) -> None:
    """There is a warning if both objects are in the files, in any order, and none for the service alone."""
    for documents in ([model(spec=model_spec), service(spec)], [service(spec), model(spec=model_spec)]):
        result = command("validate", command.file("all.yaml", *documents))
        assert result.status == 0
        assert expected in result.out
        assert ": warning: " in result.out
    assert expected not in command("validate", command.file("all.yaml", service(spec))).out


def test_a_finding_points_at_its_field(command: Command) -> None:
    """The field is in the service that the finding is about."""
    documents = [model(spec={**SOURCE, **GPU}), service({"image": "x", "resources": {"gpu": 1}})]
    result = command("validate", command.file("all.yaml", *documents), "--output", "json")
    (finding,) = (f for f in result.findings if "gpu.count 2 wins" in f["message"])
    assert (finding["path"], finding["level"]) == ("spec.resources.gpu", "warning")
    assert finding["line"] > 10


def test_models_of_other_namespaces_are_others(command: Command) -> None:
    """A service refers to Models in the same namespace."""
    away = model(spec={**SOURCE, "format": "safetensors"})
    away["metadata"]["namespace"] = "other"
    out = command("validate", command.file("all.yaml", away, service())).out
    assert 'Model "m" is not among the files in namespace default; there is one in other' in out
    assert "safetensors" not in out


CONFIG: Json = {
    "apiVersion": "serving.kserve.io/v1alpha1",
    "kind": "LLMInferenceServiceConfig",
    "metadata": {"name": "shared"},
    "spec": {"template": {"containers": [{"name": "main", "image": "{{ .Spec.Nothing.Name }}"}]}},
}
USER: Json = {
    "apiVersion": "serving.kserve.io/v1alpha1",
    "kind": "LLMInferenceService",
    "metadata": {"name": "qwen"},
    "spec": {"model": {"uri": "hf://Qwen/Qwen2.5-0.5B"}, "baseRefs": [{"name": "shared"}]},
}


def test_configs_that_cannot_be_combined(command: Command) -> None:
    """The finding is on the service that refers to them, if they are in the files."""
    result = command("validate", command.file("all.yaml", CONFIG, USER))
    assert "spec.baseRefs: " in result.out
    assert "spec.baseRefs: " not in command("validate", command.file("all.yaml", USER)).out
    config = {**CONFIG, "spec": {"template": {"serviceAccountName": "elsewhere"}}}
    router = {"route": {}, "scheduler": {"config": {"ref": {"name": "elsewhere", "key": "epp"}}}}
    user = {**USER, "spec": {**USER["spec"], "router": router}}
    assert command("validate", command.file("all.yaml", config, user)).out == ""


def test_numbers_that_json_does_not_have(command: Command) -> None:
    """They are reported with their place; very large ones are checked as in the API server."""
    document = service({"replicas": 10**30})
    result = command("validate", command.file("all.yaml", document))
    assert result.status == 1
    assert "spec.replicas" in result.out
    path = command.file("all.yaml", service({"replicas": 1}))
    Path(path).write_text(Path(path).read_text().replace("replicas: 1", "replicas: .nan"))
    result = command("validate", path)
    assert result.status == 1
    assert "not a number that JSON has" in result.out


def test_skips_files_without_objects(command: Command) -> None:
    """A kustomization among the manifests is skipped."""
    files = [
        command.file("kustomization.yaml", {"resources": ["all.yaml"]}),
        command.file("all.yaml", model(), service()),
    ]
    for name in ("validate", "render", "explain"):
        assert command(name, *files).status == 0


UNREADABLE = {
    "not UTF-8": (b"kind: \xe4\n", "all.yaml:1:1: error: is not UTF-8: byte 0xe4; save"),
    "too deep": (b"kind: K\nspec: " + b"[" * 300 + b"]" * 300, "all.yaml:2:207: error: nested too deeply"),
    "a kind that is no text": (b"apiVersion: v1\nkind: [a]\n", "all.yaml:1:1: error: kind must be a string"),
    "a version that is no text": (
        b"kind: List\nitems:\n- apiVersion: 5\n",
        "all.yaml:3:3: error: apiVersion must be a string",
    ),
}


@pytest.mark.parametrize(("content", "reason"), UNREADABLE.values(), ids=list(UNREADABLE))
@pytest.mark.parametrize("name", ["validate", "render", "explain"])
def test_reports_an_unreadable_file_in_one_line(command: Command, content: bytes, reason: str, name: str) -> None:
    """The line has the place, if there is one."""
    path = command.file("all.yaml")
    Path(path).write_bytes(content)
    result = command(name, path)
    assert result.status == (1 if name == "validate" else 2)
    assert reason in (result.out if name == "validate" else result.err)


def test_standard_input_may_hold_anything(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invalid bytes are reported as in a file."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    result = command("validate", "-")
    assert result.status == 1
    assert result.out.startswith("<stdin>:1:1: error: is not UTF-8")


def test_items_may_come_by_a_merge_key(command: Command) -> None:
    """They have the position of the list."""
    path = command.file("all.yaml")
    text = (
        f"kind: List\n<<: {{items: [{{apiVersion: {API_VERSION}, kind: Model, metadata: {{name: m}}, spec: {{}}}}]}}\n"
    )
    Path(path).write_text(text)
    assert "all.yaml:1:1: error: spec.source: Required value" in command("validate", path).out


@pytest.mark.parametrize("name", ["A", "a_b", "a\x1b", "-a", "a" * 254, "ä"])
def test_a_name_that_no_object_can_have(command: Command, name: str) -> None:
    """It is one error. The API server would refuse it before the webhook is called."""
    assert command("validate", command.file("all.yaml", model(name))).out.count("error: metadata.name: ") == 1


def test_metadata_of_a_wrong_type_spoils_no_other_finding(command: Command) -> None:
    """Findings across other objects are still reported."""
    broken = {**model("broken"), "metadata": {"name": "broken", "uid": 5}}
    out = command("validate", command.file("all.yaml", CONFIG, USER, broken)).out
    assert "metadata.uid: " in out
    assert "spec.baseRefs: " in out


@pytest.mark.parametrize("missing", ["apiVersion", "kind"])
def test_a_document_without_a_type_does_not_end_the_command(command: Command, missing: str) -> None:
    """Other documents are still checked, alone and together."""
    untyped = {key: value for key, value in model().items() if key != missing}
    result = command("validate", command.file("all.yaml", untyped, BROKEN))
    assert result.status == 1
    assert "spec.replcias" in result.out


def test_an_object_with_errors_is_not_planned(command: Command) -> None:
    """Only its errors are reported: planning a metric without a value ended the command."""
    autoscaling = {"maxReplicas": 3, "metrics": [{"type": "Pods", "name": "queue"}]}
    result = command("validate", command.file("all.yaml", model(), service({"autoscaling": autoscaling})))
    assert result.status == 1
    assert "targetAverageValue: Required value" in result.out
