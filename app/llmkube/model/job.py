"""The Job that fetches a Model's file (LK-2.9)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from app.kube.desired import Job, JobSpec, ObjectMeta, PodSpec, PodTemplateSpec, TemplateMeta
from app.kube.objects import annotations_of
from app.llmkube import names
from app.llmkube.download import (
    EXIT_USELESS,
    EXIT_WRONG_SHA256,
    JOB_SCRIPT,
    Download,
    container,
    job_pod_security,
    volumes,
)
from app.llmkube.model.earlier import DownloadJob
from app.llmkube.model.plan import Plan
from app.settings import Settings

RETRIES = 2
"""New pods after the first; each of them tries several times itself."""

_GIVE_UP = {
    "rules": [
        {
            "action": "FailJob",
            "onExitCodes": {
                "containerName": names.DOWNLOADER,
                "operator": "In",
                "values": [EXIT_USELESS, EXIT_WRONG_SHA256],
            },
        }
    ]
}


FIRST_PAUSE, LONGEST_PAUSE = 300, 3600


def pause(attempt: int) -> int:
    """Seconds that a failed Job stays before the next one: five minutes, doubling to an hour."""
    return min(FIRST_PAUSE << min(attempt - 1, 8), LONGEST_PAUSE)


def attempts(jobs: Iterable[DownloadJob], first: str) -> list[tuple[int, DownloadJob]]:
    """The Jobs for one file with their numbers, the latest first. ``first``: the name of the first one."""
    numbered = [(_number(job), job) for job in jobs]
    mine = [(number, job) for number, job in numbered if job.metadata.name == names.attempt_name(first, number)]
    return sorted(mine, key=lambda item: item[0], reverse=True)


def _number(job: DownloadJob) -> int:
    text = annotations_of(job).get(names.ATTEMPT, "")
    return int(text) if re.fullmatch("[1-9][0-9]{0,5}", text) else 1


def job(plan: Plan, download: Download, attempt: int, keep: str | None, settings: Settings) -> Job:
    """The Job. It has no lifetime after its end: deleted, it would be made anew and download again.

    ``keep``: the cache keys whose files stay, separated by blanks; ``None`` for all.
    """
    downloader = container(download, settings, script=JOB_SCRIPT)
    if keep is not None:
        downloader.env = [*(downloader.env or ()), {"name": names.KEEP_KEYS, **({"value": keep} if keep else {})}]
    return Job(
        metadata=ObjectMeta(
            name=names.attempt_name(plan.job, attempt),
            namespace=plan.namespace,
            labels=names.job_labels(plan.name),
            annotations={names.ATTEMPT: str(attempt)} if attempt > 1 else None,
        ),
        spec=JobSpec(
            backoff_limit=RETRIES,
            pod_failure_policy=_GIVE_UP,
            template=PodTemplateSpec(
                metadata=TemplateMeta(labels=names.job_pod_labels(plan.name)),
                spec=PodSpec(
                    containers=[downloader],
                    volumes=volumes(download, plan.claim, settings),
                    restart_policy="Never",
                    security_context=job_pod_security(settings),
                    automount_service_account_token=False,
                    enable_service_links=False,
                ),
            ),
        ),
    )
