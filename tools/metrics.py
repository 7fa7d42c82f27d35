"""Write the catalogue of the engines' metrics with their types: ``python -m tools.metrics SOURCE...``.

A source is the unpacked wheel of vLLM or SGLang, in a folder such as ``vllm-0.20.0``, or a page of metrics, in a file
such as ``llamacpp-0.7.0.txt``: what llama.cpp's server answers, and of Text Generation Inference, whose page is empty
at first, the types by its source. Calls that make a metric are looked for in the modules, so that a metric is listed
which only some configurations have. Releases that are not given stay as they are.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "app" / "workload" / "engines" / "metrics.json"
_KINDS = {
    **dict.fromkeys(("Gauge", "_gauge_cls", "gauge"), "gauge"),
    **dict.fromkeys(("Counter", "_counter_cls", "counter"), "counter"),
    **dict.fromkeys(("Histogram", "_histogram_cls", "GaugeHistogram", "histogram"), "histogram"),
    **dict.fromkeys(("Summary", "summary"), "summary"),
}
"""Types of metrics by the class that makes one, and as pages write them."""

Types = dict[str, str]


def main(argv: Sequence[str] | None = None) -> int:
    """Add the given sources to the catalogue."""
    parser = argparse.ArgumentParser(prog="python -m tools.metrics", description="Write the engines' metrics.")
    parser.add_argument("sources", nargs="+", type=Path, help="an unpacked wheel, or a page of metrics")
    catalogue: dict[str, dict[str, Types]] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for source in parser.parse_args(argv).sources:
        engine, _, version = source.name.removesuffix(".txt").partition("-")
        catalogue.setdefault(engine, {})[version] = read(source, engine)
    FILE.write_text(json.dumps(catalogue, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


def read(source: Path, engine: str) -> Types:
    """Return the metrics of a release, with their names in Prometheus."""
    if source.is_file():
        return page(source.read_text(encoding="utf-8"))
    return {_shown(name, type_): type_ for name, type_ in _made(source, f"{engine}:")}


def page(text: str) -> Types:
    """Return the metrics of a page."""
    return {name: _KINDS[type_] for name, type_ in re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE)}


def made(text: str, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the metrics that a module makes, and their types."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        type_ = _KINDS.get(ast.unparse(node.func).rpartition(".")[2])
        names = [*(keyword.value for keyword in node.keywords if keyword.arg == "name"), *node.args[:1]]
        for name in names if type_ else ():
            if isinstance(name, ast.Constant) and str(name.value).startswith(prefix):
                yield str(name.value), str(type_)


def _made(folder: Path, prefix: str) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if prefix in text:
            yield from made(text, prefix)


def _shown(name: str, type_: str) -> str:
    """Return the name of a metric on the page: the client adds ``_total`` to counters."""
    return f"{name}_total" if type_ == "counter" and not name.endswith("_total") else name


if __name__ == "__main__":
    sys.exit(main())
