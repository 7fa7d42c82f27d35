"""What the command line asks of a service: which layer set each value of its pods, and what cannot be combined."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from app.hooks.protocol import one
from app.kserve.llminferenceservice.observed import Related
from app.kserve.llminferenceservice.plan import Request, Service, Surroundings, effective_spec, surroundings
from app.kserve.llminferenceservice.sync import is_stopped
from app.kserve.names import OPERATOR_CONFIG
from app.kserve.operator import AUTOSCALING_KEY, OperatorConfigError
from app.kserve.spec.effective import Effective
from app.kserve.spec.merge import CombineError, MissingConfigMapError
from app.kserve.workload.plan import MissingAccountError, WorkloadError, workload_plan
from app.kserve.workload.scaling import scaling_children, scaling_plans
from app.kube.field import Path
from app.kube.origin import Origin, item_key, leaves
from app.kube.podspec import MERGE_KEYS
from app.settings import Settings

Json = dict[str, Any]
Keyed = list[str | tuple[str, Any]]

MODEL = "spec.model.uri and the operator's settings"
"""Source of what was added to a pod to bring the model in."""


def explain(service: Service, request: Request, settings: Settings) -> list[Origin]:
    """The sources of every value in the model servers' pods and the endpoint picker's; nothing where there are none."""
    try:
        around = surroundings(service, request, settings)
        effective = effective_spec(service, request, around, settings)
        plan = workload_plan(effective.spec, around)
    except (OperatorConfigError, CombineError, WorkloadError):
        return []
    found: list[Origin] = []
    for deployment in plan.deployments:
        base = ["template"] if deployment.name == around.names.main else ["prefill", "template"]
        place = f"Deployment/{deployment.name} spec.template"
        found += _pod(effective, deployment.pod.spec, base, place)
    for group in plan.groups:
        side = [] if group.name == around.names.multi_node else ["prefill"]
        place = f"LeaderWorkerSet/{group.name} spec.leaderWorkerTemplate"
        if group.leader is not None:
            found += _pod(effective, group.leader.spec, [*side, "template"], f"{place}.leaderTemplate")
        found += _pod(effective, group.worker.spec, [*side, "worker"], f"{place}.workerTemplate")
    scheduler = effective.spec.router.scheduler if effective.spec.router is not None else None
    if scheduler is not None and scheduler.template is not None:
        place = f"Deployment/{around.names.scheduler} spec.template"
        found += _pod(effective, scheduler.template, ["router", "scheduler", "template"], place)
    return [*found, *_triggers(effective, around)]


def _triggers(effective: Effective, around: Surroundings) -> Iterator[Origin]:
    """What ScaledObjects have of the operator's settings."""
    for plan in scaling_plans(effective.spec, around.names):
        made = (child for child in scaling_children(plan, around) if child["kind"] == "ScaledObject")
        for path, value in itertools.chain.from_iterable(leaves(child["spec"], Path("spec")) for child in made):
            if str(path).endswith(_OPERATORS):
                yield Origin(f"ScaledObject/{plan.scaler} {path}", value, PROMETHEUS)


PROMETHEUS = f"ConfigMap/{OPERATOR_CONFIG} {AUTOSCALING_KEY}"
"""Source of where Prometheus is and as whom it is asked."""
_OPERATORS = (
    *(f".metadata.{key}" for key in ("serverAddress", "unsafeSsl", "authModes")),
    *(f".authenticationRef.{key}" for key in ("name", "kind")),
)


def _pod(effective: Effective, pod: Json, base: Sequence[str], place: str) -> list[Origin]:
    return [
        Origin(f"{place}.{path}", value, effective.source([*base, *keyed]) or MODEL)
        for path, keyed, value in _located(pod, Path("spec"), [])
    ]


def _located(value: Any, path: Path, keyed: Keyed, name: str = "") -> Iterator[tuple[Path, Keyed, Any]]:
    """Every scalar with its path for people and its path for the merge, which ends at a list that is replaced whole."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _located(item, path.member(key), [*keyed, key], key)
    elif isinstance(value, list) and value:
        shown, merged = item_key(value), MERGE_KEYS.get(name)
        for position, item in enumerate(value):
            here = path.key(str(item[shown])) if shown else path.index(position)
            if merged and isinstance(item, dict):
                yield from _located(item, here, [*keyed, (merged, item.get(merged))])
            else:
                yield from ((where, keyed, leaf) for where, _, leaf in _located(item, here, []))
    else:
        yield path, keyed, value


# For ``modelhooks validate`` on files with a service and its configs; in the cluster it is ``PresetsCombined``.


def across(service: Service, request: Request, settings: Settings) -> list[str]:
    """Why there would be no pods; nothing where an object that the service names is not among the related ones."""
    related = request.related or Related()
    places = (service.metadata.namespace, settings.kserve_system_namespace)
    named = [reference.name or "" for reference in service.spec.base_refs or ()]
    if is_stopped(service.metadata) or not named:
        return []
    if any(all(one(related.configs, name, place) is None for place in places) for name in named):
        return []
    try:
        around = surroundings(service, request, settings)
        workload_plan(effective_spec(service, request, around, settings).spec, around)
    except (MissingConfigMapError, MissingAccountError):
        return []
    except (OperatorConfigError, CombineError, WorkloadError) as error:
        return [f"spec.baseRefs: {error}"]
    return []
