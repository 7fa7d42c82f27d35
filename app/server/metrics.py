"""What is counted: requests by the instrumentator, and of its own only what HTTP does not say.

No label holds a name of a user's object: paths, kinds and reasons are known beforehand and few.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge
from prometheus_fastapi_instrumentator.metrics import Info, latency, requests

from app.admission.protocol import Answer
from app.hooks.protocol import SyncAnswer
from app.kube.resource import CustomResource
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
STATUS_VALUES = Counter(
    "modelhooks_status_values",
    "Syncs answered, by a status field that has few values; other where users can write any.",
    ["kind", "field", "value"],
)


def reviewed(kind: str) -> Report[Answer]:
    """Counts what reviews of a kind say; of a denial the log has the verdict and the uid, nothing of the object."""
    warnings = WARNINGS.labels(kind)

    def report(answer: Answer) -> dict[str, str] | None:
        if answer.warnings:
            warnings.inc(answer.warnings)
        if answer.allowed:
            return None
        for reason in answer.reasons:
            DENIALS.labels(kind, reason).inc()
        return {"verdict": "denied", "uid": answer.uid}

    return report


KEPT_TEMPLATES = Counter(
    "modelhooks_kept_templates", "Syncs answered with a pod template that a newer one would replace.", ["kind"]
)


def synced(resource: CustomResource) -> Report[SyncAnswer]:
    """Counts syncs of a kind: ``True``, ``False``, ``Unknown``, or ``InvalidSpec`` for a spec that breaks a rule."""
    kind = resource.kind
    kept = KEPT_TEMPLATES.labels(kind)
    counters = {ready: SYNCS.labels(kind, ready) for ready in ("True", "False", "Unknown", "InvalidSpec")}
    values = {name: frozenset(known) for name, known in resource.counted}

    def report(answer: SyncAnswer) -> None:
        if answer.waiting:
            kept.inc()
        for condition in answer.status.get("conditions") or ():
            if condition["type"] == "Ready":
                invalid = condition.get("reason") == "InvalidSpec"
                counters["InvalidSpec" if invalid else condition["status"]].inc()
        for name, known in values.items():
            if value := answer.status.get(name):
                STATUS_VALUES.labels(kind, name, value if value in known else "other").inc()

    return report


LOG_DROPPED = Counter(
    "modelhooks_log_lines_dropped", "Log lines not written: nobody read the output, or too many came in one second."
)
CONNECTIONS_REFUSED = Counter(
    "modelhooks_connections_refused",
    "Connections closed because there were too many.",
)
CERTIFICATE_EXPIRY = Gauge("modelhooks_certificate_expiry_seconds", "When the serving certificate ends, Unix time.")
CERTIFICATE_FAILURES = Counter("modelhooks_certificate_reload_failures", "Certificates that were found but not usable.")
