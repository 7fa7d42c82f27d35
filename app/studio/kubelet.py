"""Simulate pods: their status in each phase, as a scheduler and a kubelet write it, and the status of their workload.

The statuses have Kubernetes' fields and reasons, as far as :mod:`app.workload` reads them, so a hook cannot tell them
from those of a cluster.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from functools import cache
from itertools import islice

from app.desk.cluster.offline import NOW
from app.desk.cluster.pods import is_ready
from app.desk.cluster.simulate import MAX_PODS
from app.kube.base import Json
from app.workload.readiness.pods import JOB_NAMES, LWS_NAME, LWS_WORKER_INDEX


class PodPhase(IntEnum):
    CREATED = 0
    SCHEDULED = 1
    """It has a node; its images are pulled."""
    INITIALIZING = 2
    RUNNING = 3
    """Its containers run, and do not answer their probes yet."""
    READY = 4
    """Its containers are ready; those of a Job have completed."""


@dataclass
class Clock:
    """Seconds since the manifests were applied; the simulation advances them."""

    seconds: int = 0

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)

    @property
    def text(self) -> str:
        return _timestamp(self.seconds)


@cache
def _timestamp(seconds: int) -> str:
    """Return the clock's time as Kubernetes writes it, once for all the pods of a step."""
    return (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Trouble:
    """A problem that keeps a pod in ``phase``, of one container or of the whole pod."""

    phase: PodPhase
    waiting: str = ""
    """The reason for which the container waits: ``ImagePullBackOff``, ``CrashLoopBackOff``."""
    message: str = ""
    exit_code: int = 0
    """Exit code of the container, now and after each restart."""
    reason: str = "Error"
    container: str = ""
    """Name of the container with the problem; the first one if empty."""


def pods_of(workload: Json) -> Iterator[Json]:
    """Yield the pods that the workload's controller creates, at most :data:`MAX_PODS`, without a status."""
    pods = _groups(workload) if workload["kind"] == "LeaderWorkerSet" else _replicas(workload)
    return islice(pods, MAX_PODS)


def _replicas(workload: Json) -> Iterator[Json]:
    metadata, spec = workload["metadata"], workload["spec"]
    count = _count(spec, "parallelism" if workload["kind"] == "Job" else "replicas")
    labels = dict.fromkeys(JOB_NAMES, metadata["name"]) if workload["kind"] == "Job" else {}
    for number in range(count):
        yield _pod(f"{metadata['name']}-{number}", metadata["namespace"], spec["template"], labels)


def _count(spec: Json, field: str) -> int:
    """Return a number of pods, which is one where it is not given."""
    count: int | None = spec.get(field)
    return 1 if count is None else count


def _groups(workload: Json) -> Iterator[Json]:
    metadata, spec = workload["metadata"], workload["spec"]
    template = spec["leaderWorkerTemplate"]
    for group in range(_count(spec, "replicas")):
        leader = f"{metadata['name']}-{group}"
        for index in range(_count(template, "size")):
            part = template["workerTemplate"] if index else template.get("leaderTemplate") or template["workerTemplate"]
            labels = {
                LWS_NAME: metadata["name"],
                "leaderworkerset.sigs.k8s.io/group-index": str(group),
                LWS_WORKER_INDEX: str(index),
            }
            yield _pod(f"{leader}-{index}" if index else leader, metadata["namespace"], part, labels)


def _pod(name: str, namespace: str, template: Json, labels: Json) -> Json:
    inherited = template.get("metadata") or {}
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"simulated-{namespace}-{name}",
        "labels": {**(inherited.get("labels") or {}), **labels},
    }
    if inherited.get("annotations"):
        metadata["annotations"] = inherited["annotations"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}, "status": {}}


def status(pod: Json, phase: PodPhase, trouble: Trouble | None, clock: Clock, *, ends: bool = False) -> Json:
    """Return a pod's status in a phase; ``trouble`` keeps it there. ``ends`` is True for a Job's pod."""
    held = trouble if trouble is not None and trouble.phase == phase else None
    if phase is PodPhase.CREATED:
        if held is None:
            return {"phase": "Pending"}
        unscheduled = _condition("PodScheduled", False, clock, "Unschedulable", held.message)
        return {"phase": "Pending", "conditions": [unscheduled]}
    spec = pod["spec"]
    init, main = spec.get("initContainers") or [], spec.get("containers") or []
    ready = phase is (PodPhase.RUNNING if ends else PodPhase.READY) and held is None
    why = "" if ready else "PodCompleted" if ends and phase is PodPhase.READY else "ContainersNotReady"
    conditions = [
        _condition("PodScheduled", True, clock),
        _condition("Initialized", phase >= PodPhase.RUNNING, clock),
        _condition("ContainersReady", ready, clock, why),
        _condition("Ready", ready, clock, why),
    ]
    word = "Pending" if phase < PodPhase.RUNNING else "Succeeded" if ends and phase is PodPhase.READY else "Running"
    broken = ends and held is not None and bool(held.exit_code)
    fields: Json = {
        "phase": "Failed" if broken else word,
        "conditions": conditions,
        "containerStatuses": [_container(container, main, phase, held, clock, ends=ends) for container in main],
    }
    if init:
        fields["initContainerStatuses"] = [_init(container, phase, held, clock) for container in init]
    return fields


def _condition(type_: str, true: bool, clock: Clock, reason: str = "", message: str = "") -> Json:
    status = "True" if true else "False"
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": clock.text}


def _init(container: Json, phase: PodPhase, held: Trouble | None, clock: Clock) -> Json:
    if phase is PodPhase.INITIALIZING and held is not None and container["name"] == held.container:
        return _failing(container, held, clock)
    sidecar = container.get("restartPolicy") == "Always"
    if phase < PodPhase.INITIALIZING:
        return _status(container, {"waiting": {"reason": "PodInitializing"}})
    if sidecar or phase is PodPhase.INITIALIZING:
        return _status(container, {"running": {"startedAt": clock.text}}, ready=sidecar, started=True)
    return _status(container, _terminated(0, "Completed", "", clock), ready=True)


def _container(
    container: Json, main: Sequence[Json], phase: PodPhase, held: Trouble | None, clock: Clock, *, ends: bool
) -> Json:
    if phase is PodPhase.INITIALIZING and held is not None and held.container not in {c["name"] for c in main}:
        return _status(container, {"waiting": {"reason": "PodInitializing"}})
    if held is not None and container["name"] == (held.container or main[0]["name"]):
        return _failing(container, held, clock)
    if phase < PodPhase.RUNNING:
        return _status(container, {"waiting": {"reason": "ContainerCreating"}})
    if phase is PodPhase.READY and ends:
        return _status(container, _terminated(0, "Completed", "", clock))
    ready = phase is PodPhase.READY or ends
    started = ready or "startupProbe" not in container
    return _status(container, {"running": {"startedAt": clock.text}}, ready=ready, started=started)


def _failing(container: Json, trouble: Trouble, clock: Clock) -> Json:
    """Return the status of a container that waits for its image, ended, or runs without answering."""
    if trouble.exit_code:
        ended = _terminated(trouble.exit_code, trouble.reason, trouble.message, clock)
        if not trouble.waiting:
            return _status(container, ended)
        words = f"back-off 5m0s restarting failed container={container['name']}"
        waiting = {"waiting": {"reason": trouble.waiting, "message": words}}
        return {**_status(container, waiting), "lastState": ended, "restartCount": 5}
    if trouble.waiting:
        return _status(container, {"waiting": {"reason": trouble.waiting, "message": trouble.message}})
    return _status(container, {"running": {"startedAt": clock.text}}, started=True)


def _terminated(code: int, reason: str, message: str, clock: Clock) -> Json:
    times = {"startedAt": clock.text, "finishedAt": clock.text}
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, **times}}


def _status(container: Json, state: Json, *, ready: bool = False, started: bool = False) -> Json:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": started,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }


def summary(workload: Json, pods: Sequence[Json], clock: Clock, *, too_long: bool) -> Json:
    """Return a workload's status from its pods; ``too_long`` if it has not progressed for ten minutes."""
    if workload["kind"] == "Job":
        return _job(workload, pods, clock)
    metadata, replicas = workload["metadata"], _count(workload["spec"], "replicas")
    counts = {"observedGeneration": metadata["generation"], "replicas": replicas, "updatedReplicas": replicas}
    if workload["kind"] == "LeaderWorkerSet":
        size = _count(workload["spec"]["leaderWorkerTemplate"], "size")
        groups = [pods[start : start + size] for start in range(0, len(pods), size)]
        count = sum(all(map(is_ready, group)) for group in groups)
        up = count >= replicas
        available = _condition("Available", up, clock, "AllGroupsReady" if up else "GroupsNotReady")
        progressing = _condition("Progressing", not up, clock, "GroupsProgressing")
        return {**counts, "readyReplicas": count, "conditions": [available, progressing]}
    count = sum(map(is_ready, pods))
    up = count >= replicas
    available = _condition("Available", up, clock, "MinimumReplicasAvailable" if up else "MinimumReplicasUnavailable")
    stuck = too_long and not up
    words = f'ReplicaSet "{metadata["name"]}" has timed out progressing.' if stuck else ""
    why = "ProgressDeadlineExceeded" if stuck else "NewReplicaSetAvailable" if up else "ReplicaSetUpdated"
    progressing = _condition("Progressing", not stuck, clock, why, words)
    counts |= {"readyReplicas": count, "availableReplicas": count, "unavailableReplicas": replicas - count}
    return {**counts, "conditions": [available, progressing]}


def _job(job: Json, pods: Sequence[Json], clock: Clock) -> Json:
    if pods and all(pod["status"].get("phase") == "Succeeded" for pod in pods):
        done = {"completionTime": clock.text, "conditions": [_condition("Complete", True, clock)]}
        return {"succeeded": len(pods), **done}
    for pod in pods:
        if pod["status"].get("phase") == "Failed":
            why, words = _given_up(job, pod)
            return {"failed": 1, "conditions": [_condition("Failed", True, clock, why, words)]}
    return {"active": len(pods)}


def _given_up(job: Json, pod: Json) -> tuple[str, str]:
    """Return why a Job creates no further pod: its policy for the exit code, or its backoff limit."""
    for rule in (job["spec"].get("podFailurePolicy") or {}).get("rules") or ():
        exit_codes = rule.get("onExitCodes") or {}
        for container in pod["status"]["containerStatuses"]:
            code = (container["state"].get("terminated") or {}).get("exitCode")
            if container["name"] == exit_codes.get("containerName") and code in exit_codes.get("values", ()):
                place = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
                words = f"failed with exit code {code} matching FailJob rule at index 0"
                return "PodFailurePolicy", f"Container {container['name']} for pod {place} {words}"
    return "BackoffLimitExceeded", "Job has reached the specified backoff limit"


def since(old: Json, new: Json) -> Json:
    """Return the new status with the times of conditions that have not changed."""
    before = {(c["type"], c["status"], c["reason"], c["message"]): c for c in old.get("conditions") or ()}
    conditions = [before.get((c["type"], c["status"], c["reason"], c["message"]), c) for c in new.get("conditions", ())]
    times = {key: old[key] for key in ("completionTime",) if key in old and key in new}
    return {**new, **times, **({"conditions": conditions} if "conditions" in new else {})}
