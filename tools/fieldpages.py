"""Generates docs/fields: the effect of every field of every kind, in the order of its types."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import orjson
from pydantic import BaseModel

from app.kube.base import KubeModel
from app.kube.fieldclass import FieldClass, Use, class_of
from app.kube.resource import CustomResource
from app.kube.rules import Schema
from app.kube.schema import spec_schema
from app.llmkube.kinds import INFERENCE_SERVICE
from app.llmkube.runtimes.registry import RUNTIMES, readers, spelt_out

FieldTable = Mapping[str, FieldClass]


def table(resource: CustomResource) -> FieldTable:
    """Return the class of each field of a kind, with the runtimes that read it.

    Raises ``SystemExit`` for a field without a class.
    """
    fields = classes(resource.spec)
    if missing := [path for path, treatment in fields.items() if treatment is None]:
        raise SystemExit(f"{resource.kind}: no class for spec.{', spec.'.join(missing)} (app/kube/fieldclass.py)")
    return {
        path: replace(treatment, note="; ".join(filter(None, _notes(resource, path, treatment))))
        for path, treatment in fields.items()
        if treatment is not None
    }


def _notes(resource: CustomResource, path: str, treatment: FieldClass) -> tuple[str, ...]:
    return reading(resource, path), treatment.note, options(resource, path)


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
    """Return the runtimes that read a field, for example ``runtime vllm``; empty if all do."""
    if resource is not INFERENCE_SERVICE:
        return ""
    field = path.partition(".")[0]
    names = readers(field)
    words = [f"runtime{'s' if len(names) > 1 else ''} {spelt_out(names)}"] if names else []
    return ", and ".join([*words, *("metal" for runtime in RUNTIMES.values() if field in runtime.metal)])


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


def markdown(resource: CustomResource, table: FieldTable) -> str:
    """Return the section of a kind: one row per field, in the order of its types."""
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
    """Return the page of a family: the meaning of the classes, then a table per kind."""
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
    Use.HONOURED: "it has an effect.",
    Use.DEFAULTED: "it has an effect, and a default if it is absent.",
    Use.PASSED_THROUGH: "it is passed on unchanged; Kubernetes or the server validates it.",
    Use.NO_EFFECT: "it is accepted for existing manifests and ignored; admission warns of it.",
}


def _row(path: str, node: Schema, treatment: FieldClass) -> str:
    use = f"{treatment.use}: {treatment.note}" if treatment.note else str(treatment.use)
    cells = (f"`{path}`", _values(node), use, node.get("description", ""))
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


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
