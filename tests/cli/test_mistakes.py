"""Mistakes that people make in manifests: each is one finding, at its field, with what to write instead."""

from __future__ import annotations

import pytest

from app.kube.base import Json
from tests.cli.files import Command, model, service

SERVED_BY_VLLM: Json = {"runtime": "vllm", "skipModelInit": True}
LLM_MODEL: Json = {"uri": "hf://a/b", "name": "a/b"}


def llm(spec: Json) -> Json:
    kind = {"apiVersion": "serving.kserve.io/v1alpha2", "kind": "LLMInferenceService", "metadata": {"name": "qwen"}}
    return {**kind, "spec": {"model": LLM_MODEL, **spec}}


def playground(config: Json) -> Json:
    kind = {"apiVersion": "inference.llmaz.io/v1alpha1", "kind": "Playground", "metadata": {"name": "opt"}}
    return {**kind, "spec": {"modelClaim": {"modelName": "opt"}, "backendRuntimeConfig": config}}


def openmodel(uri: str) -> Json:
    kind = {"apiVersion": "llmaz.io/v1alpha1", "kind": "OpenModel", "metadata": {"name": "opt"}}
    return {**kind, "spec": {"familyName": "opt", "source": {"uri": uri}}}


def main_container(container: Json) -> Json:
    return llm({"template": {"containers": [{"name": "main", **container}]}})


def volume(source: Json) -> Json:
    return service({"extraVolumes": [{"name": "files", **source}]})


def scaled_by_cpu(target: Json) -> Json:
    metrics = [{"type": "Resource", "name": "cpu", **target}]
    return service({"resources": {"cpu": "1"}, "autoscaling": {"maxReplicas": 3, "metrics": metrics}})


def startup_probe(probe: Json) -> Json:
    return service({"probeOverrides": {"startup": {"httpGet": {"path": "/", "port": 8080}, **probe}}})


def path_match(value: str) -> Json:
    rule = {"matches": [{"path": {"type": "PathPrefix", "value": value}}]}
    return llm({"router": {"route": {"http": {"spec": {"rules": [rule]}}}, "gateway": {}}})


BESIDE = "and key: beside it"
MISTAKES: dict[str, tuple[Json, str, str]] = {
    "field a level too high": (
        service({"runtime": "vllm", "tensorParallelSize": 2}),
        "spec.tensorParallelSize",
        'did you mean "vllmConfig.tensorParallelSize" or "sglangConfig.tensorParallelSize"?',
    ),
    "field of a container": (
        llm({"resources": {"limits": {"cpu": "1"}}}),
        "spec.resources",
        'did you mean "template.containers[].resources"?',
    ),
    "initials": (
        volume({"pvc": {"claimName": "x"}}),
        "spec.extraVolumes[0].pvc",
        'did you mean "persistentVolumeClaim"?',
    ),
    "mode in decimals": (
        volume({"configMap": {"name": "c", "defaultMode": 644}}),
        "spec.extraVolumes[0].configMap.defaultMode",
        "must be between 0 and 0777 in octal; write 0644 or 420",
    ),
    "mode of one file": (
        volume({"secret": {"secretName": "s", "items": [{"key": "a", "path": "a", "mode": 999}]}}),
        "spec.extraVolumes[0].secret.items[0].mode",
        "write 0644 or 420",
    ),
    "name of a Secret": (
        service({**SERVED_BY_VLLM, "vllmConfig": {"hfTokenSecretRef": "hf-token"}}),
        "spec.vllmConfig.hfTokenSecretRef",
        f"must be an object; write name: hf-token, {BESIDE}",
    ),
    "address of an adapter": (
        llm({"model": {**LLM_MODEL, "lora": {"adapters": ["hf://a/lora"]}}}),
        "spec.model.lora.adapters[0]",
        "must be an object; write uri: hf://a/lora, and name: beside it",
    ),
    "name of the service": (
        service(name="My_Chat"),
        "metadata.name",
        "must begin with a letter and consist of lower case letters, digits, '-' and '.', as names of Services do",
    ),
    "thousandths of a byte": (
        service({"resources": {"memory": "512m"}}),
        "spec.resources.memory",
        "512m is 0.512 bytes; did you mean 512M or 512Mi?",
    ),
    "thousands of bytes": (
        service({"resources": {"memory": "512k"}}),
        "spec.resources.memory",
        "512k is 512000 bytes; did you mean 512M or 512Mi?",
    ),
    "memory without a unit": (
        main_container({"resources": {"limits": {"memory": "16"}}}),
        "spec.template.containers[0].resources.limits.memory",
        "16 is 16 bytes; did you mean 16Gi?",
    ),
    "number of gibibytes": (
        model(spec={"source": "a/b", "hardware": {"accelerator": "cuda", "gpu": {"count": 1, "memory": 24}}}),
        "spec.hardware.gpu.memory",
        "must be a string; write memory: 24Gi",
    ),
    "number of mebibytes": (
        service({"resources": {"gpu": 1, "gpuMemory": 24576}}),
        "spec.resources.gpuMemory",
        "must be a string; write gpuMemory: 24576Mi",
    ),
    "number of bytes": (
        service({"resources": {"memory": 17179869184}}),
        "spec.resources.memory",
        'must be a string; write "17179869184" in quotes',
    ),
    "millions of CPUs": (
        playground({"resources": {"limits": {"cpu": "500M"}}}),
        "spec.backendRuntimeConfig.resources.limits.cpu",
        "500M is 500000000 CPUs; did you mean 500m?",
    ),
    "option and value in one item": (
        service({"extraArgs": ["--ctx-size 8192"]}),
        "spec.extraArgs[0]",
        'write "--ctx-size", "8192"',
    ),
    "option and value in one item of llmaz": (
        playground({"args": ["--max-model-len 4096"]}),
        "spec.backendRuntimeConfig.args[0]",
        'write "--max-model-len", "4096"',
    ),
    "option and value in one item of KServe": (
        main_container({"image": "a/b:1", "command": ["vllm", "serve"], "args": ["--seed 1"]}),
        "spec.template.containers[0].args[0]",
        'write "--seed", "1"',
    ),
    "option with a colon": (
        service({"extraArgs": [{"--flash-attn": True}]}),
        "spec.extraArgs[0]",
        'must be a string; the colon makes it an object; write "--flash-attn" and its value as two strings',
    ),
    "option of a container with a colon": (
        main_container({"args": [{"--seed": 1}]}),
        "spec.template.containers[0].args[0]",
        'the colon makes it an object; write "--seed" and its value as two strings',
    ),
    "string with a colon": (
        model(spec={"source": "hf://a/b", "files": [{"a": "b"}]}),
        "spec.files[0]",
        "the colon makes it an object; write it as one string in quotes",
    ),
    "copies without a number for each node": (
        llm({"parallelism": {"data": 2}}),
        "spec.parallelism.dataLocal",
        "data requires dataLocal, the number of copies on each node",
    ),
    "copies on each node without their sum": (
        llm({"parallelism": {"dataLocal": 2}}),
        "spec.parallelism.data",
        "dataLocal requires data, the number of copies in all",
    ),
    "pipeline and copies": (
        llm({"parallelism": {"pipeline": 2, "data": 2}}),
        "spec.parallelism",
        "pipeline cannot be combined with data and dataLocal; keep one kind of parallelism",
    ),
    "page of the Hub": (
        llm({"model": {**LLM_MODEL, "uri": "https://huggingface.co/a/b"}}),
        "spec.model.uri",
        "this is a page of the Hugging Face Hub, not a file: write hf://a/b for the whole model",
    ),
    "one slash in LLMKube": (
        model(spec={"source": "s3:/bucket/path"}),
        "spec.source",
        "did you mean s3://bucket/path?",
    ),
    "one slash in llmaz": (
        openmodel("oss:/bucket.example.com/path"),
        "spec.source.uri",
        "did you mean oss://bucket.example.com/path?",
    ),
    "one slash in KServe": (
        llm({"model": {**LLM_MODEL, "uri": "pvc:/claim/path"}}),
        "spec.model.uri",
        "did you mean pvc://claim/path?",
    ),
    "one slash of an adapter": (
        llm({"model": {**LLM_MODEL, "lora": {"adapters": [{"name": "a", "uri": "gs:/bucket/path"}]}}}),
        "spec.model.lora.adapters[0].uri",
        "did you mean gs://bucket/path?",
    ),
    "dash without a blank": (
        llm({"template": {"containers": {"-name": "main", "image": "a/b:1"}}}),
        "spec.template.containers",
        'must be a list; write a blank after the dash, as in "- name:"',
    ),
    "misspelt device": (
        main_container({"resources": {"limits": {"nvidia.com/gpus": 1}}}),
        "spec.template.containers[0].resources.limits[nvidia.com/gpus]",
        'no known device has this name; did you mean "nvidia.com/gpu"?',
    ),
    "image with a scheme": (
        service({"image": "https://ghcr.io/x/y:1"}),
        "spec.image",
        "is not an image name: it begins with a scheme; did you mean ghcr.io/x/y:1?",
    ),
    "image in capitals": (
        main_container({"image": "Registry.example:5000/Team/Y:Tag"}),
        "spec.template.containers[0].image",
        "its repository must be lower case; did you mean Registry.example:5000/team/y:Tag?",
    ),
    "host without a scheme": (
        model(spec={"source": "huggingface.co/a/b/resolve/main/c.gguf"}),
        "spec.source",
        "did you mean https://huggingface.co/a/b/resolve/main/c.gguf?",
    ),
    "source in place of a value": (
        service({"env": [{"name": "A", "value": {"secretKeyRef": {"name": "s", "key": "k"}}}]}),
        "spec.env[0].value",
        "must be a string; write secretKeyRef below valueFrom",
    ),
    "seconds with a unit": (
        startup_probe({"periodSeconds": "1m"}),
        "spec.probeOverrides.startup.periodSeconds",
        "must be a whole number; write periodSeconds: 60",
    ),
    "number with a unit": (
        service({"resources": {"gpu": "2 GPUs"}}),
        "spec.resources.gpu",
        "must be a whole number; write gpu: 2, without a unit",
    ),
    "percentage of a fraction": (
        service({**SERVED_BY_VLLM, "vllmConfig": {"gpuMemoryUtilization": "90%"}}),
        "spec.vllmConfig.gpuMemoryUtilization",
        "must be a number; write gpuMemoryUtilization: 0.9",
    ),
    "fraction as a percentage": (
        service({**SERVED_BY_VLLM, "vllmConfig": {"gpuMemoryUtilization": 85}}),
        "spec.vllmConfig.gpuMemoryUtilization",
        "must be at most 0.99; did you mean 0.85?",
    ),
    "dtype by another name": (
        service({**SERVED_BY_VLLM, "vllmConfig": {"dtype": "fp16"}}),
        "spec.vllmConfig.dtype",
        'did you mean "float16"?',
    ),
    "list in place of its object": (
        service({"probeOverrides": {"startup": {"exec": ["true"]}}}),
        "spec.probeOverrides.startup.exec",
        "must be an object; write the list as its field command",
    ),
    "mount of docker": (
        service({"extraVolumes": ["/data:/data"]}),
        "spec.extraVolumes[0]",
        "must be an object; its fields are name,",
    ),
    "port in quotes": (
        startup_probe({"httpGet": {"port": "8080"}}),
        "spec.probeOverrides.startup.httpGet.port",
        "write 8080 without quotes",
    ),
    "object in place of a number or string": (
        llm({"kvCacheOffloading": {"cpu": {"size": "10Gi"}}}),
        "spec.kvCacheOffloading.cpu",
        "must be a number or a string; write cpu: 10Gi, without size",
    ),
    "object in place of an item": (
        {**playground({}), "spec": {"modelClaim": {"modelName": "opt", "inferenceFlavors": [{"name": "a100"}]}}},
        "spec.modelClaim.inferenceFlavors[0]",
        "must be a string; write - a100, the name alone",
    ),
    "path without a slash": (
        path_match("v1"),
        "spec.router.route.http.spec.rules[0].matches[0].path",
        """Invalid value: {"type":"PathPrefix","value":"v1"}: must start with '/' when type is Exact or PathPrefix""",
    ),
    "field of metadata": (
        {**service(), "metadata": {"name": "chat", "label": {"a": "b"}}},
        "metadata.label",
        'unknown field "metadata.label", did you mean "labels"?',
    ),
    "two claims": (
        {**playground({}), "spec": {"modelClaim": {"modelName": "a"}, "modelClaims": {"models": [{"name": "a"}]}}},
        "spec.modelClaims",
        "modelClaim and modelClaims are mutually exclusive; remove one of the two",
    ),
    "name from a template": (
        service(name="{{ .Release.Name }}"),
        "metadata.name",
        "this is an unrendered template",
    ),
    "target of the other type": (
        scaled_by_cpu({"targetAverageValue": "10"}),
        "spec.autoscaling.metrics[0].targetAverageUtilization",
        "type Resource needs it in place of targetAverageValue, as a percentage of the request, for example 80",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_finding(command: Command, mistake: str) -> None:
    document, path, advice = MISTAKES[mistake]
    [finding] = command("validate", command.file("mistake.yaml", document), "--output", "json").findings
    assert finding["path"] == path
    assert advice in finding["message"]


def test_a_required_field_whose_name_was_begun(command: Command) -> None:
    """``model`` is nearer to ``mode``, but ``modelRef`` is what is missing."""
    document = {**service(), "spec": {"model": "smollm"}}
    findings = command("validate", command.file("mistake.yaml", document), "--output", "json").findings
    assert 'unknown field "spec.model", did you mean "modelRef"?' in [finding["message"] for finding in findings]


def test_a_draft_model_that_is_not_there(command: Command) -> None:
    document = service({"speculativeDecoding": {"type": "draft", "draftModelRef": "tiny"}})
    file = command.file("mistake.yaml", document, model())
    [finding] = command("validate", file, "--output", "json").findings
    assert finding["path"] == "spec.speculativeDecoding.draftModelRef"


GATEWAY: Json = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway"}
OTHERS: dict[str, tuple[Json, Json, str]] = {
    "Gateway": (
        llm({"router": {"route": {}, "gateway": {"refs": [{"name": "publik", "namespace": "edge"}]}}}),
        {**GATEWAY, "metadata": {"name": "public", "namespace": "edge"}},
        "spec.router.gateway.refs[0].name",
    ),
    "ConfigMap": (
        llm({"router": {"route": {}, "scheduler": {"config": {"ref": {"name": "publik", "key": "a"}}}}}),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "public"}},
        "spec.router.scheduler.config.ref.name",
    ),
    "HTTPRoute": (
        llm({"router": {"route": {"http": {"refs": [{"name": "publik"}]}}}}),
        {**GATEWAY, "kind": "HTTPRoute", "metadata": {"name": "public"}},
        "spec.router.route.http.refs[0].name",
    ),
    "PriorityClass": (
        service({"priorityClassName": "publik"}),
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "public"}},
        "spec.priorityClassName",
    ),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_a_misspelt_object_of_a_kind_that_is_not_served(command: Command, kind: str) -> None:
    document, other, path = OTHERS[kind]
    [finding] = command("validate", command.file("mistake.yaml", document, other), "--output", "json").findings
    assert finding["path"] == path
    assert finding["message"] == f'{kind} "publik" is not among the files; did you mean "public"?'


@pytest.mark.parametrize("kind", OTHERS)
def test_an_object_of_the_cluster_is_not_looked_for_among_the_files(command: Command, kind: str) -> None:
    document, other, _ = OTHERS[kind]
    unlike = {**other, "metadata": {**other["metadata"], "name": "elsewhere"}}
    result = command("validate", command.file("legal.yaml", document, unlike), "--output", "json")
    assert result.findings == []
    assert "publik" not in result.err


TOKEN: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hub"}, "stringData": {"token": "x"}}
SELECTORS = {
    "spec.vllmConfig.hfTokenSecretRef": lambda ref: service(
        {**SERVED_BY_VLLM, "vllmConfig": {"hfTokenSecretRef": ref}}
    ),
    "spec.env[0].valueFrom.secretKeyRef": lambda ref: service(
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": ref}}]}
    ),
    "spec.template.containers[0].env[0].valueFrom.secretKeyRef": lambda ref: main_container(
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": ref}}]}
    ),
}


@pytest.mark.parametrize("path", SELECTORS)
@pytest.mark.parametrize(("key", "advice"), [("tokn", '; did you mean "token"?'), ("x", ", which has token")])
def test_a_key_that_a_secret_of_the_files_does_not_have(command: Command, path: str, key: str, advice: str) -> None:
    document = SELECTORS[path]({"name": "hub", "key": key})
    [finding] = command("validate", command.file("mistake.yaml", document, TOKEN), "--output", "json").findings
    assert finding["path"] == f"{path}.key"
    assert finding["message"] == f'Secret "hub" has no key "{key}"{advice}'


@pytest.mark.parametrize("secret", [TOKEN, {**TOKEN, "stringData": [{}]}, {**TOKEN, "metadata": {"name": "other"}}])
@pytest.mark.parametrize("ref", [{"key": "token"}, {"key": "x", "optional": True}], ids=["there", "optional"])
def test_a_key_that_is_there_or_may_be(command: Command, secret: Json, ref: Json) -> None:
    document = SELECTORS["spec.env[0].valueFrom.secretKeyRef"]({"name": "hub", **ref})
    assert command("validate", command.file("legal.yaml", document, secret), "--output", "json").findings == []


def test_a_misspelt_preset(command: Command) -> None:
    file = command.file("mistake.yaml", llm({"baseRefs": [{"name": "kserve-config-llm-templat"}]}))
    [finding] = command("validate", file, "--output", "json").findings
    assert finding["path"] == "spec.baseRefs[0].name"
    assert finding["message"].endswith('is not among the files; did you mean "kserve-config-llm-template"?')


def test_a_preset_is_not_missing(command: Command) -> None:
    file = command.file("legal.yaml", llm({"baseRefs": [{"name": "kserve-config-llm-template"}]}))
    result = command("validate", file, "--output", "json")
    assert result.findings == []
    assert "not among the files" not in result.err


def test_more_parts_than_gpus_are_reported_at_the_engines_fields(command: Command) -> None:
    serving = {**SERVED_BY_VLLM, "resources": {"gpu": 2}, "vllmConfig": {"tensorParallelSize": 4}}
    weights = model(spec={"source": "a/b", "format": "safetensors"})
    [finding] = command(
        "validate", command.file("mistake.yaml", service(serving), weights), "--output", "json"
    ).findings
    assert finding["path"] == "spec.vllmConfig"


LEGAL: dict[str, Json] = {
    "octal mode": volume({"configMap": {"name": "c", "defaultMode": 0o644}}),
    "thousandths of a CPU": service({"resources": {"cpu": "500m", "memory": "1e9"}}),
    "GPUs without a unit": main_container({"resources": {"limits": {"nvidia.com/gpu": "1", "memory": "0.5Gi"}}}),
    "arguments that a script reads as words": main_container(
        {"image": "a/b:1", "command": ["sh", "-c", 'eval "vllm serve $@"', "--"], "args": ["--seed 1"]}
    ),
    "images with capitals": main_container({"image": "Registry.example:5000/a/b:Tag@sha256:" + "a" * 64}),
    "other devices": main_container({"resources": {"limits": {"nvidia.com/mig-1g.5gb": 1, "example.com/gpu": 1}}}),
    "repository with a dot": model(spec={"source": "a.b/c"}),
    "value with a blank": service({"extraArgs": ["--alias", "a b", "--chat-template=a b"]}),
}


@pytest.mark.parametrize("neighbour", LEGAL)
def test_what_is_legal_is_no_finding(command: Command, neighbour: str) -> None:
    assert command("validate", command.file("legal.yaml", LEGAL[neighbour]), "--output", "json").findings == []
