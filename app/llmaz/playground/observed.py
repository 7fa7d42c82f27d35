"""The typed request of a Playground, and the rules of its related objects. Source: LZ-10."""

import msgspec
from msgspec import Raw

from app.hooks.protocol import ByName, RelatedResource, RelatedRule, SyncRequest, objects_of, specs
from app.kube import objects
from app.kube.base import Json
from app.llmaz.names import INFERENCE_API, MODEL_API, skips_loader
from app.llmaz.playground.types import Playground
from app.settings import Settings


class ObservedServiceStatus(objects.ConditionsStatus):
    observed_generation: int | None = None
    replicas: int = 0
    ready_replicas: int | None = None
    """``None`` in the status of an earlier release."""
    selector: str = ""


class ObservedInferenceServiceSpec(objects.ObservedWorkloadSpec):
    raw_template: msgspec.Raw = msgspec.field(default=objects.ABSENT, name="workloadTemplate")


class ObservedInferenceService(objects.ObservedWorkload):
    spec = objects.decoded("raw_spec", ObservedInferenceServiceSpec)
    status: ObservedServiceStatus = msgspec.field(default_factory=ObservedServiceStatus)


class PlaygroundChildren(msgspec.Struct):
    services: ByName[ObservedInferenceService] = objects_of(f"Service.{INFERENCE_API}")
    autoscalers: ByName[objects.ObservedAutoscaler] = objects_of("HorizontalPodAutoscaler.autoscaling/v2")


class PlaygroundRelated(msgspec.Struct):
    models: ByName[RelatedResource] = objects_of(f"OpenModel.{MODEL_API}")
    runtimes: ByName[RelatedResource] = objects_of(f"BackendRuntime.{INFERENCE_API}")
    services: ByName[objects.RelatedMeta] = objects_of(f"Service.{INFERENCE_API}")


Request = SyncRequest[PlaygroundChildren, PlaygroundRelated]


def template_inputs(request: Request) -> Json:
    related, metadata = request.related, request.parent.metadata
    runtimes = {key: Raw(bytes(spec).replace(_ANSWERED, b"")) for key, spec in specs(related.runtimes).items()}
    return {"models": specs(related.models), "runtimes": runtimes, "skipsLoader": skips_loader(metadata)}


_ANSWERED = b" | grep -E '^vllm:num_requests_(running|waiting)[{ ]'"
"""The addition to the preStop hook of the BackendRuntime vllm since earlier manifests. Pods with the earlier hook
keep it when the manifests are applied."""


def customize(playground: Playground, declared: frozenset[str], settings: Settings) -> list[RelatedRule]:
    spec, metadata = playground.spec, playground.metadata
    return [
        *RelatedRule.by_name(MODEL_API, "openmodels", *(model.name for model in spec.claims.models or ())),
        *RelatedRule.by_name(INFERENCE_API, "backendruntimes", spec.backend_config.backend_name),
        *RelatedRule.by_name(INFERENCE_API, "services", metadata.name, namespace=metadata.namespace),
    ]
