"""The YAML writer: all parsers read its output in the same way."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from app.desk.files import yaml as writer
from app.desk.files.printing import is_plain
from app.desk.files.yaml import dump, dump_all

TEXT = st.text(st.characters(codec="utf-8"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
)


@given(JSON)
def test_a_written_document_is_read_back_the_same(document: Any) -> None:
    assert yaml.safe_load(dump(document)) == document


WORDS = st.sampled_from(
    [
        *(
            "vllm",
            "ghcr.io/ggml-org/llama.cpp:server-b1",
            "--max-model-len=4096",
            "--",
            "---",
            "-a",
            "...",
            "a:b",
            "a:",
        ),
        *(
            "true",
            "false",
            "yes",
            "~",
            "null",
            "y",
            "12:30",
            "1e3",
            "=",
            "<<",
            "a: b",
            "a #b",
            "# a",
            "? a",
            "",
            " a",
            "a ",
        ),
        *(
            "word " * 40,
            "a" * 130,
            "a" * 60 + " " + "b" * 60,
            "it's",
            '"q"',
            "{a}",
            "[b]",
            "*a",
            "&a",
            "!t",
            "%d",
            "@x",
        ),
        *(
            "one\ntwo",
            "one\ntwo\n",
            "one\n\n",
            "\n",
            " one\ntwo\n",
            "one \ntwo\n",
            "one\r\ntwo",
            "\tone",
            "\u2028",
            "é",
        ),
        *("#!/bin/sh\n" + "exec " * 40 + "\n", "abcdef:", "abcdef,", "abcdef-", "key: value, other"),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc") | WORDS, inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from("abc") | WORDS, VALUES, min_size=1, max_size=3))
def test_writes_what_pyyaml_writes(document: Any) -> None:
    expected = yaml.dump(
        document, Dumper=writer._Dumper, allow_unicode=True, width=110, sort_keys=False, default_flow_style=False
    )
    assert dump(document) == expected or not is_plain(expected)


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
