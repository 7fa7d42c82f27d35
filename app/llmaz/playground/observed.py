"""The objects a Playground's hooks deal with, and the rules that ask for them. Source: LZ-10."""

from __future__ import annotations

from typing import Any

import msgspec

from app.hooks.protocol import ByName, RelatedResource, RelatedRule, SyncRequest, specs
from app.kube.objects import ConditionsStatus, ObservedAutoscaler, ObservedWorkload, RelatedMeta, ReplicasSpec
from app.kube.stored import Decoder
from app.llmaz.names import DEFAULT_BACKEND, INFERENCE_API, MODEL_API, skips_loader
from app.llmaz.playground.types import Playground, models
from app.settings import Settings


class ServiceStatus(ConditionsStatus):
    """Status of an inference Service."""

    observed_generation: int | None = None
    replicas: int = 0
    selector: str = ""


class ObservedService(ObservedWorkload):
    status: ServiceStatus = msgspec.field(default_factory=ServiceStatus)

    def __post_init__(self) -> None:
        self.spec = _SERVICE_SPEC.decode(self.raw_spec)


_SERVICE_SPEC: Decoder[ReplicasSpec] = Decoder(ReplicasSpec)


class Children(msgspec.Struct):
    """Observed children; ``None`` for a kind that is not declared."""

    services: ByName[ObservedService] = msgspec.field(name=f"Service.{INFERENCE_API}", default=None)
    autoscalers: ByName[ObservedAutoscaler] = msgspec.field(name="HorizontalPodAutoscaler.autoscaling/v2", default=None)


class Related(msgspec.Struct):
    """Related objects, as the customize hook requests them."""

    models: ByName[RelatedResource] = msgspec.field(name=f"OpenModel.{MODEL_API}", default=None)
    runtimes: ByName[RelatedResource] = msgspec.field(name=f"BackendRuntime.{INFERENCE_API}", default=None)
    services: ByName[RelatedMeta] = msgspec.field(name=f"Service.{INFERENCE_API}", default=None)


Request = SyncRequest[Children, Related]


def template_inputs(_playground: Playground, request: Request, _settings: Settings) -> dict[str, Any]:
    """The models, the runtimes, and who loads models."""
    related, metadata = request.related or Related(), request.parent.metadata
    return {
        "models": specs(related.models),
        "runtimes": specs(related.runtimes),
        "skipsLoader": skips_loader(metadata),
    }


def customize(playground: Playground, declared: frozenset[str], settings: Settings) -> list[RelatedRule]:
    """Request its models, its runtime, and a Service of its name, each by name."""
    spec, metadata = playground.spec, playground.metadata
    config = spec.backend_runtime_config
    backend = DEFAULT_BACKEND if config is None else config.backend_name
    claimed = tuple(dict.fromkeys(model.name for model in models(spec).models or () if model.name))
    rules = [RelatedRule(MODEL_API, "openmodels", names=claimed)] if claimed else []
    if backend:
        rules.append(RelatedRule(INFERENCE_API, "backendruntimes", names=(backend,)))
    rules.append(RelatedRule(INFERENCE_API, "services", namespace=metadata.namespace, names=(metadata.name,)))
    return rules
