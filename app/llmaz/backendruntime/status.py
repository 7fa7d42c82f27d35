"""Whether the object can be used."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.kube import field
from app.kube.conditions import Condition
from app.llmaz.backendruntime.types import BackendRuntimeStatus
from app.llmaz.judgement import validity

_USABLE = "Playgrounds can use the runtime by its name"


def judged(previous: Sequence[Condition], errors: Sequence[field.Error], now: datetime) -> BackendRuntimeStatus:
    """``Ready``: true without errors, otherwise false with all of them."""
    return BackendRuntimeStatus(conditions=validity(previous, errors, now, _USABLE))
