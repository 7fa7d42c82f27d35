"""Results of the phases of a sync: children, and one state for each condition. Source: KS-9.4.

A sync goes through settings, merge, workloads and router. A phase that fails keeps the observed children of this and
later phases, and leaves their conditions as they were.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from app.kserve.llminferenceservice.types import (
    TOP_LEVEL,
    AppliedConfig,
    KServeCondition,
    Router,
    ServiceAddress,
    Workloads,
)
from app.kube.base import Json
from app.kube.conditions import Condition, Ledger
from app.workload.readiness.cause import Cause, Stage, steady
from app.workload.readiness.rollout import Rollout, rolling_out
from app.workload.readiness.waiting import NOTHING, Outstanding


class ConditionState(msgspec.Struct, frozen=True):
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
    return ConditionState(False, reason, message, stage)


def by_condition(condition: Condition) -> ConditionState:
    """Return the state for a condition of an observed object that is not true."""
    message = steady(condition.message) or f"its condition {condition.type} is not true"
    return fails(condition.reason or "NotReady", message)


def progress_causes(state: ConditionState, kind: str, name: str, progress: Rollout) -> list[Cause]:
    """Return the numbers of replicas of a workload whose state does not have them."""
    return [] if state.ok or state.stage is not Stage.STARTING else [rolling_out(kind, name, progress)]


class PhaseError(Exception):
    """A phase cannot go on: the condition to blame, and its state."""

    def __init__(self, condition: str, reason: str, message: str, stage: Stage = Stage.SPEC) -> None:
        super().__init__(message)
        self.condition = condition
        self.state = fails(reason, message, stage)


class PhaseResult(msgspec.Struct):
    """A phase: model servers and their Service, or endpoint picker, pool and route. Its steps add to it."""

    children: list[Json] = msgspec.field(default_factory=list)
    states: dict[str, ConditionState | None] = msgspec.field(default_factory=dict)
    """By condition type; ``None`` removes a condition, and one that is not among them stays as it was."""
    causes: list[Cause] = msgspec.field(default_factory=list)
    """Why pods are not ready, for ``Ready``'s message."""
    progress: list[Cause] = msgspec.field(default_factory=list)
    """Replica counts of workloads that are not ready, for that message where ``causes`` is empty."""
    counted: list[str] = msgspec.field(default_factory=list)
    """Counts of ready replicas, of workloads that should have several."""
    failed: bool = False
    """The phase stopped: observed children of this phase and later ones are kept."""


class RouterResult(PhaseResult):
    url: str = ""
    addresses: list[ServiceAddress] | None = None
    """``None``: they and ``url`` stay as they were."""
    parts: Router | None = None
    """``status.router``; it counts unless the phase failed."""


class Outcome(msgspec.Struct, frozen=True):
    """Inputs of the status of one sync (:func:`app.kserve.llminferenceservice.status.status`).

    None is a phase that was not reached: its conditions do not change, and are ``Unknown`` on a new object.
    """

    pins: Mapping[str, str]
    presets: ConditionState | None
    """``PresetsCombined``."""
    workloads: PhaseResult | None
    router: RouterResult | None
    error: ConditionState | None = None
    """Why ``Ready`` is false in any phase: an invalid spec, settings that cannot be read, or a deletion."""
    counts: Sequence[str] = ()
    """Counts of ready replicas, where no phase reports them."""
    stopped: bool = False
    outstanding: Outstanding = NOTHING
    """Children that the answer asks for and that are not there, or not as it wants them."""
    applied: Sequence[AppliedConfig] = ()
    """Configs of the effective spec; none where it could not be combined."""
    parts: Workloads | None = None
    """``status.workloads``; ``None``: it stays as it was."""
    features: ConditionState | None = None
    """``FeaturesApplied``, if something has no effect; it counts only where the router phase was reached."""


class ConditionLedger(Ledger[KServeCondition]):
    """Conditions as KServe writes them: a true one has neither reason nor message, unless it is bad news."""

    def set(self, type_: str, state: ConditionState | None) -> None:
        """Set a condition; ``None`` means unknown."""
        word = "Unknown" if state is None else "True" if state.ok else "False"
        self._items[type_] = KServeCondition(
            type=type_,
            status=word,
            severity="" if type_ in TOP_LEVEL else "Info",
            reason=state.reason if state is not None else "",
            message=state.message if state is not None else "",
            last_transition_time=self.time_of(type_, word),
        )

    def set_unknown(self, type_: str) -> None:
        """Set a condition to unknown if it does not exist yet."""
        if type_ not in self._items:
            self.set(type_, None)

    def first_false(self, types: Iterable[str]) -> ConditionState:
        """Return the first false condition, else a true one; absent conditions count as true."""
        return next((state for type_ in types if (state := self.false(type_)) is not None), CONDITION_TRUE)

    def false(self, type_: str) -> ConditionState | None:
        condition = self._items.get(type_)
        if condition is None or condition.status != "False":
            return None
        return fails(condition.reason, condition.message)

    def conditions(self) -> list[KServeCondition]:
        return [self._items[type_] for type_ in sorted(self._items)]
