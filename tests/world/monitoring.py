"""What carries the engines' numbers to autoscalers, as processes beside the control plane.

Prometheus' operator turns the components' objects into a configuration. Prometheus runs it with the rights of its own
account, and prometheus-adapter the arguments and rules of its component, too. Only this differs from a cluster:
addresses and credentials, because no pod runs here; the intervals, so that nobody waits; and a job for the autoscaler
of KServe's workloads, whose own ServiceMonitor its installation has. The API server reaches servers of metrics by
Services of type ExternalName.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import yaml

from app.kube.base import Json
from tests.e2e import binaries
from tests.e2e.controlplane import ControlPlane, answers
from tests.e2e.installation import ROOT
from tests.e2e.processes import Process, free_port, free_ports, wait_until
from tests.world import kedascaling, programs, webhooks

COMPONENTS = ROOT / "manifests" / "components"
_OPERATOR = "github.com/prometheus-operator/prometheus-operator"
_PROBES = "example/prometheus-operator-crd/monitoring.coreos.com_probes.yaml"
"""A kind that the operator waits for, and modelhooks has none of."""
_PROMETHEUS, _ADAPTER, _KEDA = "model-monitoring", "model-metrics", "keda"
"""Namespaces."""
_VARIABLES = {"POD_NAME": "prometheus-models-0", "SHARD": "0"}
"""What the operator's reloader puts into the configuration in a pod."""
_EXTERNAL = "v1beta1.external.metrics.k8s.io"


class Monitoring:
    """The processes, by their place in the chain. ``url`` is Prometheus; ``variants`` the address of WVA's page."""

    def __init__(self, cluster: ControlPlane, workdir: Path, variants: str) -> None:
        self.cluster = cluster
        self.url = f"http://127.0.0.1:{free_port()}"
        self._workdir = workdir
        self._variants = variants
        self._processes: list[Process] = []
        workdir.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        """Start Prometheus and its adapter, with all that the components have."""
        file = binaries.module_directory("prometheus-operator", _OPERATOR) / _PROBES
        self.cluster.install_crds(file)
        self._start_operator()
        self._start_prometheus()
        self._start_adapter()

    def check(self) -> None:
        for process in self._processes:
            process.check()

    def stop(self) -> None:
        """Stop them, and take away their APIs, without which the API server would delete no namespace."""
        names = [item["metadata"]["name"] for item in self._services()]
        self.cluster.kubectl("delete", "apiservice", *names)
        while self._processes:
            self._processes.pop().stop()

    def _run(self, name: str, *arguments: str, **environment: str) -> Process:
        variables = os.environ | {"KUBECONFIG": str(self.cluster.kubeconfig), **environment}
        process = Process(name, [programs.program(name), *arguments], self._workdir / f"{name}.log", variables)
        self._processes.append(process)
        return process

    def _start_operator(self) -> None:
        port = free_port()
        addresses = (f"--web.listen-address=127.0.0.1:{port}", "--kubelet-endpoints=false")
        operator = self._run("prometheus-operator", *addresses)
        operator.wait_ready(lambda: answers(f"http://127.0.0.1:{port}/healthz"))
        self.cluster.kubectl("apply", "--server-side", "-k", COMPONENTS / "prometheus")

    def _start_prometheus(self) -> None:
        file = self._workdir / "prometheus.yaml"
        file.write_text(yaml.safe_dump(self._configuration()))
        process = self._run(
            "prometheus",
            f"--config.file={file}",
            f"--storage.tsdb.path={self._workdir / 'data'}",
            f"--web.listen-address={self.url.removeprefix('http://')}",
        )
        process.wait_ready(lambda: answers(f"{self.url}/-/ready"))

    def _configuration(self) -> Json:
        """Return the operator's configuration with an account's credentials and short intervals."""
        monitors = list(yaml.safe_load_all((COMPONENTS / "prometheus" / "podmonitors.yaml").read_text()))
        jobs = {f"podMonitor/{_PROMETHEUS}/{one['metadata']['name']}/0" for one in monitors}
        config: Json = {}

        def is_complete() -> bool:
            found = self.cluster.kubectl(
                "get", "secret", "prometheus-models", "-n", _PROMETHEUS, "-o", "json", check=False
            )
            if found.returncode == 0:
                data = json.loads(found.stdout)["data"]["prometheus.yaml.gz"]
                text = gzip.decompress(base64.b64decode(data)).decode()
                config.update(yaml.safe_load(re.sub(r"\$\((\w+)\)", lambda match: _VARIABLES[match[1]], text)))
            return jobs <= {job["job_name"] for job in config.get("scrape_configs", ())}

        wait_until(is_complete, "the operator's configuration has a job for each PodMonitor")
        account = self._workdir / "prometheus.kubeconfig"
        self.cluster.write_kubeconfig_of_account(_PROMETHEUS, "prometheus", account)
        for job in config["scrape_configs"]:
            for discovery in job["kubernetes_sd_configs"]:
                discovery["kubeconfig_file"] = str(account)
        own: Json = {"job_name": "variants", "static_configs": [{"targets": [self._variants]}]}
        # As a ServiceMonitor without honorLabels: the labels of the target win.
        own["static_configs"][0]["labels"] = {"namespace": "workload-variant-autoscaler-system", "pod": "controller"}
        config["scrape_configs"].append(own)
        config["global"] |= {"scrape_interval": "1s", "scrape_timeout": "1s"}
        return config

    def _start_adapter(self) -> None:
        self.cluster.kubectl("apply", "--server-side", "-k", COMPONENTS / "prometheus-adapter")
        config = self.cluster.get("configmap", "prometheus-adapter", "-n", _ADAPTER)["data"]["config.yaml"]
        file = self._workdir / "adapter.yaml"
        file.write_text(config)
        account = self._workdir / "adapter.kubeconfig"
        self.cluster.write_kubeconfig_of_account(_ADAPTER, "prometheus-adapter", account)
        port = free_port()
        changed = {
            "--prometheus-url": self.url,
            "--config": str(file),
            "--metrics-relist-interval": "1s",
            "--secure-port": str(port),
            "--bind-address": "127.0.0.1",
            "--cert-dir": str(self._workdir / "certificates"),
            **{f"--{use}-kubeconfig": str(account) for use in ("lister", "authentication", "authorization")},
        }
        pod = self.cluster.get("deployment", "prometheus-adapter", "-n", _ADAPTER)["spec"]["template"]["spec"]
        given = dict(argument.split("=", 1) for argument in pod["containers"][0]["args"])
        self._run("adapter", *(f"{name}={value}" for name, value in (given | changed).items()))
        services = [item for item in self._services() if item["spec"]["service"]["namespace"] == _ADAPTER]
        self._serve(_ADAPTER, "prometheus-adapter", port, *(item["metadata"]["name"] for item in services))

    def start_keda(self) -> None:
        """Start KEDA, which takes the API of external metrics over, as docs/howto/autoscale.md says."""
        module = binaries.module_directory("keda", kedascaling.MODULE)
        self.cluster.install_crds(*sorted((module / "config" / "crd" / "bases").glob("*.yaml")))
        self.cluster.create_namespace(_KEDA)
        certificates = self._workdir / "keda-certificates"
        webhooks.copy_certificate(self.cluster, certificates)
        shutil.copy(self.cluster.ca_file, certificates / "ca.crt")
        grpc, health, metrics, port, own = free_ports(5)
        environment = {"WATCH_NAMESPACE": "", "POD_NAMESPACE": _KEDA, "KEDA_CLUSTER_OBJECT_NAMESPACE": _KEDA}
        operator = self._run(
            "keda-operator",
            f"--metrics-bind-address=127.0.0.1:{metrics}",
            f"--health-probe-bind-address=127.0.0.1:{health}",
            f"--metrics-service-bind-address=127.0.0.1:{grpc}",
            f"--cert-dir={certificates}",
            **environment,
        )
        operator.wait_ready(lambda: answers(f"http://127.0.0.1:{health}/readyz"))
        account = str(self.cluster.kubeconfig)
        self._run(
            "keda-adapter",
            f"--metrics-service-address=127.0.0.1:{grpc}",
            "--metrics-service-grpc-authority=localhost",
            f"--port={own}",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={certificates}",
            *(f"--{use}-kubeconfig={account}" for use in ("lister", "authentication", "authorization")),
            **environment,
        )
        self._serve(_KEDA, "keda-operator-metrics-apiserver", port, _EXTERNAL)

    def _services(self) -> list[Json]:
        found: list[Json] = self.cluster.get("apiservices")["items"]
        return [item for item in found if item["spec"].get("service")]

    def _serve(self, namespace: str, name: str, port: int, *apis: str) -> None:
        """Let the API server find APIs at a port of this machine."""
        self.cluster.kubectl("delete", "service", name, "-n", namespace, "--ignore-not-found")
        spec = {"type": "ExternalName", "externalName": "localhost"}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace}}
        self.cluster.kubectl("create", "-f", "-", input=json.dumps({**service, "spec": spec}))
        backend: dict[str, Any] = {"service": {"name": name, "namespace": namespace, "port": port}}
        for api in apis:
            patch = json.dumps({"spec": {**backend, "insecureSkipTLSVerify": True}})
            self.cluster.kubectl("patch", "apiservice", api, "--type=merge", "-p", patch)

        def available() -> bool:
            self.check()
            found = [self.cluster.get("apiservice", api)["status"].get("conditions", ()) for api in apis]
            return all(any(c["type"] == "Available" and c["status"] == "True" for c in each) for each in found)

        wait_until(available, f"{', '.join(apis)} available")
