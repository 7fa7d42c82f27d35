"""The customize hook of a service: which related objects its sync needs. Source: kserve spec 9.2.

It sees the parent alone. A baseRef may name anything that the spec does not, so with baseRefs it asks broadly; never
for Secrets, and in no namespace but the service's own and the system one; only Gateways and the Services before them
may stand anywhere.
"""

from __future__ import annotations

from app.hooks.protocol import RelatedRule
from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec, LLMInferenceServiceStatus
from app.kserve.names import (
    API_VERSION,
    GATEWAY_API,
    GATEWAY_GROUP,
    GATEWAY_NAME_LABEL,
    GLOBAL_CA_BUNDLE,
    NAME,
    OPERATOR_CONFIG,
    PART_OF,
    PART_OF_VALUE,
    POOL_API,
    POOL_GROUP,
    SYSTEM_SCHEDULER_CONFIG_PREFIX,
)
from app.kserve.operator import OperatorConfig
from app.kserve.template import OPEN
from app.kube.resource import Resource
from app.settings import Settings

Service = Resource[LLMInferenceServiceSpec, LLMInferenceServiceStatus]


def customize(service: Service, declared: frozenset[str], settings: Settings) -> list[RelatedRule]:
    """The rules for one service. ``declared``: child kinds of the CompositeController, as ``plural.group``."""
    namespace, system = service.metadata.namespace, settings.kserve_system_namespace
    rules = [
        RelatedRule(API_VERSION, "llminferenceserviceconfigs", where) for where in dict.fromkeys((namespace, system))
    ]
    rules += _config_maps(service.spec, namespace, system, copied="configmaps" in declared)
    rules.append(RelatedRule("v1", "serviceaccounts", namespace))
    if settings.watch_pods:
        selector = {"matchLabels": {NAME: service.metadata.name, PART_OF: PART_OF_VALUE}}
        rules.append(RelatedRule("v1", "pods", namespace, label_selector=selector))
    if f"httproutes.{GATEWAY_GROUP}" in declared and _routed(service.spec):
        rules += _gateways(service.spec, namespace, OperatorConfig(system).gateway)
    if f"inferencepools.{POOL_GROUP}" in declared and _pooled(service.spec):
        rules.append(RelatedRule(POOL_API, "inferencepools", namespace))
    return rules


def _config_maps(spec: LLMInferenceServiceSpec, namespace: str, system: str, *, copied: bool) -> list[RelatedRule]:
    """The operator's settings, whatever may hold a scheduler configuration, and the CA bundle of downloads from S3.

    ``copied``: whether the bundle is copied here. Its name is in the settings, so that any ConfigMap there may be it.
    """
    scheduler = spec.router.scheduler if spec.router is not None else None
    config = scheduler.config if scheduler is not None else None
    if config is None and spec.base_refs:
        return [RelatedRule("v1", "configmaps", where) for where in dict.fromkeys((namespace, system))]
    name = config.ref.name if config is not None and config.ref is not None else ""
    in_system = [OPERATOR_CONFIG, *([name] if name.startswith(SYSTEM_SCHEDULER_CONFIG_PREFIX) else [])]
    wanted = {system: in_system}
    if name:
        wanted.setdefault(namespace, []).append(name)
    downloads = spec.base_refs or (spec.model is not None and spec.model.uri.lower().startswith(("s3:", OPEN)))
    if downloads:
        wanted.setdefault(namespace, []).append(GLOBAL_CA_BUNDLE)
    if downloads and (copied or namespace == system):
        wanted[system] = []
    return [RelatedRule("v1", "configmaps", where, tuple(dict.fromkeys(names))) for where, names in wanted.items()]


def _routed(spec: LLMInferenceServiceSpec) -> bool:
    return bool(spec.base_refs) or (spec.router is not None and (spec.router.route or spec.router.gateway) is not None)


def _pooled(spec: LLMInferenceServiceSpec) -> bool:
    return bool(spec.base_refs) or (spec.router is not None and spec.router.scheduler is not None)


def _gateways(spec: LLMInferenceServiceSpec, namespace: str, default: tuple[str, str]) -> list[RelatedRule]:
    """Gateways, the Services before them, and routes of one's own.

    The Services by label; by name too, where the Gateway is the built-in default one or the spec names it.
    """
    before = {"matchExpressions": [{"key": GATEWAY_NAME_LABEL, "operator": "Exists"}]}
    rules = [
        RelatedRule(GATEWAY_API, "gateways"),
        RelatedRule(GATEWAY_API, "httproutes", namespace),
        RelatedRule("v1", "services", label_selector=before),
    ]
    gateway = spec.router.gateway if spec.router is not None else None
    named = {default[0]: [default[1]]}
    for ref in (gateway.refs if gateway is not None else None) or ():
        if ref.name:
            named.setdefault(ref.namespace or namespace, []).append(ref.name)
    rules += [RelatedRule("v1", "services", where, tuple(dict.fromkeys(names))) for where, names in named.items()]
    return rules
