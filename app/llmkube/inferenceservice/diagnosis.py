"""Failures of model downloads and GPU drivers, which programs watch for by a condition's reason. Source: LK-5.8.

Only the output of a container tells them apart: what the tools and libraries print is matched here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.kube.conditions import Conditions
from app.kube.objects import ContainerStatus, ObservedPod
from app.limits import MAX_QUOTE_CHARACTERS
from app.llmkube import names
from app.llmkube.inferenceservice.types import ConditionType, DriverReason, TransferReason
from app.workload.cause import bounded, one_line

_TRANSFER: Mapping[str, tuple[str, ...]] = {
    TransferReason.UNTRUSTED: (
        "ssl certificate problem",
        "ssl certificate openssl verify result",
        "unable to get local issuer certificate",
        "self signed certificate",
        "self-signed certificate",
        "certificate verify failed",
        "(curl 60,",
    ),
    TransferReason.UNAUTHORIZED: (
        *("returned error: 401", "returned error: 403", "401 unauthorized", "403 forbidden", "http 401)", "http 403)"),
        *("signaturedoesnotmatch", "invalidaccesskeyid", "accessdenied"),
    ),
    TransferReason.NOT_FOUND: (*("returned error: 404", "404 not found", "http 404)", "nosuchkey", "nosuchbucket"),),
    TransferReason.OUT_OF_SPACE: ("no space left on device", "disk quota exceeded", "the volume is full"),
    TransferReason.UNREACHABLE: (
        *("could not resolve host", "failed to connect to", "connection refused", "connection timed out"),
        "cannot connect (curl ",
    ),
}
"""What curl, object stores and our downloader print, in lower case; the first reason that matches counts."""

_DRIVER = (
    "driver on your system is too old",
    "cuda driver version is insufficient",
    "cudaerrorinsufficientdriver",
    "cuda_error_insufficient_driver",
)
"""What CUDA and PyTorch print where the node's driver is older than the image needs, in lower case."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A failure that a container's output tells, with the line that does."""

    reason: str
    line: str


def transfer_finding(texts: Iterable[str]) -> Finding | None:
    """Return why a download failed, by the output of downloaders."""
    return next(filter(None, (_match(text, _TRANSFER) for text in texts)), None)


def set_transfer(conditions: Conditions, pods: Sequence[ObservedPod], *, ready: bool) -> None:
    """Write ``ModelTransferHealthy``: false while a download fails, true once it no longer does."""
    statuses = [status for pod in pods for status in pod.status.init_container_statuses or () if _downloads(status)]
    finding = transfer_finding(_outputs(statuses))
    finished = any(s.state.terminated is not None and s.state.terminated.exit_code == 0 for s in statuses)
    if finding is not None:
        message = f"the model cannot be downloaded: {finding.line}"
        conditions.set(ConditionType.MODEL_TRANSFER_HEALTHY, False, finding.reason, message)
    elif (ready or finished) and conditions.get(ConditionType.MODEL_TRANSFER_HEALTHY) is not None:
        conditions.set(ConditionType.MODEL_TRANSFER_HEALTHY, True, TransferReason.SUCCEEDED, "the model is downloaded")


def set_driver(conditions: Conditions, pods: Sequence[ObservedPod], *, ready: bool) -> None:
    """Write ``DriverCompatible``: false while a server ends for want of a newer driver, true once one starts."""
    statuses = [status for pod in pods for status in pod.status.container_statuses or ()]
    matches = (_match(text, {DriverReason.INSUFFICIENT: _DRIVER}) for text in _outputs(statuses))
    finding = next(filter(None, matches), None)
    if finding is not None:
        message = f"the node's GPU driver is too old for the image: {finding.line}"
        conditions.set(ConditionType.DRIVER_COMPATIBLE, False, finding.reason, message)
    elif (ready or any(s.started for s in statuses)) and conditions.get(ConditionType.DRIVER_COMPATIBLE) is not None:
        conditions.set(ConditionType.DRIVER_COMPATIBLE, True, DriverReason.STARTED, "the server has started")


def _downloads(status: ContainerStatus) -> bool:
    return status.name in (names.DOWNLOADER, names.DRAFT_DOWNLOADER)


def _outputs(statuses: Iterable[ContainerStatus]) -> Iterator[str]:
    """Yield the ends of the logs of containers that failed and have not succeeded since."""
    for status in statuses:
        ended = status.state.terminated or status.last_state.terminated
        if ended is not None and ended.exit_code != 0 and not status.ready:
            yield ended.message


def _match(text: str, known: Mapping[str, tuple[str, ...]]) -> Finding | None:
    for reason, parts in known.items():
        for line in text.splitlines():
            if any(part in line.lower() for part in parts):
                return Finding(reason, bounded(one_line(line), MAX_QUOTE_CHARACTERS))
    return None
