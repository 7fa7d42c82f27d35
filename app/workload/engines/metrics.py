"""The engines' metrics, their types and units, and whether an autoscaler of pods can follow one.

``metrics.csv`` has the metrics of each release, which ``python -m tools.metrics`` gets from the engines. The rules of
the component prometheus-adapter decide what is served: gauges by their name, counters as rates, no histograms.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from importlib import resources

import msgspec

from app.kube.field import name_meant, with_hint
from app.kube.quantity import is_quantity, parse
from app.kube.regex import regex
from app.workload.engines.engine import NAMES, Engine
from app.workload.engines.parse import Variables


class EngineMetric(msgspec.Struct, frozen=True):
    """A metric of a release.

    ``labels``: names with a space between. ``appears``: when its first series does, a key of :data:`APPEARS`.
    ``option``: with which the engine makes it; empty for one that it always makes.
    """

    type: str
    unit: str
    labels: str
    appears: str
    option: str


Metrics = Mapping[str, EngineMetric]

APPEARS = {
    "start": "at the start",
    "stats": "with the first statistics",
    "request": "with the first request",
    "event": "with its event",
    "source": "by the source",
}
"""When the first series of a metric appears; the last of what is only named in the source, and was not run."""
FIRST_STATISTICS = {
    "vllm": "vLLM 0.7 counts for the first time 10 seconds after the start",
    "sglang": "SGLang counts with a line of its log, without requests each 30 seconds",
}
"""When the engines have their first statistics, of those that show nothing before."""
WITHOUT_STATS = "--disable-log-stats"
"""Option with which vLLM shows none of its metrics."""
_SWITCHES = {"sglang": "--enable-metrics", "llamacpp": "--metrics"}
"""Options without which the others show none; TGI always shows them."""
NEEDS = {
    "vllm": f"unless it has `{WITHOUT_STATS}`",
    "tgi": "always",
    **{name: f"if it has `{option}`" for name, option in _SWITCHES.items()},
}
"""When an engine shows its metrics."""
_RENAMED = (("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),)
"""Names of one number in different releases."""
_CONFIGURATION = "--config"
"""Option of a file that may have any other."""
_IMPLIED = {"--enable-lora": ("--lora-paths", "--lora-modules")}
"""Options that imply another."""
_DISTRIBUTIONS = ("histogram", "summary")
_PARTS = ("_bucket", "_sum", "_count")
_RATE = "_per_second"
_WORD = regex(r"\w+(?::\w+)*")


@cache
def catalogue() -> Mapping[str, Mapping[str, Metrics]]:
    """Return the metrics by engine, release and name."""
    text = resources.files(__package__).joinpath("metrics.csv").read_text(encoding="utf-8")
    engines: dict[str, dict[str, dict[str, EngineMetric]]] = {}
    for row in csv.DictReader(text.splitlines()):
        metric = EngineMetric(*(row[name] for name in EngineMetric.__struct_fields__))
        for release in row["releases"].split():
            engines.setdefault(row["engine"], {}).setdefault(release, {})[row["name"]] = metric
    return engines


@cache
def _late() -> frozenset[str]:
    """Return the metrics that a server of every release has from its first request on, as the adapter serves them."""
    moments: dict[str, set[str]] = {}
    for releases in catalogue().values():
        for metrics in releases.values():
            for name, metric in metrics.items():
                if served := _served(name, metric.type):
                    moments.setdefault(served, set()).add(metric.appears)
    return frozenset(name for name, appears in moments.items() if appears == {"request"})


def _served(name: str, type_: str) -> str:
    """Return the adapter's name of a metric; empty for one that it does not serve."""
    if type_ == "counter" and name.endswith("_total"):
        return name.removesuffix("_total") + _RATE
    return name if type_ == "gauge" else ""


def late_metric(text: str) -> str:
    """Return a metric in a string that no server has before its first request; empty without one."""
    return next((name for name in _WORD.findall(text) if name in _late()), "")


def metric_problem(name: str, value: str, engine: Engine, arguments: Iterable[str] | None = None) -> str:
    """Return why an autoscaler cannot follow a metric of pods; empty if it can, or may.

    ``value``: its target. ``arguments``: the options of the server, if all are known.
    """
    by_version = catalogue().get(engine.name, {})
    candidates = [by_version[release.version] for release in engine.releases if release.version in by_version]
    everywhere = {metric for release in by_version.values() for metric in release}
    shown = [release[name] for release in candidates or by_version.values() if name in release]
    if name in everywhere and not shown:
        present = {metric for release in candidates for metric in release}
        others = (other for names in _RENAMED if name in names for other in names if other in present)
        return with_hint(f"{engine} has no metric of this name", name_meant(next(others, "")))
    return (
        _of_type(name, candidates or list(by_version.values()))
        or _of_unit(shown, value)
        or _of_option(shown, engine, arguments)
    )


def _of_type(name: str, releases: Sequence[Metrics]) -> str:
    base = next((name.removesuffix(part) for part in _PARTS if name.endswith(part)), name)
    types = [release[name if name in release else base].type for release in releases if {name, base} & release.keys()]
    distributions = [type_ for type_ in types if type_ in _DISTRIBUTIONS]
    if distributions and len(distributions) == len(types):
        return f"a {types[0]}, of which the metrics adapter serves nothing; name a gauge, such as requests in wait"
    if not types or types.count("counter") < len(types):
        return ""
    if name.endswith("_total"):
        hint = name_meant(_served(name, "counter"))
        return with_hint("a counter, which the component prometheus-adapter serves as a rate", hint)
    return "a counter, which only grows, and which the component prometheus-adapter does not serve; name a gauge"


def _of_unit(shown: Sequence[EngineMetric], value: str) -> str:
    units = {metric.unit for metric in shown if metric.type == "gauge"}
    if not is_quantity(value) or len(units) != 1:
        return ""
    if units == {"info"}:
        return "information about the server, whose number is no load; name a gauge, such as requests in wait"
    target = parse(value)
    if units == {"percent"} and 0 < target <= 1:
        return f"a number of percent, which {value} is nearly always below; write {int(target * 100)} for that share"
    if units != {"share"} or target <= 1:
        return ""
    share = target / 100
    hint = f"; write {int(share * 1000)}m for {value} percent" if Decimal(0) < share <= 1 else ""
    return f"a share between 0 and 1, which never exceeds {value}{hint}"


def _of_option(shown: Sequence[EngineMetric], engine: Engine, arguments: Iterable[str] | None) -> str:
    options = {metric.option for metric in shown}
    if arguments is None or len(options) != 1 or options == {""}:
        return ""
    (option,) = options
    parsed = engine.options_in([*arguments])
    is_given = parsed.gives(option, _CONFIGURATION, *_IMPLIED.get(option, ()))
    return "" if is_given or option not in parsed.release.spellings else f"{engine} has it with {option} alone"


_WITHOUT_PAGE = {"ollama": "ollama", "tensorrt-llm": "TensorRT-LLM", "trtllm": "TensorRT-LLM"}
"""Parts of images whose servers have no page for Prometheus. The PodMonitor of llmaz leaves the same ones out."""


def without_page(image: str) -> str:
    """Return why an image's server has no page of metrics that Prometheus can read; empty for others."""
    server = next((name for part, name in _WITHOUT_PAGE.items() if part in image), "")
    return f"{server} has no metrics that Prometheus reads" if server else ""


def without_metrics(
    engine: Engine, arguments: Iterable[str], variables: Variables = (), *, are_all: bool = False
) -> str:
    """Return why a server shows no metrics, by its options; empty if it does.

    ``are_all``: the server has no other options, so that one which is not there is missing.
    """
    parsed = engine.options_in([*arguments], variables)
    if engine.name == "vllm" and parsed.has(WITHOUT_STATS):
        return f"with {WITHOUT_STATS} {NAMES[engine.name]} shows no metrics"
    switch = _SWITCHES.get(engine.name)
    if switch is None or not are_all or parsed.has(switch) or parsed.gives(_CONFIGURATION):
        return ""
    return f"without {switch} {NAMES[engine.name]} shows no metrics"
