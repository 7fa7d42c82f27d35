"""Template language of presets and configs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kserve.spec.template.bounds import Meter, TemplateError
from app.kserve.spec.template.functions import Pointer, printed, shell_quoted
from app.kserve.spec.template.language import Template

VALUES: dict[str, Any] = {
    "Name": Pointer("meta-llama/Llama-3.2-3B-Instruct"),
    "Unset": None,
    "Zero": Pointer(0),
    "Data": Pointer(4),
    "Expert": True,
    "Plain": False,
    "Text": "demo",
    "Empty": "",
    "Labels": {"b": "2", "a": "1"},
    "Pod": Pointer({"terminationGracePeriodSeconds": 30}),
    "Immediate": Pointer({"terminationGracePeriodSeconds": 0}),
}


class Data:
    """The fields that a template can read, without nested ones."""

    def field(self, path: Sequence[str], meter: Meter) -> Any:
        meter.spend(0)
        if path[0] not in VALUES or len(path) > 1:
            raise TemplateError(f"{'.'.join(path)} does not exist")
        return VALUES[path[0]]


def render(text: str) -> str:
    return Template(text).render(Data(), Meter())


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("no action", "no action"),
        ("{{ .Name }}", "meta-llama/Llama-3.2-3B-Instruct"),
        ("a {{.Text}} b {{ .Text }}", "a demo b demo"),
        ("{{ ChildName .Text `-inference-pool` }}", "demo-inference-pool"),
        ("{{ if .Unset }}yes{{ else }}no{{ end }}", "no"),
        ("{{ if .Zero }}set{{ end }}", "set"),
        ("{{ if .Plain }}x{{ else if .Expert }}y{{ else }}z{{ end }}", "y"),
        ("{{ if .Expert }}{{ if .Empty }}a{{ else }}b{{ end }}{{ end }}", "b"),
        ("{{ or .Data 1 }} {{ or .Unset 1 }} {{ and .Expert .Text }}", "4 1 demo"),
        ("{{ not .Plain }} {{ not .Zero }}", "true false"),
        ("x {{- if .Plain -}} e {{- end }} y", "x y"),
        ("a {{- .Text -}} b", "ademob"),
        ("{{ .Unset }} {{ .Expert }} {{ .Labels }}", "<nil> true map[a:1 b:2]"),
        ("{{/* a comment */}}z", "z"),
        ("{{ shutdownTimeout .Unset 15 }}", "40"),
        ("{{ shutdownTimeout .Pod 15 }}", "10"),
        ("{{ shutdownTimeout .Immediate 15 }}", "0"),
        ("a{{ kvTransferConfig .Unset }}b{{ kvTransferConfig .Pod }}c", "abc"),
        ('{{ printf "%s-%d|%q" .Text 3 .Text }}', 'demo-3|"demo"'),
        ("{{ .Text | printf `<%s>` }}", "<demo>"),
        ("{{ eq .Data 4 }} {{ ne .Text `x` }} {{ lt .Data 5 }} {{ ge 2 3 }}", "true true true false"),
        ("{{ index .Labels `a` }}{{ len .Labels }}", "12"),
        ("{{ print .Text 1 }}{{ println `x` }}", "demo1x\n"),
        ("{{ (or .Unset .Text) }}", "demo"),
        ("{{ `}} {{` }}", "}} {{"),
        ("{{ `a` }} \n  {{- `b` -}}  \n c", "a \nb\n c"),
        ("{{ `a` }}\t{{- `b` }}", "a\tb"),
    ],
)
def test_a_template_renders_as_gos_does(text: str, result: str) -> None:
    assert render(text) == result


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("{{ .NonExistent }}", 1, "does not exist"),
        ("ok\n{{ .NonExistent }}", 2, "does not exist"),
        ("{{", 1, "unclosed action"),
        ("a\nb\n{{ .Text", 3, "unclosed action"),
        ("{{ foo .Text }}", 1, "function foo is not defined"),
        ("{{ .Text | foo }}", 1, "function foo is not defined"),
        ("{{ if .Text }}x", 1, "{{ end }} is missing"),
        ("x{{ end }}", 1, "unexpected {{ end }}"),
        ("{{ if .Text }}{{ else }}{{ else }}{{ end }}", 1, "a second {{ else }}"),
        ("{{ range .Labels }}{{ end }}", 1, "range is not supported"),
        ("{{ with .Text }}{{ end }}", 1, "with is not supported"),
        ("{{ $x := .Text }}", 1, "unexpected"),
        ("{{ }}", 1, "missing value"),
        ("{{ . }}", 1, "name a field"),
        ("{{ .Text .Text }}", 1, "takes no arguments"),
        ("{{ ChildName .Text }}", 1, "wrong number of arguments"),
        ("{{ ChildName .Text 3 }}", 1, "expected a string"),
        ("{{ lt .Text 3 }}", 1, "incompatible types"),
        ("{{ (.Text }}", 1, "unclosed parenthesis"),
        ("{{ len 3 }}", 1, "cannot be evaluated"),
        ("{{ index .Text 0 }}", 1, "no element"),
        ("{{ printf `%03d` 7 }}", 1, "not %0"),
    ],
)
def test_errors_name_the_line(text: str, line: int, message: str) -> None:
    """A template that cannot be parsed or evaluated fails with the reason and the line."""
    with pytest.raises(TemplateError, match=message.replace("{", r"\{").replace("(", r"\(")) as raised:
        render(text)
    assert raised.value.line == line


@given(st.text(max_size=60) | st.text(alphabet='{}-.| `"()abif end or', max_size=40))
def test_any_string_renders_or_raises_template_error(text: str) -> None:
    with contextlib.suppress(TemplateError):
        assert isinstance(render(text), str)


@given(st.text(max_size=60).filter(lambda text: "{{" not in text))
def test_leaves_strings_without_actions(text: str) -> None:
    assert render(text) == text


@given(st.text(max_size=20).filter(lambda text: "`" not in text))
def test_literals_come_out_as_they_are(text: str) -> None:
    """A raw string literal is inserted unchanged, including braces."""
    assert render(f"<{{{{ `{text}` }}}}>") == f"<{text}>"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "<nil>"), (True, "true"), ([1, "a"], "[1 a]"), (Pointer(3), "3"), ("x", "x"), (1.5, "1.5")],
)
def test_printed_as_go_prints(value: Any, text: str) -> None:
    """Values are formatted as by Go's %v verb."""
    assert printed(value, Meter()) == text


@given(st.text())
def test_shell_quoting_escapes_what_kubernetes_expands(value: str) -> None:
    """Kubernetes expands ``$(NAME)`` and turns ``$$`` into ``$``, so every ``$`` must be doubled."""
    assert "$" not in shell_quoted(Meter(), value).replace("$$", "")
