"""The objects a Playground's hooks deal with, and the rules that ask for them. Source: LZ-10."""

from __future__ import annotations

import msgspec

from app.hooks.protocol import RelatedResource, RelatedRule, SyncRequest
from app.kube.conditions import Condition
from app.kube.objects import Observed, ObservedObject, RelatedMeta, ReplicasSpec
from app.llmaz.names import DEFAULT_BACKEND, INFERENCE_API, MODEL_API
from app.llmaz.playground.types import Playground, models
from app.settings import Settings


class ServiceStatus(Observed):
    """What an inference Service says of itself."""

    observed_generation: int | None = None
    conditions: list[Condition] | None = None
    replicas: int = 0
    selector: str = ""


class ObservedService(ObservedObject):
    """The inference Service of a Playground."""

    spec: ReplicasSpec = msgspec.field(default_factory=ReplicasSpec)
    status: ServiceStatus = msgspec.field(default_factory=ServiceStatus)


class Children(
    msgspec.Struct,
    rename={
        "services": f"Service.{INFERENCE_API}",
        "autoscalers": "HorizontalPodAutoscaler.autoscaling/v2",
    },
):
    """Observed children; ``None`` for a kind that is not declared."""

    services: dict[str, ObservedService] | None = None
    autoscalers: dict[str, ObservedObject] | None = None


class Related(
    msgspec.Struct,
    rename={
        "models": f"OpenModel.{MODEL_API}",
        "runtimes": f"BackendRuntime.{INFERENCE_API}",
        "services": f"Service.{INFERENCE_API}",
    },
):
    """What the customize hook asked for."""

    models: dict[str, RelatedResource] | None = None
    runtimes: dict[str, RelatedResource] | None = None
    services: dict[str, RelatedMeta] | None = None


Request = SyncRequest[Children, Related]


def customize(playground: Playground, declared: frozenset[str], settings: Settings) -> list[RelatedRule]:
    """The models it claims, the runtime it names, and whoever has a Service of its name. Never everything of a kind."""
    spec, metadata = playground.spec, playground.metadata
    config = spec.backend_runtime_config
    backend = DEFAULT_BACKEND if config is None else config.backend_name
    claimed = tuple(dict.fromkeys(model.name for model in models(spec).models or () if model.name))
    rules = [RelatedRule(MODEL_API, "openmodels", names=claimed)] if claimed else []
    if backend:
        rules.append(RelatedRule(INFERENCE_API, "backendruntimes", names=(backend,)))
    rules.append(RelatedRule(INFERENCE_API, "services", namespace=metadata.namespace, names=(metadata.name,)))
    return rules
