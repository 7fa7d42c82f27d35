"""What a service's decisions rest on: its surroundings, and its spec combined with presets and baseRefs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.hooks.protocol import SyncRequest, one
from app.kserve import lora
from app.kserve.llminferenceservice.checks import check_effective, check_rendered, reserved
from app.kserve.llminferenceservice.observed import Children, Related, ServiceAccount
from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec, LLMInferenceServiceStatus
from app.kserve.names import GLOBAL_CA_BUNDLE, OPERATOR_CONFIG, Names
from app.kserve.operator import OperatorConfig, operator_config
from app.kserve.spec.effective import Effective, EffectiveSpec, Inputs, combine
from app.kserve.spec.find import ConfigFinder, layer, pinned
from app.kserve.spec.merge import CombineError
from app.kube import field
from app.kube.objects import ObjectMeta, ObservedDeployment
from app.kube.resource import Resource
from app.settings import Settings

Service = Resource[LLMInferenceServiceSpec, LLMInferenceServiceStatus]
Request = SyncRequest[Children, Related]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the decisions depend on besides the spec."""

    metadata: ObjectMeta
    names: Names
    children: Children
    related: Related
    operator: OperatorConfig

    @property
    def managed_accounts(self) -> bool:
        """Whether ServiceAccounts, Roles and RoleBindings are declared."""
        return self.children.service_accounts is not None

    @property
    def ca_bundle(self) -> str:
        """The ConfigMap of the operator's CA bundle in this namespace; empty where the settings have none.

        The one that KServe's operator made, or an administrator, as long as the service has no copy of its own.
        """
        wanted, namespace = self.operator.storage_initializer.ca_bundle_config_map_name, self.metadata.namespace
        if not wanted or namespace == self.operator.system_namespace:
            return wanted
        own = one(self.children.config_maps, self.names.ca_bundle, namespace) is not None
        common = one(self.related.config_maps, GLOBAL_CA_BUNDLE, namespace) is not None
        copied = self.children.config_maps is not None and (own or not common)
        return self.names.ca_bundle if copied else GLOBAL_CA_BUNDLE

    def deployment(self, name: str) -> ObservedDeployment | None:
        return one(self.children.deployments, name, self.metadata.namespace)

    def account(self, name: str) -> ServiceAccount | None:
        return one(self.related.service_accounts, name, self.metadata.namespace)


def pins_of(service: Service, settings: Settings) -> dict[str, str]:
    if not settings.kserve_versioned_config:
        return {}
    return pinned(service.status.annotations, settings.kserve_config_prefix)


def _operator(related: Related, settings: Settings) -> OperatorConfig:
    system = settings.kserve_system_namespace
    config_map = one(related.config_maps, OPERATOR_CONFIG, system)
    return operator_config(None if config_map is None else config_map.data or {}, system)


def surroundings(service: Service, request: Request, settings: Settings) -> Surroundings:
    """What a service's decisions depend on besides its spec. Raises :class:`OperatorConfigError`."""
    related = request.related or Related()
    operator = _operator(related, settings)
    return Surroundings(service.metadata, Names(service.metadata.name), request.children, related, operator)


def effective_spec(service: Service, request: Request, around: Surroundings, settings: Settings) -> Effective:
    """The service's spec with everything it is combined from. Raises :class:`CombineError`."""
    related, operator, prefix = around.related, around.operator, settings.kserve_config_prefix
    finder = ConfigFinder(
        related.configs, related.config_maps, service.metadata.namespace, operator.system_namespace, prefix
    )
    own = layer("spec", bytes(request.parent.spec))
    pins = pins_of(service, settings)
    effective = combine(Inputs(service.metadata, own, pins, prefix, operator, finder.config, finder.scheduler_config))
    errors = [*check_effective(effective.document), *reserved(effective.spec), *_adapters(service, effective.spec)]
    if effective.templated:
        errors += check_rendered(effective.spec)
    if errors:
        raise CombineError(f"the combined spec is invalid: {field.aggregate(errors)}")
    return effective


def _adapters(service: Service, spec: EffectiveSpec) -> Iterator[field.Error]:
    """Mistakes in the adapters of a merged spec, which no rule has seen before (KS-7.7)."""
    if spec.model is not None:
        yield from lora.check_types(spec.model)
        yield from lora.check(spec, service.metadata.name, final=True)
