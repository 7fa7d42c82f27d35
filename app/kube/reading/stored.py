"""JSON as the API server stores it: ``null`` counts as absent, and a float that is a whole number is an integer.

The API server returns what small controllers wrote, ``lastTransitionTime: null`` included, and for Kubernetes' own
types that is the same as no field at all.
"""

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw, inspect

_MEANINGFUL_WHEN_EMPTY = frozenset(
    {
        "emptyDir",
        "namespaceSelector",
        "podSelector",
        "labelSelector",
        "selector",
        "securityContext",
        "capabilities",
        "seLinuxOptions",
        "windowsOptions",
        "preemptionPolicy",
        "exact",
        "preference",
    }
)
"""Keys under which an empty map has a meaning, so that the API server keeps it."""
ObservedT = TypeVar("ObservedT")
_NULL = b"null"
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_ITEMS = msgspec.json.Decoder(list[Raw])
_encoded = msgspec.json.encode


def clean(value: Any) -> Any:
    """Return embedded JSON as the API server stores it: without nulls and without lists and maps that are empty.

    Both would make Metacontroller see a difference at every sync (MC-3.2). Meaningful empties such as ``emptyDir: {}``
    stay. A float that is a whole number becomes an integer, as JSON has only one kind of number.
    """
    if isinstance(value, dict):
        cleaned = {}
        for key, item in value.items():
            if type(item) is str:
                cleaned[key] = item
            elif item is not None:
                inner = clean(item)
                if inner not in ({}, []) or (inner == {} and key in _MEANINGFUL_WHEN_EMPTY):
                    cleaned[key] = inner
        return cleaned
    if isinstance(value, list):
        return [clean(item) for item in value if item is not None]
    return integral(value) if isinstance(value, float) else value


def without_nulls(value: Any, largest: float = 2**63, *, in_lists: bool = False) -> Any:
    """Return the value without nulls in maps (``in_lists``: nor in lists), whole floats below ``largest`` as integers.

    Nothing is shared with ``value``.
    """
    if isinstance(value, dict):
        return {
            key: item if type(item) is str else without_nulls(item, largest, in_lists=in_lists)
            for key, item in value.items()
            if item is not None
        }
    if isinstance(value, list):
        return [
            item if type(item) is str else without_nulls(item, largest, in_lists=in_lists)
            for item in value
            if item is not None or not in_lists
        ]
    return integral(value, largest) if isinstance(value, float) else value


def integral(value: float, largest: float = 2**63) -> float | int:
    """Return a whole number below ``largest`` as an integer, as the API server does."""
    return int(value) if value.is_integer() and abs(value) < largest else value


class Decoder(Generic[ObservedT]):
    """A ``msgspec.json.Decoder`` that tries again without the nulls in all that the type reads.

    What the type leaves undecoded (``Raw``, such as a parent's spec) keeps its bytes. Raises ``msgspec.DecodeError``.
    """

    __slots__ = ("_strict", "_type")

    def __init__(self, type_: Hashable) -> None:
        self._type: Hashable = type_
        self._strict: msgspec.json.Decoder[ObservedT] = msgspec.json.Decoder(type_)

    def decode(self, document: bytes | Raw) -> ObservedT:
        try:
            return self._strict.decode(document)
        except msgspec.ValidationError:
            raw = bytes(document)
            if _NULL not in raw:
                raise
        return self._strict.decode(_without(raw, _shape(self._type)))


@lru_cache(maxsize=64)
def _shape(type_: Hashable) -> inspect.Type:
    return inspect.type_info(type_)


def _without(raw: bytes, shape: inspect.Type) -> bytes:
    """Return the JSON without the nulls that prevent decoding to this type."""
    shape = _essence(shape)
    if _NULL not in raw or not isinstance(shape, (inspect.StructType, inspect.DictType, inspect.ListType)):
        return raw
    if isinstance(shape, inspect.ListType):
        return _encoded(
            [Raw(_without(item, shape.item_type)) for item in map(bytes, _ITEMS.decode(raw)) if item != _NULL]
        )
    members = {key: bytes(item) for key, item in _MEMBERS.decode(raw).items()}
    if isinstance(shape, inspect.DictType):
        types = dict.fromkeys(members, shape.value_type)
        if isinstance(_essence(shape.value_type), inspect.StructType):  # whole objects by name: none may get lost
            return _encoded({key: Raw(_without(item, shape.value_type)) for key, item in members.items()})
    else:
        types = {field.encode_name: field.type for field in shape.fields}
    return _encoded(
        {key: Raw(_without(item, types[key])) for key, item in members.items() if item != _NULL and key in types}
    )


def _essence(shape: inspect.Type) -> inspect.Type:
    """Return the type without its description, and without ``None``."""
    if isinstance(shape, inspect.Metadata):
        return _essence(shape.type)
    if isinstance(shape, inspect.UnionType):
        return next((_essence(type_) for type_ in shape.types if not isinstance(type_, inspect.NoneType)), shape)
    return shape
