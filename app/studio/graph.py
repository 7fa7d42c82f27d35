"""The objects of a cluster as a graph: parents, what they read, what they lead to, and the pods."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from app.desk.cluster import live, references, store
from app.desk.cluster.kinds import find, kind_of
from app.desk.cluster.offline import desired, in_cluster
from app.desk.cluster.pods import is_ready, selected
from app.desk.cluster.simulate import INVALID_SPEC, Cluster
from app.desk.cluster.store import Key, key_of, owner
from app.desk.files.manifests import Manifest
from app.desk.files.yaml import dump
from app.hooks.kind import AnyKind
from app.hooks.readystatus import RESTING
from app.kube.base import Json
from app.kube.conditions import is_true
from app.kube.field import Path
from app.kube.objects import ObservedClaim, ObservedDeployment, ObservedJob, ObservedPod
from app.kube.podspec import TEMPLATES, pod_templates
from app.studio.models import Edge, Graph, Node, Role, State
from app.studio.stored import decoder
from app.workload.readiness.cause import Cause, Stage
from app.workload.readiness.pods import counts, pod_problems
from app.workload.readiness.ready import claim_cause, deployment_causes, job_causes, pod_causes, ready_message
from app.workload.readiness.waiting import CHANGE_REFUSED, CREATE_REFUSED

Places = Mapping[Key, tuple[str, int]]
"""Document and line of the objects in the files."""

_PATIENT = frozenset({"StartupProbe"})
"""Reasons of a cause that passes by itself, as those of the last stage do."""
AT_REST = RESTING | {"WaitingForMetalAgent"}
"""Reasons of Ready that a user asked for, or that wait for something outside the cluster."""
REFUSALS = frozenset({INVALID_SPEC, CREATE_REFUSED, CHANGE_REFUSED})
"""Reasons of Ready of an object that is refused, or whose child is: by its rules, or by the API server."""
_WRONG = frozenset({"failing", "refused"})
POD = "Pod.v1"


def places(manifests: Iterable[Manifest], namespace: str) -> Places:
    return {
        key_of(in_cluster(manifest, namespace)): (manifest.file, manifest.position(Path())[0]) for manifest in manifests
    }


def node_id(document: Json) -> str:
    """``Deployment.apps/v1 default/chat``."""
    return _id(key_of(document))


def key_in(node: str) -> Key:
    outer, _, inner = node.partition(" ")
    return outer, inner


def _id(key: Key) -> str:
    return " ".join(key)


def draw(
    cluster: Cluster,
    written: Places,
    about: Json | None = None,
    looked_for: Callable[[Key], bool] = lambda _: True,
    *,
    yaml: bool = True,
) -> Graph:
    """Return the graph of a cluster, or only of ``about`` and what belongs to it.

    ``looked_for`` reports whether an object would be here if it were on the cluster: else it cannot be called absent.
    """
    drawing = _Drawing(cluster, written, looked_for, yaml=yaml)
    shown = drawing.reached(node_id(about)) if about is not None else drawing.connected()
    nodes = [node for node in drawing.nodes() if node.id in shown]
    return Graph(nodes=nodes, edges=[e for e in drawing.edges if e.source in shown and e.target in shown])


_MADE_BY_OTHERS = frozenset({POD, "EndpointSlice.discovery.k8s.io/v1"})
"""Kinds that have no manifests, so that their objects are never shown as absent; pods are below their workload."""


class _Drawing:
    """Computes edges first; a state depends on the objects that they reach."""

    def __init__(self, cluster: Cluster, written: Places, looked_for: Callable[[Key], bool], *, yaml: bool) -> None:
        self._cluster = cluster
        self._objects = cluster.objects
        self._written = written
        self._looked_for = looked_for
        self._yaml = yaml
        self._absent: dict[Key, None] = {}
        self._needed: set[str] = set()
        """IDs of required objects that a hook reads by a name in the spec. Secrets of pods are often made elsewhere."""
        self._pods: dict[Key, list[Json]] = {}
        self._roles: dict[Key, Role] = {}
        self.edges = list({(e.source, e.target): e for e in self._edges()}.values())
        self._below: dict[str, list[str]] = defaultdict(list)
        for edge in self.edges:
            self._below[edge.source].append(edge.target)

    def reached(self, start: str) -> set[str]:
        """Return the part of the graph that an object reaches, without the readers of those nodes."""
        reached, waiting = set(), [start]
        while waiting:
            node = waiting.pop()
            if node not in reached:
                reached.add(node)
                waiting += self._below.get(node, ())
        return reached

    def connected(self) -> set[str]:
        """Return the IDs of objects that are in the files, created, or named by one that is."""
        touched = {end for edge in self.edges for end in (edge.source, edge.target)}
        return touched | {_id(key) for key in self._objects if key in self._written or self._roles.get(key) == "parent"}

    def _edges(self) -> Iterator[Edge]:
        for kind, document in self._cluster.parents():
            key = key_of(document)
            self._roles[key] = "child" if owner(document) else "parent" if kind.resource.children else "related"
            owned = {key_of(child) for child in self._cluster.children(document)}
            for child in owned:
                self._roles.setdefault(child, "child")
                yield _edge(key, child, "makes")
            for target in self._read(kind, document):
                if target not in owned and target != key:
                    yield _edge(key, target, "reads")
        for key, document in list(self._objects.items()):
            if self._roles.get(key) == "child" and kind_of(document) is None:
                yield from self._of_child(key, document)

    def _read(self, kind: AnyKind, document: Json) -> Iterator[Key]:
        """Yield what the hook reads by name, or selects and the spec names; absent objects if the spec names them."""
        rules = self._cluster.rules(kind, document)
        unnamed = [rule for rule in rules if not rule.get("names")]
        for outer, group in store.related(kind, unnamed, self._objects).items():
            served = find(*store.type_of(outer))
            for inner in group if served is not None and not served.resource.children else ():
                if references.referring_field(document, outer, inner.rpartition("/")[2]) is not None:
                    yield outer, inner
        for rule in rules:
            outer = store.related_keys(kind).get((rule["resource"], rule["apiVersion"]), "")
            named = rule.get("names") or ()
            for name in named if outer and outer not in _MADE_BY_OTHERS else ():
                inner = f"{rule['namespace']}/{name}" if rule.get("namespace") else str(name)
                held = next((key for key in ((outer, inner), (outer, name)) if key in self._objects), None)
                if held is not None:
                    yield held
                elif self._looked_for((outer, inner)) and references.referring_field(document, outer, name) is not None:
                    self._needed.add(_id((outer, inner)))
                    yield self._missing((outer, inner))

    def _missing(self, key: Key) -> Key:
        self._absent[key] = None
        return key

    def _of_child(self, key: Key, document: Json) -> Iterator[Edge]:
        pods = selected(self._objects, document)
        if pods:
            self._pods[key] = pods
        for pod in pods:
            self._roles[key_of(pod)] = "pod"
            yield _edge(key, key_of(pod), "runs")
        target = scaled(document)
        if target is not None and target in self._objects:
            yield _edge(key, target, "scales")
        for kind, name, label, optional in _references(document.get("spec") or {}):
            read = f"{kind}.v1", f"{document['metadata'].get('namespace', '')}/{name}"
            if read in self._objects:
                yield _edge(key, read, label)
            elif self._looked_for(read) and not optional:
                yield _edge(key, self._missing(read), label)

    def nodes(self) -> Iterator[Node]:
        states: dict[str, tuple[State, str]] = {_id(key): ("absent", "not found") for key in self._absent}
        served = {key: document for key, document in self._objects.items() if kind_of(document) is not None}
        for key, document in self._objects.items():
            if key not in served:
                states[_id(key)] = _state(document, self._pods.get(key, ()))
        for key, document in served.items():
            states[_id(key)] = self._own_state(document, states)
        for key, document in self._objects.items():
            yield self._node(key, document, *states[_id(key)])
        for key in self._absent:
            api_version, kind = store.type_of(key[0])
            namespace, _, name = key[1].rpartition("/")
            head = {"apiVersion": api_version, "kind": kind, "metadata": {"namespace": namespace, "name": name}}
            yield self._node(key, head, "absent", "not found")

    def _own_state(self, document: Json, states: Mapping[str, tuple[State, str]]) -> tuple[State, str]:
        """Return the state of a served object: its errors, or its condition Ready and whether waiting can help.

        It cannot where something that the object reaches fails or is absent, or where nothing there waits.
        """
        if errors := self._cluster.refused.get(key_of(document)):
            return "refused", errors
        condition = live.ready(document)
        if condition.get("status") == "True":
            return "ready", ""
        if not condition:
            return ("ready", "") if live.conditions(document) else ("waiting", "not answered yet")
        message = str(condition.get("message") or condition.get("reason") or "")
        if condition.get("reason") in REFUSALS:
            return "refused", message
        others = self.reached(node_id(document)) - {node_id(document)}
        held_up = {states[node][0] for node in others & states.keys()}
        waits = "waiting" in held_up or condition.get("reason") in AT_REST
        fails = not held_up.isdisjoint(_WRONG) or not others.isdisjoint(self._needed) or not waits
        return ("failing" if fails else "waiting"), message

    def _node(self, key: Key, document: Json, state: State, cause: str) -> Node:
        metadata = document["metadata"]
        file, line = self._written.get(key, (None, None))
        kind = kind_of(document)
        return Node(
            id=_id(key),
            api_version=document["apiVersion"],
            kind=document["kind"],
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
            role=self._roles.get(key, "related"),
            family=kind.resource.family if kind is not None else "",
            state=state,
            cause=cause,
            yaml=yaml_of(document) if self._yaml and state != "absent" else "",
            conditions=live.conditions(document),
            document=file,
            line=line,
        )


def _edge(source: Key, target: Key, label: str) -> Edge:
    return Edge(source=_id(source), target=_id(target), label=label)


def scaled(document: Json) -> Key | None:
    target = (document.get("spec") or {}).get("scaleTargetRef")
    if not target:
        return None
    outer = f"{target['kind']}.{target.get('apiVersion') or 'apps/v1'}"
    return outer, f"{document['metadata'].get('namespace', '')}/{target['name']}"


def _references(spec: Json) -> Iterator[tuple[str, str, str, bool]]:
    """Yield kind, name, label and ``optional`` of the objects that the pods of a workload mount or read."""
    for name in dict.fromkeys(TEMPLATES.values()):
        for template in pod_templates(spec.get(name) or {}):
            yield from _of_pod(template["spec"])


def _of_pod(pod: Json) -> Iterator[tuple[str, str, str, bool]]:
    for volume in pod.get("volumes") or ():
        projected = (volume.get("projected") or {}).get("sources") or ()
        for source in (volume, *projected):
            for field, kind, name in _VOLUMES:
                if (reference := source.get(field)) and reference.get(name):
                    yield kind, reference[name], "mounts", bool(reference.get("optional"))
    for secret in pod.get("imagePullSecrets") or ():
        yield "Secret", secret["name"], "pulls with", False
    for container in (*(pod.get("initContainers") or ()), *(pod.get("containers") or ())):
        sources = [*(container.get("envFrom") or ()), *(e.get("valueFrom") or {} for e in container.get("env") or ())]
        for source in sources:
            for field, kind in _VARIABLES.items():
                if reference := source.get(field):
                    yield kind, reference["name"], "reads", bool(reference.get("optional"))


_VOLUMES = (
    ("persistentVolumeClaim", "PersistentVolumeClaim", "claimName"),
    ("secret", "Secret", "secretName"),
    ("secret", "Secret", "name"),
    ("configMap", "ConfigMap", "name"),
)
_VARIABLES = {
    "secretRef": "Secret",
    "secretKeyRef": "Secret",
    "configMapRef": "ConfigMap",
    "configMapKeyRef": "ConfigMap",
}


# States of objects that are not served.


def troubled(pod: Json) -> list[Cause]:
    """Return the problem of a pod that is not ready, unless it only needs time."""
    observed = _observed(ObservedPod, pod)
    return [t for t in pod_problems(observed) if t.stage is not Stage.STARTING] if counts(observed) else []


def _state(document: Json, pods: Sequence[Json]) -> tuple[State, str]:
    observed = [_observed(ObservedPod, pod) for pod in pods]
    match document["kind"]:
        case "Pod":
            done = is_ready(document)
            causes = [] if done else pod_causes([_observed(ObservedPod, document)])
        case "Job":
            job = _observed(ObservedJob, document)
            done, causes = is_true(job.status.conditions, "Complete"), job_causes(job, observed)
        case "Deployment":
            done = _is_available(document)
            causes = [*deployment_causes(_observed(ObservedDeployment, document)), *pod_causes(observed)]
        case "LeaderWorkerSet":
            done, causes = _is_available(document), pod_causes(observed)
        case "PersistentVolumeClaim":
            claim = _observed(ObservedClaim, document)
            cause = claim_cause(document["metadata"]["name"], claim)
            state: State = "failing" if claim.status.phase == "Lost" else "waiting"
            return ("ready", "") if cause is None else (state, cause.text)
        case _:
            return _by_conditions(document)
    if not causes:
        return ("ready", "") if done else ("waiting", "")
    fails = any(c.stage is not Stage.STARTING and c.reason not in _PATIENT for c in causes)
    return ("failing" if fails else "waiting"), ready_message(causes)


def _is_available(document: Json) -> bool:
    status = document.get("status") or {}
    replicas = (document.get("spec") or {}).get("replicas", 1)
    return bool(status) and (status.get("readyReplicas") or 0) >= (1 if replicas is None else replicas)


_GOOD = ("Accepted", "Programmed", "ResolvedRefs", "Ready", "AbleToScale", "ScalingActive")
"""Conditions that are True in a healthy object."""


def _by_conditions(document: Json) -> tuple[State, str]:
    """Return the state of a kind that has no status, or only conditions."""
    status = document.get("status") or {}
    parents = [*(status.get("parents") or ()), *(status.get("ancestors") or ())]
    conditions = [*live.conditions(document), *(c for parent in parents for c in parent.get("conditions") or ())]
    bad = [c for c in conditions if c.get("type") in _GOOD and c.get("status") == "False"]
    if bad:
        return "failing", "; ".join(dict.fromkeys(f"{c['type']}: {c.get('message') or c.get('reason')}" for c in bad))
    if not conditions and document["kind"] in _ANSWERED:
        return "waiting", "no controller has reported a status yet"
    return "ready", ""


_ANSWERED = ("HTTPRoute", "InferencePool", "Gateway", "HorizontalPodAutoscaler", "ScaledObject")
"""Kinds whose controllers write a status."""


def _observed(type_: Any, document: Json) -> Any:
    return decoder(type_).decode(orjson.dumps(document))


def yaml_of(document: Json) -> str:
    """Return an object as YAML, without the fields that only machines read."""
    return _yaml(orjson.dumps(document))


@lru_cache(maxsize=8192)
def _yaml(document: bytes) -> str:
    """Cached, because most are the same at every step: 67 objects take 22 ms."""
    content = orjson.loads(document)
    shown = desired(content)
    shown["metadata"].pop("managedFields", None)
    return dump({**shown, **({"status": content["status"]} if content.get("status") else {})})
