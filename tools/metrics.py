"""Write the catalogue of the engines' metrics: ``python -m tools.metrics SOURCE...``.

A source is what :mod:`tools.engines` reads of an engine, and its name has the release:

- a wheel of vLLM or SGLang, whose own classes are run (:mod:`tools.enginemetrics`). Calls that make a metric are also
  looked for in all modules, so that those are listed which only another configuration has;
- the page of a llama.cpp server without requests, in a file such as ``llamacpp-0.7.0.txt``;
- an unpacked source archive of Text Generation Inference at a tag, such as ``text-generation-inference-3.3.7``.

``metrics.csv`` has one line for all releases in which a metric is the same. Releases that are not given stay.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from app.workload.engines.grammar import ordered
from app.workload.engines.metrics import EngineMetric, Metrics, catalogue
from tools import engines

FILE = Path(__file__).resolve().parent.parent / "app" / "workload" / "engines" / "metrics.csv"
RUNNER = Path(__file__).resolve().parent / "enginemetrics.py"
_COLUMNS = ("engine", "name", *EngineMetric.__struct_fields__, "releases")
_CLASSES = {
    **dict.fromkeys(("Gauge", "_gauge_cls"), "gauge"),
    **dict.fromkeys(("Counter", "_counter_cls"), "counter"),
    **dict.fromkeys(("Histogram", "_histogram_cls", "GaugeHistogram"), "histogram"),
    "Summary": "summary",
}
"""Types of metrics by the class that makes one."""
_UNITS = {
    "info": r".*_info",
    "percent": r"fwd_occupancy",
    "share": r".*(_perc|_usage|_rate|utilization|_ratio|_efficiency)",
    "milliseconds": r".*_milliseconds",
    "tokens per second": r".*(gen_throughput|tokens_seconds)",
    "seconds": r".*(_seconds|_latency|_time|_duration|time_in_queue_requests|_seconds_max)",
    "bytes": r".*(_bytes|_bytes_transferred)",
    "megabytes": r".*_mb",
    "gigabytes": r".*_gb",
    "tokens": r".*(tokens|_tokens_\w+|tokens_max|seq_lens|input_length|context_len|prefix_cache_(hits|queries))",
    "requests": r".*(reqs|requests|requests_\w+|request_(success|failure|count)|queue_size|batch_\w*size)",
}
"""Units by the end of a name without prefix and ``_total``; the first that matches. Others are numbers of something."""

Entries = dict[str, EngineMetric]


def main(argv: Sequence[str] | None = None) -> int:
    """Add the given sources to the catalogue."""
    parser = argparse.ArgumentParser(prog="python -m tools.metrics", description="Write the engines' metrics.")
    parser.add_argument("sources", nargs="+", type=Path, help="a wheel, a page, or a folder with a source archive")
    everything: dict[str, dict[str, Metrics]] = (
        {engine: dict(releases) for engine, releases in catalogue().items()} if FILE.exists() else {}
    )
    for source in parser.parse_args(argv).sources:
        engine, version, metrics = read(source)
        everything.setdefault(engine, {})[version] = metrics
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows(_rows(everything))
    return 0


def _rows(everything: Mapping[str, Mapping[str, Metrics]]) -> Iterator[list[str]]:
    for engine, releases in sorted(everything.items()):
        same: dict[tuple[str, ...], list[str]] = {}
        for version in sorted(releases, key=ordered):
            for name, metric in releases[version].items():
                same.setdefault((name, *msgspec.structs.astuple(metric)), []).append(version)
        yield from ([engine, *key, " ".join(versions)] for key, versions in sorted(same.items()))


def read(source: Path) -> tuple[str, str, Entries]:
    """Return engine, release and metrics of a source."""
    if source.suffix == ".whl":
        engine, version = source.name.split("-")[:2]
        return engine, version, {**_named(source, engine), **_run(source)}
    engine, _, version = source.name.removesuffix(".txt").rpartition("-")
    if source.is_file():
        return engine, version, page(source.read_text(encoding="utf-8"))
    return "tgi", version, rust("\n".join(path.read_text(encoding="utf-8") for path in sorted(source.rglob("*.rs"))))


def unit(name: str) -> str:
    """Return the unit of a metric; empty for a number of something."""
    base = name.partition(":")[2] or name
    base = base.removesuffix("_total")
    return next((word for word, pattern in _UNITS.items() if re.fullmatch(pattern, base)), "")


# Wheels.


def _run(wheel: Path) -> Entries:
    """Return the metrics that the classes of a wheel make. An option counts where nothing makes one without it."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder, [name for name in archive.namelist() if not name.endswith(".so")])
        command = [str(engines.python()), str(RUNNER), folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - of the project
    if done.returncode:
        raise SystemExit(f"{wheel.name}: its metrics could not be made:\n{done.stderr[-2000:]}")
    return described(json.loads(done.stdout))


def described(metrics: Iterable[dict[str, str | list[str]]]) -> Entries:
    """Return what the runner prints, whose first entry of a name is that with the fewest options."""
    entries: Entries = {}
    for metric in metrics:
        name, labels = str(metric["name"]), " ".join(metric["labels"])
        appears = str(metric["appears"]) or "event"
        entries.setdefault(name, EngineMetric(str(metric["type"]), unit(name), labels, appears, str(metric["option"])))
    return entries


def _named(wheel: Path, engine: str) -> Entries:
    with zipfile.ZipFile(wheel) as archive:
        modules = [name for name in archive.namelist() if name.endswith(".py") and "/test" not in name]
        texts = [archive.read(name).decode(errors="replace") for name in sorted(modules)]
    return {
        name: entry for text in texts if f"{engine}:" in text for name, entry in declared_metrics(text, f"{engine}:")
    }


def declared_metrics(text: str, prefix: str) -> Iterator[tuple[str, EngineMetric]]:
    """Yield the metrics that a module makes: the client adds ``_total`` to the names of counters."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        type_ = _CLASSES.get(ast.unparse(node.func).rpartition(".")[2])
        names = [*(keyword.value for keyword in node.keywords if keyword.arg == "name"), *node.args[:1]]
        for name in names if type_ else ():
            if isinstance(name, ast.Constant) and str(name.value).startswith(prefix):
                shown = str(name.value).removesuffix("_total") + "_total" if type_ == "counter" else str(name.value)
                yield shown, EngineMetric(str(type_), unit(shown), "", "source", "")


# Pages and sources.


def page(text: str) -> Entries:
    """Return the metrics of a page of llama.cpp, which has no labels."""
    types = re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE)
    return {name: EngineMetric(type_, unit(name), "", "start", "") for name, type_ in types}


_MADE = re.compile(r'\b(gauge|counter|histogram)!\(\s*"(tgi_\w+)"((?:\s*,\s*"\w+" => [^,)]+)*)')
_BUCKETS = re.compile(r'^ *let \w+ = Matcher::(Full|Suffix)\(String::from\("(\w+)"\)\);', re.MULTILINE)
_AT_START = ("tgi_batch_max_total_tokens",)
"""Set by ``connect_backend`` in ``backends/v3/src/lib.rs``, before the server answers."""


def rust(text: str) -> Entries:
    """Return the metrics that TGI's sources set; what is only described never gets a series.

    Its exporter shows a histogram without buckets as a summary.
    """
    buckets = {(how, name) for how, name in _BUCKETS.findall(text)}
    entries: Entries = {}
    for type_, name, labels in _MADE.findall(text):
        bucketed = ("Full", name) in buckets or any(how == "Suffix" and name.endswith(end) for how, end in buckets)
        shown = "summary" if type_ == "histogram" and not bucketed else type_
        names = " ".join(re.findall(r'"(\w+)" =>', labels))
        entries.setdefault(
            name, EngineMetric(shown, unit(name), names, "start" if name in _AT_START else "request", "")
        )
    return entries


if __name__ == "__main__":
    sys.exit(main())
