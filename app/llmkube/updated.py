"""``status.lastUpdated``: it moves only when something else in the status does (LK-5.6)."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

import msgspec

from app.kube.conditions import rfc3339
from app.llmkube.inferenceservice.types import InferenceServiceStatus
from app.llmkube.model.types import ModelStatus

StatusT = TypeVar("StatusT", ModelStatus, InferenceServiceStatus)


def stamp(status: StatusT, previous: StatusT, now: datetime) -> StatusT:
    """The status with the time of its last change: the previous time when nothing changed, else the present one."""
    unchanged = msgspec.structs.replace(status, last_updated=previous.last_updated)
    if unchanged == previous and previous.last_updated:
        return unchanged
    return msgspec.structs.replace(status, last_updated=rfc3339(now))
