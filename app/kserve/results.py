"""Results of the phases of a sync: children, and one state for each condition. Source: KS-9.4.

A sync goes through settings, merge, workloads and router. A phase that fails keeps the observed children of this and
later phases, and leaves their conditions as they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.kserve.llminferenceservice.types import Address, AppliedConfig, Router, Workloads
from app.kube.conditions import Condition
from app.workload.cause import Cause, Stage, one_line
from app.workload.waiting import NOTHING, Outstanding


@dataclass(frozen=True, slots=True)
class ConditionState:
    """State of one condition. A true condition has a reason only if it is bad news."""

    ok: bool
    reason: str = ""
    message: str = ""
    stage: Stage = Stage.STARTING
    """Position of its message among the causes in ``Ready``."""

    @property
    def cause(self) -> Cause | None:
        return None if self.ok or not self.message else Cause(self.stage, self.message, self.reason)


CONDITION_TRUE = ConditionState(True)


def fails(reason: str = "", message: str = "", stage: Stage = Stage.STARTING) -> ConditionState:
    """The state of a condition that does not hold."""
    return ConditionState(False, reason, message, stage)


def by_condition(condition: Condition) -> ConditionState:
    """Return the state for a condition of an observed object that is not true."""
    return fails(condition.reason, one_line(condition.message))


@dataclass(frozen=True, slots=True)
class WorkloadResult:
    """The workload phase: model servers and their Service."""

    children: Sequence[Any]
    states: Mapping[str, ConditionState]
    """By condition type; a workload condition that is not among them does not apply and is removed."""
    causes: Sequence[Cause] = ()
    """Why pods are not ready, for ``Ready``'s message."""
    failed: bool = False
    """The phase stopped: observed workload and router children are kept, and conditions not in ``states`` too."""


@dataclass(frozen=True, slots=True)
class RouterResult:
    """The router phase: endpoint picker, pool and route."""

    children: Sequence[Any]
    """With what is kept of the observed ones, where the phase stopped."""
    states: Mapping[str, ConditionState | None]
    """By condition type; ``None`` removes a condition, and one that is not among them stays as it was."""
    url: str = ""
    addresses: Sequence[Address] | None = ()
    """``None``: they and ``url`` stay as they were."""
    parts: Router | None = None
    """``status.router``; it counts unless the phase failed."""
    causes: Sequence[Cause] = ()
    failed: bool = False
    """The phase stopped before its end."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Inputs of the status of one sync (:func:`app.kserve.llminferenceservice.status.status`).

    ``None`` stands for a phase that was not reached: its conditions stay as they were, ``Unknown`` on a new object.
    """

    pins: Mapping[str, str]
    presets: ConditionState | None
    """``PresetsCombined``."""
    workloads: WorkloadResult | None
    router: RouterResult | None
    error: ConditionState | None = None
    """Why ``Ready`` is false before any phase: an invalid spec, or settings that cannot be read."""
    stopped: bool = False
    outstanding: Outstanding = NOTHING
    """Children that the answer asks for and that are not there, or not as it wants them."""
    applied: Sequence[AppliedConfig] = ()
    """Configs of the effective spec; none where it could not be combined."""
    parts: Workloads | None = None
    """``status.workloads``; ``None``: it stays as it was."""
    features: ConditionState | None = None
    """``FeaturesApplied``, if something has no effect; it counts only where the router phase was reached."""
