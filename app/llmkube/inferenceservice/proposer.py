"""The proposing model of speculative decoding: which Model it is, and when the pods have to wait for it.

Source: llmkube spec appendix B-09. The text of ``speculative.model`` alone does not tell a Model's name from a
repository, so what runs is never changed because a Model of that name is away for a while.
"""

from __future__ import annotations

from typing import Any

from app.hooks.protocol import RelatedResource
from app.kube.names import is_dns1123_subdomain
from app.kube.objects import ObservedDeployment, last_applied
from app.llmkube.inferenceservice import models
from app.llmkube.inferenceservice.storage import Model
from app.llmkube.model.plan import accelerator
from app.llmkube.runtimes.vllm import SPECULATIVE_MODEL
from app.llmkube.source import METAL, SourceClass, parse
from app.workload.cause import Cause, Stage


def hold_up(name: str, related: RelatedResource | None, observed: ObservedDeployment | None) -> Cause | None:
    """Why the children have to stay as they are, ``None`` when nothing is in the way.

    A Model that is not Ready has no file yet where the pods would look for it. One that is gone leaves a running
    service as it is; a new one is made with the text as it was written.
    """
    if not name:
        return None
    if related is None:
        return _gone(name) if is_dns1123_subdomain(name) and _proposed(observed) not in ("", name) else None
    model = models.decode(related)
    if model is not None and not related.metadata.deletion_timestamp and not _is_mounted(model):
        return None
    gate = models.usable(name, related)
    if not isinstance(gate, models.Gate):
        return None
    return Cause(Stage.MODEL, f"the proposing {gate.cause.text}", gate.cause.reason)


def _gone(name: str) -> Cause:
    text = f"the proposing Model {name} does not exist in this namespace; what runs goes on running"
    return Cause(Stage.MODEL, text, "ModelNotFound")


def _is_mounted(model: Model) -> bool:
    """The pods read its file from a volume, so that it has to be there."""
    return accelerator(model.spec) != METAL and parse(model.spec.source).kind is not SourceClass.REPOSITORY


def _proposed(observed: ObservedDeployment | None) -> str:
    """The proposing model that the Deployment was last told, empty where there is none."""
    value: Any = last_applied(observed) if observed is not None else None
    for key in ("spec", "template", "spec", "containers", 0, "args"):
        value = _inside(value, key)
    args = value if isinstance(value, list) else []
    following = args[args.index(SPECULATIVE_MODEL) + 1 :] if SPECULATIVE_MODEL in args else []
    return str(following[0]) if following else ""


def _inside(value: Any, key: str | int) -> Any:
    """An item of a map or a list, ``None`` where there is none: users can write anything into the record."""
    try:
        return value[key]
    except (TypeError, LookupError):
        return None
