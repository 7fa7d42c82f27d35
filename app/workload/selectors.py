"""Rules for what chooses nodes and pods: affinity, topology spread, label selectors.

As in :mod:`app.workload.podrules`, types were checked before, and ``null`` counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from app.kube import field
from app.kube.names import key_problem
from app.workload.podrules import Json, node_selector

_SETS = ("In", "NotIn")
_EXISTENCE = ("Exists", "DoesNotExist")
_COMPARISONS = ("Gt", "Lt")


def affinity(value: Json, path: field.Path) -> Iterator[field.Error]:
    """Of nodes and of pods, required and preferred."""
    nodes, here = value.get("nodeAffinity") or {}, path.child("nodeAffinity")
    required, place = nodes.get(_REQUIRED) or {}, here.child(_REQUIRED, "nodeSelectorTerms")
    for position, term in enumerate(required.get("nodeSelectorTerms") or ()):
        yield from _node_term(term or {}, place.index(position))
    for position, preferred in enumerate(nodes.get(_PREFERRED) or ()):
        place = here.child(_PREFERRED).index(position)
        yield from _weight(preferred or {}, place)
        yield from _node_term((preferred or {}).get("preference") or {}, place.child("preference"))
    for name in ("podAffinity", "podAntiAffinity"):
        pods, here = value.get(name) or {}, path.child(name)
        for position, term in enumerate(pods.get(_REQUIRED) or ()):
            yield from _pod_term(term or {}, here.child(_REQUIRED).index(position))
        for position, preferred in enumerate(pods.get(_PREFERRED) or ()):
            place = here.child(_PREFERRED).index(position)
            yield from _weight(preferred or {}, place)
            yield from _pod_term((preferred or {}).get("podAffinityTerm") or {}, place.child("podAffinityTerm"))


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _weight(preferred: Json, path: field.Path) -> Iterator[field.Error]:
    weight = preferred.get("weight")
    if weight is not None and not 1 <= weight <= 100:
        yield field.invalid(path.child("weight"), weight, "must be between 1 and 100, inclusive")


def _node_term(term: Json, path: field.Path) -> Iterator[field.Error]:
    expressions = term.get("matchExpressions") or ()
    yield from _expressions(expressions, path.child("matchExpressions"), (*_SETS, *_EXISTENCE, *_COMPARISONS))


def _pod_term(term: Json, path: field.Path) -> Iterator[field.Error]:
    if not term.get("topologyKey"):
        yield field.required(path.child("topologyKey"), "name the node label that tells places apart")
    yield from label_selector(term.get("labelSelector") or {}, path.child("labelSelector"))


def label_selector(selector: Json, path: field.Path) -> Iterator[field.Error]:
    """Of pods, by their labels."""
    yield from node_selector(selector.get("matchLabels") or {}, path.child("matchLabels"))
    yield from _expressions(
        selector.get("matchExpressions") or (), path.child("matchExpressions"), (*_SETS, *_EXISTENCE)
    )


def _expressions(items: Sequence[Any], path: field.Path, operators: Sequence[str]) -> Iterator[field.Error]:
    for position, item in enumerate(items):
        expression, here = item or {}, path.index(position)
        key, operator = expression.get("key") or "", expression.get("operator") or ""
        values = expression.get("values") or ()
        if problem := key_problem(key):
            yield field.invalid(here.child("key"), key, problem)
        if operator not in operators:
            yield field.not_supported(here.child("operator"), operator, operators)
        elif operator in _SETS and not values:
            yield field.required(here.child("values"), f"operator {operator} needs at least one")
        elif operator in _EXISTENCE and values:
            yield field.forbidden(here.child("values"), f"operator {operator} takes none; remove them")
        elif operator in _COMPARISONS and len(values) != 1:
            yield field.required(here.child("values"), f"operator {operator} needs exactly one, a whole number")


def topology_spread(constraints: Sequence[Any], path: field.Path) -> Iterator[field.Error]:
    """How pods are spread over places."""
    for position, item in enumerate(constraints):
        constraint, here = item or {}, path.index(position)
        skew, otherwise = constraint.get("maxSkew"), constraint.get("whenUnsatisfiable") or ""
        if skew is not None and skew < 1:
            yield field.invalid(here.child("maxSkew"), skew, "must be at least 1")
        if not constraint.get("topologyKey"):
            yield field.required(here.child("topologyKey"), "name the node label that tells places apart")
        if otherwise not in _UNSATISFIABLE:
            yield field.not_supported(here.child("whenUnsatisfiable"), otherwise, _UNSATISFIABLE)
        yield from label_selector(constraint.get("labelSelector") or {}, here.child("labelSelector"))


_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
