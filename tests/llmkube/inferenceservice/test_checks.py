"""The rules of an InferenceService (LK-6.2 to LK-6.4), each with a spec that breaks it."""

from typing import Any

import pytest

from tests.llmkube.objects import errors, model, service, warned

METRIC = {"type": "Pods", "name": "m", "targetAverageValue": "2"}
HTTP: dict[str, Any] = {"httpGet": {"path": "/", "port": "http"}}
DOWN = "spec.vllmConfig"


def scaled(*metrics: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"autoscaling": {"maxReplicas": 3, "metrics": list(metrics), **more}}


def probes(purpose: str = "readiness", **probe: Any) -> dict[str, Any]:
    return {"probeOverrides": {purpose: probe}}


def env(**variable: Any) -> dict[str, Any]:
    return {"env": [{"name": "A", **variable}]}


def pod(**context: Any) -> dict[str, Any]:
    return {"podSecurityContext": context}


def container(**context: Any) -> dict[str, Any]:
    return {"securityContext": context}


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_SPREAD: dict[str, Any] = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}

SCHEMA: list[tuple[str, dict[str, Any], str]] = [
    ("LK-V-I02", {"runtime": "ollama"}, "spec.runtime: Unsupported value"),
    ("LK-V-I03", {"replicas": 11}, "spec.replicas"),
    ("LK-V-I03", {"replicas": -1}, "spec.replicas"),
    ("LK-V-I04", {"autoscaling": {}}, "spec.autoscaling.maxReplicas: Required value"),
    ("LK-V-I04", {"autoscaling": {"maxReplicas": 101}}, "spec.autoscaling.maxReplicas"),
    ("LK-V-I05", scaled(minReplicas=0), "spec.autoscaling.minReplicas"),
    ("LK-V-I05", scaled(minReplicas=11), "spec.autoscaling.minReplicas"),
    ("LK-V-I06", scaled({"type": "Pods"}), "metrics[0].name: Required value"),
    ("LK-V-I06", scaled({"type": "Object", "name": "x"}), "metrics[0].type: Unsupported value"),
    ("LK-V-I07", {"endpoint": {"port": 0}}, "spec.endpoint.port"),
    ("LK-V-I07", {"containerPort": 65536}, "spec.containerPort"),
    ("LK-V-I08", {"endpoint": {"type": "ExternalName"}}, "spec.endpoint.type: Unsupported value"),
    ("LK-V-I09", {"resources": {"gpu": 9}}, "spec.resources.gpu"),
    ("LK-V-I10", {"contextSize": 127}, "spec.contextSize"),
    ("LK-V-I10", {"contextSize": 2097153}, "spec.contextSize"),
    ("LK-V-I11", {"parallelSlots": 0}, "spec.parallelSlots"),
    ("LK-V-I12", {"ropeScaling": {}}, "spec.ropeScaling.type: Required value"),
    ("LK-V-I12", {"ropeScaling": {"type": "yarn", "factor": "2x"}}, "spec.ropeScaling.factor"),
    ("LK-V-I12", {"ropeScaling": {"type": "yarn", "originalContext": 1}}, "spec.ropeScaling.originalContext"),
    ("LK-V-I13", {"cacheTypeK": "turbo3"}, "spec.cacheTypeK: Unsupported value"),
    ("LK-V-I13", {"cacheTypeV": "f8"}, "spec.cacheTypeV: Unsupported value"),
    ("LK-V-I14", {"batchSize": 16385}, "spec.batchSize"),
    ("LK-V-I14", {"uBatchSize": 0}, "spec.uBatchSize"),
    ("LK-V-I15", {"moeCPULayers": -1}, "spec.moeCPULayers"),
    ("LK-V-I15", {"reasoningBudget": -1}, "spec.reasoningBudget"),
    ("LK-V-I16", {"priority": "urgent"}, "spec.priority: Unsupported value"),
    ("LK-V-I17", {"vllmConfig": {"quantization": "int4"}}, f"{DOWN}.quantization: Unsupported value"),
    ("LK-V-I17", {"vllmConfig": {"maxNumBatchedTokens": 511}}, f"{DOWN}.maxNumBatchedTokens"),
    ("LK-V-I17", {"vllmConfig": {"cpuOffloadGB": -1}}, f"{DOWN}.cpuOffloadGB"),
    ("LK-V-I17", {"vllmConfig": {"gpuMemoryUtilization": 1.0}}, f"{DOWN}.gpuMemoryUtilization"),
    ("LK-V-I17", {"vllmConfig": {"speculative": {"numSpeculativeTokens": 17}}}, "numSpeculativeTokens"),
    ("LK-V-I18", {"tgiConfig": {"quantize": "fp8"}}, "spec.tgiConfig.quantize: Unsupported value"),
    ("LK-V-I19", {"vllmConfig": {"hfTokenSecretRef": {"name": "s"}}}, "hfTokenSecretRef.key: Required value"),
]

CROSS: list[tuple[str, dict[str, Any], str]] = [
    ("LK-V-I01", {"modelRef": ""}, "spec.modelRef: Required value: name a Model"),
    ("LK-V-I01", {"modelRef": "other/m"}, "spec.modelRef: Invalid value"),
    ("LK-V-I01", {"modelRef": "m" * 64}, "spec.modelRef: Too long"),
    ("LK-V-I20", {"resources": {"cpu": "two"}}, "spec.resources.cpu: Invalid value"),
    ("LK-V-I20", {"resources": {"memory": "-1Gi"}}, "spec.resources.memory: Invalid value"),
    ("LK-V-I20", {"resources": {"hostMemory": "64 GB"}}, "spec.resources.hostMemory: Invalid value"),
    ("LK-V-I20", scaled({**METRIC, "targetAverageValue": "0"}), "targetAverageValue: Invalid value"),
    ("LK-V-I20", scaled({**METRIC, "targetAverageValue": "many"}), "targetAverageValue: Invalid value"),
    ("LK-V-I21", {"resources": {"gpuMemory": "much"}}, "spec.resources.gpuMemory: Invalid value"),
    ("LK-V-I22", {"runtime": "generic"}, "spec.image: Required value"),
    ("LK-V-I23", {"runtime": "personaplex"}, "spec.image: Required value"),
    ("LK-V-I22", {"image": " a"}, "spec.image: Invalid value"),
    ("LK-V-I29", scaled(minReplicas=5), "must be at least minReplicas, which is 5"),
    ("LK-V-I30", {"endpoint": {"path": "v1"}}, "spec.endpoint.path: Invalid value"),
    ("LK-V-I30", {"endpoint": {"path": "/v1 x"}}, "spec.endpoint.path: Invalid value"),
    ("LK-V-I31", scaled({"type": "Pods", "name": "x"}), "targetAverageValue: Required value"),
    (
        "LK-V-I31",
        scaled({"type": "Pods", "name": "x", "targetAverageUtilization": 50}),
        "type Pods needs it in place of targetAverageUtilization as a quantity",
    ),
    ("LK-V-I31", scaled({"type": "Resource", "name": "cpu"}), "targetAverageUtilization: Required value"),
    (
        "LK-V-I31",
        scaled({"type": "Resource", "name": "cpu", "targetAverageUtilization": 0}),
        "targetAverageUtilization: Invalid value",
    ),
    (
        "LK-V-I31",
        scaled({"type": "Resource", "name": "gpu", "targetAverageUtilization": 50}),
        "metrics[0].name: Unsupported value",
    ),
    ("LK-V-I51", {"vllmConfig": {"tensorParallelSize": 0}}, f"{DOWN}.tensorParallelSize: Invalid value"),
    ("LK-V-I51", {"vllmConfig": {"maxModelLen": -1}}, f"{DOWN}.maxModelLen: Invalid value"),
    ("LK-V-I51", {"tgiConfig": {"maxInputLength": 0}}, "spec.tgiConfig.maxInputLength: Invalid value"),
    ("LK-V-I51", {"tgiConfig": {"maxTotalTokens": 0}}, "spec.tgiConfig.maxTotalTokens: Invalid value"),
    ("LK-V-I54", {"podLabels": {"a b": "c"}}, "spec.podLabels: Invalid value"),
    ("LK-V-I54", {"podLabels": {"a": "b c"}}, "spec.podLabels[a]: Invalid value"),
    ("LK-V-I54", {"podLabels": {"controller-uid": "x"}}, "spec.podLabels[controller-uid]: Forbidden"),
    ("LK-V-I54", {"podAnnotations": {"-a": "b"}}, "spec.podAnnotations: Invalid value"),
    ("LK-V-I56", {"nodeSelector": {"zone": "a b"}}, "spec.nodeSelector[zone]: Invalid value"),
    ("LK-V-I56", {"nodeSelector": {"/zone": "a"}}, "spec.nodeSelector: Invalid value"),
    (
        "LK-V-I59",
        {"vllmConfig": {"hfTokenSecretRef": {"key": "k", "name": ""}}},
        "hfTokenSecretRef.name: Required value",
    ),
    ("LK-V-I65", {"runtimeClassName": "A B"}, "spec.runtimeClassName: Invalid value"),
    ("LK-V-I65", {"priorityClassName": "High!"}, "spec.priorityClassName: Invalid value"),
    ("LK-V-I65", {"imagePullSecrets": [{"name": "A"}]}, "spec.imagePullSecrets[0].name: Invalid value"),
    ("LK-V-I66", scaled({**METRIC, "name": ""}), "metrics[0].name: Required value"),
    ("LK-V-I66", scaled({**METRIC, "name": "a/b"}), "metrics[0].name: Invalid value"),
]

EMBEDDED: list[tuple[str, dict[str, Any], str]] = [
    ("LK-V-K01", {"env": [{"name": ""}]}, "spec.env[0].name: Required value"),
    ("LK-V-K01", {"env": [{"name": "A=B"}]}, "spec.env[0].name: Invalid value"),
    (
        "LK-V-K02",
        env(value="x", valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}),
        "spec.env[0].valueFrom: Invalid value",
    ),
    ("LK-V-K03", env(valueFrom={}), "give exactly one of fieldRef"),
    (
        "LK-V-K35",
        env(valueFrom={"fileKeyRef": {"volumeName": "v", "path": "/p", "key": "k"}}),
        "fileKeyRef.path: Invalid value",
    ),
    (
        "LK-V-K35",
        env(valueFrom={"fileKeyRef": {"volumeName": "v", "path": "a/../b", "key": "k"}}),
        "must be a relative path without '..'",
    ),
    (
        "LK-V-K35",
        env(valueFrom={"fileKeyRef": {"volumeName": "v", "path": "..a/b", "key": "k"}}),
        "must not begin with '..'",
    ),
    (
        "LK-V-K03",
        env(valueFrom={"secretKeyRef": {"name": "s", "key": "k"}, "configMapKeyRef": {"name": "c", "key": "k"}}),
        "give exactly one of fieldRef",
    ),
    ("LK-V-K04", env(valueFrom={"secretKeyRef": {"key": "k"}}), "secretKeyRef.name: Required value"),
    ("LK-V-K04", env(valueFrom={"configMapKeyRef": {"name": "c", "key": ""}}), "configMapKeyRef.key: Required value"),
    ("LK-V-K04", env(valueFrom={"secretKeyRef": {"name": "s", "key": "../k"}}), "secretKeyRef.key: Invalid value"),
    ("LK-V-K04", env(valueFrom={"secretKeyRef": {"name": "s", "key": "k" * 254}}), "secretKeyRef.key: Invalid value"),
    ("LK-V-K05", env(valueFrom={"fieldRef": {"fieldPath": "metadata.labels"}}), "fieldPath: Unsupported value"),
    ("LK-V-K05", env(valueFrom={"fieldRef": {"fieldPath": "metadata.labels['a b']"}}), "fieldPath: Invalid value"),
    ("LK-V-K06", env(valueFrom={"resourceFieldRef": {"resource": "limits.gpu"}}), "resource: Unsupported value"),
    (
        "LK-V-K06",
        env(valueFrom={"resourceFieldRef": {"resource": "limits.cpu", "divisor": "x"}}),
        "resourceFieldRef.divisor: Invalid value",
    ),
    ("LK-V-K08", {"tolerations": [{"key": "a", "operator": "In"}]}, "operator: Unsupported value"),
    ("LK-V-K08", {"tolerations": [{"value": "a"}]}, "must be Exists when key is empty"),
    ("LK-V-K08", {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, "value: Invalid value"),
    ("LK-V-K08", {"tolerations": [{"key": "a", "effect": "Never"}]}, "effect: Unsupported value"),
    ("LK-V-K08", {"tolerations": [{"key": "a", "tolerationSeconds": 5}]}, "must be NoExecute"),
    ("LK-V-K08", {"tolerations": [{"key": "a b"}]}, "tolerations[0].key: Invalid value"),
    ("LK-V-K09", probes(**HTTP, tcpSocket={"port": 80}), "readiness.tcpSocket: Forbidden"),
    ("LK-V-K10", probes(), "spec.probeOverrides.readiness: Required value"),
    ("LK-V-K10", probes(periodSeconds=5), "spec.probeOverrides.readiness: Required value"),
    ("LK-V-K11", probes(**HTTP, periodSeconds=0), "periodSeconds: Invalid value"),
    ("LK-V-K11", probes(**HTTP, initialDelaySeconds=-1), "initialDelaySeconds: Invalid value"),
    ("LK-V-K12", probes("liveness", **HTTP, successThreshold=2), "successThreshold: Invalid value: 2: must be 1"),
    ("LK-V-K12", probes("startup", **HTTP, successThreshold=2), "successThreshold: Invalid value: 2: must be 1"),
    ("LK-V-K13", probes(**HTTP, terminationGracePeriodSeconds=5), "must not be set for readiness probes"),
    ("LK-V-K13", probes("liveness", **HTTP, terminationGracePeriodSeconds=0), "must be at least 1"),
    ("LK-V-K14", probes(tcpSocket={"port": 0}), "tcpSocket.port: Invalid value"),
    ("LK-V-K14", probes(httpGet={"port": "8080"}), "httpGet.port: Invalid value"),
    ("LK-V-K14", probes(grpc={"port": 70000}), "grpc.port: Invalid value"),
    ("LK-V-K15", probes(httpGet={"port": 80, "scheme": "https"}), "scheme: Unsupported value"),
    (
        "LK-V-K15",
        probes(httpGet={"port": 80, "httpHeaders": [{"name": "a b", "value": "c"}]}),
        "httpHeaders[0].name: Invalid value",
    ),
    ("LK-V-K16", pod(seccompProfile={"type": "Default"}), "seccompProfile.type: Unsupported value"),
    ("LK-V-K16", pod(seccompProfile={"type": "Localhost"}), "localhostProfile: Required value"),
    (
        "LK-V-K16",
        container(seccompProfile={"type": "RuntimeDefault", "localhostProfile": "x"}),
        "localhostProfile: Invalid value",
    ),
    (
        "LK-V-K16",
        container(seccompProfile={"type": "Localhost", "localhostProfile": "../x"}),
        "must be a relative path without '..'",
    ),
    ("LK-V-K17", pod(appArmorProfile={"type": "Localhost"}), "appArmorProfile.localhostProfile: Required value"),
    ("LK-V-K17", container(appArmorProfile={"type": "None"}), "appArmorProfile.type: Unsupported value"),
    ("LK-V-K18", pod(fsGroupChangePolicy="Never"), "fsGroupChangePolicy: Unsupported value"),
    ("LK-V-K19", pod(seLinuxChangePolicy="Never"), "seLinuxChangePolicy: Unsupported value"),
    ("LK-V-K20", pod(supplementalGroupsPolicy="Never"), "supplementalGroupsPolicy: Unsupported value"),
    ("LK-V-K21", pod(runAsUser=-1), "runAsUser: Invalid value"),
    ("LK-V-K21", pod(fsGroup=2**31), "fsGroup: Invalid value"),
    ("LK-V-K21", pod(supplementalGroups=[1, -1]), "supplementalGroups[1]: Invalid value"),
    ("LK-V-K21", container(runAsGroup=-1), "spec.securityContext.runAsGroup: Invalid value"),
    ("LK-V-K22", container(procMount="All"), "procMount: Unsupported value"),
    ("LK-V-K23", container(privileged=True, allowPrivilegeEscalation=False), "allowPrivilegeEscalation: Invalid value"),
    (
        "LK-V-K23",
        container(allowPrivilegeEscalation=False, capabilities={"add": ["CAP_SYS_ADMIN"]}),
        "allowPrivilegeEscalation: Invalid value",
    ),
    ("LK-V-K26", pod(sysctls=[{"name": "Net", "value": "1"}]), "sysctls[0].name: Invalid value"),
    (
        "LK-V-K26",
        pod(sysctls=[{"name": "net.core.somaxconn", "value": "1"}, {"name": "net.core.somaxconn", "value": "2"}]),
        "Duplicate value",
    ),
    ("LK-V-K27", {"imagePullSecrets": [{}]}, "spec.imagePullSecrets[0].name: Required value"),
]

VLLM = {"runtime": "vllm"}
PERSONAPLEX = {"runtime": "personaplex", "image": "p"}

WARNED: list[tuple[str, dict[str, Any], str]] = [
    ("LK-V-I24", {"args": ["x"]}, "spec.args: no effect with runtime llamacpp"),
    (
        "LK-V-I26",
        {"runtime": "generic", "image": "i", "extraArgs": ["x"]},
        "spec.extraArgs: no effect with runtime generic",
    ),
    ("LK-V-I27", {"vllmConfig": {}}, "spec.vllmConfig: no effect with runtime llamacpp"),
    ("LK-V-I27", {**VLLM, "tgiConfig": {}}, "spec.tgiConfig: no effect with runtime vllm"),
    (
        "LK-V-I28",
        {**VLLM, "jinja": True, "contextSize": 4096},
        "spec.jinja: no effect with runtime vllm, only ",
    ),
    (
        "LK-V-I28",
        {"runtime": "generic", "image": "i", "parallelSlots": 2},
        "parallelSlots: no effect with runtime generic, only with llamacpp and vllm",
    ),
    ("LK-V-I28", {**VLLM, "reasoningBudget": 0}, "spec.reasoningBudget: no effect with runtime vllm"),
    (
        "LK-V-I32",
        scaled({**METRIC, "targetAverageUtilization": 50}),
        "metrics[0].targetAverageUtilization: no effect with type Pods",
    ),
    (
        "LK-V-I32",
        scaled({"type": "Resource", "name": "cpu", "targetAverageUtilization": 5, "targetAverageValue": "1"}),
        "metrics[0].targetAverageValue: no effect with type Resource",
    ),
    (
        "LK-V-I33",
        scaled({"type": "Resource", "name": "memory", "targetAverageUtilization": 5}),
        "without a request in resources.memory",
    ),
    ("LK-V-I87", {**scaled(), "parallelSlots": 2}, "autoscaling.metrics: at most 2 requests are in process in a pod"),
    (
        "LK-V-I87",
        {
            **scaled({"type": "Pods", "name": "vllm:num_requests_running", "targetAverageValue": "8"}),
            "runtime": "vllm",
            "parallelSlots": 4,
        },
        "so that 8 of vllm:num_requests_running is never exceeded",
    ),
    ("LK-V-I34", {**scaled(), "replicas": 0}, "replicas: 0 stops the service"),
    (
        "LK-V-I34",
        {**scaled(), "replicas": 7},
        "replicas: 7 is outside minReplicas and maxReplicas: the service starts with 3",
    ),
    (
        "LK-V-X21",
        {
            "skipModelInit": True,
            "extraArgs": ["-m", "/x"],
            "speculativeDecoding": {"type": "draft", "draftModelRef": "d"},
        },
        "speculativeDecoding: the draft model has no effect with skipModelInit",
    ),
    ("LK-V-I35", {"skipModelInit": True}, "skipModelInit: llamacpp is left without a model"),
    ("LK-V-I36", {"runtime": "tgi", "skipModelInit": True}, "spec.skipModelInit: no effect with runtime tgi"),
    ("LK-V-I37", {"cacheTypeK": "f16", "cacheTypeCustomK": "t3"}, "cacheTypeK: no effect beside cacheTypeCustomK"),
    ("LK-V-I37", {"cacheTypeV": "f16", "cacheTypeCustomV": "t3"}, "cacheTypeV: no effect beside cacheTypeCustomV"),
    (
        "LK-V-I37",
        {**VLLM, "vllmConfig": {"kvCacheDtype": "fp8_e5m2", "kvCacheCustomDtype": "t2"}},
        "kvCacheDtype: no effect beside vllmConfig.kvCacheCustomDtype",
    ),
    (
        "LK-V-I38",
        {"ropeScaling": {"type": "linear"}, "extraArgs": ["--rope-scaling=yarn"]},
        "ropeScaling: no effect beside --rope-scaling",
    ),
    (
        "LK-V-I38",
        {"parallelSlots": 2, "extraArgs": ["--parallel", "4"]},
        "parallelSlots: no effect beside --parallel",
    ),
    (
        "LK-V-I38",
        {**VLLM, "parallelSlots": 2, "extraArgs": ["--max-num-seqs=4"]},
        "parallelSlots: no effect beside --max-num-seqs",
    ),
    ("LK-V-I38", {"parallelSlots": 2, "extraArgs": ["-np", "4"]}, "parallelSlots: no effect beside -np"),
    ("LK-V-I38", {"contextSize": 4096, "extraArgs": ["-c", "8192"]}, "contextSize: no effect beside -c"),
    ("LK-V-I38", {"cacheTypeCustomK": "t3", "extraArgs": ["--cache-type-k=f16"]}, "beside --cache-type-k in extraArgs"),
    (
        "LK-V-I38",
        {"ropeScaling": {"type": "linear", "factor": "2"}, "extraArgs": ["--rope-scale", "3"]},
        "ropeScaling.factor: no effect beside --rope-scale",
    ),
    (
        "LK-V-I38",
        {"reasoningBudget": 0, "extraArgs": ["--reasoning-budget", "9"]},
        "reasoningBudget: no effect beside",
    ),
    (
        "LK-V-I38",
        {**VLLM, "vllmConfig": {"maxModelLen": 1}, "extraArgs": ["--max-model-len=2"]},
        "vllmConfig.maxModelLen: no effect beside --max-model-len",
    ),
    ("LK-V-I44", {"extraArgs": ["--port", "9000"]}, "set containerPort instead"),
    ("LK-V-I39", {"ropeScaling": {"type": "yarn"}}, "originalContext: should be set"),
    ("LK-V-I39", {"ropeScaling": {"type": "linear"}}, "set contextSize as well"),
    ("LK-V-I41", pod(runAsUser=1000), "podSecurityContext: without fsGroup"),
    ("LK-V-I43", {"moeCPUOffload": True, "moeCPULayers": 4}, "moeCPULayers: no effect beside moeCPUOffload"),
    ("LK-V-I44", {**PERSONAPLEX, "extraArgs": ["--port", "9000"]}, "set containerPort instead"),
    ("LK-V-I45", {"reasoningBudgetMessage": "stop"}, "no effect without reasoningBudget"),
    ("LK-V-I46", {"noKvOffload": True}, "spec.resources.hostMemory: part of the model"),
    ("LK-V-I47", {"resources": {"memory": "1Gi", "hostMemory": "2Gi"}}, "no effect beside resources.hostMemory"),
    ("LK-V-I48", {"priority": "high", "priorityClassName": "own"}, "spec.priority: no effect"),
    ("LK-V-I49", {**VLLM, "vllmConfig": {"speculative": {"enabled": True}}}, "enabled: no effect without model"),
    ("LK-V-I50", {**VLLM, "vllmConfig": {"speculative": {"model": "d"}}}, "no effect unless enabled is true"),
    (
        "LK-V-I50",
        {**VLLM, "vllmConfig": {"speculative": {"numSpeculativeTokens": 9}}},
        "no effect unless enabled is true",
    ),
    (
        "LK-V-I52",
        {"runtime": "tgi", "tgiConfig": {"maxInputLength": 10, "maxTotalTokens": 10}},
        "maxInputLength: must be below maxTotalTokens, which is 10",
    ),
    ("LK-V-I53", {"batchSize": 128, "uBatchSize": 256}, "uBatchSize: llama.cpp lowers it to batchSize, which is 128"),
    ("LK-V-I55", {"podLabels": {"app": "x"}}, "spec.podLabels[app]: no effect"),
    ("LK-V-I69", {"bindAddress": "10.0.256.1"}, "spec.bindAddress: not an IP address"),
    ("LK-V-I82", probes(httpGet={"port": "http", "scheme": "HTTPS"}), "httpGet.scheme: the server speaks HTTP"),
    ("LK-V-I88", scaled(METRIC | {"name": "sum(x)"}), "metrics[0].name: an expression"),
    ("LK-V-I88", scaled(METRIC | {"name": "memory"}), "metrics[0].name: memory is a metric of type Resource"),
    (
        "LK-V-I89",
        {"image": "lmsysorg/sglang:latest"},
        "spec.image: an image of SGLang, in which the server of runtime llamacpp cannot start",
    ),
    (
        "LK-V-I93",
        {"runtime": "sglang", "extraArgs": ["--nnodes", "2", "--node-rank", "0"]},
        "spec.extraArgs[0]: the server waits for 2 nodes",
    ),
    ("LK-V-I89", {**VLLM, "image": "ghcr.io/ggml-org/llama.cpp:server"}, "set runtime llamacpp, or another image"),
    (
        "LK-V-I89",
        {**VLLM, "image": "vllm/vllm-openai:0.11.0"},
        "no image has this tag; did you mean vllm/vllm-openai:v0.11.0?",
    ),
    (
        "LK-V-I90",
        {"image": "ghcr.io/ggml-org/llama.cpp:light-vulkan"},
        "did you mean ghcr.io/ggml-org/llama.cpp:server-vulkan?",
    ),
    ("LK-V-I61", {"env": [{"name": "A"}, {"name": "A"}]}, "spec.env[1]: A is set twice"),
    (
        "LK-V-I61",
        {**VLLM, "vllmConfig": {"hfTokenSecretRef": {"name": "s", "key": "k"}}, "env": [{"name": "HF_TOKEN"}]},
        "HF_TOKEN replaces the value",
    ),
    ("LK-V-I61", {**PERSONAPLEX, "env": [{"name": "NO_TORCH_COMPILE"}]}, "NO_TORCH_COMPILE replaces the value"),
    ("LK-V-I80", {"runtime": "generic", "image": "x", "autoscaling": {"maxReplicas": 2}}, "no autoscaler is made"),
    ("LK-V-I80", {"runtime": "personaplex", "image": "x", "autoscaling": {"maxReplicas": 2}}, "no autoscaler is made"),
    ("LK-V-I63", {"evictionProtection": True}, "unless the Model's accelerator is metal"),
    (
        "LK-V-K07",
        env(valueFrom={"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}),
        "the pod has no volume that provides this file",
    ),
    ("LK-V-K14", probes(httpGet={"port": "web"}), "the container's port is called http, not web"),
    (
        "LK-V-K27",
        {"imagePullSecrets": [{"name": "a"}, {"name": "a"}]},
        "spec.imagePullSecrets[1]: a is listed twice",
    ),
    ("LK-V-K24", {**pod(runAsNonRoot=True), **container(runAsUser=0)}, "runAsUser: 0 contradicts runAsNonRoot"),
    ("LK-V-K25", pod(windowsOptions={"hostProcess": True}), "needs the node's network"),
    (
        "LK-V-K14",
        probes(httpGet={"port": "http", "host": "localhost"}),
        "readiness.httpGet.host: the kubelet connects from",
    ),
    (
        "LK-V-K39",
        {"affinity": {"podAffinity": {_REQUIRED: [{"topologyKey": "a"}]}}},
        "matches no pod without labelSelector",
    ),
    (
        "LK-V-K39",
        {"topologySpreadConstraints": [_SPREAD]},
        "topologySpreadConstraints[0]: has no effect without labelSelector",
    ),
    (
        "LK-V-K39",
        {"topologySpreadConstraints": [{**_SPREAD, "labelSelector": {"matchLabels": {"app": "x"}}}]},
        "labelSelector.matchLabels[app]: no pod of this workload has this label",
    ),
    ("LK-V-K40", {"extraArgs": ["--api-key", "$KEY"]}, "extraArgs[1]: no shell reads it"),
    ("LK-V-K40", {"extraArgs": ["--api-key", "$(KEY)"]}, "extraArgs[1]: no variable is named KEY"),
    ("LK-V-K40", {"env": [{"name": "A", "value": "$(B)"}, {"name": "B"}]}, "spec.env[0].value: $(B) is not replaced"),
]


@pytest.mark.parametrize(("rule", "spec", "words"), [*SCHEMA, *CROSS, *EMBEDDED])
def test_a_mistake_is_refused(rule: str, spec: dict[str, Any], words: str) -> None:
    """One mistake gives one error, which names its field."""
    messages = errors(service(**spec))
    assert len(messages) == 1, (rule, messages)
    assert words in messages[0]


@pytest.mark.parametrize(("rule", "spec", "words"), WARNED)
def test_warns_of_fields_without_effect(rule: str, spec: dict[str, Any], words: str) -> None:
    """These fields cause a warning and no error, because manifests are shared between runtimes."""
    assert errors(service(**spec)) == [], rule
    assert [text for text in warned(service(**spec)) if words in text], (rule, warned(service(**spec)))


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"command": ["sh"]},
        {"skipModelInit": True, "extraArgs": ["-hf", "owner/repo"]},
        {"skipModelInit": True, "command": ["server"]},
        {"containerPort": 9000, "endpoint": {"port": 8080}},
        {**PERSONAPLEX, "containerPort": 8998},
        {"ropeScaling": {"type": "yarn", "originalContext": 4096}, "contextSize": 8192},
        {"priorityClassName": "own"},
        {"flashAttention": True},
        {"extraArgs": ["--host", "::", "--verbose"], "contextSize": 4096},
        {"runtime": "vllm", "vllmConfig": {"speculative": {"enabled": False, "numSpeculativeTokens": 4}}},
        {"podLabels": {"team": "a"}},
        {"image": "ghcr.io/ggml-org/llama.cpp:full", "command": ["/app/llama-server"]},
        {"runtime": "vllm", "image": "ghcr.io/ggml-org/llama.cpp:server", "command": ["serve"]},
        {"runtime": "vllm", "env": [{"name": "AUTH", "value": "$(HF_TOKEN)"}]},
        {
            "podLabels": {"team": "a"},
            "topologySpreadConstraints": [{**_SPREAD, "labelSelector": {"matchLabels": {"team": "a"}}}],
        },
        scaled() | {"parallelSlots": 3},
        scaled(METRIC) | {"parallelSlots": 1},
        {"rolloutPolicy": {"waitForIdle": False, "idleTimeoutSeconds": 600}},
        scaled({"type": "Resource", "name": "cpu", "targetAverageUtilization": 5}, minReplicas=1)
        | {"resources": {"cpu": "1"}},
        probes(httpGet={"port": "http"}),
        probes(newHandlerOfTomorrow={"port": 1}),
        {"tolerations": [{"operator": "Exists"}, {"key": "a", "operator": "Gt", "value": "5"}]},
        env(valueFrom={"fieldRef": {"fieldPath": "metadata.annotations['a/b']"}}),
        env(valueFrom={"resourceFieldRef": {"resource": "requests.hugepages-2Mi", "divisor": "1"}}),
    ],
)
def test_what_works_passes(spec: dict[str, Any]) -> None:
    """Specs that LK-V-I25, LK-V-I42, LK-V-I60 and LK-V-I62 allow cause neither errors nor warnings."""
    assert errors(service(**spec)) == []
    assert [text for text in warned(service(**spec)) if not text.startswith("unknown field")] == []


@pytest.mark.parametrize("other", [{"extraArgs": ["--parallel", "8"]}, {"extraArgs": ["-np=8"]}, {"runtime": "sglang"}])
def test_slots_without_effect_limit_no_requests(other: dict[str, Any]) -> None:
    """The number of slots is that of extraArgs, or the runtime has none (LK-V-I87)."""
    metric = {"type": "Pods", "name": "llamacpp:requests_processing", "targetAverageValue": "4"}
    texts = warned(service(**scaled(metric), parallelSlots=2, **other))
    assert not [text for text in texts if "never exceeded" in text]
    assert [text for text in texts if text.startswith("spec.parallelSlots: no effect")]


@pytest.mark.parametrize(
    ("name", "passes"),
    [("s", True), ("qwen2.5-7b", True), ("s" * 63, True), ("s" * 64, False), ("7b-chat", False), ("2.5", False)],
)
def test_a_service_can_be_named_after_it(name: str, passes: bool) -> None:
    """The name must be valid for a Service, which begins with a letter (LK-V-I57)."""
    messages = errors(service(name=name))
    assert (messages == []) is passes
    assert all(text.startswith("metadata.name: ") for text in messages)


def test_every_mistake_of_a_layer_is_named_at_once() -> None:
    messages = errors(
        service(
            runtime="generic",
            endpoint={"path": "x"},
            env=[{"name": "A=B"}],
            autoscaling={"minReplicas": 4, "maxReplicas": 2},
        )
    )
    assert [text.partition(": ")[0] for text in messages] == [
        "spec.image",
        "spec.endpoint.path",
        "spec.autoscaling.maxReplicas",
        "spec.env[0].name",
    ]


def test_every_mistake_of_a_metric_is_named_at_once() -> None:
    messages = errors(service(**scaled({"type": "Pods", "name": "", "targetAverageValue": "0"})))
    assert [text.partition(": ")[0] for text in messages] == [
        "spec.autoscaling.metrics[0].name",
        "spec.autoscaling.metrics[0].targetAverageValue",
    ]


def test_documented_example_has_two_warnings() -> None:
    """Fields for metal on a GPU service cause warnings and no errors."""
    weights = model(hardware={"accelerator": "cuda", "gpu": {"count": 1}, "memoryBudget": "24Gi"})
    chat = service(
        name="chat-prod",
        replicas=2,
        priority="high",
        evictionProtection=True,
        runtimeClassName="nvidia",
        flashAttention=True,
        contextSize=32768,
        parallelSlots=4,
        resources={"gpu": 1, "cpu": "2", "memory": "16Gi"},
        podLabels={"cost-center": "ai-platform"},
        podAnnotations={"sidecar.istio.io/inject": "true"},
    )
    assert errors(weights) == []
    assert errors(chat) == []
    assert [text.split()[0].rstrip(":") for text in (*warned(weights), *warned(chat))] == [
        "spec.hardware.memoryBudget",
        "spec.evictionProtection",
    ]


def test_a_volume_of_the_user_provides_a_file() -> None:
    """A volume of ``extraVolumes`` may provide the file (LK-V-K07)."""
    variable = env(valueFrom={"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}})
    assert "no volume that provides" in str(warned(service(**variable)))
    assert "no volume" not in str(warned(service(**variable, extraVolumes=[{"name": "v", "emptyDir": {}}])))
