"""Observed children and related objects of an LLMInferenceService, and the customize hook that selects the latter.

The hook sees the parent alone, and configs may refer to anything, so with baseRefs it selects every object of a kind.
It never selects Secrets, and from other namespaces than the service's and the system's only Gateways and their Services
(KS-9.2).
"""

from typing import Any

import msgspec

from app.hooks.protocol import ByName, Parent, RelatedRule, SyncRequest, get, objects_of
from app.kserve import constants, lora
from app.kserve.conversion import V1ALPHA1, V1ALPHA2, upgrade
from app.kserve.devices import device_request
from app.kserve.llminferenceservice import types
from app.kserve.names import Names
from app.kserve.operator import OperatorConfig, operator_config
from app.kserve.permissions import ObservedAccount, ObservedBinding, ObservedRole
from app.kserve.references import References, references
from app.kube import conditions, objects, resource
from app.kube.base import Json
from app.settings import Settings


class ObservedParentReference(objects.Observed):
    name: str = ""
    namespace: str | None = None
    group: str = constants.GATEWAY_GROUP
    kind: str = "Gateway"
    section_name: str = ""
    port: int = 0


class ObservedParentStatus(objects.ConditionsStatus):
    parent_ref: ObservedParentReference = msgspec.field(default_factory=ObservedParentReference)
    controller_name: str = ""


class ParentsStatus(objects.Observed):
    parents: list[ObservedParentStatus] | None = None


class BackendReference(objects.Observed):
    name: str = ""
    group: str | None = None
    kind: str | None = None


class PathMatch(objects.Observed):
    value: str | None = None


class RouteMatch(objects.Observed):
    path: PathMatch | None = None
    headers: list[Any] | None = None


class RouteRule(objects.Observed):
    backend_refs: list[BackendReference] | None = None
    matches: list[RouteMatch] | None = None


class ObservedRouteSpec(objects.Observed):
    parent_refs: list[ObservedParentReference] | None = None
    hostnames: list[str] | None = None
    rules: list[RouteRule] | None = None


class ObservedRoute(objects.ObservedObject):
    spec = objects.decoded("raw_spec", ObservedRouteSpec)
    status: ParentsStatus = msgspec.field(default_factory=ParentsStatus)


class ObservedPoolSpec(objects.Observed):
    selector: objects.ObservedSelector = msgspec.field(default_factory=objects.ObservedSelector)


class ObservedPool(objects.ObservedObject):
    spec = objects.decoded("raw_spec", ObservedPoolSpec)
    status: ParentsStatus = msgspec.field(default_factory=ParentsStatus)


class GatewayListener(objects.Observed):
    name: str = ""
    hostname: str | None = None
    port: int = 0
    protocol: str = ""


class GatewayAddress(objects.Observed):
    value: str = ""


class ObservedGatewaySpec(objects.Observed):
    gateway_class_name: str = ""
    listeners: list[GatewayListener] | None = None


class ObservedGatewayStatus(objects.ConditionsStatus):
    addresses: list[GatewayAddress] | None = None


class ObservedGateway(objects.RelatedMeta):
    spec: ObservedGatewaySpec = msgspec.field(default_factory=ObservedGatewaySpec)
    status: ObservedGatewayStatus = msgspec.field(default_factory=ObservedGatewayStatus)


class ServiceAccount(objects.RelatedMeta):
    secrets: list[objects.Named] | None = None


class PeerRouteSpec(objects.Observed):
    group: str | None = None
    weight: int | None = None


class PeerPool(objects.Observed):
    ref: objects.Named = msgspec.field(default_factory=objects.Named)


class PeerScheduler(objects.Observed):
    pool: PeerPool = msgspec.field(default_factory=PeerPool)


class PeerRouter(objects.Observed):
    route: PeerRouteSpec = msgspec.field(default_factory=PeerRouteSpec)
    scheduler: PeerScheduler | None = None


class PeerModel(objects.Observed):
    name: str = ""
    lora: Json | None = None


class PeerInitializer(objects.Observed):
    enabled: bool = True


class PeerSpec(objects.Observed):
    model: PeerModel = msgspec.field(default_factory=PeerModel)
    storage_initializer: PeerInitializer = msgspec.field(default_factory=PeerInitializer)
    router: PeerRouter = msgspec.field(default_factory=PeerRouter)


class Peer(objects.RelatedMeta):
    spec: PeerSpec = msgspec.field(default_factory=PeerSpec)
    status: objects.ConditionsStatus = msgspec.field(default_factory=objects.ConditionsStatus)

    @property
    def models(self) -> frozenset[str]:
        """Model names that requests may use."""
        model, loads = self.spec.model, self.spec.storage_initializer.enabled
        adapters = lora.adapter_names((model.lora or {}).get("adapters")) if loads else ()
        return frozenset((model.name or self.metadata.name, *adapters))


class LLMChildren(msgspec.Struct):
    """Observed children by kind; ``None`` where the kind is not declared."""

    deployments: ByName[objects.ObservedDeployment] = objects_of("Deployment.apps/v1")
    services: ByName[objects.ObservedObject] = objects_of("Service.v1")
    leader_worker_sets: ByName[objects.ObservedLeaderWorkerSet] = objects_of(resource.LEADER_WORKER_SETS.key)
    routes: ByName[ObservedRoute] = objects_of(constants.ROUTES.key)
    pools: ByName[ObservedPool] = objects_of(constants.POOLS.key)
    service_accounts: ByName[ObservedAccount] = objects_of(constants.ACCOUNTS.key)
    roles: ByName[ObservedRole] = objects_of(constants.ROLES.key)
    role_bindings: ByName[ObservedBinding] = objects_of(constants.BINDINGS.key)
    config_maps: ByName[objects.ObservedObject] = objects_of(constants.CONFIG_MAPS.key)
    autoscalers: ByName[objects.ObservedConditions] = objects_of(resource.AUTOSCALERS.key)
    scaled_objects: ByName[objects.ObservedConditions] = objects_of(constants.SCALED_OBJECTS.key)
    variants: ByName[objects.ObservedObject] = objects_of(constants.VARIANTS.key)
    claim_templates: ByName[objects.ObservedObject] = objects_of(constants.CLAIM_TEMPLATES.key)
    objectives: ByName[objects.ObservedObject] = objects_of(constants.OBJECTIVES.key)
    destination_rules: ByName[objects.ObservedObject] = objects_of(constants.DESTINATION_RULES.key)


class LLMRelated(msgspec.Struct):
    """Related objects by kind; ``None`` where they were not asked for."""

    configs: ByName[Parent] = objects_of(f"LLMInferenceServiceConfig.{V1ALPHA2}")
    older_configs: ByName[Parent] = objects_of(f"LLMInferenceServiceConfig.{V1ALPHA1}")
    """For a parent of v1alpha1, instead of the others."""
    peers: ByName[Peer] = objects_of(f"LLMInferenceService.{V1ALPHA2}")
    config_maps: ByName[objects.ObservedConfigMap] = objects_of("ConfigMap.v1")
    service_accounts: ByName[ServiceAccount] = objects_of("ServiceAccount.v1")
    gateways: ByName[ObservedGateway] = objects_of(f"Gateway.{constants.GATEWAY_API}")
    routes: ByName[ObservedRoute] = objects_of(constants.ROUTES.key)
    pools: ByName[ObservedPool] = objects_of(constants.POOLS.key)
    services: ByName[objects.RelatedMeta] = objects_of("Service.v1")
    pods: ByName[objects.ObservedPod] = objects_of("Pod.v1")

    def __post_init__(self) -> None:
        if self.older_configs is not None:
            self.configs = {key: upgrade(config) for key, config in self.older_configs.items()} | (self.configs or {})
            self.older_configs = None


LLMService = resource.Resource[types.LLMInferenceServiceSpec, types.LLMInferenceServiceStatus]
Request = SyncRequest[LLMChildren, LLMRelated]


class ReconcileContext(msgspec.Struct, frozen=True):
    service: LLMService
    raw_spec: bytes
    """The service's spec in JSON, as it is stored."""
    children: LLMChildren
    related: LLMRelated
    operator: OperatorConfig
    settings: Settings

    @property
    def metadata(self) -> objects.ObservedMeta:
        return self.service.metadata

    @property
    def names(self) -> Names:
        return Names(self.metadata.name)

    @property
    def was_ready(self) -> bool:
        """Report whether the last status was Ready, at the present generation."""
        status = self.service.status
        ready = conditions.since(status.conditions, types.LLMCondition.READY, "True") is not None
        return ready and status.observed_generation == self.metadata.generation

    @property
    def managed_accounts(self) -> bool:
        """Report whether ServiceAccounts, Roles and RoleBindings are declared."""
        return self.children.service_accounts is not None

    @property
    def encrypts(self) -> bool:
        """Report whether traffic inside the cluster is encrypted; the presets of v0.17 cannot."""
        return self.operator.ingress.tls and self.settings.kserve_presets != "v0.17"

    @property
    def device_request(self) -> Json | None:
        """Return the devices that annotations ask for; None if their ResourceClaimTemplate cannot be made."""
        return device_request(self.metadata) if self.children.claim_templates is not None else None

    @property
    def ca_bundle(self) -> str:
        """Name of the ConfigMap with the CA bundle: the namespace's, until there is a copy; may be empty."""
        configured, namespace = self.operator.storage_initializer.ca_bundle_config_map_name, self.metadata.namespace
        if not configured or namespace == self.operator.system_namespace:
            return configured
        copied = self.children.config_maps is not None and not self.has_common_bundle
        return self.names.ca_bundle if copied else constants.GLOBAL_CA_BUNDLE

    @property
    def has_common_bundle(self) -> bool:
        """Report whether the namespace's CA bundle is mounted, because the service has no copy."""
        namespace = self.metadata.namespace
        has_copy = get(self.children.config_maps, self.names.ca_bundle, namespace) is not None
        return not has_copy and get(self.related.config_maps, constants.GLOBAL_CA_BUNDLE, namespace) is not None

    def deployment(self, name: str) -> objects.ObservedDeployment | None:
        return get(self.children.deployments, name, self.metadata.namespace)

    def account(self, name: str) -> ServiceAccount | None:
        return get(self.related.service_accounts, name, self.metadata.namespace)

    def gateway(self, reference: ObservedParentReference) -> ObservedGateway | None:
        namespace = self.metadata.namespace if reference.namespace is None else reference.namespace
        return get(self.related.gateways, reference.name, namespace)


def is_stopped(metadata: objects.ObservedMeta) -> bool:
    """Report whether the stop annotation is set (KS-6.7)."""
    return (metadata.annotations or {}).get(constants.STOP, "").lower() == "true"


def reconcile_context(service: LLMService, request: Request, settings: Settings) -> ReconcileContext:
    """Build the context of a sync. Raises :class:`OperatorConfigError`."""
    related, system = request.related, settings.kserve_system_namespace
    config_map = get(related.config_maps, constants.OPERATOR_CONFIG, system)
    operator = operator_config(None if config_map is None else config_map.data or {}, system)
    return ReconcileContext(service, bytes(request.parent.spec), request.children, related, operator, settings)


def customize(service: LLMService, declared: frozenset[str], settings: Settings) -> list[RelatedRule]:
    """Select the related objects of a service; ``declared`` has the declared child kinds as ``plural.group``."""
    namespace, system = service.metadata.namespace, settings.kserve_system_namespace
    refs = references(service.spec.model_dump(by_alias=True, exclude_none=True))
    configs = "llminferenceserviceconfigs"
    rules = [RelatedRule(constants.API_VERSION, configs, where) for where in dict.fromkeys((namespace, system))]
    rules += _config_maps(service.spec, refs, namespace, system, copied="configmaps" in declared)
    rules += _accounts(refs, namespace)
    if settings.watch_pods:
        selector = {"matchLabels": {constants.NAME: service.metadata.name}}  # each label costs at each event of a pod
        rules.append(RelatedRule("v1", "pods", namespace, label_selector=selector))
    router = service.spec.router
    routed = service.spec.base_refs or (router is not None and (router.route or router.gateway) is not None)
    if f"httproutes.{constants.GATEWAY_GROUP}" in declared and routed:
        rules += _named(constants.ROUTES, namespace, refs.routes, refs)  # managed ones are children
        rules += _gateways(refs, namespace, OperatorConfig(system).gateway)
    if service.spec.route is not None and service.spec.route.group:
        rules.append(RelatedRule(constants.API_VERSION, "llminferenceservices", namespace))
    if f"inferencepools.{constants.POOL_GROUP}" in declared:
        rules += _named(constants.POOLS, namespace, refs.pools, refs)
    return rules


def _config_maps(
    spec: types.LLMInferenceServiceSpec, refs: References, namespace: str, system: str, *, copied: bool
) -> list[RelatedRule]:
    """Select the operator's settings, the scheduler configuration, and the CA bundle for downloads.

    ``copied``: copies of bundles are made. Their source can be any ConfigMap of the system namespace.
    """
    config = spec.scheduler.config if spec.scheduler is not None else None
    if config is None and spec.base_refs:
        return [RelatedRule("v1", "configmaps", where) for where in dict.fromkeys((namespace, system))]
    name = refs.scheduler_config[0] if refs.scheduler_config else ""
    by_namespace = {system: [constants.OPERATOR_CONFIG]}
    if name.startswith(constants.SYSTEM_SCHEDULER_CONFIG_PREFIX):
        by_namespace[system].append(name)
    if name:
        by_namespace.setdefault(namespace, []).append(name)
    with_bundle = ("s3:", "gs:", "http", constants.OPEN)  # (KS-3.7.3); a template may render to any address
    downloads = spec.base_refs or any(uri.lower().startswith(with_bundle) for uri in lora.uris(spec.model))
    if downloads:
        by_namespace.setdefault(namespace, []).append(constants.GLOBAL_CA_BUNDLE)
    if downloads and (copied or namespace == system):
        by_namespace[system] = []
    return [
        RelatedRule("v1", "configmaps", where, tuple(dict.fromkeys(names))) for where, names in by_namespace.items()
    ]


def _accounts(refs: References, namespace: str) -> list[RelatedRule]:
    """Select the accounts that the spec names, and those that belong to no service.

    A config with a preset's name, which is not known here, may name one of the latter. So a new service's account syncs
    no other service, unless a base or a template may name any account.
    """
    names = tuple(sorted({*refs.accounts, refs.scheduler_account} - {"", "default"}))
    named = _named(constants.ACCOUNTS, namespace, names, refs)
    if _names_any(names, refs):
        return named
    foreign = {"key": constants.PART_OF, "operator": "NotIn", "values": [constants.PART_OF_VALUE]}
    return [*named, RelatedRule("v1", "serviceaccounts", namespace, label_selector={"matchExpressions": [foreign]})]


def _named(kind: resource.ChildKind, namespace: str, names: tuple[str, ...], refs: References) -> list[RelatedRule]:
    """Select objects by name, or every object of the namespace where a base or a template may name any."""
    if _names_any(names, refs):
        return [RelatedRule(kind.api_version, kind.plural, namespace)]
    return [RelatedRule(kind.api_version, kind.plural, namespace, names)] if names else []


def _names_any(names: tuple[str, ...], refs: References) -> bool:
    """Report whether a base or a template may name other objects than these."""
    return bool(refs.configs) or any(constants.OPEN in name for name in names)


def _gateways(refs: References, namespace: str, default: tuple[str, str]) -> list[RelatedRule]:
    """Select Gateways, and the Services in front of them by label and by the names of known Gateways."""
    in_front = {"matchExpressions": [{"key": constants.GATEWAY_NAME_LABEL, "operator": "Exists"}]}
    rules = [RelatedRule(constants.GATEWAY_API, "gateways"), RelatedRule("v1", "services", label_selector=in_front)]
    named = {default[0]: [default[1]]}
    for where, name in refs.gateways:
        named.setdefault(where or namespace, []).append(name)
    rules += [RelatedRule("v1", "services", where, tuple(dict.fromkeys(names))) for where, names in named.items()]
    return rules
