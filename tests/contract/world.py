"""A recorded case's cluster: Metacontroller, the kubelet and the hooks, in memory and to a fixpoint.

It is deliberately not the simulated cluster of the command line: what judges the answers must not share code with what
makes them.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from app.cli.kinds import as_stored
from app.families import find
from app.hooks.kind import Kind, answer_customize, answer_sync
from app.settings import Settings

Json = dict[str, Any]
Key = tuple[str, str, str]
"""Kind and version, namespace, name."""

NOW = datetime(2030, 1, 1, tzinfo=UTC)
"""The hooks' clock. Times in the recordings are older."""
NOW_TEXT = "2030-01-01T00:00:00Z"
LONG_AGO = "2025-01-02T00:00:00Z"
LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"
CREATE_ONLY = ("Job", "PersistentVolumeClaim")
MAX_ROUNDS = 8

_CLUSTER_SCOPED = ("Node", "PriorityClass", "RuntimeClass", "StorageClass", "OpenModel", "BackendRuntime", "Namespace")
_SERVER_FIELDS = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields")
_MERGE_KEYS = ("containerPort", "port", "mountPath", "name", "uid", "ip", "path")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "Exists": lambda have, _: have is not None,
    "DoesNotExist": lambda have, _: have is None,
    "In": lambda have, values: have in values,
    "NotIn": lambda have, values: have not in values,
}
_UNDECLARED = {
    "llmkube": ("PodMonitor",),
    "llmaz": (),
    "kserve": (
        *("ServiceAccount", "Role", "RoleBinding", "ConfigMap"),
        *("InferenceObjective", "ScaledObject", "VariantAutoscaling"),
    ),
}
"""Optional children that the recordings were compared without."""
_PARENTS = {
    "llmkube": ("Model", "InferenceService"),
    "llmaz": ("OpenModel", "BackendRuntime", "Playground", "Service"),
    "kserve": ("LLMInferenceServiceConfig", "LLMInferenceService"),
}
"""Kinds in the order in which they are synced: those that others wait for come first."""


def outer(item: Json) -> str:
    """``Deployment.apps/v1``: how Metacontroller groups objects."""
    return f"{item['kind']}.{item['apiVersion']}"


def namespace(item: Json) -> str:
    """Empty for what no namespace holds."""
    return "" if item["kind"] in _CLUSTER_SCOPED else str(item["metadata"].get("namespace", ""))


def key(item: Json) -> Key:
    """What identifies an object."""
    return outer(item), namespace(item), item["metadata"]["name"]


def inner(item: Json) -> str:
    """``namespace/name``: the key of an object inside its group."""
    return f"{namespace(item)}/{item['metadata']['name']}".lstrip("/")


def expanded(value: Any) -> Any:
    """``<time>`` is long ago, ``<now-20s>`` twenty seconds before the clock."""
    text = json.dumps(value).replace("<time>", LONG_AGO)
    return json.loads(re.sub(r"<now-(\d+)s>", lambda m: _ago(int(m[1])), text))


def _ago(seconds: int) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


_RELATED = (
    *("BackendRuntime", "ConfigMap", "Deployment", "EndpointSlice", "Gateway", "HTTPRoute", "InferencePool"),
    *("InferenceService", "LLMInferenceServiceConfig", "LeaderWorkerSet", "Model", "Node", "OpenModel"),
    *("Job", "PersistentVolume", "PersistentVolumeClaim", "Pod", "PriorityClass", "RuntimeClass"),
    *("Secret", "Service", "ServiceAccount", "StorageClass"),
)
"""Kinds that rules ask for: a rule says its resource, and Metacontroller answers by kind, also where there is none."""


def _kind_of(resource: str) -> str:
    return next(kind for kind in _RELATED if plural(kind) == resource)


def plural(kind: str) -> str:
    """The resource of a kind, as a rule of ``customize`` names it."""
    low = kind.lower()
    if low.endswith("y") and low != "gateway":
        return f"{low[:-1]}ies"
    return f"{low}es" if low.endswith(("s", "x")) and low != "endpoints" else f"{low}s"


class World:
    """The objects of one case, and what the hooks made of them."""

    def __init__(self, case: Json, settings: Settings) -> None:
        self.case = case
        self.settings = settings
        self.timers: dict[str, float | None] = {}
        self.objects: dict[Key, Json] = {}
        self._desired: dict[Key, set[Key]] = {}
        for written in expanded(case["objects"]):
            item = as_stored(written)
            metadata = item["metadata"]
            metadata.setdefault("uid", _uid(item))
            metadata.setdefault("creationTimestamp", "2025-01-01T00:00:00Z")
            metadata.setdefault("generation", 1)
            if metadata.get("ownerReferences") and LAST_APPLIED not in (metadata.get("annotations") or {}):
                _record(item, _asked_for(item))
            self.objects[key(item)] = item

    def run(self) -> None:
        """Sync every parent until nothing changes."""
        before = ""
        for _ in range(MAX_ROUNDS):
            for kind, parent in self._parents():
                self._sync(kind, self.objects[key(parent)])  # one before may have replaced it
            self._finish_jobs_and_bind_claims()
            after = json.dumps(list(self.objects.values()), sort_keys=True)
            if after == before:
                return
            before = after
        raise AssertionError(f"no fixpoint after {MAX_ROUNDS} rounds")

    def parent(self, kind: str, name: str) -> Json | None:
        """The object of one of the family's kinds."""
        found = (p for _, p in self._parents(all_kinds=True) if (p["kind"], p["metadata"]["name"]) == (kind, name))
        return next(found, None)

    def children(self) -> dict[Key, Json]:
        """The children that the hooks want, as they are now."""
        return {k: self.objects[k] for wanted in self._desired.values() for k in wanted if k in self.objects}

    def declared(self) -> set[str]:
        """Kinds of children that the parents of this case may have."""
        return {child for kind, _ in self._parents() for child in self._declared(kind)}

    def _parents(self, *, all_kinds: bool = False) -> list[tuple[Kind[Any, Any], Json]]:
        kinds = None if all_kinds else self.case.get("reconciled")
        found = []
        for name in _PARENTS[self.case["family"]]:
            for item in sorted(self.objects.values(), key=key):
                kind = find(item["apiVersion"], item["kind"]) if item["kind"] == name else None
                if kind is not None and (kinds is None or name in kinds):
                    found.append((kind, item))
        return found

    def _declared(self, kind: Kind[Any, Any]) -> list[str]:
        undeclared = _UNDECLARED[self.case["family"]]
        return [child.key for child in kind.resource.children if child.key.partition(".")[0] not in undeclared]

    def _sync(self, kind: Kind[Any, Any], parent: Json) -> None:
        owned = self._owned(kind, parent)
        request = {
            "controller": _controller(kind, self._declared(kind)),
            "parent": parent,
            "children": owned,
            "related": self._related(kind, parent),
            "finalizing": False,
        }
        answer = json.loads(answer_sync(kind, json.dumps(request).encode(), self.settings, NOW))
        wanted = {}
        for child in answer["children"]:
            child["metadata"].setdefault("namespace", namespace(parent))
            wanted[key(child)] = child
        for k, child in wanted.items():
            self._apply(k, child, parent)
        for group in owned.values():
            for item in group.values():
                if key(item) not in wanted:
                    self.objects.pop(key(item), None)
        self._desired[key(parent)] = set(wanted)
        self.timers[f"{parent['kind']}/{parent['metadata']['name']}"] = answer.get("resyncAfterSeconds")
        parent["status"] = answer["status"]

    def _owned(self, kind: Kind[Any, Any], parent: Json) -> dict[str, dict[str, Json]]:
        groups: dict[str, dict[str, Json]] = {declared: {} for declared in self._declared(kind)}
        for item in self.objects.values():
            owners = [reference.get("uid") for reference in item["metadata"].get("ownerReferences", ())]
            if outer(item) in groups and parent["metadata"]["uid"] in owners:
                groups[outer(item)][inner(item)] = item
        return groups

    def _related(self, kind: Kind[Any, Any], parent: Json) -> dict[str, dict[str, Json]]:
        if kind.customize is None:
            return {}
        request = {"controller": _controller(kind, self._declared(kind)), "parent": parent}
        answer = json.loads(answer_customize(kind, json.dumps(request).encode(), self.settings))
        related: dict[str, dict[str, Json]] = {}
        for rule in answer["relatedResources"]:
            group = related.setdefault(f"{_kind_of(rule['resource'])}.{rule['apiVersion']}", {})
            for item in self.objects.values():
                named = (item["apiVersion"], plural(item["kind"])) == (rule["apiVersion"], rule["resource"])
                if named and _selected(rule, item):
                    group[inner(item)] = item
        return related

    def _apply(self, k: Key, desired: Json, parent: Json) -> None:
        """Metacontroller's dynamic apply of one child."""
        old = self.objects.get(k)
        if old is None:
            new = copy.deepcopy(desired)
            new.pop("status", None)
            owner = {
                "apiVersion": parent["apiVersion"],
                "kind": parent["kind"],
                "name": parent["metadata"]["name"],
                "uid": parent["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
            new["metadata"] |= {
                "uid": _uid(new),
                "creationTimestamp": LONG_AGO,
                "generation": 1,
                "ownerReferences": [owner],
            }
        elif desired["kind"] in CREATE_ONLY:
            return
        else:
            record = json.loads((old["metadata"].get("annotations") or {}).get(LAST_APPLIED, "{}"))
            new = merged(old, record, desired)
            new["metadata"] |= {name: old["metadata"][name] for name in _SERVER_FIELDS if name in old["metadata"]}
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        _record(new, desired)
        self.objects[k] = new

    def _finish_jobs_and_bind_claims(self) -> None:
        """Jobs of Models that the operator called failed fail, others complete; claims bind."""
        statuses = self.case["expect"]["status"].items()
        failing = {name.partition("/")[2] for name, status in statuses if status.get("phase") == "Failed"}
        for item in self.objects.values():
            if item.get("status"):
                continue
            if item["kind"] == "Job":
                item["status"] = _job_status(failed=item["metadata"]["ownerReferences"][0]["name"] in failing)
            elif item["kind"] == "PersistentVolumeClaim":
                item["status"] = {"phase": "Bound"}


def _controller(kind: Kind[Any, Any], declared: Iterable[str]) -> Json:
    children = []
    for child in declared:
        name, _, version = child.partition(".")
        method = "OnDelete" if name in CREATE_ONLY else "InPlace"
        children.append({"apiVersion": version, "resource": plural(name), "updateStrategy": {"method": method}})
    return {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "CompositeController",
        "metadata": {"name": kind.resource.plural},
        "spec": {"generateSelector": True, "childResources": children},
        "status": {},
    }


def _job_status(*, failed: bool) -> Json:
    type_, reason = ("Failed", "BackoffLimitExceeded") if failed else ("Complete", "CompletionsReached")
    condition = {"type": type_, "status": "True", "reason": reason, "message": "", "lastTransitionTime": LONG_AGO}
    return {"conditions": [condition], **({"failed": 3} if failed else {"succeeded": 1, "completionTime": LONG_AGO})}


def _uid(item: Json) -> str:
    digest = hashlib.sha256("/".join(key(item)).encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


def _asked_for(item: Json) -> Json:
    """What an operator that is taken over would have asked Metacontroller for."""
    dropped = (*_SERVER_FIELDS, "ownerReferences")
    metadata = {name: value for name, value in item["metadata"].items() if name not in dropped}
    return {**{name: value for name, value in item.items() if name != "status"}, "metadata": metadata}


def _record(item: Json, desired: Json) -> None:
    item["metadata"].setdefault("annotations", {})[LAST_APPLIED] = json.dumps(desired, sort_keys=True)


def _selected(rule: Json, item: Json) -> bool:
    if rule.get("namespace") and namespace(item) != rule["namespace"]:
        return False
    if rule.get("names") and item["metadata"]["name"] not in rule["names"]:
        return False
    selector, labels = rule.get("labelSelector") or {}, item["metadata"].get("labels") or {}
    if any(labels.get(name) != value for name, value in (selector.get("matchLabels") or {}).items()):
        return False
    expressions = selector.get("matchExpressions") or ()
    return all(_OPERATORS[e["operator"]](labels.get(e["key"]), e.get("values", ())) for e in expressions)


def merged(observed: Any, last: Any, desired: Any) -> Any:
    """Metacontroller's three-way merge: what was asked for before and is not any more goes, the rest stays."""
    if isinstance(desired, dict) and isinstance(observed, dict | None):
        observed, last = observed or {}, last if isinstance(last, dict) else {}
        out = {name: value for name, value in observed.items() if name in desired or name not in last}
        return out | {name: merged(observed.get(name), last.get(name), value) for name, value in desired.items()}
    if isinstance(desired, list) and isinstance(observed, list):
        return _merged_list(observed, last if isinstance(last, list) else [], desired)
    return copy.deepcopy(desired)


def _merged_list(observed: list[Any], last: list[Any], desired: list[Any]) -> list[Any]:
    items = [*observed, *last, *desired]
    name = None
    if items and all(isinstance(item, dict) for item in items):
        name = next((k for k in _MERGE_KEYS if all(k in item for item in items)), None)
    if name is None:
        return copy.deepcopy(desired)
    wanted, before = ({item[name]: item for item in group} for group in (desired, last))
    kept = [item for item in observed if item[name] in wanted or item[name] not in before]
    there = {item[name] for item in observed}
    return [
        *(merged(i, before.get(i[name]), wanted[i[name]]) if i[name] in wanted else i for i in kept),
        *(copy.deepcopy(item) for item in desired if item[name] not in there),
    ]
