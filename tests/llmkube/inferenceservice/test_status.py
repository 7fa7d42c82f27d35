"""The status: the table of LK-5.10, conditions by phase, the queue, and causes of not being ready."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.kube.base import Json
from app.kube.conditions import rfc3339
from app.settings import Settings
from tests.llmkube.inferenceservice.world import (
    API_VERSION,
    NOW,
    POD_LABELS,
    applied,
    child,
    condition,
    model,
    service,
    sync,
)

METAL: Json = {"accelerator": "metal"}
PENDING: Json = {"phase": "Pending"}


def deployed(parent: Json, *related: Json, ready: int, exist: int | None = None, **more: Any) -> tuple[Json, ...]:
    """Return the children of a service with this number of ready pods of the current template."""
    pods = ready if exist is None else exist
    counts = {"replicas": pods, "updatedReplicas": pods, "readyReplicas": ready, "availableReplicas": ready}
    status = {**counts, "observedGeneration": 1, **more}
    return applied(sync(parent, *(related or (model(),))), Deployment=status)


def pod(name: str, message: str, reason: str = "Unschedulable") -> Json:
    """Return a pod that the scheduler could not place."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns1", "labels": POD_LABELS},
        "status": {
            **PENDING,
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}],
        },
    }


def endpoint_slice(name: str, heartbeat: str | None, *endpoints: Json) -> Json:
    """Return an EndpointSlice as a metal agent writes it."""
    annotations = {} if heartbeat is None else {"llmkube.ai/agent-heartbeat": heartbeat}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": "ns1", "annotations": annotations},
        "endpoints": list(endpoints),
    }


def ago(seconds: int) -> str:
    return rfc3339(NOW - timedelta(seconds=seconds))


HOST: Json = {"addresses": ["10.0.0.9"], "conditions": {"ready": True}}
GPU_MESSAGE = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."

# ready, desired, pods -> phase, schedulingStatus
IN_CLUSTER: dict[str, tuple[int, int, tuple[Json, ...], str, str]] = {
    "all ready": (1, 1, (), "Ready", ""),
    "one of two": (1, 2, (), "Progressing", ""),
    "one too many": (2, 1, (), "Progressing", ""),
    "going to zero": (1, 0, (), "Progressing", ""),
    "at zero": (0, 0, (), "Stopped", ""),
    "no pods yet": (0, 1, (), "Creating", ""),
    "no GPU": (0, 1, (pod("a", GPU_MESSAGE),), "WaitingForGPU", "InsufficientGPU"),
    "no AMD GPU": (0, 1, (pod("a", "1 Insufficient amd.com/gpu."),), "WaitingForGPU", "InsufficientGPU"),
    "no CPU": (0, 1, (pod("a", "0/3 nodes: 3 Insufficient cpu."),), "Creating", "InsufficientResources"),
    "a gate": (0, 1, (pod("a", "held", "SchedulingGated"),), "Creating", "SchedulingGated"),
    "the first pod by name counts": (
        0,
        1,
        (pod("b", GPU_MESSAGE), pod("a", "3 Insufficient cpu.")),
        "Creating",
        "InsufficientResources",
    ),
}


@pytest.mark.parametrize(("ready", "desired", "pods", "phase", "scheduling"), IN_CLUSTER.values(), ids=IN_CLUSTER)
def test_phase_in_the_cluster(ready: int, desired: int, pods: tuple[Json, ...], phase: str, scheduling: str) -> None:
    """The phase follows ready and desired pods, then the scheduler's message (LK-5.3, LK-5.4, LK-5.10)."""
    parent = service(replicas=desired)
    answer = sync(parent, model(), *pods, children=deployed(parent, ready=ready))
    status = answer["status"]
    assert (status["phase"], status.get("schedulingStatus", "")) == (phase, scheduling)
    assert (status.get("readyReplicas", 0), status.get("desiredReplicas", 0)) == (ready, desired)
    assert status["endpoint"] == "http://s.ns1.svc.cluster.local:8080/v1/chat/completions"
    assert status["modelReady"] is True
    assert (condition(answer, "Ready").get("status") == "True") == (phase == "Ready")


ON_METAL: dict[str, tuple[int, tuple[Json, ...], str, str, int | None]] = {
    "no slice": (1, (), "Creating", "WaitingForMetalAgent", None),
    "heard of long ago": (1, (endpoint_slice("a", ago(600), HOST),), "Creating", "AgentHeartbeatStale", 90),
    "heard of just now": (1, (endpoint_slice("a", ago(20), HOST),), "Ready", "", 90),
    "at the limit": (1, (endpoint_slice("a", ago(180), HOST),), "Ready", "", 90),
    "an older agent": (1, (endpoint_slice("a", None, HOST),), "Ready", "", None),
    "no time": (1, (endpoint_slice("a", "yesterday", HOST),), "Creating", "AgentHeartbeatStale", None),
    "the freshest counts": (
        2,
        (endpoint_slice("a", ago(600), HOST), endpoint_slice("b", ago(10), HOST)),
        "Ready",
        "",
        90,
    ),
    "not answering": (
        1,
        (endpoint_slice("a", ago(20), {"addresses": ["10.0.0.9"], "conditions": {"ready": False}}),),
        "Creating",
        "WaitingForMetalAgent",
        90,
    ),
    "silent about it": (1, (endpoint_slice("a", ago(20), {"addresses": ["10.0.0.9"]}),), "Ready", "", 90),
    "one process for two": (2, (endpoint_slice("a", ago(20), HOST),), "Progressing", "", 90),
    "stopped": (0, (), "Stopped", "", None),
}


@pytest.mark.parametrize(("desired", "slices", "phase", "scheduling", "resync"), ON_METAL.values(), ids=ON_METAL)
def test_phase_on_metal(
    desired: int, slices: tuple[Json, ...], phase: str, scheduling: str, resync: int | None
) -> None:
    """Replicas are the agent's addresses while its heartbeat is recent (LK-5.5, LK-5.10); no child is created."""
    answer = sync(service(replicas=desired), model(hardware=METAL), *slices)
    assert answer["children"] == []
    assert (answer["status"]["phase"], answer["status"].get("schedulingStatus", "")) == (phase, scheduling)
    assert answer.get("resyncAfterSeconds") == resync
    assert (condition(answer, "Ready").get("status") == "True") == (phase == "Ready")


def test_what_the_agent_wrote_is_kept() -> None:
    """The agent's memory verdict is kept until the service is ready; foreign conditions are always kept (LK-T-02)."""
    pressure = {
        "type": "MemoryPressure",
        "status": "True",
        "reason": "Critical",
        "message": "m",
        "lastTransitionTime": ago(9),
    }
    written = {
        "schedulingStatus": "InsufficientMemory",
        "schedulingMessage": "needs 60 GiB, has 48 GiB",
        "conditions": [pressure],
    }
    answer = sync(service(status=written), model(hardware=METAL))
    assert answer["status"]["schedulingStatus"] == "InsufficientMemory"
    assert answer["status"]["schedulingMessage"] == "needs 60 GiB, has 48 GiB"
    assert "needs 60 GiB" in condition(answer, "Ready")["message"]
    assert condition(answer, "MemoryPressure") == pressure
    ready = sync(service(status=written), model(hardware=METAL), endpoint_slice("a", ago(20), HOST))
    assert "schedulingStatus" not in ready["status"]
    assert condition(ready, "MemoryPressure") == pressure


def test_own_scheduling_words_go_when_their_cause_is_gone() -> None:
    """Scheduling fields that this hook set are removed once the pods are ready."""
    old = {"schedulingStatus": "InsufficientGPU", "schedulingMessage": "x", "waitingFor": "nvidia.com/gpu: 1"}
    answer = sync(service(status=old), model(), children=deployed(service(), ready=1))
    assert not {"schedulingStatus", "schedulingMessage", "waitingFor"} & set(answer["status"])


def test_a_pod_without_a_node_says_what_it_waits_for() -> None:
    """waitingFor has the missing resource and the amount that a pod requests (LK-5.4)."""
    hardware = {"accelerator": "cuda", "gpu": {"count": 4}}
    parent = service()
    children = deployed(parent, model(hardware=hardware), ready=0)
    answer = sync(parent, model(hardware=hardware), pod("a", GPU_MESSAGE), children=children)
    assert answer["status"]["waitingFor"] == "nvidia.com/gpu: 4"
    assert condition(answer, "GPUAvailable")["reason"] == "InsufficientGPU"
    assert condition(answer, "Progressing")["reason"] == "WaitingForGPU"


def neighbour(name: str, namespace: str, created: str, phase: str = "WaitingForGPU") -> Json:
    return {
        "apiVersion": API_VERSION,
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": created},
        "status": {"phase": phase},
    }


QUEUES: dict[str, tuple[tuple[Json, ...], int]] = {
    "alone": ((neighbour("s", "ns1", "2030-01-01T00:00:00Z", "Creating"),), 1),
    "older ones first": ((neighbour("a", "x", "2029-01-01T00:00:00Z"), neighbour("b", "x", "2031-01-01T00:00:00Z")), 2),
    "only those that wait": ((neighbour("a", "x", "2029-01-01T00:00:00Z", "Ready"),), 1),
    "of one age by namespace": ((neighbour("z", "a", "2030-01-01T00:00:00Z"),), 2),
    "of one age and namespace by name": ((neighbour("a", "ns1", "2030-01-01T00:00:00Z"),), 2),
    "itself once": ((neighbour("s", "ns1", "2030-01-01T00:00:00Z"),), 1),
}


@pytest.mark.parametrize(("others", "position"), QUEUES.values(), ids=QUEUES)
def test_the_queue_is_ordered_by_age_over_all_namespaces(others: tuple[Json, ...], position: int) -> None:
    """The queue is ordered by age over all namespaces and includes the service itself (LK-5.9, LK-T-33)."""
    parent = service(resources={"gpu": 1})
    parent["metadata"]["creationTimestamp"] = "2030-01-01T00:00:00Z"
    children = deployed(parent, ready=0)
    answer = sync(parent, model(), pod("a", GPU_MESSAGE), *others, children=children)
    assert answer["status"]["queuePosition"] == position


def test_no_position_where_others_are_not_asked_for() -> None:
    """The Model alone says how many GPUs there are: customize does not ask for other services, which may be first."""
    hardware = {"accelerator": "cuda", "gpu": {"count": 1}}
    children = deployed(service(), model(hardware=hardware), ready=0)
    answer = sync(service(), model(hardware=hardware), pod("a", GPU_MESSAGE), children=children)
    assert answer["status"]["phase"] == "WaitingForGPU"
    assert "queuePosition" not in answer["status"]
    assert condition(answer, "Progressing")["message"] == "waiting for a node"


def test_no_position_outside_the_queue() -> None:
    """Only a service that waits for a GPU has a position."""
    answer = sync(
        service(), model(), neighbour("a", "x", "2029-01-01T00:00:00Z"), children=deployed(service(), ready=1)
    )
    assert "queuePosition" not in answer["status"]


STALE: list[Json] = [
    {"type": type_, "status": status, "reason": "Old", "message": "old", "lastTransitionTime": ago(1000)}
    for type_, status in (
        ("Available", "True"),
        ("Progressing", "True"),
        ("Degraded", "True"),
        ("GPUAvailable", "False"),
    )
]

# Phase -> ready, desired, pods, resulting conditions; the conditions before are STALE.
LEFT: dict[str, tuple[int, int, tuple[Json, ...], dict[str, tuple[str, str]]]] = {
    "Ready": (1, 1, (), {"Available": ("True", "InferenceReady")}),
    "Progressing": (1, 2, (), {"Available": ("True", "Old"), "Progressing": ("True", "Creating")}),
    "Creating": (0, 1, (), {"Available": ("False", "NoReadyReplicas"), "Progressing": ("True", "Creating")}),
    "WaitingForGPU": (
        0,
        1,
        (pod("a", GPU_MESSAGE),),
        {
            "Available": ("False", "NoReadyReplicas"),
            "Progressing": ("True", "WaitingForGPU"),
            "GPUAvailable": ("False", "InsufficientGPU"),
        },
    ),
    "Stopped": (0, 0, (), {"Available": ("False", "ManuallyScaledToZero")}),
}


@pytest.mark.parametrize(("phase", "row"), LEFT.items())
def test_conditions_by_phase(phase: str, row: tuple[int, int, tuple[Json, ...], dict[str, tuple[str, str]]]) -> None:
    """Each phase keeps the conditions that apply, and removes the others (LK-5.7)."""
    ready, desired, pods, expected = row
    parent = service(replicas=desired, status={"conditions": STALE})
    answer = sync(parent, model(), *pods, children=deployed(parent, ready=ready))
    assert answer["status"]["phase"] == phase
    conditions = {
        c["type"]: (c["status"], c["reason"])
        for c in answer["status"]["conditions"]
        if c["type"] not in ("Ready", "Stopped")
    }
    assert conditions == {**expected, "Suspended": ("False", "NotSuspended")}


def test_conditions_while_the_model_is_away() -> None:
    """Without the Model, Available is removed; while the Model is not ready, Available follows the pods (LK-5.7)."""
    parent = service(status={"conditions": STALE})
    children = deployed(parent, ready=1)
    missing = sync(parent, children=children)
    assert {c["type"] for c in missing["status"]["conditions"]} == {"Degraded", "Ready", "Suspended"}
    pending = sync(parent, model(phase="Downloading"), children=children)
    assert condition(pending, "Available")["status"] == "True"
    assert condition(pending, "Progressing")["reason"] == "Pending"
    assert not condition(pending, "Degraded")
    dead = sync(parent, model(phase="Downloading"), children=deployed(parent, ready=0))
    assert condition(dead, "Available")["reason"] == "NoReadyReplicas"


def test_transition_times_move_with_the_status_only() -> None:
    """lastTransitionTime changes only with the status, not with the reason."""
    parent = service(replicas=2, status={"conditions": STALE})
    answer = sync(parent, model(), children=deployed(parent, ready=1))
    assert condition(answer, "Progressing")["lastTransitionTime"] == ago(1000)
    ready = sync(service(status={"conditions": STALE}), model(), children=deployed(service(), ready=0))
    assert condition(ready, "Available")["lastTransitionTime"] == rfc3339(NOW)


def test_replicas_are_the_pods_that_exist() -> None:
    """The scale subresource reports existing pods, not desired ones (LK-B-20)."""
    parent = service(replicas=3)
    answer = sync(parent, model(), children=deployed(parent, ready=1, exist=2))
    assert (answer["status"]["replicas"], answer["status"]["desiredReplicas"]) == (2, 3)


def test_the_autoscalers_wish_counts() -> None:
    """With an autoscaler, desired replicas are those of the Deployment (LK-T-17)."""
    parent = service(replicas=1, autoscaling={"maxReplicas": 5})
    (deployment, svc, hpa) = deployed(parent, ready=4)
    deployment["spec"]["replicas"] = 4
    answer = sync(parent, model(), children=(deployment, svc, hpa))
    assert (answer["status"]["phase"], answer["status"]["desiredReplicas"]) == ("Ready", 4)


def without_metric(seconds: int, reason: str = "FailedGetPodsMetric") -> Json:
    """Return the status of an autoscaler that could not read its metric for this many seconds."""
    began = ago(seconds)
    fails = {"type": "ScalingActive", "status": "False", "reason": reason, "message": "no such API"}
    able = {"type": "AbleToScale", "status": "True", "reason": "SucceededGetScale", "lastTransitionTime": began}
    return {"conditions": [able, {**fails, "lastTransitionTime": began}]}


def autoscaled(ready: int, hpa_status: Json) -> Json:
    """Return the answer for a service of one pod with an autoscaler."""
    parent = service(replicas=1, autoscaling={"maxReplicas": 5})
    deployment, svc, hpa = deployed(parent, ready=ready)
    return sync(parent, model(), children=(deployment, svc, {**hpa, "status": hpa_status}))


def test_an_autoscaler_without_its_metric_is_a_cause() -> None:
    """If all pods are ready, Ready has the autoscaler's message and what to install."""
    answer = autoscaled(1, without_metric(120))
    ready = condition(answer, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "FailedGetPodsMetric")
    assert ready["message"] == (
        "HorizontalPodAutoscaler s cannot scale: no such API; the metric needs Prometheus and the kustomize component "
        "prometheus-adapter"
    )
    assert (answer["status"]["phase"], "resyncAfterSeconds" in answer) == ("Ready", False)
    cpu = condition(autoscaled(1, without_metric(120, "FailedGetResourceMetric")), "Ready")
    assert "need metrics-server" in cpu["message"]


def test_an_idle_servers_autoscaler_is_no_cause() -> None:
    """Text Generation Inference has no series before its first request; ScalingActive tells so, and Ready stays.

    A metric that TGI has from the start, or never, is missing for another reason.
    """
    hpa = without_metric(120)
    hpa["conditions"][1]["message"] = "the server could not find the metric tgi_batch_max_total_tokens for pods"
    assert condition(autoscaled(1, hpa), "Ready")["status"] == "False"
    hpa["conditions"][1]["message"] = "the server could not find the metric tgi_queue_size for pods"
    answer = autoscaled(1, hpa)
    assert condition(answer, "Ready")["status"] == "True"
    scaling = condition(answer, "ScalingActive")
    assert (scaling["status"], scaling["reason"]) == ("False", "NoRequestYet")
    assert "no value of tgi_queue_size yet: each server shows it from its first request on" in scaling["message"]


def test_an_autoscaler_has_a_minute() -> None:
    """A missing metric is reported after a minute, because scraping is delayed and Prometheus may restart."""
    answer = autoscaled(1, without_metric(59))
    assert (condition(answer, "Ready")["status"], answer["resyncAfterSeconds"]) == ("True", 65)


def test_an_autoscaler_is_judged_last() -> None:
    """A failing autoscaler is ignored while pods are not ready (they have no metric) or scaling is disabled."""
    assert "HorizontalPodAutoscaler" not in condition(autoscaled(0, without_metric(540)), "Ready")["message"]
    assert condition(autoscaled(1, without_metric(540, "ScalingDisabled")), "Ready")["status"] == "True"


def test_a_status_behind_the_spec_is_not_believed() -> None:
    """Ready pods do not count before the Deployment's controller has observed the spec."""
    (deployment, svc) = deployed(service(), ready=1)
    deployment["metadata"]["generation"] = 2
    answer = sync(service(), model(), children=(deployment, svc))
    assert condition(answer, "Ready")["reason"] == "RollingOut"


PRIORITIES = {"critical": 1000000, "high": 100000, "normal": 10000, "low": 1000, "batch": 100}


@pytest.mark.parametrize(("level", "value"), PRIORITIES.items())
def test_each_priority_has_a_class_and_a_value(level: str, value: int) -> None:
    """Each level has a PriorityClass and a value."""
    answer = sync(service(priority=level), model())
    assert answer["status"]["effectivePriority"] == value
    assert answer["children"][0]["spec"]["template"]["spec"]["priorityClassName"] == f"llmkube-{level}"


def priority_class(name: str, value: int) -> dict[str, Any]:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def test_a_levels_class_of_the_cluster_says_its_value() -> None:
    """The value of the PriorityClass in the cluster wins, because it decides about evictions (LK-B-16)."""
    classes = (priority_class("llmkube-high", 4242), priority_class("llmkube-low", 1))
    assert sync(service(priority="high"), model(), *classes)["status"]["effectivePriority"] == 4242


def test_custom_priority_class() -> None:
    """The value comes from the PriorityClass if it is observed, or else from the level (LK-B-16)."""
    parent = service(priorityClassName="gold")
    assert sync(parent, model(), priority_class("gold", 77))["status"]["effectivePriority"] == 77
    absent = sync(parent, model())
    assert absent["status"]["effectivePriority"] == 10000


def test_the_endpoint_has_the_services_name_port_and_path() -> None:
    """The URL has the Service's name and port, the spec's path and the cluster domain (LK-5.6)."""
    parent = service("qwen2.5-7b", endpoint={"port": 9000, "path": "/v1/completions"})
    answer = sync(parent, model(), settings=Settings(cluster_domain="example.org"))
    assert answer["status"]["endpoint"] == "http://qwen2-5-7b.ns1.svc.example.org:9000/v1/completions"


SPECULATIVE: dict[str, tuple[Json, list[Json], tuple[str, str] | None]] = {
    "without a model": ({"enabled": True}, [], ("False", "SpeculativeMissingModel")),
    "with one": ({"enabled": True, "model": "org/small"}, [], None),
    "with one again": (
        {"enabled": True, "model": "org/small"},
        [{"type": "VLLMSpecValid", "status": "False", "reason": "SpeculativeMissingModel", "message": ""}],
        ("True", "ConfigValid"),
    ),
}


@pytest.mark.parametrize(("config", "before", "expected"), SPECULATIVE.values(), ids=SPECULATIVE)
def test_vllm_spec_valid(config: Json, before: list[Json], expected: tuple[str, str] | None) -> None:
    """VLLMSpecValid is False for speculative decoding without a model, and True only after that (LK-5.7)."""
    parent = service(runtime="vllm", vllmConfig={"speculative": config}, status={"conditions": before})
    valid = condition(sync(parent, model()), "VLLMSpecValid")
    assert (valid.get("status"), valid.get("reason")) == (expected or (None, None))


def test_vllm_spec_valid_goes_with_the_runtime() -> None:
    """The condition is removed if the runtime changes."""
    before = [{"type": "VLLMSpecValid", "status": "True", "reason": "ConfigValid", "message": ""}]
    assert not condition(sync(service(status={"conditions": before}), model()), "VLLMSpecValid")


def test_why_not_ready_is_ordered_and_quoted() -> None:
    """Causes that prevent pods come first, then conflicts in the spec, then the pods' own causes."""
    other = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "other"}, "value": 1}
    parent = service(runtime="vllm", vllmConfig={"tensorParallelSize": 8})
    children = deployed(parent, ready=0)
    answer = sync(parent, model(), other, pod("a", GPU_MESSAGE), children=children)
    ready = condition(answer, "Ready")
    assert ready["reason"] == "PriorityClassNotFound"
    assert ready["message"] == (
        "PriorityClass llmkube-normal does not exist; "
        "vllmConfig.tensorParallelSize is 8, but a pod has 0 nvidia.com/gpu; "
        f"pod a: cannot be scheduled: {GPU_MESSAGE}"
    )


MISFITS: dict[str, tuple[Json, Json, str]] = {
    "TGI without a repository": ({}, {"runtime": "tgi"}, "SourceNotServable"),
    "llama.cpp with safetensors": ({"format": "safetensors"}, {}, "FormatNotServable"),
    "llama.cpp without any model": ({}, {"skipModelInit": True}, "NoModelNamed"),
}


@pytest.mark.parametrize(("spec", "isvc", "reason"), MISFITS.values(), ids=MISFITS)
def test_a_model_that_the_runtime_cannot_load_is_the_first_cause(spec: Json, isvc: Json, reason: str) -> None:
    """A Model that the runtime cannot load is reported before any cause of the pods (LK-V-M16, LK-V-X04)."""
    answer = sync(service(**isvc), model(**spec), children=deployed(service(**isvc), model(**spec), ready=0))
    assert condition(answer, "Ready")["reason"] == reason


def starting(name: str, host: str) -> Json:
    """Return a pod on a node whose containers are being created."""
    waiting = {"name": "llama-server", "state": {"waiting": {"reason": "ContainerCreating"}}}
    status = {**PENDING, "hostIP": host, "containerStatuses": [waiting]}
    metadata = {"name": name, "namespace": "ns1", "labels": POD_LABELS}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}


def test_pods_of_others_are_not_looked_at() -> None:
    """Pods of other services may match the label selector, and are ignored."""
    parent, other = service(), pod("a", GPU_MESSAGE)
    other["metadata"]["labels"] = {"app": "s", "tier": "web"}
    answer = sync(parent, model(), other, children=deployed(parent, ready=0))
    assert answer["status"]["phase"] == "Creating"
    assert condition(answer, "Ready")["message"] == "0 of 1 replicas are ready"


def test_reports_a_metal_service_without_endpoint_slices() -> None:
    """If EndpointSlices are not watched, the agent is unknown, and Ready names the setting."""
    settings = Settings(llmkube_watch_endpoint_slices=False)
    answer = sync(service(), model(hardware=METAL), settings=settings)
    assert answer["status"]["schedulingStatus"] == "WaitingForMetalAgent"
    assert "MODELHOOKS_LLMKUBE_WATCH_ENDPOINT_SLICES=true" in condition(answer, "Ready")["message"]


def test_multi_attach_is_named() -> None:
    """Pods on two nodes cannot share a ReadWriteOnce claim; the cluster reports it in events, and Ready too."""
    parent = service(replicas=2)
    children = deployed(parent, ready=1)
    pods = (starting("a", "10.0.0.1"), starting("b", "10.0.0.2"))
    assert condition(sync(parent, model(), *pods, children=children), "Ready")["reason"] == "MultiAttach"
    shared = Settings(llmkube_model_cache_access_mode="ReadWriteMany")
    answer = sync(parent, model(), *pods, children=children, settings=shared)
    assert condition(answer, "Ready")["reason"] == "ContainerCreating"
    one_node = (starting("a", "10.0.0.1"), starting("b", "10.0.0.1"))
    assert condition(sync(parent, model(), *one_node, children=children), "Ready")["reason"] == "ContainerCreating"


def test_nothing_known_is_the_bare_count() -> None:
    """Without observed pods, Ready reports the numbers."""
    parent = service(replicas=2)
    answer = sync(parent, model(), children=deployed(parent, ready=1))
    assert condition(answer, "Ready")["message"] == "1 of 2 replicas are ready"


def test_stopped_says_so() -> None:
    """A service scaled to zero has no Ready, which kstatus would wait for, and does not progress."""
    parent = service(replicas=0)
    answer = sync(parent, model(), children=deployed(parent, ready=0))
    assert condition(answer, "Ready") == {}
    assert condition(answer, "Stopped")["reason"] == "ManuallyScaledToZero"
    assert not condition(answer, "Progressing")


def failing(name: str, revision: str, created: str) -> Json:
    """Return a pod whose image cannot be pulled."""
    waiting = {"reason": "ImagePullBackOff", "message": "manifest unknown"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ns1",
            "labels": {**POD_LABELS, "pod-template-hash": revision},
            "creationTimestamp": created,
        },
        "status": {**PENDING, "containerStatuses": [{"name": "llama-server", "state": {"waiting": waiting}}]},
    }


def test_a_broken_update_is_not_ready() -> None:
    """The old pod serves, so phase and ``Available`` stay, but Ready is False."""
    parent = service()
    children = deployed(parent, ready=1, exist=2, updatedReplicas=1)
    answer = sync(parent, model(), failing("s-new", "b", "2030-01-01T00:00:00Z"), children=children)
    ready = condition(answer, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "RollingOut")
    assert ready["message"] == (
        "pod s-new: container llama-server cannot pull its image: manifest unknown; Deployment s is rolling out: "
        "1 of 1 replicas are updated, 1 of 2 are ready, 1 of an earlier revision still there"
    )
    assert (answer["status"]["phase"], condition(answer, "Available")["status"]) == ("Ready", "True")


def test_an_update_that_is_refused_is_not_ready() -> None:
    """Without a new pod the reason comes from the Deployment's ReplicaFailure."""
    parent = service()
    refused = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: gpus"}
    answer = sync(parent, model(), children=deployed(parent, ready=1, updatedReplicas=0, conditions=[refused]))
    ready = condition(answer, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "RollingOut")
    assert ready["message"].startswith("Deployment s cannot create pods: exceeded quota: gpus; Deployment s is rolling")


PAUSED = "DeploymentPaused", "Deployment s is paused: resume it with kubectl rollout resume deployment/s"


@pytest.mark.parametrize(
    ("counts", "reason", "message"),
    [
        ({"ready": 1, "updatedReplicas": 0}, *PAUSED),
        ({"ready": 0, "exist": 0}, *PAUSED),
        ({"ready": 0, "exist": 1}, "ReplicasNotReady", "0 of 1 replicas are ready"),
        ({"ready": 1}, "InferenceReady", "1 of 1 replicas are ready"),
    ],
)
def test_a_paused_deployment_is_named_while_a_change_waits_for_it(counts: Json, reason: str, message: str) -> None:
    """It was paused by hand and forgotten."""
    parent = service()
    children = deployed(parent, **counts)
    next(child for child in children if child["kind"] == "Deployment")["spec"]["paused"] = True
    ready = condition(sync(parent, model(), children=children), "Ready")
    assert (ready["reason"], ready["message"]) == (reason, message)


def test_an_update_that_only_takes_its_time_is_not_ready() -> None:
    """Ready reports the numbers while a rollout progresses."""
    parent = service(replicas=2)
    answer = sync(parent, model(), children=deployed(parent, ready=2, exist=3, updatedReplicas=1))
    ready = condition(answer, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "RollingOut")
    assert "1 of 2 replicas are updated, 2 of 3 are ready, 2 of an earlier revision still there" in ready["message"]


def test_autoscalers_of_the_scale_subresource_find_the_pods() -> None:
    """Without a selector Kubernetes refuses to scale; a service on metal has no pods."""
    answer = sync(service(), model())
    selector = answer["status"]["selector"]
    assert (
        dict(pair.split("=") for pair in selector.split(","))
        == child(answer, "Deployment")["spec"]["selector"]["matchLabels"]
    )
    assert "selector" not in sync(service(), model(hardware=METAL))["status"]
