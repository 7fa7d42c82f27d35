"""``modelhooks fit``: whether models fit into the memory of their GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.desk.cluster.offline import served
from app.desk.files.folders import read
from app.kube.base import Json
from app.workload.fit.gpumodels import gpu_model
from tests.cli.files import Command, model, service
from tests.cli.test_explain import LARGE
from tests.repository.test_readme import ROOT

CARD: Json = {"hardware": {"gpu": {"count": 1}}}


def large(**changes: Json) -> Json:
    return model(spec={**LARGE, **changes})


def test_what_does_not_fit_is_a_failure(command: Command) -> None:
    result = command("fit", command.file("all.yaml", large(), service()))
    assert result.status == 1
    first, *rows = result.out.splitlines()
    assert first.startswith("InferenceService/s in namespace default: does not fit: it needs at least")
    assert [row.split("  ")[1] for row in rows[:-1]] == [
        "weights",
        "key-value cache",
        "overhead",
        "needed",
        "available",
        "prompt cache",
    ]
    assert rows[-1] == "  Enough: 1 x H200 141 GB or 2 x A100 80 GB or 4 x A100 40 GB or 8 x T4 16 GB"
    (answer,) = command("fit", command.file("all.yaml", large(), service()), "--output", "json").json
    assert (answer["object"], answer["answer"]) == ("InferenceService/s", "does not fit")
    assert answer["rows"][-2] == ["available", "24.0 GiB", "1 x 24.0 GiB, hardware.gpu.memory of the Model"]


@pytest.mark.parametrize(("gpu", "written"), [((), "L4"), (("--gpu", "RTX 4090"), "RTX 4090")])
def test_a_repository_in_place_of_a_file_names_the_commands_for_it(
    command: Command, gpu: tuple[str, ...], written: str
) -> None:
    result = command("fit", "Qwen/Qwen3-8B-AWQ", *gpu)
    assert result.status == 2
    expected = f'modelhooks init kserve Qwen/Qwen3-8B-AWQ --gpu "{written}" | modelhooks fit -'
    assert expected in result.err
    path = Path(command.file("model.yaml", {}))
    path.write_text(command("init", "kserve", "Qwen/Qwen3-8B-AWQ", "--gpu", written).out)
    assert command("fit", str(path)).status == 0
    assert "modelhooks init" not in command("fit", "deploy/absent.yaml").err


def test_a_label_without_a_number_says_nothing(command: Command) -> None:
    document = service({"nodeSelector": {"nvidia.com/gpu.memory": "many"}})
    assert "cannot know" in command("fit", command.file("all.yaml", large(**CARD), document)).out


@pytest.mark.parametrize("mebibytes", ["\u00b2", "9" * 5000])
def test_an_object_with_an_error_is_not_judged(command: Command, mebibytes: str) -> None:
    document = service({"nodeSelector": {"nvidia.com/gpu.memory": mebibytes}})
    result = command("fit", command.file("all.yaml", large(**CARD), document))
    assert (result.out, "nvidia.com/gpu.memory" in result.err, "[invalid-value]" in result.err) == ("", True, True)


def test_the_memory_of_a_gpu_may_be_given(command: Command) -> None:
    file = command.file("all.yaml", large(**CARD), service({"contextSize": 8192}))
    assert command("fit", file).status == 0
    assert "cannot know" in command("fit", file).out
    assert command("fit", file, "--gpu-memory", "24Gi").status == 1
    assert "fits: it needs at most" in command("fit", file, "--gpu-memory", "80Gi").out
    assert "has 22.4 GiB" in command("fit", file, "--gpu-memory", "24GB").out
    assert "1 x 22.5 GiB, as requested" in command("fit", file, "--gpu", "nvidia-l4").out
    declared = command.file(
        "declared.yaml", large(), service({"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-L4"}})
    )
    assert "has 79.6 GiB" in command("fit", declared, "--gpu", "H100").out
    wrong = command("fit", file, "--gpu-memory", "24 things")
    assert (wrong.status, wrong.err) == (
        2,
        'modelhooks fit: --gpu-memory: "24 things" is not a valid quantity, such as 24Gi\n',
    )
    for small in ("24", "0", "-3Gi"):
        wrong = command("fit", file, "--gpu-memory", small)
        assert wrong.err == f'modelhooks fit: --gpu-memory: "{small}" must be at least 1G, such as 24Gi or 24GB\n'
    error = command("fit", file, "--gpu", "Z4").err
    assert error.startswith('modelhooks fit: --gpu: unknown GPU "Z4"; known: ')
    assert "T4 16 GB, " in error


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        ("RTX4090", "RTX 4090 24 GB"),
        ("NVIDIA-GeForce-RTX-4090", "RTX 4090 24 GB"),
        ("a100-80g", "A100 80 GB"),
        ("NVIDIA-A100-SXM4-40GB", "A100 40 GB"),
        ("a10g", "A10G 24 GB"),
    ],
)
def test_a_gpu_has_many_spellings(name: str, gpu: str) -> None:
    model = gpu_model(name)
    assert model is not None
    assert model.name == gpu


def test_an_object_with_errors_is_reported(command: Command) -> None:
    """It is not judged, and the others are."""
    broken = command("fit", command.file("all.yaml", large(), service({"replicas": -1})))
    assert (broken.status, broken.out) == (2, "")
    assert "error: spec.replicas: Invalid value: -1" in broken.err
    other = {**service({"replicas": -1}), "metadata": {"name": "broken"}}
    mixed = command("fit", command.file("all.yaml", large(), service(), other))
    assert mixed.out.startswith("InferenceService/s in namespace default: does not fit")
    assert "error: spec.replicas: Invalid value: -1" in mixed.err
    fits = command("fit", command.file("all.yaml", model(), service(), other))
    assert (fits.status, "does not fit" in fits.out) == (1, False)


def llmaz(*args: str) -> list[Json]:
    flavor = {
        "name": "l4",
        "limits": {"nvidia.com/gpu": 1},
        "nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-l4"},
    }
    source = {"modelHub": {"modelID": "meta-llama/Llama-3.1-70B-Instruct"}}
    spec = {"familyName": "llama3", "source": source, "inferenceConfig": {"flavors": [flavor]}}
    claim = {"modelClaim": {"modelName": "big"}, "backendRuntimeConfig": {"backendName": "vllm", "args": [*args]}}
    return [
        {"apiVersion": "llmaz.io/v1alpha1", "kind": "OpenModel", "metadata": {"name": "big"}, "spec": spec},
        {
            "apiVersion": "inference.llmaz.io/v1alpha1",
            "kind": "Playground",
            "metadata": {"name": "big"},
            "spec": {"replicas": 1, **claim},
        },
    ]


def kserve(*args: str, product: str = "NVIDIA-L4", gpus: str = "1") -> Json:
    container = {"name": "main", "args": [*args], "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    template = {"nodeSelector": {"nvidia.com/gpu.product": product}, "containers": [container]}
    return {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": "big"},
        "spec": {"model": {"uri": "hf://meta-llama/Llama-3.1-70B-Instruct", "name": "big"}, "template": template},
    }


def by_hand(image: str, *args: str) -> list[Json]:
    """Return an OpenModel, and a Service of llmaz with a pod of one's own."""
    big, _ = llmaz()
    container = {"name": "model-runner", "image": image, "args": [*args]}
    template = {"workerTemplate": {"spec": {"containers": [container]}}}
    spec = {"modelClaims": {"models": [{"name": "big"}]}, "workloadTemplate": template}
    head = {"apiVersion": "inference.llmaz.io/v1alpha1", "kind": "Service", "metadata": {"name": "big"}}
    return [big, {**head, "spec": spec}]


def by_config(*, nodes: Json, limits: Json) -> list[Json]:
    """Return an LLMInferenceService whose config names the GPU."""
    service = kserve()
    service["spec"] = {"model": service["spec"]["model"], "baseRefs": [{"name": "small"}]}
    template = {**nodes, "containers": [{"name": "main", "resources": {"limits": limits}}]}
    config = {**service, "kind": "LLMInferenceServiceConfig", "metadata": {"name": "small"}}
    return [service, {**config, "spec": {"template": template}}]


def affinity(label: str, value: str) -> Json:
    expressions = [{"key": label, "operator": "In", "values": [value]}]
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


@pytest.mark.parametrize(
    ("documents", "path"),
    [
        (llmaz(), "spec.modelClaim.modelName"),
        (
            by_hand("vllm/vllm-openai:v0.9.1", "--model", "meta-llama/Llama-3.1-70B-Instruct"),
            "spec.modelClaims.models",
        ),
        ([kserve()], "spec.model.uri"),
        (
            by_config(nodes=affinity("nvidia.com/gpu.product", "NVIDIA-L4"), limits={"nvidia.com/gpu": "1"}),
            "spec.model.uri",
        ),
        (by_config(nodes={}, limits={"nvidia.com/mig-3g.20gb": "1"}), "spec.model.uri"),
    ],
    ids=["Playground", "Service of llmaz", "LLMInferenceService", "affinity in a config", "slice in a config"],
)
def test_a_large_model_on_a_small_gpu_is_a_warning_of_every_kind(
    command: Command, documents: list[Json], path: str
) -> None:
    """The GPU is the one in the node label; weights of a repository without quantization have 16 bits."""
    file = command.file("all.yaml", *documents)
    result = command("fit", file)
    assert result.status == 1
    assert "does not fit: it needs at least 13" in result.out
    assert "16 bits each" in result.out
    assert "Enough: " in result.out
    checked = command("validate", file)
    assert checked.status == 0
    assert f"warning: {path}: the model does not fit" in checked.out


EXAMPLES = sorted(str(file) for file in ROOT.glob("examples/*/*.yaml"))


@pytest.mark.parametrize("file", EXAMPLES, ids=[file.removeprefix(f"{ROOT}/examples/") for file in EXAMPLES])
def test_every_service_gets_an_answer(command: Command, file: str) -> None:
    """One of each kind with replicas; definitions of models, engines and presets have none."""
    kinds = [(kind, manifest.name) for manifest in read([file]) if (kind := served(manifest))]
    services = [f"{kind.resource.kind}/{name}" for kind, name in kinds if kind.resource.scale]
    assert [row["object"] for row in command("fit", file, "--output", "json").json] == services


def test_what_cannot_be_judged_is_said(command: Command) -> None:
    unknown = command("fit", command.file("own.yaml", *by_hand("registry.example.com/engine:1")))
    assert unknown.status == 0
    assert unknown.out.startswith("Service/big in namespace default: cannot know: it is not known what this server")
    alone = command("fit", command.file("alone.yaml", llmaz()[1]))
    assert alone.out == "Playground/big in namespace default: cannot know: it has no pods\n"
    assert "not among the files: OpenModel big" in alone.err


def test_the_options_of_a_server_count(command: Command) -> None:
    """Quantization, context length and dtype are read from the command line as well as from fields."""
    quantized = command(
        "fit", command.file("q.yaml", kserve("--quantization", "awq", "--max-model-len=4096", "-tp=4", gpus="4"))
    )
    assert quantized.status == 0
    assert "AWQ, 4 to 5.6 bits each" in quantized.out
    assert "4096 tokens x 80 layers" in quantized.out
    wide = command("fit", command.file("w.yaml", kserve("--dtype", "float32")))
    assert "FLOAT32, 32 to 32 bits each" in wide.out


DRAFT = '{"model": "meta-llama/Llama-3.2-1B-Instruct", "num_speculative_tokens": 5}'


@pytest.mark.parametrize("options", [("--speculative-config", DRAFT), (f"--speculative-config={DRAFT}",)])
def test_a_draft_model_on_the_command_line_counts(command: Command, options: tuple[str, ...]) -> None:
    """An argument in JSON is one word, with its blanks and quotes."""
    shown = command("fit", command.file("draft.yaml", kserve(*options, "--tensor_parallel_size=4", gpus="4"))).out
    assert "not counted: --speculative-config" in shown
    assert command("fit", command.file("draft.yaml", *llmaz(*options))).status == 1


@pytest.mark.parametrize("value", ["{model:", "{1: 2}", "[", "'"])
def test_an_option_that_cannot_be_read_does_not_count(command: Command, value: str) -> None:
    file = command.file("broken.yaml", kserve("--speculative-config", value, "--dtype", "float32"))
    assert "FLOAT32" in command("fit", file).out
    assert "0 errors" in command("validate", file).err


def over_two_nodes(uri: str, gpus: str, **parallelism: int | bool) -> Json:
    document = kserve(product="NVIDIA-H100-80GB-HBM3", gpus=gpus)
    spec = document["spec"]
    spec |= {"model": {"uri": uri, "name": "big"}, "parallelism": parallelism, "worker": spec["template"]}
    return document


@pytest.mark.parametrize(
    ("document", "available", "answer"),
    [
        pytest.param(
            over_two_nodes("hf://meta-llama/Llama-3.1-405B-Instruct", "8", tensor=8, pipeline=2),
            "16 x 79.6 GiB",
            "fits",
            id="the stages of a pipeline hold different layers",
        ),
        pytest.param(
            over_two_nodes("hf://Qwen/Qwen3-235B-A22B", "8", data=16, dataLocal=8, tensor=1, expert=True),
            "16 x 79.6 GiB",
            "cannot know",
            id="all ranks share the experts",
        ),
        pytest.param(
            over_two_nodes("hf://meta-llama/Llama-3.1-70B-Instruct", "1", data=2, dataLocal=1, tensor=1),
            "1 x 79.6 GiB",
            "does not fit",
            id="without experts each rank has a copy",
        ),
    ],
)
def test_the_gpus_of_several_nodes_count(command: Command, document: Json, available: str, answer: str) -> None:
    file = command.file("nodes.yaml", document)
    shown = command("fit", file).out
    assert available in shown
    assert f"namespace default: {answer}" in shown
    assert ("does not fit" in command("validate", file).out) == (answer == "does not fit")


def test_a_large_gpu_is_no_finding(command: Command) -> None:
    file = command.file("all.yaml", kserve("--max-model-len", "4096", product="NVIDIA-H200", gpus="1"))
    assert command("fit", file).status == 0
    assert command("validate", file).out == ""


def test_the_status_of_a_model_counts(command: Command) -> None:
    """The size that the download reported takes precedence over an estimate from the name."""
    document = {**large(), "status": {"phase": "Ready", "sourceContentLength": 10 * 2**30}}
    result = command("fit", command.file("all.yaml", document, service()))
    assert result.status == 0
    assert "  weights          10.0 GiB" in result.out


@pytest.mark.parametrize("spec", [7, {"accessModes": "x"}, {"storageClassName": []}], ids=str)
def test_a_malformed_claim_among_the_files_is_named(command: Command, spec: Json | int) -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}
    asked = model(spec={"source": "pvc://c/m.gguf"})
    result = command("fit", command.file("all.yaml", asked, service(), claim))
    assert result.status == 2
    assert "PersistentVolumeClaim" in result.err


def test_related_objects_are_not_judged(command: Command) -> None:
    services, models = command.file("s.yaml", service()), command.file("m.yaml", large())
    assert command("fit", services, "--with", models).status == 1
    assert "Model m is not known" in command("fit", services).out
    nothing = command("fit", models)
    assert (nothing.status, nothing.err) == (
        2,
        "modelhooks fit: no valid object that names a model, such as an InferenceService\n",
    )


@pytest.mark.parametrize("name", ["validate", "fit", "explain"])
def test_an_object_of_the_files_replaces_a_related_one(command: Command, name: str) -> None:
    file = command.file("mine/all.yaml", large(**CARD), service())
    result = command(name, file, "--with", command.file("cluster/m.yaml", large()))
    assert result.status == 0
    assert "24.0 GiB" not in result.out


def test_validate_warns_of_it(command: Command) -> None:
    result = command("validate", command.file("all.yaml", large(), service()))
    assert result.status == 0
    assert (
        "warning: spec.modelRef: the model does not fit: it needs at least 36.6 GiB, and has 24.0 GiB; enough: "
        in result.out
    )


CLAIM: Json = {"gpu": {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "two-gpus"}]}}
IN_POD: Json = {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "two-gpus"}]}


def llm(resources: Json, pod: Json | None = None) -> Json:
    kind = {"apiVersion": "serving.kserve.io/v1alpha2", "kind": "LLMInferenceService", "metadata": {"name": "chat"}}
    template = {**(pod or {}), "containers": [{"name": "main", "resources": resources}]}
    return {**kind, "spec": {"model": {"uri": "hf://Qwen/Qwen2.5-7B-Instruct"}, "template": template}}


@pytest.mark.parametrize(
    ("documents", "why"),
    [
        ([large(hardware=CLAIM), service()], "only the ResourceClaims say which GPUs there are"),
        ([llm({"claims": [{"name": "gpus"}]}, IN_POD)], "only the ResourceClaims say which GPUs there are"),
        ([llm({"limits": {"habana.ai/gaudi": "2"}})], "name the GPU in a node selector"),
        *(
            ([llm({"limits": {name: "20"}})], f"how much memory a {name} has is not known")
            for name in ("aliyun.com/gpu-mem", "nvidia.com/gpu.shared", "aws.amazon.com/neuroncore", "amd.com/cpx_nps4")
        ),
    ],
)
def test_devices_of_every_maker_and_claims_are_gpus(command: Command, documents: list[Json], why: str) -> None:
    """Gigabytes of a shared GPU are no number of GPUs, and a part of a GPU is none of host memory."""
    answer = command("fit", command.file("all.yaml", *documents), "--output", "json").json[0]
    assert (answer["answer"], why in answer["why"]) == ("cannot know", True)


@pytest.mark.parametrize(
    "name", ["nvidia.com/gpu.shared", "amd.com/cpx_nps4", "huawei.com/Ascend910", "nvidia.com/gpumem"]
)
def test_the_gpu_of_a_part_can_be_given(command: Command, name: str) -> None:
    file = command.file("part.yaml", llm({"limits": {name: "1"}}))
    answer = command("fit", file, "--gpu", "H100", "--output", "json").json[0]
    assert (answer["answer"], "1 x 79.6 GiB, as requested" in str(answer)) == ("fits", True)


def test_claimed_gpus_are_counted(command: Command) -> None:
    """Devices of NVIDIA's class are whole GPUs; the claim's annotation has their number."""
    answer = command("fit", "examples/kserve/devices.yaml", "--gpu", "H100", "--output", "json").json[0]
    assert (answer["answer"], "2 x 79.6 GiB, as requested" in str(answer)) == ("fits", True)


def test_a_server_uses_one_mig_slice_in_each_family(command: Command) -> None:
    sliced = {"gpu": {"count": 2, "resourceName": "nvidia.com/mig-3g.40gb"}}
    file = command.file("a.yaml", large(hardware=sliced), service(), llm({"limits": {"nvidia.com/mig-3g.40gb": "2"}}))
    answers = command("fit", file, "--output", "json").json
    assert ["1 x 38.0 GiB, slice nvidia.com/mig-3g.40gb" in str(answer) for answer in answers] == [True, True]


@pytest.mark.parametrize(
    ("limits", "pod", "available"),
    [
        ({"nvidia.com/mig-3g.40gb": "1"}, {}, "1 x 38.0 GiB, slice nvidia.com/mig-3g.40gb"),
        ({"nvidia.com/mig-1g.10gb": "4"}, {}, "1 x 9.5 GiB, slice nvidia.com/mig-1g.10gb"),
        (
            {"nvidia.com/mig-1g.20gb": "1"},
            {"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}},
            "1 x 19.0 GiB, slice nvidia.com/mig-1g.20gb",
        ),
        (
            {"nvidia.com/gpu": "1"},
            {"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-2g.10gb"}},
            "1 x 9.5 GiB, slice NVIDIA-A100-SXM4-40GB-MIG-2g.10gb",
        ),
        (
            {"nvidia.com/gpu": "1"},
            {
                "nodeSelector": {
                    "cloud.google.com/gke-accelerator": "nvidia-tesla-a100",
                    "cloud.google.com/gke-gpu-partition-size": "3g.20gb",
                }
            },
            "1 x 19.0 GiB, slice mig-3g.20gb",
        ),
    ],
)
def test_a_slice_has_the_memory_of_its_profile(command: Command, limits: Json, pod: Json, available: str) -> None:
    """A process uses one slice of several."""
    file = command.file("all.yaml", llm({"limits": limits}, pod))
    assert available in command("fit", file).out
    assert "37.3 GiB, as requested" in command("fit", file, "--gpu-memory", "40G").out


@pytest.mark.parametrize(
    ("options", "used"),
    [
        ((), "1 x 79.6 GiB"),
        (("--tensor-parallel-size", "2"), "2 x 79.6 GiB"),
        (("--tensor-parallel-size", "2", "-pp", "2"), "4 x 79.6 GiB"),
        (("--tensor-parallel-size", "$GPUS"), "4 x 79.6 GiB"),
        (("-dp", "4"), "1 x 79.6 GiB"),
    ],
)
def test_vllm_uses_the_gpus_that_its_options_name(command: Command, options: tuple[str, ...], used: str) -> None:
    file = command.file("all.yaml", kserve(*options, product="NVIDIA-H100-80GB-HBM3", gpus="4"))
    out = command("fit", file).out
    assert used in out
    assert ("of the pod's 4 GPUs" in out) == (not used.startswith("4"))


def test_adapters_on_the_command_line_are_not_counted(command: Command) -> None:
    file = command.file("all.yaml", kserve("--enable-lora", "-tp=4", product="NVIDIA-H200", gpus="4"))
    assert "not counted: --enable-lora" in command("fit", file).out


def test_a_gpu_that_pods_share_in_time_has_an_unknown_size(command: Command) -> None:
    """The label's GPU is not the pod's alone."""
    document = kserve("--max-model-len=8192", "--model=Qwen/Qwen3-8B")
    document["spec"]["template"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu.shared": "1"}}
    file = command.file("all.yaml", document)
    told = command("fit", file).out
    assert "no GPU is requested" not in told
    assert "cannot know: it needs" in told
    assert "default: fits" in command("fit", file, "--gpu", "MI300X").out
