"""Rules for a user's own spec, and for what presets and baseRefs make of it. Source: KS-7.2 and KS-7.3."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice

from app import images
from app.hooks import sendable
from app.kserve import constants, devices, gatewayapi, kvcache, lora
from app.kserve.llminferenceservice import types
from app.kserve.spec.effective import Effective
from app.kserve.spec.route import ROUTE
from app.kube import correction, field, merge, modelfields, podspec
from app.kube.base import Json
from app.kube.embedded import types as embedded_types
from app.kube.names import reserved_keys
from app.kube.reading import decode
from app.kube.schema.rules import broken, violations
from app.limits import MAX_ERRORS, MAX_SHOWN_ERRORS
from app.workload.advice import podadvice
from app.workload.autoscaler import check_behavior
from app.workload.rules import podrules, wholepod

ROUTER = field.SPEC.child("router")
HTTP = ROUTER.child("route", "http")
SCHEDULER = ROUTER.child("scheduler")


def check_effective(effective: Effective, release: str) -> list[field.Error]:
    """Return the violations in the merged spec, including what its templates render to (KS-2.1 step 13).

    ``release`` is the release of the API server; empty if it is not known.
    """
    errors = [*check(effective.spec, based=False), *reserved(effective.spec)]
    embedded = modelfields.check_embedded(effective.spec, field.SPEC)[0] if effective.templated else []
    if embedded:
        return [*errors, *embedded]
    spec = effective.spec
    servers = chain.from_iterable(workload.pods(path) for workload, path in spec.workloads())
    templates = servers if spec.made_scheduler is None else spec.templates()  # a picker that is not made needs nothing
    users = ((pod or {}, path) for pod, path in templates if effective.is_users(path))
    base = generated(effective.spec)
    reported = chain(_rendered_route(effective), *(_check_pod(pod, path, base, release) for pod, path in users))
    pod_errors = [*islice(reported, MAX_ERRORS)]
    shown = [_sourced(error, effective) for error in pod_errors[:MAX_SHOWN_ERRORS]]
    return [*errors, *shown, *pod_errors[MAX_SHOWN_ERRORS:]]


def _rendered_route(effective: Effective) -> Iterator[field.Error]:
    """The rules of HTTPRoutes, for a route of configs: their schema cannot judge what a template renders to."""
    path = HTTP.child("spec")
    document = merge.find(effective.document, ROUTE)
    if document is None or not effective.templated or not effective.is_users(path):
        return
    route, errors = decode.decode_document(document, gatewayapi.HTTPRouteSpec, path)
    yield from errors if route is None else violations(route, path)


def generated(spec: types.LLMInferenceServiceSpec) -> Json:
    """Return the image of the storage initializer, which a user's container of that name is laid over (KS-3.7).

    Where nothing is downloaded that container is left out, so that it needs no image either.
    """
    if not lora.is_loaded(spec):
        return {}
    return {"initContainers": [{"name": constants.STORAGE_INITIALIZER, "image": images.STORAGE_INITIALIZER}]}


def _check_pod(pod: Json, path: field.Path, base: Json, release: str) -> Iterator[field.Error]:
    """Reject what Kubernetes refuses in a pod with which nothing is merged any more, but for the model."""
    yield from podrules.check(podrules.POD, pod, path)
    yield from wholepod.amounts(pod, path)
    yield from wholepod.missing(pod, path, base, (*constants.MODEL_VOLUMES, devices.CLAIM))
    for where, volume in path.child("volumes").each(pod.get("volumes") or ()):
        unnamed = (image for image in podadvice.unnamed_image(volume, where) if image.is_error_in(release))
        yield from (field.required(image.path, image.message) for image in unnamed)


def _sourced(error: field.Error, effective: Effective) -> field.Error:
    """The error with the layers that it comes from, where that is not the user's spec alone."""
    sources = effective.sources((error.path, error.against))
    if sources in ([], ["spec"]):
        return error
    named = " and ".join("the service" if source == "spec" else source for source in sources)
    return replace(error, body=f"{error.body} (set by {named})", suggested=())


def check(spec: types.LLMInferenceServiceSpec, *, based: bool) -> Iterator[field.Error]:
    """The rules between fields; ``based``: a base may have what is missing, which shows once it is merged."""
    if spec.router is not None:
        yield from _router(spec.router)
        if spec.router.route is not None:
            yield from _group(spec.router, spec.router.route, based=based)
    for workload, path in spec.workloads():
        yield from parallelism(workload, path, based=based)
    yield from caches(spec, is_part=based)
    if spec.scheduler is not None:
        yield from _scheduler(spec.scheduler)
    yield from scaling(spec)


def caches(spec: types.LLMInferenceServiceSpec, *, is_part: bool) -> Iterator[field.Error]:
    for workload, path in spec.workloads():
        yield from kvcache.check(workload.kv_cache_offloading, path.child("kvCacheOffloading"), is_part=is_part)


def _router(router: types.RouterSpec) -> Iterator[field.Error]:
    """Reject references to routes beside a route's spec, or beside the default Gateway (KS-R01, KS-R02)."""
    http = router.route.http if router.route is not None else None
    if http is None or not http.refs:
        return
    names = [ref.name for ref in http.refs]
    if http.spec is not None:
        detail = "refs and spec are mutually exclusive: reference HTTPRoutes of your own, or describe the managed one"
        yield field.invalid(HTTP, {"refs": names}, detail)
    if router.gateway is not None and not router.gateway.refs:
        detail = (
            "HTTPRoutes of your own do not use the default Gateway: remove gateway, or name the Gateway in gateway.refs"
        )
        yield field.invalid(HTTP.child("refs"), names, detail)


def _group(router: types.RouterSpec, route: types.RouteSpec, *, based: bool) -> Iterator[field.Error]:
    """Require weight and scheduler of a group, which shares requests by the managed route (KS-R04, KS-R05)."""
    path = ROUTER.child("route")
    if route.group and router.ingress is not None:
        yield field.invalid(path.child("group"), route.group, "an Ingress cannot share requests; remove ingress")
        return
    if route.group and route.weight is None and not based:
        yield field.required(path.child("weight"), "set the weight of the service in its group")
    if route.weight is not None and not route.group and not based:
        yield field.required(path.child("group"), "name the group whose requests the weight divides")
    if route.group and route.http is not None and route.http.refs:
        detail = "only the managed route shares requests; remove http.refs, or write the weights into your own routes"
        yield field.invalid(path.child("group"), route.group, detail)


def parallelism(workload: types.WorkloadSpec, path: field.Path, *, based: bool) -> Iterator[field.Error]:
    """Reject a worker without parallelism, both kinds of it, and half of data parallelism (KS-P01 to KS-P05)."""
    sizes = workload.parallelism or types.NO_PARALLELISM
    data_parallel, pipeline_parallel = sizes.is_data_parallel, sizes.is_pipeline_parallel
    if workload.worker is not None and not data_parallel and not pipeline_parallel and not based:
        detail = (
            "several nodes need data parallelism (parallelism.data and dataLocal) or pipeline parallelism "
            "(parallelism.pipeline); without either, leave worker out"
        )
        yield field.forbidden(path.child("worker"), detail)
    path = path.child("parallelism")
    if data_parallel and pipeline_parallel:
        value = {"pipeline": sizes.pipeline, "data": sizes.data, "dataLocal": sizes.data_local}
        detail = "pipeline cannot be combined with data and dataLocal; keep one kind of parallelism"
        yield field.invalid(path, value, detail)
    elif sizes.data is not None and sizes.data_local is None and not based:
        yield field.invalid(path.child("dataLocal"), None, "data requires dataLocal, the number of copies on each node")
    elif sizes.data_local is not None and sizes.data is None and not based:
        yield field.invalid(path.child("data"), None, "dataLocal requires data, the number of copies in all")


def _scheduler(scheduler: types.SchedulerSpec) -> Iterator[field.Error]:
    """Require one of inline and ref, each with content, in a scheduler's config (KS-S02 to KS-S05)."""
    yield from scheduler_replicas(scheduler)
    config = scheduler.config
    if config is None:
        return
    path = SCHEDULER.child("config")
    if config.inline is None and config.ref is None:
        yield field.invalid(path, {}, "set inline or ref, or leave config out for the default")
    if config.inline is not None and config.ref is not None:
        yield field.invalid(path, {"ref": config.ref.name}, "inline and ref are mutually exclusive; remove one")
    if not isinstance(config.inline, (dict, str, type(None))):
        yield correction.wrong_type(path.child("inline"), config.inline, "object")
    elif config.inline is not None and _is_empty(config.inline):
        detail = "must not be empty; write an EndpointPickerConfig, or remove config"
        yield field.invalid(path.child("inline"), config.inline, detail)
    if config.ref is not None and not config.ref.name:
        yield field.invalid(path.child("ref", "name"), "", "must name the ConfigMap that holds the configuration")


def _is_empty(inline: Json | str) -> bool:
    return len(inline.strip()) <= len("{}") if isinstance(inline, str) else not inline


def scheduler_replicas(scheduler: types.SchedulerSpec | None) -> Iterator[field.Error]:
    """Require at least one endpoint picker; also a rule of configs (KS-S01, KS-C02)."""
    if scheduler is not None and scheduler.replicas is not None and scheduler.replicas <= 0:
        detail = "must be at least 1; remove scheduler to have none"
        yield field.invalid(SCHEDULER.child("replicas"), scheduler.replicas, detail)


def scaling(spec: types.LLMInferenceServiceSpec) -> Iterator[field.Error]:
    """The rules of autoscaling, and values that the API server would refuse, or Metacontroller would drop."""
    for workload, path in spec.workloads():
        yield from broken(workload.constraints, workload, path)
        if workload.scaling is None:
            continue
        yield from violations(workload.scaling, path.child("scaling"))
        for behavior_path, behavior, _ in modelfields.embedded_values(workload.scaling, path.child("scaling")):
            yield from check_behavior(behavior, behavior_path)
            yield from sendable.check(behavior, behavior_path)


def pods(spec: types.LLMInferenceServiceSpec) -> Iterator[field.Error]:
    """Check for errors that no base can correct; a base may supply required fields, and templates any value."""
    for written, path in spec.templates():
        pod = podspec.normalised(written or {})
        errors = chain(podrules.check(podrules.POD, pod, path), wholepod.amounts(pod, path))
        yield from (e for e in errors if constants.OPEN not in e.body and e.type is not field.ErrorType.REQUIRED)


def incomplete(pod: Json, path: field.Path, base: Json) -> Iterator[field.Error]:
    """Check for what is missing in the fields of a pod that no preset completes, and which :func:`pods` lets pass."""
    for name, value in podspec.normalised(pod).items():
        if name in embedded_types.TYPES["PodSpec"] and name not in base and name not in (*wholepod.LISTS, "volumes"):
            errors = podrules.check(f"PodSpec.{name}", value, path.child(name))
            yield from (error for error in errors if error.type is field.ErrorType.REQUIRED)


def reserved(spec: types.LLMInferenceServiceSpec) -> Iterator[field.Error]:
    """Labels and annotations by which Metacontroller knows its children; also a rule of configs."""
    for workload, path in spec.workloads():
        yield from reserved_keys(workload.labels or {}, path.child("labels"))
        yield from reserved_keys(workload.annotations or {}, path.child("annotations"))
    if spec.scheduler is not None:
        yield from reserved_keys(spec.scheduler.labels or {}, SCHEDULER.child("labels"))
        yield from reserved_keys(spec.scheduler.annotations or {}, SCHEDULER.child("annotations"))
