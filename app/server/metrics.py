"""Metrics of requests and answers. No label contains the name of a user's object, so series are few."""

from prometheus_client import Counter, Gauge
from prometheus_fastapi_instrumentator.metrics import Info, latency, requests

from app.admission.protocol import ReviewAnswer
from app.hooks.protocol import SyncAnswer
from app.hooks.readystatus import ready_of
from app.kube.resource import CustomResource
from app.server.endpoint import Report

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
"""Seconds. Most answers take one to ten milliseconds; callers give up after ten seconds."""


def _few_methods(info: Info) -> None:
    """Group unusual methods, so that clients cannot create a series for each of them."""
    if info.method not in ("GET", "POST"):
        info.method = "other"


HTTP = (_few_methods, requests(), latency(should_include_status=False, buckets=BUCKETS))
"""``http_requests_total`` and ``http_request_duration_seconds``, once per process."""

DENIALS = Counter(
    "modelhooks_denials", "Reasons for which reviews were denied, each once a review.", ["kind", "reason"]
)
WARNINGS = Counter("modelhooks_warnings", "Warnings sent with reviews.", ["kind"])
SYNCS = Counter(
    "modelhooks_syncs", "Syncs answered, by the status of the resource's condition Ready.", ["kind", "ready"]
)
STATUS_VALUES = Counter(
    "modelhooks_status_values",
    "Syncs answered, by a status field that has few values; other where users can write any.",
    ["kind", "field", "value"],
)


def reviewed(kind: str) -> Report[ReviewAnswer]:
    """Return the report that counts reviews of a kind. The log gets the verdict and the uid of a denial."""
    warnings = WARNINGS.labels(kind)

    def report(answer: ReviewAnswer) -> dict[str, str] | None:
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
    """Return the report that counts syncs of a kind by ``Ready``, or as ``InvalidSpec``."""
    kind = resource.kind
    kept_templates = KEPT_TEMPLATES.labels(kind)
    counters = {ready: SYNCS.labels(kind, ready) for ready in ("True", "False", "Unknown", "InvalidSpec")}
    values = {name: frozenset(expected) for name, expected in resource.counted}

    def report(answer: SyncAnswer) -> None:
        if answer.waiting:
            kept_templates.inc()
        if condition := ready_of(answer.status.get("conditions") or ()):
            invalid = condition.get("reason") == "InvalidSpec"
            counters["InvalidSpec" if invalid else condition["status"]].inc()
        for name, expected in values.items():
            if value := answer.status.get(name):
                STATUS_VALUES.labels(kind, name, value if value in expected else "other").inc()

    return report


LOG_DROPPED = Counter(
    "modelhooks_log_lines_dropped", "Log lines not written: the output was not read, or too many came in one second."
)
CONNECTIONS_REFUSED = Counter("modelhooks_connections_refused", "Connections closed because there were too many.")
CERTIFICATE_EXPIRY = Gauge("modelhooks_certificate_expiry_seconds", "When the serving certificate ends, Unix time.")
CERTIFICATE_FAILURES = Counter("modelhooks_certificate_reload_failures", "Certificates that were found but not usable.")
