"""Plain scalars are what kubectl makes of them; tests/e2e/test_yaml.py asks it for these and for thousands more."""

from typing import Any

import pytest

from app.desk.files.manifests import ManifestError, parse

VALUES: dict[str, Any] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"), False),
    **dict.fromkeys(("~", "null", "Null", "NULL"), None),
    **{
        text: text
        for text in ("yEs", "tRUE", "nULL", "None", "truefalse", "=", "12:30", "190:20:30", "1.2.3", "1e", "e1")
    },
    **{
        text: text
        for text in ("2001-01-01", "2001-12-14t21:59:43.10-05:00", "1e400", "0o8", "0b2", "0x", "+-1", "--1", "_1")
    },
    "08": 8,
    "010": 8,
    "0o14": 12,
    "0O14": 12,
    "0x1F": 31,
    "0X1f": 31,
    "0b11": 3,
    "0b-1": -1,
    "-0b11": -3,
    "-0x1F": -31,
    "1e3": 1000,
    "12e03": 12000,
    "2e+06": 2000000,
    ".5e1": 5,
    "1.": 1,
    "1.0": 1,
    "-0.0": 0,
    "+12": 12,
    "1_000": 1000,
    "1.5": 1.5,
    ".5": 0.5,
    "-.5": -0.5,
    "1e-3": 0.001,
    "1_0.5_0": 10.5,
    "089.5": 89.5,
    "1e21": 1e21,
    "18446744073709551616": 18446744073709551616.0,
    "077777777777777777777777": 77777777777777777777777.0,
    "0xFFFFFFFFFFFFFFFFF": "0xFFFFFFFFFFFFFFFFF",
}

KEYS = {
    "y": "true",
    "1.5": "1.5",
    "12e03": "12000",
    "1e6": "1e+06",
    "0.00001": "1e-05",
    "16777217.0": "1.6777216e+07",
    "16777217": "16777217",
    "0x1F": "31",
    "12:30": "12:30",
    "2001-01-01": "2001-01-01",
    "1e400": "1e400",
    ".inf": ".inf",
}


def spec(text: str) -> Any:
    (manifest,) = parse(f"kind: K\nspec:\n  {text}\n", "f.yaml")
    return manifest.document["spec"]


@pytest.mark.parametrize("text", VALUES)
def test_a_plain_scalar_has_the_type_that_kubernetes_reads(text: str) -> None:
    value = spec(f"a: {text}")["a"]
    assert (value, type(value)) == (VALUES[text], type(VALUES[text]))


@pytest.mark.parametrize("text", KEYS)
def test_a_key_is_text(text: str) -> None:
    assert spec(f"{text}: 1") == {KEYS[text]: 1}


@pytest.mark.parametrize("quoted", ["'1e3'", '"1e3"', "!!str 1e3", "|\n    1e3"])
def test_a_quoted_scalar_is_text(quoted: str) -> None:
    assert spec(f"a: {quoted}")["a"].strip() == "1e3"


@pytest.mark.parametrize("text", ["a: .inf", "a: -.Inf", "a: .NaN", "~: 1", "18446744073709551615: 1", "a: !!int x"])
def test_refuses_what_json_does_not_have(text: str) -> None:
    with pytest.raises(ManifestError):
        spec(text)


def test_reads_json_as_json() -> None:
    """One object after the other, as jq -c writes them, and characters in two escapes, as Python's json module does."""
    first, second = parse('{"kind": "A", "n": "\\ud83d\\ude00 \\\\ud83d"}\n  {"kind": "B"}\n', "f.json")
    assert first.document["n"] == "\U0001f600 \\ud83d"
    assert (second.kind, second.node.start_mark.line, second.node.start_mark.column) == ("B", 1, 2)


def test_flow_style_that_is_no_json_is_yaml() -> None:
    (manifest,) = parse("{kind: A, size: 1e3}", "f.yaml")
    assert manifest.document == {"kind": "A", "size": 1000}
