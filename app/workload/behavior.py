"""Rules for the ``behavior`` of a HorizontalPodAutoscaler, and its stored form. Source: LZ-N23, KS-A12."""

from collections.abc import Iterator

from app.kube import field, quantity, stored
from app.kube.base import Json

_SELECT_POLICIES = ("Max", "Min", "Disabled")
_POLICIES = ("Pods", "Percent")
MAX_WINDOW, MAX_PERIOD = 3600, 1800
"""Maximum stabilization window and maximum period of a policy, in seconds."""


def check_behavior(behavior: Json | None, path: field.Path) -> Iterator[field.Error]:
    """Return the errors that the API server would find only when the autoscaler is created, after admission."""
    for way in ("scaleUp", "scaleDown"):
        rules = (behavior or {}).get(way)
        if isinstance(rules, dict):
            yield from _check_rules(rules, path.child(way))


def _check_rules(rules: Json, path: field.Path) -> Iterator[field.Error]:
    window, select, tolerance = (rules.get(key) for key in ("stabilizationWindowSeconds", "selectPolicy", "tolerance"))
    if window is not None and not 0 <= window <= MAX_WINDOW:
        yield field.invalid(path.child("stabilizationWindowSeconds"), window, f"must be between 0 and {MAX_WINDOW}")
    if select is not None and select not in _SELECT_POLICIES:
        yield field.not_supported(path.child("selectPolicy"), select, _SELECT_POLICIES)
    if str(quantity.canonical_value(tolerance)).startswith("-"):
        yield field.invalid(path.child("tolerance"), tolerance, "must be 0 or more")
    for policy_path, policy in path.child("policies").each(rules.get("policies") or ()):
        if policy:
            yield from _check_policy(policy, policy_path)


def _check_policy(policy: Json, path: field.Path) -> Iterator[field.Error]:
    kind, value, period = (policy.get(key) for key in ("type", "value", "periodSeconds"))
    if kind not in _POLICIES:
        yield field.not_supported(path.child("type"), kind, _POLICIES)
    if value is not None and value <= 0:
        yield field.invalid(path.child("value"), value, "must be above 0")
    if period is not None and not 0 < period <= MAX_PERIOD:
        yield field.invalid(path.child("periodSeconds"), period, f"must be between 1 and {MAX_PERIOD}")


def stored_behavior(behavior: Json | None) -> Json | None:
    """Return the behavior as the API server stores it. An empty one means the defaults and is sent unchanged."""
    if behavior is None:
        return None
    return {way: _stored_rules(rules) for way, rules in behavior.items() if rules is not None}


def _stored_rules(rules: object) -> object:
    result = stored.clean(rules)
    if isinstance(result, dict) and "tolerance" in result:
        result["tolerance"] = quantity.canonical_value(result["tolerance"])
    return result
