"""Traffic inside the cluster with TLS: presets, the Secret of the certificate, and what asks the servers."""

from __future__ import annotations

import json

import pytest

from app.kube.base import Json
from app.settings import Settings
from tests.kserve.objects import Cluster, config, gateway, service
from tests.kserve.workload.test_workloads import DP, group, template

ROUTED: Json = {"route": {}, "gateway": {}, "scheduler": {}}


def operator(*, tls: bool = True) -> Json:
    document = json.dumps({"enableLLMInferenceServiceTLS": tls})
    metadata = {"name": "inferenceservice-config", "namespace": "kserve"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ingress": document}}


def settled(parent: Json, *related: Json, settings: Settings | None = None) -> Cluster:
    cluster = Cluster(parent, gateway(), operator(), *related, settings=settings)
    cluster.settle()
    return cluster


def port(cluster: Cluster) -> tuple[str, str]:
    """Return name and application protocol of the workload Service's port."""
    (only,) = cluster.child("Service", "demo-kserve-workload-svc")["spec"]["ports"]
    return only["name"], only["appProtocol"]


def server(pod: Json, name: str = "main") -> Json:
    containers = [*pod.get("initContainers", ()), *pod["containers"]]
    return next(dict(container) for container in containers if container["name"] == name)


def volume(pod: Json) -> Json:
    return next(dict(mounted["secret"]) for mounted in pod["volumes"] if mounted["name"] == "tls-certs")


def test_servers_and_those_who_ask_them_speak_tls() -> None:
    """Pods wait for the Secret: without the certificate their servers could not start."""
    cluster = settled(service(router=ROUTED, prefill={}))
    decode, prefill = (template(cluster, name)["spec"] for name in ("demo-kserve", "demo-kserve-prefill"))
    for pod in (decode, prefill):
        main = server(pod)
        assert "--ssl-certfile /var/run/kserve/tls/tls.crt" in main["command"][2]
        assert main["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
        assert volume(pod) == {"secretName": "demo-kserve-self-signed-certs"}
    sidecar = server(decode, "llm-d-routing-sidecar")
    assert {"--secure-proxy=true", "--enable-tls=decoder", "--enable-tls=prefiller"} <= {*sidecar["command"]}
    assert sidecar["livenessProbe"]["httpGet"]["scheme"] == "HTTPS"
    picker = server(template(cluster, "demo-kserve-router-scheduler")["spec"])
    assert "--model-server-metrics-scheme=https" in picker["command"]
    assert port(cluster) == ("https", "https")
    assert cluster.says("FeaturesApplied") is None


def test_groups_speak_tls() -> None:
    cluster = settled(service(parallelism=DP, worker={}))
    leader = group(cluster)["leaderWorkerTemplate"]["leaderTemplate"]["spec"]
    assert "--enable-ssl-refresh" in server(leader)["command"][2]
    assert port(cluster) == ("https", "https")


def test_the_address_inside_the_cluster_has_the_scheme() -> None:
    url = "://demo-kserve-workload-svc.default.svc.cluster.local:8000"
    assert settled(service()).parent["status"]["url"] == f"https{url}"
    plain = Cluster(service(), operator(tls=False))
    plain.settle()
    assert plain.parent["status"]["url"] == f"http{url}"
    assert volume(template(plain)["spec"])["optional"] is True


def test_templates_read_the_setting() -> None:
    """So do the presets that an installation of KServe has in its namespace."""
    scheme = "{{ if .GlobalConfig.EnableTLS }}HTTPS{{ else }}HTTP{{ end }}"
    probe = {"httpGet": {"path": "/health", "port": 8000, "scheme": scheme}}
    pod = {"containers": [{"name": "main", "image": "x", "readinessProbe": probe}]}
    cluster = settled(service(), config("kserve-config-llm-template", "kserve", template=pod))
    assert server(template(cluster)["spec"])["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"


def test_kept_pods_without_tls_are_asked_without_it() -> None:
    """An upgrade keeps the pods of an installation that had the setting when it had no effect."""
    cluster = settled(service(router=ROUTED))
    (deployment,) = (c for c in cluster.children if c["metadata"]["name"] == "demo-kserve")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        deployment["spec"]["template"]["spec"]["containers"][0][probe]["httpGet"]["scheme"] = "HTTP"
    cluster.sync()
    assert port(cluster) == ("http", "http")


@pytest.mark.parametrize("tls", [True, False])
def test_presets_without_tls_say_so(tls: bool) -> None:
    cluster = Cluster(service(), operator(tls=tls), settings=Settings(kserve_presets="v0.17"))
    cluster.settle()
    assert port(cluster) == ("http", "http")
    assert cluster.says("FeaturesApplied") == ("TLSNotSupported" if tls else None)
