"""Whether the object can be used."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.kube import field
from app.kube.conditions import Condition
from app.llmaz.judgement import validity
from app.llmaz.openmodel.types import OpenModelStatus

_USABLE = "workloads can claim the model by its name"


def judged(previous: Sequence[Condition], errors: Sequence[field.Error], now: datetime) -> OpenModelStatus:
    """``Ready``: true without errors, otherwise false with all of them."""
    return OpenModelStatus(conditions=validity(previous, errors, now, _USABLE))
