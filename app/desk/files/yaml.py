"""JSON data as YAML: block style, the order given, and nothing that two YAML readers could understand differently."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import yaml

from app.desk.files.printing import is_plain, lines

_NUMBER_LIKE = re.compile(r"[-+.]?[0-9][0-9a-fA-FxXoOeE_.:+-]*")
_STRING = "tag:yaml.org,2002:str"
_BOOLEAN_LIKE = frozenset({"y", "Y", "n", "N"})
"""YAML 1.1 booleans that PyYAML reads and writes as text, but the YAML library of kubectl does not."""


_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""libyaml writes the same text in a fifth of the time, where PyYAML was built with it."""
_FORM: Any = {"sort_keys": False, "default_flow_style": False}


class _Dumper(_Base):  # type: ignore[misc]  # libyaml's class or PyYAML's, whose stubs have no common base
    """No anchors and aliases: equal parts are written out each time."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Represent a string in the plainest style that every reader takes for a string."""
    style = None
    if not text.replace("\n", "").isprintable() or text in _BOOLEAN_LIKE or _NUMBER_LIKE.fullmatch(text):
        style = '"'
    elif "\n" in text:
        style = "|"
    return dumper.represent_scalar(_STRING, text, style=style)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(tuple, lambda dumper, items: dumper.represent_list(list(items)))


class _QuotingDumper(_Dumper):
    """Every string in double quotes, so that its lines can have escapes."""


_QuotingDumper.add_representer(str, lambda dumper, text: dumper.represent_scalar(_STRING, text, style='"'))


def dump(document: object) -> str:
    """One document, ending in a newline. What :func:`.printing.escaped` would change is escaped in quotes."""
    try:
        text = "\n".join(_lines(document))
    except _UnusualError:
        text = _dumped(document, _WIDTH)
    if is_plain(text):
        return text
    return lines(yaml.dump(document, Dumper=_QuotingDumper, width=2**31 - 1, **_FORM).splitlines())


def dump_all(documents: Sequence[object]) -> str:
    return "---\n".join(dump(document) for document in documents)


def _dumped(document: object, width: int) -> str:
    text: str = yaml.dump(document, Dumper=_Dumper, allow_unicode=True, width=width, **_FORM)
    return text


# The same text in a quarter of the time: PyYAML makes a node of each value, and is only asked how to write a scalar.

_WIDTH = 110
_LONGEST_KEY = 100
"""Characters; PyYAML writes a document with a longer key."""
_PLAIN = re.compile(r"(?:--)?[A-Za-z/][A-Za-z0-9_./:@=+,-]{4,}[A-Za-z0-9_/]")
"""Text that is written as it is: longer than a word with a meaning, such as ``false``, and without blanks."""
_ENDLESS = "+"
"""The head of a block whose last line is empty; libyaml writes a line after it at the end of the document."""


class _UnusualError(Exception):
    """PyYAML has to write the whole document."""


def _lines(document: object) -> list[str]:
    """Return the lines of a document, and an empty one at the end."""
    if type(document) is not dict or not document:
        raise _UnusualError
    result: list[str] = []
    _add_map(result, document, "", "")
    return [*result, ""]


def _add_map(result: list[str], document: dict[Any, Any], indent: str, first: str) -> None:
    """Add the fields of a map; ``first`` precedes the first field, and has the width of the indent."""
    for key, value in document.items():
        head = key if type(key) is str and _PLAIN.fullmatch(key) else _scalar(key)
        if len(head) > _LONGEST_KEY or not str(key).isprintable():
            raise _UnusualError
        kind = type(value)
        if kind is dict and value:
            result.append(f"{first}{head}:")
            _add_map(result, value, f"{indent}  ", f"{indent}  ")
        elif kind in _LISTS and value:
            result.append(f"{first}{head}:")
            _add_list(result, value, indent, indent)
        else:
            _add_scalar(result, f"{first}{head}:", value, indent)
        first = indent


def _add_list(result: list[str], items: Sequence[Any], indent: str, first: str) -> None:
    for item in items:
        kind = type(item)
        if kind is dict and item:
            _add_map(result, item, f"{indent}  ", f"{first}- ")
        elif kind in _LISTS and item:
            _add_list(result, item, f"{indent}  ", f"{first}- ")
        else:
            _add_scalar(result, f"{first}-", item, indent)
        first = indent


_LISTS = (list, tuple)
_EMPTY: dict[type, str] = {dict: "{}", list: "[]", tuple: "[]"}


def _add_scalar(result: list[str], head: str, value: Any, indent: str) -> None:
    is_plain_text = type(value) is str and _PLAIN.fullmatch(value)
    text: str = value if is_plain_text else _EMPTY.get(type(value)) or _scalar(value)
    if "\n" not in text and (" " not in text or len(head) + 1 + len(text) <= _WIDTH):
        result.append(f"{head} {text}")
        return
    name = head[len(indent) :]
    first, *others = _entry("" if name == "-" else "x" * (len(name) - 1), value, _WIDTH - len(indent))
    if first.endswith(_ENDLESS):
        raise _UnusualError
    result.append(f"{head}{first[len(name) :]}")
    result += [f"{indent}{line}" if line else line for line in others]


@lru_cache(maxsize=1024, typed=True)
def _scalar(value: object) -> str:
    """Return a scalar as PyYAML writes it without a limit of width; a string with line ends as several lines."""
    return _dumped([value], 2**31 - 1).removeprefix("- ").removesuffix("\n")


@lru_cache(maxsize=128, typed=True)
def _entry(key: str, value: object, width: int) -> Sequence[str]:
    """Return the lines of a field, or of an item of a list for an empty key. Many children have the same script."""
    return _dumped({key: value} if key else [value], width).split("\n")[:-1]
