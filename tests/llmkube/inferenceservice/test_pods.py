"""A service's children: the user's values, the defaults, and fields that are passed through."""

from __future__ import annotations

import pytest

from app.kube.base import Json
from app.settings import Settings
from tests.llmkube.inferenceservice.world import (
    POD_MONITOR,
    applied,
    child,
    condition,
    container,
    kinds,
    model,
    pod_spec,
    service,
    sync,
)


def test_minimal_service() -> None:
    """A service with only a Model gets upstream's Deployment and Service (LK-3.3, LK-4.1)."""
    answer = sync(service(), model())
    assert kinds(answer) == ["Deployment", "Service"]
    deployment = child(answer, "Deployment")
    labels = {
        "app": "s",
        "inference.llmkube.dev/model": "m",
        "inference.llmkube.dev/runtime": "llamacpp",
        "inference.llmkube.dev/service": "s",
    }
    selector = {"app": "s", "inference.llmkube.dev/service": "s"}
    assert deployment["metadata"]["labels"] == labels
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["selector"] == {"matchLabels": selector}
    assert deployment["spec"]["template"]["metadata"] == {"labels": labels}
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "25%"}
    pod = pod_spec(answer)
    assert pod["priorityClassName"] == "llmkube-normal"
    assert pod["securityContext"] == {"fsGroup": 102, "seccompProfile": {"type": "RuntimeDefault"}}
    assert "resources" not in container(answer)
    assert "tolerations" not in pod
    svc = child(answer, "Service")
    assert svc["metadata"]["labels"] == svc["spec"]["selector"] == selector
    assert svc["spec"]["type"] == "ClusterIP"
    assert svc["spec"]["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP", "targetPort": "http"}]


def test_download_in_the_pod() -> None:
    """The cache is mounted read-only, and an init container downloads the file if it is missing (LK-3.6)."""
    pod = pod_spec(sync(service(podSecurityContext={"runAsUser": 2000, "runAsGroup": 3000}), model()))
    (init,) = pod["initContainers"]
    assert [variable["name"] for variable in init["env"]] == ["MODEL_SOURCE", "CACHE_DIR", "MODEL_PATH"]
    assert init["securityContext"]["runAsUser"] == 2000
    assert init["securityContext"]["runAsGroup"] == 3000
    assert init["volumeMounts"] == [{"name": "model-cache", "mountPath": "/models"}]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "model-cache", "mountPath": "/models", "readOnly": True}]
    assert pod["volumes"] == [{"name": "model-cache", "persistentVolumeClaim": {"claimName": "m-cache"}}]
    assert pod["securityContext"] == {"runAsUser": 2000, "runAsGroup": 3000}


@pytest.mark.parametrize(
    ("context", "values", "user"),
    [
        ({"runAsNonRoot": True}, {}, 100),
        ({"runAsNonRoot": True, "runAsUser": 1000}, {}, 1000),
        ({"runAsNonRoot": False}, {}, None),
        ({"runAsNonRoot": True}, {"llmkube_default_fsgroup": 0}, None),  # OpenShift assigns one
        ({"runAsNonRoot": True}, {"llmkube_init_container_image": "registry.example.com/get:1"}, None),
    ],
)
def test_a_kubelet_can_verify_the_user_of_the_downloader(context: Json, values: Json, user: int | None) -> None:
    """The image of curl names its user, which a kubelet does not start where root is forbidden."""
    pod = pod_spec(sync(service(podSecurityContext=context), model(), settings=Settings(**values)))
    assert pod["initContainers"][0]["securityContext"].get("runAsUser") == user


def test_the_models_own_directory_is_used() -> None:
    """The path comes from the Model's status, so that its Job and the pods use the same file."""
    answer = sync(service(), model(status={"cacheKey": "0123456789abcdef"}))
    assert container(answer)["args"][1] == "/models/0123456789abcdef/m.gguf"
    environment = pod_spec(answer)["initContainers"][0]["env"]
    assert environment[1] == {"name": "CACHE_DIR", "value": "/models/0123456789abcdef"}


def test_a_model_may_have_another_claim() -> None:
    """The claim comes from the Model's status, because an earlier Model's claim may have the default name."""
    pod = pod_spec(sync(service(), model(status={"cacheClaim": "m-cache-01234567"})))
    assert pod["volumes"][0]["persistentVolumeClaim"] == {"claimName": "m-cache-01234567"}


def test_operators_claim() -> None:
    """The operator's claim is used only in namespaces that have it (D.4)."""
    settings = Settings(llmkube_model_cache_claim="llmkube-model-cache")
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "llmkube-model-cache", "namespace": "ns1"},
    }
    there = pod_spec(sync(service(), model(), claim, settings=settings))
    assert there["volumes"][0]["persistentVolumeClaim"] == {"claimName": "llmkube-model-cache"}
    absent = pod_spec(sync(service(), model(), settings=settings))
    assert absent["volumes"][0]["persistentVolumeClaim"] == {"claimName": "m-cache"}


def test_file_of_the_node() -> None:
    """P: only the init container mounts the node's file, and copies it to the cache."""
    settings = Settings(llmkube_ca_cert_configmap="corp-ca")
    pod = pod_spec(sync(service(), model(source="file:///mnt/m/x.gguf"), settings=settings))
    assert [volume["name"] for volume in pod["volumes"]] == ["model-cache", "host-model", "custom-ca-cert"]
    assert pod["volumes"][1]["hostPath"] == {"path": "/mnt/m/x.gguf", "type": "File"}
    assert [mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]] == ["/models"]


NO_VOLUME: dict[str, tuple[Json, Json]] = {
    "the user sees to the model": ({}, {"skipModelInit": True}),
    "a repository": ({"source": "org/repo"}, {}),
    "tgi": ({}, {"runtime": "tgi"}),
    "personaplex": ({}, {"runtime": "personaplex", "image": "p"}),
    "generic": ({}, {"runtime": "generic", "image": "g"}),
}


@pytest.mark.parametrize(("spec", "isvc"), NO_VOLUME.values(), ids=NO_VOLUME.keys())
def test_nothing_is_mounted(spec: Json, isvc: Json) -> None:
    """Volumes, mounts and init containers are absent if the server does not read the model from a volume."""
    pod = pod_spec(sync(service(**isvc), model(**spec)))
    assert "volumes" not in pod
    assert "initContainers" not in pod
    assert "volumeMounts" not in pod["containers"][0]


VENDORS: dict[str, tuple[Json, str]] = {
    "nothing said": ({"gpu": {"count": 1}}, "nvidia.com/gpu"),
    "cuda": ({"accelerator": "cuda", "gpu": {"count": 1}}, "nvidia.com/gpu"),
    "rocm": ({"accelerator": "rocm", "gpu": {"count": 1, "vendor": "nvidia"}}, "amd.com/gpu"),
    "vendor amd": ({"accelerator": "cuda", "gpu": {"count": 1, "vendor": "amd"}}, "amd.com/gpu"),
    "intel": ({"accelerator": "intel", "gpu": {"count": 1, "vendor": "nvidia"}}, "gpu.intel.com/i915"),
    "vendor intel": ({"accelerator": "cpu", "gpu": {"count": 1, "vendor": "intel"}}, "gpu.intel.com/i915"),
}


@pytest.mark.parametrize(("hardware", "resource"), VENDORS.values(), ids=VENDORS.keys())
def test_gpu_resource(hardware: Json, resource: str) -> None:
    """Accelerator and vendor determine resource, toleration and strategy (LK-3.3, LK-T-04, LK-T-07)."""
    toleration = {"key": "team", "operator": "Exists"}
    answer = sync(service(tolerations=[toleration], nodeSelector={"a": "b"}), model(hardware=hardware))
    pod = pod_spec(answer)
    assert pod["containers"][0]["resources"] == {"limits": {resource: "1"}}
    of_the_gpu = {"key": resource, "operator": "Equal", "value": "present", "effect": "NoSchedule"}
    assert pod["tolerations"] == [of_the_gpu, toleration]
    assert pod["nodeSelector"] == {"a": "b"}
    assert child(answer, "Deployment")["spec"]["strategy"] == {"type": "Recreate"}


def test_intel_resource_is_the_operators() -> None:
    """Intel's device plugins have several resource names, so a setting selects one."""
    settings = Settings(llmkube_intel_gpu_resource="gpu.intel.com/xe")
    hardware = {"accelerator": "intel", "gpu": {"count": 2}}
    answer = sync(service(), model(hardware=hardware), settings=settings)
    assert container(answer)["resources"] == {"limits": {"gpu.intel.com/xe": "2"}}


def test_placement_without_a_gpu() -> None:
    """Tolerations and node selector also apply without a GPU (LK-T-03)."""
    pod = pod_spec(sync(service(tolerations=[{"operator": "Exists"}], nodeSelector={"a": "b"}), model()))
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["nodeSelector"] == {"a": "b"}


REQUESTS: dict[str, tuple[Json, Json, Json]] = {
    "host memory wins": ({}, {"memory": "4Gi", "hostMemory": "64Gi"}, {"memory": "64Gi"}),
    "canonical text": ({}, {"cpu": "2000m", "memory": "2048Mi"}, {"cpu": "2", "memory": "2Gi"}),
    "the Model's": ({"cpu": "3", "memory": "5Gi"}, {}, {"cpu": "3", "memory": "5Gi"}),
    "the Model's that is no quantity": ({"cpu": "many", "memory": "5Gi"}, {}, {"memory": "5Gi"}),
    "each by itself": ({"cpu": "3", "memory": "5Gi"}, {"memory": "6Gi"}, {"cpu": "3", "memory": "6Gi"}),
}


@pytest.mark.parametrize(("fallback", "resources", "expected"), REQUESTS.values(), ids=REQUESTS.keys())
def test_requests_are_the_services_or_else_the_models(fallback: Json, resources: Json, expected: Json) -> None:
    """Requests come from the service, or else the Model (LK-B-03), in stored form; no limits are set."""
    answer = sync(service(resources=resources), model(resources=fallback))
    assert container(answer)["resources"] == {"requests": expected}


def test_environment_has_each_name_once() -> None:
    """The user's variable replaces the runtime's, the last duplicate wins, and empty values are omitted."""
    token = {"hfTokenSecretRef": {"name": "hf", "key": "token"}}
    env = [{"name": "A", "value": "1"}, {"name": "HF_TOKEN", "value": "x"}, {"name": "A", "value": ""}]
    assert container(sync(service(runtime="vllm", vllmConfig=token), model()))["env"] == [
        {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}
    ]
    answer = sync(service(runtime="vllm", vllmConfig=token, env=env), model())
    assert container(answer)["env"] == [{"name": "HF_TOKEN", "value": "x"}, {"name": "A"}]
    assert pod_spec(answer)["enableServiceLinks"] is False


def test_embedded_values_pass_through() -> None:
    """Unknown fields of Kubernetes types are passed through."""
    probe = {"httpGet": {"path": "/ok", "port": "http", "newField": "x"}, "alsoNew": 3}
    answer = sync(
        service(
            env=[{"name": "A", "valueFrom": {"newSource": {"key": "k"}}}],
            tolerations=[{"key": "a", "operator": "Exists", "newField": True}],
            probeOverrides={"liveness": probe},
            securityContext={"newField": {"deep": [1, 2]}},
            podSecurityContext={"newField": "y"},
            imagePullSecrets=[{"name": "one", "newField": "z"}],
        ),
        model(),
    )
    pod, server = pod_spec(answer), container(answer)
    assert server["env"] == [{"name": "A", "valueFrom": {"newSource": {"key": "k"}}}]
    assert server["livenessProbe"] == probe
    assert server["readinessProbe"]["httpGet"] == {"path": "/health", "port": 8080}
    assert server["securityContext"] == {"newField": {"deep": [1, 2]}}
    assert pod["tolerations"] == [{"key": "a", "operator": "Exists", "newField": True}]
    assert pod["securityContext"] == {"newField": "y"}
    assert pod["imagePullSecrets"] == [{"name": "one", "newField": "z"}]


def test_empty_security_contexts_replace_the_defaults() -> None:
    """The user's security context replaces the default as a whole, even if it is empty (LK-3.7)."""
    answer = sync(service(securityContext={}, podSecurityContext={}), model())
    assert pod_spec(answer)["securityContext"] == {}
    assert container(answer)["securityContext"] == {}


@pytest.mark.parametrize("part", ["capabilities", "seLinuxOptions", "windowsOptions"])
def test_parts_that_the_api_server_keeps_empty_stay(part: str) -> None:
    """These fields are pointers in Kubernetes' types: an empty object is sent, as the Go operator does."""
    answer = sync(service(securityContext={part: {}}), model())
    assert container(answer)["securityContext"] == {part: {}}


def test_a_pull_secret_is_sent_once() -> None:
    """A duplicate Secret is accepted, and sent once, because Metacontroller would merge the two."""
    answer = sync(service(imagePullSecrets=[{"name": "a"}, {"name": "b"}, {"name": "a"}]), model())
    assert pod_spec(answer)["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]


def test_omits_empty_strings() -> None:
    """The API server does not store empty strings, so they would look like a change at every sync."""
    options = {"type": "spc_t", "role": ""}
    answer = sync(
        service(securityContext={"seLinuxOptions": options}, podSecurityContext={"seLinuxOptions": options}), model()
    )
    assert pod_spec(answer)["securityContext"] == {"seLinuxOptions": {"type": "spc_t"}}
    assert container(answer)["securityContext"] == {"seLinuxOptions": {"type": "spc_t"}}


def test_operators_labels_win() -> None:
    """``podLabels`` cannot change the labels of the selector, and are not part of it."""
    answer = sync(service(podLabels={"app": "x", "team": "a"}, podAnnotations={"k": "v"}), model())
    template = child(answer, "Deployment")["spec"]["template"]["metadata"]
    assert template["labels"]["app"] == "s"
    assert template["labels"]["team"] == "a"
    assert template["annotations"] == {"k": "v"}
    assert "team" not in child(answer, "Deployment")["spec"]["selector"]["matchLabels"]


def test_dots_in_the_name() -> None:
    """Dots in a Service's name become dashes; labels and Deployment keep the name."""
    answer = sync(service("qwen2.5-7b"), model())
    assert child(answer, "Service")["metadata"]["name"] == "qwen2-5-7b"
    assert child(answer, "Service")["spec"]["selector"]["app"] == "qwen2.5-7b"
    assert child(answer, "Deployment")["metadata"]["name"] == "qwen2.5-7b"


PROBED = {"llamacpp": 8080, "vllm": 8000, "tgi": 80, "personaplex": 8998, "generic": 8080}


@pytest.mark.parametrize(("runtime", "port"), PROBED.items())
def test_probes_ask_the_containers_port(runtime: str, port: int) -> None:
    """Probes use HTTP if the server has a health endpoint, or else TCP, on the container's port (LK-3.8)."""
    server = container(sync(service(runtime=runtime, image="i", replicas=2), model()))
    connects: Json = {"tcpSocket": {"port": port}}
    asks: Json = {"httpGet": {"path": "/health", "port": port}}
    asks = connects if runtime in ("personaplex", "generic") else asks
    assert server["ports"] == [{"name": "http", "containerPort": port, "protocol": "TCP"}]
    assert server["startupProbe"] == {**asks, "periodSeconds": 2, "timeoutSeconds": 2, "failureThreshold": 900}
    assert server["livenessProbe"] == {**asks, "periodSeconds": 15, "timeoutSeconds": 5, "failureThreshold": 3}
    assert server["readinessProbe"] == {**asks, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 3}


METRICS = {
    "llamacpp": "llamacpp:requests_processing",
    "vllm": "vllm:num_requests_running",
    "tgi": "tgi_queue_size",
}


@pytest.mark.parametrize(("runtime", "metric"), METRICS.items())
def test_without_metrics_the_autoscaler_follows_the_queue(runtime: str, metric: str) -> None:
    """Without metrics in the spec, the autoscaler uses the runtime's queue (LK-4.2)."""
    answer = sync(service(runtime=runtime, image="i", autoscaling={"maxReplicas": 3}), model())
    spec = child(answer, "HorizontalPodAutoscaler")["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 3)
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "s"}
    (entry,) = spec["metrics"]
    assert entry["pods"] == {"metric": {"name": metric}, "target": {"type": "AverageValue", "averageValue": "2"}}


@pytest.mark.parametrize("runtime", ["personaplex", "generic", "llamacpp-router"])
def test_no_autoscaler_without_a_metric(runtime: str) -> None:
    """Without a default metric no autoscaler is created, and ScalingActive asks for a metric."""
    parent = service(runtime=runtime, image="i", autoscaling={"maxReplicas": 3})
    answer = sync(parent, model())
    assert kinds(answer) == ["Deployment", "Service"]
    missing = condition(answer, "ScalingActive")
    assert (missing["status"], missing["reason"]) == ("False", "MetricRequired")
    assert missing["message"].startswith(f"spec.autoscaling.metrics: runtime {runtime} has no default metric")
    cpu = {"type": "Resource", "name": "cpu", "targetAverageUtilization": 80}
    named = {**parent, "spec": {**parent["spec"], "autoscaling": {"maxReplicas": 3, "metrics": [cpu]}}}
    after = sync({**named, "status": answer["status"]}, model())
    assert kinds(after) == ["Deployment", "Service", "HorizontalPodAutoscaler"]
    assert condition(after, "ScalingActive") == {}


def test_an_autoscaler_of_an_earlier_release_stays() -> None:
    """An existing autoscaler keeps its metric, which the image of runtime generic may export."""
    parent = service(runtime="generic", image="i", autoscaling={"maxReplicas": 3})
    llamacpp = service(image="i", autoscaling={"maxReplicas": 3})
    answer = sync(parent, model(), children=applied(sync(llamacpp, model())))
    (metric,) = child(answer, "HorizontalPodAutoscaler")["spec"]["metrics"]
    assert metric["pods"]["metric"] == {"name": "llamacpp:requests_processing"}
    assert condition(answer, "ScalingActive")["status"] == "False"


def test_metrics_of_both_types_reach_the_autoscaler() -> None:
    """Metrics of both types are converted to the autoscaling API."""
    metrics = [
        {"type": "Pods", "name": "queue", "targetAverageValue": "1000m", "targetAverageUtilization": 5},
        {"type": "Resource", "name": "cpu", "targetAverageUtilization": 80},
    ]
    answer = sync(service(autoscaling={"maxReplicas": 3, "minReplicas": 2, "metrics": metrics}), model())
    assert child(answer, "HorizontalPodAutoscaler")["spec"]["metrics"] == [
        {
            "type": "Pods",
            "pods": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "1"}},
        },
        {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
        },
    ]


def test_pod_monitor_only_where_it_is_declared() -> None:
    """A PodMonitor is created for runtimes with metrics, if the kind is installed (LK-4.3)."""
    assert "PodMonitor" not in kinds(sync(service(), model()))
    answer = sync(service(), model(), declared=(POD_MONITOR,))
    spec = child(answer, "PodMonitor")["spec"]
    assert spec["selector"] == {"matchLabels": {"app": "s", "inference.llmkube.dev/service": "s"}}
    (endpoint,) = spec["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["path"], endpoint["interval"]) == ("http", "/metrics", "30s")
    assert {rule["targetLabel"]: rule["sourceLabels"] for rule in endpoint["relabelings"]} == {
        "service": ["__meta_kubernetes_pod_label_inference_llmkube_dev_service"],
        "namespace": ["__meta_kubernetes_namespace"],
        "model": ["__meta_kubernetes_pod_label_inference_llmkube_dev_model"],
        "runtime": ["__meta_kubernetes_pod_label_inference_llmkube_dev_runtime"],
    }
    assert spec["podTargetLabels"] == [f"inference.llmkube.dev/{name}" for name in ("service", "model", "runtime")]
    generic = sync(service(runtime="generic", image="i"), model(), declared=(POD_MONITOR,))
    assert "PodMonitor" not in kinds(generic)


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        ({"extraArgs": ["--api-prefix", "/x"]}, ("/x/metrics", None)),
        ({"extraArgs": ["--api-prefix=/x/"]}, ("/x/metrics", None)),
        ({"extraArgs": ["--ssl-key-file", "/k", "--ssl-cert-file", "/c"]}, ("/metrics", "https")),
        ({"runtime": "vllm", "extraArgs": ["--ssl-keyfile=/k"]}, ("/metrics", "https")),
    ],
)
def test_metrics_are_asked_where_the_server_has_them(spec: Json, asked: tuple[str, str | None]) -> None:
    answer = sync(service(**spec), model(), declared=(POD_MONITOR,))
    (endpoint,) = child(answer, "PodMonitor")["spec"]["podMetricsEndpoints"]
    assert (endpoint["path"], endpoint.get("scheme")) == asked
    assert ("tlsConfig" in endpoint) == (asked[1] is not None)


def test_what_the_api_server_would_not_store_is_left_out() -> None:
    """Zeros and empty strings that mean a default would look like a change at every sync (MC-3.2)."""
    probe: Json = {
        "httpGet": {"path": "/x", "port": 80, "host": "", "scheme": ""},
        "initialDelaySeconds": 0,
        "periodSeconds": 5,
    }
    divisor: Json = {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1024Ki"}}
    answer = sync(
        service(
            probeOverrides={"startup": probe},
            tolerations=[{"key": "a", "operator": "Exists", "value": ""}],
            env=[{"name": "A", "valueFrom": divisor}],
        ),
        model(),
    )
    assert container(answer)["startupProbe"] == {"httpGet": {"path": "/x", "port": 80}, "periodSeconds": 5}
    assert pod_spec(answer)["tolerations"] == [{"key": "a", "operator": "Exists"}]
    stored = container(answer)["env"][0]["valueFrom"]["resourceFieldRef"]
    assert stored == {"resource": "limits.memory", "divisor": "1Mi"}


SHARED: Json = {"name": "dshm", "mountPath": "/dev/shm"}
TWO_GPUS: Json = {"source": "org/repo", "format": "safetensors", "hardware": {"gpu": {"count": 2}}}


@pytest.mark.parametrize("runtime", ["vllm", "sglang", "tgi"])
def test_processes_of_several_gpus_share_memory(runtime: str) -> None:
    answer = sync(service(runtime=runtime), model(**TWO_GPUS))
    assert pod_spec(answer)["volumes"] == [{"name": "dshm", "emptyDir": {"medium": "Memory"}}]
    assert container(answer)["volumeMounts"] == [SHARED]


ONE_GPU: Json = {**TWO_GPUS, "hardware": {"gpu": {"count": 1}}}
NO_SHARED_MEMORY: dict[str, tuple[Json, Json]] = {
    "one GPU": (ONE_GPU, {"runtime": "vllm"}),
    "one process": (TWO_GPUS, {"runtime": "llamacpp"}),
    "the user's": (TWO_GPUS, {"runtime": "vllm", "extraVolumeMounts": [{"name": "shm", "mountPath": "/dev/shm/"}]}),
    "devices": (TWO_GPUS, {"runtime": "vllm", "extraVolumeMounts": [{"name": "dev", "mountPath": "/dev"}]}),
    "a volume of that name": (TWO_GPUS, {"runtime": "vllm", "extraVolumes": [{"name": "dshm", "emptyDir": {}}]}),
}


@pytest.mark.parametrize("case", NO_SHARED_MEMORY)
def test_no_shared_memory_is_added(case: str) -> None:
    of_model, spec = NO_SHARED_MEMORY[case]
    volumes = [{"name": mount["name"], "emptyDir": {}} for mount in spec.get("extraVolumeMounts", ())]
    answer = sync(service(**{"extraVolumes": volumes, **spec}), model(**of_model))
    assert not [volume for volume in pod_spec(answer).get("volumes", ()) if "medium" in volume["emptyDir"]]
    assert SHARED not in container(answer).get("volumeMounts", [])


def test_running_pods_get_shared_memory_with_their_next_change() -> None:
    """An earlier release made them without it."""
    earlier = sync(service(runtime="vllm"), model(**TWO_GPUS))
    pod = child(earlier, "Deployment")["spec"]["template"]["spec"]
    del pod["volumes"], pod["containers"][0]["volumeMounts"]
    children = applied(earlier)
    assert "volumes" not in pod_spec(sync(service(runtime="vllm"), model(**TWO_GPUS), children=children))
    changed = service(generation=2, runtime="vllm", extraArgs=["--seed", "1"])
    assert container(sync(changed, model(**TWO_GPUS), children=children))["volumeMounts"] == [SHARED]
