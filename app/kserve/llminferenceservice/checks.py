"""Every rule of a service that its types cannot say. Source: KS-7.

Admission and sync judge the user's own spec with :func:`validate`; what baseRefs and presets make of it is judged by
:func:`check_effective` at every sync, as ``PresetsCombined``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from app.hooks.sendable import clashes
from app.kserve import lora
from app.kserve.llminferenceservice import parentrefs, rules
from app.kserve.llminferenceservice.types import (
    LLMInferenceServiceSpec,
    LLMInferenceServiceStatus,
    LLMModelSpec,
    WorkloadSpec,
)
from app.kserve.sources import problem_of, shown
from app.kserve.spec.effective import EffectiveSpec
from app.kserve.spec.render import with_decided_templates
from app.kserve.spec.template.data import ServiceData
from app.kserve.spec.template.language import OPEN
from app.kserve.workload.topology import pods_per_replica
from app.kube import field, gatewayapi_rules
from app.kube.decode import SPEC, decode_document
from app.kube.modelfields import check_embedded
from app.kube.names import is_dns1035_label, reserved_keys
from app.kube.objects import ObjectMeta
from app.kube.resource import Resource
from app.settings import Settings
from app.workload import wholepod

Json = dict[str, Any]
Service = Resource[LLMInferenceServiceSpec, LLMInferenceServiceStatus]

NO_MODEL = LLMModelSpec.model_validate({"uri": ""})
"""How KServe stores a spec without a model."""
MODEL_URI = SPEC.child("model", "uri")


def validate(service: Service, old: Service | None, settings: Settings) -> list[field.Error]:
    """All violations in a user's spec; ``old`` on updates only. A route is judged as written, before rendering."""
    spec, errors = as_decided(service)
    errors += [*_name(service.metadata), *_model(spec), *lora.check(spec, service.metadata.name, final=False)]
    errors += [*rules.check(spec), *_route(service.spec), *_pool(spec)]
    errors += [*_bases(spec), *merge_clashes(spec), *reserved(spec), *_pods(spec)]
    if old is not None:
        errors += _unchanged(old.spec, spec)
    return errors


def as_decided(service: Service) -> tuple[LLMInferenceServiceSpec, list[field.Error]]:
    """The user's spec with the templates rendered that depend on the service alone, and what is wrong with them."""
    return with_decided_templates(service.spec, lambda spec: ServiceData(service.metadata, spec, "", ("", "")))


def check_effective(effective: Json) -> list[field.Error]:
    """Violations in the merged spec (KS-2.1 step 13); only the parts that rules look at are read."""
    spec, errors = decode_document(_ruled(effective), LLMInferenceServiceSpec)
    return errors if spec is None else list(rules.check(spec))


def check_rendered(spec: EffectiveSpec) -> list[field.Error]:
    """Violations in what the templates of a merged spec rendered to, judged as if it had been written."""
    embedded, _ = check_embedded(spec, SPEC)
    return embedded or list(_pods(spec))


# Names and models.


def _name(metadata: ObjectMeta) -> Iterator[field.Error]:
    name = metadata.name
    if name and not is_dns1035_label(name):
        yield field.invalid(
            field.Path("metadata").child("name"),
            name,
            "the service's objects are called after it: at most 63 lower case letters, digits and '-', starting with a "
            "letter and ending with a letter or digit",
        )


def _model(spec: LLMInferenceServiceSpec) -> Iterator[field.Error]:
    if spec.model is None or spec.model == NO_MODEL:
        return
    yield from model_urls(spec.model)
    problem = storage_problem(spec)
    if problem and not spec.base_refs:
        yield field.invalid(MODEL_URI, shown(spec.model.uri), problem)


def model_urls(model: LLMModelSpec) -> Iterator[field.Error]:
    """Addresses that are no URLs: the API's own types could not hold them (KS-7.5)."""
    yield from lora.check_url(model.uri, MODEL_URI)
    yield from lora.check_types(model)


def storage_problem(spec: LLMInferenceServiceSpec) -> str:
    """Why the model's address cannot be fetched from, or an empty text. A base may change the answer."""
    return problem_of(spec.model.uri, enabled=lora.is_loaded(spec)) if spec.model is not None else ""


# What Metacontroller or the API server cannot apply.


def _templates(spec: LLMInferenceServiceSpec) -> Iterator[tuple[Json | None, field.Path]]:
    """The pods that users write."""
    for workload, path in rules.workloads(spec):
        yield workload.template, path.child("template")
        yield workload.worker, path.child("worker")
    if spec.router is not None and spec.router.scheduler is not None:
        yield spec.router.scheduler.template, rules.SCHEDULER.child("template")


def _pods(spec: LLMInferenceServiceSpec) -> Iterator[field.Error]:
    """Mistakes that no base can mend; a text that is yet to be rendered may become anything."""
    for pod, path in _templates(spec):
        found = chain(wholepod.check(pod or {}, path), wholepod.amounts(pod or {}, path))
        yield from (error for error in found if OPEN not in error.body)


def reserved(spec: LLMInferenceServiceSpec) -> Iterator[field.Error]:
    """Labels and annotations by which Metacontroller knows its children; also a rule of configs."""
    for workload, path in rules.workloads(spec):
        yield from reserved_keys(workload.labels or {}, path.child("labels"))
        yield from reserved_keys(workload.annotations or {}, path.child("annotations"))
    scheduler = spec.router.scheduler if spec.router is not None else None
    if scheduler is not None:
        yield from reserved_keys(scheduler.labels or {}, rules.SCHEDULER.child("labels"))
        yield from reserved_keys(scheduler.annotations or {}, rules.SCHEDULER.child("annotations"))


def merge_clashes(spec: LLMInferenceServiceSpec) -> Iterator[field.Error]:
    """Lists in what goes into children of which Metacontroller, or the API server, would keep one item of two."""
    for pod, path in _templates(spec):
        yield from clashes(pod, path)
    router = spec.router
    http = router.route.http if router is not None and router.route is not None else None
    if http is not None and http.spec is not None:
        yield from clashes(http.spec.model_dump(by_alias=True, exclude_none=True), rules.HTTP.child("spec"))


# Bases.

MAX_BASES = 10
"""Configs that one service may name: real ones have up to three, and each costs a merge at every sync."""


def _bases(spec: LLMInferenceServiceSpec) -> Iterator[field.Error]:
    if len(spec.base_refs or ()) > MAX_BASES:
        yield field.too_many(SPEC.child("baseRefs"), len(spec.base_refs or ()), MAX_BASES)


# The router.


def _route(spec: LLMInferenceServiceSpec) -> Iterator[field.Error]:
    router = spec.router
    http = router.route.http if router is not None and router.route is not None else None
    if router is None or http is None or http.spec is None:
        return
    if (both := parentrefs.conflict(spec)) is not None:
        yield both
    yield from gatewayapi_rules.check(http.spec, rules.HTTP.child("spec"))


def _pool(spec: LLMInferenceServiceSpec) -> Iterator[field.Error]:
    scheduler = spec.router.scheduler if spec.router is not None else None
    pool = scheduler.pool if scheduler is not None else None
    if pool is not None and pool.ref is not None and pool.ref.name and pool.spec is not None:
        detail = "ref and spec are mutually exclusive: reference a pool of your own, or describe the managed one"
        yield field.invalid(rules.SCHEDULER.child("pool"), {"ref": pool.ref.name}, detail)


# Updates.


def _unchanged(old: LLMInferenceServiceSpec, new: LLMInferenceServiceSpec) -> Iterator[field.Error]:
    """The pods of one replica are a group whose size cannot change (KS-IM01)."""
    yield from _same_size(old, new, SPEC)
    if old.prefill is not None and new.prefill is not None:
        yield from _same_size(old.prefill, new.prefill, SPEC.child("prefill"))


def _same_size(old: WorkloadSpec, new: WorkloadSpec, path: field.Path) -> Iterator[field.Error]:
    before, after = pods_per_replica(old.parallelism) or 1, pods_per_replica(new.parallelism) or 1
    if before != after:
        yield field.not_supported(
            path.child("parallelism"),
            f"{after} pods per replica",
            [f"{before} pods per replica"],
            "the number cannot change: keep data/dataLocal (or pipeline) at this quotient, or create a new service",
        )


# The merged spec.


def _ruled(effective: Json) -> Json:
    """What rules look at: which pods there are, but not what is in them; that the route has a spec, but not which."""
    ruled = _ruled_workload(effective)
    if isinstance(effective.get("prefill"), dict):
        ruled["prefill"] = _ruled_workload(effective["prefill"])
    router = effective.get("router")
    if isinstance(router, dict):
        ruled["router"] = {
            "route": _ruled_route(router.get("route")),
            "gateway": router.get("gateway"),
            "scheduler": _ruled_scheduler(router.get("scheduler")),
        }
    return ruled


def _ruled_workload(workload: Json) -> Json:
    ruled: Json = {key: workload[key] for key in ("replicas", "scaling", "parallelism") if key in workload}
    if workload.get("worker") is not None:
        ruled["worker"] = {}
    return ruled


def _ruled_route(route: Any) -> Any:
    http = route.get("http") if isinstance(route, dict) else None
    if not isinstance(http, dict):
        return route
    return {"http": {"refs": http.get("refs"), "spec": None if http.get("spec") is None else {}}}


def _ruled_scheduler(scheduler: Any) -> Any:
    if not isinstance(scheduler, dict):
        return scheduler
    config = scheduler.get("config")
    if isinstance(config, dict) and isinstance(config.get("inline"), str):
        text = config["inline"]  # from a ConfigMap, verbatim
        config = {**config, "inline": {"text": text} if len(text) >= rules.SHORTEST_INLINE else {}}
    return {"replicas": scheduler.get("replicas"), "config": config}
