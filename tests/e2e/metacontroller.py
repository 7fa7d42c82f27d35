"""Metacontroller beside the control plane: the real one if `METACONTROLLER` names its program, else the stand-in."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import httpx

from tests.e2e.controlplane import ControlPlane
from tests.e2e.processes import Process, free_port

CRDS = Path(__file__).parent / "metacontroller-crds.yaml"
_ROOT = Path(__file__).parents[2]

Kind = Literal["metacontroller", "stand-in"]


class Metacontroller:
    """A running Metacontroller that can be stopped and restarted; a context manager that stops it.

    ``flags`` are additional flags of the real one.
    """

    def __init__(
        self, cluster: ControlPlane, workdir: Path, *, discovery_interval: str = "5s", flags: Sequence[str] = ()
    ) -> None:
        self.kind: Kind = "metacontroller" if os.environ.get("METACONTROLLER") else "stand-in"
        self._kubeconfig = cluster.kubeconfig_of("metacontroller")
        self._workdir = workdir
        self._discovery_interval = discovery_interval
        self._flags = tuple(flags)
        self.process = self._start()

    def stop(self) -> None:
        """End the process with SIGTERM."""
        self.process.stop()

    def restart(self) -> None:
        """Stop, and start again with the same arguments."""
        self.stop()
        self.process = self._start()

    def _start(self) -> Process:
        return self._start_real() if self.kind == "metacontroller" else self._start_standin()

    def _start_real(self) -> Process:
        """Start the real one and wait for its health endpoint."""
        health = f"127.0.0.1:{free_port()}"
        process = self._run(
            os.environ["METACONTROLLER"],
            f"--kubeconfig={self._kubeconfig}",
            # Without these a client may make five requests a second, and tests would take minutes.
            "--client-go-qps=500",
            "--client-go-burst=1000",
            "--workers=5",
            f"--discovery-interval={self._discovery_interval}",
            "--leader-election=false",
            "--metrics-address=0",
            f"--health-probe-bind-address={health}",
            *self._flags,
        )
        process.wait_ready(lambda: _healthy(f"http://{health}/readyz"))
        return process

    def _start_standin(self) -> Process:
        """Start the stand-in. It has no health endpoint, so the call does not wait."""
        interval = self._discovery_interval.removesuffix("s")
        return self._run(
            *(sys.executable, "-m", "tests.e2e.standin"),
            *("--kubeconfig", str(self._kubeconfig)),
            *("--workers", "5"),
            *("--discovery-interval", interval),
        )

    def _run(self, *argv: str) -> Process:
        environment = os.environ | {"PYTHONPATH": str(_ROOT)}
        return Process(self.kind, argv, self._workdir / "logs" / f"{self.kind}.log", environment)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def start_metacontroller(cluster: ControlPlane, workdir: Path, *, discovery_interval: str = "5s") -> Metacontroller:
    """Install Metacontroller's CRDs and start it."""
    cluster.install_crds(CRDS)
    return Metacontroller(cluster, workdir, discovery_interval=discovery_interval)


def _healthy(url: str) -> bool:
    """Report whether a health endpoint returns 200."""
    try:
        return httpx.get(url, timeout=2.0, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False
