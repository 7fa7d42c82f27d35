"""Field tables written by hand, for kinds whose types do not say yet what becomes of their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.kube.fieldclass import FieldClass, Use
from app.kube.resource import CustomResource
from app.kube.schema import Schema, spec_schema

__all__ = ["FieldTable", "Use", "fields", "leaves"]

FieldTable = Mapping[str, FieldClass]


def fields(use: Use, *paths: str, note: str = "") -> dict[str, FieldClass]:
    """Entries for fields that are treated alike."""
    return dict.fromkeys(paths, FieldClass(use, note))


def leaves(resource: CustomResource) -> dict[str, Schema]:
    """Every field below ``spec`` that holds a value rather than further fields of ours, with its schema."""
    return dict(_leaves(spec_schema(resource), ""))


def _leaves(node: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    if node.get("x-kubernetes-preserve-unknown-fields") or not _inner(node):
        yield path, node
    elif "items" in node:
        yield from _leaves({"description": node.get("description"), **node["items"]}, f"{path}[]")
    else:
        for name, member in node["properties"].items():
            yield from _leaves(member, f"{path}.{name}" if path else name)


def _inner(node: Schema) -> bool:
    """Whether the node leads to named fields of ours."""
    return bool(node.get("properties") or (node.get("items") or {}).get("properties"))
