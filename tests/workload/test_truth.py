"""What ``fit`` adds up, beside what engines, and the files themselves, were seen to take.

``truth.csv`` has a figure for each model and setting, with the public source of it: a log of the engine, or the size of
the published file.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.model.types import ModelSpec
from app.llmkube.runtimes.registry import RUNTIMES
from app.workload.fit.memory import GIB, Amount, Question, cache, weights

ROWS = list(csv.DictReader((Path(__file__).parent / "truth.csv").read_text(encoding="utf-8").splitlines()))
NEAR = 0.1
MIDDLES, UNKNOWN = 36 / 40, 4 / 40
"""The goals: the least part of the rows whose middle is near the figure, and the most without an upper end."""


def amount(row: dict[str, str]) -> Amount:
    """Return what is added up for a row."""
    spec = {"modelRef": "m", "runtime": row["engine"], **_options(row)}
    use = RUNTIMES[row["engine"]].use(InferenceServiceSpec.model_validate(spec), ModelSpec(source="model"))
    names = (row["model"],)
    is_file = row["engine"] == "llamacpp"
    question = Question(names=names, formats=names, gguf=is_file, use=use, gpus=1, memory=0)
    return weights(question) if row["what"] == "weights" else cache(question)


def _options(row: dict[str, str]) -> dict[str, object]:
    tokens, kind = int(row["tokens"] or 0), row["cache"]
    if row["engine"] == "vllm":
        own = {"maxModelLen": tokens, **({"kvCacheDtype": kind} if kind else {})}
        return {"vllmConfig": own} if tokens else {}
    kinds = {"cacheTypeK": kind, "cacheTypeV": kind, "flashAttention": True} if kind else {}
    return {"contextSize": tokens, **kinds} if tokens else {}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['what']} {row['model']} {row['cache']}")
def test_the_figure_lies_within_the_ends(row: dict[str, str]) -> None:
    """Else ``fit`` says that something fits which does not, or the other way. Logs are rounded."""
    found, truth = amount(row), float(row["gib"])
    assert found.least / GIB <= truth * 1.02
    assert found.most is None or found.most / GIB >= truth * 0.98


def test_the_middles_are_near_the_figures() -> None:
    found = [(row["model"], amount(row), float(row["gib"]) * GIB) for row in ROWS]
    known = [(name, (one.least + one.most) / 2, truth) for name, one, truth in found if one.most is not None]
    far = [name for name, middle, truth in known if abs(middle - truth) > NEAR * truth]
    assert len(known) - len(far) >= MIDDLES * len(ROWS), far
    assert len(ROWS) - len(known) <= UNKNOWN * len(ROWS)


def test_the_table_is_large() -> None:
    assert len(ROWS) >= 40
