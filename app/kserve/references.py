"""The objects that an LLMInferenceService refers to by name, collected from the fields of its spec.

The customize hook, the inputs of pod templates and the warnings of `modelhooks validate` share it.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from app.kserve.constants import DEFAULT_CONFIG_KEY
from app.kube.base import Json
from app.kube.merge import find


class References(msgspec.Struct, frozen=True):
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
    sides = [side for side in (spec, spec.get("prefill")) if side is not None]
    accounts = (named_account(side.get("template"), side.get("worker")) or "default" for side in sides)
    return References(
        configs=_names(find(spec, ("baseRefs",))),
        scheduler_config=(config["name"], config.get("key") or DEFAULT_CONFIG_KEY) if config.get("name") else None,
        accounts=tuple(dict.fromkeys(accounts)),
        scheduler_account=named_account(find(spec, ("router", "scheduler", "template"))),
        routes=_names(find(spec, ("router", "route", "http", "refs"))),
        pools=_names([find(spec, ("router", "scheduler", "pool", "ref")) or {}]),
        gateways=tuple((ref.get("namespace") or "", ref["name"]) for ref in gateways if ref.get("name")),
    )


def _names(items: Iterable[Any] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item["name"] for item in items or () if item.get("name")))


def named_account(*pods: Json | None) -> str:
    """Return the ServiceAccount that pods are to run under: of the first that names one; empty for none (KS-3.6)."""
    names = (pod.get("serviceAccountName") for pod in pods if isinstance(pod, dict))
    return next((name for name in names if name and isinstance(name, str)), "")
