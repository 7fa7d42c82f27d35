"""The source of each value in the pods of a service, where no experiment tells it (:mod:`app.desk.origins.tracer`).

An experiment cannot change a preset, because it is not an object, and a value that is removed from one layer of
``baseRefs`` comes from the next one. So the layers themselves record who set it.
"""

import itertools
from collections.abc import Iterator, Sequence

from app.kserve import constants, devices, kvcache, lora, results
from app.kserve.llminferenceservice.inputs import effective_spec
from app.kserve.llminferenceservice.observed import LLMService, ReconcileContext, Request, reconcile_context
from app.kserve.operator import AUTOSCALING_KEY, OperatorConfigError
from app.kserve.router.scheduler import with_tokenizer
from app.kserve.spec import merge
from app.kserve.spec.effective import Effective
from app.kserve.spec.merge import CombineError, Keyed, Layer
from app.kserve.workload.plan import PodPlan, workload_plan
from app.kserve.workload.scaling import scaling_children, scaling_plans
from app.kube import field
from app.kube.base import Json
from app.kube.merge import find
from app.kube.origin import Origin, leaves, located
from app.settings import Settings

MODEL = "spec.model.uri and the operator's settings"
"""Source of everything that is added to a pod to provide the model."""
PROMETHEUS = f"ConfigMap/{constants.OPERATOR_CONFIG} {AUTOSCALING_KEY}"
"""Source of the address of Prometheus and of the credentials for it."""
_OPERATORS = (
    *(("metadata", key) for key in ("serverAddress", "unsafeSsl", "authModes")),
    *(("authenticationRef", key) for key in ("name", "kind")),
)


def explain(service: LLMService, request: Request, settings: Settings) -> list[Origin]:
    """List the source of every value in the pods of the model servers and of the endpoint picker."""
    try:
        context = reconcile_context(service, request, settings)
        effective = effective_spec(context)
        plan = workload_plan(effective.spec, context)
    except (OperatorConfigError, CombineError, results.PhaseError):
        return []
    rows: list[Origin] = []
    for deployment in plan.deployments:
        side = [] if deployment.name == context.names.main else ["prefill"]
        rows += _pod(effective, deployment.pod, [*side, "template"], f"Deployment/{deployment.name} spec.template")
    for group in plan.groups:
        side = [] if group.name == context.names.multi_node else ["prefill"]
        place = f"LeaderWorkerSet/{group.name} spec.leaderWorkerTemplate"
        if group.leader is not None:
            rows += _pod(effective, group.leader, [*side, "template"], f"{place}.leaderTemplate")
        rows += _pod(effective, group.worker, [*side, "worker"], f"{place}.workerTemplate")
    scheduler = effective.spec.scheduler
    if scheduler is not None and scheduler.template is not None:
        place = f"Deployment/{context.names.scheduler} spec.template"
        pod, _ = with_tokenizer(effective.spec, scheduler, context, context.deployment(context.names.scheduler))
        rows += _pod(effective, PodPlan({}, {}, pod), ["router", "scheduler", "template"], place)
    return [*rows, *_triggers(effective, context)]


def _triggers(effective: Effective, context: ReconcileContext) -> Iterator[Origin]:
    """List the values of ScaledObjects that come from the operator's settings."""
    for plan in scaling_plans(effective.spec, context.names):
        scaled_objects = (child for child in scaling_children(plan, context) if child["kind"] == "ScaledObject")
        for path, value in itertools.chain.from_iterable(leaves(child["spec"], field.SPEC) for child in scaled_objects):
            if path.segments[-2:] in _OPERATORS:
                yield Origin(f"ScaledObject/{plan.scaler} {path}", value, PROMETHEUS)


def _pod(effective: Effective, plan: PodPlan, base: Sequence[str], place: str) -> list[Origin]:
    rows = []
    layers = [Layer(layer.source, find(layer.spec, base) or {}) for layer in effective.merged.layers]
    untraced, document = find(effective.untraced, base), find(effective.document, base)
    for path, segments, value in located(plan.spec, field.SPEC):
        keyed = merge.keyed(plan.spec, segments)
        if _has(untraced, keyed, value):
            source = merge.source_of(layers, keyed)
        else:
            source = "spec.tracing" if _has(document, keyed, value) else ""
        rows.append(Origin(f"{place}.{path}", value, source or _added(keyed, value, plan)))
    return rows


def _has(pod: Json | None, keyed: Keyed, value: object) -> bool:
    """Report whether a pod has a value at a place, or an argument anywhere among the arguments."""
    there = find(pod, keyed)
    return value in (there or ()) if keyed[-1] == "args" else there is not None


def _added(keyed: Keyed, value: object, plan: PodPlan) -> str:
    names = [str(segment[1]) for segment in keyed if isinstance(segment, tuple)]
    if credential := next((plan.credentials[name] for name in names if name in plan.credentials), ""):
        return credential
    if any(name.startswith(kvcache.TIER) for name in names):
        return "spec.kvCacheOffloading"
    if devices.CLAIM in names or keyed[-1] == "claims":
        return devices.SOURCE
    is_adapter = any(name.startswith((lora.LORA_PATH, "lora-")) for name in names) or (
        keyed[-1] == "args" and (constants.MAIN in names or value in plan.adapters)
    )
    return "spec.model.lora" if is_adapter else MODEL
