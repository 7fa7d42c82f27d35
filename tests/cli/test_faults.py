"""The command line on realistic trees and files."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
import yaml

from app.desk.cluster.kinds import COMPONENTS, SERVED
from app.families import RESOURCES
from app.kube.base import Json
from tests.cli.files import Command, model, service

ROOT = Path(__file__).parents[2]
HELM = "apiVersion: inference.llmkube.dev/v1alpha1\nkind: Model\nmetadata: {name: {{ .Release.Name }}}\n"
BROKEN = "apiVersion: v1\nkind: Pod\n  metadata: {}\n"


def write(file: str, text: str) -> Path:
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_kinds_are_those_of_the_registry() -> None:
    """They are repeated here so that a command need not import every family."""
    assert {
        group: {r.kind: r.version for r in RESOURCES if r.group == group} for group in {r.group for r in RESOURCES}
    } == SERVED
    assert set(COMPONENTS) == {c.component for r in RESOURCES for c in r.children if c.component}


@pytest.mark.parametrize("output", ["text", "json", "sarif", "github", "junit"])
def test_a_bad_file_is_a_finding_and_the_rest_goes_on(command: Command, output: str) -> None:
    """All output formats include it, and the findings of other files, with the ids that the documentation explains."""
    folder = Path(command.file("tree/a.yaml", service({"replicas": 99}))).parent
    write(f"{folder}/b.yaml", BROKEN + "---\n" + yaml.dump(service({"replcias": 1}, name="t"), Dumper=yaml.CDumper))
    result = command("validate", str(folder), "--output", output)
    assert result.status == 1
    assert "indented deeper than" in result.out
    assert "spec.replicas" in result.out
    assert "replcias" in result.out
    ids = ("yaml", "invalid-value", "unknown-field")
    assert [id_ for id_ in ids if not re.search(rf"\b{id_}\b", result.out)] == []


def test_skips_and_counts_other_files_of_a_tree(command: Command) -> None:
    """Charts, hidden and vendored folders, files that git ignores, lists, and other YAML."""
    folder = Path(command.file("tree/a.yaml", model())).parent
    write(f"{folder}/chart/Chart.yaml", "name: c\n")
    write(f"{folder}/chart/templates/m.yaml", HELM)
    write(f"{folder}/.hidden/x.yaml", BROKEN)
    write(f"{folder}/vendor/x.yaml", BROKEN)
    write(f"{folder}/out/x.yaml", BROKEN)
    write(f"{folder}/deep/er/skip-me.yaml", BROKEN)
    write(f"{folder}/list.json", '[{"kind": 1}]')
    write(f"{folder}/site.yml", "extra: !!python/name:x\n")
    write(f"{folder}/.gitignore", "/out/\n# comment\nskip-*\n!skip-me.txt\n")
    result = command("validate", str(folder))
    assert (result.status, result.out) == (0, "")
    assert result.err == (
        "1 object checked, 0 errors, 0 warnings "
        "(passed over: 1 Helm template, 2 excluded files, 1 hidden file, 3 other documents, 1 vendored file; "
        f"no manifest in {folder}/chart/Chart.yaml, {folder}/list.json, {folder}/site.yml)\n"
    )


@pytest.mark.parametrize("name", ["validate", "explain", "render", "images"])
def test_broken_yaml_in_a_named_file_is_a_finding(command: Command, name: str) -> None:
    """Even if the text is like nothing in particular; other YAML is passed over."""
    good = command.file("good.yaml", model(), service())
    broken = str(Path(good).with_name("a.yaml"))
    write(broken, "a: 1\nb: [\n")
    result = command(name, good, broken)
    assert result.status == 1
    assert f"{broken}:2:" in result.out + result.err
    write(broken, "b: !custom [1]\n")
    assert command(name, good, broken).status == command(name, good).status


def test_broken_yaml_in_a_directory_is_passed_over_by_name(command: Command) -> None:
    folder = Path(command.file("tree/good.yaml", model())).parent
    write(f"{folder}/a.yaml", "a: [\n")
    result = command("validate", str(folder))
    assert (result.status, result.out) == (0, "")
    assert f"(passed over: 1 other document; no manifest in {folder}/a.yaml)" in result.err


def test_patterns_on_the_command_line_leave_files_out(command: Command) -> None:
    folder = Path(command.file("tree/a.yaml", model())).parent
    write(f"{folder}/docs/x.yaml", BROKEN)
    assert command("validate", str(folder)).status == 1
    assert command("validate", str(folder), "--exclude", "docs/").status == 0


def test_utf_16_is_named(command: Command) -> None:
    path = command.file("all.yaml", model())
    Path(path).write_bytes(Path(path).read_text().encode("utf-16"))
    assert "is UTF-16; save it as UTF-8" in command("validate", path).out


def test_overlays_are_clusters_of_their_own(command: Command) -> None:
    """Objects with the same name in two overlays are both rendered, each with the Model of the base."""
    command.file("tree/base/model.yaml", model())
    command.file("tree/dev/s.yaml", service({"replicas": 1}))
    root = Path(command.file("tree/prod/s.yaml", service({"replicas": 3}))).parents[1]
    assert command("validate", str(root)).out == ""
    answers = [a for a in command("render", str(root), "--output", "json").json if a["parent"] == "InferenceService/s"]
    deployments = [c for a in answers for c in a["children"] if c["kind"] == "Deployment"]
    assert [d["spec"]["replicas"] for d in deployments] == [1, 3]


@pytest.mark.parametrize(("names", "level"), [(("a.yaml", "b.yaml"), "warning"), (("a.yaml", "a.yaml"), "error")])
def test_one_name_twice_in_a_folder_is_a_finding(command: Command, names: tuple[str, str], level: str) -> None:
    documents = [service({"replicas": 1}), service({"replicas": 2})]
    if names[0] == names[1]:
        folder = Path(command.file("tree/a.yaml", *documents)).parent
    else:
        folder = Path([command.file(f"tree/{n}", d) for n, d in zip(names, documents, strict=True)][-1]).parent
    findings = command("validate", str(folder), "--output", "json").findings
    assert [(f["id"], f["level"]) for f in findings] == [("duplicate-object", level)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "InferenceServce"}, 'has no kind "InferenceServce"'),
        ({"kind": "ModelRouter"}, "ModelRouter is not served here, and nothing acts on it: choose a model per request"),
        ({"apiVersion": "inference.llmkube.io/v1alpha1"}, "did you mean inference.llmkube.dev/v1alpha1?"),
        (
            {"apiVersion": "serving.kserve.io/v1alpha1", "kind": "LLMInferenceServices"},
            'did you mean "LLMInferenceService"',
        ),
        (
            {"apiVersion": "", "kind": "Playgroud"},
            '"Playgroud" is taken for Playground; write kind: Playground and api',
        ),
        (
            {"apiVersion": "", "kind": "LLMInferenceServce"},
            "write kind: LLMInferenceService and apiVersion: serving.kserve.io/v1alpha2 [untyped]\n",
        ),
        ({"apiVersion": "v1", "kind": "LLMInferenceService"}, "is served as serving.kserve.io/v1alpha2"),
        ({"apiVersion": ""}, "Required value: InferenceService is served as inference.llmkube.dev/v1alpha1"),
        ({"kind": ""}, "Required value: inference.llmkube.dev has Model, InferenceService"),
    ],
)
def test_a_type_that_is_nearly_ours_is_an_error(command: Command, change: Json, words: str) -> None:
    result = command("validate", command.file("all.yaml", {**service(), **change}))
    assert result.status == 1
    assert words in result.out


def test_a_kind_that_kserves_own_controller_serves_is_a_warning(command: Command) -> None:
    other = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": {"name": "x"}}
    result = command("validate", command.file("all.yaml", other, model()))
    assert result.status == 0
    assert "InferenceService is not served here; LLMInferenceService is (serving.kserve.io/v1alpha2)" in result.out
    downloader = {**other, "apiVersion": "serving.kserve.io/v1alpha1", "kind": "ClusterStorageContainer"}
    text = command("validate", command.file("storage.yaml", downloader, model())).out
    assert "write its image and variables into an init container storage-initializer" in text


@pytest.mark.parametrize(
    ("api_version", "kind"), [("", "Pipeline"), ("v1", "Service"), ("v1", "Node"), ("a.b/v1", "Model")]
)
def test_kinds_of_others_are_none_of_ours(command: Command, api_version: str, kind: str) -> None:
    assert command("validate", command.file("all.yaml", {"apiVersion": api_version, "kind": kind}, model())).out == ""


def test_fails_if_nothing_was_checked(command: Command) -> None:
    """A wrong path in a pipeline must not pass; the reason is printed."""
    path = command.file("all.yaml", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}})
    result = command("validate", path)
    assert result.status == 2
    assert "no object of a kind that is served; the files have objects of kind Pod" in result.err
    assert "convert" not in result.err
    assert command("validate", path, "--allow-empty").status == 0
    deployment = command.file("own.yaml", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}})
    assert "modelhooks convert writes one from a Deployment" in command("validate", deployment).err


@pytest.mark.parametrize(
    ("name", "hint"), [("aa", 'did you mean "a"'), ("smollm", "which have a, dev-smollm"), ("zzz", "which have")]
)
def test_a_reference_to_nothing_is_a_warning(command: Command, name: str, hint: str) -> None:
    path = command.file("all.yaml", model("a"), model("dev-smollm"), service({"modelRef": name}))
    (finding,) = (f for f in command("validate", path, "--output", "json").findings if f["id"] == "dangling-reference")
    assert (finding["path"], finding["level"]) == ("spec.modelRef", "warning")
    assert hint in finding["message"]
    assert command("validate", path, "--strict").status == 1


REFERENCES = {
    "spec.modelRef": service({"runtime": "generic", "image": "gone", "modelRef": "gone"}),
    "spec.vllmConfig.speculative.model": service(
        {"runtime": "vllm", "image": "gone", "vllmConfig": {"speculative": {"enabled": True, "model": "gone"}}}
    ),
    "spec.modelClaim.modelName": {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "Playground",
        "metadata": {"name": "p", "labels": {"llmaz.io/model-name": "gone"}},
        "spec": {"backendRuntimeConfig": {"version": "gone"}, "modelClaim": {"modelName": "gone"}},
    },
}
OPEN_MODEL = {
    "apiVersion": "llmaz.io/v1alpha1",
    "kind": "OpenModel",
    "metadata": {"name": "opt"},
    "spec": {"familyName": "opt", "source": {"modelHub": {"modelID": "facebook/opt-125m"}}},
}


@pytest.mark.parametrize(("path", "document"), REFERENCES.items(), ids=list(REFERENCES))
def test_a_reference_is_found_at_its_field(command: Command, path: str, document: Json) -> None:
    """Other fields may have the same value."""
    file = command.file("all.yaml", model(), OPEN_MODEL, document)
    dangling = [f for f in command("validate", file, "--output", "json").findings if f["id"] == "dangling-reference"]
    assert [finding["path"] for finding in dangling] == [path]


@pytest.mark.parametrize(
    ("name", "namespace", "words"),
    [
        ("bsae", "default", 'did you mean "base"?'),
        ("base", "other", "in namespace default; there is one in other"),
        ("base", "kserve", ""),
        ("kserve-config-llm-template", "default", ""),
    ],
)
def test_a_config_that_a_service_refers_to(command: Command, name: str, namespace: str, words: str) -> None:
    """It may be in KServe's namespace, or be a preset, which is in no file."""
    head = {"apiVersion": "serving.kserve.io/v1alpha2"}
    config = {**head, "kind": "LLMInferenceServiceConfig", "metadata": {"name": "base", "namespace": namespace}}
    spec = {"model": {"uri": "hf://a/b"}, "baseRefs": [{"name": name}]}
    asked = {**head, "kind": "LLMInferenceService", "metadata": {"name": "s"}, "spec": spec}
    file = command.file("all.yaml", {**config, "spec": {}}, asked)
    dangling = [f for f in command("validate", file, "--output", "json").findings if f["id"] == "dangling-reference"]
    assert [finding["path"] for finding in dangling] == (["spec.baseRefs[0].name"] if words else [])
    assert all(words in finding["message"] for finding in dangling)


def test_a_repository_is_not_among_the_files(command: Command) -> None:
    """A repository's name is not a name of an object."""
    spec = {"runtime": "vllm", "vllmConfig": {"speculative": {"enabled": True, "model": "org/small"}}}
    assert "among the files" not in command("validate", command.file("all.yaml", model(), service(spec))).out


def test_paths_are_not_cut(command: Command) -> None:
    """Keys may have any characters."""
    path = command.file("all.yaml", service({"resources": {"a_b-c/d.e": 1}, "model_name": "x"}))
    line_of = {
        f["path"]: f["line"] for f in command("validate", path, "--output", "json").findings if f["level"] == "error"
    }
    assert line_of == {"spec.model_name": 9, "spec.resources[a_b-c/d.e]": 8}


def test_rejects_snake_case(command: Command) -> None:
    """A cluster would drop the field, so it has no effect here."""
    document = service()
    document["spec"] = {"model_ref": "m"}
    result = command("render", command.file("all.yaml", model(), document), "--output", "json")
    assert result.status == 1
    assert "Deployment" not in [c["kind"] for answer in result.json for c in answer["children"]]


def test_a_comment_takes_a_finding_back(command: Command) -> None:
    path = command.file("all.yaml", service({"reasoningBudgetMessage": "x"}))
    text = Path(path).read_text()
    (finding,) = command("validate", path, "--output", "json").findings
    Path(path).write_text(text.replace("Message: x", f"Message: x  # modelhooks: ignore {finding['id']}"))
    assert command("validate", path, "--fail-on", "warning").status == (0 if finding["line"] > 5 else 1)


def test_an_annotation_takes_findings_back(command: Command) -> None:
    """Only findings of its object with the listed ids are ignored."""
    noted = {"modelhooks.dev/ignore": "no-effect, unknown-field"}
    wrong = {"contextSize": 1024, "maxTokens": 5, "args": ["x"], "resources": {"memory": "4 GB"}}
    muted, plain = service(wrong, "a"), service(wrong, "b")
    muted["metadata"]["annotations"] = noted
    findings = command("validate", "-o", "json", command.file("a.yaml", muted)).findings
    assert [row["id"] for row in findings] == ["invalid-value"]
    others = command("validate", "-o", "json", command.file("b.yaml", plain)).findings
    assert {row["id"] for row in others} == {"invalid-value", "unknown-field", "no-effect"}


@pytest.mark.parametrize("value", [None, 5, {}, []])
def test_ignores_an_annotation_that_is_not_a_string(command: Command, value: object) -> None:
    """The findings are reported."""
    document = service({"maxTokens": 5})
    document["metadata"]["annotations"] = {"modelhooks.dev/ignore": value}
    assert "unknown-field" in command("validate", "-o", "json", command.file("a.yaml", document)).out


def test_a_deployment_that_goes_stops_its_pods(command: Command) -> None:
    old = command.file("old.yaml", model(), service())
    out = command("diff", old, command.file("new.yaml", model())).out
    assert out.rstrip().endswith("the pods of default/s stop.")


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, "must be at most the limit, which is 1"),
        (
            {"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}},
            "must be the same as the limit, which is 2",
        ),
        ({"limits": {"nvidia.com/gpu": "500m"}}, "must be a whole number"),
    ],
)
def test_pods_that_the_api_server_refuses_are_refused_here(command: Command, resources: Json, words: str) -> None:
    """The Deployment would be created, but its pods would be refused."""
    document = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "LLMInferenceService",
        "metadata": {"name": "qwen"},
        "spec": {
            "model": {"uri": "hf://Qwen/Qwen2.5-0.5B"},
            "template": {"containers": [{"name": "main", "resources": resources}]},
        },
    }
    result = command("validate", command.file("all.yaml", document))
    assert result.status == 1
    assert words in result.out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"template": {"spec": {}}}, "pods are described by fields of spec itself"),
        ({"resources": {"limits": {"nvidia.com/gpu": 1}}}, "write cpu, memory and gpu directly below resources"),
        ({"resources": {"nvidia.com/gpu": 1}}, 'did you mean "gpu"?'),
        ({"gpu": 1}, 'did you mean "resources.gpu"?'),
        ({"endpoint": {"contextSize": 1}}, "it belongs one level higher: indent it less"),
        ({"image": "ghcr.io/x/y: tag"}, "it contains a space"),
    ],
)
def test_fields_of_other_kinds_are_answered_with_the_ones_here(command: Command, change: Json, words: str) -> None:
    assert words in command("validate", command.file("all.yaml", service(change))).out


@pytest.mark.parametrize(("accelerator", "meant"), [("nvidia", "cuda"), ("Apple", "metal"), ("CUDA", "cuda")])
def test_names_the_accelerator_that_is_meant(command: Command, accelerator: str, meant: str) -> None:
    document = model(spec={"source": "x/y", "hardware": {"accelerator": accelerator}})
    assert f'did you mean "{meant}"?' in command("validate", command.file("all.yaml", document)).out


@pytest.mark.parametrize("source", ["hub://x/y", "huggingface://x/y", "hf:x/y"])
def test_the_scheme_of_another_api(command: Command, source: str) -> None:
    result = command("validate", command.file("all.yaml", model(spec={"source": source})))
    assert result.status == 1
    assert "; write x/y" in result.out


YAML = {
    "a: b\n\tc: d\n": "a tab where spaces belong",
    "a: b\n c: d\n": 'indented deeper than "a" above',
    "a: b: c\n": 'two ": " in one line',
    'a: "b\n': "a quote that is not closed",
    "a: [b\nc: d\n": "a [ that is not closed",
    "a: {b: c\nd: e\n": "a { that is not closed",
    "<<<<<<< HEAD\na: b\n=======\na: c\n>>>>>>> x\n": "a merge conflict",
    "a: {{ .Values.x }}\n": "an unrendered template",
    "{{- if .x }}\na: b\n": "an unrendered template",
    "a: @b\n": "cannot begin with this character",
    "a: *b\n": "an alias (*name) without its anchor",
    'a: "\\q"\n': "a backslash that YAML does not know",
    "a: 1\na: 2\n": 'duplicate key "a": it is set above; keep one of them',
    "kind: Model\nkind: Model\n": 'it is set above; begin another object with "---"',
    "a: {kind: b, kind: c}\n": 'duplicate key "kind": it is set above; keep one of them',
    "a: {{ .X }}\nb: 1\n": "an unrendered template; render it first",
    "? [a]\n: b\n": "a field name must be a string",
    "a:\n  -name: b\n    c: d\n": "a dash begins an item only with a blank after it: `-name: b`",
    "a:\n  - b\n c: d\n": "the indentation fits none of the lines above",
    "a:b\nc: d\n": "neither a field nor an item",
}


@pytest.mark.parametrize(("text", "words"), YAML.items(), ids=list(YAML.values()))
def test_yaml_errors_are_words(command: Command, text: str, words: str) -> None:
    """Messages are readable and show the line."""
    path = command.file("all.yaml", model())
    Path(path).write_text(f"{text}---\nkind: Model\n")
    result = command("validate", path)
    assert result.status == 1
    assert words in result.out


@pytest.mark.parametrize("family", ["llmkube", "llmaz", "kserve"])
@pytest.mark.parametrize("subcommand", ["validate", "render"])
def test_a_command_loads_the_families_of_its_files_only(subcommand: str, family: str) -> None:
    """Startup is mostly the import of families. The names of LLMKube's PriorityClasses are taken for every cluster."""
    code = (
        "import sys; from app import cli; "
        f"cli.main([{subcommand!r}, 'examples/{family}/quickstart.yaml']); "
        "print('loaded', *(m for m in sys.modules if m.startswith('app.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {*done.stdout.rpartition("loaded ")[2].split()} - {"app.llmkube", "app.llmkube.names"}
    families = {name.split(".")[1] for name in loaded} & {"llmkube", "llmaz", "kserve"}
    assert families == {family}


def test_a_krm_function_adds_children_and_results(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads and writes a ResourceList, and does not change its input items."""
    items = [model(), service({"replicas": 1}), service({"replicas": 99}, name="t")]
    text = orjson.dumps({"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": items})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    result = command("krm")
    answer = yaml.load(result.out, yaml.CSafeLoader)
    assert result.status == 1
    assert answer["items"][:3] == items
    assert [item["metadata"]["name"] for item in answer["items"] if item["kind"] == "Deployment"] == ["s"]
    (error,) = (row for row in answer["results"] if row["severity"] == "error")
    assert (error["field"], error["tags"]) == ({"path": "spec.replicas"}, {"id": "invalid-value"})


@pytest.fixture
def krm(command: Command, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Json]], Json]:
    """Run the function on items, and return its list."""

    def run(items: list[Json]) -> Json:
        text = orjson.dumps({"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": items})
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        answer: Json = yaml.load(command("krm").out, yaml.CSafeLoader)
        return answer

    return run


def _replicas(items: list[Json]) -> list[int]:
    return [item["spec"]["replicas"] for item in items if item["kind"] == "Deployment"]


def test_a_krm_function_on_its_own_output_writes_the_children_anew(krm: Callable[[list[Json]], Json]) -> None:
    """kpt writes the output back into the package; a later edit reaches the child, in the file that it is in."""
    first = krm([model(), service({"replicas": 1})])["items"]
    assert krm(first)["items"] == first
    place = {"internal.config.kubernetes.io/path": "out.yaml"}
    for item in first:
        item["metadata"].setdefault("annotations", {}).update(place)
    edited = [service({"replicas": 2}) if item["kind"] == "InferenceService" else item for item in first]
    second = krm(edited)["items"]
    assert (_replicas(first), _replicas(second)) == ([1], [2])
    (deployment,) = (item for item in second if item["kind"] == "Deployment")
    assert deployment["metadata"]["annotations"].items() >= place.items()


def test_a_krm_function_removes_children_that_are_not_wanted_any_more(krm: Callable[[list[Json]], Json]) -> None:
    first = krm([model(), service({"replicas": 1})])["items"]
    without = [item for item in first if item["kind"] != "InferenceService"]
    assert not [item for item in krm(without)["items"] if item["kind"] in ("Deployment", "Service")]


def test_a_krm_function_keeps_the_children_of_an_object_with_errors(krm: Callable[[list[Json]], Json]) -> None:
    first = krm([model(), service({"replicas": 1})])["items"]
    wrong = [service({"replicas": 99}) if item["kind"] == "InferenceService" else item for item in first]
    assert _replicas(krm(wrong)["items"]) == [1]


def test_a_krm_function_says_that_an_item_of_somebody_else_is_kept(krm: Callable[[list[Json]], Json]) -> None:
    (deployment,) = (item for item in krm([model(), service({"replicas": 1})])["items"] if item["kind"] == "Deployment")
    deployment["metadata"].pop("annotations")
    answer = krm([model(), service({"replicas": 2}), deployment])
    assert _replicas(answer["items"]) == [1]
    assert [row["field"]["path"] for row in answer["results"] if "kept as it is" in row["message"]] == ["metadata.name"]


@pytest.mark.parametrize("metadata", [None, "x", 7, [], [{}]], ids=str)
def test_a_krm_function_reports_metadata_of_another_type(
    command: Command, monkeypatch: pytest.MonkeyPatch, metadata: object
) -> None:
    items = [model(metadata=metadata)]
    text = orjson.dumps({"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": items})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    result = command("krm")
    assert result.status == 1
    assert yaml.load(result.out, yaml.CSafeLoader)["items"] == items


def test_reports_a_template_error_at_its_config(command: Command) -> None:
    template = {"containers": [{"name": "main", "image": "{{ .Spec.Model.Name | nothing }}"}]}
    config = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "LLMInferenceServiceConfig",
        "metadata": {"name": "shared"},
        "spec": {"template": template},
    }
    (finding,) = command("validate", command.file("all.yaml", config), "--output", "json").findings
    assert finding["path"] == "spec.template.containers[0].image"
    assert finding["line"] == 9
    assert "function nothing is not defined" in finding["message"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sepc:\n  source: m.gguf\n", 'unknown field "sepc", did you mean "spec"?'),
        ("spec:\nsource: m.gguf\n", 'unknown field "source"; it is a field of spec: indent it below spec'),
        ("spec:\nlabels: {}\n", 'unknown field "labels"; it is a field of metadata: indent it below metadata'),
        ("spec: {source: m.gguf}\nreplicas: 1\n", 'unknown field "replicas"'),
    ],
    ids=["misspelt", "not indented", "of metadata", "another"],
)
def test_a_field_beside_the_spec_is_an_error(command: Command, tmp_path: Path, text: str, words: str) -> None:
    """An API server would drop it silently."""
    path = tmp_path / "a.yaml"
    path.write_text("apiVersion: inference.llmkube.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\n" + text)
    findings = command("validate", str(path), "--output", "json").json["findings"]
    line = 4 if "sepc" in text else 5
    assert [(finding["line"], finding["message"]) for finding in findings if finding["id"] == "unknown-field"] == [
        (line, words)
    ]


def test_an_object_without_metadata_lacks_a_name(command: Command) -> None:
    document = {key: value for key, value in model().items() if key != "metadata"}
    [finding] = command("validate", command.file("a.yaml", document), "--output", "json").findings
    assert (finding["path"], finding["id"]) == ("metadata.name", "required")
