"""Rules of a user's own spec, before admission and sync, and what to tell a user of a valid one. Source: KS-5 and KS-7.

Those that hold for the merged spec too are in :mod:`app.kserve.llminferenceservice.merged`.
"""

import functools
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import get_args

from app.hooks.sendable import clashes
from app.kserve import devices, kvcache, lora
from app.kserve.advice.arguments import additional_words, argument_warnings
from app.kserve.advice.kvevents import events_advice
from app.kserve.advice.picker import unread_advice
from app.kserve.advice.prefill import prefill_advice
from app.kserve.constants import (
    ENABLE_AUTH,
    MAIN,
    MODEL_PATH,
    MODEL_ROUTING,
    MODELCAR_INIT,
    OBJECTIVE_HEADER,
    OPEN,
    RESERVED_LABELS,
    STOP,
    STORAGE_INITIALIZER,
)
from app.kserve.conversion import LORA_CRITICALITIES, MODEL_CRITICALITY, adapter_criticalities
from app.kserve.gatewayapi import DEFAULT_RULES, ParentReference, newer_fields
from app.kserve.llminferenceservice import merged, types, v1alpha1
from app.kserve.llminferenceservice.merged import HTTP, ROUTER, SCHEDULER
from app.kserve.llminferenceservice.observed import LLMService, is_stopped
from app.kserve.llminferenceservice.podview import (
    MODEL_URI,
    adds_gpus,
    engine_of,
    is_from_hub,
    pod_views,
    preset_of,
    presets_below,
)
from app.kserve.names import Names
from app.kserve.operator import OperatorConfig
from app.kserve.sources import Provider, doubt_of, is_mounted, problem_of, shown
from app.kserve.spec import pickerconfig, presets, render, tracing
from app.kserve.spec.parallelism import (
    claimed,
    contradictions,
    doubled,
    ignored_by_server,
    undersized,
    unused,
    with_command,
)
from app.kserve.spec.presets.edition import ROUTE
from app.kserve.spec.route import ROUTE as ROUTE_PATH
from app.kserve.spec.route import is_invalid_path, model_path, most_adapters, replaced_as_a_whole
from app.kserve.spec.template.data import ServiceData
from app.kserve.tls import tls_advice
from app.kserve.workload.artifacts import IGNORED
from app.kserve.workload.credentials import server_tokens, token_not_for_download
from app.kube import field, modelfields, names, podspec
from app.kube.base import Json
from app.kube.field import SPEC, Advice, advice
from app.kube.merge import find
from app.kube.objects import ObservedMeta
from app.kube.schema import fieldclass
from app.kube.schema.rules import violations
from app.limits import MAX_BASES
from app.settings import Settings
from app.workload.advice import lineadvice, podadvice
from app.workload.advice.advise import advise
from app.workload.engines.commandline import CommandLine, words
from app.workload.engines.engine import ADDITIONAL, Engine
from app.workload.engines.metrics import without_metrics
from app.workload.rules.fieldrules import object_name

_VLLM = Engine("vllm")
NO_MODEL = types.LLMModelSpec.model_validate({"uri": ""})
"""KServe's stored form of a spec without a model."""
MODEL_NAME = SPEC.child("model", "name")
WEIGHT = ROUTER.child("route", "weight")
NAME = field.METADATA.child("name")
_CONFIDENTIAL = SPEC.child("model", "confidential")
_SWITCH = ("TRUE", "True", "true", "FALSE", "False", "false")
_RESOURCE = re.compile(r"kbs:///[^/]+/[^/]+/[^/]+|.*\{\{.*", re.DOTALL)
Place = tuple[str, str, str]
"""Namespace and name of a Gateway, and its listener, where ``gateway.refs`` name any."""
_OPERATOR = OperatorConfig("")
"""The operator's defaults: templates that print its settings are rendered when the service is synced."""


def validate(service: LLMService, old: LLMService | None, settings: Settings) -> Iterator[field.Error]:
    """Reject mistakes in a user's spec; ``old`` on updates only. A route is judged as written, before rendering."""
    spec, errors = as_decided(service)
    yield from errors
    yield from _name(service.metadata)
    yield from _model(spec)
    yield from lora.check(spec, service.metadata.name, final=False)
    yield from merged.check(spec, based=bool(spec.base_refs))
    yield from _route(service.spec)
    yield from _pool(spec)
    if spec.base_refs and len(spec.base_refs) > MAX_BASES:
        yield field.too_many(SPEC.child("baseRefs"), len(spec.base_refs), MAX_BASES)
    yield from merge_clashes(spec)
    yield from clashes(replaced_as_a_whole(_route_document(spec)), HTTP.child("spec"))
    yield from merged.reserved(spec)
    yield from merged.pods(spec)
    if not isinstance(spec, v1alpha1.LLMInferenceServiceSpecV1Alpha1):  # as in KServe v0.20
        yield from devices.check(service.metadata)
    if old is not None:
        yield from _unchanged(old.spec, spec)


def warnings(service: LLMService) -> Iterator[field.Advice]:
    """Warn of what has no effect or a bad one (KS-7.6). A value that ``baseRefs`` may supply is not missing."""
    spec, _ = as_decided(service)
    based = bool(spec.base_refs)
    below = None if based else presets_below(spec)
    yield from _model_advice(spec)
    yield from _source_advice(spec)
    yield from _initializer_advice(spec)
    yield from _image_user_advice(spec)
    yield from _token_advice(service.metadata, spec)
    yield from _login_advice(service.metadata)
    yield from podadvice.annotation_warnings(service.metadata, {STOP: _SWITCH})
    yield from devices.device_advice(service.metadata)
    yield from lora.advice(spec)
    yield from prefill_advice(spec, based)
    yield from _name_advice(service.metadata.name, spec)
    yield from fieldclass.without_effect(spec, SPEC)
    yield from _criticality_advice(service.metadata, spec)
    yield from _unnamed(spec.base_refs, SPEC.child("baseRefs"))
    for workload, path in spec.workloads():
        yield from _workload_advice(workload, path, based)
    claims_devices = devices.device_request(service.metadata) is not None
    yield from advise(pod_views(spec, below, claims_devices=claims_devices))
    yield from _script_advice(spec, based=based)
    if spec.tracing is not None:
        yield from tracing.tracing_advice(spec.tracing, based)
    if below is not None:
        yield from _missing(spec, below)
        if spec.scheduler is not None:
            yield from unread_advice(spec.scheduler, find(below, ("router", "scheduler")) or {}, SCHEDULER)
            yield from events_advice(spec, below)
        certificates = Names(service.metadata.name).certificates
        pods = (pod for workload, path in spec.workloads() for pod in workload.pods(path))
        yield from chain.from_iterable(tls_advice(pod, path, certificates) for pod, path in pods)
        yield from () if claims_devices else _doubled(spec)
        written = [pod for workload, path in spec.workloads() for pod, _ in workload.pods(path) if pod is not None]
        yield from devices.container_advice(service.metadata, written)
    yield from _metrics_advice(spec)
    yield from _claim_advice(spec, devices.claimed(service.metadata))
    if spec.router is not None:
        yield from _router_advice(spec.router, based)
        yield from _redundant(spec)
        yield from () if based else _selector_advice(spec)
        yield from _rule_name_advice(service.metadata.name, spec)
        yield from _routing_advice(service.metadata, spec)
    if spec.prefill is not None and not based and spec.scheduler is None:
        message = (
            "without router.scheduler nothing sends requests to the prefill pods, and the others do all the work; add "
            "router.scheduler"
        )
        yield advice(SPEC.child("prefill"), message)


def as_decided(service: LLMService) -> tuple[types.LLMInferenceServiceSpec, list[field.Error]]:
    """The user's spec with the templates rendered that depend on the service alone, and what is wrong with them."""
    return render.with_decided_templates(service.spec, lambda spec: ServiceData(service.metadata, spec, _OPERATOR))


def _name(metadata: ObservedMeta) -> Iterator[field.Error]:
    """Reject a name with which the names of the service's objects cannot begin."""
    if metadata.name and not names.is_dns1035_label(metadata.name):
        detail = (
            "must be at most 63 lower case letters, digits and '-', starting with a letter and ending with a letter or "
            "digit: the names of the service's objects begin with it"
        )
        yield field.invalid(NAME, metadata.name, detail)


def _model(spec: types.LLMInferenceServiceSpec) -> Iterator[field.Error]:
    """Reject an address from which nothing can be fetched, and an invalid name of a key (KS-7.6)."""
    if spec.model is None or spec.model == NO_MODEL:
        return
    yield from model_urls(spec.model)
    problem = problem_of(spec.model.uri, enabled=lora.is_loaded(spec))
    if problem and not spec.base_refs:
        yield field.invalid(MODEL_URI, shown(spec.model.uri), problem)
    confidential = spec.model.confidential
    is_encrypted = confidential is not None and confidential.enabled and bool(confidential.resource_id)
    if confidential is not None and is_encrypted and not _RESOURCE.fullmatch(confidential.resource_id):
        detail = "must name a resource of the key broker: kbs:///<repository>/<type>/<tag>"
        yield field.invalid(_CONFIDENTIAL.child("resourceId"), confidential.resource_id, detail)


def model_urls(model: types.LLMModelSpec) -> Iterator[field.Error]:
    """Require addresses to be valid URLs, as the API's own types do (KS-7.6)."""
    yield from lora.check_url(model.uri, MODEL_URI)
    yield from lora.check_types(model)


def merge_clashes(spec: types.LLMInferenceServiceSpec) -> Iterator[field.Error]:
    """Lists of pods of which Metacontroller, or the API server, would keep one item of two."""
    for pod, path in spec.templates():
        yield from clashes(pod, path)


def _route_document(spec: types.LLMInferenceServiceSpec) -> Json:
    http = spec.http
    return http.spec.model_dump(by_alias=True, exclude_none=True) if http is not None and http.spec is not None else {}


def _rule_name_advice(service: str, spec: types.LLMInferenceServiceSpec) -> Iterator[Advice]:
    """Warn of names of rules that are left out, because Metacontroller would lose items of their lists, or not unique.

    Istio knows the endpoint pickers of all rules of a Gateway by the names of the rules.
    """
    route = _route_document(spec)
    for position, rule in enumerate(replaced_as_a_whole(route).get("rules") or ()):
        path, written = HTTP.child("spec", "rules").index(position).child("name"), route["rules"][position].get("name")
        if rule.get("name") != written:
            hint = "two items of a list in this rule have the same key; Metacontroller keeps both only without the name"
            yield field.no_effect(path, hint)
        elif written and OPEN not in written and not written.startswith(service):
            hint = f"begin it with {service}-, or remove it" if service else "remove it"
            yield advice(path, f"with Istio, all rules of this name at a Gateway use one endpoint picker; {hint}")


def rule_timeouts(spec: types.LLMInferenceServiceSpec) -> Iterator[Advice]:
    """Warn of rules without timeouts: gateways cut off an answer that the model is still writing."""
    rules = spec.http.spec.rules if spec.http is not None and spec.http.spec is not None else None
    for path, rule in HTTP.child("spec", "rules").each(rules or ()):
        times = rule.timeouts
        if rule.backend_refs and (times is None or (times.request is None and times.backend_request is None)):
            message = "some gateways end answers after 15 seconds; set request: 0s, which presets have, for no limit"
            yield advice(path.child("timeouts"), message)


def _routing_advice(metadata: ObservedMeta, spec: types.LLMInferenceServiceSpec) -> Iterator[Advice]:
    """Warn of rules of the managed route that cannot be made, or that not every gateway obeys."""
    yield from rule_timeouts(spec)
    if spec.route is None or (spec.http is not None and spec.http.refs):
        return
    if spec.route.group and spec.scheduler is not None:
        message = (
            "not every gateway divides requests between services that have a scheduler each "
            "(docs/howto/one-address.md lists those that do); without router.scheduler all do"
        )
        yield advice(ROUTER.child("route", "group"), message)
    if not spec.base_refs and (spec.http is None or spec.http.spec is None or not spec.http.spec.rules):
        yield from _model_path_advice(metadata.namespace or "default", spec)
        yield from _room_advice(spec)


def _model_path_advice(namespace: str, spec: types.LLMInferenceServiceSpec) -> Iterator[Advice]:
    """Warn of a model's name that no path of a URL can have, so the route has no rules for it."""
    model = spec.model.name if spec.model is not None else None
    if model and OPEN not in model and is_invalid_path(model_path(namespace, model)):
        message = (
            "cannot stand in a URL's path, so the route has no rules for /publishers/…/models/ and this name; the "
            "service's own path and the model's header lead to it"
        )
        yield advice(MODEL_NAME, message)


def _room_advice(spec: types.LLMInferenceServiceSpec) -> Iterator[Advice]:
    """Warn of more adapters than a route has room for, which then has matches for none of them."""
    listed = spec.model.lora.adapters if spec.model is not None and spec.model.lora is not None else ()
    adapters = lora.adapter_names(listed) if lora.is_loaded(spec) else []
    if len(adapters) > _room() and (spec.annotations or {}).get(MODEL_ROUTING) != "false":
        message = (
            f"a route has room for {_room()} adapters, so none of these {len(adapters)} is selected by the header with "
            "its name; divide them between services, or let clients use the service's own path"
        )
        yield advice(lora.ADAPTERS, message)


@functools.cache
def _room() -> int:
    """Return the number of adapters for which the built-in route has room."""
    rules = find(presets.LATEST[ROUTE], (*ROUTE_PATH, "rules"))
    header = next(h for rule in rules for match in rule["matches"] for h in match.get("headers") or ())
    return most_adapters(rules, header["name"], header["value"].rpartition("/")[0] + "/")


def _route(spec: types.LLMInferenceServiceSpec) -> Iterator[field.Error]:
    """Reject parentRefs beside gateway.refs with other Gateways (KS-R03a, KS-R03c)."""
    if spec.http is None or spec.http.spec is None:
        return
    parents, refs = _gateways(spec)
    if parents and refs and not _are_same(parents, refs, spec):
        detail = (
            "parentRefs and gateway.refs are mutually exclusive: remove parentRefs, the route attaches to gateway.refs"
        )
        yield field.invalid(HTTP.child("spec"), {"parentRefs": [name for _, name, _ in parents]}, detail)
    yield from violations(spec.http.spec, HTTP.child("spec"))


def _selector_advice(spec: types.LLMInferenceServiceSpec) -> Iterator[Advice]:
    """Warn of labels that a pool selects and pods do not have. All pods have the labels of the default selectors."""
    selector: types.PoolSelector | Mapping[str, str] | None  # v1alpha1 has the labels alone
    selector = spec.pool.spec.selector if spec.pool is not None and spec.pool.spec is not None else None
    labels = selector.match_labels if isinstance(selector, types.PoolSelector) else selector
    path = SCHEDULER.child("pool", "spec", "selector", "matchLabels")
    for key, value in (labels or {}).items():
        if key not in RESERVED_LABELS and OPEN not in value and (spec.labels or {}).get(key) != value:
            yield advice(path.key(key), "no pod has this label, so requests find no server; add it to spec.labels")


def _redundant(spec: types.LLMInferenceServiceSpec) -> Iterator[Advice]:
    """Warn of parentRefs that repeat gateway.refs (KS-R03b)."""
    parents, refs = _gateways(spec)
    if parents and _are_same(parents, refs, spec):
        yield advice(HTTP.child("spec", "parentRefs"), "repeats gateway.refs and can be left out")


def _are_same(parents: Sequence[Place], refs: Sequence[Place], spec: types.LLMInferenceServiceSpec) -> bool:
    """Report whether both name the same Gateways, in any order, which v1alpha1 does not admit."""
    return Counter(parents) == Counter(refs) and not isinstance(spec, v1alpha1.LLMInferenceServiceSpecV1Alpha1)


def _gateways(spec: types.LLMInferenceServiceSpec) -> tuple[list[Place], list[Place]]:
    """Return the parents in the route's parentRefs, and those in ``gateway.refs``."""
    router, http = spec.router, spec.http
    parents = http.spec.parent_refs if http is not None and http.spec is not None else None
    refs = router.gateway.refs if router is not None and router.gateway is not None else None
    listeners = any(ref.section_name for ref in refs or ())
    return _places(parents, listeners=listeners), _places(refs, listeners=listeners)


def _places(references: Sequence[ParentReference | types.ListenerReference] | None, *, listeners: bool) -> list[Place]:
    return [(r.namespace or "", r.name or "", (r.section_name or "") if listeners else "") for r in references or ()]


def _pool(spec: types.LLMInferenceServiceSpec) -> Iterator[field.Error]:
    """Reject a pool that is referenced and described."""
    if spec.pool is None or spec.pool.spec is None:
        return
    if spec.pool_ref:
        detail = "ref and spec are mutually exclusive: reference a pool of your own, or describe the managed one"
        yield field.invalid(SCHEDULER.child("pool"), {"ref": spec.pool_ref}, detail)
    yield from violations(spec.pool.spec, SCHEDULER.child("pool", "spec"))


def _unchanged(old: types.LLMInferenceServiceSpec, new: types.LLMInferenceServiceSpec) -> Iterator[field.Error]:
    """Reject a changed number of pods in a replica, which are a group of fixed size (KS-IM01)."""
    for (earlier, _), (workload, path) in zip(old.workloads(), new.workloads(), strict=False):
        before, after = earlier.pods_per_replica or 1, workload.pods_per_replica or 1
        if before != after:
            yield field.not_supported(
                path.child("parallelism"),
                f"{after} pods per replica",
                [f"{before} pods per replica"],
                "the number cannot change: keep data/dataLocal (or pipeline) at this quotient, or create a new service",
            )


# What to say of a valid spec.

_OUTAGE = "running pods end before new ones are ready, and no request is answered meanwhile"


def update_warnings(service: LLMService, old: LLMService, settings: Settings) -> Iterator[Advice]:
    """Warn of changes by which a workload is deleted (KS-7.6). With ``baseRefs`` a base may have what changes."""
    before, after = old.spec, service.spec
    if before.base_refs or after.base_refs or is_stopped(old.metadata) or is_stopped(service.metadata):
        return
    on_one_node = before.worker is None and after.worker is None
    if on_one_node and (before.prefill is None) != (after.prefill is None) and before.replicas != 0:
        deployment = f"Deployment {Names(service.metadata.name).main}"
        message = f"{deployment} is deleted and made anew, because its selector cannot change: {_OUTAGE}"
        yield advice(SPEC.child("prefill"), message)
    for (earlier, _), (workload, path) in zip(before.workloads(), after.workloads(), strict=False):
        if (earlier.worker is None) != (workload.worker is None) and earlier.replicas != 0:
            kinds = ("LeaderWorkerSet", "Deployment") if workload.worker is None else ("Deployment", "LeaderWorkerSet")
            yield advice(path.child("worker"), f"the {kinds[0]} is deleted, and a {kinds[1]} made: {_OUTAGE}")


def _model_advice(spec: types.LLMInferenceServiceSpec) -> Iterator[Advice]:
    """Warn of a service without a model, and of one that nothing brings into the pods."""
    if spec.model is None or spec.model == NO_MODEL:
        if not spec.base_refs:
            yield advice(SPEC.child("model"), "without a model nothing can be served; set model.uri")
        return
    problem = problem_of(spec.model.uri, enabled=lora.is_loaded(spec))
    if problem and spec.base_refs and spec.model.uri:
        yield advice(MODEL_URI, problem)
    initializer = spec.storage_initializer
    if initializer is None or initializer.enabled is not False or spec.base_refs or _has_model(spec.template):
        return
    message = (
        f"the model is not mounted at {MODEL_PATH}, where the server of the preset reads it; give container {MAIN} a "
        "command, or mount a volume there"
    )
    yield advice(SPEC.child("storageInitializer", "enabled"), message)


def _source_advice(spec: types.LLMInferenceServiceSpec) -> Iterator[Advice]:
    """Warn of addresses that may not be fetched, and of keys for what is not downloaded."""
    if spec.model is None:
        return
    is_loaded, mounted = lora.is_loaded(spec), is_mounted(spec.model.uri)
    doubt = doubt_of(spec.model.uri, own_command=_has_model(spec.template) or bool(spec.base_refs))
    if doubt and is_loaded:
        yield advice(MODEL_URI, doubt)
    if spec.model.confidential is not None and (mounted or not is_loaded):
        yield field.no_effect(_CONFIDENTIAL, "only what the storage initializer downloads is decrypted")


def _initializer_advice(spec: types.LLMInferenceServiceSpec) -> Iterator[Advice]:
    """Warn of containers and mounts for which the model is not downloaded where the server reads it."""
    if not lora.is_loaded(spec):
        return
    for workload, path in spec.workloads():
        for pod, pod_path in workload.pods(path):
            for position, step in enumerate((pod or {}).get("initContainers") or ()):
                fields = IGNORED if step.get("name") == STORAGE_INITIALIZER else ()
                at = pod_path.child("initContainers").index(position)
                yield from (field.no_effect(at.child(key), "model.uri decides") for key in fields if step.get(key))


def _image_user_advice(spec: types.LLMInferenceServiceSpec) -> Iterator[Advice]:
    """Warn of a pod whose kubelet has to verify the user of the image that is the model."""
    if spec.model is None or not lora.is_loaded(spec) or not spec.model.uri.startswith(f"{Provider.IMAGE}:"):
        return
    for workload, path in spec.workloads():
        for pod, pod_path in workload.pods(path):
            security = (pod or {}).get("securityContext") or {}
            if security.get("runAsNonRoot") and security.get("runAsUser") is None:
                message = (
                    f"{MODELCAR_INIT} runs the image of the model, and most such images have no user, so the kubelet "
                    "does not start it as root; set runAsUser beside it, or mount the image with oci+native://"
                )
                yield advice(pod_path.child("securityContext", "runAsNonRoot"), message)


def _token_advice(metadata: ObservedMeta, spec: types.LLMInferenceServiceSpec) -> Iterator[Advice]:
    """Warn of a token of the Hugging Face Hub on the server alone, while an init container downloads the model."""
    if not is_from_hub(spec) or (metadata.annotations or {}).get(_OPERATOR.credentials.storage_secret_name_annotation):
        return
    for workload, path in spec.workloads():
        for pod, pod_path in workload.pods(path):
            for container, variable, name in server_tokens(pod or {}):
                at = pod_path.child("containers").index(container).child("env").index(variable)
                yield advice(at, token_not_for_download(name, _OPERATOR.credentials))


def _login_advice(metadata: ObservedMeta) -> Iterator[Advice]:
    """Warn of an annotation that would protect the service in KServe, and has no effect here."""
    if (metadata.annotations or {}).get(ENABLE_AUTH, "false").lower() != "false":
        message = (
            "no effect: nothing here asks clients for a token, so whoever reaches the gateway can use the model; write "
            "a policy of your gateway for the service's route, such as a SecurityPolicy or an AuthPolicy"
        )
        yield advice(field.METADATA.child("annotations").key(ENABLE_AUTH), message, "no-effect")


def _has_model(pod: Json | None) -> bool:
    """Report whether the main container of a user's pod can load a model without the storage initializer."""
    main = podspec.container_named(pod, MAIN)
    mounted = [str(mount.get("mountPath")).rstrip("/") for mount in main.get("volumeMounts") or ()]
    return bool(main.get("command")) or any(path in (MODEL_PATH, posixpath.dirname(MODEL_PATH)) for path in mounted)


def _criticality_advice(metadata: ObservedMeta, spec: types.LLMInferenceServiceSpec) -> Iterator[Advice]:
    """Warn of a criticality, a field or an annotation by the version, that has no effect on requests (KS-4.9)."""
    for path, word in _criticalities(metadata, spec):
        if word not in get_args(v1alpha1.Criticality):
            supported = ", ".join(get_args(v1alpha1.Criticality))
            yield advice(path, f"must be {supported}; other values have no effect", "no-effect")
        elif spec.scheduler is None and not spec.base_refs:
            yield field.no_effect(path, "without router.scheduler no endpoint picker sees the requests")
        elif spec.http is not None and spec.http.refs:
            detail = "HTTPRoutes of your own have to set it, or clients to send it"
            yield advice(path, f"counts for requests that name the InferenceObjective in {OBJECTIVE_HEADER}; {detail}")


def _criticalities(metadata: ObservedMeta, spec: types.LLMInferenceServiceSpec) -> Iterator[tuple[field.Path, str]]:
    model, notes, notes_path = spec.model, metadata.annotations or {}, field.METADATA.child("annotations")
    if isinstance(model, v1alpha1.ModelSpecV1Alpha1) and model.criticality is not None:
        yield SPEC.child("model", "criticality"), model.criticality
    if notes.get(MODEL_CRITICALITY):
        yield notes_path.key(MODEL_CRITICALITY), notes[MODEL_CRITICALITY]
    adapters = model.lora.adapters if model is not None and model.lora is not None else None
    for path, adapter in lora.entries(model):
        if isinstance(adapter.get("criticality"), str):
            yield path.child("criticality"), adapter["criticality"]
    for word in adapter_criticalities(notes, adapters).values():
        yield notes_path.key(LORA_CRITICALITIES), word


def _name_advice(name: str, spec: types.LLMInferenceServiceSpec) -> Iterator[Advice]:
    """Warn of a name so long that labels of the last groups of its LeaderWorkerSet are too long."""
    of = Names(name)
    for (workload, _), group in zip(spec.workloads(), (of.multi_node, of.multi_node_prefill), strict=False):
        most, room = _most_replicas(workload), names.groups_with_workers(group)
        if workload.worker is not None and most > room:
            why = "beyond them a label of the workers is longer than 63 characters"
            text = f"LeaderWorkerSet {group} has room for {room} groups, and may have {most}: {why}"
            yield advice(NAME, f"{text}; take a shorter name, or one that is longer by two, which is shortened")


def _most_replicas(workload: types.WorkloadSpec) -> int:
    scaled = workload.scaling.max_replicas if workload.scaling is not None else None
    return scaled or (1 if workload.replicas is None else workload.replicas)


def _workload_advice(workload: types.WorkloadSpec, path: field.Path, based: bool) -> Iterator[Advice]:
    yield from _labels(workload.labels, path.child("labels"))
    yield from _annotations(workload.annotations, path.child("annotations"))
    yield from kvcache.advice(workload.kv_cache_offloading, path.child("kvCacheOffloading"))
    yield from _parallelism_advice(workload, path, based)
    yield from _scaling_advice(workload.scaling, path.child("scaling"))
    for pod, pod_path in workload.pods(path):
        yield from without_main(pod, pod_path)


class _Words(field.Path):
    """The place of a string that has several arguments."""

    __slots__ = ()

    def index(self, position: int) -> field.Path:  # noqa: ARG002 - all are at this place
        return self


def _script_advice(spec: types.LLMInferenceServiceSpec, *, based: bool) -> Iterator[Advice]:
    """Warn of arguments and variables for the presets' scripts."""
    for pod, path in chain.from_iterable(workload.pods(where) for workload, where in spec.workloads()):
        for where, container in path.child("containers").each((pod or {}).get("containers") or ()):
            engine = engine_of(container, based=based)
            if engine is None or container.get("name") != MAIN or container.get("command"):
                continue
            yield from argument_warnings(container, where, based=based)
            yield from () if based else _additional(engine, container, where.child("env"))


def _additional(engine: Engine, container: Json, path: field.Path) -> Iterator[Advice]:
    """Warn of mistakes in the variable with arguments for the presets' scripts."""
    for where, variable in path.each(container.get("env") or ()):
        if variable.get("name") == ADDITIONAL:
            arguments = additional_words(str(variable.get("value") or ""))
            if arguments is None:
                yield advice(where.child("value"), "a quote, a bracket or a backslash has no end, so the server ends")
                return
            line = CommandLine(arguments, _Words("value", where), engine)
            for warning in lineadvice.rejected(line, container.get("args") or ()):
                yield Advice(
                    f"{warning}; presets of v0.17 read the variable with worker only", warning.path, warning.id
                )


def _scaling_advice(scaling: types.ScalingSpec | None, path: field.Path) -> Iterator[Advice]:
    """Warn of settings of KEDA without effect: replicas that it raises again, and a field that older KEDA lacks."""
    keda = scaling.wva.keda if scaling is not None and scaling.wva is not None else None
    if keda is None:
        return
    path = path.child("wva", "keda")
    if keda.idle_replica_count:
        message = "KEDA's HorizontalPodAutoscaler scales up to minReplicas again"
        yield field.no_effect(path.child("idleReplicaCount"), message)
    for below, behavior, _ in modelfields.embedded_values(keda, path):
        for way, rules in behavior.items():
            if isinstance(rules, dict) and rules.get("tolerance") is not None:
                message = "KEDA has this field only from 2.18 on, so it is not passed on"
                yield field.no_effect(below.child(way, "tolerance"), message)


def _labels(labels: Mapping[str, str] | None, path: field.Path) -> Iterator[Advice]:
    """Warn of labels that selectors use, or that no pod can have."""
    plain = {key: value for key, value in (labels or {}).items() if OPEN not in key and OPEN not in value}
    for key in RESERVED_LABELS:
        if key in plain:
            message = "overrides a label that selectors use; the pods may drop out of the service's pool"
            yield advice(path.key(key), message)
    for error in names.validate_labels(plain, path):
        if error.type is not field.ErrorType.FORBIDDEN:  # a mistake of its own
            yield advice(error.path, f"{error.body}; pods with it are refused")


def _annotations(annotations: Mapping[str, str] | None, path: field.Path) -> Iterator[Advice]:
    """Warn of annotations that no pod can have."""
    for error in names.validate_annotation_keys([key for key in annotations or () if OPEN not in key], path):
        if error.type is not field.ErrorType.FORBIDDEN:  # a mistake of its own
            yield advice(error.path, f"{error.body}; pods with it are refused")


def _parallelism_advice(workload: types.WorkloadSpec, parent: field.Path, based: bool) -> Iterator[Advice]:
    """Warn of parallelism that the pods do not carry out, unless ``baseRefs`` may supply what is missing."""
    parallelism, path = workload.parallelism or types.NO_PARALLELISM, parent.child("parallelism")
    data, local = parallelism.data, parallelism.data_local
    if data and local and (local > data or data % local):
        yield advice(path, f"data, {data}, is not a multiple of dataLocal, {local}; some copies will be missing")
    if message := lineadvice.uneven(parallelism.tensor or 1):
        yield advice(path.child("tensor"), message)
    if based and not parallelism.expert and "expert" in parallelism.model_fields_set:
        yield field.no_effect(path.child("expert"), "false counts as unset and does not override a base")
    numbers = parallelism.model_dump(by_alias=True, exclude_defaults=True)
    if workload.worker is not None:
        for pod, _ in () if based else workload.pods(parent):
            yield from undersized(pod, numbers, path)
        return
    yield from contradictions(workload.template, numbers, path)
    if not based:
        yield from ignored_by_server(with_command(workload.template), numbers, path)
        if not any(merged.parallelism(workload, parent, based=False)):
            yield from unused(numbers, path)


def _doubled(spec: types.LLMInferenceServiceSpec) -> Iterator[Advice]:
    for workload, path in spec.workloads():
        for pod, pod_path in workload.pods(path):
            yield from doubled(pod, pod_path, adds_gpus=adds_gpus(workload))


def _metrics_advice(spec: types.LLMInferenceServiceSpec) -> Iterator[Advice]:
    """Warn of servers without metrics, which an autoscaler or an endpoint picker reads."""
    picker = spec.router is not None and spec.router.scheduler is not None
    for workload, path in spec.workloads():
        reader = "scaling.wva" if workload.scaling is not None and workload.scaling.wva else "router.scheduler"
        for pod, pod_path in workload.pods(path):
            problem = without_metrics(_VLLM, words(podspec.container_named(pod, MAIN)))
            if problem and (picker or reader == "scaling.wva"):
                yield advice(pod_path.child("containers"), f"{problem}, which {reader} reads")


def _claim_advice(spec: types.LLMInferenceServiceSpec, count: int) -> Iterator[Advice]:
    for workload, path in spec.workloads() if count else ():
        numbers = (workload.parallelism or types.NO_PARALLELISM).model_dump(by_alias=True, exclude_defaults=True)
        yield from claimed(workload.template, numbers, path, count, several=workload.worker is not None)


def _missing(spec: types.LLMInferenceServiceSpec, below: Json) -> Iterator[Advice]:
    """Warn of required fields of pods that are missing, and that no preset has."""
    for pod, path in spec.templates():
        for error in merged.incomplete(pod or {}, path, preset_of(below, path)):
            yield advice(error.path, f"{error.body}; pods without it are refused")


def without_main(pod: Json | None, path: field.Path) -> Iterator[Advice]:
    """Warn of containers of which none is named main, so they are added to the preset's."""
    containers = pod.get("containers") if pod else None
    if containers and all(container.get("name") != MAIN for container in containers):
        yield advice(path.child("containers"), f"no container is named {MAIN}, so all are added to those of the preset")


def _unnamed(refs: Sequence[types.NameReference | types.ObjectReference] | None, path: field.Path) -> Iterator[Advice]:
    """Warn of references by an empty name, or by one that no object can have."""
    for ref_path, ref in path.each(refs or ()):
        if not ref.name:
            yield advice(ref_path, "has no name, so nothing can be found and the service cannot start; set name")
        yield from _unfit(ref.name, ref_path.child("name"))


def _unfit(name: str | None, path: field.Path) -> Iterator[Advice]:
    """Warn of a name that no object can have, unless a template may complete it."""
    if OPEN not in (name or ""):
        yield from (advice(error.path, error.body) for error in object_name(name, path))


def _router_advice(router: types.RouterSpec, based: bool) -> Iterator[Advice]:
    """Warn of a Gateway without a namespace, of a route without rules, and of a scheduler without backends."""
    gateway, gateways = router.gateway, ROUTER.child("gateway")
    refs = gateway.refs if gateway is not None else None
    yield from _unnamed(refs, gateways.child("refs"))
    for ref_path, ref in gateways.child("refs").each(refs or ()):
        if ref.namespace is None:
            yield advice(ref_path, "no namespace, so the Gateway is looked for in the service's own")
    if router.route is None and not based:
        yield from _without_route(router, gateways)
    http = router.route.http if router.route is not None else None
    yield from _unnamed(http.refs if http is not None else None, HTTP.child("refs"))
    if http is not None and http.spec is not None:
        rules = [rule.model_dump(by_alias=True, exclude_unset=True) for rule in http.spec.rules or ()]
        if rules in ([], DEFAULT_RULES):
            yield advice(HTTP.child("spec"), "no rules, so those of the preset (or of baseRefs) are used")
        yield from newer_fields(http.spec, HTTP.child("spec"))
    if router.scheduler is not None:
        yield from _scheduler_advice(router.scheduler)
        route = http.spec if http is not None else None
        backends = [{ref.kind for ref in rule.backend_refs or ()} for rule in (route and route.rules) or ()]
        if backends and all(backends) and all("InferencePool" not in kinds for kinds in backends):
            message = "no rule of router.route.http.spec sends requests to an InferencePool; remove router.scheduler"
            yield field.no_effect(SCHEDULER, message)


def _without_route(router: types.RouterSpec, gateways: field.Path) -> Iterator[Advice]:
    """Warn of a Gateway or scheduler without a route, to which no request comes."""
    if router.gateway is not None and router.gateway.refs:
        message = "no route is attached to it, the service only waits for it; add router.route"
        yield advice(gateways.child("refs"), message)
    elif router.gateway is not None:
        yield field.no_effect(gateways, "add router.route")
    if router.scheduler is not None:
        message = "without router.route only a route of your own can lead to its InferencePool; add router.route"
        yield advice(SCHEDULER, message)


def _scheduler_advice(scheduler: types.SchedulerSpec) -> Iterator[Advice]:
    """Warn of a pool without a name, and of fields that have no effect beside a pool of the user's."""
    yield from _labels(scheduler.labels, SCHEDULER.child("labels"))
    yield from _annotations(scheduler.annotations, SCHEDULER.child("annotations"))
    yield from without_main(scheduler.template, SCHEDULER.child("template"))
    if scheduler.config is not None and isinstance(scheduler.config.inline, dict) and scheduler.config.inline:
        yield from pickerconfig.config_advice(scheduler.config.inline, SCHEDULER.child("config", "inline"))
    if scheduler.config is not None and scheduler.config.ref is not None:
        yield from _unfit(scheduler.config.ref.name, SCHEDULER.child("config", "ref", "name"))
    if scheduler.pool is None or scheduler.pool.ref is None:
        return
    yield from _unfit(scheduler.pool.ref.name, SCHEDULER.child("pool", "ref", "name"))
    if not scheduler.pool.ref.name:
        yield field.no_effect(SCHEDULER.child("pool", "ref"), "it names no InferencePool, so one is created")
        return
    unused = ("template", "replicas", "labels", "annotations", "config")
    if ignored := [name for name in unused if getattr(scheduler, name) is not None]:
        yield field.no_effect(SCHEDULER, f"with pool.ref no scheduler is created; remove {', '.join(ignored)}")
