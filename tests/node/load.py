"""Clients that keep writing objects for which the API server must call our webhook."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

import httpx

from tests.e2e.controlplane import ControlPlane
from tests.node.world import SERVICES

_THREADS = 4
_PAUSE = 0.02


class Load:
    """Makes dry-run changes of an InferenceService while it is entered; `failed` lists responses other than 200."""

    def __init__(self, cluster: ControlPlane, namespace: str, name: str) -> None:
        self._cluster = cluster
        plural, _, group = SERVICES.partition(".")
        self._path = f"/apis/{group}/v1alpha1/namespaces/{namespace}/{plural}/{name}"
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(n,), daemon=True) for n in range(_THREADS)]
        self.succeeded = 0
        self.failed: list[str] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(60)

    def _write(self, thread: int) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        number = 0
        with self._cluster.client_of("admin") as client:
            while not self._ended.wait(_PAUSE):
                number += 1
                patch = {"metadata": {"annotations": {"node.test/change": f"{thread}-{number}"}}}
                began = time.monotonic()
                try:
                    answer = client.patch(self._path, json=patch, params={"dryRun": "All"}, headers=headers)
                except httpx.HTTPError as error:
                    self.failed.append(f"{error!r} after {time.monotonic() - began:.1f} s")
                else:
                    if answer.status_code == 200:
                        self.succeeded += 1
                    else:
                        self.failed.append(
                            f"{answer.status_code} after {time.monotonic() - began:.1f} s: {answer.text}"
                        )
