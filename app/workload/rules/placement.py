"""Rules between the fields that decide on which nodes pods run: tolerations, affinity, and how pods spread."""

from collections.abc import Sequence

from app.kube.field import Path, duplicate, forbidden, invalid, not_supported, required
from app.kube.quantity import integer
from app.workload.rules.fieldrules import Errors, Json, Rule, label_key, label_value, one_of

NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
TOLERATION_OPERATORS = ("Exists", "Equal", "Lt", "Gt")
LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def toleration(item: Json, path: Path) -> Errors:
    """Require an operator of a toleration that suits key and value, and an effect that suits its seconds (LK-V-K08)."""
    key, operator, value = item.get("key"), item.get("operator") or "Equal", item.get("value") or ""
    value_path = path.child("value")
    if key:
        yield from label_key(key, path.child("key"))
    if operator != "Exists" and not key and operator in TOLERATION_OPERATORS:
        yield invalid(path.child("operator"), operator, "must be Exists when key is empty")
    if operator == "Exists" and value:
        yield invalid(value_path, value, "must be left out with operator Exists")
    if operator == "Equal":
        yield from label_value(value, value_path)
    if operator in ("Gt", "Lt") and integer(value) is None:
        yield invalid(value_path, value, f"must be an integer in quotes with operator {operator}")
    effect = item.get("effect") or ""
    if item.get("tolerationSeconds") is not None and effect in ("", "NoSchedule", "PreferNoSchedule"):
        yield invalid(path.child("effect"), effect, "must be NoExecute when tolerationSeconds is set")


def requirement(operators: Sequence[str]) -> Rule:
    """Require one of the operators for a label, and values that suit it (LK-V-K28, LK-V-K29)."""

    def check(item: Json, path: Path) -> Errors:
        operator, values, values_path = item.get("operator") or "", item.get("values") or (), path.child("values")
        yield from label_key(item.get("key") or "", path.child("key"))
        if operator not in operators:
            yield not_supported(path.child("operator"), operator, operators)
        elif operator in ("Gt", "Lt"):
            if [integer(value or "") is None for value in values] != [False]:
                yield invalid(values_path, list(values), f"must be one integer in quotes with operator {operator}")
        elif operator in ("In", "NotIn"):
            if not values:
                yield required(values_path, f"must have a value with operator {operator}")
            for position, value in enumerate(values):
                yield from label_value(value or "", values_path.index(position))
        elif values:
            yield forbidden(values_path, f"must be left out with operator {operator}")

    return check


def node_field(item: Json, path: Path) -> Errors:
    """Require the node's name, the only field by which a node can be selected (LK-V-K28)."""
    yield from one_of("metadata.name", empty=False)(item.get("key") or "", path.child("key"))
    yield from one_of("In", "NotIn", empty=False)(item.get("operator") or "", path.child("operator"))
    if len(item.get("values") or ()) != 1:
        yield required(path.child("values"), "must have exactly one value")


def spread(constraint: Json, path: Path) -> Errors:
    """Reject fields of a topology spread without those that they depend on (LK-V-K31)."""
    minimum = constraint.get("minDomains") or 0
    if minimum > 0 and constraint.get("whenUnsatisfiable") == "ScheduleAnyway":
        detail = "may only be set when whenUnsatisfiable is DoNotSchedule"
        yield invalid(path.child("minDomains"), minimum, detail)
    if constraint.get("matchLabelKeys") and constraint.get("labelSelector") is None:
        yield forbidden(path.child("matchLabelKeys"), "must be left out without labelSelector")


def spread_pairs(constraints: Sequence[Json], path: Path) -> Errors:
    """Reject constraints with the same topologyKey and whenUnsatisfiable (LK-V-K31)."""
    pairs = [(item.get("topologyKey"), item.get("whenUnsatisfiable")) for item in constraints if item]
    for position, pair in enumerate(pairs):
        if pair in pairs[:position]:
            detail = "an earlier constraint has the same topologyKey and whenUnsatisfiable"
            yield duplicate(path.index(position), f"{pair[0]}, {pair[1]}", detail)
