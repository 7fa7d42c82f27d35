"""What is done with every field of a kind: the data behind the field tables of the documentation (design, decision 7).

A kind says of each of its fields what becomes of it; everything else in the table comes from its types. Paths are those
of a manifest below ``spec``: ``autoscaling.metrics[].name``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from app.kube.resource import CustomResource
from app.kube.schema import Schema, spec_schema


class Use(StrEnum):
    """What becomes of a field."""

    HONOURED = "honoured"
    """It decides something."""
    DEFAULTED = "defaulted"
    """It decides something, and so does its absence: there is a default."""
    PASSED_THROUGH = "passed through"
    """It is handed on as it is written; Kubernetes or the server judges it."""
    NO_EFFECT = "no effect"
    """It is accepted for the sake of existing manifests, does nothing, and admission warns of it."""


@dataclass(frozen=True, slots=True)
class Treatment:
    """What becomes of one field, and under which circumstances."""

    use: Use
    note: str = ""


FieldTable = Mapping[str, Treatment]


def fields(use: Use, *paths: str, note: str = "") -> dict[str, Treatment]:
    """Entries for fields that are treated alike."""
    return dict.fromkeys(paths, Treatment(use, note))


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


def problems(resource: CustomResource, table: FieldTable) -> list[str]:
    """Fields that the table forgets, and entries for fields that the kind does not have."""
    known = leaves(resource)
    return [
        *(f"{resource.kind}: spec.{path} is not classified" for path in known if path not in table),
        *(f"{resource.kind}: there is no spec.{path}" for path in table if path not in known),
    ]


def markdown(resource: CustomResource, table: FieldTable) -> str:
    """The kind's section: one row per field, in the order of its types."""
    head = [
        f"## {resource.kind} (`{resource.api_version}`)",
        "",
        resource.description,
        "",
        "| Field of `spec` | Values | What becomes of it | Meaning |",
        "| --- | --- | --- | --- |",
    ]
    return "\n".join([*head, *(_row(path, node, table[path]) for path, node in leaves(resource).items()), ""])


def page(family: str, kinds: Sequence[tuple[CustomResource, FieldTable]]) -> str:
    """A family's page of the documentation: what the words mean, then a table for each of its kinds."""
    words = [f"* **{use}**: {meaning}" for use, meaning in _MEANINGS.items()]
    head = [
        f"# Fields of {family}",
        "",
        "Generated from the types; do not edit. Every field of every kind is in one of four classes:",
        "",
        *words,
        "",
    ]
    return "\n".join([*head, *(markdown(resource, table) for resource, table in kinds)])


_MEANINGS = {
    Use.HONOURED: "it decides something.",
    Use.DEFAULTED: "it decides something, and there is a default where it is absent.",
    Use.PASSED_THROUGH: "it is handed on as it is written; Kubernetes or the server judges it.",
    Use.NO_EFFECT: "it is accepted, because existing manifests have it, and does nothing; admission warns of it.",
}


def _row(path: str, node: Schema, treatment: Treatment) -> str:
    use = f"{treatment.use}: {treatment.note}" if treatment.note else str(treatment.use)
    cells = (f"`{path}`", _values(node), use, node.get("description", ""))
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _values(node: Schema) -> str:
    """Type, enumeration, bounds and default, as short as they can be said."""
    words = [f"`{value}`" for value in node.get("enum", ())]
    text = ", ".join(words) or _type(node) + _bounds(node)
    return f"{text}; default `{_plain(node['default'])}`" if "default" in node else text


def _type(node: Schema) -> str:
    if node.get("type") == "array":
        return f"list of {_type(node['items'])}"
    if node.get("type") == "object" and isinstance(node.get("additionalProperties"), dict):
        return f"map of {_type(node['additionalProperties'])}"
    return "number or text" if node.get("x-kubernetes-int-or-string") else str(node.get("type", "any"))


def _bounds(node: Schema) -> str:
    low, high = node.get("minimum"), node.get("maximum")
    if low is not None and high is not None:
        return f", {low} to {high}"
    if low is not None:
        return f", at least {low}"
    return f", at most {high}" if high is not None else ""


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
