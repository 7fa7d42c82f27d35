"""The experiments that find the sources of values: few requests, and copies that are recognised."""

from __future__ import annotations

from typing import Any

import pytest

from app.cli.changes import ABSENT
from app.cli.copies import Copies, marked
from app.cli.explain import explain
from app.cli.manifests import parse
from app.hooks.kind import AnyKind, answer_sync
from app.kube.base import Json
from app.kube.field import Path
from tests.studio.conftest import EXAMPLES

MAX_SYNCS = 100


@pytest.mark.parametrize("example", ["llmkube/quickstart", "llmaz/quickstart", "kserve/quickstart"])
def test_copies_are_found_with_few_requests(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with one for each field: an engine of llmaz alone has more than fifty."""
    syncs: list[str] = []

    def answer(kind: AnyKind, *rest: Any) -> bytes:
        syncs.append(kind.resource.kind)
        return answer_sync(kind, *rest)

    monkeypatch.setattr("app.cli.offline.answer_sync", answer)
    (*_, last) = explain(parse(EXAMPLES[example], "a.yaml"), "default")
    assert any(row["source"] != "default" for row in last["values"])
    assert len(syncs) < MAX_SYNCS


OLD: Json = {"image": "a:1", "args": ["--n", "2", "--name=chat"], "env": [{"name": "A", "value": "on"}]}
FIELDS = {
    "image": (1, "a:1", marked("a:1", 1)),
    "n": (2, 2, 3),
    "name": (3, "chat", marked("chat", 3)),
    "env": (4, "A", marked("A", 4)),
    "gone": (5, "x", ABSENT),
}


def test_copies_within_strings_lists_and_keys() -> None:
    new = {"image": "a:1x1x", "args": ["--n", "3", "--name=chatx3x"], "env": [{"name": "Ax4x", "value": "on"}]}
    pairs = Copies(FIELDS).between(OLD, new, Path("p"))
    assert pairs is not None
    assert {str(path): fields for path, fields in pairs} == {
        "p.image": ["image"],
        "p.args[1]": ["n"],
        "p.args[2]": ["name"],
        "p.env[A].name": ["env"],
    }


@pytest.mark.parametrize(
    "new",
    [
        {**OLD, "image": "b:1"},
        {**OLD, "image": "b:1x1x"},
        {**OLD, "args": ["--n", "2"]},
        {key: value for key, value in OLD.items() if key != "env"},
        {**OLD, "extra": 1},
    ],
    ids=["another value", "more than a copy", "a shorter list", "a missing field", "a new field"],
)
def test_other_differences_are_no_copies(new: Json) -> None:
    assert Copies(FIELDS).between(OLD, new, Path()) is None


def test_a_number_of_two_fields_is_nobodys_copy() -> None:
    assert Copies({"a": (1, 1, 2), "b": (2, 1, 2)}).between({"n": 1}, {"n": 2}, Path()) is None
