"""The engines' metrics, their types and units, and whether an autoscaler of pods can follow one.

``metrics.json`` has the metrics of each release, which ``python -m tools.metrics`` reads from the engines. The rules of
the component prometheus-adapter decide what is served: gauges by their name, counters as rates, no histograms.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache
from importlib import resources

import msgspec

from app.kube.field import name_meant, with_hint
from app.kube.quantity import is_quantity, parse
from app.workload.engines.engine import NAMES, Engine

Types = Mapping[str, str]

SHARES = frozenset(
    {
        *("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "vllm:cpu_cache_usage_perc"),
        *("vllm:gpu_prefix_cache_hit_rate", "vllm:cpu_prefix_cache_hit_rate", "vllm:hisparse_host_cache_usage_perc"),
        *("sglang:token_usage", "sglang:full_token_usage", "sglang:swa_token_usage", "sglang:mamba_usage"),
        *("sglang:cache_hit_rate", "sglang:utilization"),
    }
)
"""Gauges between 0 and 1, in spite of their names."""
APPEARS = {
    "vllm": "from the start",
    "sglang": "with the first line of its log, after 30 seconds without requests",
    "llamacpp": "from the start",
    "tgi": "with the first request",
}
"""When the series of each engine's gauges appear."""
NEEDS = {
    "vllm": "unless it has `--disable-log-stats`",
    "sglang": "if it has `--enable-metrics`",
    "llamacpp": "if it has `--metrics`",
    "tgi": "always",
}
"""The option with or without which an engine shows its metrics."""
WITHOUT_STATS = "--disable-log-stats"
"""Option with which vLLM shows none of its metrics."""
_RENAMED = (("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),)
"""Names of one number in different releases."""
_PARTS = ("_bucket", "_sum", "_count")
_RATE = "_per_second"


@cache
def catalogue() -> Mapping[str, Mapping[str, Types]]:
    """Return the types of metrics by engine, release and name."""
    text = resources.files(__package__).joinpath("metrics.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, dict[str, dict[str, str]]])


def metric_problem(name: str, value: str, engine: Engine) -> str:
    """Return why an autoscaler cannot follow a metric of pods; empty if it can, or may. ``value``: its target."""
    own = catalogue().get(engine.name, {})
    known = [own[release.version] for release in engine.releases if release.version in own]
    everywhere = {metric: type_ for release in own.values() for metric, type_ in release.items()}
    present = {metric: type_ for release in known for metric, type_ in release.items()} or everywhere
    if name in everywhere and name not in present:
        others = (other for names in _RENAMED if name in names for other in names if other in present)
        return with_hint(f"{engine} has no metric of this name", name_meant(next(others, "")))
    return _of_type(name, present) or _of_share(name, value)


def _of_type(name: str, types: Types) -> str:
    base = next((name.removesuffix(part) for part in _PARTS if name.endswith(part)), name)
    if types.get(name) == "histogram" or (name not in types and types.get(base) == "histogram"):
        return "a histogram, of which the metrics adapter serves nothing; name a gauge, such as requests in wait"
    if types.get(name) == "counter" and name.endswith("_total"):
        rate = name.removesuffix("_total") + _RATE
        return with_hint("a counter, which the component prometheus-adapter serves as a rate", name_meant(rate))
    return ""


def _of_share(name: str, value: str) -> str:
    if name not in SHARES or not is_quantity(value) or parse(value) <= 1:
        return ""
    share = parse(value) / 100
    hint = f"; write {int(share * 1000)}m for {value} percent" if Decimal(0) < share <= 1 else ""
    return f"a share between 0 and 1, which never exceeds {value}{hint}"


_WITHOUT_PAGE = {"ollama": "ollama", "tensorrt-llm": "TensorRT-LLM", "trtllm": "TensorRT-LLM"}
"""Parts of images whose servers have no page for Prometheus. The PodMonitor of llmaz leaves the same ones out."""


def without_page(image: str) -> str:
    """Return why an image's server has no page of metrics that Prometheus can read; empty for others."""
    server = next((name for part, name in _WITHOUT_PAGE.items() if part in image), "")
    return f"{server} has no metrics that Prometheus reads" if server else ""


def without_metrics(engine: str, arguments: Iterable[str]) -> str:
    """Return why a server shows no metrics, by its options; empty if it does."""
    names = {argument.partition("=")[0].replace("_", "-") for argument in arguments}
    if engine == "vllm" and WITHOUT_STATS in names:
        return f"with {WITHOUT_STATS} {NAMES[engine]} shows no metrics"
    return ""
