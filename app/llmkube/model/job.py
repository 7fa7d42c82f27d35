"""The Job that fetches a Model's file (spec 2.9)."""

from __future__ import annotations

from app.kube.desired import Job, JobSpec, ObjectMeta, PodSpec, PodTemplateSpec, TemplateMeta
from app.llmkube import names
from app.llmkube.download import (
    EXIT_USELESS,
    EXIT_WRONG_SHA256,
    Download,
    container,
    default_pod_security,
    volumes,
)
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


def job(plan: Plan, download: Download, settings: Settings) -> Job:
    """The Job. It has no lifetime after its end: deleted, it would be made anew and download again (spec 2.9.3)."""
    return Job(
        metadata=ObjectMeta(name=plan.job, namespace=plan.namespace, labels=names.job_labels(plan.name)),
        spec=JobSpec(
            backoff_limit=RETRIES,
            pod_failure_policy=_GIVE_UP,
            template=PodTemplateSpec(
                metadata=TemplateMeta(labels=names.job_pod_labels(plan.name)),
                spec=PodSpec(
                    containers=[container(download, settings)],
                    volumes=volumes(download, plan.claim, settings),
                    restart_policy="Never",
                    security_context=default_pod_security(settings),
                    automount_service_account_token=False,
                    enable_service_links=False,
                ),
            ),
        ),
    )
