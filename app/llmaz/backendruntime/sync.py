"""The sync hook of BackendRuntime: a kind without children, so all there is is its status."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.hooks.protocol import NoObjects, SyncRequest, SyncResponse
from app.kube import field
from app.kube.resource import Resource
from app.llmaz.backendruntime import status
from app.llmaz.backendruntime.types import BackendRuntimeSpec, BackendRuntimeStatus
from app.llmaz.backendruntime.validation import BackendRuntime
from app.settings import Settings


def sync(
    runtime: BackendRuntime, request: SyncRequest[NoObjects, NoObjects], settings: Settings, now: datetime
) -> SyncResponse:
    return SyncResponse(status=status.judged(runtime.status.conditions, (), now), children=[])


def invalid(
    runtime: Resource[BackendRuntimeSpec | None, BackendRuntimeStatus],
    errors: Sequence[field.Error],
    now: datetime,
) -> BackendRuntimeStatus:
    return status.judged(runtime.status.conditions, errors, now)
