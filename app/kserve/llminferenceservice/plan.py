"""The effective spec of a service, the inputs of its pod templates, and the source of each value in its pods."""

import itertools
from collections.abc import Iterator, Sequence

from msgspec import Raw

from app.hooks.protocol import get
from app.kserve import constants, devices, kvcache, lora, results
from app.kserve.llminferenceservice.combined import combined_advice
from app.kserve.llminferenceservice.merged import check_effective
from app.kserve.llminferenceservice.observed import ReconcileContext, Request, Service, is_stopped, reconcile_context
from app.kserve.operator import AUTOSCALING_KEY, DOCUMENTS, NO_TLS, OperatorConfigError
from app.kserve.references import references
from app.kserve.router.scheduler import with_tokenizer
from app.kserve.spec import merge
from app.kserve.spec.effective import Effective, Merged, combine
from app.kserve.spec.find import find_scheduler_config
from app.kserve.spec.merge import CombineError, Keyed, MissingConfigMapError
from app.kserve.spec.render import has_template, rendered
from app.kserve.workload.plan import MissingAccountError, PodPlan, workload_plan
from app.kserve.workload.scaling import scaling_children, scaling_plans
from app.kserve.workload.topology import propagated
from app.kube import field
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


def effective_spec(context: ReconcileContext) -> Effective:
    """Build the effective spec of a service. Raises :class:`CombineError`."""
    effective = combine(context)
    errors = check_effective(effective)
    errors += lora.check_types(effective.spec.model)  # its adapters (KS-7.7)
    errors += lora.check(effective.spec, context.metadata.name, final=True)
    if errors:
        raise CombineError(f"the combined spec is invalid: {field.aggregate(errors)}")
    return effective


# Inputs of pod templates besides the spec: objects as the API server stores them, so that a release cannot change
# them (docs/decisions/0017).

_REACH_PODS = (
    *constants.PROPAGATED_LABELS,
    *constants.PROPAGATED_ANNOTATIONS,
    *constants.PROPAGATED_LWS_ANNOTATIONS,
    f"{constants.GROUP}/",
)
"""Beginnings of the labels and annotations with a meaning for pods."""


def template_inputs(context: ReconcileContext, merged: Merged) -> dict[str, object]:
    """Return what the service refers to; nothing if a part of it cannot be found."""
    metadata, refs = context.metadata, references(merged.document)
    names = {"accounts": [*refs.accounts], "schedulerConfig": [*(refs.scheduler_config or ())]}
    try:
        names, _ = rendered(names, merged.layers, merged.data)
        reference = names["schedulerConfig"]
        scheduler_config = find_scheduler_config(context, *reference) if reference else ""
    except CombineError:
        return {}
    written = [layer for layer in merged.layers if layer.raw]
    templated = any(has_template(layer.spec) for layer in written)
    reach = ("",) if templated else (*_REACH_PODS, context.operator.credentials.storage_secret_name_annotation)
    return {
        "configs": {layer.source: Raw(layer.raw) for layer in written[:-1]},
        "operator": _operator_documents(context),
        "schedulerConfig": scheduler_config,
        "accounts": {name: _account(context, name) for name in names["accounts"]},
        "labels": propagated(metadata.labels, reach),
        "annotations": propagated(metadata.annotations, reach),
        "makesAccounts": context.managed_accounts,
        "makesBundles": context.children.config_maps is not None,
        "mountsCommonBundle": context.has_common_bundle,
    }


def _operator_documents(context: ReconcileContext) -> dict[str, str]:
    config_map = get(context.related.config_maps, constants.OPERATOR_CONFIG, context.operator.system_namespace)
    data = (config_map.data if config_map is not None else None) or {}
    return {key: text for key, text in data.items() if key in DOCUMENTS}


def _account(context: ReconcileContext, name: str) -> list[object]:
    """Return the parts of a ServiceAccount that downloads use: annotations about S3, and names of Secrets."""
    account = context.account(name)
    if account is None or get(context.children.service_accounts, name, context.metadata.namespace) is not None:
        return []
    return [propagated(account.metadata.annotations, (constants.EKS_ROLE, constants.S3_PREFIX)), account.secrets]


def explain(service: Service, request: Request, settings: Settings) -> list[Origin]:
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
    for path, segments, value in located(plan.spec, field.SPEC):
        keyed = merge.keyed(plan.spec, segments)
        source = _written(effective, [*base, *keyed], value) or _added(keyed, value, plan)
        rows.append(Origin(f"{place}.{path}", value, source))
    return rows


def _written(effective: Effective, path: Keyed, value: object) -> str:
    """Return the layer that set a value, or the field that caused it; empty if neither did."""
    before, after = find(effective.untraced, path), find(effective.document, path)
    if path[-1] == "args":
        before, after = value in (before or ()) or None, value in (after or ()) or None
    if before is None and after is not None:
        return "spec.tracing"
    return effective.source(path) if before is not None else ""


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


def cross_object_warnings(service: Service, request: Request, settings: Settings) -> list[field.Advice]:
    """Warn of operator settings without effect, and of what ``PresetsCombined`` reports in a cluster."""
    if is_stopped(service.metadata):
        return []
    advices: list[field.Advice] = []
    places = (service.metadata.namespace, settings.kserve_system_namespace)
    named = references(service.spec.model_dump(by_alias=True, exclude_none=True)).configs
    try:
        context = reconcile_context(service, request, settings)
        if context.encrypts:
            text = f"pods wait for certificates in Secret {context.names.certificates}; cert-manager can write it"
            advices.append(field.advice(field.SPEC, text))
        elif context.operator.ingress.tls:
            advices.append(field.advice(field.SPEC, NO_TLS, "no-effect"))
        is_known = all(any(get(request.related.configs, name, place) is not None for place in places) for name in named)
        if named and is_known:
            effective = effective_spec(context)
            advices += combined_advice(service, effective.merged.layers)
            workload_plan(effective.spec, context)
    except (MissingConfigMapError, MissingAccountError):
        pass
    except (OperatorConfigError, CombineError, results.PhaseError) as error:
        advices.append(field.advice(field.SPEC.child("baseRefs") if named else field.SPEC, str(error)))
    return advices
