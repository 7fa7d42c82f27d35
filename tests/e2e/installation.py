"""The product as a user installs it: the shipped manifests, `modelhooks certs --apply`, and the service as a process.

The cluster has no kubelet and no DNS, so an overlay replaces the addresses of hooks and webhooks by the process's
address; everything else is applied as shipped.
"""

from __future__ import annotations

import base64
import contextlib
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import yaml
from prometheus_client.parser import text_string_to_metric_families

from app.families import RESOURCES
from app.installation import CONVERSION_PATH
from tests.e2e import binaries
from tests.e2e.controlplane import ControlPlane
from tests.e2e.metacontroller import Metacontroller, start_metacontroller
from tests.e2e.processes import Process, free_port, wait_until

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "manifests" / "overlays" / "quickstart"
COMPONENTS = ROOT / "metacontroller" / "components"
SYSTEM = "modelhooks-system"
_CERTS_TRIES = 3
"""Fewer than the Job's. On a busy machine the API server may not respond in time to a request about a large CRD."""
_SETTINGS = {
    "MODELHOOKS_LLMKUBE_ALLOWED_HOST_PATHS": "/",
    "MODELHOOKS_LAMEDUCK_SECONDS": "0",
    # The stand-in for Metacontroller does not see that an idle connection is closed, and a stop would wait for it.
    "MODELHOOKS_GRACEFUL_SHUTDOWN_SECONDS": "1",
}
_RUNNING = [
    *((f"apis/{resource.api_version}", resource.plural) for resource in RESOURCES if resource.namespaced),
    ("apis/autoscaling/v2", "horizontalpodautoscalers"),
    ("apis/apps/v1", "deployments"),
    ("apis/batch/v1", "jobs"),
    ("api/v1", "pods"),
]
"""Kinds whose objects keep controllers and nodes busy, owners first."""
_IN_CLUSTER = "https://modelhooks.modelhooks-system:443"


class Installation:
    """modelhooks on a control plane. ``components`` are the components of ``metacontroller/components`` to install."""

    def __init__(self, cluster: ControlPlane, workdir: Path, components: Sequence[str] = ()) -> None:
        self.cluster = cluster
        self.workdir = workdir
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.components = tuple(components)
        self.metacontroller: Metacontroller
        self.service: Process

    def __enter__(self) -> Self:
        self.workdir.mkdir(parents=True, exist_ok=True)
        self.metacontroller = start_metacontroller(self.cluster, self.workdir / "metacontroller")
        self._apply()
        self._make_certificates()
        self.start_service()
        wait_until(self._is_asked, "the API server asks the service about writes")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.metacontroller.stop()
        self.stop_service()

    def start_service(self, program: Sequence[str] = ("-m", "app.cli")) -> None:
        """Run `modelhooks serve` with the certificate of the cluster's Secret, and wait until it is ready.

        ``program`` is the arguments of the Python interpreter.
        """
        secret = self.cluster.get("secret", "modelhooks-tls", "-n", SYSTEM)["data"]
        for name in ("tls.crt", "tls.key", "ca.crt"):
            (self.workdir / name).write_bytes(base64.b64decode(secret[name]))
        command = [sys.executable, *program, "serve", "--host", "127.0.0.1", "--port", str(self.port)]
        files = ["--tls-cert-file", str(self.workdir / "tls.crt"), "--tls-key-file", str(self.workdir / "tls.key")]
        environment = {**os.environ, **_SETTINGS, "PYTHONPATH": str(ROOT)}
        self.service = Process("modelhooks", [*command, *files], self.workdir / "modelhooks.log", environment)
        self.service.wait_ready(self._is_ready)

    def stop_service(self) -> None:
        self.service.stop()

    def client(self) -> httpx.Client:
        """Return an HTTP client that trusts the installation's CA, for requests to the service."""
        import ssl

        context = ssl.create_default_context(cafile=str(self.workdir / "ca.crt"))
        return httpx.Client(base_url=self.url, verify=context, timeout=30)

    def syncs(self) -> Counter[str]:
        """Return how many syncs each hook has answered since the service started, by its path.

        Where Metacontroller starts a controller again, a request may end before its answer, and counts as status 499.
        """
        with self.client() as client:
            text = client.get("/metrics").raise_for_status().text
        samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
        return Counter(
            {
                sample.labels["handler"]: int(sample.value)
                for sample in samples
                if sample.name == "http_requests_total"
                and sample.labels["handler"].endswith("/sync")
                and sample.labels["status"] == "200"
            }
        )

    def _is_ready(self) -> bool:
        try:
            with self.client() as client:
                return client.get("/readyz").status_code == 200
        except httpx.HTTPError:
            return False

    def _is_asked(self) -> bool:
        """Report whether the API server knows the webhooks' CA; until then it refuses every write."""
        dry = ("apply", "--dry-run=server", "-f", ROOT / "examples/llmkube/quickstart.yaml")
        return self.cluster.kubectl(*dry, check=False).returncode == 0

    def _apply(self) -> None:
        overlay = self.workdir / "overlay"
        overlay.mkdir()
        self._write_overlay(overlay)
        self.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(overlay))
        self.cluster.wait_established(*(f"crd/{resource.plural}.{resource.group}" for resource in RESOURCES))

    def _write_overlay(self, folder: Path) -> None:
        """Write an overlay of the shipped manifests and components, with the process's addresses in their objects."""

        def relative(path: Path) -> str:
            return os.path.relpath(path, folder)

        shipped = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [relative(QUICKSTART)],
            "components": [relative(COMPONENTS / name) for name in self.components],
        }
        file = folder / "kustomization.yaml"
        file.write_text(yaml.safe_dump(shipped))
        documents = list(yaml.safe_load_all(self.cluster.kubectl("kustomize", str(folder)).stdout))
        controllers = (d for d in documents if d["kind"] in ("CompositeController", "DecoratorController"))
        (webhooks,) = (d for d in documents if d["kind"] == "ValidatingWebhookConfiguration")
        patches = [*map(self._hook_patch, controllers), self._webhook_patch(webhooks), self._conversion_patch()]
        file.write_text(yaml.safe_dump({**shipped, "patches": patches}))

    def _hook_patch(self, controller: dict[str, Any]) -> dict[str, Any]:
        """Return a patch of a controller's hook addresses that leaves the rest of each URL unchanged."""
        changes = [
            {
                "op": "replace",
                "path": f"/spec/hooks/{hook}/webhook/url",
                "value": declared["webhook"]["url"].replace(_IN_CLUSTER, self.url),
            }
            for hook, declared in controller["spec"]["hooks"].items()
        ]
        target = {"kind": controller["kind"], "name": controller["metadata"]["name"]}
        return {"target": target, "patch": yaml.safe_dump(changes)}

    def _webhook_patch(self, configuration: dict[str, Any]) -> dict[str, Any]:
        changes = [
            {
                "op": "replace",
                "path": f"/webhooks/{number}/clientConfig",
                "value": {"url": self.url + webhook["clientConfig"]["service"]["path"]},
            }
            for number, webhook in enumerate(configuration["webhooks"])
        ]
        return {"target": {"kind": "ValidatingWebhookConfiguration"}, "patch": yaml.safe_dump(changes)}

    def _conversion_patch(self) -> dict[str, Any]:
        config = {"url": self.url + CONVERSION_PATH}
        change = {"op": "replace", "path": "/spec/conversion/webhook/clientConfig", "value": config}
        target = {"kind": "CustomResourceDefinition", "name": "llminferenceservice.*"}
        return {"target": target, "patch": yaml.safe_dump([change])}

    def _make_certificates(self) -> None:
        """Run the command of the shipped Job with its ServiceAccount and its rights; like the Job, retry it."""
        wait_until(self._has_account, "the ServiceAccount modelhooks-certs")
        token = self.cluster.kubectl("create", "token", "modelhooks-certs", "-n", SYSTEM).stdout.strip()
        (self.workdir / "token").write_text(token)
        command = [sys.executable, "-m", "app.cli", "certs", "--apply", "--san", "127.0.0.1"]
        where = ["--kube-api", self.cluster.url, "--kube-ca-file", str(self.cluster.ca_file)]
        argv = [*command, *where, "--kube-token-file", str(self.workdir / "token")]
        error = ""
        for _ in range(_CERTS_TRIES):
            done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT)
            if done.returncode == 0:
                return
            error = done.stderr
        raise AssertionError(error)

    def _has_account(self) -> bool:
        done = self.cluster.kubectl("get", "serviceaccount", "modelhooks-certs", "-n", SYSTEM, check=False)
        return done.returncode == 0


@contextlib.contextmanager
def checked(cluster: ControlPlane, workdir: Path, components: Sequence[str]) -> Iterator[Installation]:
    """An installation that still runs at the end, with the CRDs of the optional kinds."""
    cluster.install_crds(*binaries.optional_crds())
    with Installation(cluster, workdir, components) as installed:
        yield installed
        installed.service.check()
        installed.metacontroller.process.check()


def clear(cluster: ControlPlane, *namespaces: str) -> None:
    """Delete everything that runs in some namespaces, without waiting.

    It costs a tenth of deleting a namespace, for which the control plane makes two requests for each kind.
    """
    for namespace in namespaces:
        for api, plural in _RUNNING:
            path = f"/{api}/namespaces/{namespace}/{plural}"
            cluster.client.delete(path, params={"propagationPolicy": "Background"})


def settle(cluster: ControlPlane, namespace: str, kinds: str, seconds: float) -> set[str]:
    """Wait until no object of some kinds is written for some seconds; return their resource versions.

    Fails if they are written again and again. The last write after a change may be late on a busy machine.
    """

    def versions() -> set[str]:
        items = cluster.get(kinds, "-n", namespace)["items"]
        return {f"{i['kind']}/{i['metadata']['name']}@{i['metadata']['resourceVersion']}" for i in items}

    def unchanged() -> bool:
        before = versions()
        time.sleep(seconds)
        return before == versions()

    wait_until(unchanged, f"{kinds} of {namespace} are not written for {seconds:g} s", interval=0)
    return versions()
