"""What is counted: requests by the instrumentator, and of its own only what HTTP does not say.

No label holds a name of a user's object: paths, kinds and reasons are known beforehand and few.
"""

from __future__ import annotations

import msgspec
from prometheus_client import Counter, Gauge
from prometheus_fastapi_instrumentator.metrics import Info, latency, requests

from app.admission import protocol
from app.server.endpoint import Report

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
"""Seconds. Most answers take one to ten milliseconds; callers give up after ten seconds."""


def _few_methods(info: Info) -> None:
    """Anybody can ask with any of thirty methods, and each would be a series of its own for each path."""
    if info.method not in ("GET", "POST"):
        info.method = "other"


HTTP = (_few_methods, requests(), latency(should_include_status=False, buckets=BUCKETS))
"""``http_requests_total`` and ``http_request_duration_seconds``, once per process."""

DENIALS = Counter(
    "modelhooks_denials", "Reasons for which reviews were denied, each once a review.", ["kind", "reason"]
)
WARNINGS = Counter("modelhooks_warnings", "Warnings that were given with reviews.", ["kind"])
SYNCS = Counter("modelhooks_syncs", "Syncs answered, by what the resource's condition Ready says.", ["kind", "ready"])


def reviewed(kind: str) -> Report:
    """Counts what reviews of a kind say; of a denial the log has the verdict and the uid, nothing of the object."""
    warnings = WARNINGS.labels(kind)

    def report(answer: bytes) -> dict[str, str] | None:
        verdict = protocol.read(answer)
        if verdict.warnings:
            warnings.inc(len(verdict.warnings))
        if verdict.allowed:
            return None
        for reason in verdict.reasons:
            DENIALS.labels(kind, reason).inc()
        return {"verdict": "denied", "uid": verdict.uid}

    return report


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str = ""


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


class _Synced(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


_SYNCED = msgspec.json.Decoder(_Synced)


def synced(kind: str) -> Report:
    """Counts syncs of a kind: ``True``, ``False``, ``Unknown``, or ``InvalidSpec`` for a spec that breaks a rule."""
    counters = {ready: SYNCS.labels(kind, ready) for ready in ("True", "False", "Unknown", "InvalidSpec")}

    def report(answer: bytes) -> None:
        for condition in _SYNCED.decode(answer).status.conditions:
            if condition.type == "Ready":
                invalid = condition.reason == "InvalidSpec"
                counters["InvalidSpec" if invalid else condition.status].inc()

    return report


LOG_DROPPED = Counter(
    "modelhooks_log_lines_dropped", "Log lines not written: nobody read the output, or too many came in one second."
)
CONNECTIONS_REFUSED = Counter(
    "modelhooks_connections_refused",
    "Connections refused, or closed without a complete request, because there were too many.",
)
CERTIFICATE_EXPIRY = Gauge("modelhooks_certificate_expiry_seconds", "When the serving certificate ends, Unix time.")
CERTIFICATE_FAILURES = Counter("modelhooks_certificate_reload_failures", "Certificates that were found but not usable.")
