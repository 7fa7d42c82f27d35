"""Metacontroller (the real one or the stand-in) behaves as in the recordings of the real one.

Every scenario runs in separate namespaces and a separate API group, so one control plane runs many at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.controlplane import ControlPlane
from tests.e2e.metacontroller import CRDS, Metacontroller
from tests.e2e.traces.certificates import hook_certificate
from tests.e2e.traces.hookserver import HookServer, Script
from tests.e2e.traces.observe import Audit
from tests.e2e.traces.replay import Replay, install
from tests.e2e.traces.scenario import Addresses, Scenario, load, names

pytestmark = pytest.mark.e2e

OWN_PROCESS = frozenset({"t10", "t52", "t55"})
"""Scenarios that stop or restart the process; each gets a separate one."""

LISTENS_TO_ALL = frozenset({"t51"})
"""Selects ConfigMaps of all namespaces, so it runs beside scenarios without ConfigMaps."""

CLUSTER_PARENT = "t02"
"""The only scenario whose children may lack a namespace."""

AT_ONCE = 10


class Shard(Metacontroller):
    """A Metacontroller that runs the controllers with one value of the label `shard`."""

    def __init__(self, cluster: ControlPlane, workdir: Path, shard: str) -> None:
        self._shard = shard
        super().__init__(cluster, workdir / shard, discovery_interval="1s")

    @property
    def alive(self) -> bool:
        """True until the process ends."""
        return self.process.running

    def restart_at_once(self) -> None:
        """Kill the process and start it again."""
        self.process.kill()
        self.process = self._start()

    def _run(self, *argv: str) -> Any:
        return super()._run(*argv, f"--target-label-selector=shard={self._shard}")


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[list[str]]]]:
    """Futures of the differences of each scenario in this session; all of them are started."""
    wanted = {item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")}
    workdir = tmp_path_factory.mktemp("traces")
    certificate = hook_certificate(workdir)
    server = HookServer(certificate.pair)
    addresses = Addresses(server.plain_url, server.tls_url, certificate.ca_pem)
    scenarios = [scenario for scenario in load(addresses, OWN_PROCESS) if scenario.name in wanted]
    with ControlPlane(workdir, controllers=(), scheduler=False, kwok=False, audit=True) as cluster:
        cluster.install_crds(CRDS)
        _prepare(cluster, scenarios)
        # Start the garbage collector after the CRDs exist: it discovers new kinds only twice a minute.
        cluster._controllers = ("garbage-collector", "namespace")
        cluster._start_controllers()
        shards = {shard: Shard(cluster, workdir, shard) for shard in {scenario.shard for scenario in scenarios}}
        audit = Audit(cluster.audit_log_path, "metacontroller", elsewhere=CLUSTER_PARENT)
        pool = ThreadPoolExecutor(AT_ONCE)

        def replay(scenario: Scenario) -> Callable[[], list[str]]:
            shard, script = shards[scenario.shard], server.scripts.setdefault(scenario.id, Script())
            return Replay(scenario, cluster.client, audit, script, shard).run

        try:
            yield _start_all(pool, scenarios, replay)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            for shard in shards.values():
                shard.process.kill()
            server.close()


@pytest.mark.parametrize("name", names())
def test_does_as_recorded(name: str, results: dict[str, Future[list[str]]]) -> None:
    differing = results[name].result(timeout=600)
    assert not differing, "\n" + "\n".join(differing)


def _prepare(cluster: ControlPlane, scenarios: list[Scenario]) -> None:
    """Create the namespaces and CRDs of all scenarios."""
    for scenario in scenarios:
        for namespace in scenario.namespaces:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            cluster.client.post("/api/v1/namespaces", json=body).raise_for_status()
    install(cluster.client, [crd for scenario in scenarios for crd in scenario.definitions])


def _start_all(
    pool: ThreadPoolExecutor, scenarios: list[Scenario], replay: Callable[[Scenario], Callable[[], list[str]]]
) -> dict[str, Future[list[str]]]:
    """Start scenarios that watch all ConfigMaps together with those that have none, and then the others."""
    quiet = [scenario for scenario in scenarios if '"ConfigMap"' not in str(scenario.data).replace("'", '"')]
    first = [scenario for scenario in scenarios if scenario.id in LISTENS_TO_ALL]
    # Long ones first, so that no long one runs alone at the end.
    later = sorted((s for s in scenarios if s not in first and s not in quiet), key=_length, reverse=True)
    running = {scenario.name: pool.submit(replay(scenario)) for scenario in [*first, *quiet]}
    gate = [running[scenario.name] for scenario in first]

    def after_gate(run: Callable[[], list[str]]) -> list[str]:
        for future in gate:
            future.exception()
        return run()

    return running | {scenario.name: pool.submit(after_gate, replay(scenario)) for scenario in later}


def _length(scenario: Scenario) -> float:
    return sum(float(step.get("watchedSeconds", 0.8)) for step in scenario.steps)
