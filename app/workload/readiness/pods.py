"""Problems of one pod, from what its kubelet and the scheduler report.

Waiting reasons are the kubelet's own words (``ImagePullBackOff``, ``CreateContainerConfigError``, ...). Where it
alternates between several for one problem, one is chosen, so that a message does not flicker.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from app.kube.conditions import Condition, find, is_true
from app.kube.objects import ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, ObservedPod
from app.kube.regex import regex
from app.limits import MAX_CAUSE_CHARACTERS, MAX_CONTAINERS, MAX_OUTPUT_CHARACTERS, MAX_READ_CHARACTERS
from app.workload.readiness.cause import Cause, Stage, one_line, reason_word, telling

_VOLUMES = (
    (re.compile(r'persistentvolumeclaim "[^"]*" (?:not found|is being deleted)'), "ClaimNotFound", ""),
    (
        re.compile(
            r'persistentvolumeclaim "[^"]*" bound to non-existent persistentvolume|bound to non-existent pv\(s\)'
        ),
        "ClaimLost",
        ", a volume claim has lost its volume",
    ),
    (
        re.compile(r"unbound immediate PersistentVolumeClaims|didn't find available persistent volumes to bind"),
        "ClaimNotBound",
        ", a volume claim is not bound",
    ),
    (
        re.compile(r"(?:volume|PersistentVolume's) node affinity|no available volume zone"),
        "VolumeUnreachable",
        ", no fitting node reaches its volume",
    ),
)
"""Messages of schedulers about volumes, in different releases, with the reason and its meaning."""
_ADMITTED = ("Evicted", "Preempting", "Terminated", "DeadlineExceeded", "NodeLost")
"""Reasons of pods that were ended after their node had admitted them."""
_NEVER_RAN = ("StartError", "ContainerCannotRun")
"""The command does not exist in the image, or must not be run."""
LWS_NAME = "leaderworkerset.sigs.k8s.io/name"
"""Label of all pods of a LeaderWorkerSet."""
LWS_WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
"""Label with a pod's number in its group; the leader has 0."""
JOB_NAMES = ("batch.kubernetes.io/job-name", "job-name")
"""Labels that the Job controller writes on pods; the second is the older one."""
_REVISIONS = ("leaderworkerset.sigs.k8s.io/template-revision-hash", "pod-template-hash")
"""Labels with the revision of a pod's template, of LeaderWorkerSets and Deployments."""


def counts(pod: ObservedPod) -> bool:
    """Report whether the pod should be ready and is not; ready, finished and deleted pods do not count."""
    if pod.metadata.deletion_timestamp or pod.status.phase == "Succeeded":
        return False
    for condition in pod.status.conditions or ():
        if condition.type == "Ready":
            return condition.status != "True"
    return True


def newest_first(pods: Iterable[ObservedPod]) -> list[list[ObservedPod]]:
    """Group the pods of one workload by pod template, those of the current template first.

    It is the one whose first pod is the youngest: a lost pod of an earlier template may be replaced at any time.
    """
    revisions: dict[str, list[ObservedPod]] = {}
    for pod in pods:
        labels = pod.metadata.labels or {}
        revisions.setdefault(next((labels[key] for key in _REVISIONS if key in labels), ""), []).append(pod)
    return sorted(
        revisions.values(), key=lambda group: min(pod.metadata.creation_timestamp or "" for pod in group), reverse=True
    )


NOT_OURS = "raise resources.limits.memory of that container where you write it, or the LimitRange that sets it"
"""Remedy for the memory of an init container that the family does not limit."""


class Remedies(msgspec.Struct, frozen=True):
    """Remedies for what a pod lacks, in the fields of the user's kind."""

    memory: Mapping[str, str] = msgspec.field(default_factory=dict)
    """By the name of an init container: what to raise if it lacks memory."""
    probe: str = "raise {probe}Probe.failureThreshold"
    """Remedy for a container that needs more time than its ``{probe}``, ``startup`` or ``liveness``, gives it. May name
    the ``{container}``."""


GENERAL = Remedies()


def pod_problems(pod: ObservedPod, remedies: Remedies = GENERAL) -> list[Cause]:
    """Return the problems of one pod that is not ready; at least one.

    They do not name the pod, so that equal problems of many pods become one cause.
    """
    status = pod.status
    if status.phase == "Failed":
        return [_failed(pod)]
    scheduled = find(status.conditions, "PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        return [_unscheduled(scheduled)]
    first, others = (status.init_container_statuses or [])[:MAX_CONTAINERS], status.container_statuses or []
    initialized = any(c.state.waiting is None or c.state.waiting.reason not in _SETTING_UP for c in others)
    problems = [
        problem
        for container in first
        if (problem := _init(container, _limit(pod, container, remedies.memory), initialized=initialized))
    ]
    problems += [problem for container in others[:MAX_CONTAINERS] if (problem := _main(container, remedies))]
    return problems or [_otherwise(pod)]


def _limit(pod: ObservedPod, status: ContainerStatus, memory: Mapping[str, str]) -> str:
    """Return the memory that an init container may use, and what to raise."""
    ended = status.state.terminated or status.last_state.terminated
    if ended is None or ended.reason != "OOMKilled":
        return ""
    steps = (step for step in pod.spec.init_containers or () if step.name == status.name)
    amount = next((step.resources.limits or {} for step in steps), {}).get("memory")
    at = f" at its limit of {amount}" if amount else ""
    return f"{at}; {memory.get(status.name, NOT_OURS)}" if amount else "; its node, or the pod as a whole, has no more"


def being_deleted(pod: ObservedPod) -> Cause:
    """Return the problem of a deleted pod that a StatefulSet, or the strategy Recreate, waits for."""
    text = f"is being deleted; if this lasts, {_node(pod)} does not respond, or a finalizer holds the pod"
    return Cause(Stage.STARTING, text, "PodTerminating")


def failures(pod: ObservedPod) -> Iterator[str]:
    """Describe the failed containers of a Job's pod."""
    for status in _statuses(pod):
        ended = status.state.terminated or status.last_state.terminated
        if ended is not None and ended.exit_code != 0:
            yield f"container {status.name} {_ending(ended)}"


def ran_out(pod: ObservedPod) -> bool:
    """Report whether a failed pod was evicted, or a container of it ran out of memory."""
    return pod.status.reason == "Evicted" or _out_of_memory(pod)


def _out_of_memory(pod: ObservedPod) -> bool:
    ended = (status.state.terminated or status.last_state.terminated for status in _statuses(pod))
    return any(end is not None and end.reason == "OOMKilled" for end in ended)


def _statuses(pod: ObservedPod) -> Iterator[ContainerStatus]:
    yield from pod.status.init_container_statuses or ()
    yield from pod.status.container_statuses or ()


def _failed(pod: ObservedPod) -> Cause:
    """Problem of a pod that will not run again: evicted, preempted, or refused by its node, where nothing ran."""
    status = pod.status
    reason, message = status.reason, one_line(status.message)
    if reason and reason not in _ADMITTED and not (status.init_container_statuses or status.container_statuses):
        text = f"was refused by its node ({reason}): {message}"
        return Cause(Stage.SCHEDULING, text, reason_word(reason, "RefusedByNode"))
    if reason:
        return Cause(Stage.CRASH, f"failed ({reason}): {message}", reason_word(reason, "PodFailed"))
    ended = find(status.conditions, "DisruptionTarget")
    if ended is not None and ended.status == "True":
        text = f"was ended by the cluster ({ended.reason}): {one_line(ended.message)}"
        return Cause(Stage.CRASH, text, reason_word(ended.reason, "PodFailed"))
    word = "OOMKilled" if _out_of_memory(pod) else "PodFailed"
    return Cause(Stage.CRASH, "; ".join(failures(pod)) or f"failed: {message or 'no reason given'}", word)


def _unscheduled(condition: Condition) -> Cause:
    """Problem that the scheduler reports, without the end of most messages, which repeats that no node is available."""
    message, _, _ = one_line(condition.message[: 8 * MAX_CAUSE_CHARACTERS]).partition(" preemption: 0/")
    message = message.removesuffix(" still not schedulable,")
    for pattern, word, why in _VOLUMES if "olume" in message or "pv(s)" in message else ():
        if pattern.search(message):
            return Cause(Stage.CLAIM, f"cannot be scheduled{why}: {message}", word)
    reason = reason_word(condition.reason, "Unschedulable")
    return Cause(Stage.SCHEDULING, f"cannot be scheduled: {message or reason}", reason)


_IMAGE_REASONS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
_SETTING_UP = frozenset({"", "ContainerCreating", "PodInitializing"})
_BACK_OFF = regex(
    r'Back-off pulling image "[^"]*"'
    r"(?:: (?:(?P<reason>ErrImagePull|RegistryUnavailable|SignatureValidationFailed): )?(?P<words>.*))?"
)
"""Message of a kubelet between two attempts. Since 1.32 it has the reason and the message of the last one."""
_RPC = regex(r"^rpc error: code = [A-Za-z]+ desc = ")


def _init(status: ContainerStatus, limit: str, *, initialized: bool) -> Cause | None:
    """Problem of an init container; ``None`` if it is done, has not been started, or is a sidecar that is ready.

    A kubelet calls every running one started, except one that waits for its startup probe, which sidecars alone have.
    """
    waiting, running, ended = status.state.waiting, status.state.running, status.state.terminated
    if (ended is not None and ended.exit_code == 0) or status.ready:
        return None
    last = ended or status.last_state.terminated
    if last is not None and last.exit_code != 0 and (crash := _crash(status, "init container", limit)):
        return crash
    if waiting is not None:
        return _waiting(status, waiting, "init container")
    if running is None:
        return None
    if initialized or status.started is False:
        return _unanswered(status, "init container")
    return Cause(Stage.STARTING, f"init container {status.name} is running", "Initializing")


def _main(status: ContainerStatus, remedies: Remedies) -> Cause | None:
    """Problem of a container that is not ready; ``None`` if it is ready or has no state yet."""
    if status.ready:
        return None
    if crash := _crash(status, "container", remedies=remedies):
        return crash
    if status.state.waiting is not None:
        return _waiting(status, status.state.waiting, "container")
    return None if status.state.running is None else _unanswered(status, "container")


def _unanswered(status: ContainerStatus, what: str) -> Cause:
    """Problem of a container that runs and does not answer a probe."""
    text = f"{what} {status.name} is running, but its"
    if status.started is False:
        return Cause(Stage.PROBE, f"{text} startup probe fails so far", "StartupProbe")
    return Cause(Stage.PROBE, f"{text} readiness probe fails", "ReadinessProbeFailed")


def _waiting(status: ContainerStatus, waiting: ContainerStateWaiting, what: str) -> Cause | None:
    """Problem of a container that could not be created; ``None`` while it is being created."""
    if waiting.reason in _SETTING_UP:
        return None
    message = one_line(waiting.message)
    if waiting.reason in _IMAGE_REASONS:
        back_off, reason = _BACK_OFF.fullmatch(message), waiting.reason
        if back_off is not None:
            reason = back_off["reason"] or reason
            message = back_off["words"] or f"{message}; its events have the registry's answer"
        text = f"{what} {status.name} cannot pull its image: {_RPC.sub('', message)}".rstrip(": ")
        return Cause(Stage.IMAGE, text, "ImagePullBackOff" if reason == "ErrImagePull" else reason)
    text = f"{what} {status.name} cannot be created ({waiting.reason}): {message}".rstrip(": ")
    return Cause(Stage.CONFIGURATION, text, reason_word(waiting.reason, "CreateContainerError"))


_SIGNALS = (137, 143)
"""Exit codes after SIGKILL and SIGTERM."""
_EXIT_CODES = {
    126: "a command cannot be executed",
    127: "a command was not found",
    132: "SIGILL, the CPU lacks an instruction of the program",
    134: "SIGABRT, the program aborted itself",
    136: "SIGFPE, an arithmetic error of the program",
    139: "SIGSEGV, the program or a driver is broken",
}
"""Exit codes of shells and signals, for containers that write nothing themselves."""


def _crash(status: ContainerStatus, what: str, limit: str = "", remedies: Remedies = GENERAL) -> Cause | None:
    """Problem of a container that terminated, now or before its last restart: a restart proves nothing yet.

    ``limit`` are words about its memory.
    Exit code 0 alone does not count; a container that keeps exiting so is in ``CrashLoopBackOff``.
    """
    ended = status.state.terminated or _before(status)
    if ended is None:
        return None
    if ended.exit_code == 0:
        return _ended_well(status, what)
    text = f"{what} {status.name} {_ending(ended)}"
    if ended.reason == "OOMKilled":
        return Cause(Stage.CRASH, text + limit, ended.reason)
    if ended.reason in _NEVER_RAN:
        return Cause(Stage.CONFIGURATION, text, ended.reason)
    if what.startswith("init"):
        return Cause(Stage.CRASH, text, "InitContainerFailed")
    if ended.exit_code in _SIGNALS and ended.reason in ("", "Error"):
        return Cause(Stage.CRASH, f"{what} {status.name} {_by_probe(status, ended, remedies)}", "CrashLoopBackOff")
    return Cause(Stage.CRASH, text, "CrashLoopBackOff")


def _by_probe(status: ContainerStatus, ended: ContainerStateTerminated, remedies: Remedies) -> str:
    """Describe the end of a container by a signal: one that has never started was most likely ended by its probe."""
    probe = {False: "startup", True: "liveness", None: "liveness or startup"}[status.started]
    remedy = " or ".join(remedies.probe.format(probe=word, container=status.name) for word in probe.split(" or "))
    text = f"exited with code {ended.exit_code}: the kubelet ends containers so after failed {probe} probes"
    text += f", which its events show; then {remedy}"
    words = telling(ended.message[-MAX_READ_CHARACTERS:], MAX_OUTPUT_CHARACTERS)
    return f"{text}; the end of its output: {words}" if words else text


def _ended_well(status: ContainerStatus, what: str) -> Cause | None:
    waiting = status.state.waiting
    if waiting is not None and waiting.reason == "CrashLoopBackOff":
        text = f"{what} {status.name} keeps exiting without an error; a server must keep running"
        return Cause(Stage.CRASH, text, waiting.reason)
    if status.state.terminated is not None:
        return Cause(Stage.STARTING, f"{what} {status.name} is about to be restarted", "ContainerRestarting")
    return None


def _before(status: ContainerStatus) -> ContainerStateTerminated | None:
    """Return the last termination, unless the container waits for something other than its restart.

    One that cannot be started is in ``RunContainerError`` at each attempt, and in ``CrashLoopBackOff`` between them.
    """
    waiting, last = status.state.waiting, status.last_state.terminated
    if waiting is None or waiting.reason in ("CrashLoopBackOff", *_SETTING_UP):
        return last
    return last if waiting.reason == "RunContainerError" and last is not None and last.reason in _NEVER_RAN else None


def _ending(ended: ContainerStateTerminated) -> str:
    if ended.reason == "OOMKilled":
        return f"was killed, out of memory (exit code {ended.exit_code})"
    if ended.reason == "Unknown":
        return f"was lost when its node or the container runtime restarted (exit code {ended.exit_code})"
    why = f" ({ended.reason})" if ended.reason and ended.reason != "Error" else ""
    message = telling(ended.message[-MAX_READ_CHARACTERS:], MAX_OUTPUT_CHARACTERS)
    words = message or _EXIT_CODES.get(ended.exit_code, "")
    return f"exited with code {ended.exit_code}{why}" + (f": {words}" if words else "")


def _otherwise(pod: ObservedPod) -> Cause:
    """Problem of a pod whose containers have none."""
    status, containers = pod.status, pod.status.container_statuses or ()
    if any(container.state.waiting is not None for container in containers):
        text = (
            "its containers are being created; if this lasts, its events say which volume cannot be attached or mounted"
        )
        if is_true(status.conditions, "PodReadyToStartContainers"):
            text = "its images are being pulled and its containers created; if this lasts, its events name the image"
        return Cause(Stage.STARTING, text, "ContainerCreating")
    if containers and all(container.ready for container in containers):
        return _held_back(pod)
    ready = find(status.conditions, "Ready")
    if status.phase == "Running" and ready is not None and ready.message:
        return Cause(Stage.PROBE, f"is not ready: {one_line(ready.message)}", reason_word(ready.reason, "NotReady"))
    if is_true(status.conditions, "PodScheduled"):
        return Cause(Stage.STARTING, "is assigned to a node and about to start", "PodStarting")
    return Cause(Stage.STARTING, "is waiting for the scheduler", "PodPending")


def _held_back(pod: ObservedPod) -> Cause:
    """Problem of a pod whose containers are ready: a closed readiness gate, or a lost node."""
    for gate in pod.spec.readiness_gates or ():
        condition = find(pod.status.conditions, gate.condition_type)
        if condition is None or condition.status != "True":
            why = f": {one_line(condition.message)}" if condition is not None and condition.message else ""
            text = f"its containers are ready, but its readiness gate {gate.condition_type} is not{why}"
            return Cause(Stage.PROBE, text, "ReadinessGatesNotReady")
    ready = find(pod.status.conditions, "Ready")
    if ready is not None and ready.message:
        text = f"its containers are ready, but it is not: {one_line(ready.message)}"
        return Cause(Stage.PROBE, text, reason_word(ready.reason, "NotReady"))
    return Cause(Stage.PROBE, f"its containers are ready, but {_node(pod)} is not ready", "NodeNotReady")


def _node(pod: ObservedPod) -> str:
    return f"node {pod.spec.node_name}" if pod.spec.node_name else "its node"
