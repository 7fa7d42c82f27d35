"""Errors for values of the wrong type, in specs and in what they embed: the required type, and what to write."""

import re
import shlex
from collections.abc import Collection
from typing import NamedTuple

from app.kube import field, quantity
from app.kube.field import Hint, with_hint
from app.kube.regex import regex

_WITH_NAME = ("key", "uri")
"""Fields without which a name refers to nothing: a key of a Secret's, the address of an adapter."""


_NO_BLANK = regex("-[\"']")
_TRUE = frozenset({"true", "yes", "on", "y", "t", "1", "enabled"})
_FALSE = frozenset({"false", "no", "off", "n", "f", "0", "disabled"})
_NUMBER = regex(r"[-+]?[0-9]+(\.[0-9]+)?")
_OTHER_NUMBER = regex(r"0[0-9]+|[1-9](\.[0-9]+)?[eE][0-9]{1,2}")
"""Numbers with leading zeros or an exponent, which YAML does not read as whole numbers."""
_GROUPED = regex(r"[0-9]{1,3}(?:([,_])[0-9]{3})(?:\1[0-9]{3})*")
_COUNTED = regex(r"([0-9]+(?:\.[0-9]+)?)\s*([kKmM])")
_THOUSANDS = {"k": 1, "m": 2}
_WITH_UNIT = regex(r"([0-9]+(?:\.[0-9]+)?)\s*(%|[A-Za-z]+)")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_SHOWN_FIELDS = 6
"""Maximum number of an object's fields in a message."""


class Members(NamedTuple):
    """The fields of an object, or of each item of a list; empty for other types."""

    fields: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    enumerated: tuple[str, ...] = ()
    """Those that take a few values only."""

    @property
    def key(self) -> str:
        """The field that a string in place of the object is meant for; empty if that is not certain."""
        if len(self.required) == 1:
            return self.required[0]
        return "name" if "name" in self.fields and "name" not in self.enumerated else ""


def wrong_type(
    path: field.Path,
    value: object,
    wanted: str,
    members: Members = Members(),  # noqa: B008
    around: Collection[str] = (),
) -> field.Error:
    """Return the error for a value that is not of the type ``wanted``: a JSON type, or an amount of memory.

    ``around`` are the fields of the object that has a map: one of them may be in the map by its indentation.
    """
    name = str(path.segments[-1]) if path.segments else "it"
    words, advise = _TYPES[wanted]
    if name in around and isinstance(value, (dict, list)):
        return field.type_invalid(path, value, f"must be {words}; {name} belongs one level higher: indent it less")
    if "/" in name and isinstance(value, float):
        return field.type_invalid(path, value, "must be a whole number: extended resources cannot be divided")
    advice = field.UNRENDERED if field.is_template(value) else advise(value, name, members)
    return field.type_invalid(path, value, with_hint(f"must be {words}; ", advice) if advice else f"must be {words}")


def _write(value: str, manner: str) -> Hint:
    return Hint(f"write {value} {manner}", value)


def _item_or_field(name: str, value: str, manner: str) -> Hint:
    """Advise on a string as a field or, where the name is a position, as an item."""
    return Hint(f"write - {value}{manner}", value) if name.isdigit() else _write_field(name, value, manner)


def _write_field(name: str, value: str, manner: str = "") -> Hint:
    return Hint(f"write {name}: {value}{manner}", value)


def _number(value: object, name: str, _: Members) -> str:
    if isinstance(value, list) and len(value) == 1:
        return _write_field(name, field.render(value[0]), ", without a list")
    if not isinstance(value, str):
        return ""
    text = value.strip()
    if _OTHER_NUMBER.fullmatch(text):
        text = f"{float(text):.0f}"
    if _NUMBER.fullmatch(text):
        return _write(text, "without quotes")
    if _GROUPED.fullmatch(text):
        digits = re.sub("[,_]", "", text)
        return Hint(f"write {digits}", digits)
    unit = _WITH_UNIT.fullmatch(text)
    if unit and name.endswith(("Seconds", "Period", "Interval")) and unit[2].lower() in _SECONDS:
        return _write_field(name, f"{float(unit[1]) * _SECONDS[unit[2].lower()]:.0f}")
    if counted := _COUNTED.fullmatch(text):
        power = _THOUSANDS[counted[2].lower()]
        return " or ".join(f"write {float(counted[1]) * base**power:.0f}" for base in (1000, 1024))
    return _write_field(name, unit[1], ", without a unit") if unit else ""


def _fraction(value: object, name: str, members: Members) -> str:
    """Advise on a number, which for a percentage is a fraction."""
    percent = _WITH_UNIT.fullmatch(value.strip()) if isinstance(value, str) else None
    if percent and percent[2] == "%":
        return _write_field(name, f"{float(percent[1]) / 100:g}")
    return _number(value, name, members)


def _boolean(value: object, name: str, _: Members) -> str:
    text = str(value).strip().lower() if isinstance(value, (str, int)) else ""
    boolean = "true" if text in _TRUE else "false" if text in _FALSE else ""
    return _write(boolean, "without quotes") if boolean else ""


def _text(value: object, name: str, _: Members) -> str:
    if isinstance(value, (int, float)):
        reason = " (kubectl reads a bare y, n, yes, no, on or off as true or false)" if isinstance(value, bool) else ""
        return _write(f'"{field.render(value)}"', f"in quotes{reason}")
    if isinstance(value, dict) and name == "matchLabels":  # of a selector that is a map of labels itself
        return "remove this level: the labels must be directly below the selector"
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        return _item_or_field(name, value["name"], ", the name alone")
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return _write_field(name, value[0], ", without a list")
    if not isinstance(value, dict) or len(value) != 1:
        return ""
    [(key, only)] = value.items()
    if name.isdigit():
        return _of_colon(key)
    return _write_field(name, only, f", without {key}") if isinstance(only, str) else ""


def _of_colon(key: str) -> str:
    """Advise on an item of strings that YAML read as an object, such as ``- --flash-attn: on``."""
    form = (
        f"{field.go_quote(key)} and its value as two strings" if key.startswith("-") else "it as one string in quotes"
    )
    return f"the colon makes it an object; write {form}"


def _memory(value: object, name: str, members: Members) -> str:
    number = field.render(value)
    unit = quantity.missing_unit(number) if _NUMBER.fullmatch(number) else ""
    return _write_field(name, f"{number}{unit}") if unit else _text(value, name, members)


def _list(value: object, name: str, members: Members) -> str:
    if isinstance(value, dict):
        return _list_of(value, members)
    if isinstance(value, str) and "name" in members.fields:
        return f'write it as an item: "- name: {value}"'
    if members.fields or (isinstance(value, str) and _NO_BLANK.match(value)):
        return 'begin each item with "- "'
    items = _words(value) if isinstance(value, str) else [value]
    return Hint(f"write {name}: {field.render(items)}", field.as_json(items))


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text) or [text]
    except ValueError:
        return [text]


def _list_of(value: dict[str, object], members: Members) -> str:
    """Advise on an object in place of a list: one item without its dash, or names that belong inside the items."""
    if not value:
        return _write("[]", "for none")
    first = next(iter(value))
    if first.startswith("--"):
        return f'write an option and its value as items of the list, as in "- {first}"'
    if first.startswith("-"):
        return f'write a blank after the dash, as in "- {first[1:]}:"'
    if not members.fields:
        return f'its items are strings: write each as in "- {first}"'
    if "name" not in members.fields or any(key in members.fields for key in value):
        example = f"{first}: {value[first]}" if isinstance(value.get(first), (str, int, float)) else f"{first}:"
        return f'begin each item with "- ", as in "- {example}"'
    beside = ' and "value:" below it' if "value" in members.fields else ""
    return f'write each entry as an item with "- name: {first}"{beside}'


def _object(value: object, name: str, members: Members) -> str:
    if isinstance(value, list) and _has_only(value, members.fields):
        names = "names and values" if not members.fields else "its fields"
        return f'write {names} directly below {name}, without "- "'
    if isinstance(value, list) and len(members.fields) == 1:
        return f"write the list as its field {members.fields[0]}"
    if members.key and isinstance(value, str) and _may_be(members.key, value):
        return _of_two(value, members) or _entry(members.key, value, name, members)
    if members.required == (members.key,) and type(value) in (int, float):
        return _entry(members.key, field.render(value), name, members)
    if not members.fields:
        return ""
    if value is True and not members.required:
        return f"write {name}: {{}} for the defaults, or its fields: {_shown(members)}"
    return f"its fields are {_shown(members)}"


def _may_be(key: str, value: str) -> bool:
    """Return whether a string can be the value of the field; no name has slashes or colons."""
    return bool(value) and not (key == "name" and "://" not in value and {"/", ":"} & set(value.partition("=")[0]))


def _has_only(items: list[object], names: Collection[str]) -> bool:
    """Return whether the items of a list are objects with these fields alone, or any if there are no names."""
    return not names or all(isinstance(item, dict) and item.keys() <= set(names) for item in items)


def _shown(members: Members) -> str:
    shown = [*members.required, *(field_ for field_ in members.fields if field_ not in members.required)]
    more = ", …" if len(shown) > _SHOWN_FIELDS else ""
    return f"{', '.join(shown[:_SHOWN_FIELDS])}{more}"


def _of_two(value: str, members: Members) -> str:
    """Advise on a string in place of an object that needs a name and another field; empty for other objects."""
    other = next((other for other in _WITH_NAME if {"name", other} <= set(members.fields)), "")
    first, second = (other, "name") if "://" in value else ("name", other)
    return f"write {first}: {value}, and {second}: beside it" if other and members.required != (first,) else ""


def _entry(key: str, value: str, name: str, members: Members) -> str:
    """Write a string as the object that was probably meant; an item of a list has a position instead of a name."""
    inner, separator, rest = value.partition("=")
    if separator and "value" in members.fields:
        return f"write - {{name: {inner}, value: {field.render(rest)}}}"
    return f"write - {key}: {value}" if name.isdigit() else _write_field(name, f"{{{key}: {value}}}")


_TYPES = {
    "integer": ("a whole number", _number),
    "number": ("a number", _fraction),
    "boolean": ("true or false", _boolean),
    "string": ("a string", _text),
    "int-or-string": ("a number or a string", _text),
    "memory": ("a string", _memory),
    "array": ("a list", _list),
    "object": ("an object", _object),
}
