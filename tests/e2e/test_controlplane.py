"""The control plane behaves like a cluster in the respects that the other tests rely on."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.e2e.controlplane import TIMEOUT, ControlPlane, KubectlError, _write_pki
from tests.e2e.installation import Installation
from tests.e2e.processes import wait_until
from tools import embedded_types

pytestmark = pytest.mark.e2e

_IMAGE = "registry.example/server:v1"


def _pod_spec(image: str = _IMAGE, **fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": image} | fields]}


def _apply(cluster: ControlPlane, namespace: str, *objects: dict[str, Any]) -> None:
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump_all(objects))


def _pod(name: str, spec: dict[str, Any], **metadata: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name} | metadata, "spec": spec}


def _job(name: str, pod_spec: dict[str, Any], backoff_limit: int = 0) -> dict[str, Any]:
    template = {"spec": pod_spec | {"restartPolicy": "Never"}}
    spec = {"backoffLimit": backoff_limit, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def _deployment(name: str, pod_spec: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_spec}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def _wait(cluster: ControlPlane, namespace: str, condition: str, what: str) -> None:
    cluster.kubectl("wait", "-n", namespace, f"--for={condition}", what, TIMEOUT)


def _container_status(cluster: ControlPlane, namespace: str, pod: str, field: str = "containerStatuses") -> Any:
    """Return the first container's status, once there is one."""
    jsonpath = "{.status." + field + "[0].name}"
    _wait(cluster, namespace, f"jsonpath={jsonpath}", f"pod/{pod}")
    return cluster.get("pod", pod, "-n", namespace)["status"][field][0]


def test_a_new_crd_without_conditions_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """kubectl wait fails until the API server has written the conditions of a CRD."""
    codes = iter((1, 1, 0))
    asked: list[tuple[str | Path, ...]] = []

    def kubectl(*arguments: str | Path, check: bool) -> subprocess.CompletedProcess[str]:
        asked.append(arguments)
        return subprocess.CompletedProcess(arguments, next(codes))

    cluster = ControlPlane(tmp_path)
    monkeypatch.setattr(cluster, "kubectl", kubectl)
    cluster.wait_established("crd/widgets.example.com")
    assert len(asked) == 3
    assert {arguments[-1] for arguments in asked} == {"crd/widgets.example.com"}


def test_workloads_run(control_plane: ControlPlane, namespace: str) -> None:
    """A Deployment on GPUs becomes available, a claim is bound, and a Job that uses it completes."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "cache"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}},
    }
    volume = {"volumes": [{"name": "cache", "persistentVolumeClaim": {"claimName": "cache"}}]}
    gpu: dict[str, Any] = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    _apply(
        control_plane,
        namespace,
        _deployment("web", _pod_spec(**gpu)),
        claim,
        _job("download", _pod_spec() | volume),
    )
    _wait(control_plane, namespace, "condition=Available", "deployment/web")
    _wait(control_plane, namespace, "condition=Complete", "job/download")
    assert control_plane.get("pvc", "cache", "-n", namespace)["status"]["phase"] == "Bound"


@pytest.mark.parametrize("reason", ["ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError"])
def test_container_waits(control_plane: ControlPlane, namespace: str, reason: str) -> None:
    """A label makes a pod's container wait permanently."""
    _apply(control_plane, namespace, _pod("broken", _pod_spec(), labels={"e2e.modelhooks.dev/fail": reason}))
    status = _container_status(control_plane, namespace, "broken")
    assert status["state"]["waiting"]["reason"] == reason
    assert control_plane.get("pod", "broken", "-n", namespace)["status"]["phase"] == "Pending"


@pytest.mark.parametrize(("mode", "code"), [("CrashLoopBackOff", 1), ("OOMKilled", 137)])
def test_container_crashes(control_plane: ControlPlane, namespace: str, mode: str, code: int) -> None:
    """An annotation makes the named container crash; the others run."""
    spec = {"containers": [{"name": name, "image": _IMAGE} for name in ("main", "sidecar")]}
    annotations = {"e2e.modelhooks.dev/fail": mode, "e2e.modelhooks.dev/container": "main"}
    _apply(control_plane, namespace, _pod("broken", spec, annotations=annotations))
    status = _container_status(control_plane, namespace, "broken")
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert status["lastState"]["terminated"]["exitCode"] == code
    pod = control_plane.get("pod", "broken", "-n", namespace)
    assert pod["status"]["phase"] == "Running"
    assert pod["status"]["containerStatuses"][1]["ready"] is True


def test_image_tag_fails_an_init_container(control_plane: ControlPlane, namespace: str) -> None:
    """A tag is enough, and a failing init container keeps the other containers waiting."""
    broken = {"initContainers": [{"name": "fetch", "image": "registry.example/fetch:CrashLoopBackOff"}]}
    _apply(control_plane, namespace, _pod("broken", _pod_spec() | broken))
    init = _container_status(control_plane, namespace, "broken", "initContainerStatuses")
    assert init["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    main = _container_status(control_plane, namespace, "broken")
    assert main["state"]["waiting"]["reason"] == "PodInitializing"


def test_repaired_image_rolls_out(control_plane: ControlPlane, namespace: str) -> None:
    """A Deployment is unavailable while its probe fails, and becomes available when its image changes."""
    _apply(control_plane, namespace, _deployment("web", _pod_spec("registry.example/server:Unready")))
    _wait(control_plane, namespace, "jsonpath={.status.unavailableReplicas}=2", "deployment/web")
    _apply(control_plane, namespace, _deployment("web", _pod_spec()))
    _wait(control_plane, namespace, "condition=Available", "deployment/web")


@pytest.mark.parametrize("mode", ["Error", "OOMKilled"])
def test_job_fails(control_plane: ControlPlane, namespace: str, mode: str) -> None:
    _apply(control_plane, namespace, _job("download", _pod_spec(f"registry.example/fetch:{mode}")))
    _wait(control_plane, namespace, "condition=Failed", "job/download")


def test_too_many_gpus_are_unschedulable(control_plane: ControlPlane, namespace: str) -> None:
    """The real scheduler decides."""
    _apply(control_plane, namespace, _pod("huge", _pod_spec(resources={"limits": {"nvidia.com/gpu": "33"}})))
    _wait(control_plane, namespace, "condition=PodScheduled=false", "pod/huge")
    conditions = control_plane.get("pod", "huge", "-n", namespace)["status"]["conditions"]
    assert "Insufficient nvidia.com/gpu" in conditions[0]["message"]


def test_pod_can_be_deleted(control_plane: ControlPlane, namespace: str) -> None:
    """kwok also deletes pods that fail."""
    _apply(control_plane, namespace, _pod("broken", _pod_spec("registry.example/server:ImagePullBackOff")))
    _container_status(control_plane, namespace, "broken")
    control_plane.kubectl("delete", "pod", "broken", "-n", namespace, TIMEOUT)


def test_optional_crds(installation: Installation) -> None:
    """The optional children's CRDs are served."""
    kinds = "leaderworkersets,httproutes,gateways,inferencepools,podmonitors,destinationrules"
    installation.cluster.kubectl("get", kinds)


def test_webhooks_on_loopback_are_called(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """The API server calls an HTTPS server of the test, and returns its refusal."""
    _write_pki(tmp_path / "pki")
    with _refusing_server(tmp_path / "pki") as port:
        authority = base64.b64encode((tmp_path / "pki" / "ca.crt").read_bytes()).decode()
        webhook = {
            "name": "refuse.e2e.modelhooks.dev",
            "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": authority},
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
            ],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }
        configuration = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": namespace},
            "webhooks": [webhook],
        }
        _apply(control_plane, namespace, configuration)
        create = ("create", "configmap", "a", "-n", namespace, "--dry-run=server")
        try:
            # The API server learns of the configuration asynchronously.
            wait_until(lambda: bool(control_plane.kubectl(*create, check=False).returncode), "the webhook is called")
            assert "denied the request: not today" in control_plane.kubectl(*create, check=False).stderr
        finally:
            control_plane.kubectl("delete", "validatingwebhookconfiguration", namespace)


class _Refusal(BaseHTTPRequestHandler):
    """Refuses every AdmissionReview."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        response = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": "not today"}}
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _refusing_server(pki: Path) -> Iterator[int]:
    """Run an HTTPS server in a thread; return its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki / "server.crt", pki / "server.key")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusal) as server:
        server.daemon_threads = True
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "arguments",
    [
        ("namespace", "default"),
        ("ns/default",),
        ("serviceaccounts,configmaps", "-A"),
        ("clusterrole", "--chunk-size=10"),
        ("clusterroles.rbac.authorization.k8s.io", "-l", "kubernetes.io/bootstrapping=rbac-defaults"),
        ("cm", "--namespace", "kube-system", "--field-selector=metadata.name=kube-root-ca.crt"),
    ],
    ids=" ".join,
)
def test_gets_what_kubectl_gets(control_plane: ControlPlane, arguments: tuple[str, ...]) -> None:
    printed = json.loads(control_plane.kubectl("get", *arguments, "-o", "json").stdout)
    answer = control_plane.get(*arguments)
    assert answer == printed if "items" not in printed else answer["items"] == printed["items"] != []


def test_gets_objects_of_a_kind_while_it_is_served(control_plane: ControlPlane) -> None:
    """What discovery answered is kept only as long as it would answer the same."""
    schema = {"openAPIV3Schema": {"type": "object"}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "gadgets", "kind": "Gadget"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }

    def served() -> bool:
        try:
            return bool(control_plane.get("gadgets", "-A") == {"items": []})
        except (KeyError, httpx.HTTPStatusError):  # not in discovery, or in discovery before it is served
            return False

    assert not served()
    control_plane.kubectl("create", "-f", "-", input=json.dumps(definition))
    wait_until(served, "gadgets are served")
    control_plane.kubectl("delete", "crd", "gadgets.example.com")
    wait_until(lambda: not served(), "gadgets are not served")


def test_kubectl_failure_says_why(control_plane: ControlPlane) -> None:
    """The error has the command and its output."""
    with pytest.raises(KubectlError, match=r'kubectl get pod nobody: code 1\n.*"nobody" not found'):
        control_plane.kubectl("get", "pod", "nobody")


def test_nothing_outlives_us(tmp_path: Path) -> None:
    """A process ends with the process that started it, even if that is killed."""
    source = (
        "import pathlib, sys, time\n"
        "from tests.e2e.processes import Process\n"
        "process = Process('sleeper', ['/bin/sleep', '600'], pathlib.Path(sys.argv[1]))\n"
        "print(process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", source, str(tmp_path / "log")]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        assert _is_alive(pid)
        starter.kill()
    wait_until(lambda: not _is_alive(pid), "the end of the process")


def _is_alive(pid: int) -> bool:
    try:
        return not Path("/proc", str(pid), "stat").read_text().split(") ")[1].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends while its state is read
        return False


def test_the_table_of_embedded_types_is_what_the_api_server_serves(control_plane: ControlPlane) -> None:
    """Admission validates pods with this table; `python -m tools.embedded_types` regenerates it."""
    documents = (control_plane.client.get(f"/openapi/v3/{name}").json() for name in embedded_types.DOCUMENTS)
    schemas = {name: schema for document in documents for name, schema in document["components"]["schemas"].items()}
    assert embedded_types.TABLE.read_text() == embedded_types.table(schemas)
