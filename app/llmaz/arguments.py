"""Arguments of an engine: placeholders in them are replaced by what is known of the models. Source: LZ-3.3.

This is not Go's template language: one word between ``{{ .`` and ``}}``, nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from app.kube import field
from app.llmaz.names import PORT

MODEL_PATH = "ModelPath"
MODEL_NAME = "ModelName"
DRAFT_MODEL_PATH = "DraftModelPath"
WORDS = (MODEL_PATH, MODEL_NAME, DRAFT_MODEL_PATH)

_PLACEHOLDER = re.compile(r"\{\{[ \t\n\f\r]*\.([0-9A-Za-z_]+)[ \t\n\f\r]*\}\}")
_PLAIN = re.compile(r"[A-Za-z0-9._:/@=+,~%-]+")
"""What may stand inside an argument, which may be a script: nothing that a shell reads as its own."""


class ArgumentError(ValueError):
    """An argument cannot be rendered; the text says which and why."""


def render(arguments: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The arguments with every placeholder replaced, in order. Raises :class:`ArgumentError`."""
    return [_PLACEHOLDER.sub(lambda match: _value(match, values), argument) for argument in arguments]


def _value(match: re.Match[str], values: Mapping[str, str]) -> str:
    word, argument = match[1], match.string
    value = values.get(word, "")
    if not value:
        hint = " (there is no draft model)" if word == DRAFT_MODEL_PATH else ""
        raise ArgumentError(f"argument {argument[:80]!r}: {word} has no value{hint}")
    if match.group() != argument and not _PLAIN.fullmatch(value):
        raise ArgumentError(
            f"argument {argument[:80]!r}: {word} is {value[:80]!r}, which cannot be inserted into a longer argument; "
            "only letters, digits and ._:/@=+,~%- can"
        )
    return value


def unknown_words(argument: str) -> Iterator[str]:
    """Placeholders that never have a value."""
    return (match[1] for match in _PLACEHOLDER.finditer(argument) if match[1] not in WORDS)


_MEANT = re.compile(r"\{\{[^{}]*\b(?:" + "|".join(WORDS) + r")\b[^{}]*\}\}")


def names_a_word(text: str) -> bool:
    """Whether a known word stands in braces, in whatever way."""
    return _MEANT.search(text) is not None


def misses(argument: str) -> bool:
    """Whether a known word stands in braces in a way that is not replaced, such as ``{{ ModelPath }}``."""
    return names_a_word(_PLACEHOLDER.sub("", argument))


def port_warnings(arguments: Sequence[str], path: field.Path) -> Iterator[field.Advice]:
    """Servers told to listen on another port than that of the container, its probes and the Service (LZ-N31)."""
    for position, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        port = value if equals else arguments[position + 1] if position + 1 < len(arguments) else ""
        if option == "--port" and port != str(PORT):
            where = path.index(position)
            yield field.advice(
                where, f"no effect on the probes and the Service, which always use port {PORT}", "no-effect"
            )


def looks_templated(argument: str) -> bool:
    """Whether somebody expects this argument to be rendered."""
    return "{{" in argument and "." in argument
