"""Warnings of what decides on which nodes pods run, that Kubernetes accepts and that no node or pod suits."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

from app.kube import field
from app.kube.field import Advice, advice, name_meant, with_hint
from app.kube.quantity import integer
from app.kube.spelling import closest_name
from app.limits import MAX_UNKNOWN_NAMES
from app.workload.fit.gpumodels import LOWER_CASE_LABELS, MEMORY_LABELS, NODE_LABELS
from app.workload.rules.fieldrules import Json

_VALUES = {
    "kubernetes.io/arch": ("386", "amd64", "arm", "arm64", "ppc64le", "riscv64", "s390x"),
    "kubernetes.io/os": ("linux", "windows"),
}
"""The values of labels that the kubelet sets, as Go names them."""
_NUMBERS = {**dict.fromkeys(MEMORY_LABELS, " of MiB"), "nvidia.com/gpu.count": ""}
_LABELS = (
    *NODE_LABELS,
    *("cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup"),
    *("karpenter.sh/nodepool", "kubernetes.azure.com/agentpool", "node.kubernetes.io/instance-type"),
    *_VALUES,
    "kubernetes.io/hostname",
    *("nvidia.com/gpu.count", "nvidia.com/gpu.present"),
    *("topology.kubernetes.io/region", "topology.kubernetes.io/zone"),
)
_REQUIRED, _PREFERRED = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))


def selector_warnings(selector: Mapping[str, object], path: field.Path) -> Iterator[Advice]:
    """Warn of misspelt names of labels that many nodes have, and of values that no node has."""
    for key, value in islice(selector.items(), MAX_UNKNOWN_NAMES):
        yield from _value_warnings(key, value, path.key(key))
        yield from _key_warnings(key, path.key(key))


def _key_warnings(key: str, path: field.Path) -> Iterator[Advice]:
    """Warn of a misspelt label of nodes (LK-V-K39)."""
    if key not in _LABELS and (suggestion := closest_name(key, _LABELS)):
        yield advice(path, with_hint("no known node label has this name", name_meant(suggestion)))


def _value_warnings(key: str, value: object, path: field.Path) -> Iterator[Advice]:
    """Warn of a value that no node has for a label."""
    if not isinstance(value, str) or "{{" in value:
        return
    form = ""
    if key in _VALUES and value not in _VALUES[key]:
        form = f"one of {', '.join(_VALUES[key])}"
    elif key in _NUMBERS and integer(value) is None:
        form = f"a number{_NUMBERS[key]}"
    elif key in LOWER_CASE_LABELS and value != value.lower():
        form = "in lower case"
    if form:
        yield advice(path, f"no node has {field.go_quote(value)} as the value of this label: it is {form}")


def affinity_warnings(affinity: Json, path: field.Path, *, is_whole: bool = True) -> Iterator[Advice]:
    """Warn of labels of nodes, and of terms that match nothing. ``is_whole``: nothing else is merged with it."""
    nodes, place = affinity.get("nodeAffinity") or {}, path.child("nodeAffinity")
    required = place.child(_REQUIRED, "nodeSelectorTerms").each(
        (nodes.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    )
    preferred = place.child(_PREFERRED).each(nodes.get(_PREFERRED) or ())
    terms = ((where.child("preference"), (item or {}).get("preference")) for where, item in preferred)
    requirements = chain.from_iterable(
        where.child("matchExpressions").each((term or {}).get("matchExpressions") or ())
        for where, term in chain(required, terms)
    )
    for at, item in islice(requirements, MAX_UNKNOWN_NAMES):
        yield from _requirement_warnings(item or {}, at)
    for kind in ("podAffinity", "podAntiAffinity") if is_whole else ():
        pods, place = affinity.get(kind) or {}, path.child(kind)
        weighted = place.child(_PREFERRED).each(pods.get(_PREFERRED) or ())
        named = ((where.child("podAffinityTerm"), (item or {}).get("podAffinityTerm")) for where, item in weighted)
        for where, term in chain(place.child(_REQUIRED).each(pods.get(_REQUIRED) or ()), named):
            if term and term.get("labelSelector") is None:
                yield advice(where, "matches no pod without labelSelector; select pods by their labels")


def _requirement_warnings(item: Json, path: field.Path) -> Iterator[Advice]:
    """Warn of a label that no node has, or that no node has with any of the values."""
    key, values = item.get("key") or "", item.get("values") or ()
    yield from _key_warnings(key, path.child("key"))
    problems = [
        problem for at, value in path.child("values").each(values) for problem in _value_warnings(key, value, at)
    ]
    yield from problems if len(problems) == len(values) and item.get("operator") == "In" else ()


def spread_warnings(
    constraints: Sequence[Json], path: field.Path, labels: Mapping[str, str], where_to_add: str
) -> Iterator[Advice]:
    """Warn of constraints that do not count the pods they are set on, whose ``labels`` have no domain if not named."""
    for where, constraint in path.each(constraints):
        selector = (constraint or {}).get("labelSelector")
        if constraint and selector is None:
            yield advice(
                where, "has no effect without labelSelector, which selects the pods that it counts", "no-effect"
            )
        for key, value in ((selector or {}).get("matchLabels") or {}).items():
            if labels.get(key) == value or "{{" in str(value) or (key not in labels and "/" in key):
                continue
            message = "no pod of this workload has this label, so that they are not spread; "
            has = f"its pods have {field.go_quote(labels[key])}" if key in labels else f"add it to {where_to_add}"
            yield advice(where.child("labelSelector", "matchLabels").key(key), message + has)
