"""The sync hook of a config, which only has a status: whether its templates render. Source: KS-1.1."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.hooks.protocol import NoObjects, SyncRequest, SyncResponse
from app.kserve.llminferenceservice.types import ConditionType
from app.kserve.llminferenceserviceconfig.types import (
    LLMInferenceServiceConfigSpec,
    LLMInferenceServiceConfigStatus,
    Reason,
)
from app.kube import field
from app.kube.conditions import Conditions
from app.kube.resource import Resource
from app.settings import Settings

Config = Resource[LLMInferenceServiceConfigSpec, LLMInferenceServiceConfigStatus]


def sync(config: Config, request: SyncRequest[NoObjects, NoObjects], settings: Settings, now: datetime) -> SyncResponse:
    """A valid config is ready: whoever calls has validated it, templates included."""
    return SyncResponse(_status(config.metadata.generation, config.status, now, Reason.RENDERED), [])


def invalid(
    config: Resource[LLMInferenceServiceConfigSpec | None, LLMInferenceServiceConfigStatus],
    errors: Sequence[field.Error],
    now: datetime,
) -> LLMInferenceServiceConfigStatus:
    return _status(config.metadata.generation, config.status, now, Reason.INVALID_SPEC, field.aggregate(errors))


def _status(
    generation: int | None,
    previous: LLMInferenceServiceConfigStatus,
    now: datetime,
    reason: Reason,
    message: str = "",
) -> LLMInferenceServiceConfigStatus:
    conditions = Conditions(previous.conditions, generation, now)
    conditions.set(ConditionType.READY, reason is Reason.RENDERED, reason, message)
    return LLMInferenceServiceConfigStatus(conditions=conditions.list(), observed_generation=generation)
