"""Rules for where pods go: affinity, and how they spread. What Kubernetes refuses, or never finds a node for.

As in :mod:`app.workload.podrules`, types were checked before, and ``null`` counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.kube import field
from app.kube.names import is_label_value, key_problem
from app.workload.podrules import Json, is_integer

Errors = Iterator[field.Error]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def affinity(value: Json, path: field.Path) -> Errors:
    """LK-V-K28 to LK-V-K30."""
    node = value.get("nodeAffinity") or {}
    here = path.child("nodeAffinity")
    required = node.get(REQUIRED)
    if required is not None:
        terms, place = required.get("nodeSelectorTerms") or (), here.child(REQUIRED, "nodeSelectorTerms")
        if not terms:
            yield field.required(place, "give at least one term")
        for position, term in enumerate(terms):
            yield from _node_term(term or {}, place.index(position))
    for position, preferred in enumerate(node.get(PREFERRED) or ()):
        place = here.child(PREFERRED).index(position)
        yield from _weight(preferred, place)
        yield from _node_term(preferred.get("preference") or {}, place.child("preference"))
    for name in ("podAffinity", "podAntiAffinity"):
        yield from _pod_affinity(value.get(name) or {}, path.child(name))


def _weight(item: Json, path: field.Path) -> Errors:
    if not 1 <= (item.get("weight") or 0) <= 100:
        yield field.invalid(path.child("weight"), item.get("weight") or 0, "must be between 1 and 100, inclusive")


_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def _node_term(term: Json, path: field.Path) -> Errors:
    for position, requirement in enumerate(term.get("matchExpressions") or ()):
        here = path.child("matchExpressions").index(position)
        if problem := key_problem(requirement.get("key") or ""):
            yield field.invalid(here.child("key"), requirement.get("key") or "", problem)
        yield from _values(requirement, here, _NODE_OPERATORS)
    for position, requirement in enumerate(term.get("matchFields") or ()):
        here = path.child("matchFields").index(position)
        if requirement.get("key") != "metadata.name":
            yield field.not_supported(here.child("key"), requirement.get("key") or "", ["metadata.name"])
        if requirement.get("operator") not in ("In", "NotIn"):
            yield field.not_supported(here.child("operator"), requirement.get("operator") or "", ["In", "NotIn"])
        if len(requirement.get("values") or ()) != 1:
            yield field.required(here.child("values"), "must have exactly one value")


def _values(requirement: Json, path: field.Path, operators: Sequence[str]) -> Errors:
    operator, values, here = requirement.get("operator"), requirement.get("values") or (), path.child("values")
    if operator not in operators:
        yield field.not_supported(path.child("operator"), operator or "", operators)
    elif operator in ("Gt", "Lt"):
        if [is_integer(value or "") for value in values] != [True]:
            yield field.invalid(here, list(values), f"must be one integer in quotes with operator {operator}")
    elif operator in ("In", "NotIn"):
        if not values:
            yield field.required(here, f"must have a value with operator {operator}")
        for position, value in enumerate(values):
            if not is_label_value(value or ""):
                yield field.invalid(here.index(position), value, "must be a label value")
    elif values:
        yield field.forbidden(here, f"must be left out with operator {operator}")


def _pod_affinity(value: Json, path: field.Path) -> Errors:
    terms = [
        (term or {}, path.child(REQUIRED).index(position)) for position, term in enumerate(value.get(REQUIRED) or ())
    ]
    for position, preferred in enumerate(value.get(PREFERRED) or ()):
        here = path.child(PREFERRED).index(position)
        yield from _weight(preferred, here)
        terms.append((preferred.get("podAffinityTerm") or {}, here.child("podAffinityTerm")))
    for term, here in terms:
        yield from _topology_key(term, here)
        for name in ("labelSelector", "namespaceSelector"):
            yield from _label_selector(term.get(name) or {}, here.child(name))


def _topology_key(item: Json, path: field.Path) -> Errors:
    key, here = item.get("topologyKey") or "", path.child("topologyKey")
    if not key:
        yield field.required(here, "name a label of the nodes, such as kubernetes.io/hostname")
    elif problem := key_problem(key):
        yield field.invalid(here, key, problem)


def _label_selector(selector: Json, path: field.Path) -> Errors:
    for key, value in (selector.get("matchLabels") or {}).items():
        if problem := key_problem(key):
            yield field.invalid(path.child("matchLabels"), key, problem)
        if not is_label_value(value or ""):
            yield field.invalid(path.child("matchLabels").key(key), value, "must be a label value")
    for position, requirement in enumerate(selector.get("matchExpressions") or ()):
        here = path.child("matchExpressions").index(position)
        if problem := key_problem(requirement.get("key") or ""):
            yield field.invalid(here.child("key"), requirement.get("key") or "", problem)
        yield from _values(requirement, here, _LABEL_OPERATORS)


_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")


def topology_spread(constraints: Sequence[Json], path: field.Path) -> Errors:
    """LK-V-K31."""
    seen = set()
    for position, constraint in enumerate(constraints):
        here = path.index(position)
        yield from _topology_key(constraint, here)
        if (constraint.get("maxSkew") or 0) < 1:
            yield field.invalid(here.child("maxSkew"), constraint.get("maxSkew") or 0, "must be at least 1")
        action = constraint.get("whenUnsatisfiable")
        if action not in _UNSATISFIABLE:
            yield field.not_supported(here.child("whenUnsatisfiable"), action or "", _UNSATISFIABLE)
        pair = (constraint.get("topologyKey"), action)
        if pair in seen:
            detail = "an earlier constraint has the same topologyKey and whenUnsatisfiable"
            yield field.duplicate(here, f"{pair[0]}, {pair[1]}", detail)
        seen.add(pair)
        yield from _domains(constraint, here)
        yield from _label_selector(constraint.get("labelSelector") or {}, here.child("labelSelector"))


def _domains(constraint: Json, path: field.Path) -> Errors:
    least = constraint.get("minDomains")
    if least is not None and least < 1:
        yield field.invalid(path.child("minDomains"), least, "must be at least 1")
    elif least is not None and constraint.get("whenUnsatisfiable") == "ScheduleAnyway":
        yield field.invalid(path.child("minDomains"), least, "may only be set when whenUnsatisfiable is DoNotSchedule")
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if constraint.get(name) not in (None, "Honor", "Ignore"):
            yield field.not_supported(path.child(name), constraint[name], ["Honor", "Ignore"])
    if constraint.get("matchLabelKeys") and constraint.get("labelSelector") is None:
        yield field.forbidden(path.child("matchLabelKeys"), "must be left out without labelSelector")
