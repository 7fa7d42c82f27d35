"""Arguments of an engine: placeholders in them are replaced by what is known of the models. Source: llmaz spec 3.3.

This is not Go's template language: one word between ``{{ .`` and ``}}``, nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

MODEL_PATH = "ModelPath"
MODEL_NAME = "ModelName"
DRAFT_MODEL_PATH = "DraftModelPath"
WORDS = (MODEL_PATH, MODEL_NAME, DRAFT_MODEL_PATH)

_PLACEHOLDER = re.compile(r"\{\{[ \t\n\f\r]*\.([0-9A-Za-z_]+)[ \t\n\f\r]*\}\}")
_PLAIN = re.compile(r"[A-Za-z0-9._:/@=+,~%-]+")
"""What may stand inside an argument, which may be a script (ollama's is): nothing that a shell reads as its own."""


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
            f"argument {argument[:80]!r}: the value {value[:80]!r} of {word} may not stand inside a longer argument; "
            "only letters, digits and ._:/@=+,~%- may"
        )
    return value


def unknown_words(argument: str) -> Iterator[str]:
    """Placeholders that never have a value."""
    return (match[1] for match in _PLACEHOLDER.finditer(argument) if match[1] not in WORDS)


def looks_templated(argument: str) -> bool:
    """Whether somebody expects this argument to be rendered."""
    return "{{" in argument and "." in argument
