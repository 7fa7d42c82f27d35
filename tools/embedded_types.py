"""Write app/kube/embedded/types.json, the table of Kubernetes' own types: ``python -m tools.embedded_types``.

The source is the OpenAPI document of an API server, the test suite's control plane, so the table is of exactly the
release that the tests run against; `tests/e2e/test_controlplane.py` compares the two. The command is separate because
`make generate` has to work without Go.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
Schemas = dict[str, Schema]

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "app" / "kube" / "embedded" / "types.json"
DOCUMENTS = ("api/v1", "apis/autoscaling/v2")
"""The API groups with types that users embed."""
ROOTS = (
    "io.k8s.api.core.v1.PodTemplateSpec",
    "io.k8s.api.core.v1.ServiceSpec",
    "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec",
    "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
)
"""Types that users embed, whole or in part; they refer to all others."""

_REFERENCE = "#/components/schemas/"
_SCALARS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "string",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "string",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "any",
}
"""Types of the document that are one value in a manifest."""


def table(schemas: Schemas, roots: Iterable[str] = ROOTS) -> str:
    """Return the content of the generated file: a line per field."""
    types = {_short(name): dict(form_of(schema, schemas)) for name, schema in reachable(schemas, roots)}
    blocks = []
    for name, fields in sorted(types.items()):
        lines = ",\n".join(f'  "{field}": {json.dumps(form)}' for field, form in fields.items())
        blocks.append(f' "{name}": {{\n{lines}\n }}')
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def reachable(schemas: Schemas, roots: Iterable[str]) -> Iterator[tuple[str, Schema]]:
    waiting, visited = list(roots), set(_SCALARS)
    while waiting:
        name = waiting.pop()
        if name not in visited:
            visited.add(name)
            yield name, schemas[name]
            waiting += [
                target for property_ in schemas[name].get("properties", {}).values() for target in _named(property_)
            ]


def _named(schema: Schema) -> Iterator[str]:
    """Yield the types of a property, of a list's items or of a map's values."""
    references: Iterable[Schema] = [schema, *schema.get("allOf", ())]
    yield from (reference["$ref"].removeprefix(_REFERENCE) for reference in references if "$ref" in reference)
    for inner in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from _named(inner)


def form_of(schema: Schema, schemas: Schemas) -> Iterator[tuple[str, Schema]]:
    """Yield each property in the form of :class:`app.kube.embedded.types.EmbeddedField`, required ones first."""
    required = set(schema.get("required", ()))
    for name, property_ in sorted(
        schema.get("properties", {}).items(), key=lambda item: (item[0] not in required, item[0])
    ):
        merge_key = property_.get("x-kubernetes-patch-merge-key", "")
        parts = {**_type(property_), "required": name in required, "merge_key": merge_key}
        parts |= {"keys": property_.get("x-kubernetes-list-map-keys"), "default": property_.get("default")}
        parts |= {"set": property_.get("x-kubernetes-list-type") == "set", "atomic": _is_atomic(property_, schemas)}
        yield name, {part: value for part, value in parts.items() if value}


def _is_atomic(schema: Schema, schemas: Schemas) -> bool:
    """Report whether an object is applied as a whole, by its mark or its type's."""
    parts = [schema, *(schemas[name] for name in _named({key: schema[key] for key in schema if key != "items"}))]
    return any(part.get("x-kubernetes-map-type") == "atomic" for part in parts)


def _type(schema: Schema) -> Schema:
    if schema.get("type") == "array":
        return {**_type(schema["items"]), "container": "[]"}
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return {**_type(schema["additionalProperties"]), "container": "{}"}
    for name in _named(schema):
        return {"type": _SCALARS.get(name) or _short(name)}
    type_ = str(schema["type"])
    return {"type": str(schema.get("format", "int64")) if type_ == "integer" else type_}


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def served(documents: Iterable[str] = DOCUMENTS) -> tuple[Schemas, str]:
    """Return the schemas of a control plane, which is started for this, by their full names, and its version."""
    from tests.e2e.controlplane import ControlPlane  # noqa: PLC0415  needs Go, which nothing else here does

    schemas: Schemas = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane(Path(folder), controllers=False, scheduler=False, kwok=False) as cluster,
    ):
        for document in documents:
            schemas |= cluster.client.get(f"/openapi/v3/{document}").json()["components"]["schemas"]
        version = cluster.client.get("/version").json()["gitVersion"]
    return schemas, version


if __name__ == "__main__":
    TABLE.write_text(table(served()[0]), encoding="utf-8")
