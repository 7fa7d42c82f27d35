"""Debian's Prometheus as a pod, with the account and the PodMonitors of the component `prometheus`.

The Prometheus operator is not installed: `scrape_configs` converts PodMonitors in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import httpx
import yaml

from tests.node import images
from tests.node.images import ROOT

COMPONENT = ROOT / "manifests" / "components" / "prometheus"
NAMESPACE = "model-monitoring"
URL = f"http://prometheus-operated.{NAMESPACE}:9090"
_LABELS = {"app": "prometheus"}
_POD = "__meta_kubernetes_pod"
_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
_WITHOUT = ("Prometheus", "PodMonitor", "Secret")
"""Kinds of the operator, and the Secret that only a PodMonitor needs."""


def scrape_configs(monitors: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Convert PodMonitors as the operator does: into one job for each endpoint."""
    return [
        {
            "job_name": f"podMonitor/{monitor['metadata']['namespace']}/{monitor['metadata']['name']}/{position}",
            "metrics_path": endpoint.get("path", "/metrics"),
            "kubernetes_sd_configs": [{"role": "pod"}],
            "relabel_configs": [_job(monitor), *_relabelings(monitor["spec"], endpoint)],
            **({"authorization": {"credentials_file": _TOKEN}} if "authorization" in endpoint else {}),
        }
        for monitor in monitors
        for position, endpoint in enumerate(monitor["spec"]["podMetricsEndpoints"])
    ]


def _relabelings(spec: dict[str, Any], endpoint: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"action": "drop", "source_labels": [f"{_POD}_phase"], "regex": "(Failed|Succeeded)"}
    for key, value in spec["selector"].get("matchLabels", {}).items():
        yield _keep(f"{_POD}_label_{_escaped(key)}", re.escape(value))
    for expression in spec["selector"].get("matchExpressions", []):
        present = expression["operator"] == "Exists"
        name = f"{_POD}_labelpresent" if present else f"{_POD}_label"
        yield _keep(f"{name}_{_escaped(expression['key'])}", "true" if present else "|".join(expression["values"]))
    if "port" in endpoint:
        yield _keep(f"{_POD}_container_port_name", endpoint["port"])
    elif "portNumber" in endpoint:
        yield _keep(f"{_POD}_container_port_number", str(endpoint["portNumber"]))
    yield _copy("__meta_kubernetes_namespace", "namespace")
    yield _copy(f"{_POD}_name", "pod")
    yield _copy(f"{_POD}_container_name", "container")
    for key in spec.get("podTargetLabels", []):
        yield _copy(f"{_POD}_label_{_escaped(key)}", _escaped(key))
    for relabeling in endpoint.get("relabelings", []):
        yield {re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", key): value for key, value in relabeling.items()}


def _job(monitor: dict[str, Any]) -> dict[str, Any]:
    name, namespace = monitor["metadata"]["name"], monitor["metadata"]["namespace"]
    return {"target_label": "job", "replacement": f"{namespace}/{name}"}


def _keep(source: str, pattern: str) -> dict[str, Any]:
    return {"action": "keep", "source_labels": [source], "regex": pattern}


def _copy(source: str, target: str) -> dict[str, Any]:
    return {"source_labels": [source], "target_label": target}


def _escaped(key: str) -> str:
    """Return a label's key as Prometheus writes it."""
    return re.sub(r"[^\w]", "_", key)


def manifests(recorded: dict[str, str]) -> list[dict[str, Any]]:
    """Return the component without the operator's kinds, and Prometheus itself.

    `recorded` has recording rules by name.
    """
    monitors = [*yaml.safe_load_all((COMPONENT / "podmonitors.yaml").read_text())]
    shipped = [o for o in yaml.safe_load_all((COMPONENT / "prometheus.yaml").read_text()) if o["kind"] not in _WITHOUT]
    rules = [{"record": name, "expr": expression} for name, expression in recorded.items()]
    config = {
        "global": {"scrape_interval": "5s", "evaluation_interval": "5s"},
        "rule_files": ["/etc/prometheus/rules.yml"],
        "scrape_configs": scrape_configs(monitors),
    }
    return [
        *shipped,
        _object(
            "v1",
            "ConfigMap",
            "prometheus",
            data={
                "prometheus.yml": yaml.safe_dump(config),
                "rules.yml": yaml.safe_dump({"groups": [{"name": "played", "rules": rules}]}),
            },
        ),
        _object("v1", "Service", "prometheus-operated", spec={"selector": _LABELS, "ports": [{"port": 9090}]}),
        _object(
            "apps/v1",
            "Deployment",
            "prometheus",
            spec={
                "selector": {"matchLabels": _LABELS},
                "template": {"metadata": {"labels": _LABELS}, "spec": _pod()},
            },
        ),
    ]


def _object(api_version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, **fields}


def _pod() -> dict[str, Any]:
    rights = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {
        "serviceAccountName": "prometheus",
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65534, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "prometheus",
                "image": images.PROMETHEUS,
                "args": ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/data"],
                "ports": [{"containerPort": 9090}],
                "readinessProbe": {
                    "httpGet": {"path": "/-/ready", "port": 9090},
                    "periodSeconds": 2,
                    "timeoutSeconds": 10,
                },
                "securityContext": rights,
                "volumeMounts": [
                    {"name": "config", "mountPath": "/etc/prometheus"},
                    {"name": "data", "mountPath": "/data"},
                ],
            }
        ],
        "volumes": [{"name": "config", "configMap": {"name": "prometheus"}}, {"name": "data", "emptyDir": {}}],
    }


def targets() -> dict[tuple[str, str], str]:
    """Return the health of every target, by the namespace and name of its pod."""
    answer = httpx.get(f"{URL}/api/v1/targets", params={"state": "active"}, timeout=10, trust_env=False)
    active = answer.raise_for_status().json()["data"]["activeTargets"]
    return {(target["labels"]["namespace"], target["labels"]["pod"]): target["health"] for target in active}
