"""Placeholders in an engine's arguments (LZ-3.3)."""

from __future__ import annotations

import pytest

from app.llmaz.arguments import ArgumentError, render

VALUES = {"ModelPath": "path/to/model", "ModelName": "foo"}

RENDERED = {
    "inside an argument": ("run {{ .ModelPath }};sleep 5", "run path/to/model;sleep 5"),
    "without blanks": ("{{.ModelName}}", "foo"),
    "with many blanks": ("{{   .ModelName}}", "foo"),
    "several": ("{{ .ModelName }}={{ .ModelPath }}", "foo=path/to/model"),
    "without the dot it is text": ("{{ ModelPath }}", "{{ ModelPath }}"),
    "functions are text": ("{{ .ModelPath | quote }}", "{{ .ModelPath | quote }}"),
    "no placeholder": ("$(HOME)", "$(HOME)"),
}


@pytest.mark.parametrize(("argument", "want"), RENDERED.values(), ids=RENDERED.keys())
def test_render(argument: str, want: str) -> None:
    """Only a single name between the braces is replaced; everything else stays."""
    assert render([argument], VALUES) == [want]


@pytest.mark.parametrize("argument", ["{{ .Foo }}", "{{ .DraftModelPath }}", "x{{.TP}}"])
def test_a_placeholder_without_a_value_is_an_error(argument: str) -> None:
    """A placeholder without a value fails the whole rendering."""
    with pytest.raises(ArgumentError, match="has no value"):
        render(["--ok", argument], VALUES)


@pytest.mark.parametrize("value", ["a;b", "a b", "$(x)", "a'b", 'a"b', "a\nb", "a|b", "a`b", "a&b", "ä"])
def test_quotes_values_in_scripts(value: str) -> None:
    """A value with shell characters may be a whole argument, but must not be part of one."""
    assert render(["{{ .ModelName }}"], {"ModelName": value}) == [value]
    with pytest.raises(ArgumentError, match="cannot be inserted"):
        render(["ollama run {{ .ModelName }}"], {"ModelName": value})


def test_values_are_not_rendered_again() -> None:
    """A value that looks like a placeholder is not replaced."""
    assert render(["{{ .ModelName }}"], {"ModelName": "{{ .ModelPath }}", "ModelPath": "p"}) == ["{{ .ModelPath }}"]
