"""The endpoint picker of KServe's presets, run with its Deployment's arguments and its ServiceAccount's rights."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import pytest

from app.kube.base import Json
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import ROOT, Installation
from tests.e2e.processes import Process, free_ports, wait_until
from tests.world import programs
from tests.world.servers import PORT, ModelServer

pytestmark = [pytest.mark.e2e, pytest.mark.world("epp", "extproc")]

EXAMPLES = ROOT / "examples" / "kserve"
DESTINATION = "x-gateway-destination-endpoint"
PREFILLER = "x-prefiller-host-port"
_EVENTS = "events is forbidden"
"""The Role does not allow the events of the leader election, and nothing depends on them."""
CHAT = json.dumps({"model": "Qwen/Qwen2.5-7B-Instruct", "messages": [{"role": "user", "content": "Hello"}]})


class Pickers:
    """The endpoint picker of an example's service, as processes in place of the Deployment's containers."""

    def __init__(self, cluster: ControlPlane, namespace: str, workdir: Path, service: str) -> None:
        self.cluster, self.namespace, self.service = cluster, namespace, service
        self._workdir = workdir
        self._opened = ExitStack()
        self._servers: dict[str, ModelServer] = {}
        self.processes: list[Process] = []
        self._ports: list[tuple[int, int]] = []
        self._deployment = f"{service}-kserve-router-scheduler"
        wait_until(lambda: bool(self._found("deployment", self._deployment)), "the picker's Deployment")
        account = self._pod()["serviceAccountName"]
        wait_until(lambda: bool(self._found("rolebinding", f"{service}-epp-rb")), "the picker's rights")
        self._kubeconfig = cluster.write_kubeconfig_of_account(namespace, account, workdir / "kubeconfig")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.stop()
        self._opened.close()

    def _found(self, kind: str, name: str) -> Json:
        done = self.cluster.kubectl("get", kind, name, "-n", self.namespace, "-o", "json", check=False)
        return dict(json.loads(done.stdout)) if done.returncode == 0 else {}

    def _pod(self) -> Json:
        return dict(self._found("deployment", self._deployment)["spec"]["template"]["spec"])

    def arguments(self) -> list[str]:
        """Return the arguments of the picker's container."""
        (container,) = (each for each in self._pod()["containers"] if each["name"] == "main")
        return list(container["args"])

    def change(self, spec: Json) -> None:
        patch = json.dumps({"spec": spec})
        where = ("-n", self.namespace, "--type=merge")
        self.cluster.kubectl("patch", "llminferenceservice", self.service, *where, "-p", patch)

    def start(self) -> int:
        """Start the container's program with its arguments but other ports; return the number of the process."""
        grpc, health, metrics = free_ports(3)
        ports = (f"--grpc-port={grpc}", f"--grpc-health-port={health}", f"--metrics-port={metrics}")
        number = len(self.processes)
        self.processes.append(
            Process(
                f"epp {number}",
                [programs.program("epp"), *self.arguments(), *ports],
                self._workdir / f"epp-{number}.log",
                os.environ | {"KUBECONFIG": str(self._kubeconfig)},
            )
        )
        self._ports.append((grpc, health))
        return number

    def health(self, number: int, service: str) -> str:
        """Return the status that the preset's probe would get; empty if the picker does not answer."""
        self.processes[number].check()
        return str(self._ask(f"127.0.0.1:{self._ports[number][1]}", "health", service).get("status", ""))

    def wait_serving(self, number: int = 0) -> None:
        for probe in ("liveness", "readiness"):
            wait_until(lambda: self.health(number, probe) == "SERVING", f"{probe} of the picker")  # noqa: B023

    def pick(self, *headers: str, body: str = CHAT) -> Json:
        """Return the headers that the first picker sets on a chat request."""
        return self._ask(f"127.0.0.1:{self._ports[0][0]}", "pick", body, *headers)

    def _ask(self, *arguments: str) -> Json:
        command = [str(programs.program("extproc")), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return dict(json.loads(done.stdout)) if done.returncode == 0 else {}

    def log(self) -> str:
        return "\n".join(process.tail(100_000) for process in self.processes)

    def _endpoints(self, component: str) -> dict[str, str]:
        """Return the addresses of the service's ready pods by pod name, without terminating pods."""
        selector = f"app.kubernetes.io/name={self.service},app.kubernetes.io/component=llminferenceservice-{component}"
        items = self.cluster.get("pods", "-n", self.namespace, "-l", selector)["items"]
        return {
            item["metadata"]["name"]: f"{item['status']['podIP']}:{PORT}"
            for item in items
            if "deletionTimestamp" not in item["metadata"]
            and any(c["type"] == "Ready" and c["status"] == "True" for c in item["status"].get("conditions", []))
        }

    def wait_endpoints(
        self, count: int, component: str = "workload", *, but: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Wait for `count` ready pods, none of them in `but`; return their addresses by pod name."""
        ready: dict[str, str] = {}

        def there() -> bool:
            nonlocal ready
            ready = self._endpoints(component)
            return len(ready) == count and not ready.keys() & (but or {}).keys()

        wait_until(there, f"{count} ready pods")
        return ready

    def serve(self, endpoints: Mapping[str, str]) -> list[ModelServer]:
        """Return the model servers at these addresses. They are kept, since kwok reuses addresses."""
        for each in endpoints.values():
            if each not in self._servers:
                self._servers[each] = self._opened.enter_context(ModelServer(each.partition(":")[0]))
        return [self._servers[each] for each in endpoints.values()]


@pytest.fixture(scope="module")
def gateway(installation: Installation) -> Installation:
    """Create the Gateway that managed routes refer to; no controller implements it here."""
    installation.cluster.create_namespace("kserve")
    installation.cluster.kubectl("apply", "-f", str(EXAMPLES / "cluster" / "gateway.yaml"))
    return installation


@pytest.fixture
def pickers(gateway: Installation, namespace: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pickers]:
    """Apply the example that the test names; return the pickers of its service."""
    example, service = request.param
    cluster = gateway.cluster
    cluster.kubectl("apply", "-n", namespace, "-f", str(EXAMPLES / f"{example}.yaml"))
    with Pickers(cluster, namespace, tmp_path, service) as running:
        yield running
        refused = [line for line in running.log().splitlines() if "forbidden" in line and _EVENTS not in line]
        assert refused == []


routed = pytest.mark.parametrize("pickers", [("routed", "routed-chat")], indirect=True, ids=["routed"])


@routed
def test_it_prefers_the_less_loaded_server_and_follows_a_rollout(pickers: Pickers) -> None:
    old = pickers.wait_endpoints(2)
    servers = pickers.serve(old)
    pickers.start()
    pickers.wait_serving()
    wait_until(lambda: pickers.pick().get(DESTINATION) in old.values(), "a ready pod is picked")
    for busy, expected in zip(servers, reversed(old.values()), strict=True):
        for server in servers:
            server.waiting = 50 if server is busy else 0
        wait_until(lambda: picks(pickers) == {expected}, f"{expected} alone, the other is busy")  # noqa: B023
    variable = [{"name": "main", "env": [{"name": "EXAMPLE", "value": "changed"}]}]
    pickers.change({"template": {"containers": variable}})
    new = pickers.wait_endpoints(2, but=old)
    for server in pickers.serve(new):
        server.waiting = 0
    wait_until(lambda: picks(pickers) <= set(new.values()), "only new pods are picked")


def picks(pickers: Pickers) -> set[str | None]:
    """Return the pods picked for a few chats that are too short for the prompt cache to matter."""
    return {pickers.pick().get(DESTINATION) for _ in range(4)}


@pytest.mark.parametrize("pickers", [("prefill-decode", "split-chat")], indirect=True, ids=["prefill-decode"])
def test_it_names_one_server_for_prefill_and_one_for_decode(pickers: Pickers) -> None:
    decode = pickers.wait_endpoints(1)
    prefill = pickers.wait_endpoints(2, "workload-prefill")
    pickers.serve(decode)
    busy, _ = pickers.serve(prefill)
    busy.waiting = 50
    pickers.start()
    pickers.wait_serving()
    expected = (*decode.values(), list(prefill.values())[1])

    def pair() -> tuple[str | None, str | None]:
        answer = pickers.pick()
        return answer.get(DESTINATION), answer.get(PREFILLER)

    wait_until(lambda: pair() == expected, f"{expected} for decode and prefill")


@pytest.mark.parametrize(
    "pickers", [("lora", "chat-with-adapters"), ("critical", "critical-chat")], indirect=True, ids=["lora", "critical"]
)
def test_it_starts_with_every_default_configuration(pickers: Pickers) -> None:
    """The picker starts and picks a pod for a model that is an adapter, and for an objective."""
    servers = pickers.wait_endpoints(2 if pickers.service == "chat-with-adapters" else 1)
    pickers.serve(servers)
    pickers.start()
    pickers.wait_serving()
    body = json.dumps({"model": "legal-de", "prompt": "Hello"})
    header = f"x-gateway-inference-objective={pickers.service}"
    wait_until(lambda: pickers.pick(header, body=body).get(DESTINATION) in servers.values(), "a pod is picked")


@routed
def test_several_elect_a_leader(pickers: Pickers) -> None:
    """With the Role's rights, one picker is ready, and the other one becomes ready when the first stops."""
    pickers.change({"router": {"scheduler": {"replicas": 2}}})
    wait_until(lambda: "--ha-enable-leader-election" in pickers.arguments(), "pickers that elect a leader")
    first = pickers.start()
    pickers.wait_serving(first)
    second = pickers.start()
    wait_until(lambda: pickers.health(second, "liveness") == "SERVING", "the second one lives")
    wait_until(lambda: pickers.health(second, "readiness") == "NOT_SERVING", "the second one waits")
    pickers.processes[first].stop()
    wait_until(lambda: pickers.health(second, "readiness") == "SERVING", "the second one leads")
