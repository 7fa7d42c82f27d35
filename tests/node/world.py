"""The node and the servers beside it, with the operations that the node tests use."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import yaml

from tests.e2e.controlplane import TIMEOUT, ControlPlane
from tests.e2e.metacontroller import Metacontroller
from tests.e2e.processes import PATIENCE
from tests.node.files import FileServer
from tests.node.node import Node
from tests.node.prepare import Prepared
from tests.node.report import timed
from tests.node.samples import model
from tests.node.volumes import Provisioner

SERVICES = "inferenceservices.inference.llmkube.dev"
SYSTEM = "modelhooks-system"
T = TypeVar("T")
_OVERLAY = Path("manifests/overlays/quickstart")


@dataclass(frozen=True)
class World:
    """A node, and the servers beside it."""

    cluster: ControlPlane
    node: Node
    volumes: Provisioner
    files: FileServer
    metacontroller: Metacontroller
    prepared: Prepared
    host_model: Path
    """Directory of the node that has the tiny model."""

    def install(self, tree: Path) -> None:
        """Install the release of a tree with the commands of its README, and wait until it is usable.

        That includes the certificates, and kube-proxy, which is the last to learn of ready pods.
        """
        self.cluster.kubectl("apply", "--server-side", "-k", tree / _OVERLAY)
        self.cluster.kubectl("-n", SYSTEM, "wait", "--for=condition=Complete", "job/modelhooks-certs", TIMEOUT)
        self.rollout("status")
        self.wait_for_webhooks()

    def wait_for_webhooks(self) -> None:
        """Wait until the API server reaches the webhooks."""
        self.wait_for("webhooks answer", self._reviews, lambda reviewed: reviewed)

    def _reviews(self) -> bool:
        """Report whether the API server gets a response from a webhook."""
        asked = yaml.safe_dump(model("asked", "https://models.example.com/asked.gguf"))
        return self.cluster.kubectl("apply", "--dry-run=server", "-f", "-", input=asked, check=False).returncode == 0

    def rollout(self, subcommand: str = "status") -> None:
        """Run `kubectl rollout` for modelhooks' Deployment, and wait until its rollout is complete."""
        for command in dict.fromkeys((subcommand, "status")):
            self.cluster.kubectl("-n", SYSTEM, "rollout", command, "deployment/modelhooks")

    def apply(self, namespace: str, *documents: Mapping[str, Any]) -> None:
        """Apply objects to a namespace, as a user would."""
        self.cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump_all(documents))

    def find(self, kind: str, name: str, namespace: str) -> dict[str, Any] | None:
        """Return an object, or None."""
        items = self.cluster.get(kind, "-n", namespace, f"--field-selector=metadata.name={name}")["items"]
        return items[0] if items else None

    def condition(self, kind: str, name: str, namespace: str, type_: str) -> dict[str, Any]:
        """Return a condition of an object; empty if it does not exist."""
        document = self.find(kind, name, namespace) or {}
        conditions = document.get("status", {}).get("conditions", [])
        return next((dict(condition) for condition in conditions if condition["type"] == type_), {})

    def wait_true(self, kind: str, name: str, namespace: str, condition: str = "Ready") -> None:
        """Wait until a condition of an object is true; the error shows the condition."""
        self.wait_for(
            f"{kind}/{name} {condition}",
            lambda: self.condition(kind, name, namespace, condition),
            lambda condition: condition.get("status") == "True",
        )

    def wait_not_ready(self, kind: str, name: str, namespace: str, words: str) -> None:
        """Wait until an object's Ready is false and its reason or message contains `words`."""
        self.wait_for(
            f"{kind}/{name} not ready: {words}",
            lambda: self.condition(kind, name, namespace, "Ready"),
            lambda c: c.get("status") == "False" and words in f"{c.get('reason')} {c.get('message')}",
        )

    def wait_for(self, what: str, look: Callable[[], T], good: Callable[[T], bool]) -> T:
        """Call `look` until its result is `good`, and return it; the error shows the last result."""
        with timed(what):
            deadline = time.monotonic() + PATIENCE
            while not good(seen := look()):
                if time.monotonic() > deadline:
                    raise AssertionError(f"{what}: not within {PATIENCE:g} s; the last was {seen}")
                time.sleep(0.3)
            return seen

    def pods(self, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        """Return the pods of a namespace, without terminating ones."""
        pods = self.cluster.get("pods", "-n", namespace, f"--selector={selector}")["items"]
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def processes(self, pod: Mapping[str, Any], name: str) -> list[int]:
        """Return the ids of a pod's processes that run a program of this name."""
        ids = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it may have ended
                if (
                    pod["metadata"]["uid"] in (entry / "cgroup").read_text()
                    and (entry / "comm").read_text() == f"{name}\n"
                ):
                    ids.append(int(entry.name))
        return ids

    def diagnostics(self) -> str:
        """Return all pods and the latest events, for the report of a failed test."""
        pods = self.cluster.kubectl("get", "pods", "-A", "-o", "wide", check=False).stdout
        events = self.cluster.kubectl("get", "events", "-A", "--sort-by=.lastTimestamp", check=False).stdout
        return "\n".join([pods, *events.splitlines()[-40:]])

    def restarts(self, namespace: str, selector: str = "") -> dict[str, int]:
        """Return the number of container restarts of each ready pod, by uid."""
        return {
            pod["metadata"]["uid"]: sum(container["restartCount"] for container in pod["status"]["containerStatuses"])
            for pod in self.pods(namespace, selector)
            if all(container["ready"] for container in pod["status"].get("containerStatuses", [{"ready": False}]))
        }

    def syncs(self, kind: str) -> float:
        """Return how many syncs of a kind the running pods of modelhooks have answered."""
        total = 0.0
        for pod in self.pods(SYSTEM, "app.kubernetes.io/component=server"):
            url = f"https://{pod['status']['podIP']}:8443/metrics"
            # The certificate is for the Service's name.
            metrics = httpx.get(url, verify=False, timeout=10, trust_env=False).raise_for_status().text  # noqa: S501
            for line in metrics.splitlines():
                if line.startswith("modelhooks_syncs_total{") and f'kind="{kind}"' in line:
                    total += float(line.rpartition(" ")[2])
        return total

    def ask(self, url: str, **chat: Any) -> dict[str, Any]:
        """Send a chat to a model server by its name in the cluster's DNS."""
        body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 4, **chat}

        def answer() -> httpx.Response | None:
            try:
                return httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60, trust_env=False)
            except httpx.ConnectError:  # kube-proxy learns of a pod only once it is ready
                return None

        answered = self.wait_for(f"{url} answers", answer, lambda seen: seen is not None)
        assert answered is not None
        assert answered.status_code == 200, answered.text
        return dict(answered.json())


def status_of(process: int) -> dict[str, str]:
    """Return a process' status in the kernel: its user, its capabilities, whether system calls are filtered."""
    lines = Path("/proc", str(process), "status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def restricted(process: int, user: int) -> None:
    """Assert that a process runs as a user without capabilities, privilege escalation or unfiltered system calls."""
    status = status_of(process)
    assert status["Uid"].split()[0] == str(user)
    assert (status["CapEff"], status["NoNewPrivs"], status["Seccomp"]) == ("0" * 16, "1", "2")
