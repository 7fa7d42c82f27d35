"""Objects and hook calls for tests of the family."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from app.admission.review import Verdict
from app.hooks.kind import Kind
from app.kube.base import Json
from app.llmaz.kinds import KINDS
from app.settings import Settings
from tests import hookcalls
from tests.hookcalls import NOW, admit, child, condition, observed

__all__ = ["NOW", "admit", "child", "condition", "observed"]

OPEN_MODEL, BACKEND_RUNTIME, PLAYGROUND, SERVICE = KINDS
NAMESPACE = "team"
UID = "11111111-0000-0000-0000-000000000001"
LONG_AGO = "2029-06-01T00:00:00Z"


def model(name: str = "opt", /, **spec: Any) -> Json:
    given = {"familyName": "opt", "source": {"modelHub": {"modelID": f"facebook/{name}"}}, **spec}
    return {"apiVersion": "llmaz.io/v1alpha1", "kind": "OpenModel", "metadata": {"name": name}, "spec": given}


def model_at(uri: str, name: str = "opt") -> Json:
    return model(name, source={"uri": uri})


def runtime(name: str = "vllm", /, **spec: Any) -> Json:
    presets = [
        {"name": "default", "args": ["--model", "{{ .ModelPath }}"]},
        {"name": "speculative-decoding", "args": ["--model", "{{ .ModelPath }}", "--draft", "{{ .DraftModelPath }}"]},
    ]
    given = {"image": "example.com/engine", "version": "v1", "recommendedConfigs": presets, **spec}
    return {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "BackendRuntime",
        "metadata": {"name": name},
        "spec": given,
    }


def preset(**config: Any) -> Json:
    """Return a runtime with one preset, named default unless ``config`` has a name."""
    return runtime(recommendedConfigs=[{"name": "default", **config}])


def namespaced(kind: str, name: str, spec: Json, annotations: Json | None = None, status: Json | None = None) -> Json:
    item: Json = {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": UID, "generation": 1},
        "spec": spec,
    }
    if annotations:
        item["metadata"]["annotations"] = annotations
    if status:
        item["status"] = status
    return item


def playground(
    name: str = "chat", /, *, annotations: Json | None = None, status: Json | None = None, **spec: Any
) -> Json:
    claimed = {} if "modelClaims" in spec else {"modelClaim": {"modelName": "opt"}}
    return namespaced("Playground", name, {**claimed, **spec}, annotations, status)


RUNNER: Json = {"name": "model-runner", "image": "example.com/engine:v1"}


def pods(*containers: Json, **spec: Any) -> Json:
    """Return a pod template."""
    return {"spec": {"containers": list(containers) or [RUNNER], **spec}}


def service(
    name: str = "chat",
    /,
    *,
    worker: Json | None = None,
    annotations: Json | None = None,
    status: Json | None = None,
    workload: Json | None = None,
    **spec: Any,
) -> Json:
    given = {
        "modelClaims": {"models": [{"name": "opt"}]},
        "workloadTemplate": {"workerTemplate": worker or pods(), **(workload or {})},
        **spec,
    }
    return namespaced("Service", name, given, annotations, status)


def config(text: str, namespace: str = "llmaz-system") -> Json:
    metadata = {"name": "llmaz-global-config", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"config.data": text}}


def sync(
    kind: Kind[Any, Any],
    parent: Json,
    *related: Json,
    children: list[Json] | None = None,
    optional: bool = True,
    gateway: bool = False,
    settings: Settings | None = None,
    now: datetime = NOW,
) -> Json:
    """Call the sync hook; ``optional`` declares LeaderWorkerSets, ``gateway`` the kinds of the AI gateway."""
    without = _without(kind, optional=optional, gateway=gateway)
    return hookcalls.sync(kind, parent, related, children or (), without=without, settings=settings, now=now)


def _without(kind: Kind[Any, Any], *, optional: bool, gateway: bool) -> frozenset[str]:
    """Return the optional kinds of children that are not declared."""
    declared = {"leaderworkerset": optional, "envoy-ai-gateway": gateway}
    return frozenset(c.kind for c in kind.resource.children if c.component and not declared[c.component])


def customize(
    kind: Kind[Any, Any],
    parent: Json,
    settings: Settings | None = None,
    *,
    optional: bool = False,
    gateway: bool = False,
) -> list[Json]:
    """Return the rules of the customize hook; for ``optional`` and ``gateway`` see :func:`sync`."""
    without = _without(kind, optional=optional, gateway=gateway)
    return hookcalls.customize(kind, parent, without=without, settings=settings)


def state(answer: Json, type_: str) -> tuple[str, str]:
    """Return status and reason of a condition."""
    status_condition = condition(answer, type_)
    return status_condition.get("status", ""), status_condition.get("reason", "")


def paths(verdict: Verdict) -> list[str]:
    return [str(error.path) for error in verdict.errors]


def runner(template: Json) -> Json:
    """Return the engine's container of a pod template."""
    container: Json = next(c for c in template["spec"]["containers"] if c["name"] == "model-runner")
    return container


def names(items: list[Json]) -> list[str]:
    return [item["name"] for item in items]
