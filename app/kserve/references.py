"""The objects that an LLMInferenceService refers to by name, collected from the fields of its spec.

The customize hook, the inputs of pod templates and the warnings of `modelhooks validate` share it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from app.kserve.constants import DEFAULT_CONFIG_KEY
from app.kube.base import Json
from app.kube.merge import find


@dataclass(frozen=True, slots=True)
class References:
    """Names of objects in the namespace of the service; each once, in the order of the spec."""

    configs: tuple[str, ...] = ()
    scheduler_config: tuple[str, str] | None = None
    """A ConfigMap and one of its keys."""
    accounts: tuple[str, ...] = ()
    """ServiceAccounts of the model servers' pods: the leader's account, else the workers', else `default`."""
    scheduler_account: str = ""
    """The ServiceAccount that the scheduler's template names; empty if it names none."""
    routes: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    gateways: tuple[tuple[str, str], ...] = ()
    """Namespace, empty for the service's own, and name."""


def references(spec: Json) -> References:
    """Return what a spec refers to; ``spec`` is plain JSON, before or after it is merged."""
    config = find(spec, ("router", "scheduler", "config", "ref")) or {}
    gateways = find(spec, ("router", "gateway", "refs")) or ()
    return References(
        configs=_names(find(spec, ("baseRefs",))),
        scheduler_config=(config["name"], config.get("key") or DEFAULT_CONFIG_KEY) if config.get("name") else None,
        accounts=tuple(dict.fromkeys(_account(side) for side in (spec, spec.get("prefill")) if side is not None)),
        scheduler_account=_named_account(spec, "router", "scheduler", "template"),
        routes=_names(find(spec, ("router", "route", "http", "refs"))),
        pools=_names([find(spec, ("router", "scheduler", "pool", "ref")) or {}]),
        gateways=tuple((ref.get("namespace") or "", ref["name"]) for ref in gateways if ref.get("name")),
    )


def _names(items: Iterable[Any] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item["name"] for item in items or () if item.get("name")))


def _account(workload: Json) -> str:
    return _named_account(workload, "template") or _named_account(workload, "worker") or "default"


def _named_account(spec: Json, *pod: str) -> str:
    name = find(spec, (*pod, "serviceAccountName"))
    return name if isinstance(name, str) else ""
