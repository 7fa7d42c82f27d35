"""Quantities: any string is parsed to the API server's canonical form, or is an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kube import quantity


def test_rounds_up_to_nano_units() -> None:
    assert quantity.parse("1.5n") == quantity.parse("2n")


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("0.5", "500m"),
        ("1.5Gi", "1536Mi"),
        ("1e3", "1e3"),
        ("0", "0"),
        ("0.5Gi", "512Mi"),
        ("1.5Ki", "1536"),
        ("1000k", "1M"),
        ("100m", "100m"),
        ("+1", "1"),
        (".5", "500m"),
        ("1.5n", "2n"),
    ],
)
def test_canonical_form(text: str, canonical: str) -> None:
    """Otherwise Metacontroller would see a difference at every sync."""
    assert quantity.canonical(text) == canonical


@pytest.mark.parametrize("text", ["", "1.5.2", "1 Gi", "∞", "1gi", "Gi", "1e9999", "--1", "1Gi ", "\u0661"])
def test_rejects_invalid_quantities(text: str) -> None:
    with pytest.raises(quantity.QuantityError):
        quantity.parse(text)


@pytest.mark.parametrize(
    ("number", "unit"), [("0", ""), ("24", "Gi"), ("1023", "Gi"), ("24576", "Mi"), ("1048576", ""), ("x", "")]
)
def test_suggests_the_missing_unit_of_an_amount_of_memory(number: str, unit: str) -> None:
    assert quantity.missing_unit(number) == unit


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-07", -7),
        ("+9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("9" * 5000, None),
        ("", None),
        ("1.0", None),
        ("1\n", None),
        ("\u00b2", None),
        ("\u0661", None),
    ],
)
def test_parses_whole_numbers_of_64_bits(text: str, value: int | None) -> None:
    assert quantity.integer(text) == value


@given(st.text(max_size=12))
def test_any_string_parses_or_raises(text: str) -> None:
    """No other exception is raised, and the canonical form has the same value."""
    try:
        value = quantity.parse(text)
    except quantity.QuantityError:
        return
    again = quantity.canonical(text)
    assert quantity.parse(again) == value
    assert quantity.canonical(again) == again


@given(st.from_regex(r"\A[0-9]{1,6}(\.[0-9]{1,3})?(m|k|M|G|Ki|Mi|Gi)?\Z"))
def test_canonical_is_stable(text: str) -> None:
    assert quantity.canonical(quantity.canonical(text)) == quantity.canonical(text)
