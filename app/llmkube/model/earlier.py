"""Files of earlier sources on a Model's claim: which of them a download Job leaves when its own file is there.

The Job removes the other ones. It is told when it is made, and never again: a Job is not changed. So nothing goes that
a pod of the Model was started with by then, and the source before stays until the next change of source.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

import msgspec

from app.kube.objects import Observed, ObservedJob
from app.llmkube.model.claims import Downloader, ModelPod, users, variable
from app.llmkube.model.plan import Plan
from app.llmkube.names import DOWNLOADER, KEEP_KEYS
from app.settings import Settings

_KEY = re.compile(r"[0-9a-f]{16}")


class _PodSpec(Observed):
    containers: list[Downloader] | None = None


class _Template(Observed):
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _JobSpec(Observed):
    template: _Template = msgspec.field(default_factory=_Template)


class DownloadJob(ObservedJob):
    """A Model's Job, as far as it says which files stay."""

    spec: _JobSpec = msgspec.field(default_factory=_JobSpec)


def told(job: DownloadJob) -> str | None:
    """What an observed Job was told to keep, as it is written; ``None`` where it keeps all."""
    containers = job.spec.template.spec.containers or ()
    return next((variable(container, KEEP_KEYS) for container in containers if container.name == DOWNLOADER), None)


def keys_to_keep(
    plan: Plan, before: str, failed: DownloadJob | None, pods: Iterable[ModelPod] | None, settings: Settings
) -> str | None:
    """What a new Job is told: cache keys, separated by blanks. ``None``: all files stay.

    They do where others may keep theirs (a claim that is not the Model's own), where nobody sees the pods, and where
    the operator wants it. ``before``: the cache key of the Model's status. ``failed``: the Job that the new one
    follows, which may have been told of a key that the status does not have any more.
    """
    own = plan.makes_claim and plan.claim != settings.llmkube_model_cache_claim
    if settings.llmkube_keep_old_files or not own or pods is None:
        return None
    serving = (container for pod in users(plan.claim, pods) for container in pod.spec.init_containers or ())
    paths = (variable(container, "MODEL_PATH") or "" for container in serving)
    keys = {before, *(posixpath.basename(posixpath.dirname(path)) for path in paths)}
    keys.update(((failed and told(failed)) or "").split())
    return " ".join(sorted(key for key in keys - {plan.source.cache_key} if _KEY.fullmatch(key)))
