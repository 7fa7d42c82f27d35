"""Alerts and dashboard about models, tested with promtool; test_kube_state_metrics.py tests their metrics."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from app.families import RESOURCES
from app.kube.base import Json
from tests.e2e.test_monitoring import Case, check_alert, judged, promtool, write
from tests.service import ROOT

pytestmark = pytest.mark.e2e

COMPONENT = ROOT / "manifests" / "components" / "kube-state-metrics"
PAGE = ROOT / "docs" / "troubleshooting.md"


def document(name: str) -> Json:
    loaded: Json = yaml.safe_load((COMPONENT / name).read_text())
    return loaded


GROUPS = document("prometheusrule.yaml")["spec"]["groups"]
RULES = {rule["alert"]: rule for group in GROUPS for rule in group["rules"]}
STATE = yaml.safe_load(document("custom-resource-state.yaml")["data"]["config.yaml"])["spec"]["resources"]
WORKLOADS = {("leaderworkerset.x-k8s.io", "LeaderWorkerSet")}
"""Workloads without metrics of kube-state-metrics; it has its own for Deployments."""


def not_ready(
    reason: str, owner: str = "", *, kind: str = "Playground", type_: str = "Ready"
) -> tuple[str, dict[str, str]]:
    """Return the series of a false condition, and its labels."""
    labels = {"customresource_kind": kind, "namespace": "team", "name": "chat", "type": type_}
    labels |= {"reason": reason} | ({"owner": owner} if owner else {})
    return f"modelhooks_condition{{{_written(labels)}}}", labels


def _written(labels: dict[str, str]) -> str:
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in labels.items())


def since(*, kind: str = "Playground", type_: str = "Ready") -> str:
    _, labels = not_ready("", kind=kind, type_=type_)
    kept = {name: value for name, value in labels.items() if name != "reason"}
    return f"modelhooks_condition_since_seconds{{{_written(kept)}}}"


def case(reason: str, quiet: str, fires: str) -> Case:
    series, labels = not_ready(reason)
    return Case({series: "0x60", since(): "0x60"}, quiet, fires, labels)


def kserve_case(reason: str, quiet: str, fires: str) -> Case:
    """Return the series of an LLMInferenceService whose Ready has KServe's reason, and its pods another."""
    series, labels = not_ready(reason, kind="LLMInferenceService", type_="PodsReady")
    ready, _ = not_ready("MinimumReplicasUnavailable", kind="LLMInferenceService")
    times = {since(kind="LLMInferenceService", type_=type_): "0x60" for type_ in ("Ready", "PodsReady")}
    return Case({series: "0x60", ready: "0x60", **times}, quiet, fires, labels)


KSERVE_CASES = {
    "ModelNotReady": kserve_case("Unschedulable", "14m", "16m"),
    "ModelRestarting": kserve_case("CrashLoopBackOff", "3m", "6m"),
    "ModelDownloadFailing": kserve_case("InitContainerFailed", "4m", "6m"),
}

KEPT = {"namespace": "team", "deployment": "chat", "annotation_modelhooks_dev_kept_template": "0123"}
CASES = {
    "ModelNotReady": case("ImagePullBackOff", "14m", "16m"),
    "ModelRestarting": case("OOMKilled", "3m", "6m"),
    "ModelDownloadFailing": case("InitContainerFailed", "4m", "6m"),
    "ModelTemplateWaiting": Case(
        {f"kube_deployment_annotations{{{_written(KEPT)}}}": "1x1600"},
        "23h",
        "25h",
        {"namespace": "team", "workload": "chat"},
    ),
}


def test_every_alert_has_a_case() -> None:
    assert CASES.keys() == RULES.keys()


def test_the_rules_are_valid(tmp_path: Path) -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", write(tmp_path, "rules.yaml", {"groups": GROUPS}))


@pytest.mark.parametrize("alert", RULES)
def test_an_alert_fires_when_it_should_and_says_so(tmp_path: Path, alert: str) -> None:
    check_alert(tmp_path, GROUPS, alert, CASES[alert])


@pytest.mark.parametrize("alert", KSERVE_CASES)
def test_an_alert_about_an_llminferenceservice_has_the_cause_of_its_pods(tmp_path: Path, alert: str) -> None:
    check_alert(tmp_path, GROUPS, alert, KSERVE_CASES[alert])


QUIET = {
    "stopped on purpose": {not_ready("Suspended")[0]: "0x180", since(): "0x180"},
    "a Service of a Playground": {not_ready("OOMKilled", "chat")[0]: "0x180", since(): "0x180"},
    "ready": {not_ready("PlaygroundReady")[0]: "1x180", since(): "0x180"},
    "ready while new pods wait": {
        not_ready("", kind="LLMInferenceService")[0]: "1x180",
        not_ready("Unschedulable", kind="LLMInferenceService", type_="PodsReady")[0]: "0x180",
        since(kind="LLMInferenceService"): "0x180",
    },
    "not ready for a moment": {not_ready("RollingOut")[0]: "1x50 0x10 1x120", since(): "0x50 3000x10 3600x120"},
}


@pytest.mark.parametrize("series", QUIET.values(), ids=QUIET)
def test_no_alert_without_a_reason(tmp_path: Path, series: dict[str, str]) -> None:
    times = ("10m", "55m", "150m")
    alerts = [{"alertname": alert, "eval_time": time} for alert in RULES for time in times]
    judged(tmp_path, GROUPS, series, alerts)


@pytest.mark.parametrize("alert", RULES)
def test_a_runbook_is_on_the_page(alert: str) -> None:
    """The page has a heading with the alert's name; it, or a family's page, has every reason of the expression."""
    page, _, anchor = RULES[alert]["annotations"]["runbook_url"].partition("#")
    assert page.endswith(f"/modelhooks/blob/main/{PAGE.relative_to(ROOT)}")
    assert f"\n### {alert}\n" in PAGE.read_text()
    assert anchor == alert.lower()
    pages = "".join(path.read_text() for path in (PAGE, *PAGE.with_suffix("").glob("*.md")))
    for names in re.findall(r'reason[=!]~"([^"]*)"', RULES[alert]["expr"]):
        assert [name for name in names.split("|") if f"`{name}`" not in pages] == []


def test_every_kind_has_its_metrics() -> None:
    """These are the kinds with conditions and the workloads that keep a template; the account may read all of them."""
    kinds = {(resource["groupVersionKind"]["group"], resource["groupVersionKind"]["kind"]) for resource in STATE}
    judged_kinds = {(r.group, r.kind) for r in RESOURCES if r.children or r.kind in ("OpenModel", "BackendRuntime")}
    assert kinds == judged_kinds | WORKLOADS
    versions = {(r.group, r.kind): r.version for r in RESOURCES}
    for resource in STATE:
        kind = resource["groupVersionKind"]
        assert kind["version"] == versions.get((kind["group"], kind["kind"]), "v1")
    role = next(yaml.safe_load_all((COMPONENT / "rbac.yaml").read_text()))
    readable = {(group, name) for rule in role["rules"] for group in rule["apiGroups"] for name in rule["resources"]}
    assert {(group, f"{kind.lower()}s") for group, kind in kinds} <= readable
