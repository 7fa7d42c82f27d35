"""The hooks of a config: whether its templates render, and which services refer to it. Source: KS-1.1."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from app.hooks.protocol import ByName, NoObjects, RelatedRule, SyncRequest, SyncResponse, sorted_values
from app.kserve.constants import API_VERSION
from app.kserve.llminferenceservice.types import LLMCondition
from app.kserve.llminferenceserviceconfig import types
from app.kserve.results import ConditionLedger, ConditionState
from app.kube import field
from app.kube.objects import Named, Observed, RelatedMeta
from app.kube.resource import Resource
from app.limits import MAX_SERVICES_NAMED
from app.settings import Settings

Config = Resource[types.LLMInferenceServiceConfigSpec, types.LLMInferenceServiceConfigStatus]


class _ServiceSpec(Observed):
    base_refs: list[Named] | None = None


class ConfigUser(RelatedMeta):
    spec: _ServiceSpec = msgspec.field(default_factory=_ServiceSpec)


class ConfigRelated(msgspec.Struct):
    """Services of the config's namespace; ``None`` where they are not watched."""

    services: ByName[ConfigUser] = msgspec.field(name=f"LLMInferenceService.{API_VERSION}", default=None)


Request = SyncRequest[NoObjects, ConfigRelated]


def customize(config: Config, declared: frozenset[str], settings: Settings) -> list[RelatedRule]:
    """Select the services of the config's namespace; a config of the system namespace may have too many users."""
    namespace = config.metadata.namespace
    if namespace == settings.kserve_system_namespace:
        return []
    return [RelatedRule(API_VERSION, "llminferenceservices", namespace)]


def sync(config: Config, request: Request, settings: Settings, now: datetime) -> SyncResponse:
    """Report a valid config as ready: it has been validated, templates included."""
    rendered = ConditionState(True, types.ConfigReason.RENDERED)
    status = _status(config.status, config.metadata.generation, now, rendered)
    return SyncResponse(_with_users(status, request, now), [])


def finalize(
    config: Resource[None, types.LLMInferenceServiceConfigStatus], request: Request, now: datetime
) -> SyncResponse:
    """Let a config be deleted once no service refers to it."""
    status = _with_users(config.status, request, now, is_deleted=True)
    return SyncResponse(status, [], finalized=not status.referenced_by)


def invalid(
    config: Resource[types.LLMInferenceServiceConfigSpec | None, types.LLMInferenceServiceConfigStatus],
    errors: Sequence[field.Error],
    now: datetime,
) -> types.LLMInferenceServiceConfigStatus:
    """Report the errors of a config; the services that refer to it stay as they were."""
    wrong = ConditionState(False, types.ConfigReason.INVALID_SPEC, field.aggregate(errors))
    return _status(config.status, config.metadata.generation, now, wrong)


def _status(
    previous: types.LLMInferenceServiceConfigStatus, generation: int | None, now: datetime, ready: ConditionState
) -> types.LLMInferenceServiceConfigStatus:
    ledger = ConditionLedger(previous.conditions, now)
    ledger.set(LLMCondition.READY, ready)
    return msgspec.structs.replace(previous, conditions=ledger.conditions(), observed_generation=generation)


def _with_users(
    status: types.LLMInferenceServiceConfigStatus, request: Request, now: datetime, *, is_deleted: bool = False
) -> types.LLMInferenceServiceConfigStatus:
    """Return the status with the services that refer to the config, and with ``ConfigInUse``."""
    services = request.related.services
    ledger = ConditionLedger(status.conditions, now)
    if services is None:
        ledger.remove(types.IN_USE)
        return msgspec.structs.replace(status, conditions=ledger.conditions(), referenced_by=[])
    name = request.parent.metadata.name
    users = [
        types.ServiceReference(service.metadata.name, service.metadata.namespace)
        for service in sorted_values(services)
        if any(ref.name == name for ref in service.spec.base_refs or ())
    ]
    ledger.set(types.IN_USE, _in_use(users, is_deleted=is_deleted))
    return msgspec.structs.replace(status, conditions=ledger.conditions(), referenced_by=users)


def _in_use(users: Sequence[types.ServiceReference], *, is_deleted: bool) -> ConditionState:
    if not users:
        return ConditionState(False, types.ConfigReason.NOT_IN_USE, "no LLMInferenceService refers to the config")
    names = ", ".join(f"{user.namespace}/{user.name}" for user in users[:MAX_SERVICES_NAMED])
    others = f" and {len(users) - MAX_SERVICES_NAMED} more" if len(users) > MAX_SERVICES_NAMED else ""
    if is_deleted:
        message = f"deletion waits for {names}{others}: remove their baseRefs"
        return ConditionState(True, types.ConfigReason.DELETION_BLOCKED, message)
    return ConditionState(True, types.ConfigReason.IN_USE, f"used by {names}{others}")
