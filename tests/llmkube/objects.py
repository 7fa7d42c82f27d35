"""Objects of the family for tests: as little as each test needs to say."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec

from app.admission.protocol import ReviewedObject
from app.admission.review import Verdict, judge
from app.hooks.kind import Kind, answer_customize, answer_sync
from app.kube.objects import ObjectMeta
from app.llmkube.kinds import KINDS
from app.settings import Settings

Json = dict[str, Any]

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
URL = "https://example.com/model.gguf"
ALL_PATHS = Settings(llmkube_allowed_host_paths=("/",))
"""What tests get that say nothing of settings: any file of a node may be a model."""
KEY = "8cc5f1f83d631cc0"
"""Cache key of :data:`URL`, from the spec's table."""

MODEL_KIND, SERVICE_KIND = KINDS


def model(source: str = URL, name: str = "m", status: Json | None = None, **spec: Any) -> Json:
    return _parent("Model", name, {"source": source, **spec}, status)


def service(name: str = "s", status: Json | None = None, **spec: Any) -> Json:
    return _parent("InferenceService", name, {"modelRef": "m", **spec}, status)


def _parent(kind: str, name: str, spec: Json, status: Json | None) -> Json:
    return {
        "apiVersion": "inference.llmkube.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "ns1", "uid": f"uid-{name}", "generation": 1},
        "spec": spec,
        "status": status or {},
    }


def kind_of(document: Json) -> Kind[Any, Any]:
    found: Kind[Any, Any] = next(kind for kind in KINDS if kind.resource.kind == document["kind"])
    return found


def admit(document: Json, settings: Settings | None = None) -> Verdict:
    """What admission says of a new object."""
    metadata = msgspec.convert(document["metadata"], ObjectMeta)
    reviewed = msgspec.json.decode(msgspec.json.encode(document), type=ReviewedObject)
    return judge(kind_of(document), metadata, reviewed, None, settings or ALL_PATHS)


def verdict_of_update(before: Json, after: Json, settings: Settings) -> Verdict:
    """What admission says of a change."""
    old, new = (msgspec.json.decode(msgspec.json.encode(item), type=ReviewedObject) for item in (before, after))
    return judge(kind_of(after), msgspec.convert(after["metadata"], ObjectMeta), new, old, settings)


def errors(document: Json, settings: Settings | None = None) -> list[str]:
    return [str(error) for error in admit(document, settings).errors]


def warned(document: Json) -> list[str]:
    return admit(document).warnings


def sync(
    document: Json,
    children: list[Json] | None = None,
    related: list[Json] | None = None,
    settings: Settings | None = None,
    now: datetime = NOW,
) -> Json:
    """A sync hook's answer. Every child and related kind that the family declares is there, empty where it has none."""
    kind = kind_of(document)
    groups: Json = {child.key: {} for child in kind.resource.children if not child.optional}
    body = {
        "parent": document,
        "children": _grouped(children or [], groups),
        "related": _grouped(related or [], {}),
        "finalizing": False,
    }
    answer: Json = json.loads(answer_sync(kind, json.dumps(body).encode(), settings or ALL_PATHS, now))
    return answer


def _grouped(objects: list[Json], groups: Json) -> Json:
    for item in objects:
        metadata = item["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else metadata["name"]
        groups.setdefault(f"{item['kind']}.{item['apiVersion']}", {})[key] = item
    return groups


def customize(document: Json, settings: Settings | None = None) -> list[Json]:
    """The rules of a customize hook's answer."""
    kind = kind_of(document)
    plurals = [{"apiVersion": c.api_version, "resource": c.plural} for c in kind.resource.children]
    body = {"controller": {"spec": {"childResources": plurals}}, "parent": document}
    answer = json.loads(answer_customize(kind, json.dumps(body).encode(), settings or Settings()))
    rules: list[Json] = answer["relatedResources"]
    return rules


def child(answer: Json, kind: str) -> Json | None:
    """The only child of that kind, if there is one."""
    found: list[Json] = [item for item in answer["children"] if item["kind"] == kind]
    assert len(found) <= 1
    return found[0] if found else None


def condition(answer: Json, type_: str) -> Json | None:
    found: Json | None = next((c for c in answer["status"]["conditions"] if c["type"] == type_), None)
    return found


def observed(answered: Json, status: Json | None = None) -> Json:
    """A child as the cluster shows it after it was applied: with Metacontroller's record of what we sent."""
    record = json.dumps(answered)
    metadata = {
        **answered["metadata"],
        "uid": f"uid-{answered['metadata']['name']}",
        "annotations": {"metacontroller.k8s.io/last-applied-configuration": record},
    }
    return {**answered, "metadata": metadata, "status": status or {}}
