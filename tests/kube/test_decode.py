"""Decoding specs: as strict as the API server, with all errors at once, in Kubernetes' format."""

from typing import Any

import pytest

from app.kube.reading.decode import decode_document
from tests.widgets import WidgetSpec


def errors_of(spec: Any) -> list[str]:
    return [str(error) for error in decode_document(spec, WidgetSpec)[1]]


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({}, "spec.size: Required value"),
        ({"size": "x"}, 'spec.size: Unsupported value: "x": supported values: "small", "large"'),
        (
            {"size": "small", "replicas": 11},
            "spec.replicas: Invalid value: 11: must be between 0 and 10",
        ),
        (
            {"size": "small", "replicas": "5"},
            'spec.replicas: Invalid value: "5": must be a whole number; write 5 without quotes',
        ),
        (
            {"size": "small", "replicas": 2.5},
            "spec.replicas: Invalid value: 2.5: must be a whole number",
        ),
        ({"size": "small", "name": "A"}, 'spec.name: Invalid value: "A": must be lower case letters'),
        ({"size": "small", "name": "a" * 11}, "spec.name: Too long: may not be more than 10 bytes"),
        ({"size": "small", "ports": [{"number": 1}] * 4}, "spec.ports: Too many: 4: must have at most 3 items"),
        (
            {"size": "small", "ports": [{"number": 0}]},
            "spec.ports[0].number: Invalid value: 0: must be between 1 and 65535",
        ),
        ([], 'spec: Invalid value: []: must be an object; write its fields directly below spec, without "- "'),
    ],
)
def test_errors_read_as_those_of_the_api_server(spec: Any, error: str) -> None:
    """A message has path and type as the API server writes them, and the correction."""
    assert errors_of(spec) == [error]


def test_all_errors_at_once() -> None:
    assert len(errors_of({"size": "x", "replicas": -1, "name": 5})) == 3


@pytest.mark.parametrize("spec", [{"size": "small", "replicas": 5.0}, {"size": "small", "replicas": 5, "name": None}])
def test_null_is_absent_and_a_whole_float_is_an_integer(spec: dict[str, Any]) -> None:
    """JSON has one number type, and the API server drops nulls."""
    decoded, errors = decode_document(spec, WidgetSpec)
    assert errors == []
    assert decoded is not None
    assert decoded.replicas == 5


def test_null_for_a_field_with_a_default_is_the_default() -> None:
    """The API server prunes the null, then applies the default."""
    decoded, _ = decode_document({"size": "small", "replicas": None}, WidgetSpec)
    assert decoded == WidgetSpec(size="small")


def test_embedded_types_are_passed_on_whole() -> None:
    """Fields of newer Kubernetes releases are kept."""
    decoded, _ = decode_document({"size": "small", "env": [{"name": "A", "newer": {"x": 1}}]}, WidgetSpec)
    assert decoded is not None
    assert decoded.env == [{"name": "A", "newer": {"x": 1}}]


def test_paths_have_segments() -> None:
    """The segments lead to the value in the document."""
    (error,) = decode_document({"size": "small", "ports": [{"number": 1}, {"number": 99999}]}, WidgetSpec)[1]
    assert error.path.segments == ("spec", "ports", 1, "number")
