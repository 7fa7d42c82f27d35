"""Arguments of an engine, with placeholders for the model's values and the flavor's params. Source: LZ-3.3.

This is not Go's template language: one word between ``{{ .`` and ``}}``, nothing else.
"""

import re
from collections.abc import Mapping, Sequence

from app.workload.engines.engine import Engine
from app.workload.engines.grammar import GRAMMARS

MODEL_PATH = "ModelPath"
MODEL_NAME = "ModelName"
DRAFT_MODEL_PATH = "DraftModelPath"
TENSOR_PARALLEL = "TP"
PIPELINE_PARALLEL = "PP"
OF_MODELS = (MODEL_PATH, MODEL_NAME, DRAFT_MODEL_PATH)
DEGREES = (TENSOR_PARALLEL, PIPELINE_PARALLEL)
WORDS = (*OF_MODELS, *DEGREES)
"""Placeholders of every preset. All others are params that a flavor may have."""

_WORD = r"[0-9A-Za-z_-]+"
_PLACEHOLDER = re.compile(rf"\{{\{{[ \t\n\f\r]*\.({_WORD})[ \t\n\f\r]*\}}\}}")
_PLAIN = re.compile(r"[A-Za-z0-9._:/@=+,~%-]+")
"""Values that can be inserted into an argument, which may be a script: no shell metacharacters."""
_NO_VALUE = {
    MODEL_PATH: "the model has none",
    MODEL_NAME: "the model has none",
    DRAFT_MODEL_PATH: "no draft model is claimed",
    **dict.fromkeys(DEGREES, "the flavor's param must be a whole number, 1 or more"),
}
_KNOWN, _OF_MODELS = (rf"(?:{'|'.join(words)})" for words in (WORDS, OF_MODELS))
_MEANT = re.compile(
    rf"\{{\{{(?:(?!\b{_KNOWN}\b)[^{{}}])*+\b{_KNOWN}\b[^{{}}]*+\}}\}}|\{{ *+\.{_KNOWN}\b|\$[({{]{_OF_MODELS}[)}}]"
)


class ArgumentError(ValueError):
    """An argument cannot be rendered; the message has the argument and the reason."""


def render(arguments: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Replace the placeholders in all arguments. Raises :class:`ArgumentError`."""
    return [_PLACEHOLDER.sub(lambda match: _value(match, values), argument) for argument in arguments]


def _value(match: re.Match[str], values: Mapping[str, str]) -> str:
    word, argument = match[1], match.string
    value = values.get(word, "")
    if not value:
        hint = _NO_VALUE.get(word, "the chosen flavor has no such param")
        raise ArgumentError(f"argument {argument[:80]!r}: {word} has no value ({hint})")
    if match.group() != argument and not _PLAIN.fullmatch(value):
        raise ArgumentError(
            f"argument {argument[:80]!r}: {word} is {value[:80]!r}, which cannot be inserted into a longer argument; "
            "only letters, digits and ._:/@=+,~%- can"
        )
    return value


def render_variable(text: str, params: Mapping[str, str]) -> str:
    """Replace the params of a flavor in the value of a variable; other placeholders stay."""
    return _PLACEHOLDER.sub(lambda match: params.get(match[1]) or match[0], text)


def is_word(text: str) -> bool:
    return re.fullmatch(_WORD, text) is not None


def named_words(text: str) -> list[str]:
    return [match[1] for match in _PLACEHOLDER.finditer(text)]


def names_a_word(text: str) -> bool:
    """True if braces contain a known word, in any form, also a shell's."""
    return _MEANT.search(text) is not None


def has_option(engine: Engine | None, arguments: Sequence[str], options: Sequence[str]) -> bool:
    """True if the arguments contain one of the options, as the engine reads them; by name without a known engine."""
    if engine is None:
        return not _options(arguments).isdisjoint(_options(options))
    return engine.read(arguments).gives(*(occurrence.name for occurrence in engine.read(options).occurrences))


def _options(arguments: Sequence[str]) -> set[str]:
    return {argument.partition("=")[0].replace("_", "-") for argument in arguments if argument.startswith("-")}


def together(engine: Engine | None, arguments: Sequence[str], added: Sequence[str]) -> list[str]:
    """Return arguments with others behind them, which replace options of which the engine takes only one."""
    if engine is None or GRAMMARS[engine.name].repeats:
        return [*arguments, *added]
    original, parsed = engine.read(arguments), engine.read(added)
    replaced = [occurrence for occurrence in original.occurrences if parsed.gives(occurrence.option)]
    left_out = {occurrence.at + place for occurrence in replaced for place in range(occurrence.width)}
    return [*(word for at, word in enumerate(arguments) if at not in left_out), *added]


def misses(argument: str) -> bool:
    """True if braces contain a known word in a form that is not replaced, such as ``{{ ModelPath }}``."""
    return names_a_word(_PLACEHOLDER.sub("", argument))
