"""Reading YAML: the same values as kubectl, with the place of each; hostile files end soon (X58)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from app.desk.files.folders import read
from app.desk.files.manifests import ManifestError, parse
from app.kube.field import Path as FieldPath
from tests.service import NEVER

TEXT = """\
# two objects
apiVersion: v1
kind: Thing
metadata: {name: a}
spec:
  list:
  - name: x
    value: 1
  - {name: y, value: 2}
---
apiVersion: v1
kind: Thing
metadata:
  name: b
"""


def spec(text: str) -> Any:
    (manifest,) = parse(f"kind: K\nspec:\n{text}", "f.yaml")
    return manifest.document["spec"]


def test_every_value_has_a_place() -> None:
    """Line and column are those of the value, or of its nearest existing parent."""
    first, second = parse(TEXT, "f.yaml")
    path = FieldPath("spec").child("list")
    assert (first.name, second.name) == ("a", "b")
    assert first.position(path) == (6, 3)
    assert first.position(path.index(0).child("value")) == (8, 5)
    assert first.position(path.index(1).child("value")) == (9, 15)
    assert first.position(path.index(7)) == (6, 3)
    assert second.position(FieldPath("spec")) == (11, 1)


VALUES: dict[str, tuple[str, Any]] = {
    "text that looks like a date": ("  d: 2030-01-01", {"d": "2030-01-01"}),
    "boolean words": ("  a: yes\n  b: 'yes'\n  c: off", {"a": True, "b": "yes", "c": False}),
    "numbers": ("  a: 010\n  b: 1.50\n  c: 1e3\n  d: '1'", {"a": 8, "b": 1.5, "c": 1000, "d": "1"}),
    "null": ("  a:\n  b: ~\n  c: null", {"a": None, "b": None, "c": None}),
    "anchors": ("  a: &x {k: 1}\n  b: *x", {"a": {"k": 1}, "b": {"k": 1}}),
    "a merge written last wins": (
        "  a: &x {k: 1, l: 2}\n  b: {l: 3, <<: *x}",
        {"a": {"k": 1, "l": 2}, "b": {"k": 1, "l": 2}},
    ),
    "the first of several merges wins": (
        "  a: &x {k: 1}\n  b: &y {k: 2}\n  c: {<<: [*x, *y]}",
        {"a": {"k": 1}, "b": {"k": 2}, "c": {"k": 1}},
    ),
    "merge keys": ("  a: &x {k: 1, l: 2}\n  b: {<<: *x, l: 3}", {"a": {"k": 1, "l": 2}, "b": {"k": 1, "l": 3}}),
    "keys are texts": ("  1: a\n  true: b", {"1": "a", "true": "b"}),
}


@pytest.mark.parametrize(("text", "expected"), VALUES.values(), ids=list(VALUES))
def test_yaml_values_are_those_of_json(text: str, expected: Any) -> None:
    """Values are those of JSON."""
    assert spec(text) == expected


BAD: dict[str, tuple[str, str]] = {
    "syntax": ("a: [1", "f.yaml:1:4: a [ that is not closed"),
    "quote before another": ('a: x\nb: "y\nc: 1\nd: "z"', 'f.yaml:2:1: a quote that is not closed: `b: "y`'),
    "quote after one over two lines": ('a: "x\n  y"\nb: [', "f.yaml:3:1: a value is missing"),
    "duplicate key": ("kind: K\nspec:\n  a: 1\n  a: 2", 'f.yaml:4:3: duplicate key "a"'),
    "a Python object": ("kind: !!python/object/apply:os.system ['true']", "f.yaml:1:7: unsupported tag"),
    "a Python name": ("kind: !!python/name:os.system ''", "unsupported tag"),
    "a list": ("- 1", "not a Kubernetes object"),
    "infinity": ("kind: K\nspec: {a: .inf}", "f.yaml:2:11: .inf is not a number that JSON has"),
    "deep": ("a: " + "[" * 5000 + "]" * 5000, "f.yaml"),
}


@pytest.mark.parametrize(("text", "expected"), BAD.values(), ids=list(BAD))
def test_rejects_invalid_manifests(text: str, expected: str) -> None:
    """The error is one line, with a place if there is one, and nothing is executed."""
    with pytest.raises(ManifestError) as error:
        parse(text, "f.yaml")
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_aliases_that_multiply_end_soon() -> None:
    """A hundred bytes that expand to a billion values."""
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    begin = time.monotonic()
    with pytest.raises(ManifestError, match="aliases"):
        parse("\n".join(lines), "f.yaml")
    assert time.monotonic() - begin < NEVER


def test_lists_are_their_items() -> None:
    """A list, as kubectl prints it, is read as its items, each with its own place."""
    text = "apiVersion: v1\nkind: List\nitems:\n- {kind: A}\n- {kind: B}\n"
    manifests = parse(text, "f.yaml")
    assert [manifest.kind for manifest in manifests] == ["A", "B"]
    assert manifests[1].position(FieldPath("kind"))[0] == 5


def test_directories_are_read_as_a_whole(tmp_path: Path) -> None:
    """Files are read in the order of their names; files of other types and empty documents are skipped."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.yml").write_text("---\nkind: B\n---\n")
    (tmp_path / "a.json").write_text('{"kind": "A"}')
    (tmp_path / "README.md").write_text("# no manifest")
    assert [manifest.kind for manifest in read([str(tmp_path)])] == ["A", "B"]


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_files_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    """The error names the file."""
    file = tmp_path / "x.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ManifestError, match=r"x\.yaml"):
        read([str(file)])
