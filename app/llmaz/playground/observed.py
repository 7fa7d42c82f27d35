"""The typed request of a Playground, and the rules of its related objects. Source: LZ-10."""

import msgspec

from app.hooks.protocol import ByName, RelatedResource, RelatedRule, SyncRequest, objects_of, specs
from app.kube.base import Json
from app.kube.objects import ConditionsStatus, ObservedAutoscaler, ObservedWorkload, RelatedMeta, ReplicasSpec
from app.kube.stored import Decoder
from app.llmaz.names import INFERENCE_API, MODEL_API, skips_loader
from app.llmaz.playground.types import Playground
from app.settings import Settings

_SERVICE_SPEC: Decoder[ReplicasSpec] = Decoder(ReplicasSpec)


class ObservedServiceStatus(ConditionsStatus):
    observed_generation: int | None = None
    replicas: int = 0
    selector: str = ""


class ObservedInferenceService(ObservedWorkload):
    status: ObservedServiceStatus = msgspec.field(default_factory=ObservedServiceStatus)

    def __post_init__(self) -> None:
        self.spec = _SERVICE_SPEC.decode(self.raw_spec)


class PlaygroundChildren(msgspec.Struct):
    services: ByName[ObservedInferenceService] = objects_of(f"Service.{INFERENCE_API}")
    autoscalers: ByName[ObservedAutoscaler] = objects_of("HorizontalPodAutoscaler.autoscaling/v2")


class PlaygroundRelated(msgspec.Struct):
    models: ByName[RelatedResource] = objects_of(f"OpenModel.{MODEL_API}")
    runtimes: ByName[RelatedResource] = objects_of(f"BackendRuntime.{INFERENCE_API}")
    services: ByName[RelatedMeta] = objects_of(f"Service.{INFERENCE_API}")


Request = SyncRequest[PlaygroundChildren, PlaygroundRelated]


def template_inputs(request: Request) -> Json:
    related, metadata = request.related, request.parent.metadata
    return {"models": specs(related.models), "runtimes": specs(related.runtimes), "skipsLoader": skips_loader(metadata)}


def customize(playground: Playground, declared: frozenset[str], settings: Settings) -> list[RelatedRule]:
    spec, metadata = playground.spec, playground.metadata
    return [
        *RelatedRule.by_name(MODEL_API, "openmodels", *(model.name for model in spec.claims.models or ())),
        *RelatedRule.by_name(INFERENCE_API, "backendruntimes", spec.backend_config.backend_name),
        *RelatedRule.by_name(INFERENCE_API, "services", metadata.name, namespace=metadata.namespace),
    ]
