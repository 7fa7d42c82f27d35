"""Fields of observed objects may be null, missing or zero: there is an answer, and null means missing.

The API server returns objects as small controllers wrote them, including ``lastTransitionTime: null``. The fields are
taken from the types, so new ones are tested automatically.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec
import orjson
import pytest
from msgspec import inspect

from app.desk.cluster import store
from app.desk.cluster.simulate import Cluster
from app.families import KINDS
from app.hooks.answer import answer_customize, answer_sync
from app.hooks.kind import Kind
from app.hooks.protocol import CustomizeRequest, SyncBody
from app.kube.base import Json
from app.kube.reading.stored import Decoder
from tests.changed import changed
from tests.corpus.kinds import SETTINGS, VALID, name_of, parent
from tests.hookcalls import NOW, encode

pytestmark = pytest.mark.no_cover

Path = tuple[str | int, ...]

IDENTITY = {
    *((part, name) for part in ("parent", "children") for name in ("apiVersion", "kind")),
    *((part, "metadata", name) for part in ("parent", "children") for name in ("name", "namespace", "uid")),
    *((part, "metadata") for part in ("parent", "children")),
}
"""Fields that every request of Metacontroller has: it finds the objects by them."""
STATUS = {
    f"{kind.resource.kind}.{kind.resource.api_version}": inspect.type_info(kind.resource.status) for kind in KINDS
}
"""Types of the statuses of our kinds. A related object is decoded in two steps, its status in the second."""
TIME = "2026-01-01T00:00:00Z"


def essence(shape: inspect.Type) -> inspect.Type:
    """Return the type without its description and without ``None``."""
    if isinstance(shape, inspect.Metadata):
        return essence(shape.type)
    if isinstance(shape, inspect.UnionType):
        return next(essence(member) for member in shape.types if not isinstance(member, inspect.NoneType))
    return shape


def sample(shape: inspect.Type) -> Any:
    """Return a value with every field of the type."""
    match essence(shape):
        case inspect.StructType(fields=fields):
            return {field.encode_name: sample(field.type) for field in fields}
        case inspect.ListType(item_type=item):
            return [sample(item)]
        case inspect.DictType(value_type=value):
            return {"key": sample(value)}
        case inspect.BoolType():
            return True
        case inspect.IntType() | inspect.FloatType():
            return 1
        case inspect.StrType():
            return TIME
    return {}


def zero(shape: inspect.Type) -> Any:
    """Return the zero value of the field in Go."""
    match essence(shape):
        case inspect.ListType():
            return []
        case inspect.BoolType():
            return False
        case inspect.IntType() | inspect.FloatType():
            return 0
        case inspect.StrType():
            return ""
    return {}


def places(shape: inspect.Type, here: Path = ()) -> Iterator[tuple[Path, inspect.Type]]:
    """Yield the path of every field below a type, through the first item of lists and one key of maps."""
    match essence(shape):
        case inspect.StructType(fields=fields):
            for field in fields:
                yield (*here, field.encode_name), field.type
                yield from places(field.type, (*here, field.encode_name))
        case inspect.ListType(item_type=item):
            yield (*here, 0), item
            yield from places(item, (*here, 0))
        case inspect.DictType(value_type=value):
            yield (*here, "key"), value
            yield from places(value, (*here, "key"))


def filled(document: Any, whole: Any) -> Any:
    """Return the document with the fields that it lacks, taken from a sample."""
    if isinstance(document, dict) and isinstance(whole, dict):
        return {**whole, **{key: filled(item, whole.get(key)) for key, item in document.items()}}
    if isinstance(document, list) and isinstance(whole, list) and whole:
        return [filled(item, whole[0]) for item in document] or whole
    return document


def objects(kind: Kind[Any, Any], request: Json) -> Iterator[tuple[Path, inspect.Type]]:
    """Yield path and type of each observed object; a kind without objects gets one with every field."""
    for part, type_ in (("children", kind.hooks.children), ("related", kind.hooks.related)):
        for field in cast("inspect.StructType", inspect.type_info(type_)).fields:
            shape = cast("inspect.DictType", essence(field.type)).value_type
            group = request[part].setdefault(field.encode_name, {})
            if not group and part == "related":
                group["ns/x"] = {"metadata": {"name": "x", "namespace": "ns"}}
            for key in list(group)[:1]:
                kept = group[key].get("metadata", {}).get("annotations", {})
                group[key] = filled(group[key], sample(shape))
                group[key]["metadata"].pop("deletionTimestamp", None)
                group[key]["metadata"]["annotations"] = kept
                yield (part, field.encode_name, key), shape
                status = STATUS.get(field.encode_name)
                if part == "related" and status is not None:
                    group[key]["status"] = filled(group[key]["status"], sample(status))
                    yield (part, field.encode_name, key, "status"), status


def exists(document: Any, path: Path) -> bool:
    for step in path:
        if not isinstance(document, (dict, list)) or (
            step not in document if isinstance(document, dict) else not document
        ):
            return False
        document = cast("Any", document)[step]
    return True


def whole_request(cluster: Cluster, kind: Kind[Any, Any]) -> tuple[Json, list[tuple[Path, inspect.Type]]]:
    """Return a request with every field of the types, and the paths of these fields."""
    document = next(
        (document for other, document in cluster.parents() if other is kind), parent(kind, VALID[name_of(kind)])
    )
    request: Json = orjson.loads(cluster.request(kind, document))
    fields = []
    for at, shape in list(objects(kind, request)):
        fields += [((*at, *path), of) for path, of in places(shape)]
    request["parent"] = filled(request["parent"], sample(inspect.type_info(type_of_parent())))
    request["parent"]["metadata"].pop("deletionTimestamp")
    request["parent"]["spec"] = document["spec"]
    request["parent"]["status"] = filled(document.get("status", {}), sample(inspect.type_info(kind.resource.status)))
    fields += [(("parent", *path), of) for path, of in places(inspect.type_info(type_of_parent()))]
    status = places(inspect.type_info(kind.resource.status))
    fields += [(("parent", "status", *path), of) for path, of in status]
    return request, [(path, of) for path, of in fields if path != ("parent", "spec")]


def type_of_parent() -> Any:
    return next(field.type for field in msgspec.structs.fields(CustomizeRequest) if field.name == "parent")


def is_identity(path: Path) -> bool:
    """Return whether a path is an identity of the parent, or of a child (whose path includes its kind and key)."""
    bare = path if path[0] != "children" else (path[0], *path[3:])
    return bare in IDENTITY


def says_why(answer: Json) -> bool:
    """Return whether ``Ready`` is not False, or has a message."""
    ready: Json = next((c for c in answer["status"].get("conditions", []) if c["type"] == "Ready"), {})
    return ready.get("status") != "False" or bool(ready.get("message"))


def synced(kind: Kind[Any, Any], request: Json) -> bytes:
    return answer_sync(kind, orjson.dumps(request), SETTINGS, NOW)


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_null_is_missing_in_every_observed_field(cluster: Cluster, kind: Kind[Any, Any]) -> None:
    """Zero values do not fail the request either."""
    request, fields = whole_request(cluster, kind)
    tried = 0
    for path, shape in fields:
        if is_identity(path) or not exists(request, path[:-1]):
            continue
        missing = synced(kind, changed(request, path, ...))
        assert synced(kind, changed(request, path, None)) == missing, path
        for answer in (missing, synced(kind, changed(request, path, zero(shape)))):
            assert says_why(orjson.loads(answer)), path
        tried += 1
    assert tried > 20


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_customize_takes_null_for_missing(cluster: Cluster, kind: Kind[Any, Any]) -> None:
    """Deletion calls the customize hook too."""
    request, fields = whole_request(cluster, kind)
    body = {**orjson.loads(store.customize_request(kind, request["parent"])), "parent": request["parent"]}
    for path, shape in fields:
        if path[0] != "parent" or is_identity(path) or not exists(request, path[:-1]):
            continue
        missing = answer_customize(kind, orjson.dumps(changed(body, path, ...)), SETTINGS)
        assert answer_customize(kind, orjson.dumps(changed(body, path, None)), SETTINGS) == missing, path
        assert answer_customize(kind, orjson.dumps(changed(body, path, zero(shape))), SETTINGS), path


def test_what_stays_undecoded_keeps_its_bytes() -> None:
    """A null in a spec is the user's, and may have a meaning."""
    decoder: Decoder[Any] = Decoder(SyncBody[Any, Any])
    body = b'{"parent":{"metadata":{"name":null,"labels":{"a":null}},"spec":{"a": null}},"children":{},"related":null}'
    decoded = decoder.decode(body)
    assert bytes(decoded.parent.spec) == b'{"a": null}'
    assert (decoded.parent.metadata.name, decoded.parent.metadata.labels) == ("", {})


def test_what_is_wrong_without_any_null_is_refused() -> None:
    """Other values of the wrong type are refused."""
    decoder: Decoder[Any] = Decoder(SyncBody[Any, Any])
    for body in (b'{"parent":[],"children":{}}', b'{"parent":{"metadata":{"name":null,"uid":1}},"children":{}}'):
        with pytest.raises(msgspec.ValidationError):
            decoder.decode(body)


@pytest.mark.parametrize("number", [2**63, -(2**64), 2**100])
@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_a_last_status_with_a_number_that_cannot_be_sent_is_replaced(kind: Kind[Any, Any], number: int) -> None:
    integers = ("effectivePriority", "queuePosition", "replicas", "readyReplicas", "observedGeneration")
    written = {"type": "Ready", "status": "True", "reason": "A", "message": "", "observedGeneration": number}
    written["lastTransitionTime"] = TIME
    body = store.sync_body(
        kind,
        {**parent(kind, VALID[name_of(kind)]), "status": {**dict.fromkeys(integers, number), "conditions": [written]}},
        [],
        {},
    )
    assert str(number) not in answer_sync(kind, encode(body), SETTINGS, NOW).decode()
