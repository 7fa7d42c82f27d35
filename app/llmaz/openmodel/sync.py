"""The sync hook of OpenModel: a kind without children, so all there is is its status."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.hooks.protocol import NoObjects, SyncRequest, SyncResponse
from app.kube import field
from app.kube.resource import Resource
from app.llmaz.openmodel import status
from app.llmaz.openmodel.types import OpenModelSpec, OpenModelStatus
from app.llmaz.openmodel.validation import OpenModel
from app.settings import Settings


def sync(
    model: OpenModel, request: SyncRequest[NoObjects, NoObjects], settings: Settings, now: datetime
) -> SyncResponse:
    return SyncResponse(status=status.judged(model.status.conditions, (), now), children=[])


def invalid(
    model: Resource[OpenModelSpec | None, OpenModelStatus],
    errors: Sequence[field.Error],
    now: datetime,
) -> OpenModelStatus:
    return status.judged(model.status.conditions, errors, now)
