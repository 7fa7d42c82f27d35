"""Series of the engines' pages of metrics, as Prometheus stores them; ``pages/README.md`` says where they are from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PAGES = sorted((Path(__file__).parent / "pages").glob("*.txt"))
TARGET = {"family": "llmkube", "namespace": "team", "service": "chat", "model": "small", "pod": "chat-1"}
"""Labels that the PodMonitors of the component ``prometheus`` give to every series."""


@dataclass(frozen=True)
class Sample:
    name: str
    labels: dict[str, str]
    value: float


def samples(page: Path) -> Iterator[Sample]:
    return series_of(page.read_text())


def series_of(text: str) -> Iterator[Sample]:
    """Yield the series of a page as they are; prometheus_client's parser adds ``_total`` to TGI's counters."""
    for name, given, value in re.findall(r"^(\w[\w:]*)(?:\{(.*)\})? (\S+)$", text, re.MULTILINE):
        yield Sample(name, dict(re.findall(r'(\w+)="([^"]*)"', given)), float(value))


def labels(page: Path) -> dict[str, set[str]]:
    """Return the labels of each metric of a page."""
    by_metric: dict[str, set[str]] = {}
    for sample in samples(page):
        by_metric.setdefault(sample.name, set()).update(sample.labels)
    return by_metric


def series(name: str, **labels: str) -> str:
    """Return a series with its target's labels."""
    text = ", ".join(f"{label}={json.dumps(value)}" for label, value in {**TARGET, **labels}.items())
    return f"{name}{{{text}}}"
