"""What a Playground and the objects it names say that does not fit together: for ``modelhooks validate``.

In the cluster it is the condition ``Ready``. Source: LZ-N14, LZ-N17 to LZ-N19 and LZ-N25.
"""

from __future__ import annotations

from app.hooks.protocol import one
from app.kube.decode import SPEC
from app.llmaz.names import DEFAULT_BACKEND
from app.llmaz.playground.plan import plan
from app.llmaz.playground.related import Related
from app.llmaz.playground.sync import Request
from app.llmaz.playground.types import models
from app.llmaz.playground.validation import CONFIG, Playground
from app.settings import Settings
from app.workload.cause import Cause, Stage


def across(playground: Playground, request: Request, settings: Settings) -> list[str]:
    """Why nothing would be made, or what to know of it; nothing where what it names is not among the objects."""
    related, spec = request.related or Related(), playground.spec
    backend = DEFAULT_BACKEND if spec.backend_runtime_config is None else spec.backend_runtime_config.backend_name
    named = [(related.models, model.name) for model in models(spec).models or ()]
    if any(one(group, name) is None for group, name in [*named, (related.runtimes, backend)]):
        return []
    decided = plan(playground, related)
    if not isinstance(decided, Cause):
        return [f"{SPEC}: {note}" for note in decided.notes]
    path = SPEC.child("modelClaim" if spec.model_claim is not None else "modelClaims")
    return [f"{path if decided.stage is Stage.MODEL else CONFIG}: {decided.text}"]
