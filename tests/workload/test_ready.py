"""Causes of a workload not being ready: one test per kind of problem, and the form of the message."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from app.kube.conditions import Condition
from app.kube.objects import ObservedLeaderWorkerSet, ObservedPod
from app.limits import (
    MAX_CAUSE_CHARACTERS,
    MAX_CAUSES,
    MAX_CONTAINERS,
    MAX_PROBLEMS,
    MAX_READY_CHARACTERS,
    MAX_STEADY_PROBLEMS,
)
from app.workload.readiness.cause import Cause, Stage, bounded, reason_word, shortened, steady, telling
from app.workload.readiness.ready import (
    claim_cause,
    deployment_causes,
    job_causes,
    missing_pods,
    ordered,
    pod_causes,
    ready_message,
    ready_reason,
)
from tests.builders import (
    RUNNING,
    claim,
    condition,
    container,
    deployment,
    groups,
    job,
    pod,
    scheduled,
    terminated,
    unscheduled,
    waiting,
)

LOST: dict[str, Any] = {
    "phase": "Running",
    "conditions": [
        condition("PodScheduled", "True"),
        condition("ContainersReady", "True"),
        condition("Ready", "False"),
    ],
    "containerStatuses": [container(state=RUNNING, ready=True, started=True)],
}
"""A pod after its node stopped reporting, as the control plane leaves it."""

PODS: dict[str, tuple[dict[str, Any], Stage, str, str]] = {
    "no node has a GPU": (
        {"conditions": unscheduled("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")},
        Stage.SCHEDULING,
        "Unschedulable",
        "cannot be scheduled: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
    ),
    "a gate holds the pod": (
        {"conditions": unscheduled("waiting for a gate", "SchedulingGated")},
        Stage.SCHEDULING,
        "SchedulingGated",
        "cannot be scheduled: waiting for a gate",
    ),
    "a claim has no volume": (
        {"conditions": unscheduled("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.")},
        Stage.CLAIM,
        "ClaimNotBound",
        (
            "cannot be scheduled, a volume claim is not bound: 0/1 nodes are available: pod has unbound immediate "
            "PersistentVolumeClaims."
        ),
    ),
    "no volume can be bound": (
        {"conditions": unscheduled("0/1 nodes: 1 node(s) didn't find available persistent volumes to bind.")},
        Stage.CLAIM,
        "ClaimNotBound",
        (
            "cannot be scheduled, a volume claim is not bound: 0/1 nodes: 1 node(s) didn't find available persistent "
            "volumes to bind."
        ),
    ),
    "the volume is elsewhere": (
        {"conditions": unscheduled("0/2 nodes are available: 2 node(s) had volume node affinity conflict.")},
        Stage.CLAIM,
        "VolumeUnreachable",
        (
            "cannot be scheduled, no fitting node reaches its volume: 0/2 nodes are available: 2 node(s) had volume "
            "node affinity conflict."
        ),
    ),
    "the volume is elsewhere, as Kubernetes 1.33 says it": (
        {
            "conditions": unscheduled(
                "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity."
            )
        },
        Stage.CLAIM,
        "VolumeUnreachable",
        (
            "cannot be scheduled, no fitting node reaches its volume: 0/2 nodes are available: 2 node(s) didn't match "
            "PersistentVolume's node affinity."
        ),
    ),
    "the scheduler has tried preemption": (
        {
            "conditions": unscheduled(
                "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, preemption: 0/2 nodes "
                "are available: 2 Preemption is not helpful for scheduling."
            )
        },
        Stage.SCHEDULING,
        "Unschedulable",
        "cannot be scheduled: 0/2 nodes are available: 2 cannot allocate all claims.",
    ),
    "the claim does not exist": (
        {"conditions": unscheduled('0/1 nodes are available: persistentvolumeclaim "models" not found.')},
        Stage.CLAIM,
        "ClaimNotFound",
        'cannot be scheduled: 0/1 nodes are available: persistentvolumeclaim "models" not found.',
    ),
    "the claim's volume was deleted": (
        {
            "conditions": unscheduled(
                'persistentvolumeclaim "m" bound to non-existent persistentvolume "pvc-1". not found'
            )
        },
        Stage.CLAIM,
        "ClaimLost",
        (
            'cannot be scheduled, a volume claim has lost its volume: persistentvolumeclaim "m" bound to non-existent '
            'persistentvolume "pvc-1". not found'
        ),
    ),
    "the image cannot be pulled": (
        {
            "containerStatuses": [container(state=waiting("ErrImagePull", "manifest unknown"))],
            "conditions": scheduled(),
        },
        Stage.IMAGE,
        "ImagePullBackOff",
        "container server cannot pull its image: manifest unknown",
    ),
    "the kubelet waits before it pulls again": (
        {
            "containerStatuses": [
                container(state=waiting("ImagePullBackOff", 'Back-off pulling image "x:1": ErrImagePull: no such host'))
            ]
        },
        Stage.IMAGE,
        "ImagePullBackOff",
        "container server cannot pull its image: no such host",
    ),
    "a kubelet before 1.32 waits before it pulls again": (
        {"containerStatuses": [container(state=waiting("ImagePullBackOff", 'Back-off pulling image "x:1"'))]},
        Stage.IMAGE,
        "ImagePullBackOff",
        'container server cannot pull its image: Back-off pulling image "x:1"; its events have the registry\'s answer',
    ),
    "the image cannot be pulled for no reason": (
        {"containerStatuses": [container(state=waiting("ErrImagePull", ""))], "conditions": scheduled()},
        Stage.IMAGE,
        "ImagePullBackOff",
        "container server cannot pull its image",
    ),
    "the container cannot be created for no reason": (
        {"containerStatuses": [container(state=waiting("CreateContainerError", ""))]},
        Stage.CONFIGURATION,
        "CreateContainerError",
        "container server cannot be created (CreateContainerError)",
    ),
    "the container waits for a reason that is no word": (
        {"containerStatuses": [container(state=waiting("no such thing", "x"))]},
        Stage.CONFIGURATION,
        "CreateContainerError",
        "container server cannot be created (no such thing): x",
    ),
    "the pod is not ready, and says why": (
        {"phase": "Running", "conditions": [condition("Ready", "False", "r", "its agent is away")]},
        Stage.PROBE,
        "r",
        "is not ready: its agent is away",
    ),
    "the image has no valid name": (
        {"containerStatuses": [container(state=waiting("InvalidImageName", "invalid reference format"))]},
        Stage.IMAGE,
        "InvalidImageName",
        "container server cannot pull its image: invalid reference format",
    ),
    "a Secret is missing": (
        {"containerStatuses": [container(state=waiting("CreateContainerConfigError", 'secret "hf" not found'))]},
        Stage.CONFIGURATION,
        "CreateContainerConfigError",
        'container server cannot be created (CreateContainerConfigError): secret "hf" not found',
    ),
    "the command is not in the image": (
        {"containerStatuses": [container(state=terminated(128, "StartError", 'exec: "serve": not found'))]},
        Stage.CONFIGURATION,
        "StartError",
        'container server exited with code 128 (StartError): exec: "serve": not found',
    ),
    "the server crashes": (
        {
            "phase": "Running",
            "containerStatuses": [
                container(state=waiting("CrashLoopBackOff", "back-off 5m0s"), last=terminated(1, message="bad flag"))
            ],
        },
        Stage.CRASH,
        "CrashLoopBackOff",
        "container server exited with code 1: bad flag",
    ),
    "the server ends although it should not": (
        {"phase": "Running", "containerStatuses": [container(state=terminated(0, "Completed"))]},
        Stage.STARTING,
        "ContainerRestarting",
        "container server is about to be restarted",
    ),
    "the server ends without an error, again and again": (
        {
            "phase": "Running",
            "containerStatuses": [container(state=waiting("CrashLoopBackOff", "back-off 5m0s"), last=terminated(0))],
        },
        Stage.CRASH,
        "CrashLoopBackOff",
        "container server keeps exiting without an error; a server must keep running",
    ),
    "the server runs again after an end without an error": (
        {"phase": "Running", "containerStatuses": [container(state=RUNNING, last=terminated(0), started=False)]},
        Stage.PROBE,
        "StartupProbe",
        "container server is running, but its startup probe fails so far",
    ),
    "the server runs again after a crash": (
        {
            "phase": "Running",
            "containerStatuses": [container(state=RUNNING, last=terminated(2), started=False, restartCount=4)],
        },
        Stage.CRASH,
        "CrashLoopBackOff",
        "container server exited with code 2",
    ),
    "a probe ended the server, whose log is quoted": (
        {
            "phase": "Running",
            "containerStatuses": [
                container(state=RUNNING, last=terminated(137, message="INFO loading weights 40%"), started=False)
            ],
        },
        Stage.CRASH,
        "CrashLoopBackOff",
        (
            "container server exited with code 137: the kubelet ends containers so after failed startup probes, which "
            "its events show; then raise startupProbe.failureThreshold; the end of its output: INFO loading weights "
            "40%"
        ),
    ),
    "a probe ended the server after it had started": (
        {"phase": "Running", "containerStatuses": [container(state=RUNNING, last=terminated(143), started=True)]},
        Stage.CRASH,
        "CrashLoopBackOff",
        (
            "container server exited with code 143: the kubelet ends containers so after failed liveness probes, "
            "which its events show; then raise livenessProbe.failureThreshold"
        ),
    ),
    "memory of a download is short": (
        {
            "spec": {"initContainers": [{"name": "loader", "resources": {"limits": {"memory": "1Gi"}}}]},
            "initContainerStatuses": [container("loader", terminated(137, "OOMKilled"))],
        },
        Stage.CRASH,
        "OOMKilled",
        (
            "init container loader was killed, out of memory (exit code 137) at its limit of 1Gi; raise "
            "resources.limits.memory of that container where you write it, or the LimitRange that sets it"
        ),
    ),
    "memory is short": (
        {"phase": "Running", "containerStatuses": [container(state=RUNNING, last=terminated(137, "OOMKilled"))]},
        Stage.CRASH,
        "OOMKilled",
        "container server was killed, out of memory (exit code 137)",
    ),
    "a probe fails while the model loads": (
        {"phase": "Running", "containerStatuses": [container(state=RUNNING, last=terminated(137))]},
        Stage.CRASH,
        "CrashLoopBackOff",
        (
            "container server exited with code 137: the kubelet ends containers so after failed liveness or startup "
            "probes, which its events show; then raise livenessProbe.failureThreshold or raise "
            "startupProbe.failureThreshold"
        ),
    ),
    "the download fails": (
        {
            "initContainerStatuses": [
                container("model-downloader", waiting("CrashLoopBackOff"), terminated(1, message="curl: (22) 404"))
            ],
            "containerStatuses": [container(state=waiting("PodInitializing"))],
        },
        Stage.CRASH,
        "InitContainerFailed",
        "init container model-downloader exited with code 1: curl: (22) 404",
    ),
    "the download runs": (
        {
            "conditions": scheduled(),
            "initContainerStatuses": [container("model-downloader", RUNNING)],
            "containerStatuses": [container(state=waiting("PodInitializing"))],
        },
        Stage.STARTING,
        "Initializing",
        "init container model-downloader is running",
    ),
    "the download runs, which a kubelet calls started": (
        {
            "conditions": scheduled(),
            "initContainerStatuses": [container("model-downloader", RUNNING, started=True)],
            "containerStatuses": [container(state=waiting("PodInitializing"))],
        },
        Stage.STARTING,
        "Initializing",
        "init container model-downloader is running",
    ),
    "the download runs again after an error": (
        {
            "conditions": scheduled(),
            "initContainerStatuses": [container("model-downloader", RUNNING, last=terminated(22), started=True)],
            "containerStatuses": [container(state=waiting("PodInitializing"))],
        },
        Stage.CRASH,
        "InitContainerFailed",
        "init container model-downloader exited with code 22",
    ),
    "a sidecar does not start": (
        {
            "conditions": scheduled(),
            "initContainerStatuses": [container("proxy", RUNNING, started=False)],
            "containerStatuses": [container(state=waiting("PodInitializing"))],
        },
        Stage.PROBE,
        "StartupProbe",
        "init container proxy is running, but its startup probe fails so far",
    ),
    "a sidecar does not answer": (
        {
            "phase": "Running",
            "conditions": scheduled(),
            "initContainerStatuses": [container("proxy", RUNNING, started=True)],
            "containerStatuses": [container(state=RUNNING, started=True, ready=True)],
        },
        Stage.PROBE,
        "ReadinessProbeFailed",
        "init container proxy is running, but its readiness probe fails",
    ),
    "the model is being loaded": (
        {"phase": "Running", "containerStatuses": [container(state=RUNNING, started=False)]},
        Stage.PROBE,
        "StartupProbe",
        "container server is running, but its startup probe fails so far",
    ),
    "the server does not answer": (
        {"phase": "Running", "containerStatuses": [container(state=RUNNING, started=True, ready=False)]},
        Stage.PROBE,
        "ReadinessProbeFailed",
        "container server is running, but its readiness probe fails",
    ),
    "the node evicted the pod": (
        {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."},
        Stage.CRASH,
        "Evicted",
        "failed (Evicted): The node was low on resource: memory.",
    ),
    "a reason that no condition can have": (
        {"phase": "Failed", "reason": "Out of luck", "message": "the disk", "containerStatuses": [container()]},
        Stage.CRASH,
        "PodFailed",
        "failed (Out of luck): the disk",
    ),
    "the node had no GPU left": (
        {"phase": "Failed", "reason": "OutOfnvidia.com/gpu", "message": "Node didn't have enough resource"},
        Stage.SCHEDULING,
        "RefusedByNode",
        "was refused by its node (OutOfnvidia.com/gpu): Node didn't have enough resource",
    ),
    "the node's topology manager refused the pod": (
        {"phase": "Failed", "reason": "TopologyAffinityError", "message": "Resources cannot be allocated"},
        Stage.SCHEDULING,
        "TopologyAffinityError",
        "was refused by its node (TopologyAffinityError): Resources cannot be allocated",
    ),
    "the node had a taint": (
        {"phase": "Failed", "reason": "TaintToleration", "message": "Predicate TaintToleration failed"},
        Stage.SCHEDULING,
        "TaintToleration",
        "was refused by its node (TaintToleration): Predicate TaintToleration failed",
    ),
    "the node shut down": (
        {"phase": "Failed", "reason": "Terminated", "message": "Pod was terminated in response to node shutdown."},
        Stage.CRASH,
        "Terminated",
        "failed (Terminated): Pod was terminated in response to node shutdown.",
    ),
    "a pod of higher priority took its place": (
        {
            "phase": "Failed",
            "conditions": [condition("DisruptionTarget", "True", "PreemptionByScheduler", "a higher priority pod")],
            "containerStatuses": [container(state=terminated(137))],
        },
        Stage.CRASH,
        "PreemptionByScheduler",
        "was ended by the cluster (PreemptionByScheduler): a higher priority pod",
    ),
    "the node restarted": (
        {"phase": "Running", "containerStatuses": [container(state=RUNNING, last=terminated(255, "Unknown"))]},
        Stage.CRASH,
        "CrashLoopBackOff",
        "container server was lost when its node or the container runtime restarted (exit code 255)",
    ),
    "the server dies without a word": (
        {"phase": "Running", "containerStatuses": [container(state=terminated(132))]},
        Stage.CRASH,
        "CrashLoopBackOff",
        "container server exited with code 132: SIGILL, the CPU lacks an instruction of the program",
    ),
    "images are being pulled": (
        {
            "conditions": scheduled(condition("PodReadyToStartContainers", "True")),
            "containerStatuses": [container(state=waiting("ContainerCreating"))],
        },
        Stage.STARTING,
        "ContainerCreating",
        "its images are being pulled and its containers created; if this lasts, its events name the image",
    ),
    "volumes are being attached": (
        {"conditions": scheduled(), "containerStatuses": [container(state=waiting("ContainerCreating"))]},
        Stage.STARTING,
        "ContainerCreating",
        "its containers are being created; if this lasts, its events say which volume cannot be attached or mounted",
    ),
    "a readiness gate is closed": (
        {
            "phase": "Running",
            "conditions": [condition("Ready", "False", "ReadinessGatesNotReady", "gate example.com/x is false")],
            "containerStatuses": [container(state=RUNNING, ready=True)],
        },
        Stage.PROBE,
        "ReadinessGatesNotReady",
        "its containers are ready, but it is not: gate example.com/x is false",
    ),
    "a readiness gate is closed, and its condition says why": (
        {
            **LOST,
            "conditions": [*LOST["conditions"], condition("example.com/lb", "False", "Draining", "no target yet")],
            "spec": {"nodeName": "gpu-1", "readinessGates": [{"conditionType": "example.com/lb"}]},
        },
        Stage.PROBE,
        "ReadinessGatesNotReady",
        "its containers are ready, but its readiness gate example.com/lb is not: no target yet",
    ),
    "nobody has judged a readiness gate": (
        {**LOST, "spec": {"readinessGates": [{"conditionType": "example.com/lb"}]}},
        Stage.PROBE,
        "ReadinessGatesNotReady",
        "its containers are ready, but its readiness gate example.com/lb is not",
    ),
    "its node is lost": (
        {**LOST, "spec": {"nodeName": "gpu-1"}},
        Stage.PROBE,
        "NodeNotReady",
        "its containers are ready, but node gpu-1 is not ready",
    ),
    "the kubelet has not looked yet": (
        {"conditions": [condition("PodScheduled", "True")]},
        Stage.STARTING,
        "PodStarting",
        "is assigned to a node and about to start",
    ),
    "the pod is new": ({}, Stage.STARTING, "PodPending", "is waiting for the scheduler"),
}


@pytest.mark.parametrize(("status", "stage", "reason", "words"), PODS.values(), ids=PODS.keys())
def test_one_pod(status: dict[str, Any], stage: Stage, reason: str, words: str) -> None:
    """The cause has its stage, its reason and the cluster's own words."""
    (cause,) = pod_causes([pod(**{"phase": "Pending", **status})])
    assert (cause.stage, cause.reason) == (stage, reason)
    assert cause.text == f"pod chat-1: {words}"


QUIET: dict[str, dict[str, Any]] = {
    "ready": {"phase": "Running", "conditions": [condition("Ready", "True")]},
    "finished": {"phase": "Succeeded"},
}


@pytest.mark.parametrize("status", QUIET.values(), ids=QUIET.keys())
def test_nothing_to_say(status: dict[str, Any]) -> None:
    """Earlier failures of a ready or finished pod are ignored."""
    status = {**status, "containerStatuses": [container(state=RUNNING, last=terminated(1), ready=True)]}
    assert pod_causes([pod(**status)]) == []


def test_deleted_pods_do_not_count() -> None:
    """A pod that is being deleted has no cause."""
    assert pod_causes([leaving("a", conditions=unscheduled("no node"))]) == []


def leaving(name: str, **status: Any) -> ObservedPod:
    """Return a pod that was deleted, on a node."""
    deleted = pod(name, **status, spec={"nodeName": "gpu-1"})
    deleted.metadata.deletion_timestamp = "2030-01-01T00:00:00Z"
    return deleted


def test_an_incomplete_workload_waits_for_deleted_pods() -> None:
    """They are a cause where no other pod has one, such as the pods of a StatefulSet on a lost node."""
    deleted = [leaving("a"), leaving("b")]
    (cause,) = pod_causes(deleted, terminating=True)
    assert (cause.stage, cause.reason) == (Stage.STARTING, "PodTerminating")
    assert cause.text.startswith("2 pods: is being deleted; if this lasts, node gpu-1 does not respond")
    (other,) = pod_causes([*deleted, pod("c", conditions=unscheduled("no node"))], terminating=True)
    assert other.reason == "Unschedulable"


PROGRESSING = condition("Progressing", "True", "GroupsProgressing")


@pytest.mark.parametrize(
    ("group", "pods", "missing"),
    [
        (groups(PROGRESSING, replicas=2), [pod("leader-0"), pod("leader-1")], False),
        (groups(PROGRESSING, replicas=2), [leaving("leader-0"), pod("leader-1")], False),
        (groups(PROGRESSING, replicas=2), [pod("leader-0")], True),
        (groups(PROGRESSING), [], True),
        (groups(PROGRESSING), None, True),
        (groups(PROGRESSING, replicas=2), None, False),
        (groups(), [], False),
    ],
    ids=["all", "one leaves", "one", "none", "no group", "not watched", "no controller"],
)
def test_a_group_lacks_pods(group: ObservedLeaderWorkerSet, pods: list[ObservedPod] | None, missing: bool) -> None:
    """A refusal is in an event of a StatefulSet, and in no status."""
    assert [cause.reason for cause in missing_pods(group, pods)] == ["PodsMissing"] * missing


def test_started_sidecar_holds_nothing_up() -> None:
    """A ready sidecar has no cause; other containers can."""
    (cause,) = pod_causes(
        [
            pod(
                phase="Running",
                initContainerStatuses=[container("proxy", RUNNING, last=terminated(1), started=True, ready=True)],
                containerStatuses=[container(state=RUNNING, started=True)],
            )
        ]
    )
    assert cause.reason == "ReadinessProbeFailed"


def test_a_sidecar_and_a_server_are_both_reported() -> None:
    causes = pod_causes(
        [
            pod(
                phase="Running",
                initContainerStatuses=[container("proxy", RUNNING, started=True)],
                containerStatuses=[container(state=terminated(1, message="bad flag"))],
            )
        ]
    )
    assert [cause.text for cause in causes] == [
        "pod chat-1: container server exited with code 1: bad flag",
        "pod chat-1: init container proxy is running, but its readiness probe fails",
    ]


def test_equal_problems_become_one_cause() -> None:
    """The message has the number of pods instead of a list."""
    crash: dict[str, Any] = {
        "phase": "Running",
        "containerStatuses": [container(state=terminated(1, message="bad flag"))],
    }
    causes = pod_causes([pod("b", **crash), pod("a", **crash), pod("c", conditions=unscheduled("no node"))])
    assert [cause.text for cause in causes] == [
        "pod c: cannot be scheduled: no node",
        "2 pods: container server exited with code 1: bad flag",
    ]


def test_quotes_the_end_of_a_termination_message() -> None:
    """The last line of a long log is quoted, where the error usually is."""
    log = "loading weights\n" * 400 + "RuntimeError: CUDA out of memory"
    (cause,) = pod_causes([pod(phase="Running", containerStatuses=[container(state=terminated(1, message=log))])])
    assert cause.text.endswith("RuntimeError: CUDA out of memory")
    assert len(cause.text) < 400
    assert "\n" not in cause.text


HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
UID = "3f1c0c8e-5c1d-4f0c-9d4b-0d2f6a1b7e11"
PASSING = {
    "a container": (f'name is reserved for "{HEX}"', 'name is reserved for "…"'),
    "a layer": (f"failed to extract layer sha256:{HEX}: no space", "failed to extract layer sha256:…: no space"),
    "not an image that is named so": (f"image x@sha256:{HEX} not found", f"image x@sha256:{HEX} not found"),
    "not a sum that a Model demands": (f"the file has {HEX}", f"the file has {HEX}"),
    "a signed address": (
        f"403 for url: https://x.com/a?X-Amz-Date=1&X-Amz-Signature={HEX} b",
        "403 for url: https://x.com/a?… b",
    ),
    "a pod": (f'(pod: "chat-7d9c5b6f4-x2k4z_ns1({UID})")', '(pod: "chat-…_ns1(…)")'),
    "not words that look like a pod's": ("chat-kserve-router-scheduler", "chat-kserve-router-scheduler"),
    "times": ("2026-11-26 22:10:05,123 a\nERROR 11-26 22:10:05 b 2026-11-26T22:10:05Z", "… a ERROR … b …"),
    "a port of the client": ("read udp 10.0.0.5:52144->10.0.0.1:53: i/o", "read udp 10.0.0.5…->10.0.0.1:53: i/o"),
    "a snapshot and a mount": (
        "/snapshots/12/fs /tmpmounts/containerd-mount34",
        "/snapshots/…/fs /tmpmounts/containerd-mount…",
    ),
    "a process and an address": ("(EngineCore pid=17) at 0x7f00ab", "(EngineCore pid=…) at …"),
}


@pytest.mark.parametrize(("message", "quoted"), PASSING.values(), ids=PASSING.keys())
def test_leaves_out_what_is_new_each_time(message: str, quoted: str) -> None:
    """The status would be written each time, and equal problems of pods would not become one."""
    assert steady(message) == quoted
    (cause,) = pod_causes([pod("a", containerStatuses=[container(state=waiting("CreateContainerError", message))])])
    assert cause.text == f"pod a: container server cannot be created (CreateContainerError): {quoted}"


def test_message_does_not_flicker_while_a_container_restarts() -> None:
    """The message is the same while a container is terminated, waiting or running again after one crash."""
    ended = terminated(1, message="bad flag")
    states = [(ended, None), (waiting("CrashLoopBackOff", "back-off 20s"), ended), (RUNNING, ended)]
    texts = {
        pod_causes([pod(phase="Running", containerStatuses=[container(state=state, last=last)])])[0].text
        for state, last in states
    }
    assert len(texts) == 1


def test_message_does_not_flicker_between_two_attempts_to_start() -> None:
    never_ran = terminated(128, "StartError", 'exec: "serve": not found')
    states = waiting("RunContainerError", 'exec: "serve": not found'), waiting("CrashLoopBackOff", "back-off 20s")
    pods = [pod("a", containerStatuses=[container(state=state, last=never_ran)]) for state in states]
    assert {(cause.reason, cause.text) for item in pods for cause in pod_causes([item])} == {
        ("StartError", 'pod a: container server exited with code 128 (StartError): exec: "serve": not found')
    }
    broken = container(state=waiting("RunContainerError", "no such device"), last=terminated(1))
    (cause,) = pod_causes([pod("a", containerStatuses=[broken])])
    assert cause.reason == "RunContainerError", "an earlier crash is not the reason"


@pytest.mark.parametrize(
    ("word", "reason", "message"),
    [
        ("ErrImagePull", "ImagePullBackOff", "x:1: not found"),
        ("RegistryUnavailable", "RegistryUnavailable", "image pull failed for x:1 because the registry is unavailable"),
        ("SignatureValidationFailed", "SignatureValidationFailed", "image pull failed for x:1"),
    ],
)
def test_message_does_not_flicker_between_two_attempts_to_pull(word: str, reason: str, message: str) -> None:
    backing_off = waiting("ImagePullBackOff", f'Back-off pulling image "x:1": {word}: {message}')
    states = waiting(word, message), waiting(word, f"rpc error: code = NotFound desc = {message}"), backing_off
    pods = [pod("a", containerStatuses=[container(state=state)]) for state in states]
    found = {(cause.reason, cause.text) for item in pods for cause in pod_causes([item])}
    assert found == {(reason, f"pod a: container server cannot pull its image: {message}")}


DEPLOYMENTS = {
    "quota": (
        condition("ReplicaFailure", "True", "FailedCreate", 'pods "chat-7d9-x2k4" is forbidden: exceeded quota: gpus'),
        Stage.QUOTA,
        "QuotaExceeded",
        "Deployment chat cannot create pods: exceeded quota: gpus",
    ),
    "limit range": (
        condition("ReplicaFailure", "True", "FailedCreate", 'Pod "chat-7d9-x2k4" is invalid: spec: too much memory'),
        Stage.QUOTA,
        "FailedCreate",
        "Deployment chat cannot create pods: spec: too much memory",
    ),
    "admission": (
        condition("ReplicaFailure", "True", "FailedCreate", "no PriorityClass with name gold was found"),
        Stage.QUOTA,
        "FailedCreate",
        "Deployment chat cannot create pods: no PriorityClass with name gold was found",
    ),
    "deadline": (
        condition("Progressing", "False", "ProgressDeadlineExceeded", 'ReplicaSet "chat-7d9" has timed out'),
        Stage.LATE,
        "ProgressDeadlineExceeded",
        'Deployment chat does not progress: ReplicaSet "chat-7d9" has timed out',
    ),
    "no ReplicaSet": (
        condition("Progressing", "False", "ReplicaSetCreateError", "replicasets.apps is forbidden: exceeded quota: q"),
        Stage.QUOTA,
        "ReplicaSetCreateError",
        "Deployment chat does not progress: replicasets.apps is forbidden: exceeded quota: q",
    ),
    "a webhook that names the pod": (
        condition("ReplicaFailure", "True", "FailedCreate", "webhook denied Pod/ns1/chat-7d9c5b6f4-x2k4z: no label"),
        Stage.QUOTA,
        "FailedCreate",
        "Deployment chat cannot create pods: webhook denied Pod/ns1/chat-…: no label",
    ),
}


@pytest.mark.parametrize(("given_", "stage", "reason", "text"), DEPLOYMENTS.values(), ids=DEPLOYMENTS.keys())
def test_deployment(given_: dict[str, Any], stage: Stage, reason: str, text: str) -> None:
    """The cause has the Deployment's own words, without the random name of a refused pod."""
    assert [*deployment_causes(deployment(given_))] == [Cause(stage, text, reason)]


def test_a_late_rollout_is_named_last() -> None:
    """The pods say why it is late."""
    late = deployment(condition("Progressing", "False", "ProgressDeadlineExceeded", "has timed out"))
    causes = [*deployment_causes(late), *pod_causes([pod(conditions=scheduled())])]
    assert [cause.reason for cause in ordered(causes)] == ["PodStarting", "ProgressDeadlineExceeded"]
    assert ready_reason(causes) == "ProgressDeadlineExceeded"
    assert ready_reason([*causes, *pod_causes([pod(**CRASHING)])]) == "CrashLoopBackOff"
    assert ready_reason([Cause(Stage.PROBE, "a", "A"), *causes]) == "ProgressDeadlineExceeded"


@pytest.mark.parametrize(
    ("status", "is_told"),
    [
        ({"observedGeneration": 2}, True),
        ({"observedGeneration": 2, "updatedReplicas": 1, "replicas": 2}, True),
        ({"observedGeneration": 2, "updatedReplicas": 1, "replicas": 1}, False),
        ({"observedGeneration": 1, "updatedReplicas": 1, "replicas": 1}, True),
        (
            {
                "observedGeneration": 1,
                **dict.fromkeys(("updatedReplicas", "replicas", "readyReplicas", "availableReplicas"), 1),
            },
            False,
        ),
    ],
    ids=["no pods", "pods of before", "nothing to do", "not seen yet", "ready, and another annotation"],
)
def test_a_paused_deployment_is_told_of_while_it_has_something_to_do(status: dict[str, int], is_told: bool) -> None:
    unpaused = deployment(**status)
    text = "Deployment chat is paused: resume it with kubectl rollout resume deployment/chat"
    paused = [*deployment_causes(replace(unpaused, raw_spec=Raw(b'{"replicas": 1, "paused": true}')))]
    assert paused == ([Cause(Stage.SPEC, text, "DeploymentPaused")] if is_told else [])
    assert [*deployment_causes(unpaused)] == []


def test_healthy_deployment_says_nothing() -> None:
    assert not [*deployment_causes(deployment(condition("Available", "True"), condition("Progressing", "True")))]


def test_claim() -> None:
    """A claim that is missing, unbound or lost is a cause."""
    assert claim_cause("models", claim("Bound")) is None
    reasons = [
        cause.reason for given_ in (None, claim("Pending"), claim("Lost")) if (cause := claim_cause("m", given_))
    ]
    assert reasons == ["ClaimNotFound", "ClaimNotBound", "ClaimLost"]


def test_failed_job_repeats_termination_messages() -> None:
    """The cause has the Job's message and those of its containers."""
    failed = job(condition("Failed", "True", "BackoffLimitExceeded", "Job has reached the specified backoff limit"))
    pods = [pod("p", "Failed", containerStatuses=[container("model-downloader", terminated(65, message="wrong SHA"))])]
    (cause,) = job_causes(failed, pods)
    assert cause == Cause(
        Stage.MODEL,
        "Job m-dl-1 failed: Job has reached the specified backoff limit; "
        "container model-downloader exited with code 65: wrong SHA",
        "BackoffLimitExceeded",
    )


@pytest.mark.parametrize("reason", ["", "OutOfnvidia.com/gpu"])
def test_a_failed_job_without_a_reason_that_a_condition_may_have_is_called_failed(reason: str) -> None:
    (cause,) = job_causes(job(condition("Failed", "True", reason, "")), [])
    assert cause == Cause(Stage.MODEL, "Job m-dl-1 failed", "JobFailed")


def test_running_job_is_held_up_by_its_pods() -> None:
    """Causes of a running Job are those of its pods; a complete Job has none."""
    stuck = [pod("p", conditions=unscheduled("no node"))]
    assert [cause.reason for cause in job_causes(job(), stuck)] == ["Unschedulable"]
    assert job_causes(job(condition("Complete", "True")), stuck) == []


def test_order_is_that_of_a_pods_life() -> None:
    """Causes are ordered by stage, then by text."""
    causes = [Cause(stage, f"{stage.name} {letter}", "R") for stage in reversed(Stage) for letter in "ba"]
    texts = [cause.text for cause in ordered(causes)]
    assert texts == [f"{stage.name} {letter}" for stage in Stage for letter in "ab"]
    assert ready_reason(causes) == "R"
    assert ready_reason([]) == "NotReady"


@pytest.mark.parametrize("cut", [bounded, shortened, telling])
def test_a_text_of_the_largest_length_is_whole(cut: Callable[[str, int], str]) -> None:
    text = "".join(chr(ord("a") + number % 26) for number in range(300))
    assert cut(text, 300) == text
    assert "…" in cut(f"{text}.", 300)
    assert len(cut(f"{text}.", 300)) <= 300


def test_a_line_of_the_fewest_characters_is_told() -> None:
    """A cut line of 39 characters tells nothing."""
    last, error = "z" * 20, f"error: {'x' * 300}"
    for length, is_told in ((63, True), (62, False)):
        assert (telling(f"{error}\n{last}", length) != last) is is_told


def test_a_reason_has_a_largest_length() -> None:
    assert reason_word("A" * 1024, "Other") == "A" * 1024
    assert reason_word("A" * 1025, "Other") == "Other"


def test_causes_are_listed_up_to_the_largest_length() -> None:
    """With the separator behind each of them."""
    texts = [letter * (MAX_READY_CHARACTERS // 4 - 2) for letter in "abcde"]
    causes = [Cause(Stage.CRASH, text, "A") for text in texts]
    assert ready_message(causes) == "; ".join([*texts[:4], "and 1 more"])
    assert ready_message([*causes[1:], Cause(Stage.CRASH, f"{texts[0]}a", "A")]).endswith("; and 2 more")


def test_message_is_bounded() -> None:
    """A few causes are listed, each cut to a limit, and the others are counted."""
    long = ready_message([Cause(Stage.CRASH, f"{number:02} " + "x" * 2000, "R") for number in range(20)])
    assert len(long) < MAX_CAUSE_CHARACTERS + 20
    assert "…" in long
    assert long.endswith("xx; and 19 more")
    message = ready_message([Cause(Stage.CRASH, f"{number:02} " + "x" * 200, "R") for number in range(20)])
    assert message.count("x; ") == MAX_READY_CHARACTERS // 205
    assert len(message) < MAX_READY_CHARACTERS + 20
    short = ready_message([Cause(Stage.CRASH, f"{number:02}", "R") for number in range(20)])
    assert short.endswith(f"; and {20 - MAX_CAUSES} more")


def test_the_work_grows_with_the_number_of_pods_and_not_with_its_square() -> None:
    crash: dict[str, Any] = {
        "phase": "Running",
        "containerStatuses": [container(state=terminated(1, message="x" * 2000))],
    }
    few, many = ([pod(f"p{number}", **crash) for number in range(count)] for count in (200, 1000))
    (cause,) = pod_causes(many)
    assert cause.text.startswith("1000 pods: ")
    assert calls(lambda: pod_causes(many)) < 6 * calls(lambda: pod_causes(few))


def calls(run: Callable[[], object]) -> int:
    """Return the number of function calls."""
    events: list[str] = []
    sys.setprofile(lambda _, event, __: events.append(event))
    try:
        run()
    finally:
        sys.setprofile(None)
    return sum(event.endswith("call") for event in events)


_WORDS = st.text(max_size=40)
_STATES: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.just(RUNNING),
    st.builds(waiting, st.sampled_from(["", "ErrImagePull", "CrashLoopBackOff", "PodInitializing"]) | _WORDS, _WORDS),
    st.builds(terminated, st.integers(-1, 255), st.sampled_from(["Error", "OOMKilled", "Completed"]) | _WORDS, _WORDS),
)
_CONTAINERS = st.lists(
    st.builds(container, st.sampled_from(["a", "b"]), _STATES, _STATES, started=st.none() | st.booleans()), max_size=2
)
_CONDITIONS = st.lists(
    st.builds(
        condition,
        st.sampled_from(["Ready", "PodScheduled"]),
        st.sampled_from(["True", "False", "Unknown"]),
        _WORDS,
        _WORDS,
    ),
    max_size=2,
)
_PODS = st.lists(
    st.builds(
        pod,
        st.sampled_from(["p", "q", "r"]),
        st.sampled_from(["", "Pending", "Running", "Succeeded", "Failed", "Unknown"]),
        conditions=_CONDITIONS,
        containerStatuses=_CONTAINERS,
        initContainerStatuses=_CONTAINERS,
        reason=_WORDS,
        message=_WORDS,
    ),
    max_size=4,
)


@given(_PODS)
def test_any_pods_give_a_sound_message(pods: list[Any]) -> None:
    """For any pods the message is one line and does not depend on their order, and reasons are legal."""
    causes = pod_causes(pods)
    message = ready_message(causes)
    assert message == ready_message(pod_causes(reversed(pods)))
    assert "\n" not in message
    for cause in causes:
        assert reason_word(cause.reason, "illegal") == cause.reason
        Condition(type="Ready", status="False", reason=cause.reason)


BROKEN: dict[str, Any] = {
    "conditions": scheduled(),
    "containerStatuses": [container(state=waiting("ImagePullBackOff", "no such tag"))],
}
CRASHING: dict[str, Any] = {"conditions": scheduled(), "containerStatuses": [container(state=terminated(1))]}


@pytest.mark.parametrize("label", ["pod-template-hash", "leaderworkerset.sigs.k8s.io/template-revision-hash"])
def test_pods_of_the_present_template_come_first(label: str) -> None:
    """Pods of an old template are about to be deleted, even if one was recreated during the update."""
    old = [
        pod("old-1", labels={label: "a"}, created="2030-01-01T00:00:00Z", conditions=[condition("Ready", "True")]),
        pod("old-2", labels={label: "a"}, created="2030-01-01T00:09:00Z", **CRASHING),
    ]
    new = pod("new-1", labels={label: "b"}, created="2030-01-01T00:05:00Z", **BROKEN)
    for pods in ([*old, new], [new, *old]):
        (cause,) = pod_causes(pods)
        assert (cause.reason, cause.text.partition(":")[0]) == ("ImagePullBackOff", "pod new-1")
    fine = pod("new-1", labels={label: "b"}, created="2030-01-01T00:05:00Z", conditions=[condition("Ready", "True")])
    assert [cause.text.partition(":")[0] for cause in pod_causes([*old, fine])] == ["pod old-2"]


EVICTED: dict[str, Any] = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}


@pytest.mark.parametrize(
    ("replacement", "reasons"),
    [(CRASHING, ["CrashLoopBackOff", "Evicted"]), ({"conditions": scheduled()}, ["Evicted", "PodStarting"])],
    ids=["crashes", "starts"],
)
def test_an_evicted_pod_counts_beside_its_replacement(replacement: dict[str, Any], reasons: list[str]) -> None:
    """Kubernetes keeps evicted pods. The latest is told after the problem of the pod that replaced it."""
    replacing = pod("new", created="2030-01-01T00:05:00Z", **replacement)
    assert [cause.reason for cause in pod_causes([pod("old", **EVICTED), replacing])] == reasons
    later = pod("later", created="2030-01-01T00:06:00Z", **EVICTED)
    assert "pod later: failed (Evicted)" in ready_message(pod_causes([replacing, later]))


OUT_OF_MEMORY: dict[str, Any] = {
    "phase": "Failed",
    "containerStatuses": [container(state=terminated(137, "OOMKilled"))],
}


def test_a_pod_that_ran_out_of_memory_is_told_beside_the_one_that_finds_no_node() -> None:
    """The reason is the present problem; only the latest of the earlier ones is told."""
    waits = pod("new", created="2030-01-01T00:05:00Z", conditions=unscheduled("0/1 nodes are available."))
    old = [pod(f"old-{number}", created=f"2030-01-01T00:0{number}:00Z", **OUT_OF_MEMORY) for number in (1, 2)]
    causes = pod_causes([*old, waits])
    assert [cause.reason for cause in causes] == ["Unschedulable", "OOMKilled"]
    assert "pod old-2: container server was killed, out of memory" in ready_message(causes)


TRACEBACK = [
    "INFO 01-01 loading",
    'Traceback (most recent call last):\n  File "/usr/lib/python3/site-packages/huggingface_hub/utils.py", line 1',
    "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/acme/secret-model",
    *(f'  File "/usr/lib/python3/dist-packages/vllm/frame{number}.py", line {number}' for number in range(20)),
    "RuntimeError: Engine core initialization failed. See root cause above.",
]


def test_a_long_output_keeps_the_lines_with_the_error() -> None:
    """The last line of a server often says only that another one above has the cause."""
    ended = container(state=terminated(1, message="\n".join(TRACEBACK)))
    (cause,) = pod_causes([pod(phase="Running", containerStatuses=[ended])])
    for words in ("401 Client Error: Unauthorized", "acme/secret-model", "See root cause above."):
        assert words in cause.text
    assert len(cause.text) < MAX_CAUSE_CHARACTERS


def test_a_long_message_is_cut_in_the_middle() -> None:
    """It begins with the image, and ends with what the registry answered."""
    pull = f'failed to pull image "registry.example.com/acme/server:1": {"failed to resolve: " * 60}401 Unauthorized'
    (cause,) = pod_causes([pod(containerStatuses=[container(state=waiting("ErrImagePull", pull))])])
    assert "acme/server:1" in cause.text
    assert cause.text.endswith("401 Unauthorized")
    assert "401 Unauthorized" in ready_message([cause])


def test_a_refusal_is_named_before_anything_else() -> None:
    """Existing pods are less important while new ones are refused."""
    refused = deployment(
        condition("ReplicaFailure", "True", "FailedCreate", 'pods "x" is forbidden: exceeded quota: q')
    )
    mistake = Cause(Stage.SPEC, "two fields contradict each other", "Contradiction")
    causes = [mistake, *deployment_causes(refused), *pod_causes([pod(**CRASHING)])]
    assert ready_reason(causes) == "QuotaExceeded"
    assert ready_message(causes).startswith("Deployment chat cannot create pods: exceeded quota: q; ")


def test_the_reason_of_an_update_is_that_it_is_one() -> None:
    """The old pods may still serve, so only a mistake of the user takes precedence over RollingOut."""
    causes = pod_causes([pod(**BROKEN)])
    assert (ready_reason(causes), ready_reason(causes, replacing=True)) == ("ImagePullBackOff", "RollingOut")
    mistake = Cause(Stage.SPEC, "two fields contradict each other", "Contradiction")
    assert ready_reason([mistake, *causes], replacing=True) == "Contradiction"


def test_limits_the_problems_in_a_message() -> None:
    """Each problem takes time, so those of thousands of pods would exceed a sync's deadline."""
    broken = [container(name=f"c{n}", state=waiting(f"Reason{n}")) for n in range(MAX_CONTAINERS + 1)]
    found = pod_causes([pod(f"p{n}", phase="Pending", containerStatuses=broken) for n in range(100)])
    assert len(found) == MAX_CONTAINERS
    many = [container(name="c", state=waiting("ErrImagePull")), container(name="d", state=waiting("ErrImagePull"))]
    found = pod_causes([pod(f"p{n}", phase="Pending", containerStatuses=many) for n in range(MAX_PROBLEMS)])
    assert [cause.text.partition(":")[0] for cause in found] == [f"{MAX_PROBLEMS // 2} pods"] * 2
    failed = [pod(f"p{n}", phase="Failed", reason="Evicted") for n in range(MAX_PROBLEMS + 1)]
    assert [cause.text.partition(":")[0] for cause in pod_causes(failed)] == [f"{MAX_PROBLEMS} pods"]


def test_only_the_first_problems_are_said_without_what_changes() -> None:
    """The search for that takes time, and another one of thousands is not the first that is read."""
    at = [f"a{'b' * n} at 0x7f{n:04x}" for n in range(MAX_STEADY_PROBLEMS + 1)]
    causes = pod_causes([pod(f"p{n}", phase="Failed", reason="A", message=text) for n, text in enumerate(at)])
    assert sorted("0x7f" in cause.text for cause in causes) == [False] * MAX_STEADY_PROBLEMS + [True]
