"""A service, its Model and a cluster small enough to read: requests as Metacontroller sends them, answers as bytes."""

from __future__ import annotations

import copy
from datetime import datetime
from typing import Any

from app.cli.apply import updated
from app.cli.world import inner_key
from app.kube.base import Json
from app.llmkube.kinds import KINDS
from app.llmkube.source import parse
from app.settings import Settings
from tests import hookcalls
from tests.hookcalls import NOW, child, condition
from tests.llmkube.objects import URL as HTTP_SOURCE
from tests.llmkube.objects import parent

__all__ = ["HTTP_SOURCE", "NOW", "child", "condition"]

KIND = next(kind for kind in KINDS if kind.resource.kind == "InferenceService")
API_VERSION = KIND.resource.api_version
NAMESPACE = "ns1"
SETTINGS = Settings()
POD_MONITOR = "PodMonitor.monitoring.coreos.com/v1"


POD_LABELS = {"app": "s", "inference.llmkube.dev/service": "s"}
"""Of the pods of the service ``s``."""


def service(name: str = "s", *, generation: int = 1, status: Json | None = None, **spec: Any) -> Json:
    """An InferenceService of Model ``m``."""
    return parent("InferenceService", name, {"modelRef": "m", **spec}, status, generation)


def model(name: str = "m", *, phase: str = "Ready", status: Json | None = None, **spec: Any) -> Json:
    """A Model as its own hook leaves it when its file is there."""
    source = spec.setdefault("source", HTTP_SOURCE)
    return parent("Model", name, spec, {"phase": phase, "cacheKey": parse(source).cache_key, **(status or {})})


def sync(
    parent: Json,
    *related: Json,
    children: tuple[Json, ...] = (),
    settings: Settings = SETTINGS,
    now: datetime = NOW,
    declared: tuple[str, ...] = (),
) -> Json:
    """The decoded answer of one sync. ``declared``: outer keys of optional child kinds."""
    without = hookcalls.optional_kinds(KIND) - {outer.partition(".")[0] for outer in declared}
    return hookcalls.sync(KIND, parent, related, children, without=without, settings=settings, now=now)


def customize(parent: Json, settings: Settings = SETTINGS) -> list[Json]:
    """The rules of a customize answer."""
    return hookcalls.customize(KIND, parent, without=hookcalls.optional_kinds(KIND), settings=settings)


def kinds(answer: Json) -> list[str]:
    return [item["kind"] for item in answer["children"]]


def pod_spec(answer: Json) -> Json:
    return dict(child(answer, "Deployment")["spec"]["template"]["spec"])


def container(answer: Json) -> Json:
    return dict(pod_spec(answer)["containers"][0])


def args(answer: Json) -> str:
    """The arguments, joined by blanks."""
    return " ".join(container(answer).get("args", []))


def applied(answer: Json, before: tuple[Json, ...] = (), **status: Json) -> tuple[Json, ...]:
    """The children as they are after Metacontroller applied the answer; ``status`` by kind overrides."""
    old = {(item["kind"], inner_key(item)): item for item in before}
    result = []
    for wanted in answer["children"]:
        present = old.get((wanted["kind"], inner_key(wanted)))
        item = hookcalls.observed(wanted) if present is None else updated(present, wanted)
        if wanted["kind"] == "Deployment":
            item["spec"] = {"replicas": 1, **item["spec"]}
        item["status"] = status.get(wanted["kind"], (present or {}).get("status", {}))
        result.append(item)
    return tuple(result)


def observed(item: Json, **changes: Any) -> Json:
    """A child without a record of ours, as it is just after it was taken over."""
    bare = copy.deepcopy(item)
    bare["metadata"].pop("annotations", None)
    bare["metadata"]["uid"] = "taken"
    return {**bare, **changes}
