"""Whether an OpenModel can be used: its own validity, nothing else. Who uses it tells so in its own status."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.kube import field
from app.kube.conditions import Condition, Conditions
from app.llmaz.openmodel.types import ConditionType, OpenModelStatus, Reason


def valid(previous: Sequence[Condition], now: datetime) -> OpenModelStatus:
    conditions = Conditions(previous, None, now)
    conditions.set(ConditionType.READY, True, Reason.VALID, "workloads can claim the model by its name")
    return OpenModelStatus(conditions=conditions.list())


def invalid(previous: Sequence[Condition], errors: Sequence[field.Error], now: datetime) -> OpenModelStatus:
    conditions = Conditions(previous, None, now)
    conditions.set(ConditionType.READY, False, Reason.INVALID_SPEC, field.aggregate(errors))
    return OpenModelStatus(conditions=conditions.list())
