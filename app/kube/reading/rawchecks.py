"""Checks of JSON before it is decoded: nesting, bytes and number of values, metadata, and control characters.

The API server keeps objects far below the limits. Other clients may send anything, and a map of a million labels takes
hundreds of times the memory of an ordinary object.
"""

import re
from collections.abc import Callable, Iterator

import msgspec
from msgspec import Raw

from app.kube import field
from app.kube.regex import regex
from app.limits import (
    MAX_ANNOTATIONS_BYTES,
    MAX_DEPTH,
    MAX_LABELS_BYTES,
    MAX_NAME_BYTES,
    MAX_REFERENCES_BYTES,
    MAX_SPEC_BYTES,
    MAX_SPEC_VALUES,
    MAX_STORED_BYTES,
    MAX_STRING_BYTES,
)

TOO_DEEP = f"nested too deeply, at most {MAX_DEPTH} levels"
_NOT_MARKS = bytes(set(range(256)) - set(b'[]{}"'))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_STRINGS = regex(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])

_MAY_HAVE_CONTROLS = regex(rb"\\(?:u00[0189]|u007[fF]|[bf])|\x7f|\xc2[\x80-\x9f]")
_CONTROL = regex("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def check_text(body: bytes) -> None:
    """Raise ``UnicodeDecodeError`` for invalid UTF-8, which decoders do not find in skipped fields."""
    if not body.isascii():
        body.decode()


def depth_exceeds(document: bytes | Raw, limit: int = MAX_DEPTH) -> bool:
    """Return whether JSON is nested deeper than ``limit``.

    Each pass removes one level of empty brackets, all in C. Before, strings are removed: most have no brackets, and
    are two quotes then.
    """
    text = bytes(document)
    if b"\\" in text:
        text = text.replace(rb"\\", b"").replace(rb"\"", b"")
    marks = text.translate(_ONE_KIND, _NOT_MARKS)
    brackets = marks.replace(b'""', b"")
    if b'"' in brackets:
        brackets = b"".join(marks.split(b'"')[::2])
    for _ in range(limit):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def excess(document: bytes | Raw, path: field.Path) -> list[field.Error]:
    """Return an error at the innermost field that makes the JSON too large. Raises ``msgspec.DecodeError``."""
    raw = bytes(document)
    if len(raw) <= MAX_STORED_BYTES:
        if len(raw) > MAX_STRING_BYTES and _longest_string(raw) > MAX_STRING_BYTES:
            return [field.too_long(_heaviest(raw, path, _longest_string, MAX_STRING_BYTES), MAX_STRING_BYTES)]
        if raw.count(b",") >= MAX_SPEC_VALUES and (values := _values(raw)) > MAX_SPEC_VALUES:
            return [field.too_many(_heaviest(raw, path, _values, MAX_SPEC_VALUES), values, MAX_SPEC_VALUES)]
    if len(raw) > MAX_SPEC_BYTES:
        return [field.too_long(_heaviest(raw, path, len, MAX_SPEC_BYTES), MAX_SPEC_BYTES, "a child could not hold it")]
    return []


def _longest_string(raw: bytes) -> int:
    """Return the bytes of the longest string, without its quotes and escapes."""
    long = (string for string in _STRINGS.findall(raw) if len(string) > MAX_STRING_BYTES)
    return max((len(msgspec.json.decode(string, type=str).encode()) for string in long), default=0)


def _values(raw: bytes) -> int:
    """Return the approximate number of values: the commas outside of strings, and one."""
    return _STRINGS.sub(b"", raw).count(b",") + 1


def _heaviest(raw: bytes, path: field.Path, weigh: Callable[[bytes], int], limit: int) -> field.Path:
    """Return the innermost field that alone is over the limit. Only the keys on the way are decoded."""
    while raw.startswith(b"{") and raw.count(b",") <= 10 * MAX_SPEC_VALUES:
        members = _MEMBERS.decode(raw)
        heavy = next((key for key, item in members.items() if weigh(bytes(item)) > limit), None)
        if heavy is None:
            break
        path, raw = path.child(heavy), bytes(members[heavy])
    return path


def may_have_controls(document: bytes) -> bool:
    return _MAY_HAVE_CONTROLS.search(document) is not None


def has_control(text: str) -> bool:
    return _CONTROL.search(text) is not None


def control_characters(value: object, path: field.Path) -> Iterator[field.Error]:
    """Yield an error for each string with C0 or C1 control characters other than tabs and line ends."""
    for where, text in _strings(value, path):
        if has_control(text):
            yield field.invalid(where, text, "must not contain control characters")


def _strings(value: object, path: field.Path) -> Iterator[tuple[field.Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, path.member(key))
    elif isinstance(value, list):
        for item_path, item in path.each(value):
            yield from _strings(item, item_path)


_OPENING, _CLOSING = "\u201c\u2018\u201d\u201e", "\u201d\u2019\u201c"
_TYPOGRAPHIC = "\u2018".encode()[:2]
"""The first bytes of all of them."""


def typographic_quotes(document: bytes, value: object, path: field.Path) -> Iterator[field.Advice]:
    """Warn of strings of a document between typographic quotes, which YAML does not read as quotes."""
    for where, text in _strings(value, path) if _TYPOGRAPHIC in document else ():
        if len(text) > 1 and text[0] in _OPENING and text[-1] in _CLOSING:
            message = f"{field.go_quote(text)} has typographic quotes, which are part of it"
            yield field.advice(where, field.with_hint(message, field.name_meant(text[1:-1])))


class MetadataParts(msgspec.Struct, rename="camel"):
    """The parts of metadata that are used, not decoded."""

    name: Raw = Raw(b"null")
    generate_name: Raw = Raw(b"null")
    namespace: Raw = Raw(b"null")
    uid: Raw = Raw(b"null")
    generation: Raw = Raw(b"null")
    creation_timestamp: Raw = Raw(b"null")
    deletion_timestamp: Raw = Raw(b"null")
    labels: Raw = Raw(b"null")
    annotations: Raw = Raw(b"null")
    owner_references: Raw = Raw(b"null")
    finalizers: Raw = Raw(b"null")


_LIMITS = {
    **dict.fromkeys((info.name for info in msgspec.structs.fields(MetadataParts)), MAX_NAME_BYTES),
    "labels": MAX_LABELS_BYTES,
    "annotations": MAX_ANNOTATIONS_BYTES,
    "owner_references": MAX_REFERENCES_BYTES,
    "finalizers": MAX_REFERENCES_BYTES,
}
_PARTS = tuple((info.name, info.encode_name, _LIMITS[info.name]) for info in msgspec.structs.fields(MetadataParts))
SMALLEST_LIMIT = min(_LIMITS.values())
"""Metadata of fewer bytes is within every bound."""


def excessive(parts: MetadataParts) -> Iterator[field.Error]:
    for name, key, limit in _PARTS:
        if memoryview(getattr(parts, name)).nbytes > limit:
            yield field.too_long(field.METADATA.child(key), limit)
