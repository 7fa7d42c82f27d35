"""What a Service and the models it claims say that does not fit together: for ``modelhooks validate``.

In the cluster it is the condition ``Ready``. Source: LZ-N14 and LZ-N17.
"""

from __future__ import annotations

from app.hooks.protocol import one
from app.kube.decode import SPEC
from app.llmaz.reasons import Obstacle
from app.llmaz.service.plan import plan
from app.llmaz.service.related import Related
from app.llmaz.service.sync import Request
from app.llmaz.service.types import Reason
from app.llmaz.service.validation import Service
from app.settings import Settings
from app.workload.cause import Cause

_OF_THE_CLUSTER = (Reason.LEADER_WORKER_SET_REQUIRED, Obstacle.GLOBAL_CONFIG_INVALID)
"""Why there would be no pods, though nothing is wrong with the files."""


def across(service: Service, request: Request, settings: Settings) -> list[str]:
    """Why nothing would be made, or what to know of it; nothing where a model is not among the objects."""
    related, claims = request.related or Related(), service.spec.model_claims
    if any(one(related.models, model.name) is None for model in (claims.models if claims else None) or ()):
        return []
    decided = plan(service, request.children, related, settings)
    path = SPEC.child("modelClaims")
    if not isinstance(decided, Cause):
        return [f"{path}: {note}" for note in decided.notes]
    return [] if decided.reason in _OF_THE_CLUSTER else [f"{path}: {decided.text}"]
