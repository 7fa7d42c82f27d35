"""``modelhooks convert``: the result is valid, and every value of the input is carried over or reported."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from app.desk.cluster.single import check
from app.desk.convert.counterparts import FAMILIES
from app.desk.convert.translate import Translation, family_of, leaves, path_of, translate
from app.desk.files import yaml
from app.desk.files.manifests import Manifest, parse
from app.kube.base import Json
from app.settings import Settings
from tests.cli.files import Command, model
from tests.e2e.generated import kserve, llmaz, llmkube

ROOT = Path(__file__).parents[2]
DRAWN = {"llmkube": llmkube.documents, "llmaz": llmaz.documents, "kserve": kserve.documents}
DIRECTIONS = [(source, to) for source in DRAWN for to in FAMILIES if source != to]
COUNT = 40


def manifests(*documents: Json) -> list[Manifest]:
    return parse(yaml.dump_all(list(documents)), "all.yaml")


@cache
def valid(family: str) -> list[list[Manifest]]:
    """Return generated objects of our kinds that admission accepts."""
    drawings = [manifests(*DRAWN[family](number, "team", 0)) for number in range(COUNT)]
    return [
        [manifest for manifest in drawn if family_of(manifest)]
        for drawn in drawings
        if not any(f.level == "error" for manifest in drawn for f in check(manifest, Settings()))
    ]


@pytest.mark.parametrize(("source", "to"), DIRECTIONS)
def test_every_value_is_carried_over_or_listed(source: str, to: str) -> None:
    """Each leaf of each object is in exactly one of the two lists."""
    read = valid(source)
    assert len(read) > COUNT // 2
    for drawn in read:
        result = translate(drawn, to)
        for manifest in drawn:
            carried = [row.keys for row in result.carried if row.manifest is manifest]
            lost = [row.keys for row in result.lost if row.manifest is manifest]
            for keys, _ in leaves(manifest.document):
                told = carried.count(keys) + sum(keys[: len(part)] == part for part in lost)
                if keys[0] in ("apiVersion", "kind"):
                    assert told <= 1
                else:
                    assert told == 1, f"{manifest.kind} {path_of(keys)}: {told}"


@pytest.mark.parametrize(("source", "to"), DIRECTIONS)
def test_what_is_carried_over_is_there(source: str, to: str) -> None:
    """The reported place has the same value, except for addresses, which each family writes differently."""
    seen = 0
    for drawn in valid(source):
        result = translate(drawn, to)
        objects = {f"{row['kind']}/{row['metadata']['name']}": dict(leaves_by_path(row)) for row in result.documents}
        for row in result.carried:
            for target in row.target:
                name, _, path = target.partition(" ")
                assert name in objects
                if not path or row.path.segments[1] in ("source", "model"):
                    continue
                below = {p: v for p, v in objects[name].items() if p == path or p.startswith((f"{path}.", f"{path}["))}
                values = {str(value) for value in below.values()}
                is_argument = path.lower().endswith("args") and (
                    row.value in ([], 0, True)  # of a switch only the name is one, and of an option's default nothing
                    or any(str(row.value) in value for value in values)  # some options join a list
                )
                assert str(row.value) in values or is_argument, (row.object, str(row.path), target)
                seen += 1
    assert seen > COUNT


def leaves_by_path(document: Json) -> list[tuple[str, Any]]:
    return [(str(path_of(keys)), value) for keys, value in leaves(document)]


@pytest.mark.parametrize(("source", "to"), DIRECTIONS)
def test_the_result_validates(source: str, to: str) -> None:
    """Most inputs convert, and no result has an error."""
    converted = 0
    for drawn in valid(source):
        documents = translate(drawn, to).documents
        converted += bool(documents)
        findings = (
            [finding for manifest in manifests(*documents) for finding in check(manifest, Settings())]
            if documents
            else []
        )
        assert [str(finding) for finding in findings if finding.level == "error"] == []
    assert converted > 3


EXAMPLE = {
    "llmkube": "examples/llmkube/vllm.yaml",
    "llmaz": "examples/llmaz/quickstart.yaml",
    "kserve": "examples/kserve/quickstart.yaml",
}


@pytest.mark.parametrize(("source", "to"), DIRECTIONS)
def test_what_an_example_loses_is_on_standard_error(command: Command, source: str, to: str) -> None:
    """The model's source is converted, and each lost value is reported on standard error with its place."""
    result = command("convert", "--to", to, str(ROOT / EXAMPLE[source]))
    assert result.status == 1
    assert f"{EXAMPLE[source]}:" in result.err
    assert {manifest.kind for manifest in parse(result.out, "out")} == {
        kind for _, kind in filter(None, (FAMILIES[to].service, FAMILIES[to].model))
    }
    repository = {
        "llmkube": "Qwen2.5-Coder-7B-Instruct",
        "llmaz": "facebook/opt-125m",
        "kserve": "Qwen2.5-0.5B-Instruct",
    }[source]
    assert repository in result.out


def test_there_and_back_keeps_what_both_families_have(command: Command) -> None:
    """KServe to LLMKube and back keeps address, image, replicas and requests."""
    there = translate(parse((ROOT / EXAMPLE["kserve"]).read_text(), "kserve.yaml"), "llmkube")
    (back,) = translate(manifests(*there.documents), "kserve").documents
    assert back["spec"]["model"]["uri"] == "hf://Qwen/Qwen2.5-0.5B-Instruct"
    (container,) = back["spec"]["template"]["containers"]
    assert container["image"] == "public.ecr.aws/q9t5s3a7/vllm-cpu-release-repo:v0.14.1"
    assert container["resources"] == {"requests": {"cpu": "1", "memory": "4Gi"}}


def lost(result: Translation) -> dict[str, str]:
    return {f"{row.object} {row.path}": row.reason for row in result.lost}


def llmkube_pair(**spec: Any) -> list[Manifest]:
    api = "inference.llmkube.dev/v1alpha1"
    return manifests(
        {"apiVersion": api, "kind": "Model", "metadata": {"name": "m"}, "spec": {"source": spec.pop("source", "o/r")}},
        {"apiVersion": api, "kind": "InferenceService", "metadata": {"name": "s"}, "spec": {"modelRef": "m", **spec}},
    )


def test_a_default_that_has_no_counterpart_is_listed_too() -> None:
    """LLMKube starts llama.cpp by default and KServe vLLM, so arguments of llama.cpp are listed as lost."""
    result = translate(llmkube_pair(extraArgs=["--mlock"], image="example.com/llama:1"), "kserve")
    assert lost(result)["InferenceService/s spec.runtime"] == "KServe's presets start vLLM, not llamacpp"
    assert lost(result)["InferenceService/s spec.extraArgs"] == "written for llamacpp"
    assert lost(result)["InferenceService/s spec.image"] == "written for llamacpp"
    assert "template" not in result.documents[0]["spec"]


def test_an_address_that_cannot_be_fetched_there_converts_nothing() -> None:
    """A service without its model would be another service."""
    result = translate(llmkube_pair(source="https://example.com/m.gguf"), "kserve")
    assert result.documents == []
    assert all("one file is fetched" in reason for reason in lost(result).values())


@pytest.mark.parametrize(
    ("runtime", "image", "version"),
    [
        ("vllm", "", "v0.20.0"),
        ("vllm", "vllm/vllm-openai:v0.25.1", "v0.25.1"),
        ("vllm", "docker.io/vllm/vllm-openai:v0.25.1", "v0.25.1"),
        ("vllm", "example.com/vllm:v0.25.1", "v0.20.0"),
        ("vllm", "vllm/vllm-openai", "v0.20.0"),
        ("vllm", f"vllm/vllm-openai:v0.25.1@sha256:{'0' * 64}", "v0.20.0"),
        ("sglang", "", "v0.5.15.post1-cu129"),
        ("tgi", "", "3.3.7"),
        ("llamacpp", "", None),
        ("llamacpp", "ghcr.io/ggml-org/llama.cpp:server-cuda-v0.7.0", "server-cuda-v0.7.0"),
    ],
)
def test_names_a_version_for_llmaz(runtime: str, image: str, version: str | None) -> None:
    """The BackendRuntime's own version would not start newer models."""
    result = translate(llmkube_pair(runtime=runtime, **({"image": image} if image else {})), "llmaz")
    assert result.documents[1]["spec"]["backendRuntimeConfig"].get("version") == version
    assert ("InferenceService/s spec.image" in lost(result)) == bool(image and version and not image.endswith(version))


def test_gpus_of_model_and_service_are_carried_over() -> None:
    """GPUs that model and service both state are written once."""
    model, service = (manifest.document for manifest in llmkube_pair(runtime="vllm", resources={"gpu": 2}))
    model["spec"]["hardware"] = {"accelerator": "cuda", "gpu": {"enabled": True, "count": 2, "vendor": "nvidia"}}
    for to in ("kserve", "llmaz"):
        assert not any(
            "GPU" in reason or "hardware" in path
            for path, reason in lost(translate(manifests(model, service), to)).items()
        )
    service["spec"]["resources"]["gpu"] = 1
    reasons = lost(translate(manifests(model, service), "llmaz"))
    assert reasons == {"InferenceService/s spec.resources": "spec.hardware.gpu.count of the model takes precedence"}


@pytest.mark.parametrize("address", ["https://example.com/m.tar.gz", "s3://bucket/m"])
def test_addresses_that_kserve_fetches(address: str) -> None:
    """KServe unpacks an archive, and downloads a bucket."""
    (llm,) = translate(llmkube_pair(source=address, runtime="vllm"), "kserve").documents
    assert llm["spec"]["model"]["uri"] == address


def test_a_service_without_its_model_says_so(command: Command) -> None:
    """With the model in the files of --with, the service is converted."""
    model, service = llmkube_pair(runtime="vllm")
    assert "--with" in next(iter(lost(translate([service], "kserve")).values()))
    assert translate([service], "kserve", [model]).documents


def test_options_of_an_engine_become_arguments() -> None:
    """Fields come before extraArgs, as on LLMKube's own command line; KServe has a field for the number of GPUs."""
    options = {"tensorParallelSize": 2, "maxModelLen": 8192, "enablePrefixCaching": True, "gpuMemoryUtilization": 0.9}
    pair = llmkube_pair(runtime="vllm", parallelSlots=8, vllmConfig=options, extraArgs=["--seed=1"])
    expected = ["--max-num-seqs", "8", "--max-model-len", "8192", "--enable-prefix-caching"]
    expected += ["--gpu-memory-utilization", "0.9", "--seed=1"]
    result = translate(pair, "kserve")
    spec = result.documents[0]["spec"]
    assert (spec["parallelism"], spec["template"]["containers"][0]["args"]) == ({"tensor": 2}, expected)
    assert not [path for path in lost(result) if "vllmConfig" in path or "Args" in path]
    result = translate(pair, "llmaz")
    assert result.documents[1]["spec"]["backendRuntimeConfig"]["args"] == expected
    assert [path for path in lost(result) if "vllmConfig" in path] == [
        "InferenceService/s spec.vllmConfig.tensorParallelSize"
    ]


def test_options_of_llamacpp_become_arguments_of_llmaz_and_are_lost_to_kserve() -> None:
    pair = llmkube_pair(source="https://example.com/m.gguf", contextSize=4096, jinja=True, bindAddress="::")
    result = translate(pair, "kserve")
    assert not result.documents
    pair = llmkube_pair(source="s3://bucket/m.gguf", contextSize=4096, jinja=True, bindAddress="::")
    result = translate(pair, "llmaz")
    assert result.documents[1]["spec"]["backendRuntimeConfig"]["args"] == ["--ctx-size", "4096", "--jinja"]
    assert "InferenceService/s spec.bindAddress" in lost(result)
    result = translate(llmkube_pair(contextSize=4096), "kserve")
    assert lost(result)["InferenceService/s spec.contextSize"] == "written for llamacpp"


def test_volumes_go_to_kserve_and_back() -> None:
    volumes, mounts = [{"name": "hf", "emptyDir": {}}], [{"name": "hf", "mountPath": "/hf"}]
    there = translate(llmkube_pair(runtime="vllm", extraVolumes=volumes, extraVolumeMounts=mounts), "kserve").documents
    template = there[0]["spec"]["template"]
    assert (template["volumes"], template["containers"][0]["volumeMounts"]) == (volumes, mounts)
    spec = translate(manifests(*there), "llmkube").documents[1]["spec"]
    assert (spec["extraVolumes"], spec["extraVolumeMounts"]) == (volumes, mounts)


def test_a_token_for_the_hub_is_lost_with_where_the_other_family_reads_it() -> None:
    pair = llmkube_pair(runtime="vllm", vllmConfig={"hfTokenSecretRef": {"name": "hf", "key": "token"}})
    path = "InferenceService/s spec.vllmConfig"
    assert "serving.kserve.io/storageSecretName" in lost(translate(pair, "kserve"))[path]
    assert "modelhub-secret" in lost(translate(pair, "llmaz"))[path]


def playground(backend: Json, *flavors: Json) -> list[Manifest]:
    source = {"modelHub": {"modelID": "o/r"}}
    model_spec = {"familyName": "f", "source": source, "inferenceConfig": {"flavors": list(flavors)}}
    spec = {"modelClaim": {"modelName": "m"}, "backendRuntimeConfig": backend}
    return manifests(
        {"apiVersion": "llmaz.io/v1alpha1", "kind": "OpenModel", "metadata": {"name": "m"}, "spec": model_spec},
        {"apiVersion": "inference.llmaz.io/v1alpha1", "kind": "Playground", "metadata": {"name": "p"}, "spec": spec},
    )


@pytest.mark.parametrize(
    ("backend", "image"),
    [
        ({"version": "v0.20.0"}, "vllm/vllm-openai:v0.20.0"),
        ({"backendName": "vllm", "version": "v0.20.0"}, "vllm/vllm-openai:v0.20.0"),
    ],
)
def test_a_version_of_llmaz_becomes_the_whole_image(backend: Json, image: str) -> None:
    """By the image that the BackendRuntime of the installation has; of another BackendRuntime it is not known."""
    (document,) = translate(playground(backend), "kserve").documents
    assert document["spec"]["template"]["containers"][0]["image"] == image
    assert translate(playground(backend), "llmkube").documents[1]["spec"]["image"] == image
    unknown = translate(playground({"backendName": "mine", "version": "v1"}), "kserve")
    assert "write the whole image" in lost(unknown)["Playground/p spec.backendRuntimeConfig.version"]


def test_flavors_with_one_number_of_gpus_are_that_many() -> None:
    """The choice of flavors stays with llmaz; the number of GPUs is the same with each."""
    flavors = [{"name": "l", "limits": {"nvidia.com/gpu": 2}}, {"name": "a", "limits": {"nvidia.com/gpu": "2"}}]
    (document,) = translate(playground({}, *flavors), "kserve").documents
    assert document["spec"]["template"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    result = translate(playground({}, flavors[0], {"name": "b", "limits": {"nvidia.com/gpu": 4}}), "kserve")
    assert "template" not in result.documents[0]["spec"]
    path = "OpenModel/m spec.inferenceConfig.flavors[0].limits"
    assert lost(result)[path] == "its flavors have different numbers of GPUs"


def test_nothing_to_convert(command: Command) -> None:
    """The exit status is 2 for objects of the target family, and for files with errors."""
    assert command("convert", "--to", "llmkube", str(ROOT / EXAMPLE["llmkube"])).status == 2
    wrong = command("convert", "--to", "llmaz", str(ROOT / "examples/llmkube/rejected/three-mistakes.yaml"))
    assert (wrong.status, wrong.out) == (2, "")
    assert "spec.resources.memory" in wrong.err


def test_the_account_as_json(command: Command) -> None:
    """It has the objects, each carried value with its new place, each lost value with its reason, and additions."""
    account = command("convert", "--to", "kserve", "-o", "json", str(ROOT / EXAMPLE["llmkube"])).json
    assert [row["kind"] for row in account["objects"]] == ["LLMInferenceService"]
    carried = {row["path"]: row["to"] for row in account["carried"]}
    assert carried["spec.source"] == [
        "LLMInferenceService/coder spec.model.uri",
        "LLMInferenceService/coder spec.model.name",
    ]
    assert all(row["reason"] and row["line"] for row in account["lost"])


def test_an_empty_spec_is_in_the_account(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text(
        "apiVersion: serving.kserve.io/v1alpha2\nkind: LLMInferenceService\nmetadata: {name: s}\nspec: {}\n"
    )
    result = command("convert", "--to", "llmkube", str(path))
    assert result.status == 1
    assert "lost: LLMInferenceService/s spec: its model is not among the files" in result.err


def test_says_what_the_files_have_if_nothing_can_be_converted(command: Command) -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    result = command("convert", "--to", "kserve", command.file("d.yaml", deployment))
    assert "the files have objects of kind Deployment" in result.err
    group = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "g"}}
    result = command("convert", "--to", "kserve", command.file("g.yaml", group))
    assert "kind LeaderWorkerSet; convert also reads Deployments, StatefulSets and" in result.err
    result = command("convert", "--to", "llmkube", command.file("m.yaml", model()))
    assert "no object of a family other than llmkube" in result.err
