"""Volumes for claims of the StorageClass of `cluster.yaml`: directories of the node, created when a pod needs them."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from tests.e2e.controlplane import ControlPlane
from tests.node import node


class Provisioner:
    """Provisions volumes while it is entered. They are of type `local`, so that `fsGroup` applies to them."""

    def __init__(self, cluster: ControlPlane, folder: Path) -> None:
        self._client = cluster.client_of("admin")
        self._folder = folder
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="provisioner", daemon=True)
        self._provided: set[str] = set()
        self.rooms: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._folder.mkdir()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(30)
        self._client.close()

    def limit(self, namespace: str, claim: str, room: int) -> None:
        """Limit the volume of a claim that does not exist yet to `room` bytes."""
        self.rooms[f"{namespace}/{claim}"] = room

    def directory(self, namespace: str, claim: str) -> Path:
        """Return the directory of a claim's files."""
        return self._folder / f"{namespace}-{claim}"

    def _serve(self) -> None:
        while not self._ended.wait(0.3):
            try:
                for claim in self._client.get("/api/v1/persistentvolumeclaims").raise_for_status().json()["items"]:
                    if _waits(claim) and claim["metadata"]["uid"] not in self._provided:
                        self._provide(claim)
            except httpx.HTTPError:
                continue  # retried in the next pass

    def _provide(self, claim: dict[str, Any]) -> None:
        metadata = claim["metadata"]
        directory = self.directory(metadata["namespace"], metadata["name"])
        directory.mkdir(exist_ok=True)
        if room := self.rooms.get(f"{metadata['namespace']}/{metadata['name']}"):
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", str(directory)], check=True)
        self._client.post("/api/v1/persistentvolumes", json=_volume(claim, directory)).raise_for_status()
        self._provided.add(metadata["uid"])


def _waits(claim: dict[str, Any]) -> bool:
    """Report whether a pod is scheduled to a node and waits for the claim's volume."""
    annotations = claim["metadata"].get("annotations") or {}
    pending = claim["status"]["phase"] == "Pending" and claim["spec"].get("storageClassName") == "standard"
    return pending and "volume.kubernetes.io/selected-node" in annotations


def _volume(claim: dict[str, Any], directory: Path) -> dict[str, Any]:
    metadata = claim["metadata"]
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node.NAME]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": f"pvc-{metadata['uid']}",
            "annotations": {"pv.kubernetes.io/provisioned-by": "node.test/directory"},
        },
        "spec": {
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": claim["spec"]["accessModes"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "standard",
            "local": {"path": str(directory)},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                **{key: metadata[key] for key in ("namespace", "name", "uid")},
            },
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }
