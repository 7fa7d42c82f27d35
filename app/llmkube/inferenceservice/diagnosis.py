"""Failures of model downloads and GPU drivers as reasons of conditions, by the output of containers. Source: LK-5.7."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from app.kube.conditions import Conditions
from app.kube.objects import ContainerStatus, ObservedPod
from app.kube.regex import regex
from app.limits import (
    MAX_CONTAINERS,
    MAX_PROBLEMS,
    MAX_QUOTE_CHARACTERS,
    MAX_READ_CHARACTERS,
    MAX_STEADY_PROBLEMS,
)
from app.llmkube import names
from app.llmkube.inferenceservice.types import InferenceCondition, InferenceReason
from app.workload.readiness.cause import bounded, steady

_CURL = regex(r"\(curl (\d{1,3})\b|curl: \((\d{1,3})\)")
"""Exit code of curl, as the downloader and curl itself print it."""
_CURL_CODES = {
    **dict.fromkeys((5, 6, 7, 28), InferenceReason.SOURCE_UNREACHABLE),
    **dict.fromkeys((51, 60, 77, 83, 90, 91), InferenceReason.SOURCE_UNTRUSTED),
}
"""Exit codes that need no HTTP status. Source: https://curl.se/libcurl/c/libcurl-errors.html."""
_HTTP = regex(
    r"(?:error:?|HTTP(?:/[\d.]+)?) (\d{3})\b|\b(\d{3}) (?:client error|unauthorized|forbidden|not found)", re.IGNORECASE
)
_HTTP_CODES = {
    **dict.fromkeys((401, 403, 407), InferenceReason.SOURCE_UNAUTHORIZED),
    **dict.fromkeys((404, 410), InferenceReason.SOURCE_NOT_FOUND),
}
_S3 = regex(
    r"\b(AccessDenied|ExpiredToken|InvalidAccessKeyId|SignatureDoesNotMatch|NoSuchBucket|NoSuchKey)\b", re.IGNORECASE
)
"""Error code of the S3 API. Source: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html."""
_SYSTEM = {
    InferenceReason.SOURCE_UNTRUSTED: re.compile(
        r"certificate (?:problem|verif)|self.signed certificate|issuer certificate", re.IGNORECASE
    ),
    InferenceReason.OUT_OF_SPACE: re.compile(r"no space left on device|quota exceeded|volume is full", re.IGNORECASE),
    InferenceReason.SOURCE_UNREACHABLE: re.compile(
        r"could not resolve|name or service not known|connection (?:refused|timed out)", re.IGNORECASE
    ),
}
"""Errors of system libraries, for downloaders without specific exit codes."""

_DRIVER = regex(
    r"driver (?:version|on your system) is (?:too old|insufficient)|error_?insufficient_?driver|"
    r"\berror 80[34]\b|unsupported display driver|error_?system_?driver_?mismatch|error_?compat_?not_?supported",
    re.IGNORECASE,
)
"""The errors ``cudaErrorInsufficientDriver`` and ``CUDA_ERROR_INSUFFICIENT_DRIVER``, by name and in words, and those of
libraries for a newer driver in the image: 803, which do not fit the node's, and 804, which its GPU cannot use."""


def _transfer_reason(line: str) -> str:
    if reason := _HTTP_CODES.get(_number(_HTTP, line)) or _CURL_CODES.get(_number(_CURL, line)):
        return reason
    if (s3 := _S3.search(line)) is not None:
        is_missing = s3[1].lower().startswith("nosuch")
        return InferenceReason.SOURCE_NOT_FOUND if is_missing else InferenceReason.SOURCE_UNAUTHORIZED
    return next((reason for reason, pattern in _SYSTEM.items() if pattern.search(line)), "")


def _number(pattern: re.Pattern[str], line: str) -> int:
    match = pattern.search(line)
    return int(match[1] or match[2]) if match is not None else 0


def _driver_reason(line: str) -> str:
    return InferenceReason.DRIVER_INSUFFICIENT if _DRIVER.search(line) else ""


def write(conditions: Conditions, pods: Sequence[ObservedPod], *, ready: bool) -> None:
    """Write ``ModelTransferHealthy`` and ``DriverCompatible``: false with a failure, true once it is over."""
    downloads = [status for pod in pods for status in (pod.status.init_container_statuses or ())[:MAX_CONTAINERS]]
    downloads = [status for status in downloads if status.name in (names.DOWNLOADER, names.DRAFT_DOWNLOADER)]
    finished = any(s.state.terminated is not None and s.state.terminated.exit_code == 0 for s in downloads)
    transfer = InferenceCondition.MODEL_TRANSFER_HEALTHY
    if finding := _find(downloads, _transfer_reason):
        conditions.set(transfer, False, finding[0], f"the model cannot be downloaded: {finding[1]}")
    elif ready or finished:
        conditions.update(transfer, True, InferenceReason.TRANSFER_SUCCEEDED, "the model is downloaded")
    servers = [status for pod in pods for status in (pod.status.container_statuses or ())[:MAX_CONTAINERS]]
    driver = InferenceCondition.DRIVER_COMPATIBLE
    if finding := _find(servers, _driver_reason):
        conditions.set(driver, False, finding[0], f"the node's GPU driver is too old for the image: {finding[1]}")
    elif ready or any(status.started for status in servers):
        conditions.update(driver, True, InferenceReason.RUNTIME_STARTED, "the server has started")


def _find(statuses: Iterable[ContainerStatus], reason_of: Callable[[str], str]) -> tuple[str, str] | None:
    """Return the first reason, and its line, in the logs of containers that failed and have not succeeded since."""
    failed = (status for status in statuses if not status.ready)
    ends = (status.state.terminated or status.last_state.terminated for status in failed)
    messages = (ended.message[-MAX_READ_CHARACTERS:] for ended in ends if ended is not None and ended.exit_code != 0)
    for message in islice(dict.fromkeys(islice(messages, MAX_PROBLEMS)), MAX_STEADY_PROBLEMS):
        for line in message.splitlines():
            if reason := reason_of(line):
                return reason, bounded(steady(line), MAX_QUOTE_CHARACTERS)
    return None
