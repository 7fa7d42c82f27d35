"""The family's kinds: how they look from outside, and what they do. Source: KS-1.1."""

from functools import partial
from typing import Any

from msgspec.structs import replace

from app.hooks.kind import Admission, Hooks, Kind, Offline
from app.hooks.protocol import NoObjects
from app.kserve import constants
from app.kserve.constants import GROUP, POOLS, ROUTES, VERSION
from app.kserve.conversion import upgrade
from app.kserve.llminferenceservice import checks as service_checks
from app.kserve.llminferenceservice import sync as service
from app.kserve.llminferenceservice import together, v1alpha1
from app.kserve.llminferenceservice.combined import cross_object_warnings
from app.kserve.llminferenceservice.observed import LLMChildren, LLMRelated, customize
from app.kserve.llminferenceservice.origins import explain
from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec, LLMInferenceServiceStatus
from app.kserve.llminferenceserviceconfig import checks as config_checks
from app.kserve.llminferenceserviceconfig import sync as config
from app.kserve.llminferenceserviceconfig import v1alpha1 as config_v1alpha1
from app.kserve.llminferenceserviceconfig.types import LLMInferenceServiceConfigSpec, LLMInferenceServiceConfigStatus
from app.kserve.permissions import SCHEDULER_RULES, SIDECAR_RULES
from app.kserve.spec.find import preset_names
from app.kube.resource import (
    AUTOSCALERS,
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    PODS,
    SERVICES,
    Column,
    CustomResource,
    Grant,
    RelatedKind,
    Scale,
    Selection,
)

_OLDER = "v1alpha1"
_READY = ".status.conditions[?(@.type=='Ready')]"

_COLUMNS = (
    Column("Ready", f"{_READY}.status"),
    Column("Reason", f"{_READY}.reason"),
    Column("Age", ".metadata.creationTimestamp", "date"),
)

_resource = partial(CustomResource, family=constants.FAMILY, group=GROUP, version=VERSION, spec_required=False)
_SERVICE = _resource(
    kind="LLMInferenceService",
    short_names=("llmisvc",),
    description="A large language model served by llm-d: its pods, their scheduler, and the route to them.",
    spec=LLMInferenceServiceSpec,
    status=LLMInferenceServiceStatus,
    columns=(Column("URL", ".status.url"), *_COLUMNS, Column("URLs", ".status.addresses[*].url", priority=1)),
    scale=Scale(".spec.replicas", ".status.workloads.primary.readyReplicas", ".status.workloads.primary.selector"),
    children=(
        DEPLOYMENTS,
        SERVICES,
        LEADER_WORKER_SETS,
        ROUTES,
        POOLS,
        constants.ACCOUNTS,
        constants.ROLES,
        constants.BINDINGS,
        constants.CONFIG_MAPS,
        AUTOSCALERS,
        constants.SCALED_OBJECTS,
        constants.OBJECTIVES,
        constants.VARIANTS,
        constants.CLAIM_TEMPLATES,
        constants.DESTINATION_RULES,
    ),
    related=(
        RelatedKind(
            f"{GROUP}/{VERSION}",
            "llminferenceserviceconfigs",
            Selection.NAMESPACE,
            "the pods, of `baseRefs` and of configs with a preset's name; of the system namespace as well",
        ),
        RelatedKind(
            f"{GROUP}/{VERSION}",
            "llminferenceservices",
            Selection.NAMESPACE,
            "the shared route; services with `router.route.group`",
        ),
        RelatedKind(
            "v1",
            "configmaps",
            Selection.NAMESPACE,
            "operator settings, scheduler configuration and CA bundle, by name unless `baseRefs` may name another",
        ),
        RelatedKind(
            "v1",
            "serviceaccounts",
            Selection.NAMESPACE,
            "credentials of downloads; without `baseRefs` by name, and by one label those that no service made",
        ),
        PODS,
        RelatedKind("v1", "services", Selection.LABELS, "addresses of Gateways; services with a route"),
        RelatedKind(
            ROUTES.api_version,
            "gateways",
            Selection.CLUSTER,
            "addresses; services with a route",
            component=ROUTES.component,
        ),
        RelatedKind(
            ROUTES.api_version,
            ROUTES.plural,
            Selection.NAMESPACE,
            "routes of `http.refs`, by name unless a config may name others",
            component=ROUTES.component,
        ),
        RelatedKind(
            POOLS.api_version,
            POOLS.plural,
            Selection.NAMESPACE,
            "the pool of `pool.ref`, by name unless a config may name another",
            component=POOLS.component,
        ),
    ),
    grants=tuple(
        Grant(group, tuple(rule["resources"]), tuple(rule["verbs"]), component=constants.ACCOUNTS.component)
        for rule in (*SIDECAR_RULES, *SCHEDULER_RULES)
        for group in rule["apiGroups"]
    ),
)

_CONFIG = _resource(
    kind="LLMInferenceServiceConfig",
    description="A part of an LLMInferenceService's spec that several services share.",
    spec=LLMInferenceServiceConfigSpec,
    status=LLMInferenceServiceConfigStatus,
    columns=_COLUMNS,
    related=(
        RelatedKind(
            f"{GROUP}/{VERSION}",
            "llminferenceservices",
            Selection.NAMESPACE,
            "services that use it; configs outside the system namespace",
        ),
    ),
    finalize_component="config-protection",
)

LLM_INFERENCE_SERVICE = replace(
    _SERVICE, older=(replace(_SERVICE, version=_OLDER, stored=False, spec=v1alpha1.LLMInferenceServiceSpecV1Alpha1),)
)
LLM_INFERENCE_SERVICE_CONFIG = replace(
    _CONFIG, older=(replace(_CONFIG, version=_OLDER, stored=False, spec=config_v1alpha1.ConfigSpecV1Alpha1),)
)

_KINDS: tuple[Kind[Any, Any], ...] = (
    Kind(
        resource=LLM_INFERENCE_SERVICE,
        hooks=Hooks(
            children=LLMChildren,
            related=LLMRelated,
            sync=service.sync,
            invalid=service.invalid,
            invalid_children=service.kept_children,
            counts=service.counts,
            customize=customize,
        ),
        admission=Admission(
            validate=service_checks.validate, warnings=service_checks.warnings, changed=service_checks.update_warnings
        ),
        offline=Offline(explain=explain, cross_object_warnings=cross_object_warnings, together=together.warnings),
    ),
    Kind(
        resource=LLM_INFERENCE_SERVICE_CONFIG,
        hooks=Hooks(
            children=NoObjects,
            related=config.ConfigRelated,
            sync=config.sync,
            invalid=config.invalid,
            customize=config.customize,
            finalize=config.finalize,
        ),
        admission=Admission(
            validate=config_checks.validate,
            warnings=config_checks.warnings,
            changed=config_checks.update_warnings,
            deleted=config_checks.delete_warnings,
        ),
        offline=Offline(built_in=preset_names),
    ),
)
KINDS = tuple(
    replace(kind, older=tuple(replace(kind, resource=resource, upgrade=upgrade) for resource in kind.resource.older))
    for kind in _KINDS
)
"""Older versions share the rules; a spec's type tells its version."""
