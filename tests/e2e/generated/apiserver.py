"""A bare API server with all our kinds and all kinds of our children, for generated objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
import orjson

from app.desk.cluster.apply import updated, with_record
from app.kube.base import Json
from app.kube.names import CONTROLLER_UID
from tests.e2e.standin.children import owner_reference

STRICT = {"fieldValidation": "Strict"}
DRY = {"dryRun": "All", **STRICT}


class RefusedError(AssertionError):
    """The API server refused a request; the message is the server's."""


class Server:
    """Sends plain objects with POST and PUT; paths are read from discovery."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._plurals: dict[tuple[str, str], tuple[str, bool]] = {}

    def create(self, document: Json, *, dry: bool = True) -> Json:
        """Create an object and return its stored form."""
        return self._write("POST", self._path(document), document, DRY if dry else STRICT)

    def update(self, document: Json) -> Json:
        """Update an existing object and return its stored form, regardless of any simulated status."""
        spoken = {name: value for name, value in document.items() if name != "status"}
        return self._write("PUT", self._named(document), spoken, STRICT)

    def delete(self, document: Json) -> None:
        self._client.delete(self._named(document)).raise_for_status()

    def write_status(self, parent: Json, status: Json) -> Json:
        """Write a status and return its stored form."""
        path = f"{self._named(parent)}/status"
        return dict(self._write("PUT", path, {**parent, "status": status}, DRY).get("status", {}))

    def _named(self, document: Json) -> str:
        return f"{self._path(document)}/{document['metadata']['name']}"

    def _path(self, document: Json) -> str:
        api_version, kind = document["apiVersion"], document["kind"]
        base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        if (api_version, kind) not in self._plurals:
            for resource in self._client.get(base).raise_for_status().json()["resources"]:
                if "/" not in resource["name"]:
                    self._plurals[api_version, resource["kind"]] = resource["name"], resource["namespaced"]
        plural, namespaced = self._plurals[api_version, kind]
        return f"{base}/namespaces/{document['metadata']['namespace']}/{plural}" if namespaced else f"{base}/{plural}"

    def _write(self, method: str, path: str, document: Json, parameters: Mapping[str, str]) -> Json:
        headers = {"Content-Type": "application/json"}
        answer = self._client.request(method, path, content=orjson.dumps(document), params=parameters, headers=headers)
        body: Json = answer.json()
        if answer.is_error:
            raise RefusedError(f"{document['kind']}: {body.get('message', body)}")
        if "warning" in answer.headers and "unknown field" in answer.headers["warning"]:
            raise RefusedError(f"{document['kind']}: {answer.headers['warning']}")
        return body


def labelled(child: Json, parent: Json) -> Json:
    """Return a desired child with what Metacontroller adds: its namespace, and the label that identifies its parent."""
    metadata = child["metadata"]
    labels = {**metadata.get("labels", {}), CONTROLLER_UID: parent["metadata"]["uid"]}
    return {**child, "metadata": {"namespace": parent["metadata"].get("namespace", ""), **metadata, "labels": labels}}


def as_created(child: Json, parent: Json) -> Json:
    """Return what Metacontroller posts for a desired child: with its record and its owner."""
    desired = labelled(child, parent)
    created = with_record(desired, desired)
    created["metadata"]["ownerReferences"] = [owner_reference(parent)]
    return created


def difference(stored: Json, child: Json, parent: Json) -> str:
    """Return what an update towards the child would change in its stored form; empty if nothing."""
    changes = _differences(stored, updated(stored, labelled(child, parent)), child["kind"])
    return "; ".join(sorted(changes, key=len))  # the record contains everything, so it comes last


def _differences(old: Any, new: Any, path: str) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        changes = []
        for key in sorted({*old, *new}):
            changes += _differences(old.get(key), new.get(key), f"{path}.{key}")
        return changes
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [d for n, (a, b) in enumerate(zip(old, new, strict=True)) for d in _differences(a, b, f"{path}[{n}]")]
    return [] if old == new and type(old) is type(new) else [f"{path}: {old!r} -> {new!r}"]
