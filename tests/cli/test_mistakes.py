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
    mounts = [{"name": "files", "mountPath": "/files"}]
    return service({"extraVolumes": [{"name": "files", **source}], "extraVolumeMounts": mounts})


def runtime(spec: Json) -> Json:
    kind = {"apiVersion": "inference.llmaz.io/v1alpha1", "kind": "BackendRuntime", "metadata": {"name": "mine"}}
    image = {"image": "vllm/vllm-openai", "version": "v0.19.1", "recommendedConfigs": [{"name": "default"}]}
    return {**kind, "spec": {**image, **spec}}


def preset(argument: str) -> Json:
    return runtime({"recommendedConfigs": [{"name": "default", "args": [argument]}]})


def flavor(fields: Json) -> Json:
    spec = {"familyName": "opt", "source": {"uri": "s3://bucket/opt"}}
    return {**openmodel(""), "spec": {**spec, "inferenceConfig": {"flavors": [{"name": "a", **fields}]}}}


def scheduled_by(config: Json) -> Json:
    inline = {"apiVersion": "llm-d.ai/v1alpha1", "kind": "EndpointPickerConfig", **config}
    return llm({"router": {"route": {}, "gateway": {}, "scheduler": {"config": {"inline": inline}}}})


def scaled_by_cpu(target: Json) -> Json:
    metrics = [{"type": "Resource", "name": "cpu", **target}]
    return service({"resources": {"cpu": "1"}, "autoscaling": {"maxReplicas": 3, "metrics": metrics}})


def startup_probe(probe: Json) -> Json:
    return service({"probeOverrides": {"startup": {"httpGet": {"path": "/", "port": 8080}, **probe}}})


def scaled_by(metric: str) -> Json:
    metrics = [{"type": "Pods", "name": metric, "targetAverageValue": "2"}]
    return service({"autoscaling": {"maxReplicas": 3, "metrics": metrics}})


def pods_trigger(metric: str) -> Json:
    pods = {"metric": {"name": metric}, "target": {"type": "AverageValue", "averageValue": "2"}}
    return {"hpa": {"metrics": [{"type": "Pods", "pods": pods}]}}


def workload(runner: Json) -> Json:
    """Return a Service of llmaz with one container."""
    kind = {"apiVersion": "inference.llmaz.io/v1alpha1", "kind": "Service", "metadata": {"name": "opt"}}
    pod = {"containers": [{"name": "model-runner", "image": "a/b:1", **runner}]}
    claims = {"models": [{"name": "opt"}]}
    return {**kind, "spec": {"modelClaims": claims, "workloadTemplate": {"workerTemplate": {"spec": pod}}}}


def path_match(value: str) -> Json:
    rule = {"matches": [{"path": {"type": "PathPrefix", "value": value}}]}
    return llm({"router": {"route": {"http": {"spec": {"rules": [rule]}}}, "gateway": {}}})


BESIDE = "and key: beside it"
PORT: Json = {"ports": [{"containerPort": 9000}]}
VLLM: Json = {"image": "vllm/vllm-openai:v0.19.1", "command": ["vllm", "serve"]}
WITHOUT: Json = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "In"}]}]}
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
        "must be between 0.1 and 0.99; did you mean 0.85?",
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
    "type of a host path": (
        volume({"hostPath": {"path": "/x", "type": "directory"}}),
        "spec.extraVolumes[0].hostPath.type",
        'did you mean "Directory"?',
    ),
    "host path without a path": (
        volume({"hostPath": {"path": "/a/../b"}}),
        "spec.extraVolumes[0].hostPath.path",
        "must not contain '..'",
    ),
    "Secret without its name": (
        volume({"secret": {"optional": True}}),
        "spec.extraVolumes[0].secret.secretName",
        "Required value: name the Secret",
    ),
    "medium of an emptyDir": (
        volume({"emptyDir": {"medium": "memory"}}),
        "spec.extraVolumes[0].emptyDir.medium",
        'the kubelet does not know "memory", so the pods cannot start; did you mean "Memory"?',
    ),
    "volume without a mount": (
        service({"extraVolumes": [{"name": "files", "emptyDir": {}}]}),
        "spec.extraVolumes[0]",
        "no container mounts volume files",
    ),
    "volume without a mount in KServe": (
        llm({"template": {"containers": [{"name": "main"}], "volumes": [{"name": "files", "emptyDir": {}}]}}),
        "spec.template.volumes[0]",
        "no container mounts volume files",
    ),
    "mount without a volume": (
        service({"extraVolumeMounts": [{"name": "files", "mountPath": "/files"}]}),
        "spec.extraVolumeMounts[0].name",
        "no volume of the pod has this name; add it to extraVolumes",
    ),
    "image with white space behind it": (
        main_container({"image": "a/b:1 "}),
        "spec.template.containers[0].image",
        "must not begin or end with white space",
    ),
    "image with two tags": (
        main_container({"image": "a/b:1:2"}),
        "spec.template.containers[0].image",
        'is not an image name: "1:2" is not a tag',
    ),
    "image with a slash at its end": (
        main_container({"image": "a/b/"}),
        "spec.template.containers[0].image",
        "its repository must be names of letters, digits, '.', '_' and '-', with '/' between them",
    ),
    "image with half a digest": (
        main_container({"image": "a/b@0123"}),
        "spec.template.containers[0].image",
        "its digest must be sha256: and 64 hexadecimal digits",
    ),
    "scheme of an image of llmaz": (
        runtime({"image": "https://docker.io/a/b"}),
        "spec.image",
        "it begins with a scheme; did you mean docker.io/a/b:v0.19.1?",
    ),
    "image for a version": (
        playground({"version": "vllm/vllm-openai:v0.19.1"}),
        "spec.backendRuntimeConfig.version",
        "must be a tag of the BackendRuntime's image, without its name",
    ),
    "misspelt BackendRuntime of the installation": (
        playground({"backendName": "vlm"}),
        "spec.backendRuntimeConfig.backendName",
        'BackendRuntime "vlm" is not among the files; did you mean "vllm"?',
    ),
    "preset that the BackendRuntime does not have": (
        playground({"configName": "defualt"}),
        "spec.backendRuntimeConfig.configName",
        "BackendRuntime vllm has no preset defualt",
    ),
    "misspelt option": (
        service({**SERVED_BY_VLLM, "extraArgs": ["--max-modellen", "4096"]}),
        "spec.extraArgs[0]",
        'has no option --max-modellen, and ends with it; did you mean "--max-model-len"?',
    ),
    "misspelt option of llmaz": (
        playground({"args": ["--max-modellen", "4096"]}),
        "spec.backendRuntimeConfig.args[0]",
        'did you mean "--max-model-len"?',
    ),
    "misspelt option of a preset": (
        preset("--max-modellen=4096"),
        "spec.recommendedConfigs[0].args[0]",
        'did you mean "--max-model-len"?',
    ),
    "misspelt option of KServe": (
        main_container({"image": "vllm/vllm-openai:v0.19.1", "args": ["--max-modellen=4096"]}),
        "spec.template.containers[0].args[0]",
        'did you mean "--max-model-len"?',
    ),
    "option with one dash": (
        service({**SERVED_BY_VLLM, "extraArgs": ["-max-model-len", "4096"]}),
        "spec.extraArgs[0]",
        'did you mean "--max-model-len"?',
    ),
    "option without dashes": (
        service({**SERVED_BY_VLLM, "extraArgs": ["max-model-len=4096"]}),
        "spec.extraArgs[0]",
        'did you mean "--max-model-len"?',
    ),
    "option with a dash of prose": (
        service({"extraArgs": ["\u2014threads", "4"]}),
        "spec.extraArgs[0]",
        'begins with a dash that is not the one of options; did you mean "--threads"?',
    ),
    "option twice": (
        service({"extraArgs": ["--ctx-size", "1024", "-c", "2048"]}),
        "spec.extraArgs",
        "--ctx-size and -c: set more than once; the last value counts",
    ),
    "arguments of another runtime": (
        service({**SERVED_BY_VLLM, "args": ["--seed", "1"]}),
        "spec.args",
        "no effect with runtime vllm, only with generic; write them in extraArgs",
    ),
    "address with a port": (
        service({"bindAddress": "0.0.0.0:8080"}),
        "spec.bindAddress",
        "an address has no port, so the server ends; set containerPort instead",
    ),
    "misspelt node label": (
        service({"nodeSelector": {"kubernetes.io/hostnames": "a"}}),
        "spec.nodeSelector[kubernetes.io/hostnames]",
        'no known node label has this name; did you mean "kubernetes.io/hostname"?',
    ),
    "misspelt node label of a flavor": (
        flavor({"nodeSelector": {"nvidia.com/gpu.produkt": "A100"}}),
        "spec.inferenceConfig.flavors[0].nodeSelector[nvidia.com/gpu.produkt]",
        'did you mean "nvidia.com/gpu.product"?',
    ),
    "device without the domain's end": (
        flavor({"limits": {"nvidia/gpu": 1}}),
        "spec.inferenceConfig.flavors[0].limits[nvidia/gpu]",
        'no known device has this name; did you mean "nvidia.com/gpu"?',
    ),
    "device without a domain": (
        flavor({"limits": {"gpu": 1}}),
        "spec.inferenceConfig.flavors[0].limits[gpu]",
        "must be cpu, memory, ephemeral-storage, or have a domain, as in nvidia.com/gpu",
    ),
    "size of a parallelism in small letters": (
        flavor({"limits": {"nvidia.com/gpu": 2}, "params": {"tp": "2"}}),
        "spec.inferenceConfig.flavors[0].params[tp]",
        'did you mean "TP"?',
    ),
    "placeholder of a shell": (
        preset("${ModelPath}"),
        "spec.recommendedConfigs[0].args[0]",
        "this placeholder is not replaced; write it like {{ .ModelPath }}",
    ),
    "placeholder with one brace": (
        preset("{{ .ModelPath }"),
        "spec.recommendedConfigs[0].args[0]",
        "this placeholder is not replaced; write it like {{ .ModelPath }}",
    ),
    "other name of the Hub's scheme in llmaz": (
        openmodel("huggingface://a/b"),
        "spec.source.uri",
        "did you mean modelHub: {modelID: a/b} in place of uri?",
    ),
    "space in a URL": (
        model(spec={"source": "https://example.com/my model.gguf"}),
        "spec.source",
        "a URL has no spaces; did you mean https://example.com/my%20model.gguf?",
    ),
    "space before an address": (
        model(spec={"source": " a/b"}),
        "spec.source",
        "remove the white space around it; did you mean a/b?",
    ),
    "space in an address of llmaz": (
        openmodel("s3://bucket/my model"),
        "spec.source.uri",
        "contains a space; remove it unless the name in the bucket has one",
    ),
    "space in an address of KServe": (
        llm({"model": {**LLM_MODEL, "uri": "s3://bucket/my model"}}),
        "spec.model.uri",
        "contains a space; remove it unless the name in the bucket has one",
    ),
    "page of GitHub": (
        model(spec={"source": "https://github.com/a/b/blob/main/c.gguf"}),
        "spec.source",
        "did you mean https://github.com/a/b/raw/main/c.gguf?",
    ),
    "repository of three parts": (
        model(spec={"source": "models/a/b"}),
        "spec.source",
        "read as a repository of the Hugging Face Hub, which is <owner>/<name>",
    ),
    "revision of the Hub's own form in KServe": (
        llm({"model": {**LLM_MODEL, "uri": "hf://a/b@main"}}),
        "spec.model.uri",
        "did you mean hf://a/b:main?",
    ),
    "value of an annotation": (
        {**llm({}), "metadata": {"name": "qwen", "annotations": {"serving.kserve.io/stop": "yes"}}},
        "metadata.annotations[serving.kserve.io/stop]",
        '"yes" has no effect; only "true" has one',
    ),
    "misspelt annotation": (
        {**model(), "metadata": {"name": "m", "annotations": {"modelhooks.dev/downlaod": "Pods"}}},
        "metadata.annotations[modelhooks.dev/downlaod]",
        'has no effect; did you mean "modelhooks.dev/download"?',
    ),
    "key of an annotation": (
        {**service(), "metadata": {"name": "chat", "annotations": {"a/b/c": "x"}}},
        "metadata.annotations",
        'Invalid value: "a/b/c"',
    ),
    "namespace in capitals": (
        {**service(), "metadata": {"name": "chat", "namespace": "Team"}},
        "metadata.namespace",
        "must be at most 63 lower case letters, digits and '-'",
    ),
    "name that is null": (
        {**service(), "metadata": {"name": None}},
        "metadata.name",
        "Required value: name or generateName is required",
    ),
    "plugin of a profile": (
        scheduled_by(
            {
                "plugins": [{"type": "queue-scorer"}],
                "schedulingProfiles": [{"name": "default", "plugins": [{"pluginRef": "queue-score"}]}],
            }
        ),
        "spec.router.scheduler.config.inline.schedulingProfiles[0].plugins[0].pluginRef",
        'did you mean "queue-scorer"?',
    ),
    "kind of the endpoint picker's configuration": (
        scheduled_by({"kind": "EndpointPicker"}),
        "spec.router.scheduler.config.inline.kind",
        "must be EndpointPickerConfig, or the endpoint picker ends",
    ),
    "type of a plugin": (
        scheduled_by({"plugins": [{"type": "encode-filter"}, {"type": "queue-scorrer"}]}),
        "spec.router.scheduler.config.inline.plugins[1].type",
        'no known plugin has the type "queue-scorrer"; did you mean "queue-scorer"?',
    ),
    "sampler of traces": (
        llm({"tracing": {"sampler": "always-on"}}),
        "spec.tracing.sampler",
        'OpenTelemetry has no sampler "always-on", and takes its default; did you mean "always_on"?',
    ),
    "endpoint of traces without a scheme": (
        llm({"tracing": {"exporterEndpoint": "otel:4317"}}),
        "spec.tracing.exporterEndpoint",
        "did you mean http://otel:4317?",
    ),
    "number with an exponent": (
        service({"contextSize": "1e4"}),
        "spec.contextSize",
        "must be a whole number; write 10000 without quotes",
    ),
    "option and value as a field": (
        service({"extraArgs": {"--threads": 4}}),
        "spec.extraArgs",
        'write an option and its value as items of the list, as in "- --threads"',
    ),
    "dash before a quote": (
        service({"extraArgs": '-"--threads" -"4"'}),
        "spec.extraArgs",
        'begin each item with "- "',
    ),
    "variable of a shell": (
        service({"replicas": "${REPLICAS}"}),
        "spec.replicas",
        "must be a whole number; this is an unrendered template",
    ),
    "image of a shell's variable": (
        service({"image": "$IMAGE"}),
        "spec.image",
        '"$IMAGE" is not an image name: this is an unrendered template',
    ),
    "unknown field of a cache": (
        llm({"kvCacheOffloading": {"cpu": "10Gi", "evictPolicy": "lru"}}),
        "spec.kvCacheOffloading.evictPolicy",
        'did you mean "evictionPolicy"?',
    ),
    "size of a cache's volume": (
        llm({"kvCacheOffloading": {"cpu": "10Gi", "secondary": [{"fileSystem": {"emptyDir": {"sizeLimit": "9GB"}}}]}}),
        "spec.kvCacheOffloading.secondary[0].fileSystem.emptyDir.sizeLimit",
        "did you mean 9G or 9Gi?",
    ),
    "scheme without a colon": (
        llm({"model": {**LLM_MODEL, "uri": "hf//a/b"}}),
        "spec.model.uri",
        "did you mean hf://a/b?",
    ),
    "typographic quotes": (
        service({"extraArgs": ["\u201c--jinja\u201d"]}),
        "spec.extraArgs[0]",
        'has typographic quotes, which are part of it; did you mean "--jinja"?',
    ),
    "name of a claim in capitals": (
        service({"modelCache": {"claimName": "My_Claim"}}),
        "spec.modelCache.claimName",
        'did you mean "my-claim"?',
    ),
    "repository for a Model's name": (
        service({"modelRef": "Qwen/Qwen3"}),
        "spec.modelRef",
        'did you mean "qwen3"?',
    ),
    "value that an engine does not take": (
        service({**SERVED_BY_VLLM, "extraArgs": ["--dtype", "float61"]}),
        "spec.extraArgs[0]",
        'does not take float61 for --dtype, and ends with it; did you mean "float16"?',
    ),
    "percentage for a fraction of an engine": (
        service({**SERVED_BY_VLLM, "extraArgs": ["--gpu_memory_utilization=90"]}),
        "spec.extraArgs[0]",
        "cannot serve with --gpu_memory_utilization 90: it must be more than 0 and at most 1",
    ),
    "tensor-parallel size 0 of an engine of unknown version": (
        service({**SERVED_BY_VLLM, "image": "example.com/vllm:mine", "extraArgs": ["-tp", "0"]}),
        "spec.extraArgs[0]",
        "vLLM cannot serve with -tp 0: it must be at least 1",
    ),
    "port that does not exist": (
        runtime({"recommendedConfigs": [{"name": "default", "args": ["--max-num-seqs=0"]}]}),
        "spec.recommendedConfigs[0].args[0]",
        "it must be at least 1",
    ),
    "fraction of the server of KServe's preset": (
        main_container({"args": ["--gpu-memory-utilization", "1.5"]}),
        "spec.template.containers[0].args[0]",
        "vLLM 0.23.0 cannot serve with --gpu-memory-utilization 1.5: it must be more than 0 and at most 1",
    ),
    "address that only the container reaches": (
        main_container({**VLLM, "args": ["--host=127.0.0.1"]}),
        "spec.template.containers[0].args[0]",
        "only the container itself reaches a loopback address",
    ),
    "port that gets no requests": (
        main_container({**VLLM, "args": ["--port=9000"]}),
        "spec.template.containers[0].args[0]",
        "requests go to port 8000, not to 9000; remove --port",
    ),
    "option that needs a value": (
        service({"extraArgs": ["-fa", "--jinja"]}),
        "spec.extraArgs[0]",
        "ends without a value for -fa; supported: on, off, auto",
    ),
    "value of a switch": (
        service({**SERVED_BY_VLLM, "extraArgs": ["--enforce-eager", "True"]}),
        "spec.extraArgs[0]",
        "vLLM 0.20.0 takes no value for --enforce-eager, and ends with one; write --enforce-eager alone, or leave it",
    ),
    "value of a switch of SGLang, of any version": (
        service({"runtime": "sglang", "image": "lmsysorg/sglang:latest", "extraArgs": ["--disable-radix-cache=false"]}),
        "spec.extraArgs[0]",
        "SGLang takes no value for --disable-radix-cache, and ends with one",
    ),
    "number with a comma": (
        runtime(
            {
                "image": "vllm/vllm-openai",
                "version": "latest",
                "recommendedConfigs": [{"name": "default", "args": ["--max-num-batched-tokens", "16,384"]}],
            }
        ),
        "spec.recommendedConfigs[0].args[0]",
        "vLLM ends with --max-num-batched-tokens 16,384: it must be a whole number; did you mean 16384?",
    ),
    "percentage for a fraction": (
        main_container({**VLLM, "args": ["--gpu-memory-utilization=85%"]}),
        "spec.template.containers[0].args[0]",
        "ends with --gpu-memory-utilization 85%: it must be a number; did you mean 0.85?",
    ),
    "option without its number": (
        main_container({**VLLM, "args": ["--max-model-len", "--enforce-eager"]}),
        "spec.template.containers[0].args[0]",
        "ends without a value for --max-model-len: it must be a whole number",
    ),
    "option of another engine": (
        service({"image": "ghcr.io/ggml-org/llama.cpp:server-cuda13", "extraArgs": ["--enable-expert-parallel"]}),
        "spec.extraArgs[0]",
        "llama.cpp has no option --enable-expert-parallel, and ends with it; it is an option of vLLM",
    ),
    "other engine's name of an option": (
        service({**SERVED_BY_VLLM, "extraArgs": ["--ctx-size=8192"]}),
        "spec.extraArgs[0]",
        'vLLM 0.20.0 has no option --ctx-size, and ends with it; did you mean "--max-model-len"?',
    ),
    "misspelt option of an engine of unknown version": (
        service({**SERVED_BY_VLLM, "image": "vllm/vllm-openai:latest", "extraArgs": ["--gpu-memory-utilisation=0.8"]}),
        "spec.extraArgs[0]",
        'no known release of vLLM has the option --gpu-memory-utilisation; did you mean "--gpu-memory-utilization"?',
    ),
    "beginning of an option of TGI": (
        service({"runtime": "tgi", "extraArgs": ["--max-concurrent-request", "64"]}),
        "spec.extraArgs[0]",
        'did you mean "--max-concurrent-requests"?',
    ),
    "metric of another engine": (
        scaled_by("vllm:num_requests_running"),
        "spec.autoscaling.metrics[0].name",
        "a metric of vLLM, and llama.cpp 0.7.0 serves the requests, whose metrics begin with llamacpp:",
    ),
    "misspelt metric": (
        scaled_by("llamacpp:request_processing"),
        "spec.autoscaling.metrics[0].name",
        'llama.cpp 0.7.0 has no metric of this name; did you mean "llamacpp:requests_processing"?',
    ),
    "metric without a word": (
        runtime({"recommendedConfigs": [{"name": "default", "scaleTrigger": pods_trigger("vllm:requests_waiting")}]}),
        "spec.recommendedConfigs[0].scaleTrigger.hpa.metrics[0].pods.metric.name",
        'has no metric of this name; did you mean "vllm:num_requests_waiting"?',
    ),
    "path of a probe": (
        service({**SERVED_BY_VLLM, "probeOverrides": {"liveness": {"httpGet": {"path": "/healthz", "port": "http"}}}}),
        "spec.probeOverrides.liveness.httpGet.path",
        "vLLM 0.20.0 does not serve /healthz, so the probe never succeeds; did you mean /health?",
    ),
    "path of a probe of KServe": (
        main_container({**VLLM, "readinessProbe": {"httpGet": {"path": "/heath", "port": 8000}}}),
        "spec.template.containers[0].readinessProbe.httpGet.path",
        "did you mean /health?",
    ),
    "port of a probe of a known engine": (
        runtime({"readinessProbe": {"httpGet": {"path": "/health", "port": 8000}}}),
        "spec.readinessProbe.httpGet.port",
        "the server listens on port 8080, not 8000",
    ),
    "name of a port": (
        workload({"ports": [{"containerPort": 8080}], "livenessProbe": {"tcpSocket": {"port": "http"}}}),
        "spec.workloadTemplate.workerTemplate.spec.containers[0].livenessProbe.tcpSocket.port",
        "no port of the container has the name http, so the probe never succeeds; write its number",
    ),
    "port of a Service of llmaz": (
        workload({"args": ["--port=8000"]}),
        "spec.workloadTemplate.workerTemplate.spec.containers[0].args[0]",
        "the Service opt-lb sends requests to port 8080 only; write 8080",
    ),
    "architecture of nodes": (
        service({"nodeSelector": {"kubernetes.io/arch": "x86_64"}}),
        "spec.nodeSelector[kubernetes.io/arch]",
        'no node has "x86_64" as the value of this label: it is one of 386, amd64, arm, arm64',
    ),
    "size of shared memory without a unit": (
        runtime({"recommendedConfigs": [{"name": "default", "sharedMemorySize": 8}]}),
        "spec.recommendedConfigs[0].sharedMemorySize",
        "8 is 8 bytes; did you mean 8Gi?",
    ),
    "size of a volume without a unit": (
        volume({"emptyDir": {"medium": "Memory", "sizeLimit": "16"}}),
        "spec.extraVolumes[0].emptyDir.sizeLimit",
        "16 is 16 bytes; did you mean 16Gi?",
    ),
    "other quantization of a file": (
        model(spec={"source": "https://example.com/a-Q4_K_M.gguf", "quantization": "Q8_0"}),
        "spec.quantization",
        "the file is Q4_K_M by its name; write Q4_K_M, or leave it out",
    ),
    "GGUF for vLLM": (
        llm({"model": {"uri": "hf://a/Chat-7B-GGUF", "name": "a"}}),
        "spec.model.uri",
        "a/Chat-7B-GGUF has GGUF files by its name, and vLLM loads a repository's safetensors: name another",
    ),
    "method of another quantization": (
        llm(
            {
                "model": {"uri": "hf://a/Chat-7B-AWQ", "name": "a"},
                "template": {"containers": [{"name": "main", **VLLM, "args": ["--quantization=gptq_marlin"]}]},
            }
        ),
        "spec.template.containers",
        "vLLM ends with quantization gptq_marlin for a/Chat-7B-AWQ, which is quantized with AWQ; leave it out",
    ),
    "idle GPUs": (
        main_container({**VLLM, "resources": {"limits": {"nvidia.com/gpu": 4}}}),
        "spec.template",
        "vLLM uses 1 of the 4 GPUs of a pod; set parallelism.tensor to 4, or request 1",
    ),
    "image without a tag in KServe": (
        llm({"model": {**LLM_MODEL, "uri": "oci://registry.example.com:5000/models/chat"}}),
        "spec.model.uri",
        "no tag, so latest is pulled, which may change; add the tag or the digest",
    ),
    "image without a tag in llmaz": (
        openmodel("oci://registry.example.com:5000/models/chat"),
        "spec.source.uri",
        "no tag, so latest is pulled, which may change; add the tag or the digest",
    ),
    "repository without an owner": (
        {**openmodel(""), "spec": {"familyName": "opt", "source": {"modelHub": {"modelID": "Qwen2-7B"}}}},
        "spec.source.modelHub.modelID",
        "only old repositories in lower case have no owner: write <owner>/<name>",
    ),
    "field in a map": (
        flavor({"limits": {"cpu": 1, "nodeSelector": {"a": "b"}}}),
        "spec.inferenceConfig.flavors[0].limits.nodeSelector",
        "must be a string; nodeSelector belongs one level higher: indent it less",
    ),
    "field in a map of a pod": (
        llm({"template": {"nodeSelector": {"a": "b", "tolerations": [{"operator": "Exists"}]}}}),
        "spec.template.nodeSelector[tolerations]",
        "must be a string; tolerations belongs one level higher: indent it less",
    ),
    "field in labels": (
        {**service(), "metadata": {"name": "chat", "labels": {"annotations": {"a": "b"}}}},
        "metadata.labels[annotations]",
        "must be a string; annotations belongs one level higher: indent it less",
    ),
    "part of a GPU in llmaz": (
        flavor({"limits": {"nvidia.com/gpu": 0.5}}),
        "spec.inferenceConfig.flavors[0].limits[nvidia.com/gpu]",
        "must be a whole number: extended resources cannot be divided",
    ),
    "arguments as a map": (
        main_container({"args": {"max-model-len": 8192}}),
        "spec.template.containers[0].args",
        'must be a list; its items are strings: write each as in "- max-model-len"',
    ),
    "word in place of an option": (
        service({**SERVED_BY_VLLM, "extraArgs": ["serve", "--seed", "1"]}),
        "spec.extraArgs[0]",
        '"serve" is not an option, and vLLM 0.20.0 ends with it',
    ),
    "quotes that no shell removes": (
        service({**SERVED_BY_VLLM, "extraArgs": ['--kv-transfer-config=\'{"kv_role": "kv_both"}\'']}),
        "spec.extraArgs[0]",
        "no shell removes the quotes around the value, so it is not valid JSON; leave them out",
    ),
    "escaped JSON": (
        playground({"args": ["--hf-overrides", '{\\"method\\": \\"mtp\\"}']}),
        "spec.backendRuntimeConfig.args[1]",
        "the value is not valid JSON",
    ),
    "tools without a parser": (
        service({**SERVED_BY_VLLM, "extraArgs": ["--enable-auto-tool-choice"]}),
        "spec.extraArgs",
        "vLLM 0.20.0 ends with --enable-auto-tool-choice and without --tool-call-parser; add the latter",
    ),
    "batch below the length of a prompt": (
        service(
            {
                **SERVED_BY_VLLM,
                "vllmConfig": {"maxModelLen": 8192},
                "extraArgs": ["--no-enable-chunked-prefill", "--max-num-batched-tokens=2048"],
            }
        ),
        "spec.extraArgs",
        "--max-num-batched-tokens must be at least --max-model-len: 2048 is less than 8192",
    ),
    "command in one word": (
        main_container({"command": ["python3 -m vllm.entrypoints.openai.api_server"]}),
        "spec.template.containers[0].command[0]",
        'as items: ["python3","-m","vllm.entrypoints.openai.api_server"]',
    ),
    "command in one word of llmaz": (
        runtime({"command": ["vllm serve"]}),
        "spec.command[0]",
        'as items: ["vllm","serve"]',
    ),
    "command in one word of LLMKube": (
        service({"runtime": "generic", "image": "a/b:1", "command": ["my server"]}),
        "spec.command[0]",
        'as items: ["my","server"]',
    ),
    "scheduler beside a backend of one's own": (
        llm(
            {
                "router": {
                    "scheduler": {},
                    "route": {
                        "http": {
                            "spec": {
                                "rules": [{"backendRefs": [{"name": "s", "port": 80}], "timeouts": {"request": "0s"}}]
                            }
                        }
                    },
                }
            }
        ),
        "spec.router.scheduler",
        "no rule of router.route.http.spec sends requests to an InferencePool; remove router.scheduler",
    ),
    "more ranks than GPUs in KServe": (
        main_container({**VLLM, "args": ["--tensor-parallel-size=4"], "resources": {"limits": {"nvidia.com/gpu": 1}}}),
        "spec.template.containers[0].args[0]",
        "--tensor-parallel-size is 4, but a pod has 1 GPU",
    ),
    "one port of two containers": (
        llm({"template": {"containers": [{"name": "main", **PORT}, {"name": "side", "image": "a/b:1", **PORT}]}}),
        "spec.template.containers[1].ports[0].containerPort",
        "container main of the pod has port 9000 already",
    ),
    "operator without values": (
        llm({"template": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": WITHOUT}}}}),
        (
            "spec.template.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            ".nodeSelectorTerms[0].matchExpressions[0].values"
        ),
        "must have a value with operator In; pods without it are refused",
    ),
    "period with a unit": (
        llm({"scaling": {"minReplicas": 1, "maxReplicas": 2, "wva": {"keda": {"cooldownPeriod": "5m"}}}}),
        "spec.scaling.wva.keda.cooldownPeriod",
        "must be a whole number; write cooldownPeriod: 300",
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
    [finding] = command("validate", command.file("mistake.yaml", document), "--output", "json").other_findings
    assert finding["path"] == path
    assert advice in finding["message"]


def test_a_required_field_whose_name_was_begun(command: Command) -> None:
    """``model`` is nearer to ``mode``, but ``modelRef`` is what is missing."""
    document = {**service(), "spec": {"model": "smollm"}}
    findings = command("validate", command.file("mistake.yaml", document), "--output", "json").findings
    assert 'unknown field "spec.model", did you mean "modelRef"?' in [finding["message"] for finding in findings]


def test_more_ranks_than_gpus_of_the_model(command: Command) -> None:
    document = service({"runtime": "vllm", "modelRef": "m", "extraArgs": ["-tp", "4"]})
    other = model(
        spec={"source": "a/b", "format": "safetensors", "hardware": {"accelerator": "cuda", "gpu": {"count": 2}}}
    )
    findings = command("validate", command.file("mistake.yaml", document, other), "--output", "json").findings
    assert "-tp is 4, but a pod has 2 GPUs" in [finding["message"] for finding in findings]


def test_more_ranks_than_gpus_of_the_flavor(command: Command) -> None:
    document = playground({"args": ["--tensor-parallel-size", "4"]})
    file = command.file("mistake.yaml", document, flavor({"limits": {"nvidia.com/gpu": 1}}))
    [finding] = command("validate", file, "--output", "json").findings
    assert finding["message"] == "--tensor-parallel-size is 4, but a pod has 1 GPU"


def test_a_draft_model_that_is_not_there(command: Command) -> None:
    document = service({"speculativeDecoding": {"type": "draft", "draftModelRef": "tiny"}})
    file = command.file("mistake.yaml", document, model())
    [finding] = command("validate", file, "--output", "json").other_findings
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
    [finding] = command("validate", command.file("mistake.yaml", document, other), "--output", "json").other_findings
    assert finding["path"] == path
    assert finding["message"] == f'{kind} "publik" is not among the files; did you mean "public"?'


@pytest.mark.parametrize("kind", OTHERS)
def test_an_object_of_the_cluster_is_not_looked_for_among_the_files(command: Command, kind: str) -> None:
    document, other, _ = OTHERS[kind]
    unlike = {**other, "metadata": {**other["metadata"], "name": "elsewhere"}}
    result = command("validate", command.file("legal.yaml", document, unlike), "--output", "json")
    assert result.other_findings == []
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
    [finding] = command("validate", command.file("mistake.yaml", document, TOKEN), "--output", "json").other_findings
    assert finding["path"] == f"{path}.key"
    assert finding["message"] == f'Secret "hub" has no key "{key}"{advice}'


@pytest.mark.parametrize("secret", [TOKEN, {**TOKEN, "stringData": [{}]}, {**TOKEN, "metadata": {"name": "other"}}])
@pytest.mark.parametrize("ref", [{"key": "token"}, {"key": "x", "optional": True}], ids=["there", "optional"])
def test_a_key_that_is_there_or_may_be(command: Command, secret: Json, ref: Json) -> None:
    document = SELECTORS["spec.env[0].valueFrom.secretKeyRef"]({"name": "hub", **ref})
    assert command("validate", command.file("legal.yaml", document, secret), "--output", "json").other_findings == []


def test_a_misspelt_preset(command: Command) -> None:
    file = command.file("mistake.yaml", llm({"baseRefs": [{"name": "kserve-config-llm-templat"}]}))
    [finding] = command("validate", file, "--output", "json").other_findings
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
    ).other_findings
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
    "number of any length": main_container({**VLLM, "args": ["--tensor-parallel-size", "9" * 5000]}),
    "whole of a GPU's memory": service({**SERVED_BY_VLLM, "extraArgs": ["--gpu-memory-utilization=1"]}),
    "thousands of tokens": service({**SERVED_BY_VLLM, "extraArgs": ["--max-model-len", "32k"]}),
    "number that vLLM chooses": main_container({**VLLM, "args": ["--max-model-len", "auto", "--max-num-seqs=1_000"]}),
    "number of a variable": main_container({**VLLM, "args": ["--max-model-len", "$(LENGTH)"]}),
    "model after a switch": main_container({**VLLM, "args": ["--trust-remote-code", "/mnt/models"]}),
    "option of a newer engine": service(
        {**SERVED_BY_VLLM, "image": "vllm/vllm-openai:nightly", "extraArgs": ["--option-of-tomorrow", "--seed=1"]}
    ),
    "option of an engine that is not known": main_container(
        {
            "image": "a/b:1",
            "args": ["--gpu-memory-utilisation=0.8", "--ctx-size", "1", "--trust-remote-code", "true", "--seed", "x"],
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8000}},
        }
    ),
    "metric of a recording rule": scaled_by("llamacpp:requests_processing:avg5m"),
    "metric that an adapter renames": scaled_by("requests_in_process"),
    "path of a proxy": service(
        {**SERVED_BY_VLLM, "probeOverrides": {"liveness": {"httpGet": {"path": "/v1/models", "port": "http"}}}}
    ),
    "GPUs of copies": main_container(
        {**VLLM, "args": ["--data-parallel-size=4"], "resources": {"limits": {"nvidia.com/gpu": 4}}}
    ),
    "method for several quantizations": llm(
        {
            "model": {"uri": "hf://a/Chat-7B-GPTQ", "name": "a"},
            "template": {"containers": [{"name": "main", **VLLM, "args": ["--quantization=moe_wna16"]}]},
        }
    ),
    "quantization with more words": model(
        spec={"source": "https://example.com/a-Q4_K_M.gguf", "quantization": "imatrix Q4_K_M"}
    ),
    "quantization by its bits": model(spec={"source": "https://example.com/a-Q4_K_M.gguf", "quantization": "4bit"}),
    "image by digest": openmodel(f"oci://registry.example.com/a@sha256:{'a' * 64}"),
    "JSON": service({**SERVED_BY_VLLM, "extraArgs": ["--hf-overrides", '{"rope_theta": 1}']}),
    "template of a chat": service({"extraArgs": ["--chat-template", "{{ 'a' }}"]}),
    "quotes that a shell removes": main_container({"args": ["--hf-overrides='{\"rope_theta\": 1}'"]}),
    "port of a server behind a proxy": llm(
        {"template": {"containers": [{"name": "main", "args": ["--port=9000"]}, {"name": "proxy", "image": "a/b:1"}]}}
    ),
    "value with a blank": service({"extraArgs": ["--alias", "a b", "--chat-template", "a b"]}),
}


@pytest.mark.parametrize("neighbour", LEGAL)
def test_what_is_legal_is_no_finding(command: Command, neighbour: str) -> None:
    assert command("validate", command.file("legal.yaml", LEGAL[neighbour]), "--output", "json").other_findings == []
