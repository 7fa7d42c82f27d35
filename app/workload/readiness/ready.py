"""Why a workload is not ready: causes from observed objects, in the order of a pod's life.

The message of every family's ``Ready`` condition is built here, from the cluster's own messages where there are any.
It has no number of restarts or seconds, so it changes only when the problem does.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice

from app.kube.conditions import Condition, find, is_true
from app.kube.objects import ObservedClaim, ObservedDeployment, ObservedJob, ObservedLeaderWorkerSet, ObservedPod
from app.kube.regex import regex
from app.limits import (
    MAX_CAUSE_CHARACTERS,
    MAX_CAUSES,
    MAX_PROBLEMS,
    MAX_READY_CHARACTERS,
    MAX_STEADY_PROBLEMS,
)
from app.workload.readiness.cause import Cause, Stage, reason_word, shortened, steady
from app.workload.readiness.pods import (
    GENERAL,
    Remedies,
    being_deleted,
    counts,
    failures,
    newest_first,
    pod_problems,
    ran_out,
)
from app.workload.readiness.rollout import EARLIER, ROLLING_OUT, group_rollout, rollout

_RANDOM_POD = regex(r'^(?:Error creating: )?(?:pods "[^"]*" is forbidden|Pod "[^"]*" is invalid): ')


def ordered(causes: Iterable[Cause]) -> list[Cause]:
    return sorted(dict.fromkeys(causes), key=lambda cause: (cause.stage, cause.text, cause.reason))


def ready_message(causes: Iterable[Cause], counted: Iterable[str] = ()) -> str:
    """Build the message of ``Ready``: the causes in order, separated by semicolons, of bounded length.

    ``counted``: how many replicas are ready, which follows the causes.
    """
    sequence = ordered(_with_held_devices([*causes]))
    texts = [shortened(cause.text, MAX_CAUSE_CHARACTERS) for cause in sequence[:MAX_CAUSES]]
    lengths = accumulate(len(text) + 2 for text in texts)
    texts = texts[: max(1, sum(length <= MAX_READY_CHARACTERS for length in lengths))]
    rest = len(sequence) - len(texts)
    if rest > 0:
        texts.append(f"and {rest} more")
    texts += [count for count in counted if count and not any(count in text for text in texts)]
    return "; ".join(texts)


_DEVICE = regex(r"Insufficient [a-z0-9.-]+/")
"""The scheduler's words for devices, whose names have a domain; those of CPU and memory have none."""
_HELD = Cause(
    Stage.SCHEDULING,
    "the pods of the earlier revision hold the devices that the new ones wait for: free as many on the nodes, or set "
    "replicas to 0 and back",
    ROLLING_OUT,
)


def _with_held_devices(causes: list[Cause]) -> list[Cause]:
    """Add that a rollout waits for itself: nothing else reports it, and it lasts until the user acts."""
    waits = any(cause.stage is Stage.SCHEDULING and _DEVICE.search(cause.text) for cause in causes)
    replaces = any(cause.reason == ROLLING_OUT and cause.text.endswith(EARLIER) for cause in causes)
    return [*causes, _HELD] if waits and replaces else causes


def ready_reason(causes: Iterable[Cause], *, replacing: bool = False) -> str:
    """Return the reason of the first cause, or ``RollingOut`` while pods are replaced and the spec has no mistake.

    That pods are late is the last of the causes, and the reason if they have not failed.
    """
    sequence = ordered(causes)
    if replacing and not any(cause.stage is Stage.SPEC for cause in sequence):
        return ROLLING_OUT
    if sequence and sequence[-1].stage is Stage.LATE and sequence[0].stage >= Stage.PROBE:
        return sequence[-1].reason
    return sequence[0].reason if sequence else "NotReady"


def deployment_causes(deployment: ObservedDeployment) -> Iterator[Cause]:
    """Causes in a Deployment: a rollout that is paused or exceeds its deadline, and refused pods."""
    name, conditions = deployment.metadata.name, deployment.status.conditions
    progress = rollout(deployment, was_ready=True)
    if deployment.spec.paused and (progress.replacing or progress.updated < progress.desired):
        text = f"Deployment {name} is paused: resume it with kubectl rollout resume deployment/{name}"
        yield Cause(Stage.SPEC, text, "DeploymentPaused")
    refused = find(conditions, "ReplicaFailure")
    if refused is not None and refused.status == "True":
        yield _refused(name, refused)
    if (progressing := no_progress(conditions)) is not None:
        stage = Stage.LATE if progressing.reason == _LATE else Stage.QUOTA  # no ReplicaSet can be created
        text = f"Deployment {name} does not progress: {steady(progressing.message)}"
        yield Cause(stage, text, reason_word(progressing.reason, _LATE))


_LATE = "ProgressDeadlineExceeded"


def no_progress(conditions: Sequence[Condition] | None) -> Condition | None:
    """Return the condition of a Deployment whose rollout is stuck."""
    progressing = find(conditions, "Progressing")
    return progressing if progressing is not None and progressing.status == "False" else None


def group_causes(group: ObservedLeaderWorkerSet) -> list[Cause]:
    """Causes in a LeaderWorkerSet: no controller has reported on it."""
    if group.status.conditions:
        return []
    text = f"LeaderWorkerSet {group.metadata.name} has no status; if this lasts, its controller is not running"
    return [Cause(Stage.STARTING, text, "WaitingForController")]


def missing_pods(group: ObservedLeaderWorkerSet, pods: Collection[ObservedPod] | None) -> list[Cause]:
    """Return the cause of a LeaderWorkerSet that lacks pods, and has no condition about that.

    ``pods`` are those of all its groups; ``None`` where pods are not watched, so only groups are counted.
    """
    size, desired = group.spec.leader_worker_template.size or 1, group_rollout(group).desired
    existing = group.status.replicas * size if pods is None else len(pods)
    if existing >= desired * size or not group.status.conditions:
        return []
    text = f"LeaderWorkerSet {group.metadata.name} does not have all its pods"
    text += "; if this lasts, the events of its StatefulSets have the reason"
    return [Cause(Stage.STARTING, text, "PodsMissing")]


def _refused(name: str, condition: Condition) -> Cause:
    """Cause of pods that cannot be created, without the random name of the refused pod."""
    message = _RANDOM_POD.sub("", steady(condition.message))
    reason = "QuotaExceeded" if "exceeded quota" in message else reason_word(condition.reason, "FailedCreate")
    return Cause(Stage.QUOTA, f"Deployment {name} cannot create pods: {message}", reason)


def claim_cause(name: str, claim: ObservedClaim | None) -> Cause | None:
    if claim is None:
        return Cause(Stage.CLAIM, f"PersistentVolumeClaim {name} does not exist", "ClaimNotFound")
    if claim.status.phase == "Bound":
        return None
    if claim.status.phase == "Lost":
        return Cause(Stage.CLAIM, f"PersistentVolumeClaim {name} has lost its volume", "ClaimLost")
    text = f"PersistentVolumeClaim {name} has no volume yet; if this lasts, its events have the reason"
    return Cause(Stage.CLAIM, text, "ClaimNotBound")


def job_causes(job: ObservedJob, pods: Iterable[ObservedPod]) -> list[Cause]:
    """Causes of a Job that has not completed: its failure and termination messages, or its pods' problems."""
    if is_true(job.status.conditions, "Complete"):
        return []
    failed = find(job.status.conditions, "Failed")
    if failed is None or failed.status != "True":
        return pod_causes(pods)
    messages = sorted({message for pod in pods for message in failures(pod)})[:MAX_CAUSES]
    detail = "; ".join([*map(steady, [failed.message, *messages])]).strip("; ")
    text = f"Job {job.metadata.name} failed" + (f": {detail}" if detail else "")
    return [Cause(Stage.MODEL, text, reason_word(failed.reason, "JobFailed"))]


def pod_causes(pods: Iterable[ObservedPod], *, terminating: bool = False, remedies: Remedies = GENERAL) -> list[Cause]:
    """Causes of pods of one workload that are not ready; ready, finished and deleted pods have none.

    Pods of an earlier template count only if those of the current one have no problem: they are being replaced.
    Pods with the same problem make one cause: ``pod a: …``, or ``3 pods: …``. With ``terminating``, the workload is not
    complete: if nothing else explains that, it waits for deleted pods to be gone.
    """
    revisions = newest_first(pods)
    causes = next((causes for revision in revisions if (causes := _revision_causes(revision, remedies))), [])
    if causes or not terminating:
        return causes
    deleted = (pod for pod in chain.from_iterable(revisions) if pod.metadata.deletion_timestamp)
    return _by_problem((being_deleted(pod), pod) for pod in islice(deleted, MAX_PROBLEMS))


def _revision_causes(pods: Iterable[ObservedPod], remedies: Remedies) -> list[Cause]:
    """A pod that failed is kept by Kubernetes: it counts until a pod created after it has a lasting problem.

    The latest one that ran out of something counts even then: the later pod may be without a node only because of it.
    """
    counted = [*filter(counts, pods)]
    alive = [*islice(_problems((pod for pod in counted if pod.status.phase != "Failed"), remedies), MAX_PROBLEMS)]
    lasting = max((_created(pod) for problem, pod in alive if problem.stage is not Stage.STARTING), default="")
    failed = [pod for pod in counted if pod.status.phase == "Failed"]
    latest = max(filter(ran_out, failed), key=_created, default=None)
    hidden = [latest] if latest is not None and _created(latest) <= lasting else []
    earlier = (
        (Cause(Stage.STARTING, problem.text, problem.reason), pod) for problem, pod in _problems(hidden, remedies)
    )
    shown = _problems((pod for pod in failed if _created(pod) > lasting), remedies)
    return _by_problem(islice(chain(alive, shown, earlier), MAX_PROBLEMS))


def _by_problem(problems: Iterable[tuple[Cause, ObservedPod]]) -> list[Cause]:
    reported: dict[Cause, list[str]] = {}
    for problem, pod in problems:
        reported.setdefault(problem, []).append(pod.metadata.name)
    names_by_problem: dict[Cause, list[str]] = {}
    for number, (problem, names) in enumerate(reported.items()):
        text = steady(problem.text) if number < MAX_STEADY_PROBLEMS else shortened(problem.text, MAX_CAUSE_CHARACTERS)
        names_by_problem.setdefault(Cause(problem.stage, text, problem.reason), []).extend(names)
    causes = []
    for problem, names in names_by_problem.items():
        subject = f"pod {names[0]}" if len(names) == 1 else f"{len(names)} pods"
        causes.append(Cause(problem.stage, f"{subject}: {problem.text}", problem.reason))
    return ordered(causes)


def _problems(pods: Iterable[ObservedPod], remedies: Remedies) -> Iterator[tuple[Cause, ObservedPod]]:
    return ((problem, pod) for pod in pods for problem in dict.fromkeys(pod_problems(pod, remedies)))


def _created(pod: ObservedPod) -> str:
    return pod.metadata.creation_timestamp or ""
