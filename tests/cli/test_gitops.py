"""Argo CD's health script in a Lua interpreter; `tests/e2e/test_neighbours.py` runs it as Argo CD does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import lupa  # type: ignore[import-untyped]  # it has no types
import pytest

from app.desk.cluster.offline import World, settled
from app.desk.files.folders import read
from app.families import RESOURCES
from app.hooks.readystatus import LASTING, RESTING
from app.kube.base import Json
from app.studio.graph import AT_REST
from tests.repository.test_docs_troubleshooting import PAGES
from tools import gitops

ROOT = Path(__file__).parents[2]


def health(document: Json) -> tuple[str, str]:
    """Return status and message that Argo CD would show for an object."""
    lua: Any = lupa.LuaRuntime(register_eval=False, register_builtins=False)
    lua.execute("getmetatable('').__index = nil")
    for library in ("string", "math", "io", "debug", "coroutine"):  # which Argo CD does not open
        lua.globals()[library] = None
    text = (ROOT / "manifests" / "gitops" / "health.lua").read_text()
    check = lua.execute(f"return function(obj)\n{text}\nend")
    verdict = check(lua.table_from(document, recursive=True))
    return verdict["status"], verdict["message"]


def stopped(reason: str) -> Json:
    condition = {"type": "Stopped", "status": "True", "reason": reason, "message": "why"}
    return {"metadata": {"generation": 2}, "status": {"observedGeneration": 2, "conditions": [condition]}}


def deleted() -> Json:
    return {**answered("True"), "metadata": {"generation": 2, "deletionTimestamp": "2030-01-01T00:00:00Z"}}


def answered(status: str, reason: str = "R", pods: str = "", children: str = "", **over: Any) -> Json:
    conditions = [{"type": "Other", "status": "False"}, {"type": "Ready", "status": status, "reason": reason}]
    conditions[1]["message"] = "why"
    conditions += [{"type": "PodsReady", "status": "False", "reason": pods, "message": "the same"}] if pods else []
    conditions += [{"type": "ChildrenCreated", "status": "False", "reason": children}] if children else []
    return {"metadata": {"generation": 2}, "status": {"observedGeneration": 2, "conditions": conditions, **over}}


CASES = {
    "ready": (answered("True"), "Healthy", "why"),
    "waits": (answered("False", "Pending"), "Progressing", "why"),
    "unknown": (answered("Unknown"), "Progressing", "why"),
    "crashes": (answered("False", "CrashLoopBackOff"), "Degraded", "why"),
    "wrong": (answered("False", "InvalidSpec"), "Degraded", "why"),
    "stopped": (stopped("Stopped"), "Suspended", "why"),
    "stopped, by an earlier release": (answered("False", "Stopped"), "Suspended", "why"),
    "nothing serves, as asked for": ({**answered("True"), "spec": {"replicas": 0}}, "Suspended", "why"),
    "name is taken behind KServe's reason": (answered("False", "R", children="NameConflict"), "Degraded", "why"),
    "deleted": (deleted(), "Progressing", "is being deleted"),
    "scaled to zero": (answered("False", "ManuallyScaledToZero"), "Suspended", "why"),
    "suspended": (answered("False", "Suspended"), "Suspended", "why"),
    "out of memory": (answered("False", "OOMKilled"), "Degraded", "why"),
    "crashes behind KServe's reason": (answered("False", "R", pods="CrashLoopBackOff"), "Degraded", "why"),
    "waits for a GPU behind KServe's reason": (answered("False", "R", pods="Unschedulable"), "Progressing", "why"),
    "serves while new pods crash": (answered("True", "", pods="CrashLoopBackOff"), "Healthy", "why"),
    "download of an init container": (answered("False", "InitContainerFailed"), "Degraded", "why"),
    "changed": (answered("True", observedGeneration=1), "Progressing", "the last change is not answered yet"),
    "new": ({"metadata": {"generation": 1}}, "Progressing", "not answered yet"),
    "without Ready": (answered("True", conditions=[]), "Progressing", "not answered yet"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_argo_cd_shows_what_ready_says(case: tuple[Json, str, str]) -> None:
    """Degraded means that waiting does not help; objects applied in the wrong order are Progressing."""
    document, status, message = case
    assert health(document) == (status, message)


def test_argo_cd_knows_only_reasons_of_the_troubleshooting_pages() -> None:
    assert [reason for reason in sorted(LASTING | RESTING) if f"`{reason}`" not in PAGES] == []


def test_stopped_services_are_the_same_for_argo_cd_the_alert_and_the_studio() -> None:
    rule = (ROOT / "manifests" / "components" / "kube-state-metrics" / "prometheusrule.yaml").read_text()
    (silent,) = re.findall(r'type="Ready", owner="", reason!~"([^"]*)"} == 0', rule)
    assert set(silent.split("|")) & AT_REST >= RESTING


EXAMPLES = ["examples/llmkube/quickstart.yaml", "examples/llmaz/quickstart.yaml", "examples/kserve/quickstart.yaml"]
EXAMPLES += ["examples/llmaz/service.yaml", "examples/kserve/shared-config.yaml"]


def test_every_kind_is_healthy_once_it_runs_and_not_before() -> None:
    """All eight kinds set Ready and observedGeneration, and a change makes the object Progressing."""
    files = [str(ROOT / name) for name in [*EXAMPLES, "manifests/llmaz-runtimes"]]
    cluster = settled(read(files), World())
    seen = set()
    for kind, parent in cluster.parents():
        seen.add(kind.resource.kind)
        conditions = [c["type"] for c in parent["status"]["conditions"]]
        assert "Ready" in conditions, parent["metadata"]["name"]
        assert parent["status"]["observedGeneration"] == parent["metadata"]["generation"]
        assert health(parent)[0] == "Healthy", parent["metadata"]["name"]
        changed = {**parent, "metadata": {**parent["metadata"], "generation": 2}}
        assert health(changed)[0] == "Progressing"
    assert seen == {resource.kind for resource in RESOURCES}


def test_the_shipped_files_name_every_kind() -> None:
    """Argo CD's ConfigMap has one key for each kind, and Flux one expression."""
    keys = gitops.argocd(RESOURCES, "lua")["data"]
    assert set(keys) == {f"resource.customizations.health.{resource.group}_{resource.kind}" for resource in RESOURCES}
    expressions = gitops.flux(RESOURCES)["spec"]["healthCheckExprs"]
    assert {(e["apiVersion"], e["kind"]) for e in expressions} == {
        (resource.api_version, resource.kind) for resource in RESOURCES
    }
    (shipped,) = read([str(ROOT / "manifests" / "gitops" / "argocd-cm.yaml")])
    lua = (ROOT / "manifests" / "gitops" / "health.lua").read_text()
    assert set(shipped.document["data"].values()) == {lua}
