"""Counters of the hooks and the admission endpoints.

Kept by hand, off the generic middleware: that costs a tenth of a sync and a quarter of a review (performance.md). The
labels are fixed paths, never names of users' objects.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

REQUESTS = Counter("modelhooks_requests", "Requests answered, by endpoint and HTTP status.", ["endpoint", "code"])
SECONDS = Histogram(
    "modelhooks_request_duration_seconds",
    "Time from the request's head to the answer, by endpoint.",
    ["endpoint"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0),
)
DENIALS = Counter("modelhooks_denials", "Reviews answered with a denial, by endpoint.", ["endpoint"])
LOG_DROPPED = Counter(
    "modelhooks_log_lines_dropped", "Log lines not written: nobody read the output, or too many came in one second."
)
CONNECTIONS_REFUSED = Counter(
    "modelhooks_connections_refused", "Connections refused, or closed while idle, because there were too many."
)
CERTIFICATE_EXPIRY = Gauge("modelhooks_certificate_expiry_seconds", "When the serving certificate ends, Unix time.")
CERTIFICATE_FAILURES = Counter("modelhooks_certificate_reload_failures", "Certificates that were found but not usable.")

_children: dict[tuple[str, int], tuple[Counter, Histogram]] = {}


def observe(endpoint: str, status: int, seconds: float, *, denied: bool = False) -> None:
    """Count one answered request."""
    key = (endpoint, status)
    found = _children.get(key)
    if found is None:
        found = _children[key] = (REQUESTS.labels(endpoint, str(status)), SECONDS.labels(endpoint))
    found[0].inc()
    found[1].observe(seconds)
    if denied:
        DENIALS.labels(endpoint).inc()
