"""A large request that would take too long is refused, so that its resource keeps its children; ordinary ones pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import msgspec.inspect
import orjson
import pytest

from app.errors import ProtocolError
from app.families import KINDS
from app.hooks.answer import answer_sync
from app.hooks.weight import Weighed, check_weight
from app.limits import (
    LARGE_REQUEST_BYTES,
    MAX_ANNOTATIONS_BYTES,
    MAX_CHILDREN,
    MAX_LABELS_BYTES,
    MAX_READ_VALUES,
    MAX_RECORDED_BYTES,
    MAX_RECORDED_VALUES,
    MAX_RELATED,
)
from app.settings import Settings
from tests.bench.payloads import inference_service_sync
from tests.hookcalls import NOW
from tests.hooks.test_kept import RECORD, deployment
from tests.hooks.test_kind import request
from tests.widgets import WIDGET, widget

SETTINGS = Settings()


def padded(body: dict[str, Any]) -> bytes:
    """Return a request with so much unread data that its weight is checked."""
    return orjson.dumps({**body, "controller": {"metadata": {"managedFields": ["x" * LARGE_REQUEST_BYTES]}}})


def group(number: int, **document: Any) -> dict[str, Any]:
    return {"Pod.v1": {f"ns/p{n}": {"metadata": {"name": f"p{n}"}, **document} for n in range(number)}}


def refusal(body: bytes) -> str:
    with pytest.raises(ProtocolError) as caught:
        answer_sync(WIDGET, body, SETTINGS, NOW)
    assert caught.value.status == 413
    return str(caught.value)


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ({"children": group(MAX_CHILDREN + 1)}, "children"),
        ({"related": group(MAX_RELATED + 1)}, "related objects"),
        ({"related": group(1, status={"conditions": [{}] * MAX_READ_VALUES})}, "values to read"),
        ({"related": group(1, status={"conditions": [{"reason": None}] * (MAX_READ_VALUES // 10)})}, "values to read"),
        ({"parent": widget(labels={f"k{n}": "v" for n in range(MAX_LABELS_BYTES // 6)})}, "metadata.labels"),
        ({"related": group(1, metadata={"annotations": {"a": "x" * MAX_ANNOTATIONS_BYTES}})}, "metadata.annotations"),
        ({"parent": widget(ownerReferences=[{}] * 50_000)}, "metadata.ownerReferences"),
        ({"related": {"X.v1": {"x": {"metadata": None, "data": {"a": [{}] * MAX_READ_VALUES}}}}}, "values to read"),
    ],
)
def test_a_request_that_is_too_large_is_refused(over: dict[str, Any], words: str) -> None:
    """The status is 413, after which nothing changes."""
    assert words in refusal(padded(request(**over)))


def test_does_not_count_unread_values() -> None:
    """Managed fields, the content of pod specs, and the parent's spec, which has its own limits, do not count."""
    many: list[Any] = [{}] * MAX_READ_VALUES
    pods = group(1, spec={"containers": many})
    pods["Pod.v1"]["ns/p0"]["metadata"]["managedFields"] = many
    check_weight(orjson.dumps({"parent": {"spec": many}, "related": pods}))


def test_every_field_that_is_read_has_a_weight() -> None:
    """A field that is read but not weighed could have any number of values."""
    weighed = {info.encode_name for info in msgspec.structs.fields(Weighed)}
    read = {
        info.encode_name
        for kind in KINDS
        for group in (kind.hooks.children, kind.hooks.related)
        for objects in msgspec.structs.fields(group)
        for object_ in structs(msgspec.inspect.type_info(objects.type))
        for info in object_.fields
        if not isinstance(described(info.type), (msgspec.inspect.StrType, msgspec.inspect.IntType))
    }
    assert {"metadata", "data", "endpoints"} < read <= weighed


def described(shape: msgspec.inspect.Type) -> msgspec.inspect.Type:
    """Return the type without its description."""
    return shape.type if isinstance(shape, msgspec.inspect.Metadata) else shape


def structs(shape: msgspec.inspect.Type) -> Iterator[msgspec.inspect.StructType]:
    """Yield the types of the objects in a group by name."""
    if isinstance(shape, msgspec.inspect.UnionType):
        for item_type in shape.types:
            yield from structs(item_type)
    elif isinstance(shape, msgspec.inspect.DictType):
        yield from structs(shape.value_type)
    elif isinstance(shape, msgspec.inspect.StructType):
        yield shape


def test_a_large_service_passes() -> None:
    """It has a thousand pods as a cluster reports them."""
    body = inference_service_sync(1000)
    assert len(body) > 10 * LARGE_REQUEST_BYTES
    check_weight(body)


def test_more_than_an_answer_can_keep() -> None:
    """Sending fewer children would delete some, and shortening them would change some, so nothing is answered."""
    record = {**RECORD, "spec": {"text": "x" * 250_000}}
    children = {f"ns/d{n}": deployment({**record, "metadata": {"name": f"d{n}"}}, 2, f"d{n}") for n in range(30)}
    body = orjson.dumps(request(parent=widget({}), children={"Deployment.apps/v1": children}))
    assert len(body) > MAX_RECORDED_BYTES
    assert "annotations" in refusal(body)
    fewer = dict(list(children.items())[:20])
    body = orjson.dumps(request(parent=widget({}), children={"Deployment.apps/v1": fewer}))
    assert "the answer would have" in refusal(body)


@pytest.mark.parametrize("item", [b"[],", b"[[]],", b"{},", b"1,", rb"\u005b\u005d\u002c"])
@pytest.mark.parametrize("parent", [widget({}), widget()], ids=["invalid", "valid"])
def test_records_with_more_values_than_an_answer_has(parent: dict[str, Any], item: bytes) -> None:
    """Short text such as many empty lists takes time in every sync; records are read up to a limit, in any escaping."""
    record = b'{\\"kind\\":\\"Deployment\\",\\"spec\\":{\\"a\\":[%b1]}}' % (
        item * (MAX_RECORDED_VALUES // item.count(b",") if b"," in item else MAX_RECORDED_VALUES // 3)
    )
    body = orjson.dumps(request(parent=parent, children={"Deployment.apps/v1": {"ns/d": deployment({}, 2)}}))
    assert b'"{}"' in body
    assert "annotations" in refusal(body.replace(b'"{}"', b'"%b"' % record))


def test_weighs_a_large_request_with_an_invalid_object() -> None:
    """It cannot be weighed, so it is not read, even if its kind is not requested."""
    with pytest.raises(ProtocolError, match="not a v2 hook request") as caught:
        answer_sync(WIDGET, padded(request(related={"X.v1": {"x": []}})), SETTINGS, NOW)
    assert caught.value.status == 400
