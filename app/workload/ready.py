"""Why a workload is not ready: causes read from observed objects, in the order in which a pod lives.

Every family's ``Ready`` condition carries the text this module makes. The texts are the cluster's
own words where there are any. Nothing counts restarts or seconds: a message only changes when the trouble does.

Use::

    causes = [*deployment_causes(deployment), *pod_causes(pods)]
    if causes:
        conditions.set("Ready", False, ready_reason(causes), ready_message(causes))
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from app.kube.conditions import Condition, find, is_true
from app.kube.objects import ObservedClaim, ObservedDeployment, ObservedJob, ObservedPod
from app.limits import MAX_CAUSE_CHARACTERS, MAX_CAUSES, MAX_PROBLEMS
from app.workload.cause import Cause, Stage, bounded, one_line, reason_word
from app.workload.pods import Trouble, counts, failures, newest_first, troubles
from app.workload.rollout import ROLLING_OUT


def ordered(causes: Iterable[Cause]) -> list[Cause]:
    """The causes as a pod lives, then by text; each one once."""
    return sorted(dict.fromkeys(causes), key=lambda cause: (cause.stage, cause.text, cause.reason))


def ready_message(causes: Iterable[Cause]) -> str:
    """One line for the ``Ready`` condition: every cause, in order, separated by semicolons, of bounded length."""
    sequence = ordered(causes)
    texts = [bounded(cause.text, MAX_CAUSE_CHARACTERS) for cause in sequence[:MAX_CAUSES]]
    rest = len(sequence) - MAX_CAUSES
    if rest > 0:
        texts.append(f"and {rest} more")
    return "; ".join(texts)


def ready_reason(causes: Iterable[Cause], default: str = "NotReady", *, replacing: bool = False) -> str:
    """The reason of the first cause; of a rollout that is replacing something, that it is one.

    Whatever its pods suffer from, what was there before may still serve. A mistake of the user's comes before that.
    """
    sequence = ordered(causes)
    if replacing and not any(cause.stage is Stage.SPEC for cause in sequence):
        return ROLLING_OUT
    return sequence[0].reason if sequence else default


# Deployments.


def deployment_causes(deployment: ObservedDeployment) -> list[Cause]:
    """What a Deployment says of itself: pods that are refused, a rollout that takes too long, a status that lags."""
    name, conditions, causes = deployment.metadata.name, deployment.status.conditions, []
    refused = find(conditions, "ReplicaFailure")
    if refused is not None and refused.status == "True":
        causes.append(_refused(name, refused))
    progressing = find(conditions, "Progressing")
    if progressing is not None and progressing.status == "False":
        text = f"Deployment {name} does not progress: {one_line(progressing.message)}"
        causes.append(Cause(Stage.PROBE, text, reason_word(progressing.reason, "ProgressDeadlineExceeded")))
    return causes


_RANDOM_POD = re.compile(r'^(?:Error creating: )?pods "[^"]*" is forbidden: ')


def _refused(name: str, condition: Condition) -> Cause:
    """Pods that cannot be created. The name of the refused pod is random, hence left out."""
    message = _RANDOM_POD.sub("", one_line(condition.message))
    reason = "QuotaExceeded" if "exceeded quota" in message else reason_word(condition.reason, "FailedCreate")
    return Cause(Stage.QUOTA, f"Deployment {name} cannot create pods: {message}", reason)


# Claims and Jobs.


def claim_cause(name: str, claim: ObservedClaim | None) -> Cause | None:
    """Why a PersistentVolumeClaim cannot be used, ``None`` when it can. A claim that is absent says so."""
    if claim is None:
        return Cause(Stage.CLAIM, f"PersistentVolumeClaim {name} does not exist", "ClaimNotFound")
    if claim.status.phase == "Bound":
        return None
    if claim.status.phase == "Lost":
        return Cause(Stage.CLAIM, f"PersistentVolumeClaim {name} has lost its volume", "ClaimLost")
    return Cause(Stage.CLAIM, f"PersistentVolumeClaim {name} has no volume yet", "ClaimNotBound")


def job_causes(job: ObservedJob, pods: Iterable[ObservedPod], stage: Stage = Stage.MODEL) -> list[Cause]:
    """Why a Job has not completed: its failure with its pods' last words, else what holds up its pods."""
    if is_true(job.status.conditions, "Complete"):
        return []
    failed = find(job.status.conditions, "Failed")
    if failed is None or failed.status != "True":
        return pod_causes(pods)
    words = sorted({words for pod in pods for words in failures(pod)})
    detail = "; ".join([one_line(failed.message), *words]).strip("; ")
    text = f"Job {job.metadata.name} failed" + (f": {detail}" if detail else "")
    return [Cause(stage, text, reason_word(failed.reason, "JobFailed"))]


# Pods.


def pod_causes(pods: Iterable[ObservedPod]) -> list[Cause]:
    """Why the pods of one workload are not ready. Pods that are ready, finished or being deleted count for nothing.

    Pods of an earlier template count only when those of the present one have no trouble: they are on their way out.
    Pods with the same trouble make one cause: ``pod a: …``, or ``3 pods: …``.
    """
    return next((causes for revision in newest_first(pods) if (causes := _revision_causes(revision))), [])


def _revision_causes(pods: Iterable[ObservedPod]) -> list[Cause]:
    shown = ((trouble, pod) for pod in pods if counts(pod) for trouble in dict.fromkeys(troubles(pod)))
    found: dict[Trouble, list[str]] = {}
    for trouble, pod in islice(shown, MAX_PROBLEMS):
        found.setdefault(trouble, []).append(pod.metadata.name)
    return ordered(
        Cause(trouble.stage, one_line(f"{_pods(names)}: {trouble.text}"), trouble.reason)
        for trouble, names in found.items()
    )


def _pods(names: list[str]) -> str:
    return f"pod {names[0]}" if len(names) == 1 else f"{len(names)} pods"
