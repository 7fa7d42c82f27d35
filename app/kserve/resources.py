"""The family's kinds as the outside sees them: names, columns, children, related objects. Source: KS-1.1."""

from dataclasses import replace

from app.kserve.llminferenceservice import v1alpha1
from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec, LLMInferenceServiceStatus
from app.kserve.llminferenceserviceconfig import v1alpha1 as config_v1alpha1
from app.kserve.llminferenceserviceconfig.types import LLMInferenceServiceConfigSpec, LLMInferenceServiceConfigStatus
from app.kserve.names import (
    GATEWAY_API,
    GROUP,
    OBJECTIVE_API,
    POOL_API,
    SCALED_OBJECT_API,
    VARIANT_API,
    VERSION,
)
from app.kserve.permissions import RBAC_VERSION, SCHEDULER_RULES, SIDECAR_RULES
from app.kube import kinds
from app.kube.resource import ChildKind, Column, CustomResource, Grant, RelatedKind

GATEWAY_COMPONENT = "gateway-api"
POOL_COMPONENT = "inference-extension"
RBAC_COMPONENT = "scheduler-rbac"
CA_BUNDLE_COMPONENT = "ca-bundle"
OBJECTIVE_COMPONENT = "inference-objectives"
KEDA_COMPONENT = "keda"
VARIANT_COMPONENT = "workload-variant-autoscaler"

_OLDER = "v1alpha1"
_READY = ".status.conditions[?(@.type=='Ready')]"

_SERVICE = CustomResource(
    family="kserve",
    group=GROUP,
    version=VERSION,
    kind="LLMInferenceService",
    plural="llminferenceservices",
    short_names=("llmisvc",),
    description="A large language model served by llm-d: its pods, their scheduler, and the route to them.",
    spec=LLMInferenceServiceSpec,
    status=LLMInferenceServiceStatus,
    spec_required=False,
    columns=(
        Column("URL", ".status.url"),
        Column("Ready", f"{_READY}.status"),
        Column("Reason", f"{_READY}.reason"),
        Column("Age", ".metadata.creationTimestamp", "date"),
        Column("URLs", ".status.addresses[*].url", priority=1),
    ),
    children=(
        kinds.DEPLOYMENTS,
        kinds.SERVICES,
        kinds.LEADER_WORKER_SETS,
        ChildKind(GATEWAY_API, "HTTPRoute", "httproutes", optional=True, component=GATEWAY_COMPONENT),
        ChildKind(POOL_API, "InferencePool", "inferencepools", optional=True, component=POOL_COMPONENT),
        ChildKind("v1", "ServiceAccount", "serviceaccounts", optional=True, component=RBAC_COMPONENT),
        ChildKind(RBAC_VERSION, "Role", "roles", optional=True, component=RBAC_COMPONENT),
        ChildKind(RBAC_VERSION, "RoleBinding", "rolebindings", optional=True, component=RBAC_COMPONENT),
        ChildKind("v1", "ConfigMap", "configmaps", optional=True, component=CA_BUNDLE_COMPONENT),
        kinds.AUTOSCALERS,
        ChildKind(SCALED_OBJECT_API, "ScaledObject", "scaledobjects", optional=True, component=KEDA_COMPONENT),
        ChildKind(
            OBJECTIVE_API, "InferenceObjective", "inferenceobjectives", optional=True, component=OBJECTIVE_COMPONENT
        ),
        ChildKind(VARIANT_API, "VariantAutoscaling", "variantautoscalings", optional=True, component=VARIANT_COMPONENT),
    ),
    related=(
        RelatedKind(f"{GROUP}/{VERSION}", "llminferenceserviceconfigs"),
        RelatedKind(f"{GROUP}/{VERSION}", "llminferenceservices"),
        kinds.CONFIG_MAPS,
        RelatedKind("v1", "serviceaccounts"),
        kinds.PODS,
        RelatedKind("v1", "services"),
        RelatedKind(GATEWAY_API, "gateways", component=GATEWAY_COMPONENT),
        RelatedKind(GATEWAY_API, "httproutes", component=GATEWAY_COMPONENT),
        RelatedKind(POOL_API, "inferencepools", component=POOL_COMPONENT),
    ),
    grants=tuple(
        Grant(group, tuple(rule["resources"]), tuple(rule["verbs"]), component=RBAC_COMPONENT)
        for rule in (*SIDECAR_RULES, *SCHEDULER_RULES)
        for group in rule["apiGroups"]
    ),
)

_CONFIG = CustomResource(
    family="kserve",
    group=GROUP,
    version=VERSION,
    kind="LLMInferenceServiceConfig",
    plural="llminferenceserviceconfigs",
    description="A part of an LLMInferenceService's spec that several services share.",
    spec=LLMInferenceServiceConfigSpec,
    status=LLMInferenceServiceConfigStatus,
    spec_required=False,
    columns=(
        Column("Ready", f"{_READY}.status"),
        Column("Reason", f"{_READY}.reason"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
)

LLM_INFERENCE_SERVICE = replace(
    _SERVICE, older=(replace(_SERVICE, version=_OLDER, stored=False, spec=v1alpha1.LLMInferenceServiceSpec),)
)
LLM_INFERENCE_SERVICE_CONFIG = replace(
    _CONFIG, older=(replace(_CONFIG, version=_OLDER, stored=False, spec=config_v1alpha1.LLMInferenceServiceConfigSpec),)
)

RESOURCES = (LLM_INFERENCE_SERVICE, LLM_INFERENCE_SERVICE_CONFIG)
