"""What a user should know although it is valid: settings that nothing acts on, and combinations that rarely serve.

Source: KS-5 and KS-7.6. Where ``baseRefs`` may supply what seems to be missing, nothing is said about it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from app.kserve import lora
from app.kserve.llminferenceservice import parentrefs, v1alpha1
from app.kserve.llminferenceservice.checks import MODEL_URI, NO_MODEL, as_decided, storage_problem
from app.kserve.llminferenceservice.rules import HTTP, ROUTER, SCHEDULER, workloads
from app.kserve.llminferenceservice.types import (
    EndpointPickerIdentity,
    InferencePoolSpec,
    LLMInferenceServiceSpec,
    LLMInferenceServiceStatus,
    LLMModelSpec,
    NameReference,
    ObjectReference,
    ParallelismSpec,
    RouterSpec,
    SchedulerSpec,
    WorkloadSpec,
)
from app.kserve.names import MAIN, MODEL_PATH, RESERVED_LABELS, Names
from app.kserve.sources import doubt_of
from app.kserve.spec.template.language import OPEN
from app.kserve.workload.topology import is_pipeline_parallel
from app.kube import field
from app.kube.decode import SPEC
from app.kube.gatewayapi import DEFAULT_RULES, HTTPRouteSpec
from app.kube.names import validate_labels
from app.kube.resource import Resource

LONGEST_MULTI_NODE_NAME = 35
"""Above it, what the LeaderWorkerSet controller appends to the name no longer fits a label."""


def warnings(service: Resource[LLMInferenceServiceSpec, LLMInferenceServiceStatus]) -> list[str]:
    """Every warning, in the order of the spec."""
    spec, _ = as_decided(service)
    found = [*_model(spec), *_name(service.metadata.name, spec)]
    found += _unnamed(spec.base_refs, SPEC.child("baseRefs"))
    for workload, path in workloads(spec):
        found += _workload(workload, path, Names(service.metadata.name), bool(spec.base_refs))
    if spec.router is not None:
        found += _router(spec.router, bool(spec.base_refs))
        found += filter(None, [parentrefs.warning(spec)])
        found += _picker(spec.router.scheduler, Names(service.metadata.name))
    if spec.prefill is not None and not spec.base_refs and (spec.router is None or spec.router.scheduler is None):
        found.append(
            f"{SPEC.child('prefill')}: without router.scheduler nothing sends requests to the prefill pods, and the "
            "others do all the work; add router.scheduler"
        )
    return found


def without_effect(spec: LLMInferenceServiceSpec) -> Iterator[str]:
    """Fields of a config that nothing acts on, whichever service uses it."""
    if spec.model is not None:
        yield from _ignored_by_model(spec.model)
    for workload, path in workloads(spec):
        if workload.scaling is not None:
            yield _no_effect(path.child("scaling"), "the number of replicas is left alone; attach an autoscaler")
    if spec.router is not None:
        yield from _ignored_by_router(spec.router)


def _no_effect(path: field.Path, detail: str = "") -> str:
    return f"{path}: accepted, no effect" + (f"; {detail}" if detail else "")


# Model and name.


def _model(spec: LLMInferenceServiceSpec) -> Iterator[str]:
    if spec.model is None or spec.model == NO_MODEL:
        if not spec.base_refs:
            yield f"{SPEC.child('model')}: without a model nothing can be served; set model.uri"
        return
    problem = storage_problem(spec)
    if problem and spec.base_refs and spec.model.uri:
        yield f"{MODEL_URI}: {problem}"
    yield from _unfed(spec)
    yield from _ignored_by_model(spec.model)
    yield from lora.advice(spec)
    doubtful = doubt_of(spec.model.uri, own_command=_has_model(spec.template) or bool(spec.base_refs))
    if doubtful and lora.is_loaded(spec):
        yield field.advice(MODEL_URI, doubtful)


def _unfed(spec: LLMInferenceServiceSpec) -> Iterator[str]:
    initializer = spec.storage_initializer
    if initializer is None or initializer.enabled is not False or spec.base_refs or _has_model(spec.template):
        return
    yield (
        f"{SPEC.child('storageInitializer', 'enabled')}: nothing brings the model to {MODEL_PATH}, where the server of "
        f"the preset reads it; give container {MAIN} a command of its own, or mount a volume there"
    )


def _has_model(pod: dict[str, Any] | None) -> bool:
    """Whether the main container of a user's pod may find a model without the storage initializer."""
    containers: list[dict[str, Any]] = (pod or {}).get("containers") or []
    main = next((container for container in containers if container.get("name") == MAIN), {})
    mounted = [str(mount.get("mountPath")).rstrip("/") for mount in main.get("volumeMounts") or ()]
    return bool(main.get("command")) or any(path in (MODEL_PATH, posixpath.dirname(MODEL_PATH)) for path in mounted)


def _ignored_by_model(model: LLMModelSpec) -> Iterator[str]:
    if getattr(model, "criticality", None) is not None:  # a field of v1alpha1 only
        yield _no_effect(SPEC.child("model", "criticality"))


def _name(name: str, spec: LLMInferenceServiceSpec) -> Iterator[str]:
    multi_node = any(workload.worker is not None for workload, _ in workloads(spec))
    if multi_node and len(name) > LONGEST_MULTI_NODE_NAME:
        yield (
            f"metadata.name: {len(name)} characters; with worker, a LeaderWorkerSet's labels have room for about "
            f"{LONGEST_MULTI_NODE_NAME}"
        )


# Workloads.


def _workload(workload: WorkloadSpec, path: field.Path, names: Names, based: bool) -> Iterator[str]:
    if workload.scaling is not None:
        main = path is SPEC
        if workload.worker is not None:
            target = f"LeaderWorkerSet {names.multi_node if main else names.multi_node_prefill}"
        else:
            target = f"Deployment {names.main if main else names.prefill}"
        yield (
            f"{path.child('scaling')}: stored but not acted on; the number of replicas is left alone, attach a "
            f"HorizontalPodAutoscaler to {target}"
        )
    yield from _labels(workload.labels, path.child("labels"))
    if workload.parallelism is not None:
        yield from _parallelism(workload.parallelism, workload.worker is not None, path.child("parallelism"), based)
    for key, pod in (("template", workload.template), ("worker", workload.worker)):
        yield from _without_main(pod, path.child(key))


def _labels(labels: Mapping[str, str] | None, path: field.Path) -> Iterator[str]:
    plain = {key: value for key, value in (labels or {}).items() if OPEN not in key and OPEN not in value}
    for key in RESERVED_LABELS:
        if key in plain:
            yield f"{path.key(key)}: overrides a label that selectors use; the pods may drop out of the service's pool"
    for error in validate_labels(plain, path):
        if error.type is not field.ErrorType.FORBIDDEN:  # a mistake of its own
            yield f"{error}; pods with it are refused"


def _parallelism(parallelism: ParallelismSpec, worker: bool, path: field.Path, based: bool) -> Iterator[str]:
    data, local = parallelism.data, parallelism.data_local
    if data and local and (local > data or data % local):
        yield f"{path}: data, {data}, is not a multiple of dataLocal, {local}; some copies will be missing"
    if based:
        if not parallelism.expert and "expert" in parallelism.model_fields_set:
            yield _no_effect(path.child("expert"), "false counts as unset and does not override a base")
        return
    if not worker:
        ignored = [name for name, value in _settings(parallelism) if value]
        if ignored:
            yield _no_effect(
                path, f"single-node presets ignore {', '.join(ignored)}; pass them in the container's args"
            )
    elif is_pipeline_parallel(parallelism):
        yield (
            f"{path.child('pipeline')}: there is no preset for pipeline parallelism; refer to one of your own in "
            "baseRefs, or add a config of the well-known name"
        )


def _settings(parallelism: ParallelismSpec) -> Iterable[tuple[str, Any]]:
    return (
        ("tensor", parallelism.tensor),
        ("pipeline", parallelism.pipeline),
        ("data", parallelism.data),
        ("dataLocal", parallelism.data_local),
        ("dataRPCPort", parallelism.data_rpc_port),
        ("expert", parallelism.expert),
    )


def _without_main(pod: dict[str, Any] | None, path: field.Path) -> Iterator[str]:
    containers = pod.get("containers") if pod else None
    if containers and all(container.get("name") != MAIN for container in containers):
        yield f"{path.child('containers')}: no container is named {MAIN}, so all are added to those of the preset"


def _unnamed(refs: Sequence[NameReference | ObjectReference] | None, path: field.Path) -> Iterator[str]:
    """References by an empty name: the schema lets them pass, and nothing can be found by them."""
    for position, ref in enumerate(refs or ()):
        if not ref.name:
            yield f"{path.index(position)}: has no name, so nothing can be found and the service cannot start; set name"


# The router.


def _router(router: RouterSpec, based: bool) -> Iterator[str]:
    yield from _ignored_by_router(router)
    gateway = router.gateway
    yield from _unnamed(gateway.refs if gateway is not None else None, ROUTER.child("gateway", "refs"))
    for position, ref in enumerate((gateway.refs if gateway is not None else None) or ()):
        if ref.namespace is None:
            yield (
                f"{ROUTER.child('gateway', 'refs').index(position)}: no namespace, so the Gateway is looked for in the "
                "service's own"
            )
    if router.route is None and not based:
        if gateway is not None:
            yield _no_effect(ROUTER.child("gateway"), "add router.route")
        if router.scheduler is not None:
            yield f"{SCHEDULER}: without router.route no request goes through the pool; add router.route"
    http = router.route.http if router.route is not None else None
    yield from _unnamed(http.refs if http is not None else None, HTTP.child("refs"))
    if http is not None and http.spec is not None and not _has_rules(http.spec):
        yield f"{HTTP.child('spec')}: no rules, so those of the preset (or of baseRefs) are used"
    if router.scheduler is not None:
        yield from _scheduler(router.scheduler)


def _ignored_by_router(router: RouterSpec) -> Iterator[str]:
    if router.ingress is not None:
        yield _no_effect(ROUTER.child("ingress"), "use route and gateway")
    config = router.scheduler.config if router.scheduler is not None else None
    if config is not None and config.ref is not None and config.ref.optional is not None:
        yield _no_effect(SCHEDULER.child("config", "ref", "optional"), "the key must exist")


def _has_rules(spec: HTTPRouteSpec) -> bool:
    """Whether there are rules beside those that the API server fills in."""
    if not spec.rules:
        return False
    return [rule.model_dump(by_alias=True, exclude_unset=True) for rule in spec.rules] != DEFAULT_RULES


def _picker(scheduler: SchedulerSpec | None, names: Names) -> Iterator[str]:
    """A pool that asks another Service than the one that is made."""
    pool = scheduler.pool.spec if scheduler is not None and scheduler.pool is not None else None
    if pool is None:
        return
    key, picker = _endpoint_picker(pool)
    if picker.kind == "Service" and picker.name != names.scheduler_service:
        yield (
            f"{SCHEDULER.child('pool', 'spec', key, 'name')}: the Service {picker.name} is yours to make; the "
            f"scheduler's own is called {names.scheduler_service}"
        )


def _endpoint_picker(pool: InferencePoolSpec | v1alpha1.InferencePoolSpec) -> tuple[str, EndpointPickerIdentity]:
    """By the name that it has in the version of the API."""
    if isinstance(pool, v1alpha1.InferencePoolSpec):
        return "extensionRef", pool.extension_ref
    return "endpointPickerRef", pool.endpoint_picker_ref


def _scheduler(scheduler: SchedulerSpec) -> Iterator[str]:
    yield from _labels(scheduler.labels, SCHEDULER.child("labels"))
    yield from _without_main(scheduler.template, SCHEDULER.child("template"))
    if scheduler.pool is None or scheduler.pool.ref is None:
        return
    if not scheduler.pool.ref.name:
        yield _no_effect(SCHEDULER.child("pool", "ref"), "it names no InferencePool, so one is created")
    else:
        ignored = [
            name
            for name in ("template", "replicas", "labels", "annotations", "config")
            if getattr(scheduler, name) is not None
        ]
        if ignored:
            yield _no_effect(SCHEDULER, f"with pool.ref no scheduler is created; remove {', '.join(ignored)}")
