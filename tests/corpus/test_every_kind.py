"""Any value in any field of any kind gets an answer and causes no internal error (HTTP-S02 to S07, HTTP-F09).

The functions are called as the routes call them; the transport is tested elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

import orjson
import pytest

from app.admission import review
from app.desk.cluster.simulate import Cluster
from app.families import KINDS
from app.hooks.kind import Kind
from app.kube.base import EmbeddedType, Json, KubeModel
from app.kube.embedded.types import TYPES
from app.kube.modelfields import FieldType, fields
from tests.corpus.kinds import SETTINGS, VALID, name_of, parent, reviewed

pytestmark = pytest.mark.no_cover

MAX_DEPTH = 5
"""Depth to which types that contain themselves are followed."""

EMBEDDED_DEPTH = 2

VALUES: list[Any] = [
    True,
    -7,
    1.5,
    "ä {{ .x",
    "",
    [],
    {},
    [[]],
    [{"a": {}}],
    {"a": ["b"]},
    2**31,
    "1Gi",
    {"a.b/c": "v"},
]

Step = str | int


def places(model: type[KubeModel], above: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """Yield the path of every field below a type, through the first item of lists."""
    for name, (_, shape) in fields(model).items():
        here = (*above, name)
        yield here
        if shape.in_list:
            here = (*here, 0)
            yield here
        yield from _below(shape, here)


def _below(shape: FieldType, here: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    if shape.model is not None and len(here) < MAX_DEPTH:
        yield from places(shape.model, here)
    elif shape.embedded:
        yield from _embedded(shape.embedded, here, EMBEDDED_DEPTH)


def _embedded(type_name: str, here: tuple[Step, ...], levels: int) -> Iterator[tuple[Step, ...]]:
    """Return the fields of an embedded Kubernetes type from the table."""
    for name, part in TYPES.get(type_name, {}).items():
        below = (*here, name, *({"[]": (0,), "{}": ("key",)}.get(part.container, ())))
        yield below
        if levels > 1:
            yield from _embedded(part.type, below, levels - 1)


def put(document: Any, path: tuple[Step, ...], value: Any) -> Any:
    """Return a copy of the document with the value at that path; other values on the path are replaced."""
    head, *rest = path
    inner = document.get(head) if isinstance(document, dict) else None
    if isinstance(head, int):
        inner = document[0] if isinstance(document, list) and document else None
        return [put(inner, tuple(rest), value) if rest else value]
    changed = dict(document) if isinstance(document, dict) else {}
    changed[head] = put(inner, tuple(rest), value) if rest else value
    return changed


def verdict(kind: Kind[Any, Any], spec: Any) -> Json:
    body = reviewed(kind, parent(kind, spec))
    response: Json = orjson.loads(review.answer(kind, orjson.dumps(body), SETTINGS))["response"]
    return response


def reason(answer: Json) -> str:
    return next((str(c.get("reason", "")) for c in answer["status"]["conditions"] if c["type"] == "Ready"), "")


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_the_valid_specs_are_valid(cluster: Cluster, kind: Kind[Any, Any]) -> None:
    """The cases below start from these specs."""
    assert verdict(kind, VALID[name_of(kind)])["allowed"]
    answer = cluster.ask(kind, parent(kind, VALID[name_of(kind)]))
    assert reason(answer) != "InvalidSpec"
    assert bool(answer["children"]) == bool(kind.resource.children)


def parts(annotation: Any) -> Iterator[Any]:
    """Yield a type and those that it is made of."""
    yield annotation
    for inner in get_args(annotation):
        yield from parts(inner)


def test_the_values_of_maps_are_plain() -> None:
    """The walks of app.kube.modelfields go through lists only: they would not see objects in a map."""
    models = KubeModel.__subclasses__()
    for model in models:
        models += model.__subclasses__()
        annotations = [Annotated[info.annotation, *info.metadata, ""] for info in model.model_fields.values()]
        for values in (get_args(part)[1] for a in annotations for part in parts(a) if get_origin(part) is dict):
            for part in parts(values):
                assert not isinstance(part, EmbeddedType), model
                assert not (isinstance(part, type) and issubclass(part, KubeModel)), model


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_any_value_in_any_field_has_an_answer(cluster: Cluster, kind: Kind[Any, Any]) -> None:
    """The hooks agree with admission: sync freezes what is denied, and only that."""
    valid = VALID[name_of(kind)]
    for number, path in enumerate(places(kind.resource.spec)):
        for value in VALUES if len(path) <= 2 else VALUES[number % 5 :: 5]:
            spec = put(valid, path, value)
            response, answer = verdict(kind, spec), cluster.ask(kind, parent(kind, spec))
            frozen = reason(answer) == "InvalidSpec"
            assert frozen != response["allowed"], (path, value, response, answer["status"])
            assert not frozen or answer["children"] == []


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_null_is_absent_in_every_field(kind: Kind[Any, Any]) -> None:
    """The API server also treats null as absent."""
    valid = VALID[name_of(kind)]
    for path in places(kind.resource.spec):
        if len(path) == 1:
            without = {key: item for key, item in valid.items() if key != path[0]}
            assert verdict(kind, put(valid, path, None)) == verdict(kind, without)
