"""Values that pass the schema, and at which a program that reads the children ends, or does something else.

Each is found by a rule that holds for all values of its kind; what is like it and right causes no finding.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.kube.base import Json
from tests.cli.files import Command, model, service

PART = "big-0000{}-of-00003.gguf"
LLMAZ = "inference.llmaz.io/v1alpha1"
ROUTED: Json = {"route": {}, "gateway": {}}
TEMPORARY: Json = {
    "extraVolumes": [{"name": "t", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "t", "mountPath": "/tmp/"}],
}
"""A volume for temporary files."""
TOOLS = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
LLM_D = "ghcr.io/llm-d/llm-d-cuda:v0.8.1"
BATCH = ("--max-num-seqs", "512", "--max_num_batched_tokens=256")
DTYPE = ("--dtype", "bfloat16")
T4: Json = {"nodeSelector": {"nvidia.com/gpu.product": "Tesla-T4"}}
READ_ONLY: Json = {"securityContext": {"readOnlyRootFilesystem": True}}
PICKER: Json = {
    "apiVersion": "inference.networking.x-k8s.io/v1alpha1",
    "kind": "EndpointPickerConfig",
    "plugins": [{"type": "queue-scorer"}, {"type": "of-our-own", "name": "mine"}],
}


def served(
    _: str = "",
    *,
    source: str = "hf://acme/chat/chat.gguf",
    files: tuple[str, ...] = (),
    disk: str = "",
    **spec: Any,
) -> Any:
    resources = {"memory": "8Gi", **({"ephemeralStorage": disk} if disk else {})}
    return [model(spec={"source": source, "files": list(files)}), service({"resources": resources, **spec})]


def on_disk(limit: str, **spec: Any) -> list[Json]:
    weights, *services = on_gpus(1, resources={"ephemeralStorage": limit}, **spec)
    weights["spec"]["source"] = "hf://acme/chat-70b"
    return [weights, *services]


def on_gpus(count: int, runtime: str = "vllm", **spec: Any) -> list[Json]:
    weights = {"source": "hf://acme/chat", "format": "safetensors"}
    hardware = {"accelerator": "cuda", "gpu": {"count": count}}
    fetched = {} if runtime == "tgi" else {"skipModelInit": True}
    return [model(spec={**weights, "hardware": hardware}), service({"runtime": runtime, **fetched, **spec})]


def with_arguments(*arguments: str, gpus: int = 1, runtime: str = "vllm", **spec: Any) -> list[Json]:
    return on_gpus(gpus, runtime, extraArgs=list(arguments), **spec)


def generic(*arguments: str, **spec: Any) -> list[Json]:
    return [model(), service({"runtime": "generic", "image": "example.com/e:1", "args": list(arguments), **spec})]


def open_model(flavor: Json | None = None, **hub: Any) -> Json:
    flavors = {} if flavor is None else {"inferenceConfig": {"flavors": [{"name": "gpu", **flavor}]}}
    spec = {"familyName": "chat", "source": {"modelHub": {"modelID": "acme/chat", **hub}}, **flavors}
    return {"apiVersion": "llmaz.io/v1alpha1", "kind": "OpenModel", "metadata": {"name": "m"}, "spec": spec}


def hosted(path: str) -> Json:
    spec = {"familyName": "chat", "source": {"uri": f"host://{path}"}}
    return {"apiVersion": "llmaz.io/v1alpha1", "kind": "OpenModel", "metadata": {"name": "m"}, "spec": spec}


def playground(
    backend: str = "vllm",
    arguments: tuple[str, ...] = (),
    hub: Json | None = None,
    flavor: Json | None = None,
    **spec: Any,
) -> Any:
    config = {"backendName": backend, "args": list(arguments)}
    whole = {"modelClaim": {"modelName": "m"}, "backendRuntimeConfig": config, **spec}
    return [
        open_model(flavor, **(hub or {})),
        {"apiVersion": LLMAZ, "kind": "Playground", "metadata": {"name": "p"}, "spec": whole},
    ]


def scaled(type_: str, target: Json, **fields: Any) -> Any:
    member = type_[0].lower() + type_[1:]
    fields = fields or ({"name": "cpu"} if type_ == "Resource" else {"metric": {"name": "rps"}})
    metric = {"type": type_, member: {**fields, "target": target}}
    elastic = {"minReplicas": 1, "maxReplicas": 3, "scaleTrigger": {"hpa": {"metrics": [metric]}}}
    return playground(elasticConfig=elastic)


def of_service(*arguments: str, **pod: Any) -> list[Json]:
    runner = {"name": "model-runner", "image": "vllm/vllm-openai:v0.7.3", "args": list(arguments)}
    spec = {
        "modelClaims": {"models": [{"name": "m"}]},
        "workloadTemplate": {"workerTemplate": {"spec": {"containers": [runner], **pod}}},
    }
    return [open_model(), {"apiVersion": LLMAZ, "kind": "Service", "metadata": {"name": "p"}, "spec": spec}]


def llm(**spec: Any) -> list[Json]:
    whole = {"model": {"uri": "hf://acme/chat", "name": "acme/chat"}, **spec}
    kind = {"apiVersion": "serving.kserve.io/v1alpha2", "kind": "LLMInferenceService"}
    return [{**kind, "metadata": {"name": "k"}, "spec": whole}]


def main(*arguments: str, **fields: Any) -> Json:
    return {"template": {"containers": [{"name": "main", "args": list(arguments), **fields}]}}


def additional(text: str, **fields: Any) -> Json:
    return main(env=[{"name": "VLLM_ADDITIONAL_ARGS", "value": text}], **fields)


def picker(*references: str, **config: Any) -> list[Json]:
    profile = {"name": "default", "plugins": [{"pluginRef": name} for name in references]}
    inline = {**PICKER, "schedulingProfiles": [profile], **config}
    return llm(router={**ROUTED, "scheduler": {"config": {"inline": inline}}})


def routed(**spec: Any) -> list[Json]:
    return llm(router={"gateway": {}, "route": {"http": {"spec": spec}}})


def rule(**fields: Any) -> list[Json]:
    return routed(rules=[{"backendRefs": [{"name": "x", "port": 80}], **fields}])


def pool(key: str, **spec: Any) -> list[Json]:
    whole = {
        "selector": {"matchLabels": {key: "k"}},
        "targetPorts": [{"number": 8000}],
        "endpointPickerRef": {"name": "e", "port": {"number": 9002}},
    }
    return llm(router={**ROUTED, "scheduler": {"pool": {"spec": whole}}}, **spec)


def claiming(**spec: Any) -> Any:
    volume = {"name": "s", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], **spec}}}}
    return served(extraVolumes=[volume], extraVolumeMounts=[{"name": "s", "mountPath": "/s"}])


PROBE: Json = {"httpGet": {"path": "/health", "port": 8080}}
TLS = ("--ssl-keyfile", "/tls/key", "--ssl-certfile", "/tls/cert")
AVERAGE: Json = {"type": "AverageValue", "averageValue": "500m"}

FOUND: dict[str, tuple[list[Json], str]] = {
    "parts of a model": (served(source="https://example.com/" + PART.format(1)), "big-00002-of-00003.gguf is not"),
    "first part": (served(source="hf://a/b", files=tuple(map(PART.format, (2, 1, 3)))), "begins with part 1"),
    "one part too few": (served(source="hf://a/b", files=tuple(map(PART.format, (1, 3)))), "3 parts, and big-00002"),
    "another format": (served(source="hf://a/b/model.safetensors"), "only loads GGUF, not model.safetensors"),
    "device": (served(tensorOverrides=["exps=cpu"]), "names of devices are in capitals"),
    "glob": (served(tensorOverrides=["*exps=CPU"]), "cannot begin with '*'"),
    "slots": (served(contextSize=4096, parallelSlots=32), "32 slots share it: 128 tokens"),
    "prefix": (served(extraArgs=["--api-prefix", "/llm"]), "the probes fail with --api-prefix"),
    "probe": (served(probeOverrides={"readiness": {"httpGet": {"port": 8000}}}), "listens on port 8080, not 8000"),
    "port of a generic server": (generic("--port", "9000"), "set containerPort to 9000"),
    "TLS": (with_arguments(*TLS), "the probes fail with --ssl-keyfile"),
    "TLS, and one probe": (with_arguments(*TLS, probeOverrides={"startup": PROBE}), "set all three of probeOverrides"),
    "TLS of SGLang": (with_arguments(*TLS, runtime="sglang"), "the probes fail with --ssl-keyfile"),
    "temporary files": (on_gpus(1, **READ_ONLY), "vLLM ends if it cannot write to /tmp"),
    "tools": (with_arguments("--enable-auto-tool-choice"), "without --tool-call-parser"),
    "parser": (with_arguments("--tool-call-parser=hermes"), "no effect without --enable-auto-tool-choice"),
    "name of a parser": (with_arguments(*TOOLS[:2], "llama3"), "does not take llama3 for --tool-call-parser"),
    "case of a parser": (with_arguments(*TOOLS[:2], "Hermes"), 'did you mean "hermes"?'),
    "case of a parser for reasoning": (with_arguments("--reasoning-parser", "Qwen3"), 'did you mean "qwen3"?'),
    "case of a parser of KServe": (
        llm(**main(*TOOLS[1:2], "Hermes", env=[{"name": "VLLM_ADDITIONAL_ARGS", "value": TOOLS[0]}])),
        "does not take Hermes",
    ),
    "parser of another engine": (with_arguments("--reasoning-parser=deepseek-r1"), 'did you mean "deepseek_r1"?'),
    "batch": (with_arguments(*BATCH), "vLLM ends with --max-num-seqs 512 above --max-num-batched-tokens 256"),
    "batch beside a field": (
        with_arguments("--max-num-seqs=1024", vllmConfig={"maxNumBatchedTokens": 512}),
        "1024 above",
    ),
    "batch beside slots": (with_arguments("--max-num-batched-tokens", "32", parallelSlots=64), "64 above"),
    "batch of llmaz": (playground(arguments=BATCH), "--max-num-seqs 512 above"),
    "batch of KServe": (llm(**main(*BATCH)), "--max-num-seqs 512 above"),
    "disk": (on_disk("20Gi"), "onto its disk, and they need"),
    "disk of a download in the pod": (
        served(source="https://h/chat-7b-q8_0.gguf", disk="4Gi", modelCache={"persistence": "Ephemeral"}),
        "onto its disk, and they need",
    ),
    "data type": (with_arguments(*DTYPE, **T4), "vLLM ends with bfloat16 on Tesla-T4"),
    "data type of a field": (on_gpus(1, vllmConfig={"dtype": "bfloat16"}, **T4), "ends with bfloat16 on Tesla-T4"),
    "data type of llmaz": (playground(arguments=DTYPE, flavor=T4), "vLLM ends with bfloat16"),
    "data type of a Service": (of_service(*DTYPE, **T4), "vLLM ends with bfloat16"),
    "data type of KServe": (llm(template={**main(*DTYPE)["template"], **T4}), "vLLM ends with bfloat16"),
    "underscores": (with_arguments("--enable_log_outputs"), "without --enable-log-requests"),
    "adapters": (with_arguments("--lora-modules", "a=/b"), "without --enable-lora"),
    "pipeline": (with_arguments("--pipeline-parallel-size", "2", gpus=2), "--pipeline-parallel-size is 4, but"),
    "product": (with_arguments("-tp", "2", "-pp", "2", gpus=2), "-tp times -pp is 4, but a pod has 2 GPUs"),
    "shards": (with_arguments("--num-shard", "4", runtime="tgi", gpus=2), "--num-shard is 4"),
    "copies": (on_gpus(2, "sglang", sglangConfig={"dataParallelSize": 2}), "is 4, but a pod has 2 GPUs"),
    "three GPUs": (on_gpus(3), "the tensor-parallel size is 3: the server ends"),
    "six ranks": (llm(parallelism={"tensor": 6}), "the tensor-parallel size is 6: the server ends"),
    "size of a claim": (claiming(), "write the size of the volume"),
    "directory": (playground("llamacpp"), "is a directory"),
    "part of a hub": (playground("llamacpp", hub={"filename": PART.format(1)}), "is not fetched"),
    "repository": (playground(hub={"modelID": "acme/chat/gguf"}), "write <owner>/<name>"),
    "target of 0": (scaled("Resource", {"type": "Utilization", "averageUtilization": 0}), "must be above 0"),
    "type of target": (scaled("Pods", {"type": "Utilization", "averageUtilization": 5}), '"AverageValue"'),
    "value of a resource": (scaled("Resource", {"type": "Value", "value": "1"}), "Unsupported value"),
    "resource": (scaled("Resource", AVERAGE, name="nvidia.com/gpu"), "only cpu and memory are measured"),
    "tools of llmaz": (playground(arguments=("--enable-auto-tool-choice",)), "without --tool-call-parser"),
    "tools of a Service": (of_service("--enable-auto-tool-choice"), "without --tool-call-parser"),
    "parser of a Service": (of_service(*TOOLS[:2], "qwen3_coder"), "vLLM 0.7.3 does not take qwen3_coder"),
    "parser for reasoning": (of_service("--enable-reasoning", "--reasoning-parser", "qwen3"), "does not take qwen3"),
    "option of a Service": (of_service("--tensor-paralel-size"), "has no option"),
    "tools of KServe": (llm(**main("--enable-auto-tool-choice")), "without --tool-call-parser"),
    "model beside that of a preset": (
        llm(**main("--model", "acme/chat", image="vllm/vllm-openai:v0.20.0")),
        "vLLM 0.20.0 ends with --model beside the model",
    ),
    "model of an unknown image": (
        llm(**main("--model=acme/chat", image="acme/vllm:1")),
        "vLLM ends with --model beside",
    ),
    "snapshot on a claim": (
        llm(model={"uri": f"pvc://c/hub/snapshots/{'a1' * 20}", "name": "acme/chat"}),
        "has links to the blobs beside it",
    ),
    "snapshot on nodes": ([hosted(f"/hub/snapshots/{'a1' * 20}")], "has links to the blobs beside it"),
    "turns of a Model": (
        [
            model(
                spec={"source": "hf://a/b", "hardware": {"gpu": {"count": 2, "resourceName": "nvidia.com/gpu.shared"}}}
            )
        ],
        "2 turns may be of one GPU",
    ),
    "option of a preset": (llm(**main("--max-model-lne", "8")), "vLLM 0.23.0 has no option --max-model-lne"),
    "option of llm-d": (llm(**main("--guided-decoding-backend=auto", image=LLM_D)), "vLLM 0.23.0 has no option"),
    "option in the variable": (llm(**additional("--max-model-lne 8")), "vLLM 0.23.0 has no option --max-model-lne"),
    "parser in the variable": (llm(**additional("--reasoning-parser 'Qwen3'")), "does not take Qwen3"),
    "number in the variable": (llm(**additional("-tp 0")), "it must be at least 1"),
    "ratio of traces": (llm(tracing={"samplerArg": "5"}), "must be a number between 0 and 1"),
    "ratio in words": (
        llm(tracing={"sampler": "traceidratio", "samplerArg": "5%"}),
        "must be a number between 0 and 1",
    ),
    "plugin": (picker("theirs"), 'plugins has none of the name "theirs"'),
    "version of the picker's API": (picker(apiVersion=""), "has no apiVersion"),
    "another version of it": (picker(apiVersion="inference.networking.k8s.io/v1"), "ends with another than inference"),
    "type of a plugin": (picker(plugins=[{"name": "a"}]), "has no type"),
    "plugins of one name": (picker(plugins=[{"type": "a"}, {"type": "b", "name": "a"}]), "another plugin is named"),
    "profiles of one name": (picker(schedulingProfiles=[{"name": "a"}, {"name": "a"}]), "another profile is named"),
    "profile without a name": (picker(schedulingProfiles=[{"plugins": []}]), "has no name"),
    "handlers of profiles": (
        picker(plugins=[{"type": "single-profile-handler"}, {"type": "pd-profile-handler"}]),
        "single-profile-handler and pd-profile-handler each choose the profile",
    ),
    "profiles that nothing chooses": (
        picker(plugins=[{"type": "queue-scorer"}], schedulingProfiles=[{"name": "a"}, {"name": "b"}]),
        "no plugin chooses among profiles, and there are 2",
    ),
    "handler of one profile": (
        picker(plugins=[{"type": "single-profile-handler"}], schedulingProfiles=[{"name": "a"}, {"name": "b"}]),
        "single-profile-handler takes one profile, and there are 2",
    ),
    "retries": (rule(retry={"attempts": 3}), "needs the experimental channel"),
    "sessions": (rule(sessionPersistence={"sessionName": "s"}), "needs the experimental channel"),
    "pool": (pool("app"), "no pod has this label"),
}


@pytest.mark.parametrize("case", FOUND)
def test_finds_what_a_reader_rejects(command: Command, case: str) -> None:
    documents, words = FOUND[case]
    findings = command("validate", command.file("wrong.yaml", *documents), "--output", "json").findings
    assert [finding for finding in findings if words in finding["message"]], findings


ALL_PROBES: Json = {
    "probeOverrides": {name: {"tcpSocket": {"port": 8000}} for name in ("startup", "liveness", "readiness")}
}

RIGHT: dict[str, list[Json]] = {
    "all parts": served(source="hf://a/b", files=tuple("q4/" + PART.format(number) for number in (1, 2, 3))),
    "parts on a claim": served(source="pvc://claim/" + PART.format(1)),
    "one part": served(source="https://example.com/big-00001-of-00001.gguf?download=true"),
    "devices": served(tensorOverrides=[r"\.ffn_.*_exps\.=CPU", "blk=CUDA0"]),
    "slots": served(contextSize=32768, parallelSlots=8),
    "shared cache": served(contextSize=4096, parallelSlots=16, extraArgs=["--kv-unified"]),
    "probe": served(containerPort=9000, probeOverrides={"readiness": {"httpGet": {"port": 9000}}}),
    "probe of a command": served(command=["proxy"], probeOverrides={"readiness": {"httpGet": {"port": 9000}}}),
    "generic": generic("--port=3000", containerPort=3000),
    "generic, from a variable": generic("--port", "$(PORT)", env=[{"name": "PORT", "value": "8080"}]),
    "generic, with a port for probes": generic(probeOverrides={"readiness": {"httpGet": {"port": 9090}}}),
    "TLS": with_arguments(*TLS, **ALL_PROBES),
    "temporary files": on_gpus(1, **READ_ONLY, **TEMPORARY),
    "llama.cpp writes none": served(**READ_ONLY),
    "tools": with_arguments(*TOOLS),
    "parser for reasoning that is not read": of_service("--reasoning-parser", "qwen3"),
    "batch of one token each": with_arguments(*BATCH[:2], "--max-num-batched-tokens", "512"),
    "batch of thousands": with_arguments(*BATCH[:2], "--max-num-batched-tokens", "8k"),
    "last of two": llm(**main(*BATCH, "--max-num-seqs", "8")),
    "batch and as many slots": with_arguments("--max-num-batched-tokens", "64", parallelSlots=64),
    "disk": on_disk("200Gi"),
    "disk beside a volume": on_disk(
        "20Gi", extraVolumes=[{"name": "t", "emptyDir": {}}], extraVolumeMounts=[{"name": "t", "mountPath": "/root"}]
    ),
    "disk of another server": on_disk("20Gi", command=["serve"]),
    "disk of a model on a claim": served(source="https://h/chat-7b-q8_0.gguf", disk="4Gi"),
    "data type of a newer GPU": with_arguments(*DTYPE, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-L4"}),
    "data type for another server": on_gpus(1, vllmConfig={"dtype": "bfloat16"}, command=["serve"], **T4),
    "another data type": with_arguments("--dtype", "half", **T4),
    "no parser": with_arguments("--reasoning-parser", "None", image="vllm/vllm-openai:v0.33.0"),
    "parser of a plugin": with_arguments(*TOOLS[:2], "mine", "--tool_parser_plugin", "/parsers/mine.py"),
    "an engine of its own": with_arguments("--enable-auto-tool-choice", command=["serve"]),
    "adapters": with_arguments("--enable-lora", "--lora-modules", "a=/x"),
    "pipeline": with_arguments("-pp", "2", gpus=4, vllmConfig={"tensorParallelSize": 2}),
    "copies on three GPUs": with_arguments("-tp", "1", "-dp", "3", gpus=3),
    "one GPU of eight": on_gpus(8, vllmConfig={"tensorParallelSize": 1}),
    "attention of each copy": on_gpus(
        8, "sglang", sglangConfig={"tensorParallelSize": 8, "dataParallelSize": 8}, extraArgs=["--enable-dp-attention"]
    ),
    "eight ranks": llm(parallelism={"tensor": 8}),
    "claim": claiming(resources={"requests": {"storage": "1Ti"}}),
    "file": playground("llamacpp", hub={"filename": "q4/chat.gguf"}),
    "repository without an owner": playground(hub={"modelID": "gpt2"}),
    "pods": scaled("Pods", AVERAGE),
    "external": scaled("External", {"type": "Value", "value": 30}),
    "memory": scaled("Resource", {"type": "AverageValue", "averageValue": "10Gi"}, name="memory"),
    "tools of llmaz": playground(arguments=TOOLS),
    "tools of KServe": llm(**main(*TOOLS)),
    "tools in the variable": llm(
        **main(TOOLS[0], env=[{"name": "VLLM_ADDITIONAL_ARGS", "value": "--tool-call-parser hermes"}])
    ),
    "option of an earlier preset": llm(**main("--swap-space", "4")),
    "option of a preset of one's own": llm(baseRefs=[{"name": "ours"}], **main("--brand-new")),
    "option of an image of one's own": llm(**main("--brand-new", image="example.com/vllm:1")),
    "option of a release between": llm(**main("--async-scheduling", image=LLM_D.replace("0.8.1", "0.9.0"))),
    "option of another llm-d": llm(**main("--brand-new", image=LLM_D.replace("0.8.1", "0.8.2"))),
    "options in the variable": llm(**additional("--seed 1 --hf-overrides '{\"a\": [1]}'")),
    "variable of another script": llm(**additional("--max-model-lne 8", command=["serve"])),
    "ratio of traces": llm(tracing={"samplerArg": "1e-3"}),
    "argument of another sampler": llm(tracing={"sampler": "jaeger_remote", "samplerArg": "endpoint=http://j:14250"}),
    "argument of an unknown sampler": llm(baseRefs=[{"name": "ours"}], tracing={"samplerArg": "endpoint=http://j"}),
    "plugins": picker("queue-scorer", "mine", "max-score-picker"),
    "pool": pool("app", labels={"app": "k"}),
    "pool of the defaults": pool("app.kubernetes.io/name"),
}


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_like_it_and_right_causes_no_finding(command: Command, case: str) -> None:
    assert command("validate", command.file("right.yaml", *RIGHT[case]), "--output", "json").other_findings == []


def test_no_fix_replaces_all_arguments_of_a_variable(command: Command) -> None:
    path = command.file("wrong.yaml", *llm(**additional("--seed 1 --max-model-lne 8")))
    (finding,) = command("validate", path, "--output", "json").other_findings
    assert 'did you mean "--max-model-len"?' in finding["message"]
    command("validate", path, "--fix")
    assert "--seed 1 --max-model-lne 8" in Path(path).read_text()


def test_a_picker_reads_its_configuration_in_both_groups(command: Command) -> None:
    for group in ("inference.networking.x-k8s.io", "llm-d.ai"):
        written = picker(apiVersion=f"{group}/v1alpha1")
        found = command("validate", command.file("right.yaml", *written), "--output", "json").other_findings
        assert found == []
