"""The desk reads YAML and JSON as the real kubectl does: scalars, keys, merges, streams of objects."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.desk.files.manifests import ManifestError, parse
from tests.cli.test_scalars import KEYS, VALUES
from tests.e2e import binaries
from tests.service import ROOT

pytestmark = pytest.mark.e2e

HEAD = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n"
SCALARS, BATCH = 6_000, 500
_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "null", "nan", "inf", "~", "0x", "0o", "0b", ".inf", "<<")
_DIGITS = "0123456789"
_MANY = [*_DIGITS, *_DIGITS, "00", "_", ".", "e", "E", "e+", "e-", "x", "o", "b", ":", "-", "+", "a", "F", "y"]


def _kubectl(text: str, folder: Path) -> list[Any] | None:
    """Return the objects that kubectl makes of a text, without a cluster; None if it refuses it."""
    file = folder / "manifest.yaml"
    file.write_text(text)
    command = [str(binaries.program("kubectl")), "annotate", "--local", "-f", str(file), "read=yes", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    decoder, documents, end = json.JSONDecoder(), [], 0
    while done.stdout[end:].strip():
        document, end = decoder.raw_decode(done.stdout, end + len(done.stdout[end:]) - len(done.stdout[end:].lstrip()))
        document["metadata"].pop("annotations")
        documents.append(document)
    return documents


def _desk(text: str) -> list[Any] | None:
    try:
        return [manifest.document for manifest in parse(text, "manifest.yaml")]
    except ManifestError:
        return None


def _data(documents: list[Any] | None) -> Any:
    assert documents is not None
    return documents[0]["data"]


def _same(ours: Any, theirs: Any) -> bool:
    """Compare JSON; kubectl holds whole numbers beyond 63 bits as floats."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    if type(ours) in (int, float) and type(theirs) in (int, float):
        return float(ours) == float(theirs)
    return type(ours) is type(theirs) and ours == theirs


def _scalars(count: int) -> Iterator[str]:
    chance = random.Random(18)
    for _ in range(count):
        words = chance.choices(_WORDS, k=chance.randint(0, 1))
        text = "".join([*words, *chance.choices(_MANY, k=chance.randint(1, 6))])
        for spelling in (text, text.upper(), text.capitalize())[: chance.randint(1, 3)]:
            if not spelling.startswith(("- ", "-\n")) and not spelling.endswith(":") and spelling not in ("-", "+:"):
                yield spelling


def _refused_by_kubectl(texts: list[str], folder: Path) -> set[str]:
    """Divide until the scalars that have no JSON stand alone."""
    if _kubectl(_list(texts), folder) is not None:
        return set()
    if len(texts) == 1:
        return set(texts)
    half = len(texts) // 2
    return _refused_by_kubectl(texts[:half], folder) | _refused_by_kubectl(texts[half:], folder)


def _list(texts: list[str]) -> str:
    return HEAD + "data:\n" + "".join(f"- {text}\n" for text in texts)


def test_thousands_of_scalars(tmp_path: Path) -> None:
    texts = list(dict.fromkeys(_scalars(SCALARS)))
    assert len(texts) > SCALARS // 2
    differing: list[tuple[str, object, object]] = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        refused = _refused_by_kubectl(batch, tmp_path)
        differing += [(text, "refused", _desk(_list([text]))) for text in refused if _desk(_list([text])) is not None]
        rest = [text for text in batch if text not in refused]
        theirs, ours = _data(_kubectl(_list(rest), tmp_path)), _data(_desk(_list(rest)))
        differing += [row for row in zip(rest, theirs, ours, strict=True) if not _same(row[1], row[2])]
    assert not differing


def test_the_scalars_and_keys_of_the_unit_tests(tmp_path: Path) -> None:
    assert _same(_data(_kubectl(_list([*VALUES]), tmp_path)), [*VALUES.values()])
    for text, key in KEYS.items():
        assert _data(_kubectl(f"{HEAD}data: {{{text}: 1}}", tmp_path)) == {key: 1}


@pytest.mark.parametrize(
    "text",
    [
        "data: {1e6: a, 12e03: b, y: c, 1.5: d, 123456.0: e, 0.00001: f, 16777217: g, 16777217.0: h, 0x1F: i, .inf: j}",
        "x: &d {p: q, r: s}\ndata: {p: own, <<: *d}",
        "x: &d {p: q, r: s}\ndata: {<<: *d, p: own}",
        "x: &d {p: q}\ny: &e {p: r, s: t}\ndata: {<<: [*d, *e], u: v}",
        "data: {'<<': text}",
        "data: [!!str 1e3, !!int 12, !!float 3, !!binary aGVsbG8=, '1e3', \"y\", !!bool yes]",
        "data: {~: 1}",
        "data: [.inf]",
        "data: [.NaN]",
        "data:\n- |\n  1e3\n- >-\n  y",
        "data: {? 1e3 : a}",
        "data: {18446744073709551615: 1}",
    ],
)
def test_document(text: str, tmp_path: Path) -> None:
    assert _same(_desk(HEAD + text), _kubectl(HEAD + text, tmp_path))


@pytest.mark.parametrize("name", ["\U0001f600", "line\nbreak", 'quote " and \\', "tab\t"])
def test_json_with_escapes(name: str, tmp_path: Path) -> None:
    text = json.dumps({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "data": name})
    assert _same(_desk(text), _kubectl(text, tmp_path))


def test_json_objects_one_after_the_other(tmp_path: Path) -> None:
    text = "\n".join(json.dumps({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": name}}) for name in "ab")
    assert len(_desk(text) or ()) == 2
    assert _same(_desk(text), _kubectl(text, tmp_path))


def test_every_example_is_read_alike(tmp_path: Path) -> None:
    examples = [file.read_text() for file in sorted((ROOT / "examples").rglob("*.yaml"))]
    assert examples
    for text in (text for text in examples if "annotations:" not in text):
        assert _same(_desk(text), _kubectl(text, tmp_path)), text
