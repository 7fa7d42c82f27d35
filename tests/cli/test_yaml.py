"""The YAML writer: all parsers read its output in the same way."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from app.desk.files.yaml import dump, dump_all

TEXT = st.text(st.characters(codec="utf-8"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
)


@given(JSON)
def test_round_trip(document: Any) -> None:
    assert yaml.safe_load(dump(document)) == document


@pytest.mark.parametrize(
    "text", ["y", "N", "yes", "on", "null", "~", "1e3", "0x1F", "012", "1_000", "1.5", "12:30:45", ""]
)
def test_quotes_strings_that_look_like_other_types(text: str) -> None:
    assert dump({"key": text}).strip()[len("key: ")] in "'\""


@pytest.mark.parametrize("text", ["8Gi", "500m", "apps/v1", "true-ish", "None", "v1alpha1"])
def test_leaves_plain_strings_unquoted(text: str) -> None:
    assert dump({"key": text}) == f"key: {text}\n"


def test_writes_multiline_strings_as_blocks() -> None:
    assert dump({"key": "one\ntwo\n"}) == "key: |\n  one\n  two\n"


def test_keeps_order_and_writes_no_aliases() -> None:
    part = {"z": 1, "a": ()}
    assert dump([part, part]) == "- z: 1\n  a: []\n- z: 1\n  a: []\n"


def test_documents_of_a_stream_are_separated() -> None:
    assert list(yaml.safe_load_all(dump_all([{"a": 1}, {"b": 2}]))) == [{"a": 1}, {"b": 2}]
