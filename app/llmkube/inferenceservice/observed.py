"""The typed request of an InferenceService, and whether its Models can be used (LK-3.1, LK-5.2, LK-B-09, LK-D.2)."""

import msgspec

from app.hooks.protocol import ByName, RelatedResource, RelatedRule, get, objects_of, sorted_values, specs
from app.hooks.reader import read_related
from app.kube import objects
from app.kube.base import Int64, Json
from app.kube.conditions import find
from app.kube.merge import find as value_at
from app.kube.names import is_dns1123_subdomain
from app.kube.objects import Observed, ObservedDeployment, ObservedPod, RelatedMeta
from app.kube.reading.stored import Decoder
from app.kube.resource import Resource
from app.limits import MAX_READY_CHARACTERS
from app.llmkube import names
from app.llmkube.inferenceservice.plan import replicas_of
from app.llmkube.inferenceservice.types import InferenceReason, InferenceService, InferenceServiceSpec
from app.llmkube.model.types import Model, ModelCondition, ModelPhase, ModelReason, ModelSpec, ModelStatus
from app.llmkube.runtimes.registry import draft_name
from app.llmkube.runtimes.registry import runtime as runtime_of
from app.llmkube.source import SourceClass, recorded_key, source_of
from app.settings import Settings
from app.workload.readiness.cause import Cause, Stage, bounded


class InferenceChildren(msgspec.Struct):
    """Observed children; ``pod_monitors`` is ``None`` where that kind is not declared."""

    deployments: ByName[ObservedDeployment] = objects_of("Deployment.apps/v1")
    services: ByName[objects.ObservedObject] = objects_of("Service.v1")
    autoscalers: ByName[objects.ObservedAutoscaler] = objects_of("HorizontalPodAutoscaler.autoscaling/v2")
    pod_monitors: ByName[objects.ObservedObject] = objects_of(f"PodMonitor.{names.POD_MONITOR_API}")


class EndpointConditions(Observed):
    ready: bool | None = None


class SliceEndpoint(Observed):
    addresses: list[str] | None = None
    conditions: EndpointConditions = msgspec.field(default_factory=EndpointConditions)


class ObservedSlice(RelatedMeta):
    """An EndpointSlice that a metal agent writes under the name of the service's Service (LK-C.3)."""

    endpoints: list[SliceEndpoint] | None = None


class PeerStatus(Observed):
    phase: str = ""


class PeerService(RelatedMeta):
    status: PeerStatus = msgspec.field(default_factory=PeerStatus)


class ObservedPriorityClass(RelatedMeta):
    value: Int64 = 0


class InferenceRelated(msgspec.Struct):
    """Related objects; ``None`` for kinds that customize did not request."""

    models: ByName[RelatedResource] = objects_of("Model.inference.llmkube.dev/v1alpha1")
    services: ByName[PeerService] = objects_of("InferenceService.inference.llmkube.dev/v1alpha1")
    pods: ByName[ObservedPod] = objects_of("Pod.v1")
    claims: ByName[objects.ObservedClaim] = objects_of("PersistentVolumeClaim.v1")
    slices: ByName[ObservedSlice] = objects_of("EndpointSlice.discovery.k8s.io/v1")
    priority_classes: ByName[ObservedPriorityClass] = objects_of("PriorityClass.scheduling.k8s.io/v1")
    runtime_classes: ByName[RelatedMeta] = objects_of("RuntimeClass.node.k8s.io/v1")


def customize(resource: InferenceService, declared: frozenset[str], settings: Settings) -> list[RelatedRule]:
    """Return the rules of the related objects, from the spec only: Metacontroller caches them (LK-D.2)."""
    metadata, spec = resource.metadata, resource.spec
    namespace = metadata.namespace
    rules = RelatedRule.by_name(names.API_VERSION, "models", spec.model_ref, draft_name(spec), namespace=namespace)
    if settings.watch_pods and replicas_of(spec):
        labels = {"matchLabels": {names.LABEL_APP: metadata.name}}  # one, as each event of any pod is compared with it
        rules.append(RelatedRule("v1", "pods", namespace, label_selector=labels))
    if settings.llmkube_watch_endpoint_slices:
        service = names.service_name(metadata.name)
        rules += RelatedRule.by_name("discovery.k8s.io/v1", "endpointslices", service, namespace=namespace)
    rules += RelatedRule.by_name("scheduling.k8s.io/v1", "priorityclasses", spec.priority_class_name)
    rules += RelatedRule.by_name("node.k8s.io/v1", "runtimeclasses", spec.runtime_class_name)
    claims = (settings.llmkube_model_cache_claim, spec.cache_claim)
    rules += RelatedRule.by_name("v1", "persistentvolumeclaims", *claims, namespace=namespace)
    if settings.llmkube_queue_position and spec.requests.gpu:
        rules.append(RelatedRule(names.API_VERSION, "inferenceservices", label_selector={}))
    return rules


def pods_of(service: str, related: InferenceRelated) -> list[ObservedPod]:
    """Return the pods of the service; the rule's label may select others."""
    labels = names.service_labels(service).items()
    return [pod for pod in sorted_values(related.pods) if labels <= (pod.metadata.labels or {}).items()]


# Whether the Model that a service names can be served.

_STATUS: Decoder[ModelStatus] = Decoder(ModelStatus)


class LastingCause(Cause, frozen=True):
    """A cause that no waiting ends: the phase of the service is ``Failed``."""


def decode(related: RelatedResource | None) -> Model | None:
    """Decode the Model; ``None`` if it is absent or its spec is invalid."""
    if related is None:
        return None
    reading = read_related(related.spec, ModelSpec)
    if reading.spec is None or reading.errors:
        return None
    return Resource(related.metadata, reading.spec, _status(related))


def _status(related: RelatedResource) -> ModelStatus:
    try:
        return _STATUS.decode(related.status)
    except msgspec.DecodeError:
        return ModelStatus()


def usable(related: RelatedResource | None, named: str) -> Model | Cause:
    """Return the Model, or why the service waits for it, whose children stay as they are meanwhile.

    ``named`` is what the Model is called: ``Model chat``.
    """
    if related is None:
        return LastingCause(Stage.MODEL, f"{named} does not exist in this namespace", "ModelNotFound")
    if related.metadata.deletion_timestamp:
        return Cause(Stage.MODEL, f"{named} is being deleted; running pods are kept", "ModelTerminating")
    model = decode(related)
    if model is None:
        return Cause(Stage.MODEL, f"{named} has an invalid spec", "ModelInvalid")
    if model.status.phase != ModelPhase.READY:
        return _unready(named, model.status)
    if _outdated(model):
        text = f"{named} has a new source that its own status does not reflect yet"
        return Cause(Stage.MODEL, text, "ModelNotReady")
    return model


def template_inputs(related: InferenceRelated) -> Json:
    files = {}
    for key, model in (related.models or {}).items():
        status = _status(model)
        places = {"cacheKey": status.cache_key, "cacheClaim": status.cache_claim}
        files[key] = {name: place for name, place in places.items() if place}
    return {"models": specs(related.models), "files": files, "claims": sorted(related.claims or {})}


def _unready(named: str, status: ModelStatus) -> Cause:
    """Return why the service waits; it fails if the operator's settings leave its Model without a claim (LK-0.3)."""
    why = find(status.conditions, ModelCondition.READY)
    words = bounded(why.message, MAX_READY_CHARACTERS) if why is not None and why.status != "True" else ""
    text = f"{named} is {status.phase or 'new'}" + (f": {words}" if words else ", not Ready")
    hopeless = why is not None and why.reason == ModelReason.INVALID_SETTINGS
    return (LastingCause if hopeless else Cause)(Stage.MODEL, text, "ModelNotReady")


def _outdated(model: Model) -> bool:
    """Return whether the status is about another source or checksum; it is trusted without a generation (LK-T-18)."""
    ready = find(model.status.conditions, ModelCondition.READY)
    generation = ready.observed_generation if ready is not None else None
    if generation is None or generation >= (model.metadata.generation or 0):
        return False
    stored, desired, source = model.status.sha256, model.spec.sha256.lower(), source_of(model.spec)
    if model.status.cache_key != recorded_key(source, metal=model.spec.on_metal):
        return True
    return model.status.staged_files != list(source.files) or (stored != "" and desired not in ("", stored))


# The draft model of speculative decoding. A name alone does not tell a Model from a repository of vLLM's, so what runs
# is never changed because a Model of that name is missing.


class Draft(msgspec.Struct, frozen=True):
    """The draft model of a service, and what comes of it."""

    model: Model | None
    """``None`` without one, or if its spec is invalid."""
    required: Cause | None
    """Why the service waits, as for its own Model; of runtimes that load nothing but a Model."""
    wait: Cause | None
    """Why the children stay as they are; ``None`` if nothing prevents a change."""
    missing: Cause | None
    """What speculative decoding lacks: a draft model, or a Model of that name."""


def draft_of(service: InferenceService, related: InferenceRelated, deployed: ObservedDeployment | None) -> Draft:
    spec, server = service.spec, runtime_of(service.spec.runtime)
    name = server.draft(spec)
    found = get(related.models, name, service.metadata.namespace)
    usable_draft = usable(found, f"draft Model {name}") if name else None
    unusable = usable_draft if isinstance(usable_draft, Cause) else None
    if name and server.draft_is_model:
        return Draft(decode(found), unusable, None, _missing_draft(spec, name, found))
    wait = _draft_wait(spec, name, found, unusable, deployed) if name else None
    return Draft(decode(found), None, wait, _missing_draft(spec, name, found))


def _draft_wait(
    spec: InferenceServiceSpec,
    name: str,
    related: RelatedResource | None,
    unusable: Cause | None,
    deployed: ObservedDeployment | None,
) -> Cause | None:
    """Return why the children have to stay as they are.

    The file of a Model that is not Ready is not in place yet. If the Model is gone, a running service is kept, and a
    new one is made without it.
    """
    if related is None:
        other = runtime_of(spec.runtime).draft_of(_arguments(deployed)) not in ("", name)
        return _missing_draft(spec, name, None, "; running pods are kept") if other else None
    model = decode(related)
    unmounted = model is not None and (model.spec.on_metal or source_of(model.spec).kind is SourceClass.REPOSITORY)
    if unmounted and not related.metadata.deletion_timestamp:
        return None
    return unusable


def _missing_draft(
    spec: InferenceServiceSpec, name: str, related: RelatedResource | None, note: str = ""
) -> Cause | None:
    if not name and (problem := runtime_of(spec.runtime).draft_problem(spec)):
        return Cause(Stage.MODEL, problem, InferenceReason.SPECULATIVE_INVALID)
    if related is not None or not is_dns1123_subdomain(name):
        return None
    text = f"draft Model {name} does not exist in this namespace{note}"
    return Cause(Stage.MODEL, text, InferenceReason.SPECULATIVE_INVALID)


def _arguments(observed: ObservedDeployment | None) -> list[str]:
    """Return the recorded arguments of the first container; users can write anything into the record."""
    record = observed.record if observed is not None else None
    containers = value_at(record, ("spec", "template", "spec", "containers"))
    arguments = value_at(containers[0], ("args",)) if isinstance(containers, list) and containers else None
    return [str(argument) for argument in arguments] if isinstance(arguments, list) else []
