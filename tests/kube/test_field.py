"""Paths and messages are exactly those of Kubernetes."""

import pytest

from app.kube import field
from app.kube.field import Path
from app.limits import MAX_SHOWN_ERRORS

SPEC = Path("spec")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (SPEC.child("env").index(3).child("name"), "spec.env[3].name"),
        (Path("metadata").child("annotations").key("example.com/x"), "metadata.annotations[example.com/x]"),
        (Path("metadata", None).child("name"), "metadata.name"),
    ],
)
def test_a_path_reads_as_in_kubectl(path: Path, text: str) -> None:
    """Fields are joined by dots; indexes and map keys are in brackets."""
    assert str(path) == text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (field.required(SPEC), "spec: Required value"),
        (field.required(SPEC, "say what"), "spec: Required value: say what"),
        (field.invalid(SPEC, -1, "too small"), "spec: Invalid value: -1: too small"),
        (field.invalid(SPEC, "a\n", "no"), 'spec: Invalid value: "a\\n": no'),
        (field.invalid(SPEC, {"a": [1]}, "no"), 'spec: Invalid value: {"a":[1]}: no'),
        (field.not_supported(SPEC, "x", ["a", "b"]), 'spec: Unsupported value: "x": supported values: "a", "b"'),
        (field.invalid(SPEC, "{{ .X }}", "no"), 'spec: Invalid value: "{{ .X }}": no; this is an unrendered template'),
        (
            field.not_supported(SPEC, "{{ .a }}", ["a"]),
            'spec: Unsupported value: "{{ .a }}": supported values: "a": this is an unrendered template',
        ),
        (field.duplicate(SPEC, "x"), 'spec: Duplicate value: "x"'),
        (field.forbidden(SPEC, "not here"), "spec: Forbidden: not here"),
        (field.too_long(SPEC, 1), "spec: Too long: may not be more than 1 byte"),
        (field.too_many(SPEC, 3, 2), "spec: Too many: 3: must have at most 2 items"),
        (field.immutable(SPEC, 1), "spec: Invalid value: 1: field is immutable"),
    ],
)
def test_an_error_reads_as_in_kubernetes(error: field.Error, text: str) -> None:
    """Each type of error has its own message (HTTP-1.7)."""
    assert str(error) == text


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("plain ü", '"plain ü"'),
        ('"\\', '"\\"\\\\"'),
        ("\x00\x1b\u200b\t", '"\\x00\\x1b\\u200b\\t"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_quoting_is_gos(text: str, quoted: str) -> None:
    """Invisible characters are escaped."""
    assert field.go_quote(text) == quoted


@pytest.mark.parametrize(
    ("value", "text"), [(1e6, "1e+06"), (123456789.0, "1.23456789e+08"), (0.5, "0.5"), (2.0, "2"), (True, "true")]
)
def test_numbers_are_rendered_as_go_does(value: object, text: str) -> None:
    """Large floats have an exponent."""
    assert field.render(value) == text


def test_a_long_value_is_cut() -> None:
    """Messages stay readable."""
    assert len(field.render("x" * 10_000)) < 300


def test_several_errors_become_a_list_without_duplicates() -> None:
    """One error is written alone, several in brackets."""
    error, other = field.required(SPEC), field.forbidden(SPEC, "no")
    assert field.aggregate([error, error]) == "spec: Required value"
    assert field.aggregate([error, other]) == "[spec: Required value, spec: Forbidden: no]"


def test_beyond_a_number_errors_are_counted() -> None:
    """The message stays readable."""
    errors = [field.required(SPEC.child("a").index(n)) for n in range(250)]
    text = field.aggregate(errors)
    assert text.count("Required value") == MAX_SHOWN_ERRORS
    assert text.endswith("] and 230 more errors")


def test_a_long_key_is_cut_in_a_path() -> None:
    """A user's key may have a megabyte."""
    for path in (SPEC.child("k" * 1_000_000), SPEC.key("k" * 1_000_000)):
        assert len(str(path)) < 300
        assert path.segments[-1] == "k" * 1_000_000


def test_a_number_beyond_64_bits_in_a_value() -> None:
    """It is printed, also inside a map."""
    assert field.render({"a": [2**70]}) == '{"a":[1180591620717411303424]}'
