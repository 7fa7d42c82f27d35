"""The pages of docs/fields: what becomes of every field of every kind, in the order of its types."""

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
from app.kube.schema import Schema, spec_schema
from app.llmkube.kinds import INFERENCE_SERVICE
from app.llmkube.runtimes.registry import RUNTIMES, readers, spelt_out

FieldTable = Mapping[str, FieldClass]


def table(resource: CustomResource) -> FieldTable:
    """The class of each field of a kind, with when it is read.

    Raises ``SystemExit`` for a field without a class.
    """
    found = classes(resource.spec)
    if missing := [path for path, known in found.items() if known is None]:
        raise SystemExit(f"{resource.kind}: no class for spec.{', spec.'.join(missing)} (app/kube/fieldclass.py)")
    return {
        path: replace(
            known, note="; ".join(filter(None, (reading(resource, path), known.note, options(resource, path))))
        )
        for path, known in found.items()
        if known is not None
    }


def _notes(resource: CustomResource, path: str, known: FieldClass) -> tuple[str, ...]:
    return reading(resource, path), known.note, options(resource, path)


@functools.cache
def classes(model: type[KubeModel]) -> Mapping[str, FieldClass | None]:
    """Every field below a spec's type that holds a value, by its path: ``autoscaling.metrics[].name``.

    ``None`` for a field without a class, which a test refuses.
    """
    return dict(_classes(model, "", None))


def _classes(
    model: type[BaseModel], prefix: str, inherited: FieldClass | None
) -> Iterator[tuple[str, FieldClass | None]]:
    for name, info in model.model_fields.items():
        path = f"{prefix}{info.alias or name}"
        own = class_of(info) or inherited
        inner, is_list = _nested(info.annotation)
        if inner is None:
            yield path, own
        else:
            yield from _classes(inner, f"{path}{'[]' if is_list else ''}.", own)


def _nested(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """The type of further fields that an annotation holds, alone, as an option or in a list; and whether in a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    for argument in get_args(annotation):
        inner, _ = _nested(argument)
        if inner is not None:
            return inner, getattr(annotation, "__origin__", None) is list or _nested(argument)[1]
    return None, False


def reading(resource: CustomResource, path: str) -> str:
    """When a field is read: ``runtime vllm``; empty for always."""
    if resource is not INFERENCE_SERVICE:
        return ""
    field = path.partition(".")[0]
    found = readers(field)
    words = [f"runtime{'s' if len(found) > 1 else ''} {spelt_out(found)}"] if found else []
    return ", and ".join([*words, *("metal" for known in RUNTIMES.values() if field in known.metal)])


def options(resource: CustomResource, path: str) -> str:
    """The options of engines that a field becomes: ``--max-model-len``."""
    if resource is not INFERENCE_SERVICE:
        return ""
    found = [known.flags[path].name for known in RUNTIMES.values() if path in known.flags]
    return spelt_out([f"`{name}`" for name in dict.fromkeys(found)])


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
    Use.PASSED_THROUGH: "it is copied unchanged; Kubernetes or the server judges it.",
    Use.NO_EFFECT: "it is accepted, because existing manifests have it, and does nothing; admission warns of it.",
}


def _row(path: str, node: Schema, treatment: FieldClass) -> str:
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
