"""Observations in the terms of the recordings: writes from the audit log, objects and Events from the API."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import httpx

from app.kube.base import Json
from tests.e2e.traces.hookserver import LAST_APPLIED
from tests.e2e.traces.scenario import Scenario

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_DROPPED = ("resourceVersion", "creationTimestamp", "managedFields", "selfLink")
_WRITES = ("create", "update", "patch", "delete", "deletecollection")

BUILT_IN = {
    "ConfigMap": ("v1", "configmaps"),
    "Service": ("v1", "services"),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims"),
    "Deployment": ("apps/v1", "deployments"),
    "Job": ("batch/v1", "jobs"),
    "HorizontalPodAutoscaler": ("autoscaling/v2", "horizontalpodautoscalers"),
}
"""Kinds that scenarios create, besides their custom kinds."""


class Audit:
    """Reads the audit log as it grows and groups Metacontroller's writes by scenario."""

    def __init__(self, path: Path, user: str, elsewhere: str) -> None:
        """`elsewhere` is the scenario of writes that name none: a refused POST without a namespace has no object."""
        self._path = path
        self._user = user
        self._elsewhere = elsewhere
        self._offset = 0
        self._lock = threading.Lock()
        self._entries: defaultdict[str, list[Json]] = defaultdict(list)

    def entries(self, scenario: Scenario) -> list[Json]:
        """Return all writes in the scenario so far, in order."""
        with self._lock:
            self._read()
            return list(self._entries[scenario.id])

    def _read(self) -> None:
        if not self._path.exists():
            return
        with self._path.open("rb") as log:
            log.seek(self._offset)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                if b'"username":"' + self._user.encode() + b'"' in line:
                    self._sort(json.loads(line))

    def _sort(self, entry: Json) -> None:
        reference = entry.get("objectRef") or {}
        if entry["verb"] not in _WRITES or reference.get("resource") in ("events", "leases"):
            return
        # Namespaced writes have the number in their URL; others in the API group of the object or of its owner.
        match = re.search(r"/namespaces/(t\d\d)", entry["requestURI"]) or re.search(
            r"demo-(t\d\d)\.dev", json.dumps(entry)
        )
        self._entries[match.group(1) if match else self._elsewhere].append(entry)


class Observer:
    """The cluster as one scenario sees it, with the recording's names for UIDs."""

    def __init__(self, scenario: Scenario, client: httpx.Client, audit: Audit) -> None:
        self._scenario = scenario
        self._client = client
        self._audit = audit
        self._uids: dict[str, str] = {}
        self._uids_of: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)

    def learn(self, value: Any) -> None:
        """Record the UID of every object in a value, in order of appearance."""
        if isinstance(value, list):
            for item in value:
                self.learn(item)
        elif isinstance(value, dict):
            metadata = value.get("metadata")
            if isinstance(metadata, dict) and value.get("kind") and metadata.get("uid") and metadata.get("name"):
                self._learn(value["kind"], metadata.get("namespace") or "", metadata["name"], metadata["uid"])
            for item in value.values():
                self.learn(item)

    def _learn(self, kind: str, namespace: str, name: str, uid: str) -> None:
        known = self._uids_of[kind, namespace, name]
        if uid not in self._uids:
            known.append(uid)
            self._uids[uid] = f"uid:{kind}/{name}" + (f"#{len(known)}" if len(known) > 1 else "")

    def actual_uids(self, value: Any) -> Any:
        """Return a recorded value with the UIDs of the objects that exist here."""
        text = json.dumps(value)
        for uid, label in sorted(self._uids.items(), key=lambda item: -len(item[1])):
            text = text.replace(f'"{label}"', f'"{uid}"')
        return json.loads(text)

    def recorded(self, value: Any) -> Any:
        """Return a value from here in the form of the recording."""
        return _normal(json.loads(self.recorded_text(json.dumps(value))))

    def recorded_text(self, text: str) -> str:
        """Return a string from here in the form of the recording."""
        text = self._scenario.recorded(text)
        for uid, label in self._uids.items():
            text = text.replace(uid, label)
        return text

    def objects(self) -> dict[str, Json]:
        """Return all objects of the scenario, by `Kind/namespace/name`."""
        text = json.dumps(self._scenario.data)
        paths = [
            f"/{'apis' if '/' in version else 'api'}/{version}/namespaces/{namespace}/{plural}"
            for kind, (version, plural) in BUILT_IN.items()
            if f'"{kind}"' in text
            for namespace in self._scenario.namespaces
        ]
        objects: list[Json] = []
        for path in [*paths, *self._custom_paths()]:
            objects += self._list(path)
        self.learn(objects)
        return {self.recorded_text(_name(obj)): self.recorded(obj) for obj in objects}

    def events(self) -> dict[tuple[str, str, str, str], int]:
        """Return how often each Event (on, type, reason, message) has occurred so far."""
        counts: defaultdict[tuple[str, str, str, str], int] = defaultdict(int)
        for namespace in [*self._scenario.namespaces, "default"]:
            for event in self._list(f"/api/v1/namespaces/{namespace}/events"):
                on = event["involvedObject"]
                if namespace == "default" and self._scenario.id not in on["name"]:
                    continue
                message = self.recorded_text(event.get("message") or "")[:700]
                counts[f"{on['kind']}/{on['name']}", event["type"], event["reason"], message] += event.get("count") or 1
        return dict(counts)

    def count_writes(self) -> int:
        """Return the number of Metacontroller's writes so far."""
        return len(self._audit.entries(self._scenario))

    def writes(self, since: int) -> list[Json]:
        """Return Metacontroller's writes after the first `since`."""
        entries = self._audit.entries(self._scenario)[since:]
        for entry in entries:
            self.learn(entry.get("responseObject"))
        return [self._write(entry) for entry in entries]

    def _write(self, entry: Json) -> Json:
        reference = entry["objectRef"]
        sent, answer = entry.get("requestObject") or {}, entry.get("responseObject") or {}
        code = entry["responseStatus"]["code"]
        metadata = sent.get("metadata") or {}
        name = reference.get("name") or metadata.get("name") or ""
        namespace = reference.get("namespace")
        resource = reference["resource"] + (f"/{reference['subresource']}" if "subresource" in reference else "")
        write: Json = {"verb": entry["verb"], "resource": resource, "code": code}
        write["name"] = f"{namespace}/{name}" if namespace and name else name
        if entry["verb"] == "delete":
            write["options"] = self.recorded(
                {key: sent[key] for key in ("preconditions", "propagationPolicy") if key in sent}
            )
        elif sent:
            write["object"] = self.recorded({"status": sent.get("status")} if "subresource" in reference else sent)
        answered = answer.get("metadata") or {}
        if entry["verb"] == "update" and code < 300:
            write["deletes"] = bool(answered.get("deletionTimestamp")) and not answered.get("finalizers")
            same = metadata.get("resourceVersion") == answered.get("resourceVersion")
            write["noop"] = same and not write["deletes"]
        return write

    def _custom_paths(self) -> list[str]:
        answer = self._client.get(f"/apis/{self._scenario.group}/v1")
        if answer.status_code == 404:
            return []
        paths = []
        for resource in answer.raise_for_status().json()["resources"]:
            if "/" not in resource["name"]:
                bases = (
                    [f"namespaces/{name}/" for name in self._scenario.namespaces] if resource["namespaced"] else [""]
                )
                paths += [f"/apis/{self._scenario.group}/v1/{base}{resource['name']}" for base in bases]
        return paths

    def _list(self, path: str) -> list[Json]:
        answer = self._client.get(path)
        while answer.status_code == 429:  # the storage of a new kind is still starting
            time.sleep(0.2)
            answer = self._client.get(path)
        if answer.status_code == 404:
            return []
        answered = answer.raise_for_status().json()
        kind = answered["kind"].removesuffix("List")
        return [{"apiVersion": answered["apiVersion"], "kind": kind, **item} for item in answered["items"]]


def _name(obj: Json) -> str:
    metadata = obj["metadata"]
    return "/".join(filter(None, (obj["kind"], metadata.get("namespace"), metadata["name"])))


def _normal(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        if key == "metadata":
            value = {name: item for name, item in value.items() if name not in _DROPPED}
        normal = {name: _normal(item, name) for name, item in value.items()}
        if key == "annotations" and isinstance(normal.get(LAST_APPLIED), str):
            normal[LAST_APPLIED] = _normal(json.loads(normal[LAST_APPLIED]))
        return normal
    if isinstance(value, list):
        return [_normal(item, key) for item in value]
    if isinstance(value, str):
        if _TIME.fullmatch(value):
            return "<time>"
        if key in ("clusterIP", "clusterIPs") and re.fullmatch(r"[\d.]+|[\da-f:]+", value):
            return "<clusterIP>"
    return value
