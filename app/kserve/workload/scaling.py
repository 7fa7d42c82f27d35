"""Autoscalers of a workload. Source: KS-5.

The workload variant autoscaler exports the number of replicas of a VariantAutoscaling as a metric, which a
HorizontalPodAutoscaler or ScaledObject follows.
"""

import json

import msgspec

from app.hooks.kept import keep_child
from app.hooks.protocol import get
from app.kserve import constants
from app.kserve.llminferenceservice.observed import ReconcileContext
from app.kserve.llminferenceservice.types import KEDASpec, LLMCondition, LLMReason, WVASpec
from app.kserve.names import Names, component_labels
from app.kserve.operator import AUTOSCALING_KEY, Prometheus
from app.kserve.results import CONDITION_TRUE, ConditionState, by_condition, fails
from app.kserve.spec.effective import EffectiveSpec
from app.kserve.workload.topology import Side, topology
from app.kube.base import Json
from app.kube.child import metadata, without_none
from app.kube.conditions import find
from app.kube.resource import AUTOSCALERS, DEPLOYMENTS, LEADER_WORKER_SETS
from app.workload.autoscaler import CONDITIONS, stored_behavior, with_hint
from app.workload.readiness.cause import Stage

METRIC = "wva_desired_replicas"
"""Replicas that the workload variant autoscaler wants, by ``variant_name``."""
ACCELERATOR = "inference.optimization/acceleratorName"
"""Label by which the workload variant autoscaler tells accelerators apart."""
_GPU_PRODUCTS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator")
"""Labels of nodes whose value in a node selector that autoscaler takes instead."""
_TARGET = {"type": "AverageValue", "averageValue": "1"}
"""Of a metric that is itself a number of replicas; a ``Value`` would multiply the ready pods by it (KS-5.1)."""

_NO_VARIANTS = (
    "VariantAutoscalings are not declared to Metacontroller, and without one the metric for scaling is missing: "
    "install the workload variant autoscaler and the kustomize component workload-variant-autoscaler"
)
_NO_SCALED_OBJECTS = "scaling.wva.keda needs ScaledObjects: install KEDA and the kustomize component keda"
_NO_AUTOSCALERS = (
    "scaling.wva.hpa needs HorizontalPodAutoscalers, which are not declared to Metacontroller: apply the manifests in "
    "metacontroller/ of this release"
)


class ScalingPlan(msgspec.Struct, frozen=True):
    condition: str
    variant: str
    """Name of the VariantAutoscaling; ``scaler`` names the HorizontalPodAutoscaler or ScaledObject."""
    scaler: str
    target: Json
    """The workload, as a ``scaleTargetRef``."""
    fewest: int
    most: int
    wva: WVASpec
    model: str
    accelerator: str
    counted: str
    """The accelerator whose number of replicas counts: what the node selector names, else ``accelerator``."""


def scaling_plans(spec: EffectiveSpec, names: Names) -> list[ScalingPlan]:
    plans = (_plan(side, names, spec.model.name or names.service) for side in topology(spec, names))
    return [plan for plan in plans if plan is not None]


def _plan(side: Side, names: Names, model: str) -> ScalingPlan | None:
    scaling, prefill = side.spec.scaling, side.role == constants.ROLE_PREFILL
    if scaling is None or scaling.wva is None or scaling.max_replicas is None:  # the rules want all of it
        return None
    alone = side.spec.worker is None
    accelerator = (side.spec.labels or {}).get(ACCELERATOR) or "unknown"
    selector: Json = (side.spec.template or {}).get("nodeSelector") or {}
    kind = DEPLOYMENTS if alone else LEADER_WORKER_SETS
    return ScalingPlan(
        condition=LLMCondition.PREFILL_SCALING_READY if prefill else LLMCondition.SCALING_READY,
        variant=names.autoscaler("va", prefill=prefill),
        scaler=names.autoscaler("hpa" if scaling.wva.keda is None else "keda", prefill=prefill),
        target={"apiVersion": kind.api_version, "kind": kind.kind, "name": side.name if alone else side.group_name},
        fewest=scaling.min_replicas or 1,
        most=scaling.max_replicas,
        wva=scaling.wva,
        model=model,
        accelerator=accelerator,
        counted=next((selector[name] for name in _GPU_PRODUCTS if name in selector), accelerator),
    )


def scaling_children(plan: ScalingPlan, context: ReconcileContext) -> list[Json]:
    """The objects of one workload, as far as their kinds are declared."""
    namespace = context.metadata.namespace
    labels = component_labels(context.metadata.name, constants.COMPONENT_WORKLOAD)
    children = [] if context.children.variants is None else [_variant_autoscaling(plan, namespace, labels)]
    if plan.wva.keda is None:
        declared = context.children.autoscalers is not None
        return [*children, _horizontal_pod_autoscaler(plan, namespace, labels)] if declared else children
    if context.children.scaled_objects is None:
        return children
    if context.operator.autoscaling.problem:
        observed = get(context.children.scaled_objects, plan.scaler, namespace)
        return children if observed is None else [*children, keep_child(observed)]
    meta = metadata(plan.scaler, namespace, labels)
    return [*children, _scaled_object(plan, plan.wva.keda, context.operator.autoscaling.prometheus, meta)]


def _variant_autoscaling(plan: ScalingPlan, namespace: str, labels: dict[str, str]) -> Json:
    spec = {
        "scaleTargetRef": plan.target,
        "modelID": plan.model,
        "minReplicas": plan.fewest,
        "maxReplicas": plan.most,
        "variantCost": plan.wva.variant_cost,
    }
    meta = metadata(plan.variant, namespace, {**labels, ACCELERATOR: plan.accelerator})
    return constants.VARIANTS.build(meta, spec=spec)


def _horizontal_pod_autoscaler(plan: ScalingPlan, namespace: str, labels: dict[str, str]) -> Json:
    metric = {"name": METRIC, "selector": {"matchLabels": {"variant_name": plan.variant}}}
    spec = without_none(
        scaleTargetRef=plan.target,
        minReplicas=plan.fewest,
        maxReplicas=plan.most,
        metrics=[{"type": "External", "external": {"metric": metric, "target": _TARGET}}],
        behavior=stored_behavior(plan.wva.hpa.behavior if plan.wva.hpa is not None else None),
    )
    meta = metadata(plan.scaler, namespace, labels)
    return AUTOSCALERS.build(meta, spec=spec)


def _scaled_object(plan: ScalingPlan, keda: KEDASpec, prometheus: Prometheus, meta: Json) -> Json:
    """Build the ScaledObject, which asks Prometheus itself, and scales by no more than one series.

    The autoscaler keeps a series for each name that the accelerator has had. That of the present name counts; until it
    is there, and where a node affinity has another name, the largest.
    """
    labels = f'variant_name="{plan.variant}",exported_namespace="{meta["namespace"]}"'
    present = f"{labels},accelerator_type={json.dumps(plan.counted)}"
    query = f"max({METRIC}{{{present}}}) or max({METRIC}{{{labels}}})"
    unsafe = "true" if prometheus.tls_insecure_skip_verify else "false"
    settings = {"serverAddress": prometheus.url, "query": query, "threshold": "1", "unsafeSsl": unsafe}
    trigger: Json = {"type": "prometheus", "name": METRIC.replace("_", "-"), "metadata": settings}
    if prometheus.auth_modes:
        settings["authModes"] = prometheus.auth_modes
        kind = {"kind": prometheus.trigger_auth_kind} if prometheus.trigger_auth_kind else {}
        trigger["authenticationRef"] = {"name": prometheus.trigger_auth_name, **kind}
    spec = {
        "scaleTargetRef": plan.target,
        "minReplicaCount": plan.fewest,
        "maxReplicaCount": plan.most,
        **_keda_fields(keda),
        "triggers": [trigger],
    }
    return constants.SCALED_OBJECTS.build(meta, spec=spec)


def _keda_fields(keda: KEDASpec) -> Json:
    """The user's settings for KEDA. What has to be empty is left out."""
    fields = keda.model_dump(by_alias=True, exclude_none=True, exclude_unset=True)
    advanced = fields.pop("advanced", {})
    advanced.pop("scalingModifiers", None)
    autoscaler = advanced.pop("horizontalPodAutoscalerConfig", {})
    behavior = stored_behavior(autoscaler.get("behavior"))
    if behavior is not None:
        for rules in behavior.values():
            rules.pop("tolerance", None)  # KEDA before 2.18 would prune it, and it would be written at every sync
        advanced["horizontalPodAutoscalerConfig"] = {"behavior": behavior}
    return {**fields, "advanced": advanced} if advanced else fields


def scaling_state(plan: ScalingPlan, context: ReconcileContext) -> ConditionState:
    """Return the state of the autoscaler from its conditions (KS-5.4)."""
    keda, children = plan.wva.keda is not None, context.children
    declared = children.scaled_objects if keda else children.autoscalers
    if declared is None:
        return fails(LLMReason.KIND_NOT_INSTALLED, _NO_SCALED_OBJECTS if keda else _NO_AUTOSCALERS, Stage.SPEC)
    if keda and context.operator.autoscaling.problem:
        text = f"ConfigMap {constants.OPERATOR_CONFIG}, key {AUTOSCALING_KEY}: {context.operator.autoscaling.problem}"
        return fails(LLMReason.RECONCILE_SCALING_ERROR, f"{text}, which ScaledObjects need", Stage.SPEC)
    observed = get(declared, plan.scaler, context.metadata.namespace)
    conditions = observed.status.conditions if observed is not None else None
    relevant = [c for type_ in (("Ready",) if keda else CONDITIONS) if (c := find(conditions, type_)) is not None]
    decided = [condition for condition in relevant if condition.status in ("True", "False")]
    named = f"{'ScaledObject' if keda else 'HorizontalPodAutoscaler'} {plan.scaler}"
    if not decided:
        reason = LLMReason.SCALED_OBJECT_PROGRESSING if keda else LLMReason.HPA_PROGRESSING
        text = f"{named} has no status yet; if this lasts, its controller is not running"
        return fails(reason, text if observed is not None else f"{named} does not exist yet")
    failing = next((condition for condition in decided if condition.status == "False"), None)
    if failing is None:
        return CONDITION_TRUE
    state = by_condition(failing)
    message = f"{named}: {state.message}"
    message = f"{message}; {_NO_VARIANTS}" if children.variants is None else with_hint(message, state.reason)
    return fails(state.reason, message, Stage.PROBE)
