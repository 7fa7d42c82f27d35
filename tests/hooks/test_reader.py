"""The reader that parents, reviews and related objects share: it decodes a spec, or reports the errors of any bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import orjson
import pytest

from app.admission.protocol import ReviewedObject
from app.admission.review import judge
from app.families import KINDS
from app.hooks.kind import Kind
from app.hooks.reader import ReadFault, read, read_related, read_yaml
from app.kube.objects import ObservedMeta
from app.limits import MAX_DEPTH, MAX_DOCUMENT_DEPTH, MAX_SPEC_BYTES, MAX_SPEC_VALUES, MAX_STRING_BYTES, MAX_YAML_BYTES
from app.settings import Settings
from tests.corpus.kinds import VALID, name_of
from tests.widgets import WidgetSpec

SETTINGS = Settings()


def errors(raw: bytes) -> list[str]:
    return [str(error) for error in read(raw, WidgetSpec).errors]


def test_reads_a_valid_spec() -> None:
    """The result has the document, the typed spec, and a warning for each unknown field."""
    reading = read(b'{"size":"small","sise":1,"env":[{"name":"A","vlaue":"x"}]}', WidgetSpec)
    assert reading.spec is not None
    assert isinstance(reading.document, dict)
    assert (reading.spec.size, reading.document["sise"], reading.errors, reading.is_valid, reading.fault) == (
        "small",
        1,
        [],
        True,
        None,
    )
    assert [line.partition(",")[0] for line in reading.warnings] == [
        'unknown field "spec.sise"',
        'unknown field "spec.env[0].vlaue"',
    ]


def test_an_absent_spec_is_an_error_or_empty() -> None:
    """It is an error or an empty spec, depending on the kind."""
    assert errors(b"null") == ["spec: Required value"]
    assert read(b"null", WidgetSpec, needed=False).errors[0].path.segments == ("spec", "size")


def nested(depth: int) -> bytes:
    return b'{"size":"small","other":' + b"[" * depth + b"]" * depth + b"}"


def test_a_spec_that_is_nested_too_deeply_names_its_field() -> None:
    """Beyond the limit the field that is too deep is named; of what no decoder takes, the spec."""
    assert errors(nested(MAX_DEPTH - 1)) == []
    for depth, path in ((MAX_DEPTH, "spec.other"), (1000, "spec.other"), (5000, "spec")):
        reading = read(nested(depth), WidgetSpec)
        assert (reading.fault, reading.spec, reading.document) == (ReadFault.DEPTH, None, None)
        wanted = f'{path}: Invalid value: "…": nested too deeply, at most {MAX_DEPTH} levels'
        assert [str(error) for error in reading.errors] == [wanted]


def test_a_field_as_deep_as_a_spec_may_be_is_not_named_for_its_neighbour() -> None:
    deepest, deeper = b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1), b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert errors(b'{"a":' + deepest + b',"b":' + deeper + b"}")[0].startswith("spec.b: ")


@pytest.mark.parametrize("nested", ["[" * 201 + "]" * 201, "- " * 201 + "x", "[" * 5000 + "]" * 5000], ids=len)
def test_yaml_that_is_nested_too_deeply_is_refused(nested: str) -> None:
    """It is checked before PyYAML, which takes quadratic time for nested brackets, builds anything."""
    assert read_yaml("[" * MAX_DOCUMENT_DEPTH + "]" * MAX_DOCUMENT_DEPTH, lambda document: str(type(document))) == LIST
    assert str(read_yaml(f"a: {nested}", repr)).startswith("is not valid YAML")


LIST = str(list)


def test_yaml_has_a_largest_length() -> None:
    longest = "a" * MAX_YAML_BYTES
    assert read_yaml(longest, lambda document: str(document == longest)) == "True"
    assert str(read_yaml(f"{longest}a", repr)) == f"is longer than {MAX_YAML_BYTES} characters"


@pytest.mark.parametrize("value", [b"1e400", b"9" * 5000, b'"\\ud800"', b'"' + b"x" * MAX_STRING_BYTES + b'\\ud800"'])
def test_rejects_values_that_are_not_json(value: bytes) -> None:
    """The decoder skips such values in unknown fields, but the reader finds them."""
    reading = read(b'{"size":"small","other":' + value + b"}", WidgetSpec)
    assert (reading.fault, reading.spec) == (ReadFault.JSON, None)
    assert "not valid JSON" in str(reading.errors[0])


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (b'"' + b"x" * (MAX_STRING_BYTES + 1) + b'"', "spec.other: Too long"),
        (b"[" + b"1," * MAX_SPEC_VALUES + b"1]", "spec.other: Too many"),
        (b"[" + b'"xxxxxxxxx",' * (MAX_SPEC_BYTES // 12) + b"1]", "spec.other: Too long"),
    ],
)
def test_names_the_field_that_is_too_large(other: bytes, words: str) -> None:
    """It is the field that brings the document over a limit."""
    assert errors(b'{"size":"small","other":' + other + b"}")[0].startswith(words)


def test_control_characters_are_errors() -> None:
    """They are found in known and unknown fields."""
    assert "control characters" in errors(b'{"size":"small","other":["\\u001b"]}')[0]


HOSTILE: dict[str, Callable[[], bytes]] = {
    "many keys": lambda: b'{"a":{' + b",".join(b'"k%d":0' % n for n in range(600_000)) + b"}}",
    "many lists": lambda: b'{"a":[' + b"[]," * 2_000_000 + b"1]}",
    "many bad values": lambda: b'{"size":"small","env":[' + b'{"name":5},' * 20_000 + b'{"name":5}]}',
    "deep and wide": lambda: b'{"a":' + b"[" * 900 + b"[1]," * 300_000 + b"1" + b"]" * 900 + b"}",
    "many controls": lambda: b'{"size":"small","a":[' + b'"\\u0001",' * 24_000 + b"1]}",
    "many unknown": lambda: b'{"size":"small",' + b",".join(b'"sise%d":0' % n for n in range(24_000)) + b"}",
    "quotes": lambda: b'{"size":"small","a":"' + b'\\"' * 130_000 + b'"}',
}


@pytest.mark.parametrize("made", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_specs_have_a_bounded_number_of_errors(made: Callable[[], bytes]) -> None:
    """The number of findings is limited; ``make bench`` measures the cost."""
    reading = read(made(), WidgetSpec)
    assert len(reading.warnings) <= 200
    assert len(reading.errors) <= 1100


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
@pytest.mark.parametrize("bad", ["\x1b[31m", "a" * (MAX_STRING_BYTES + 1)], ids=["control", "long"])
def test_admission_and_related_objects_have_the_same_errors(kind: Kind[Any, Any], bad: str) -> None:
    """A spec that admission refuses is also refused as a related object."""
    raw = orjson.dumps({**VALID[name_of(kind)], "other": bad})
    verdict = judge(kind, ObservedMeta(name="x"), ReviewedObject(spec=msgspec.Raw(raw)), None, SETTINGS)
    related = read_related(raw, kind.resource.spec)
    assert [str(error) for error in verdict.errors] == [str(error) for error in related.errors] != []
