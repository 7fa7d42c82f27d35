"""Whether a BackendRuntime can be used: its own validity, nothing else. Who uses it tells so in its own status."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.kube import field
from app.kube.conditions import Condition, Conditions
from app.llmaz.backendruntime.types import BackendRuntimeStatus, ConditionType, Reason


def valid(previous: Sequence[Condition], now: datetime) -> BackendRuntimeStatus:
    conditions = Conditions(previous, None, now)
    conditions.set(ConditionType.READY, True, Reason.VALID, "Playgrounds can use the runtime by its name")
    return BackendRuntimeStatus(conditions=conditions.list())


def invalid(previous: Sequence[Condition], errors: Sequence[field.Error], now: datetime) -> BackendRuntimeStatus:
    conditions = Conditions(previous, None, now)
    conditions.set(ConditionType.READY, False, Reason.INVALID_SPEC, field.aggregate(errors))
    return BackendRuntimeStatus(conditions=conditions.list())
