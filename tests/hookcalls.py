"""Calls of a hook or of admission with bytes, and checks of the answers, shared by the families' tests.

The requests are those of the command line's cluster in memory (``app/desk/cluster/store.py``). For many calls on one
cluster, use its :class:`app.desk.cluster.simulate.Cluster`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from app.admission.protocol import ReviewedObject
from app.admission.review import Verdict, judge
from app.desk.cluster import apply, store
from app.hooks.answer import answer_customize, answer_sync
from app.hooks.kind import Kind
from app.hooks.template import INPUTS
from app.kube.base import Json
from app.kube.objects import ObservedMeta
from app.settings import Settings

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def kind_of(kinds: Iterable[Kind[Any, Any]], document: Json) -> Kind[Any, Any]:
    """Return the document's kind, one of those of its family."""
    return next(kind for kind in kinds if kind.resource.kind == document["kind"])


def optional_kinds(kind: Kind[Any, Any]) -> frozenset[str]:
    """Return the kinds of children that a cluster may lack."""
    return frozenset(child.kind for child in kind.resource.children if child.component)


def encode(value: Any) -> bytes:
    """Encode JSON, including numbers that orjson does not write."""
    return json.dumps(value).encode()


def sync(
    kind: Kind[Any, Any],
    parent: Json,
    related: Iterable[Json] = (),
    children: Iterable[Json] = (),
    *,
    without: Iterable[str] = (),
    settings: Settings | None = None,
    now: datetime = NOW,
) -> Json:
    """Return a sync hook's answer; ``without`` has the optional kinds of children that are not installed."""
    groups: dict[str, Json] = {}
    for document in related:
        groups.setdefault(store.outer_key(document), {})[store.inner_key(document)] = document
    body = store.sync_body(kind, parent, children, groups, without)
    answer: Json = json.loads(answer_sync(kind, encode(body), settings or Settings(), now))
    return answer


def customize(
    kind: Kind[Any, Any], parent: Json, *, without: Iterable[str] = (), settings: Settings | None = None
) -> list[Json]:
    """Return the rules of a customize hook's answer."""
    body = store.customize_request(kind, parent, without)
    rules: list[Json] = json.loads(answer_customize(kind, body, settings or Settings()))["relatedResources"]
    return rules


def admit(kind: Kind[Any, Any], document: Json, old: Json | None = None, settings: Settings | None = None) -> Verdict:
    """Return admission's verdict on an object; with ``old``, on an update."""
    metadata = msgspec.convert(document["metadata"], ObservedMeta)
    return judge(kind, metadata, _reviewed(document), None if old is None else _reviewed(old), settings or Settings())


def _reviewed(document: Json) -> ReviewedObject:
    return msgspec.json.decode(encode(document), type=ReviewedObject)


def child(answer: Json, kind: str, api_version: str = "") -> Json:
    """Return the only child of that kind."""
    found: list[Json] = [c for c in answer["children"] if c["kind"] == kind and api_version in c["apiVersion"]]
    assert len(found) == 1, [c["kind"] for c in answer["children"]]
    return found[0]


def unnoted(children: list[Json]) -> list[Json]:
    """Return the children without the digests of their pod templates' inputs."""
    found = copy.deepcopy(children)
    for item in found:
        annotations = item["metadata"].get("annotations") or {}
        if annotations.pop(INPUTS, None) is not None and not annotations:
            del item["metadata"]["annotations"]
    return found


def condition(answer: Json, type_: str) -> Json:
    """Return a condition of the status, or an empty one."""
    conditions: list[Json] = answer["status"].get("conditions", [])
    return next((c for c in conditions if c["type"] == type_), {})


def observed(answered: Json, **parts: Any) -> Json:
    """Return a child as observed after it was applied, with Metacontroller's record."""
    recorded = apply.with_record(answered, answered)
    metadata = {**recorded["metadata"], "uid": f"uid-{answered['metadata']['name']}", "generation": 1}
    return {**recorded, "metadata": metadata, **parts}
