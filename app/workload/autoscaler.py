"""The problems of a HorizontalPodAutoscaler, from its conditions, with advice on what to install."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from app.kube.conditions import Condition, find
from app.kube.objects import ObservedAutoscaler
from app.workload.cause import Cause, Stage, one_line, reason_word
from app.workload.waiting import timed_out

CONDITIONS = ("AbleToScale", "ScalingActive")
"""The conditions that are false if an autoscaler does not work."""
_AT_ZERO = "ScalingDisabled"
"""Reason of an autoscaler whose target has no replicas, which is not a failure."""
_ADAPTER = "install Prometheus and the kustomize component prometheus-adapter"
_METRICS_SERVER = "CPU and memory need metrics-server: install it"
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


@dataclass(frozen=True, slots=True)
class ScalingState:
    """``cause``: why the autoscaler cannot scale. ``recent``: it cannot, but has a minute to recover."""

    cause: Cause | None = None
    recent: bool = False


WORKS = ScalingState()


def scaling_state(observed: ObservedAutoscaler | None, now: datetime) -> ScalingState:
    """Judge an observed autoscaler. One that fails for less than a minute may recover."""
    failing = _failing(observed.status.conditions) if observed is not None else None
    if observed is None or failing is None:
        return WORKS
    if failing.last_transition_time and not timed_out(failing.last_transition_time, now):
        return ScalingState(recent=True)
    message = with_hint(one_line(failing.message), failing.reason)
    text = f"HorizontalPodAutoscaler {observed.metadata.name} cannot scale: {message}"
    return ScalingState(Cause(Stage.PROBE, text, reason_word(failing.reason, "AutoscalerFailed")))


def _failing(conditions: Iterable[Condition] | None) -> Condition | None:
    matches = (find(conditions, type_) for type_ in CONDITIONS)
    return next((c for c in matches if c is not None and c.status == "False" and c.reason != _AT_ZERO), None)
