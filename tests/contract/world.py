"""The cluster of a recorded case: the command line's cluster in memory, with the recordings' clock and controllers.

It sends the recorded objects until nothing changes; ``parity.py`` compares the answers.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Self

import orjson

from app.desk.cluster import apply
from app.desk.cluster.kinds import as_stored
from app.desk.cluster.offline import direct
from app.desk.cluster.simulate import CONTROLLERS, Cluster, Controller
from app.desk.cluster.store import declared, inner_key, outer_key, stored
from app.hooks.kind import Kind
from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from app.settings import Settings
from tests.hookcalls import NOW

Key = tuple[str, str, str]
"""Kind and version, namespace, name."""

"""The hooks' clock. Times in the recordings are earlier."""
NOW_TEXT = "2030-01-01T00:00:00Z"
LONG_AGO = "2025-01-02T00:00:00Z"
MAX_ROUNDS = 8
SCRIPT = "<script>"
"""Replaces text that was not recorded."""

_CLUSTER_SCOPED = ("Node", "PriorityClass", "RuntimeClass", "StorageClass", "OpenModel", "BackendRuntime", "Namespace")
_UNDECLARED = {
    "llmkube": ("PodMonitor",),
    "llmaz": ("Backend", "AIServiceBackend", "AIGatewayRoute"),
    "kserve": (
        *("ServiceAccount", "Role", "RoleBinding", "ConfigMap"),
        *("InferenceObjective", "ScaledObject", "VariantAutoscaling", "DestinationRule"),
    ),
    "kserve-0.20": ("ServiceAccount", "Role", "RoleBinding", "ConfigMap", "DestinationRule"),
}
"""Optional children that were not installed for the recordings, by recording or family."""
_COUNTED = {"kserve-0.20": frozenset(("HTTPRoute", "InferencePool"))}
"""Kinds whose conditions were judged by the generation that they are of, by recording."""
_LIVE = ("Deployment", "LeaderWorkerSet", "HTTPRoute", "InferencePool", "HorizontalPodAutoscaler", "ScaledObject")
"""Kinds whose healthy controllers are simulated in live cases."""
_PARENTS = {
    "llmkube": ("Model", "InferenceService"),
    "llmaz": ("OpenModel", "BackendRuntime", "Playground", "Service"),
    "kserve": ("LLMInferenceServiceConfig", "LLMInferenceService"),
}
"""Kinds in the order of their syncs: those that others wait for come first."""


def namespace(item: Json) -> str:
    """Return an object's namespace; empty for cluster-scoped kinds."""
    return "" if item["kind"] in _CLUSTER_SCOPED else str(item["metadata"].get("namespace", ""))


def key(item: Json) -> Key:
    """Return what identifies an object."""
    return outer_key(item), namespace(item), item["metadata"]["name"]


def expanded(value: Any) -> Any:
    """Replace ``<time>`` by an early time, and ``<now-20s>`` by the time 20 seconds before the clock's."""
    text = orjson.dumps(value).decode().replace("<time>", LONG_AGO)
    return orjson.loads(re.sub(r"<now-(\d+)s>", lambda m: _ago(int(m[1])), text))


def _ago(seconds: int) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class World:
    """The objects of one case, which the hooks change."""

    def __init__(
        self, case: Json, settings: Settings, *, complete: bool = False, clock: Callable[[], datetime] = lambda: NOW
    ) -> None:
        """``complete`` includes optional kinds that were not installed for the recordings."""
        self.case = case
        self.answers: list[bytes] = []
        """All answers of the hooks."""
        self._hooks = direct(settings, clock)
        self._cluster = Cluster(
            self._send,
            () if complete else _UNDECLARED.get(case.get("recording", ""), _UNDECLARED[case["family"]]),
            controllers=self._controllers(),
            granted=frozenset(),
            counted=_COUNTED.get(case.get("recording", ""), frozenset()),
        )
        for written in expanded(case["objects"]):
            item = _with_settings(as_stored(written), case)
            metadata = item["metadata"]
            if item["kind"] in _CLUSTER_SCOPED:
                metadata.pop("namespace", None)
            metadata.setdefault("uid", _uid(item))
            metadata.setdefault("creationTimestamp", "2025-01-01T00:00:00Z")
            metadata.setdefault("generation", 1)
            if metadata.get("ownerReferences") and LAST_APPLIED not in (metadata.get("annotations") or {}):
                item = apply.with_record(item, _asked_for(item))
            self.put(item)

    def _send(self, path: str, body: bytes) -> bytes:
        self.answers.append(self._hooks(path, body))
        return self.answers[-1]

    def copy(self) -> Self:
        """Return a world of the same objects, in which others may appear and statuses change."""
        twin = copy.copy(self)
        twin.answers = [*self.answers]
        twin._cluster = replace(self._cluster.copy(), send=twin._send, answers={**self._cluster.answers})
        return twin

    def put(self, item: Json) -> None:
        """Store an object unchanged."""
        self._cluster.put(item)

    @property
    def cluster(self) -> Cluster:
        """The cluster in memory."""
        return self._cluster

    @property
    def objects(self) -> dict[Key, Json]:
        """All objects by key."""
        return {key(item): item for item in self._cluster.objects.values()}

    @property
    def timers(self) -> dict[str, float | None]:
        """Seconds until each parent asks to be synced again."""
        answers = self._cluster.answers
        return {
            f"{parent['kind']}/{parent['metadata']['name']}": answers[place][1].get("resyncAfterSeconds")
            for _, parent in self._parents()
            if (place := (outer_key(parent), inner_key(parent))) in answers
        }

    def run(self) -> None:
        """Sync every parent until nothing changes. Kinds without a CRD in the case are not declared."""
        self._cluster.without = (*self._cluster.without, *self.case.get("noCRDs", ()))
        for _ in range(MAX_ROUNDS):
            changed = False
            for kind, parent in self._parents():
                here = self._cluster.objects[outer_key(parent), inner_key(parent)]  # an earlier sync may replace it
                changed |= self._cluster.sync(kind, here)
            changed |= self._cluster.play(self._cluster.objects.values())
            if not changed:
                return
        raise AssertionError(f"no fixpoint after {MAX_ROUNDS} rounds")

    def parent(self, kind: str, name: str) -> Json | None:
        """Return an object of one of the family's kinds, or None."""
        parents = (p for _, p in self._parents(all_kinds=True) if (p["kind"], p["metadata"]["name"]) == (kind, name))
        return next(parents, None)

    def has(self, kind: str) -> bool:
        """Return whether an object of that kind is synced."""
        return any(parent["kind"] == kind for _, parent in self._parents())

    def request(self, kind: str) -> bytes:
        """Return the sync request for the first object of that kind."""
        return next(self._cluster.request(k, parent) for k, parent in self._parents() if parent["kind"] == kind)

    def children(self) -> dict[Key, Json]:
        """Return the desired children, in their present state."""
        wanted = set()
        for _, parent in self._parents():
            for child in self._cluster.last_answer(parent)["children"]:
                wanted.add(key(stored(child, namespace(parent))))
        return {k: item for k, item in self.objects.items() if k in wanted}

    def declared(self) -> set[str]:
        """Return the kinds of children that the parents of this case may have."""
        without = self._cluster.without
        return {child.key for kind, _ in self._parents() for child in declared(kind, without)}

    def _parents(self, *, all_kinds: bool = False) -> list[tuple[Kind[Any, Any], Json]]:
        kinds = None if all_kinds else self.case.get("reconciled")
        order = _PARENTS[self.case["family"]]
        parents = [(kind, item) for kind, item in self._cluster.parents() if kinds is None or item["kind"] in kinds]
        return sorted(parents, key=lambda pair: order.index(pair[1]["kind"]))

    def _controllers(self) -> dict[str, Controller]:
        """Return simulated controllers: Jobs of Models that were recorded as failed fail, others complete; claims bind.

        Other kinds have none, except for workloads, routes and pools in live cases.
        """
        statuses = self.case["expect"]["status"].items()
        failing = {name.partition("/")[2] for name, status in statuses if status.get("phase") == "Failed"}

        def job(item: Json) -> Json:
            return _job_status(failed=item["metadata"]["ownerReferences"][0]["name"] in failing)

        def played(by: Controller) -> Controller:
            return lambda item: item.get("status") or by(item)

        live = {kind: CONTROLLERS[kind] for kind in _LIVE} if self.case.get("live") else {}
        return {**live, "Job": played(job), "PersistentVolumeClaim": played(lambda _: {"phase": "Bound"})}


def _job_status(*, failed: bool) -> Json:
    type_, reason = ("Failed", "BackoffLimitExceeded") if failed else ("Complete", "CompletionsReached")
    condition = {"type": type_, "status": "True", "reason": reason, "message": "", "lastTransitionTime": LONG_AGO}
    return {"conditions": [condition], **({"failed": 3} if failed else {"succeeded": 1, "completionTime": LONG_AGO})}


def _with_settings(item: Json, case: Json) -> Json:
    """Return an object with parts that recordings leave out: start scripts of presets, and settings documents."""
    if item["kind"] == "LLMInferenceServiceConfig":
        caches = f".Spec{'.Prefill' if 'prefill' in item['metadata']['name'] else ''}.KVCacheOffloading"
        flag = f"{{{{ if {caches} }}}}{{{{ kvTransferConfig {caches} }}}}{{{{ end }}}}"
        script = json.dumps(f'eval "exec vllm serve /mnt/models {flag} $@"')
        filled: Json = json.loads(json.dumps(item).replace(json.dumps(SCRIPT), script))
        return filled
    if item["kind"] != "ConfigMap" or SCRIPT not in (item.get("data") or {}).values():
        return item
    documents = case.get("settings") or {}
    data = {key: json.dumps(documents.get(key, {})) if text == SCRIPT else text for key, text in item["data"].items()}
    return {**item, "data": data}


def _uid(item: Json) -> str:
    digest = hashlib.sha256("/".join(key(item)).encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


def _asked_for(item: Json) -> Json:
    """Return the object that a replaced operator would have sent to Metacontroller."""
    dropped = (*apply.SYSTEM_FIELDS, "ownerReferences")
    metadata = {name: value for name, value in item["metadata"].items() if name not in dropped}
    return {**{name: value for name, value in item.items() if name != "status"}, "metadata": metadata}
