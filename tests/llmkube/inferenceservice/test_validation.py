"""The rules of an InferenceService (llmkube spec 6.2 to 6.4), each with a case that breaks it."""

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


SCHEMA: list[tuple[str, dict[str, Any], str]] = [
    ("V-I02", {"runtime": "ollama"}, "spec.runtime: Unsupported value"),
    ("V-I03", {"replicas": 11}, "spec.replicas"),
    ("V-I03", {"replicas": -1}, "spec.replicas"),
    ("V-I04", {"autoscaling": {}}, "spec.autoscaling.maxReplicas: Required value"),
    ("V-I04", {"autoscaling": {"maxReplicas": 101}}, "spec.autoscaling.maxReplicas"),
    ("V-I05", scaled(minReplicas=0), "spec.autoscaling.minReplicas"),
    ("V-I05", scaled(minReplicas=11), "spec.autoscaling.minReplicas"),
    ("V-I06", scaled({"type": "Pods"}), "metrics[0].name: Required value"),
    ("V-I06", scaled({"type": "Object", "name": "x"}), "metrics[0].type: Unsupported value"),
    ("V-I07", {"endpoint": {"port": 0}}, "spec.endpoint.port"),
    ("V-I07", {"containerPort": 65536}, "spec.containerPort"),
    ("V-I08", {"endpoint": {"type": "ExternalName"}}, "spec.endpoint.type: Unsupported value"),
    ("V-I09", {"resources": {"gpu": 9}}, "spec.resources.gpu"),
    ("V-I10", {"contextSize": 127}, "spec.contextSize"),
    ("V-I10", {"contextSize": 2097153}, "spec.contextSize"),
    ("V-I11", {"parallelSlots": 0}, "spec.parallelSlots"),
    ("V-I12", {"ropeScaling": {}}, "spec.ropeScaling.type: Required value"),
    ("V-I12", {"ropeScaling": {"type": "yarn", "factor": "2x"}}, "spec.ropeScaling.factor"),
    ("V-I12", {"ropeScaling": {"type": "yarn", "originalContext": 1}}, "spec.ropeScaling.originalContext"),
    ("V-I13", {"cacheTypeK": "turbo3"}, "spec.cacheTypeK: Unsupported value"),
    ("V-I13", {"cacheTypeV": "f8"}, "spec.cacheTypeV: Unsupported value"),
    ("V-I14", {"batchSize": 16385}, "spec.batchSize"),
    ("V-I14", {"uBatchSize": 0}, "spec.uBatchSize"),
    ("V-I15", {"moeCPULayers": -1}, "spec.moeCPULayers"),
    ("V-I15", {"reasoningBudget": -1}, "spec.reasoningBudget"),
    ("V-I16", {"priority": "urgent"}, "spec.priority: Unsupported value"),
    ("V-I17", {"vllmConfig": {"quantization": "int4"}}, f"{DOWN}.quantization: Unsupported value"),
    ("V-I17", {"vllmConfig": {"maxNumBatchedTokens": 511}}, f"{DOWN}.maxNumBatchedTokens"),
    ("V-I17", {"vllmConfig": {"cpuOffloadGB": -1}}, f"{DOWN}.cpuOffloadGB"),
    ("V-I17", {"vllmConfig": {"gpuMemoryUtilization": 1.0}}, f"{DOWN}.gpuMemoryUtilization"),
    ("V-I17", {"vllmConfig": {"speculative": {"numSpeculativeTokens": 17}}}, "numSpeculativeTokens"),
    ("V-I18", {"tgiConfig": {"quantize": "fp8"}}, "spec.tgiConfig.quantize: Unsupported value"),
    ("V-I19", {"vllmConfig": {"hfTokenSecretRef": {"name": "s"}}}, "hfTokenSecretRef.key: Required value"),
]

CROSS: list[tuple[str, dict[str, Any], str]] = [
    ("V-I01", {"modelRef": ""}, "spec.modelRef: Required value: name a Model"),
    ("V-I01", {"modelRef": "other/m"}, "spec.modelRef: Invalid value"),
    ("V-I01", {"modelRef": "m" * 64}, "spec.modelRef: Too long"),
    ("V-I20", {"resources": {"cpu": "two"}}, "spec.resources.cpu: Invalid value"),
    ("V-I20", {"resources": {"memory": "-1Gi"}}, "spec.resources.memory: Invalid value"),
    ("V-I20", {"resources": {"hostMemory": "64 GB"}}, "spec.resources.hostMemory: Invalid value"),
    ("V-I20", scaled({**METRIC, "targetAverageValue": "0"}), "targetAverageValue: Invalid value"),
    ("V-I20", scaled({**METRIC, "targetAverageValue": "many"}), "targetAverageValue: Invalid value"),
    ("V-I21", {"resources": {"gpuMemory": "much"}}, "spec.resources.gpuMemory: Invalid value"),
    ("V-I22", {"runtime": "generic"}, "spec.image: Required value"),
    ("V-I23", {"runtime": "personaplex"}, "spec.image: Required value"),
    ("V-I22", {"image": " a"}, "spec.image: Invalid value"),
    ("V-I29", scaled(minReplicas=5), "must be at least minReplicas, which is 5"),
    ("V-I30", {"endpoint": {"path": "v1"}}, "spec.endpoint.path: Invalid value"),
    ("V-I30", {"endpoint": {"path": "/v1 x"}}, "spec.endpoint.path: Invalid value"),
    ("V-I31", scaled({"type": "Pods", "name": "x"}), "targetAverageValue: Required value"),
    ("V-I31", scaled({"type": "Resource", "name": "cpu"}), "targetAverageUtilization: Required value"),
    (
        "V-I31",
        scaled({"type": "Resource", "name": "cpu", "targetAverageUtilization": 0}),
        "targetAverageUtilization: Invalid value",
    ),
    (
        "V-I31",
        scaled({"type": "Resource", "name": "gpu", "targetAverageUtilization": 50}),
        "metrics[0].name: Unsupported value",
    ),
    ("V-I51", {"vllmConfig": {"tensorParallelSize": 0}}, f"{DOWN}.tensorParallelSize: Invalid value"),
    ("V-I51", {"vllmConfig": {"maxModelLen": -1}}, f"{DOWN}.maxModelLen: Invalid value"),
    ("V-I51", {"tgiConfig": {"maxInputLength": 0}}, "spec.tgiConfig.maxInputLength: Invalid value"),
    ("V-I51", {"tgiConfig": {"maxTotalTokens": 0}}, "spec.tgiConfig.maxTotalTokens: Invalid value"),
    ("V-I54", {"podLabels": {"a b": "c"}}, "spec.podLabels: Invalid value"),
    ("V-I54", {"podLabels": {"a": "b c"}}, "spec.podLabels[a]: Invalid value"),
    ("V-I54", {"podLabels": {"controller-uid": "x"}}, "spec.podLabels[controller-uid]: Forbidden"),
    ("V-I54", {"podAnnotations": {"-a": "b"}}, "spec.podAnnotations: Invalid value"),
    ("V-I56", {"nodeSelector": {"zone": "a b"}}, "spec.nodeSelector[zone]: Invalid value"),
    ("V-I56", {"nodeSelector": {"/zone": "a"}}, "spec.nodeSelector: Invalid value"),
    ("V-I59", {"vllmConfig": {"hfTokenSecretRef": {"key": "k", "name": ""}}}, "hfTokenSecretRef.name: Required value"),
    ("V-I65", {"runtimeClassName": "A B"}, "spec.runtimeClassName: Invalid value"),
    ("V-I65", {"priorityClassName": "High!"}, "spec.priorityClassName: Invalid value"),
    ("V-I65", {"imagePullSecrets": [{"name": "A"}]}, "spec.imagePullSecrets[0].name: Invalid value"),
    ("V-I66", scaled({**METRIC, "name": ""}), "metrics[0].name: Required value"),
    ("V-I66", scaled({**METRIC, "name": "a/b"}), "metrics[0].name: Invalid value"),
]

EMBEDDED: list[tuple[str, dict[str, Any], str]] = [
    ("V-K01", {"env": [{"name": ""}]}, "spec.env[0].name: Required value"),
    ("V-K01", {"env": [{"name": "A=B"}]}, "spec.env[0].name: Invalid value"),
    (
        "V-K02",
        env(value="x", valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}),
        "spec.env[0].valueFrom: Invalid value",
    ),
    ("V-K03", env(valueFrom={}), "give exactly one of fieldRef"),
    (
        "V-K03",
        env(valueFrom={"secretKeyRef": {"name": "s", "key": "k"}, "configMapKeyRef": {"name": "c", "key": "k"}}),
        "give exactly one of fieldRef",
    ),
    ("V-K04", env(valueFrom={"secretKeyRef": {"key": "k"}}), "secretKeyRef.name: Required value"),
    ("V-K04", env(valueFrom={"configMapKeyRef": {"name": "c", "key": ""}}), "configMapKeyRef.key: Required value"),
    ("V-K04", env(valueFrom={"secretKeyRef": {"name": "s", "key": "../k"}}), "secretKeyRef.key: Invalid value"),
    ("V-K04", env(valueFrom={"secretKeyRef": {"name": "s", "key": "k" * 254}}), "secretKeyRef.key: Invalid value"),
    ("V-K05", env(valueFrom={"fieldRef": {"fieldPath": "metadata.labels"}}), "fieldPath: Unsupported value"),
    ("V-K05", env(valueFrom={"fieldRef": {"fieldPath": "metadata.labels['a b']"}}), "fieldPath: Invalid value"),
    ("V-K06", env(valueFrom={"resourceFieldRef": {"resource": "limits.gpu"}}), "resource: Unsupported value"),
    (
        "V-K06",
        env(valueFrom={"resourceFieldRef": {"resource": "limits.cpu", "divisor": "x"}}),
        "resourceFieldRef.divisor: Invalid value",
    ),
    ("V-K08", {"tolerations": [{"key": "a", "operator": "In"}]}, "operator: Unsupported value"),
    ("V-K08", {"tolerations": [{"value": "a"}]}, "must be Exists when key is empty"),
    ("V-K08", {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, "value: Invalid value"),
    ("V-K08", {"tolerations": [{"key": "a", "effect": "Never"}]}, "effect: Unsupported value"),
    ("V-K08", {"tolerations": [{"key": "a", "tolerationSeconds": 5}]}, "must be NoExecute"),
    ("V-K08", {"tolerations": [{"key": "a b"}]}, "tolerations[0].key: Invalid value"),
    ("V-K09", probes(**HTTP, tcpSocket={"port": 80}), "readiness.tcpSocket: Forbidden"),
    ("V-K10", probes(), "spec.probeOverrides.readiness: Required value"),
    ("V-K10", probes(periodSeconds=5), "spec.probeOverrides.readiness: Required value"),
    ("V-K11", probes(**HTTP, periodSeconds=0), "periodSeconds: Invalid value"),
    ("V-K11", probes(**HTTP, initialDelaySeconds=-1), "initialDelaySeconds: Invalid value"),
    ("V-K12", probes("liveness", **HTTP, successThreshold=2), "successThreshold: Invalid value: 2: must be 1"),
    ("V-K12", probes("startup", **HTTP, successThreshold=2), "successThreshold: Invalid value: 2: must be 1"),
    ("V-K13", probes(**HTTP, terminationGracePeriodSeconds=5), "must not be set for readiness probes"),
    ("V-K13", probes("liveness", **HTTP, terminationGracePeriodSeconds=0), "must be at least 1"),
    ("V-K14", probes(tcpSocket={"port": 0}), "tcpSocket.port: Invalid value"),
    ("V-K14", probes(httpGet={"port": "8080"}), "httpGet.port: Invalid value"),
    ("V-K14", probes(grpc={"port": 70000}), "grpc.port: Invalid value"),
    ("V-K15", probes(httpGet={"port": 80, "scheme": "https"}), "scheme: Unsupported value"),
    (
        "V-K15",
        probes(httpGet={"port": 80, "httpHeaders": [{"name": "a b", "value": "c"}]}),
        "httpHeaders[0].name: Invalid value",
    ),
    ("V-K16", pod(seccompProfile={"type": "Default"}), "seccompProfile.type: Unsupported value"),
    ("V-K16", pod(seccompProfile={"type": "Localhost"}), "localhostProfile: Required value"),
    (
        "V-K16",
        container(seccompProfile={"type": "RuntimeDefault", "localhostProfile": "x"}),
        "localhostProfile: Invalid value",
    ),
    (
        "V-K16",
        container(seccompProfile={"type": "Localhost", "localhostProfile": "../x"}),
        "must be a relative path without '..'",
    ),
    ("V-K17", pod(appArmorProfile={"type": "Localhost"}), "appArmorProfile.localhostProfile: Required value"),
    ("V-K17", container(appArmorProfile={"type": "None"}), "appArmorProfile.type: Unsupported value"),
    ("V-K18", pod(fsGroupChangePolicy="Never"), "fsGroupChangePolicy: Unsupported value"),
    ("V-K19", pod(seLinuxChangePolicy="Never"), "seLinuxChangePolicy: Unsupported value"),
    ("V-K20", pod(supplementalGroupsPolicy="Never"), "supplementalGroupsPolicy: Unsupported value"),
    ("V-K21", pod(runAsUser=-1), "runAsUser: Invalid value"),
    ("V-K21", pod(fsGroup=2**31), "fsGroup: Invalid value"),
    ("V-K21", pod(supplementalGroups=[1, -1]), "supplementalGroups[1]: Invalid value"),
    ("V-K21", container(runAsGroup=-1), "spec.securityContext.runAsGroup: Invalid value"),
    ("V-K22", container(procMount="All"), "procMount: Unsupported value"),
    ("V-K23", container(privileged=True, allowPrivilegeEscalation=False), "allowPrivilegeEscalation: Invalid value"),
    (
        "V-K23",
        container(allowPrivilegeEscalation=False, capabilities={"add": ["CAP_SYS_ADMIN"]}),
        "allowPrivilegeEscalation: Invalid value",
    ),
    ("V-K26", pod(sysctls=[{"name": "Net", "value": "1"}]), "sysctls[0].name: Invalid value"),
    (
        "V-K26",
        pod(sysctls=[{"name": "net.core.somaxconn", "value": "1"}, {"name": "net.core.somaxconn", "value": "2"}]),
        "Duplicate value",
    ),
    ("V-K27", {"imagePullSecrets": [{}]}, "spec.imagePullSecrets[0].name: Required value"),
]

VLLM = {"runtime": "vllm"}
PERSONAPLEX = {"runtime": "personaplex", "image": "p"}

WARNED: list[tuple[str, dict[str, Any], str]] = [
    ("V-I21", {"resources": {"gpuMemory": "24Gi"}}, "spec.resources.gpuMemory has no effect"),
    ("V-I24", {"args": ["x"]}, "no effect with runtime llamacpp: spec.args"),
    ("V-I26", {"runtime": "tgi", "extraArgs": ["x"]}, "no effect with runtime tgi: spec.extraArgs"),
    ("V-I27", {"vllmConfig": {}}, "no effect with runtime llamacpp: spec.vllmConfig"),
    ("V-I27", {**VLLM, "tgiConfig": {}}, "no effect with runtime vllm: spec.tgiConfig"),
    ("V-I28", {**VLLM, "jinja": True, "contextSize": 4096}, "runtime vllm: spec.contextSize, spec.jinja"),
    ("V-I28", {"runtime": "generic", "image": "i", "parallelSlots": 2}, "runtime generic: spec.parallelSlots"),
    ("V-I28", {**VLLM, "reasoningBudget": 0}, "runtime vllm: spec.reasoningBudget"),
    (
        "V-I32",
        scaled({**METRIC, "targetAverageUtilization": 50}),
        "metrics[0].targetAverageUtilization has no effect with type Pods",
    ),
    (
        "V-I32",
        scaled({"type": "Resource", "name": "cpu", "targetAverageUtilization": 5, "targetAverageValue": "1"}),
        "metrics[0].targetAverageValue has no effect with type Resource",
    ),
    (
        "V-I33",
        scaled({"type": "Resource", "name": "memory", "targetAverageUtilization": 5}),
        "without a request in resources.memory",
    ),
    ("V-I34", {**scaled(), "replicas": 0}, "replicas 0 stops the service"),
    ("V-I34", {**scaled(), "replicas": 7}, "replicas 7 is outside minReplicas and maxReplicas"),
    ("V-I35", {"skipModelInit": True}, "leaves llamacpp without a model"),
    ("V-I36", {"runtime": "tgi", "skipModelInit": True}, "no effect with runtime tgi: spec.skipModelInit"),
    ("V-I37", {"cacheTypeK": "f16", "cacheTypeCustomK": "t3"}, "cacheTypeK has no effect beside cacheTypeCustomK"),
    ("V-I37", {"cacheTypeV": "f16", "cacheTypeCustomV": "t3"}, "cacheTypeV has no effect beside cacheTypeCustomV"),
    (
        "V-I37",
        {**VLLM, "vllmConfig": {"kvCacheDtype": "fp8_e5m2", "kvCacheCustomDtype": "t2"}},
        "kvCacheDtype has no effect beside vllmConfig.kvCacheCustomDtype",
    ),
    (
        "V-I38",
        {"ropeScaling": {"type": "linear"}, "extraArgs": ["--rope-scaling=yarn"]},
        "ropeScaling has no effect beside --rope-scaling",
    ),
    ("V-I38", {"parallelSlots": 2, "extraArgs": ["--parallel", "4"]}, "parallelSlots has no effect beside --parallel"),
    (
        "V-I38",
        {**VLLM, "parallelSlots": 2, "extraArgs": ["--max-num-seqs=4"]},
        "parallelSlots has no effect beside --max-num-seqs",
    ),
    ("V-I38", {"parallelSlots": 2, "extraArgs": ["-np", "4"]}, "parallelSlots has no effect beside -np"),
    ("V-I38", {"contextSize": 4096, "extraArgs": ["-c", "8192"]}, "contextSize has no effect beside -c"),
    ("V-I38", {"cacheTypeCustomK": "t3", "extraArgs": ["--cache-type-k=f16"]}, "beside --cache-type-k in extraArgs"),
    (
        "V-I38",
        {"ropeScaling": {"type": "linear", "factor": "2"}, "extraArgs": ["--rope-scale", "3"]},
        "ropeScaling.factor has no effect beside --rope-scale",
    ),
    ("V-I38", {"reasoningBudget": 0, "extraArgs": ["--reasoning-budget", "9"]}, "reasoningBudget has no effect beside"),
    (
        "V-I38",
        {**VLLM, "vllmConfig": {"maxModelLen": 1}, "extraArgs": ["--max-model-len=2"]},
        "vllmConfig.maxModelLen has no effect beside --max-model-len",
    ),
    ("V-I44", {"extraArgs": ["--port", "9000"]}, "write containerPort instead"),
    ("V-I39", {"ropeScaling": {"type": "yarn"}}, "originalContext should be set"),
    ("V-I39", {"ropeScaling": {"type": "linear"}}, "without contextSize"),
    ("V-I40", {"resources": {"gpu": 1}}, "ghcr.io/ggml-org/llama.cpp:server-cuda13"),
    ("V-I41", pod(runAsUser=1000), "podSecurityContext has no fsGroup"),
    ("V-I43", {"moeCPUOffload": True, "moeCPULayers": 4}, "moeCPULayers has no effect beside moeCPUOffload"),
    ("V-I44", {**PERSONAPLEX, "containerPort": 9000}, "listens on 8998"),
    ("V-I44", {**PERSONAPLEX, "endpoint": {}}, "listens on 8998"),
    ("V-I45", {"reasoningBudgetMessage": "stop"}, "no effect without reasoningBudget"),
    ("V-I46", {"noKvOffload": True}, "set resources.hostMemory"),
    ("V-I47", {"resources": {"memory": "1Gi", "hostMemory": "2Gi"}}, "no effect beside resources.hostMemory"),
    ("V-I48", {"priority": "high", "priorityClassName": "own"}, "spec.priority has no effect"),
    ("V-I49", {**VLLM, "vllmConfig": {"speculative": {"enabled": True}}}, "enabled has no effect without model"),
    ("V-I50", {**VLLM, "vllmConfig": {"speculative": {"model": "d"}}}, "no effect unless enabled is true"),
    ("V-I50", {**VLLM, "vllmConfig": {"speculative": {"numSpeculativeTokens": 9}}}, "no effect unless enabled is true"),
    (
        "V-I52",
        {"runtime": "tgi", "tgiConfig": {"maxInputLength": 10, "maxTotalTokens": 10}},
        "maxInputLength must be below maxTotalTokens",
    ),
    ("V-I53", {"batchSize": 128, "uBatchSize": 256}, "uBatchSize is above batchSize"),
    ("V-I55", {"podLabels": {"app": "x"}}, "spec.podLabels[app] has no effect"),
    ("V-I61", {"env": [{"name": "A"}, {"name": "A"}]}, "spec.env[1]: A is set twice"),
    (
        "V-I61",
        {**VLLM, "vllmConfig": {"hfTokenSecretRef": {"name": "s", "key": "k"}}, "env": [{"name": "HF_TOKEN"}]},
        "HF_TOKEN replaces the value",
    ),
    ("V-I61", {**PERSONAPLEX, "env": [{"name": "NO_TORCH_COMPILE"}]}, "NO_TORCH_COMPILE replaces the value"),
    ("V-I63", {"evictionProtection": True}, "unless the Model's accelerator is metal"),
    (
        "V-K07",
        env(valueFrom={"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}),
        "the pod has no volume that provides this file",
    ),
    ("V-K14", probes(httpGet={"port": "web"}), "the container's port is called http, not web"),
    ("V-K27", {"imagePullSecrets": [{"name": "a"}, {"name": "a"}]}, "spec.imagePullSecrets[1]: a stands there twice"),
    ("V-K24", {**pod(runAsNonRoot=True), **container(runAsUser=0)}, "runAsUser 0 contradicts runAsNonRoot"),
    ("V-K25", pod(windowsOptions={"hostProcess": True}), "needs the node's network"),
]


@pytest.mark.parametrize(("rule", "spec", "words"), [*SCHEMA, *CROSS, *EMBEDDED])
def test_a_mistake_is_refused(rule: str, spec: dict[str, Any], words: str) -> None:
    """One mistake makes one error, which names its field."""
    found = errors(service(**spec))
    assert len(found) == 1, (rule, found)
    assert words in found[0]


@pytest.mark.parametrize(("rule", "spec", "words"), WARNED)
def test_what_does_nothing_is_said(rule: str, spec: dict[str, Any], words: str) -> None:
    """A warning, and never a refusal: manifests are shared between runtimes."""
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
        {"extraArgs": ["--host", "::", "--mlock"], "contextSize": 4096},
        {"runtime": "vllm", "vllmConfig": {"speculative": {"enabled": False, "numSpeculativeTokens": 4}}},
        {"podLabels": {"team": "a"}},
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
    """V-I25, V-I42, V-I60 and V-I62 are no mistakes, and nothing is said of them."""
    assert errors(service(**spec)) == []
    assert [text for text in warned(service(**spec)) if not text.startswith("unknown field")] == []


@pytest.mark.parametrize(
    ("name", "passes"),
    [("s", True), ("qwen2.5-7b", True), ("s" * 63, True), ("s" * 64, False), ("7b-chat", False), ("2.5", False)],
)
def test_a_service_can_be_named_after_it(name: str, passes: bool) -> None:
    """V-I57: a Service takes the name, and must begin with a letter."""
    found = errors(service(name=name))
    assert (found == []) is passes
    assert all(text.startswith("metadata.name: ") for text in found)


def test_every_mistake_of_a_layer_is_named_at_once() -> None:
    found = errors(
        service(
            runtime="generic",
            endpoint={"path": "x"},
            env=[{"name": "A=B"}],
            autoscaling={"minReplicas": 4, "maxReplicas": 2},
        )
    )
    assert [text.partition(": ")[0] for text in found] == [
        "spec.image",
        "spec.endpoint.path",
        "spec.autoscaling.maxReplicas",
        "spec.env[0].name",
    ]


def test_every_mistake_of_a_metric_is_named_at_once() -> None:
    found = errors(service(**scaled({"type": "Pods", "name": "", "targetAverageValue": "0"})))
    assert [text.partition(": ")[0] for text in found] == [
        "spec.autoscaling.metrics[0].name",
        "spec.autoscaling.metrics[0].targetAverageValue",
    ]


def test_a_misspelt_field_is_named_with_the_right_one() -> None:
    assert warned(service(replica=2)) == ['unknown field "spec.replica", did you mean "replicas"?']


def test_the_documented_example_passes_with_its_three_warnings() -> None:
    """Spec A.3: fields for metal on a GPU service, and no image for the GPU, are said and not refused."""
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
    assert [text.split()[0] for text in (*warned(weights), *warned(chat))] == [
        "spec.hardware.memoryBudget",
        "spec.image",
        "spec.evictionProtection",
    ]
