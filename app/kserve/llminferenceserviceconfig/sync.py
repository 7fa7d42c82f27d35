"""The sync hook of a config, which only has a status: whether its templates render. Source: KS-1.1."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.hooks.protocol import NoObjects, SyncRequest, SyncResponse
from app.kserve.llminferenceserviceconfig.types import LLMInferenceServiceConfigSpec, LLMInferenceServiceConfigStatus
from app.kube import field
from app.kube.conditions import Conditions
from app.kube.resource import Resource
from app.settings import Settings

Config = Resource[LLMInferenceServiceConfigSpec, LLMInferenceServiceConfigStatus]

READY = "Ready"
INVALID_SPEC = "InvalidSpec"
"""The spec breaks a rule, or one of its templates does not render."""
RENDERED = "Rendered"
"""Every template renders for a sample service."""


def sync(config: Config, request: SyncRequest[NoObjects, NoObjects], settings: Settings, now: datetime) -> SyncResponse:
    """A valid config is ready: whoever calls has validated it, templates included."""
    return SyncResponse(
        _status(config.metadata.generation, config.status, now, ok=True, reason=RENDERED, message=""), []
    )


def invalid(
    config: Resource[LLMInferenceServiceConfigSpec | None, LLMInferenceServiceConfigStatus],
    errors: Sequence[field.Error],
    now: datetime,
) -> LLMInferenceServiceConfigStatus:
    """The status of a config that breaks a rule."""
    return _status(
        config.metadata.generation, config.status, now, ok=False, reason=INVALID_SPEC, message=field.aggregate(errors)
    )


def _status(
    generation: int | None,
    previous: LLMInferenceServiceConfigStatus,
    now: datetime,
    *,
    ok: bool,
    reason: str,
    message: str,
) -> LLMInferenceServiceConfigStatus:
    conditions = Conditions(previous.conditions, generation, now)
    conditions.set(READY, ok, reason, message)
    return LLMInferenceServiceConfigStatus(conditions=conditions.list(), observed_generation=generation)
