"""Embedded JSON as it is stored, and the limits on JSON."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kube import field
from app.kube.reading import rawchecks
from app.kube.reading.stored import clean
from app.limits import MAX_SPEC_BYTES, MAX_SPEC_VALUES

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("value", "cleaned"),
    [
        ({"a": None, "b": 1}, {"b": 1}),
        ({"a": {}, "b": []}, {}),
        ({"emptyDir": {}}, {"emptyDir": {}}),
        ({"weight": 1, "preference": {}}, {"weight": 1, "preference": {}}),
        ({"a": [None, 1.0]}, {"a": [1]}),
        ({"a": {"b": None}}, {}),
        ({"a": "", "b": 0, "c": False}, {"a": "", "b": 0, "c": False}),
    ],
)
def test_removes_nulls_and_empty_values(value: Any, cleaned: Any) -> None:
    """Nulls and meaningless empty values are removed; values with a meaning stay."""
    assert clean(value) == cleaned


@given(JSON)
def test_removing_them_again_changes_nothing(value: Any) -> None:
    once = clean(value)
    assert clean(once) == once


@pytest.mark.parametrize("brackets", [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize(("depth", "deep"), [(64, False), (65, True), (5000, True)])
def test_depth_has_a_limit(brackets: tuple[str, str], depth: int, deep: bool) -> None:
    """64 levels are accepted, 65 are not."""
    text = brackets[0] * depth + "1" + brackets[1] * depth
    assert rawchecks.depth_exceeds(text.encode()) is deep


def test_brackets_in_strings_do_not_count() -> None:
    """There may be many, also after escaped quotes."""
    assert not rawchecks.depth_exceeds(orjson.dumps({"a": "[{" * 100, 'b"\\': ['"' + "[" * 100]}))


def test_brackets_in_strings_hide_no_depth() -> None:
    """Each of these strings closes the bracket before it, or opens the one after it."""
    assert rawchecks.depth_exceeds(('["]",' * 2000 + "1" + ',"["]' * 2000).encode())


@given(JSON)
def test_depth_is_that_of_a_recursive_count(value: Any) -> None:
    """The result agrees with a recursive count."""

    def depth(item: Any) -> int:
        inner = item.values() if isinstance(item, dict) else item if isinstance(item, list) else None
        return 0 if inner is None else 1 + max(map(depth, inner), default=0)

    levels = depth(value)
    assert not rawchecks.depth_exceeds(orjson.dumps(value), levels)
    assert levels == 0 or rawchecks.depth_exceeds(orjson.dumps(value), levels - 1)


def test_control_characters_are_found_anywhere() -> None:
    """The error has their path; newlines and tabs are allowed."""
    errors = list(rawchecks.control_characters({"a": ["x", {"b": "\x1b[31m"}], "c": "a\n\tb"}, field.Path("spec")))
    assert [str(error.path) for error in errors] == ["spec.a[1].b"]


EXCESSIVE = {
    "a long text": (b'{"a": {"b": "%b", "c": 1}}' % (b"x" * MAX_SPEC_BYTES), "spec.a.b", "TooLong"),
    "many values": (b'{"a": 1, "b": {"c": [%b1]}}' % (b"1," * MAX_SPEC_VALUES), "spec.b.c", "TooMany"),
    "many in all": (
        b'{"a": [%b1], "b": [%b1]}' % ((b"1," * (MAX_SPEC_VALUES // 2 + 1),) * 2),
        "spec",
        "TooMany",
    ),
    "no object": (b"[%b1]" % (b"1," * MAX_SPEC_VALUES), "spec", "TooMany"),
}


@pytest.mark.parametrize(("text", "path", "type_"), EXCESSIVE.values(), ids=list(EXCESSIVE))
def test_what_is_too_large_is_named_at_its_field(text: bytes, path: str, type_: str) -> None:
    """The innermost field that alone is too large is named, without its value."""
    (error,) = rawchecks.excess(text, field.Path("spec"))
    assert (str(error.path), error.type) == (path, f"FieldValue{type_}")
    assert len(str(error)) < 200


@pytest.mark.parametrize(
    "text", [b"{}", b'{"a": "%b"}' % (b"," * 2 * MAX_SPEC_VALUES), b"[%b1]" % (b"1," * (MAX_SPEC_VALUES - 1))]
)
def test_values_within_the_limits_have_no_error(text: bytes) -> None:
    """Commas inside a string are not separators."""
    assert rawchecks.excess(text, field.Path("spec")) == []


@given(st.text(max_size=8))
def test_no_control_character_is_overlooked(text: str) -> None:
    """Escaped or not: if the fast check finds none, neither does the thorough one."""
    errors = list(rawchecks.control_characters(text, field.Path("spec")))
    for ascii_only in (True, False):
        written = json.dumps(text, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        assert rawchecks.may_have_controls(written) or not errors


@pytest.mark.parametrize("character", [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))])
def test_each_control_character_is_seen(character: str) -> None:
    """Tabs and newlines are allowed."""
    text = f"a{character}b"
    assert rawchecks.may_have_controls(orjson.dumps(text)) or character in "\t\n\r"
    assert bool(list(rawchecks.control_characters(text, field.Path("spec")))) == (character not in "\t\n\r")


@given(JSON)
def test_the_walk_is_left_out_only_where_it_would_find_nothing(value: Any) -> None:
    """The fast check may skip the traversal in any encoding of the string."""
    errors = list(rawchecks.control_characters({"a": value}, field.Path("spec")))
    assert not errors or rawchecks.may_have_controls(orjson.dumps({"a": value}))
