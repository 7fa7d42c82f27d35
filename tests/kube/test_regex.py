"""Regular expressions that are compiled when they are first used."""

import re

import pytest

from app.kube.regex import regex


def test_an_expression_finds_what_a_compiled_one_finds() -> None:
    late, compiled = regex("a(b+)", re.IGNORECASE), re.compile("a(b+)", re.IGNORECASE)
    for _ in range(2):
        assert late.sub(r"\1", "xABBy") == compiled.sub(r"\1", "xABBy") == "xBBy"
        assert late.findall("ab AB") == compiled.findall("ab AB")
    assert (late.pattern, late.flags) == (compiled.pattern, compiled.flags)


def test_bytes_are_searched_too() -> None:
    assert regex(rb":\s*null").search(b'{"a": null}') is not None


def test_a_wrong_expression_fails_where_it_is_used() -> None:
    late = regex("(")
    with pytest.raises(re.error, match="unterminated"):
        late.search("")
