"""Generates the tables of metrics and releases in ``docs/howto/autoscale.md`` from the engines' ``metrics.json``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from app.workload.engines.engine import NAMES
from app.workload.engines.metrics import APPEARS, NEEDS, SHARES, catalogue

HEADING = "## The metrics of each release\n"
_SECTION = re.compile(re.escape(HEADING) + r".*?(?=\n## |\Z)", re.DOTALL)
_SHOWN = re.compile(
    r"(?:\w+:)?(?:(?:num_)?requests_(?:running|waiting|processing|deferred)|num_(?:running|queue)_reqs|tgi_queue_size"
    r"|tgi_batch_current_size|(?:kv|gpu)_cache_usage_perc|token_usage|(?:prompt|generation)_tokens_total"
    r"|tokens_predicted_total|time_to_first_token_seconds|inter_token_latency_seconds|time_per_output_token_seconds"
    r"|e2e_request_latency_seconds|tgi_request_(?:count|duration|queue_duration))"
)
"""Names to show: of requests, caches, tokens and latencies."""
_INTRODUCTION = """
Of requests, caches, tokens and latencies, by the sources of vLLM and SGLang, the page of llama.cpp, and what is
known of TGI. A histogram has only `_bucket`, `_sum` and `_count`, which the adapter does not serve; a share
lies between 0 and 1. `validate` compares the metrics of autoscalers with all that each release has.
"""


def page(text: str) -> str:
    """Return a page with its section brought up to date."""
    return _SECTION.sub(lambda _: HEADING + _INTRODUCTION + "".join(_tables()), text)


def _tables() -> Iterator[str]:
    for engine, releases in catalogue().items():
        versions = sorted(releases, key=lambda version: [int(number) for number in re.findall("[0-9]+", version)])
        yield f"\n**{NAMES[engine]}**: series appear {APPEARS[engine]}"
        yield f"; the server has them {NEEDS[engine]}.\n\n"
        yield f"| Metric | Type | {' | '.join(versions)} |\n|{'---|' * (len(versions) + 2)}\n"
        yield from (_row(name, [releases[version] for version in versions]) for name in _names(releases))


def _names(releases: Mapping[str, Mapping[str, str]]) -> list[str]:
    return sorted({name for types in releases.values() for name in types if _SHOWN.fullmatch(name)})


def _row(name: str, releases: list[Mapping[str, str]]) -> str:
    type_ = "share" if name in SHARES else next(types[name] for types in releases if name in types)
    return f"| `{name}` | {type_} | {' | '.join('yes' if name in types else 'no' for types in releases)} |\n"
