"""A cluster in memory, as far as the hooks can see one: objects, and the requests that Metacontroller would send.

``render`` asks once; ``demo`` plays the controllers too. Nothing here decides anything about a served kind.
"""

import hashlib
from collections import UserDict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

import msgspec
import orjson

from app.desk.cluster.kinds import as_stored, find
from app.hooks.kind import AnyKind
from app.kube.base import Json
from app.kube.names import CONTROLLER_UID
from app.kube.resource import ChildKind

Key = tuple[str, str]
"""Metacontroller's keys: ``Deployment.apps/v1`` and ``namespace/name``."""
TAKEN_FOR_GRANTED = frozenset(
    {
        "Node.v1",
        "PriorityClass.scheduling.k8s.io/v1",
        "RuntimeClass.node.k8s.io/v1",
        "StorageClass.storage.k8s.io/v1",
    }
)
"""Kinds that any cluster has and manifests rarely hold."""


class Store(UserDict[Key, Json]):
    """Objects by kind and name. Who owns an object, and its labels, are read when it is put here."""

    def __init__(self, objects: Mapping[Key, Json] | None = None) -> None:
        self._kinds: dict[str, dict[str, Json]] = {}
        self._owned: dict[str, dict[Key, Json]] = {}
        self._labelled: dict[tuple[str, str, str], dict[str, Json]] = {}
        super().__init__(objects or {})

    def __setitem__(self, key: Key, document: Json) -> None:
        if key in self.data:
            self._forget(key)
        self.data[key] = document
        self._kinds.setdefault(key[0], {})[key[1]] = document
        if uid := owner(document):
            self._owned.setdefault(uid, {})[key] = document
        for label, value in _labels(document).items():
            self._labelled.setdefault((key[0], label, value), {})[key[1]] = document

    def __delitem__(self, key: Key) -> None:
        self._forget(key)
        del self._kinds[key[0]][key[1]]
        if not self._kinds[key[0]]:
            del self._kinds[key[0]]
        del self.data[key]

    def of_kind(self, outer: str) -> Mapping[str, Json]:
        """The objects of one kind by ``namespace/name``."""
        return self._kinds.get(outer, {})

    def owned_by(self, uid: str) -> Mapping[Key, Json]:
        return self._owned.get(uid, {})

    def labelled(self, outer: str, label: str, value: str) -> Mapping[str, Json]:
        """The objects of one kind that carry a label, by ``namespace/name``."""
        return self._labelled.get((outer, label, value), {})

    def _forget(self, key: Key) -> None:
        document = self.data[key]
        self._owned.get(owner(document), {}).pop(key, None)
        for label, value in _labels(document).items():
            self._labelled.get((key[0], label, value), {}).pop(key[1], None)


def owner(document: Json) -> str:
    """The uid of the parent that Metacontroller made the object for; empty without one.

    Objects without the label are identified by their owner reference, which other operators also write.
    """
    labelled = _labels(document).get(CONTROLLER_UID)
    if labelled:
        return str(labelled)
    references = document["metadata"].get("ownerReferences") or ()
    return next((str(reference.get("uid", "")) for reference in references if reference.get("controller")), "")


def _labels(document: Json) -> dict[str, str]:
    labels: dict[str, str] = document["metadata"].get("labels") or {}
    return labels


def plural(kind: str) -> str:
    """Return the resource name of a kind, by the rule that all kinds here follow."""
    low = kind.lower()
    if low.endswith(("s", "x")):
        return low + "es"
    return low[:-1] + "ies" if low.endswith("y") and low[-2] not in "aeiou" else low + "s"


def outer_key(document: Json) -> str:
    """Metacontroller's key of a kind: ``Deployment.apps/v1``."""
    return f"{document['kind']}.{document['apiVersion']}"


def type_of(outer: str) -> tuple[str, str]:
    """Return the API version and the kind of such a key: ``apps/v1`` and ``Deployment``."""
    kind, _, api_version = outer.partition(".")
    return api_version, kind


def inner_key(document: Json, namespace: str = "") -> str:
    """Metacontroller's key of an object, hook version v2: ``namespace/name``, or the name of a cluster-scoped one.

    ``namespace`` is for an object that names none.
    """
    metadata = document["metadata"]
    namespace = metadata.get("namespace") or namespace
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def key_of(document: Json, namespace: str = "") -> Key:
    return outer_key(document), inner_key(document, namespace)


CLUSTER_SCOPED = frozenset(
    {
        *("Namespace.", "Node.", "PersistentVolume."),
        *("ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io"),
        *("CSIDriver.storage.k8s.io", "StorageClass.storage.k8s.io", "DeviceClass.resource.k8s.io"),
        "CustomResourceDefinition.apiextensions.k8s.io",
        "CompositeController.metacontroller.k8s.io",
        *("GatewayClass.gateway.networking.k8s.io", "IngressClass.networking.k8s.io"),
        *("PriorityClass.scheduling.k8s.io", "RuntimeClass.node.k8s.io"),
    }
)
"""Kinds of others, with their groups, whose objects have no namespace."""


def is_namespaced(api_version: str, kind: str) -> bool:
    served = find(api_version, kind)
    return served.resource.namespaced if served else f"{kind}.{api_version.rpartition('/')[0]}" not in CLUSTER_SCOPED


def stored(document: Json, namespace: str) -> Json:
    """Return a manifest as a cluster holds it: in the stored version, with a namespace, a uid and a generation.

    ``namespace`` is for a namespaced object that names none.
    """
    document = as_stored(document)
    metadata = {**document.get("metadata", {})}
    if not is_namespaced(document["apiVersion"], document["kind"]):
        metadata.pop("namespace", None)
    elif namespace:
        metadata.setdefault("namespace", namespace)
    seed = f"{outer_key(document)}/{metadata.get('namespace', '')}/{metadata['name']}"
    metadata.setdefault("uid", hashlib.sha256(seed.encode()).hexdigest()[:32])
    metadata.setdefault("generation", 1)
    return {**document, "metadata": metadata}


def declared(kind: AnyKind, without: Iterable[str] = ()) -> list[ChildKind]:
    """Return the kinds of children that a CompositeController declares; ``without`` has components or kinds."""
    missing = frozenset(without)
    return [c for c in kind.resource.children if not c.component or not missing & {c.component, c.kind}]


def customize_request(kind: AnyKind, parent: Json, without: Iterable[str] = ()) -> bytes:
    """Build the body that Metacontroller would post to a customize hook, with the declared kinds of children."""
    children = [{"apiVersion": c.api_version, "resource": c.plural} for c in declared(kind, without)]
    return orjson.dumps({"controller": {"spec": {"childResources": children}}, "parent": parent})


def sync_body(kind: AnyKind, parent: Json, owned: Iterable[Json], related: Json, without: Iterable[str] = ()) -> Json:
    """Build the body that Metacontroller would post: every declared kind, with the parent's children or empty."""
    children: dict[str, Json] = {c.key: {} for c in declared(kind, without)}
    for document in owned:
        if (outer := outer_key(document)) in children:
            children[outer][inner_key(document)] = document
    return {"parent": parent, "children": children, "related": related, "finalizing": False}


def related(
    kind: AnyKind, rules: Iterable[Json], objects: Store, granted: frozenset[str] = TAKEN_FOR_GRANTED
) -> dict[str, Json]:
    """Return the objects that the rules of a customize answer select, with an entry for each requested kind.

    Kinds of ``granted`` without an object are left out, so that references to them are not checked.
    """
    keys = related_keys(kind)
    selected_objects: dict[str, Json] = {}
    for rule in rules:
        key = keys.get((rule["resource"], rule["apiVersion"]))
        if key is not None and (objects.of_kind(key) or key not in granted):
            selected_objects.setdefault(key, {}).update(_selected(rule, _candidates(rule, key, objects)))
    return selected_objects


def related_keys(kind: AnyKind) -> Mapping[tuple[str, str], str]:
    """Metacontroller's keys of the kinds that a customize answer may ask for, by resource and API version."""
    return _keys(kind.hooks.related)


@cache
def _keys(type_: type[msgspec.Struct]) -> Mapping[tuple[str, str], str]:
    types = {info.encode_name: type_of(info.encode_name) for info in msgspec.structs.fields(type_)}
    return {(plural(kind), api_version): key for key, (api_version, kind) in types.items()}


def _candidates(rule: Json, outer: str, objects: Store) -> Iterable[tuple[str, Json]]:
    """Return the objects that a rule may select: those that it names, or those with the rarest label it requires.

    Those whose labels it excludes, which may be nearly all, are left out.
    """
    names, namespace, held = rule.get("names"), rule.get("namespace"), objects.of_kind(outer)
    if not names or (not namespace and is_namespaced(*type_of(outer))):
        selector = rule.get("labelSelector") or {}
        labels = selector.get("matchLabels") or {}
        groups = [objects.labelled(outer, label, value) for label, value in labels.items()]
        found = min(groups, key=len, default=held)
        for expression in selector.get("matchExpressions") or ():
            for value in expression.get("values") or () if expression["operator"] == "NotIn" else ():
                excluded = objects.labelled(outer, expression["key"], value)
                found = {key: document for key, document in found.items() if key not in excluded}
        return found.items()
    keys = [key for name in names for key in (f"{namespace}/{name}", name) if key in held]
    return [(key, held[key]) for key in keys]


def _selected(rule: Json, candidates: Iterable[tuple[str, Json]]) -> Iterator[tuple[str, Json]]:
    names, namespace, selector = rule.get("names"), rule.get("namespace"), rule.get("labelSelector") or {}
    required = (selector.get("matchLabels") or {}).items()
    expressions = selector.get("matchExpressions") or ()
    for inner, document in candidates:
        metadata = document["metadata"]
        labels = metadata.get("labels") or {}
        if namespace and metadata.get("namespace") != namespace:
            continue
        if names:
            selects = metadata["name"] in names
        else:
            selects = required <= labels.items() and all(_matches(labels, expression) for expression in expressions)
        if selects:
            yield inner, document


def _matches(labels: dict[str, str], expression: Json) -> bool:
    key, operator, values = expression["key"], expression["operator"], expression.get("values") or []
    return {
        "In": labels.get(key) in values,
        "NotIn": labels.get(key) not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }[operator]
