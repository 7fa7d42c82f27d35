"""The Model a service names: whether it can be served, and if not, what to say. Source: llmkube spec 3.1 and 5.2."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from app.hooks.protocol import RelatedResource
from app.hooks.reader import read_related
from app.kube.conditions import find
from app.kube.resource import Resource
from app.kube.stored import Decoder
from app.llmkube.inferenceservice.storage import Model
from app.llmkube.inferenceservice.types import Phase
from app.llmkube.model.plan import accelerator
from app.llmkube.model.types import ConditionType, ModelSpec, ModelStatus, Reason
from app.llmkube.model.types import Phase as ModelPhase
from app.llmkube.source import METAL, parse, recorded_key
from app.workload.cause import Cause, Stage

_STATUS: Decoder[ModelStatus] = Decoder(ModelStatus)


@dataclass(frozen=True, slots=True)
class Gate:
    """Why a service has to wait for its Model. Its children stay as they are meanwhile."""

    phase: Phase
    cause: Cause


def decode(related: RelatedResource | None) -> Model | None:
    """The Model, typed; ``None`` when there is none or its spec breaks the schema."""
    if related is None:
        return None
    reading = read_related(related.spec, ModelSpec)
    if reading.spec is None or reading.errors:
        return None
    try:
        status = _STATUS.decode(related.status)
    except msgspec.DecodeError:
        status = ModelStatus()
    return Resource(related.metadata, reading.spec, status)


def usable(name: str, related: RelatedResource | None) -> Model | Gate:
    """The Model when it is Ready, else what keeps the service from using it."""
    if related is None:
        return Gate(Phase.FAILED, Cause(Stage.MODEL, f"Model {name} does not exist in this namespace", "ModelNotFound"))
    if related.metadata.deletion_timestamp:
        return _waits(f"Model {name} is being deleted; what runs goes on running", "ModelTerminating")
    model = decode(related)
    if model is None:
        return _waits(f"Model {name} has an invalid spec", "ModelInvalid")
    if model.status.phase != ModelPhase.READY:
        return _unready(name, model.status)
    if _outdated(model):
        return _waits(f"Model {name} has a new source that is not judged yet", "ModelNotReady")
    return model


def _waits(text: str, reason: str) -> Gate:
    return Gate(Phase.PENDING, Cause(Stage.MODEL, text, reason))


def _unready(name: str, status: ModelStatus) -> Gate:
    """The Model's phase and its own words. Settings that leave it without a claim fail its services too (spec 0.3)."""
    why = find(status.conditions, ConditionType.READY)
    words = why.message if why is not None and why.status != "True" else ""
    text = f"Model {name} is {status.phase or 'new'}" + (f": {words}" if words else ", not Ready")
    hopeless = why is not None and why.reason == Reason.INVALID_SETTINGS
    return Gate(Phase.FAILED if hopeless else Phase.PENDING, Cause(Stage.MODEL, text, "ModelNotReady"))


def _outdated(model: Model) -> bool:
    """The status is about an earlier source or checksum: the file of the present one is not there yet (T-18).

    Only a status that names its generation is distrusted; one of the Go operator does not.
    """
    judged = find(model.status.conditions, ConditionType.READY)
    if judged is None or judged.observed_generation is None or model.metadata.generation is None:
        return False
    known, wanted = model.status.sha256, model.spec.sha256.lower()
    metal = accelerator(model.spec) == METAL
    other_source = model.status.cache_key != recorded_key(parse(model.spec.source), metal=metal)
    other_file = other_source or (known != "" and wanted not in ("", known))
    return other_file and judged.observed_generation < model.metadata.generation
