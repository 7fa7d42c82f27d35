"""What a download Job and its pods tell: the file's size and checksum, or why there is no file.

The downloader writes one JSON object as its termination message when it succeeds; when it fails, the message is the end
of its log (LK-2.9.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from app.kube.conditions import find, is_true
from app.kube.objects import ContainerStateTerminated, ObservedJob, ObservedPod
from app.llmkube import names
from app.llmkube.download import EXIT_WRONG_SHA256

_JOB_LABELS = ("batch.kubernetes.io/job-name", "job-name")
"""Where the Job controller writes its name on pods; the second is the older one."""

_UNITS = "KMGTPE"


class Report(msgspec.Struct):
    """What the downloader says of the file."""

    size: int = 0
    sha256: str = ""
    etag: str = ""


_DECODER = msgspec.json.Decoder(Report)


def pods_of(job: str, pods: Iterable[ObservedPod]) -> list[ObservedPod]:
    """The pods of the Job of that name: a Model's earlier Jobs may still have some."""
    return [pod for pod in pods if any((pod.metadata.labels or {}).get(label) == job for label in _JOB_LABELS)]


def report(pods: Iterable[ObservedPod]) -> Report | None:
    """The report of a pod that succeeded, if one is there and readable."""
    for ended in _endings(pods):
        if ended.exit_code == 0 and ended.message:
            try:
                return _DECODER.decode(ended.message)
            except msgspec.DecodeError:
                continue
    return None


def refreshed(pods: Iterable[ObservedPod]) -> Report | None:
    """The latest report of serving pods' init containers: with ``OnChange`` they may have fetched another file."""
    ended = [
        status.state.terminated
        for pod in pods
        for status in pod.status.init_container_statuses or ()
        if status.name == names.DOWNLOADER and status.state.terminated and status.state.terminated.exit_code == 0
    ]
    for latest in sorted(ended, key=lambda end: (end.finished_at or "", end.message), reverse=True):
        try:
            return _DECODER.decode(latest.message)
        except msgspec.DecodeError:
            continue
    return None


def complete(job: ObservedJob) -> bool:
    return is_true(job.status.conditions, "Complete")


def failed_at(job: ObservedJob) -> str | None:
    """When the Job gave up, ``None`` while it has not."""
    condition = find(job.status.conditions, "Failed")
    return condition.last_transition_time if condition is not None and condition.status == "True" else None


def wrong_sha256(job: ObservedJob, pods: Iterable[ObservedPod]) -> bool:
    """Whether the Job gave up because the file is not the one that the Model demands.

    The pods say so by their exit code. Where pods are not watched, the Job's own message names the code.
    """
    if any(ended.exit_code == EXIT_WRONG_SHA256 for ended in _endings(pods)):
        return True
    condition = find(job.status.conditions, "Failed")
    return condition is not None and f"exit code {EXIT_WRONG_SHA256}" in condition.message


def _endings(pods: Iterable[ObservedPod]) -> Iterable[ContainerStateTerminated]:
    for pod in sorted(pods, key=lambda pod: pod.metadata.name):
        for status in pod.status.container_statuses or ():
            ended: Any = status.state.terminated or status.last_state.terminated
            if ended is not None:
                yield ended


def human_size(size: int) -> str:
    """``1.5 KiB``; bytes below 1024 (LK-2.5)."""
    if size < 1024:
        return f"{size} B"
    value, unit = size / 1024, 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {_UNITS[unit]}iB"
