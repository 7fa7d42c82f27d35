"""Generates docs/fields: the effect of every field of every kind, in the order of its types."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import orjson
from msgspec.structs import replace
from pydantic import BaseModel

from app.kube.base import KubeModel
from app.kube.resource import CustomResource
from app.kube.schema.fieldclass import FieldClass, Use, class_of
from app.kube.schema.rules import Schema
from app.kube.schema.structural import spec_schema
from app.llmkube.kinds import INFERENCE_SERVICE
from app.llmkube.runtimes.registry import RUNTIMES, readers, spelt_out
from tools.fieldtables import Rows, tables, without_repeats

FieldTable = Mapping[str, FieldClass]


def table(resource: CustomResource) -> FieldTable:
    """Return the class of each field of a kind, with the runtimes that read it.

    Raises ``SystemExit`` for a field without a class.
    """
    fields = classes(resource.spec)
    if missing := [path for path, treatment in fields.items() if treatment is None]:
        raise SystemExit(f"{resource.kind}: no class for spec.{', spec.'.join(missing)} (app.kube.schema.fieldclass)")
    return {
        path: replace(treatment, note="; ".join(filter(None, _notes(resource, path, treatment))))
        for path, treatment in fields.items()
        if treatment is not None
    }


def _notes(resource: CustomResource, path: str, treatment: FieldClass) -> tuple[str, ...]:
    return reading(resource, path), treatment.note, treatment.hint, options(resource, path)


@functools.cache
def classes(model: type[KubeModel]) -> Mapping[str, FieldClass | None]:
    """Return the class of every field with a value by its path, for example ``autoscaling.metrics[].name``.

    ``None`` for a field without a class, which a test refuses.
    """
    return dict(_classes(model, "", None))


def _classes(
    model: type[BaseModel], prefix: str, inherited: FieldClass | None
) -> Iterator[tuple[str, FieldClass | None]]:
    for name, info in model.model_fields.items():
        path = f"{prefix}{info.alias or name}"
        treatment = class_of(info) or inherited
        inner, is_list = _nested(info.annotation)
        if inner is None:
            yield path, treatment
        else:
            yield from _classes(inner, f"{path}{'[]' if is_list else ''}.", treatment)


def _nested(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """Return the model in an annotation, also if it is optional or in a list; and True if it is in a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    for argument in get_args(annotation):
        inner, _ = _nested(argument)
        if inner is not None:
            return inner, getattr(annotation, "__origin__", None) is list or _nested(argument)[1]
    return None, False


def reading(resource: CustomResource, path: str) -> str:
    """Return the runtimes that read a field, for example ``llamacpp, metal``; empty if all do."""
    if resource is not INFERENCE_SERVICE:
        return ""
    field = path.partition(".")[0]
    names = readers(field)
    return ", ".join([*names, *("metal" for runtime in RUNTIMES.values() if field in runtime.metal)])


def options(resource: CustomResource, path: str) -> str:
    """Return the engines' options for a field, for example ``--max-model-len``."""
    if resource is not INFERENCE_SERVICE:
        return ""
    flags = [runtime.flags[path].name for runtime in RUNTIMES.values() if path in runtime.flags]
    return spelt_out([f"`{name}`" for name in dict.fromkeys(flags)])


def leaves(resource: CustomResource) -> dict[str, Schema]:
    """Return every field below ``spec`` with a value rather than named fields, with its schema."""
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
    """Return True if the node has named fields."""
    return bool(node.get("properties") or (node.get("items") or {}).get("properties"))


def pages(family: str, kinds: Sequence[tuple[CustomResource, FieldTable]]) -> dict[str, str]:
    """Return the pages of a family by their names: its kinds, and each field that has very many below it."""
    name = f"{family.lower()}.md"
    lines = [
        f"# Fields of {family}",
        "",
        "Generated from the types; do not edit. Every field of every kind is in one of four classes:",
        "",
        *(f"* **{use}**: {meaning}" for use, meaning in _MEANINGS.items()),
        "",
    ]
    parts: dict[str, str] = {}
    earlier: dict[str, Rows] = {}
    for resource, table in kinds:
        rows = _rows(resource, table)
        like = next((kind for kind, others in earlier.items() if others.keys() == rows.keys()), None)
        earlier[resource.kind] = rows
        if like is not None:
            rows = {path: cells for path, cells in rows.items() if earlier[like][path] != cells}
        rows, large = _without_large_fields(without_repeats(rows), family)
        lines += [f"## {resource.kind} (`{resource.api_version}`)", "", resource.description, ""]
        lines += [f"Its fields are those of {like}, with these differences:", ""] if like else []
        lines += _sections(rows)
        for field, inner in large.items():
            head = [f"# Fields of {family}: `{field}`", "", f"What the words mean: [fields of {family}]({name}).", ""]
            parts[_page_of(family, field)] = "\n".join([*head, *_sections(inner)])
    return {name: "\n".join(lines), **parts}


def _rows(resource: CustomResource, table: FieldTable) -> Rows:
    """Return the cells of each field of a kind, in the order of its types."""
    return {path: _cells(node, table[path]) for path, node in leaves(resource).items()}


def _cells(node: Schema, treatment: FieldClass) -> tuple[str, ...]:
    use = f"{treatment.use}: {treatment.note}" if treatment.note else str(treatment.use)
    return _values(node), use, _meaning(node, treatment)


def _meaning(node: Schema, treatment: FieldClass) -> str:
    """Return the description without sentences that the cells beside it say: a default, or the runtimes."""
    text = str(node.get("description", ""))
    if "default" in node:
        text = text.replace(f" Defaults to {_plain(node['default'])}.", "")
    if re.split(r"\W", treatment.note)[0] in {"runtime", *RUNTIMES} or treatment.note.endswith("metal only"):
        text = _RUNTIMES_ONLY.sub("", text)
    return text


def _without_large_fields(rows: Rows, family: str) -> tuple[Rows, Mapping[str, Rows]]:
    """Replace each top-level field with very many below it by a link to its page, and return those fields' rows."""
    counts = Counter(path.partition(".")[0] for path in rows)
    large: dict[str, Rows] = {
        field: {path: cells for path, cells in rows.items() if path.startswith(f"{field}.")}
        for field, count in counts.items()
        if count > _PAGE
    }
    links = {field: ("object", "", f"[{len(large[field])} fields]({_page_of(family, field)})") for field in large}
    rest = {path: cells for path, cells in rows.items() if path.partition(".")[0] not in large}
    return {**rest, **links}, large


def _page_of(family: str, field: str) -> str:
    return f"{family}-{field}.md".lower()


def _sections(rows: Rows) -> list[str]:
    """Return the lines of each table, under a heading for a nested object."""
    lines: list[str] = []
    for path, fields in tables(rows).items():
        if not fields:
            continue
        lines += [f"### `spec.{path}`", ""] if path else []
        usual = _usual(fields)
        if all(use in {usual, ""} for _, use, _ in fields.values()):
            lines += [f"All are {usual}.", "", "| Field | Values | Meaning |", "| --- | --- | --- |"]
            lines += [*(_row(field, (values, text)) for field, (values, _, text) in fields.items()), ""]
        else:
            lines += [f"Where the third column is empty: {usual}.", ""] if usual else []
            lines += ["| Field | Values | What becomes of it | Meaning |", "| --- | --- | --- | --- |"]
            lines += [*(_row(field, (v, "" if u == usual else u, t)) for field, (v, u, t) in fields.items()), ""]
    return lines


def _usual(fields: Rows) -> str:
    """Return what becomes of most fields of a table, if it takes more words than a class to say it."""
    uses = Counter(use for _, use, _ in fields.values() if use)
    use, count = uses.most_common(1)[0]
    return use if count == uses.total() or (":" in use and 2 * count > uses.total()) else ""


def _row(field: str, cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in (f"`{field}`", *cells)) + " |"


_RUNTIMES_ONLY = re.compile(r" (?:Runtime )?[a-z]+(?:,? (?:and )?[a-z]+)* only\.$")
_PAGE = 30
"""The number of rows above which a field has its own page."""

_MEANINGS = {
    Use.HONOURED: "it has an effect; after a colon, only in that case, in that way, or with these runtimes.",
    Use.DEFAULTED: "it has an effect, and a default if it is absent.",
    Use.PASSED_THROUGH: "it is passed on unchanged; Kubernetes or the server validates it.",
    Use.NO_EFFECT: "it is accepted for existing manifests and ignored; admission warns of it.",
}


def _values(node: Schema) -> str:
    """Describe type, enumeration, bounds and default of a field."""
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
