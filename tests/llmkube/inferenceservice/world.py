"""A service, its Model and a small cluster, with requests as Metacontroller sends them."""

from __future__ import annotations

import copy
from datetime import datetime
from typing import Any

from app.desk.cluster.apply import updated
from app.desk.cluster.store import inner_key
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
"""Labels of the pods of the service ``s``."""


def service(name: str = "s", *, generation: int = 1, status: Json | None = None, **spec: Any) -> Json:
    """Return an InferenceService with Model ``m``."""
    return parent("InferenceService", name, {"modelRef": "m", **spec}, status, generation)


def model(name: str = "m", *, phase: str = "Ready", status: Json | None = None, **spec: Any) -> Json:
    """Return a Model with the status of a finished download."""
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
    """Call the sync hook; ``declared`` are outer keys of optional child kinds."""
    without = hookcalls.optional_kinds(KIND) - {outer.partition(".")[0] for outer in declared}
    return hookcalls.sync(KIND, parent, related, children, without=without, settings=settings, now=now)


def customize(parent: Json, settings: Settings = SETTINGS) -> list[Json]:
    """Return the rules of the customize hook."""
    return hookcalls.customize(KIND, parent, without=hookcalls.optional_kinds(KIND), settings=settings)


def kinds(answer: Json) -> list[str]:
    return [item["kind"] for item in answer["children"]]


def pod_spec(answer: Json) -> Json:
    return dict(child(answer, "Deployment")["spec"]["template"]["spec"])


def container(answer: Json) -> Json:
    return dict(pod_spec(answer)["containers"][0])


def args(answer: Json) -> str:
    """Return the server's arguments, joined by blanks."""
    return " ".join(container(answer).get("args", []))


def applied(answer: Json, before: tuple[Json, ...] = (), **status: Json) -> tuple[Json, ...]:
    """Return the children after Metacontroller applied the answer, with ``status`` by kind."""
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
    """Return a child without Metacontroller's record, as just after it was adopted."""
    bare = copy.deepcopy(item)
    bare["metadata"].pop("annotations", None)
    bare["metadata"]["uid"] = "taken"
    return {**bare, **changes}
