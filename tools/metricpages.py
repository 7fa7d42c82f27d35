"""Generates the tables of metrics and releases in ``docs/howto/autoscale.md`` from the engines' ``metrics.csv``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from app.workload.engines.engine import NAMES
from app.workload.engines.grammar import ordered
from app.workload.engines.metrics import APPEARS, FIRST_STATISTICS, NEEDS, EngineMetric, Metrics, catalogue

HEADING = "## The metrics of each release\n"
_DATE = "2026-11-30"
"""When the engines were last run for the catalogue."""
_SECTION = re.compile(re.escape(HEADING) + r".*?(?=\n## |\Z)", re.DOTALL)
_SHOWN = re.compile(
    r"(?:\w+:)?(?:(?:num_)?requests_(?:running|waiting|processing|deferred)|num_(?:running|queue)_reqs|tgi_queue_size"
    r"|tgi_batch_current_size|(?:kv|gpu)_cache_usage_perc|token_usage|utilization|fwd_occupancy"
    r"|(?:prompt|generation)_tokens_total"
    r"|tokens_predicted_total|time_to_first_token_seconds|inter_token_latency_seconds|time_per_output_token_seconds"
    r"|e2e_request_latency_seconds|tgi_request_(?:count|duration|queue_duration))"
)
"""Names to show: of requests, caches, tokens and latencies."""
_INTRODUCTION = f"""
Of requests, caches, tokens and latencies, on {_DATE}. A cell says when the first series appears:
{"; ".join(f"*{word}*, {text}" for word, text in APPEARS.items() if word in ("start", "stats", "request"))};
with an option, the server has the metric with that option alone; *no*: the release does not have it.
A histogram has only `_bucket`, `_sum` and `_count`, which the adapter does not serve; a share
lies between 0 and 1. `validate` compares the metrics of autoscalers with all that each release has.
"""


def page(text: str) -> str:
    """Return a page with its section brought up to date."""
    return _SECTION.sub(lambda _: HEADING + _INTRODUCTION + "".join(_tables()), text)


def _tables() -> Iterator[str]:
    for engine, releases in catalogue().items():
        versions = sorted(releases, key=ordered)
        yield f"\n**{NAMES[engine]}**: the server has metrics {NEEDS[engine]}."
        yield f" {FIRST_STATISTICS[engine]}.\n\n" if engine in FIRST_STATISTICS else "\n\n"
        yield f"| Metric | Type, unit | {' | '.join(versions)} |\n|{'---|' * (len(versions) + 2)}\n"
        yield from (_row(name, [releases[version] for version in versions]) for name in _names(releases))


def _names(releases: Mapping[str, Metrics]) -> list[str]:
    return sorted({name for metrics in releases.values() for name in metrics if _SHOWN.fullmatch(name)})


def _row(name: str, releases: Sequence[Metrics]) -> str:
    metric = next(metrics[name] for metrics in releases if name in metrics)
    kind = ", ".join(filter(None, (metric.type, metric.unit)))
    return f"| `{name}` | {kind} | {' | '.join(_cell(metrics.get(name)) for metrics in releases)} |\n"


def _cell(metric: EngineMetric | None) -> str:
    if metric is None:
        return "no"
    return f"{metric.appears}, `{metric.option}`" if metric.option else metric.appears
