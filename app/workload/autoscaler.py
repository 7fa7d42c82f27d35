"""A HorizontalPodAutoscaler: its metrics, the rules for its ``behavior`` (LZ-N23, KS-A12), and its problems.

Metacontroller replaces the list of metrics as a whole, so each one is complete and has canonical quantities (MC-3.2).
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from app.kube import quantity
from app.kube.base import Json
from app.kube.conditions import Condition, find
from app.kube.objects import ObservedAutoscaler
from app.kube.reading import stored
from app.kube.regex import regex
from app.workload.engines import metrics
from app.workload.engines.engine import Engine
from app.workload.readiness.cause import Cause, Stage, reason_word, steady
from app.workload.readiness.waiting import timed_out
from app.workload.rules.fieldrules import each, matching, members, one_of


def pods_metric(name: str, average: str) -> Json:
    """Build a metric of type Pods, with its target average per pod."""
    target = {"type": "AverageValue", "averageValue": quantity.canonical(average)}
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": target}}


def resource_metric(name: str, utilization: int) -> Json:
    """Build a metric of CPU or memory, with its target average in percent of the request."""
    target = {"type": "Utilization", "averageUtilization": utilization}
    return {"type": "Resource", "resource": {"name": name, "target": target}}


_EXPRESSION = regex(r"[][(){}\s\"]")


def metric_problem(name: str, engine: Engine | None, value: str = "", arguments: Iterable[str] | None = None) -> str:
    """Return why a metric of pods has no value, or never reaches its target; empty if it may.

    ``engine``: what the pods run, if known; ``value``: the target; ``arguments``: the server's options, if known.
    """
    if name in ("cpu", "memory"):
        return f"{name} is a metric of type Resource"
    if _EXPRESSION.search(name):
        return "an expression, not the name of a metric; let the metrics adapter compute it, and write its name"
    if engine is None:
        return ""
    return metrics.metric_problem(name, value, engine, arguments) or engine.metric_problem(name)


_POLICY = members(
    type=one_of("Pods", "Percent", empty=False),
    value=matching(lambda value: value > 0, "must be above 0"),
    periodSeconds=matching(lambda seconds: 0 < seconds <= 1800, "must be between 1 and 1800"),
)
_WAY = members(
    stabilizationWindowSeconds=matching(lambda seconds: 0 <= seconds <= 3600, "must be between 0 and 3600"),
    selectPolicy=one_of("Max", "Min", "Disabled", empty=False),
    tolerance=matching(lambda share: not str(quantity.canonical_value(share)).startswith("-"), "must be 0 or more"),
    policies=each(_POLICY),
)
check_behavior = members(scaleUp=_WAY, scaleDown=_WAY)
"""Finds the errors that the API server would find only when the autoscaler is created, after admission."""


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


# Problems, from its conditions, with advice on what to install.

CONDITIONS = ("AbleToScale", "ScalingActive")
"""The conditions that are false if an autoscaler does not work."""
_AT_ZERO = "ScalingDisabled"
"""Reason of an autoscaler whose target has no replicas, which is not a failure."""
_ADAPTER = "the metric needs Prometheus and the kustomize component prometheus-adapter"
_METRICS_SERVER = "CPU and memory need metrics-server"
_INSTALL = {
    "FailedGetResourceMetric": _METRICS_SERVER,
    "FailedGetContainerResourceMetric": _METRICS_SERVER,
    "FailedGetPodsMetric": _ADAPTER,
    "FailedGetObjectMetric": _ADAPTER,
    "FailedGetExternalMetric": _ADAPTER,
}
"""Advice by the reason of ``ScalingActive``."""


def with_hint(message: str, reason: str) -> str:
    return "; ".join(filter(None, (message, _INSTALL.get(reason))))


class ScalingState(msgspec.Struct, frozen=True):
    """``cause``: why the autoscaler cannot scale. ``recent``: it cannot, but has a minute to recover.

    ``idle``: it has no value, as is usual for a server that has had no request. The number of pods is right then.
    """

    cause: Cause | None = None
    recent: bool = False
    idle: str = ""


WORKS = ScalingState()


def scaling_state(observed: ObservedAutoscaler | None, now: datetime) -> ScalingState:
    """Judge an observed autoscaler. One that fails for less than a minute may recover."""
    failing = _failing(observed.status.conditions) if observed is not None else None
    if observed is None or failing is None:
        return WORKS
    if failing.reason == "FailedGetPodsMetric" and (name := metrics.late_metric(failing.message)):
        text = f"HorizontalPodAutoscaler {observed.metadata.name} has no value of {name} yet"
        return ScalingState(idle=f"{text}: each server shows it from its first request on")
    if failing.last_transition_time and not timed_out(failing.last_transition_time, now):
        return ScalingState(recent=True)
    message = with_hint(steady(failing.message), failing.reason)
    text = f"HorizontalPodAutoscaler {observed.metadata.name} cannot scale: {message}"
    return ScalingState(Cause(Stage.PROBE, text, reason_word(failing.reason, "AutoscalerFailed")))


def _failing(conditions: Iterable[Condition] | None) -> Condition | None:
    matches = (find(conditions, type_) for type_ in CONDITIONS)
    return next((c for c in matches if c is not None and c.status == "False" and c.reason != _AT_ZERO), None)
