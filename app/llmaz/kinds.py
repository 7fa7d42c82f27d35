"""The family's kinds: names, children, related objects, columns and hooks. Source: LZ-1.0, LZ-10."""

from functools import partial

from app.hooks.kind import Admission, Hooks, Kind, Offline
from app.hooks.labels import Decorator, Label
from app.kube import resource
from app.kube.resource import ChildKind, Column, CustomResource, RelatedKind, Selection
from app.llmaz import names
from app.llmaz.backendruntime import checks as backendruntime
from app.llmaz.backendruntime.types import BackendRuntimeSpec
from app.llmaz.claims import main_first
from app.llmaz.names import AI_GATEWAY_API, FAMILY, INFERENCE_API, INFERENCE_GROUP, MODEL_API, VERSION
from app.llmaz.openmodel import checks as openmodel
from app.llmaz.openmodel.types import OpenModelSpec
from app.llmaz.playground import checks as playground
from app.llmaz.playground import observed as playground_observed
from app.llmaz.playground import sync as playground_sync
from app.llmaz.playground.types import PlaygroundSpec
from app.llmaz.service import checks as service
from app.llmaz.service import observed as service_observed
from app.llmaz.service import sync as service_sync
from app.llmaz.service.types import ServiceSpec
from app.llmaz.status import ScaledStatus, ServiceStatus, Status, definition_hooks, invalid, kept_children

_AGE = Column("AGE", ".metadata.creationTimestamp", "date")
_REPLICAS = Column("REPLICAS", ".status.replicas", "integer")
_STATUS = Column("STATUS", ".status.conditions[?(@.type=='Available')].reason")
_GATEWAY = "envoy-ai-gateway"
_SCALE = resource.Scale(".spec.replicas", ".status.replicas", ".status.selector")

_resource = partial(CustomResource, family=FAMILY, version=VERSION, spec_required=False)

OPEN_MODEL = _resource(
    group=names.MODEL_GROUP,
    kind="OpenModel",
    short_names=("om",),
    description="Model that Playgrounds and Services of every namespace can claim: its weights and accelerators.",
    spec=OpenModelSpec,
    status=Status,
    namespaced=False,
    columns=(
        Column("OWNEDBY", ".spec.ownedBy"),
        _AGE,
        Column("MODELHUB", ".spec.source.modelHub.name"),
        Column("MODELID", ".spec.source.modelHub.modelID"),
        Column("URI", ".spec.source.uri"),
    ),
)

BACKEND_RUNTIME = _resource(
    group=INFERENCE_GROUP,
    kind="BackendRuntime",
    short_names=("br",),
    description="Inference engine and its presets, for Playgrounds of every namespace.",
    spec=BackendRuntimeSpec,
    status=Status,
    namespaced=False,
)

PLAYGROUND = _resource(
    group=INFERENCE_GROUP,
    kind="Playground",
    short_names=("pl",),
    description="Models served by an engine's preset, by name.",
    spec=PlaygroundSpec,
    status=ScaledStatus,
    columns=(Column("MODEL", ".spec.modelClaim.modelName"), _REPLICAS, _STATUS, _AGE),
    scale=_SCALE,
    children=(ChildKind(INFERENCE_API, "Service", "services"), resource.AUTOSCALERS),
    related=(
        RelatedKind(MODEL_API, "openmodels", use="the Service and its autoscaler"),
        RelatedKind(INFERENCE_API, "backendruntimes", use="the Service and its autoscaler"),
        RelatedKind(INFERENCE_API, "services", use="whether the name is taken"),
    ),
)

SERVICE = _resource(
    group=INFERENCE_GROUP,
    kind="Service",
    short_names=("isvc",),
    description="Models served by pods of a user-defined template. Not to be confused with the core Service.",
    spec=ServiceSpec,
    status=ServiceStatus,
    columns=(Column("NAME", ".metadata.name"), _REPLICAS, _STATUS, _AGE),
    scale=_SCALE,
    children=(
        resource.DEPLOYMENTS,
        resource.SERVICES,
        resource.LEADER_WORKER_SETS,
        ChildKind(names.ENVOY_API, "Backend", "backends", component=_GATEWAY),
        ChildKind(AI_GATEWAY_API, "AIServiceBackend", "aiservicebackends", component=_GATEWAY),
        ChildKind(AI_GATEWAY_API, "AIGatewayRoute", "aigatewayroutes", component=_GATEWAY),
    ),
    related=(
        RelatedKind(MODEL_API, "openmodels", use="the pods"),
        RelatedKind("v1", "configmaps", use="the scheduler and the namespace's settings of llmaz"),
        resource.PODS,
        RelatedKind(
            AI_GATEWAY_API, "aigatewayroutes", Selection.LABELS, "who serves the model already", component=_GATEWAY
        ),
    ),
)

KINDS = (
    Kind(
        resource=OPEN_MODEL,
        hooks=definition_hooks("workloads can claim the model by its name"),
        admission=Admission(validate=openmodel.validate, warnings=openmodel.warnings),
    ),
    Kind(
        resource=BACKEND_RUNTIME,
        hooks=definition_hooks("Playgrounds can use the runtime by its name"),
        admission=Admission(validate=backendruntime.validate, warnings=backendruntime.warnings),
    ),
    Kind(
        resource=PLAYGROUND,
        hooks=Hooks(
            children=playground_observed.PlaygroundChildren,
            related=playground_observed.PlaygroundRelated,
            sync=playground_sync.sync,
            invalid=invalid,
            invalid_children=kept_children,
            counts=playground_sync.counts,
            customize=playground_observed.customize,
        ),
        admission=Admission(validate=playground.validate, warnings=playground.warnings),
        offline=Offline(cross_object_warnings=playground.against_related),
    ),
    Kind(
        resource=SERVICE,
        hooks=Hooks(
            children=service_observed.ServiceChildren,
            related=service_observed.ServiceRelated,
            sync=service_sync.sync,
            invalid=invalid,
            invalid_children=kept_children,
            counts=service_sync.counts,
            customize=service_observed.customize,
        ),
        admission=Admission(validate=service.validate, warnings=service.warnings, changed=service.update_warnings),
        offline=Offline(cross_object_warnings=service.against_related),
    ),
)


def _main_model(spec: PlaygroundSpec | ServiceSpec) -> str:
    return next((model.name for model in main_first(spec.claims.models or []) if model.role == "main"), "")


LABELS = Decorator(
    family=FAMILY,
    name="labels",
    labels=(
        Label(OPEN_MODEL, names.MODEL_FAMILY, lambda spec: spec.family_name),
        Label(PLAYGROUND, names.MODEL_NAME, _main_model),
        Label(SERVICE, names.MODEL_NAME, _main_model),
    ),
)
"""The labels that upstream's webhook writes on objects, by a DecoratorController (LZ-11.3)."""
