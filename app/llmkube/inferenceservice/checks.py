"""The rules and warnings of an InferenceService (LK-6.2 to LK-6.6).

A field without effect is a warning, because runtimes share manifests.
"""

import re
from collections.abc import Iterator
from itertools import chain, islice

from app.hooks import fit, sendable
from app.hooks.protocol import AnyRequest, get
from app.kube import field, hosts, modelfields, quantity
from app.kube.base import Json
from app.kube.embedded import checks as embedded
from app.kube.field import SPEC, Advice, advice
from app.kube.merge import find as value_at
from app.kube.names import (
    LABEL_MAX,
    is_dns1035_label,
    is_dns1123_subdomain,
    respelled,
    validate_annotation_keys,
    validate_labels,
)
from app.kube.regex import regex
from app.kube.schema import fieldclass, rules
from app.limits import MAX_UNKNOWN_NAMES
from app.llmkube import names
from app.llmkube.inferenceservice import fitting, observed, types
from app.llmkube.inferenceservice.plan import (
    DEFAULT_ENDPOINT,
    DEFAULT_TARGET,
    InferencePlan,
    missing_metric,
    plan,
    sharing_problem,
)
from app.llmkube.inferenceservice.podview import planned_view, pod_view
from app.llmkube.inferenceservice.types import InferenceService, InferenceServiceSpec
from app.llmkube.model.plan import plan as plan_of_model
from app.llmkube.model.types import Model, ModelSpec
from app.llmkube.runtimes.flag import flag_values, is_set
from app.llmkube.runtimes.registry import RUNTIMES, draft_name, readers, runtime, spelt_out
from app.llmkube.runtimes.runtime import Runtime, named_engine, read_extra, rejected_options, service_engine
from app.llmkube.source import SourceClass, source_of
from app.settings import Settings
from app.workload import autoscaler
from app.workload.advice import podadvice
from app.workload.advice.advise import advise, advise_further
from app.workload.engines.commandline import variables_of
from app.workload.engines.engine import NAMES, engine_named
from app.workload.engines.grammar import GRAMMARS
from app.workload.engines.metrics import without_metrics
from app.workload.readiness.cause import Cause, Stage
from app.workload.rules import podrules, volumes
from app.workload.rules.fieldrules import each, has, leaves_its_root, matching, object_name

Errors = Iterator[field.Error]


def validate(service: InferenceService, _: InferenceService | None, __: Settings) -> Errors:
    spec = service.spec
    yield from _name(service.metadata.name)
    yield from _model(spec)
    yield from _image(spec)
    yield from _resources(spec.requests, SPEC.child("resources"))
    yield from _URL_PATH(spec.endpoint.path if spec.endpoint else "", SPEC.child("endpoint", "path"))
    yield from _overrides(spec)
    yield from _ADDRESS(spec.bind_address, SPEC.child("bindAddress"))
    yield from _speculation(spec)
    yield from _model_cache(spec)
    if spec.autoscaling:
        yield from _autoscaling(spec.autoscaling, SPEC.child("autoscaling"))
    yield from _options(spec)
    yield from _pod(spec)
    yield from _embedded(spec)


_URL_PATH = matching(
    re.compile(r"(/\S*)?").fullmatch,
    "must begin with '/' and contain no white space, for example /v1/chat/completions",
)
"""Require an endpoint's path to begin with ``/`` and to have no blanks (LK-V-I30)."""
_ADDRESS = matching(
    re.compile(r"[0-9A-Za-z:.%_-]*").fullmatch,
    'must be an address of the pod, for example "::" for all of IPv6 and IPv4',
)
"""Require an address to listen on that has no blanks (LK-V-I69)."""
_MIG_PROFILE = matching(re.compile(r"([0-9]+g\.[0-9]+gb)?").fullmatch, "must be a MIG profile, for example 1g.10gb")
_DRAFT_FILE = matching(
    lambda path: not leaves_its_root(path), "must be the path of one of the Model's files, without '..'"
)
"""Require a draft model's path without ``..`` (LK-V-I78)."""


def _name(name: str) -> Errors:
    """Reject a name that no Service can have, with dashes for dots (LK-V-I57)."""
    path = field.METADATA.child("name")
    if len(name) > LABEL_MAX:
        yield field.too_long(path, LABEL_MAX, "the name is also used in labels")
    elif name and not is_dns1035_label(names.service_name(name)):
        detail = (
            "must begin with a letter and consist of lower case letters, digits, '-' and '.', as names of Services do"
        )
        yield field.invalid(path, name, detail)


def _model(spec: InferenceServiceSpec) -> Errors:
    """Reject a name that no Model can have, or that is too long for the pods' label (LK-V-I01)."""
    path = SPEC.child("modelRef")
    if not spec.model_ref:
        yield field.required(path, "name a Model in this namespace")
    elif len(spec.model_ref) > LABEL_MAX:
        yield field.too_long(path, LABEL_MAX, "names of Models are not longer")
    elif not is_dns1123_subdomain(spec.model_ref):
        detail = "must be the name of a Model in this namespace: lower case letters, digits, '-' and '.'"
        hint = field.name_meant(respelled(spec.model_ref.rpartition("/")[2])) or ", for example smollm"
        yield field.invalid(path, spec.model_ref, field.with_hint(detail, hint))


def _image(spec: InferenceServiceSpec) -> Errors:
    """Require an image where the runtime has none, without surrounding white space (LK-V-I22, LK-V-I23)."""
    path = SPEC.child("image")
    if not spec.image and not runtime(spec.runtime).image:
        yield field.required(path, f"runtime {spec.runtime} has no default image; name one")
    elif spec.image != spec.image.strip():
        yield field.invalid(path, spec.image, "must not begin or end with white space")


def _resources(resources: types.ServiceResources, path: field.Path) -> Errors:
    examples = {"cpu": "500m", "memory": "16Gi", "hostMemory": "64Gi", "gpuMemory": "24Gi", "ephemeralStorage": "200Gi"}
    shares = resources.gpu_sharing or types.GPUSharing()
    yield from rules.violations(shares, path.child("gpuSharing"))
    yield from _MIG_PROFILE(shares.profile, path.child("gpuSharing", "profile"))
    written = resources.model_dump(by_alias=True)
    for name, example in examples.items():
        if written[name]:
            yield from quantity.quantity_errors(written[name], path.child(name), example=example)


def _speculation(spec: InferenceServiceSpec) -> Errors:
    speculation, path = spec.speculative_decoding, SPEC.child("speculativeDecoding")
    if speculation is not None:
        yield from rules.violations(speculation, path)
        yield from _DRAFT_FILE(speculation.draft_model or "", path.child("draftModel"))
        yield from object_name(speculation.draft_model_ref, path.child("draftModelRef"))


_OVERRIDE = regex(r"[^=\s]{1,127}=(int|float|bool|str):(.*)", re.DOTALL)
_NEXT_OVERRIDE = regex(r",(?=[^=,\s]+=(?:int|float|bool|str):)")
_VALUES = {
    "int": re.compile(r"[+-]?[0-9]+"),
    "float": re.compile(r"[+-]?([0-9]++(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"),
    "bool": re.compile(r"true|false"),
    "str": re.compile(r".{,127}", re.DOTALL),
}
_OVERRIDE_FORM = (
    "must be <key>=<type>:<value> with type int, float, bool or str, for example llama.context_length=int:8192"
)


_CAPITALS = regex("cpu|cuda[0-9]*", re.IGNORECASE)


def _overrides(spec: InferenceServiceSpec) -> Errors:
    """Reject overrides with which llama.cpp ends at once (LK-V-I67, LK-V-I68). Commas separate several."""
    for path, override in SPEC.child("metadataOverrides").each(spec.metadata_overrides):
        for part in _NEXT_OVERRIDE.split(override):
            match = _OVERRIDE.fullmatch(part)
            if match is None:
                yield field.invalid(path, override, _OVERRIDE_FORM)
            elif not _VALUES[match[1]].fullmatch(match[2]):
                yield field.invalid(path, override, f"{field.render(match[2])} must be of type {match[1]}")
    for path, override in SPEC.child("tensorOverrides").each(spec.tensor_overrides):
        parts = [part.partition("=") for part in override.split(",")]
        if not all(pattern and device for pattern, _, device in parts):
            yield field.invalid(path, override, r"must be <pattern>=<device>, for example \.ffn_.*_exps\.=CPU")
        elif any(pattern.startswith("*") for pattern, _, _ in parts):
            yield field.invalid(path, override, "must begin with a regular expression, which cannot begin with '*'")
        elif any(_CAPITALS.fullmatch(device) and device != device.upper() for _, _, device in parts):
            yield field.invalid(path, override, "names of devices are in capitals: CPU, CUDA0")


def _model_cache(spec: InferenceServiceSpec) -> Errors:
    """Reject a claim beside persistence Ephemeral, or with an invalid name (LK-V-I72)."""
    cache, path = spec.model_cache or types.ModelCache(), SPEC.child("modelCache", "claimName")
    if cache.claim_name and cache.persistence == "Ephemeral":
        yield field.forbidden(path, "must be left out with persistence Ephemeral")
    else:
        yield from object_name(cache.claim_name, path)


def _options(spec: InferenceServiceSpec) -> Errors:
    """Reject numbers with which a server ends at once (LK-V-I51)."""
    detail = "must be at least 1; leave it out for the server's default"
    for path, _, value in chain.from_iterable(flag_values(spec, flags) for flags in _POSITIVE):
        if isinstance(value, int) and value < 1:
            yield field.invalid(SPEC.child(*path.split(".")), value, detail)


_POSITIVE = [{path: flag for path, flag in server.flags.items() if flag.positive} for server in RUNTIMES.values()]
"""Of each runtime, the options that must be at least 1."""


def _autoscaling(autoscaling: types.Autoscaling, path: field.Path) -> Errors:
    """Require a range of replicas, and metrics with the fields of their type (LK-V-I20, LK-V-I29, LK-V-I31)."""
    lowest = autoscaling.min_replicas or 1
    if lowest > autoscaling.max_replicas:
        detail = f"must be at least minReplicas, which is {lowest}"
        yield field.invalid(path.child("maxReplicas"), autoscaling.max_replicas, detail)
    for metric_path, metric in path.child("metrics").each(autoscaling.metrics):
        if not metric.name:
            yield field.required(metric_path.child("name"), "name the metric")
        yield from (_pods_metric if metric.type == "Pods" else _resource_metric)(metric, metric_path)


def _resource_metric(metric: types.Metric, path: field.Path) -> Errors:
    """Require cpu or memory, and a utilization of at least 1 %, of a metric of type Resource (LK-V-I31)."""
    target, value = path.child("targetAverageUtilization"), metric.target_average_utilization
    if metric.name not in ("", "cpu", "memory"):
        yield field.not_supported(path.child("name"), metric.name, ["cpu", "memory"], "for type Resource")
    if value is None:
        instead = " in place of targetAverageValue" if metric.target_average_value else ""
        yield field.required(target, f"type Resource needs it{instead}, as a percentage of the request, for example 80")
    elif value < 1:
        yield field.invalid(target, value, "must be at least 1")


def _pods_metric(metric: types.Metric, path: field.Path) -> Errors:
    """Require a name without slashes, and a value above 0, of a metric of type Pods (LK-V-I31, LK-V-I66)."""
    target, value = path.child("targetAverageValue"), metric.target_average_value
    if metric.name in (".", "..") or "/" in metric.name or "%" in metric.name:
        yield field.invalid(path.child("name"), metric.name, "must not contain '/' or '%'")
    if not value:
        instead = "" if metric.target_average_utilization is None else " in place of targetAverageUtilization"
        yield field.required(target, f'type Pods needs it{instead} as a quantity, for example "2"')
    else:
        yield from quantity.quantity_errors(value, target, positive=True, example='"2"')


def _pod(spec: InferenceServiceSpec) -> Errors:
    """Reject invalid labels, annotations and names of classes (LK-V-I54, LK-V-I56, LK-V-I65)."""
    yield from validate_labels(spec.pod_labels, SPEC.child("podLabels"))
    yield from validate_annotation_keys(spec.pod_annotations, SPEC.child("podAnnotations"))
    yield from podrules.check("PodSpec.nodeSelector", spec.node_selector, SPEC.child("nodeSelector"))
    yield from object_name(spec.runtime_class_name, SPEC.child("runtimeClassName"))
    yield from object_name(spec.priority_class_name, SPEC.child("priorityClassName"))


def _embedded(spec: InferenceServiceSpec) -> Errors:
    """Reject mistakes in the embedded types, as the rules of pods list them (LK-V-I59, LK-V-K01 to LK-V-K31)."""
    yield from podrules.check("Container.env", spec.env, SPEC.child("env"))
    yield from podrules.check_embedded("PodSpec.tolerations", spec.tolerations, SPEC.child("tolerations"))
    yield from podrules.check("PodSpec.imagePullSecrets", spec.image_pull_secrets, SPEC.child("imagePullSecrets"))
    yield from each(has("name", "name the Secret"))(spec.image_pull_secrets, SPEC.child("imagePullSecrets"))
    for name, items in (("env", spec.env), ("imagePullSecrets", spec.image_pull_secrets)):
        for path, item in SPEC.child(name).each(items):  # one by one: duplicate names are sent once
            yield from sendable.check(item, path)
    for place, value, path in _parts(spec):
        yield from podrules.check_embedded(place, value, path)
    yield from _volumes(spec)


def _parts(spec: InferenceServiceSpec) -> Iterator[tuple[str, Json | list[Json] | None, field.Path]]:
    yield "PodSpec.securityContext", spec.pod_security_context, SPEC.child("podSecurityContext")
    yield "Container.securityContext", spec.security_context, SPEC.child("securityContext")
    for purpose in _PROBES:
        probe = getattr(spec.probe_overrides, purpose, None)
        yield f"Container.{purpose}Probe", probe, SPEC.child("probeOverrides", purpose)
    for server in RUNTIMES.values():
        reference = getattr(server.options(spec), "hf_token_secret_ref", None)
        yield "EnvVarSource.secretKeyRef", reference, SPEC.child(server.config, "hfTokenSecretRef")
    yield "PodSpec.affinity", spec.affinity, SPEC.child("affinity")
    constraints = spec.topology_spread_constraints
    yield "PodSpec.topologySpreadConstraints", constraints, SPEC.child("topologySpreadConstraints")


_PROBES = ("startup", "liveness", "readiness")


def _volumes(spec: InferenceServiceSpec) -> Errors:
    """Reject volumes and mounts with names or paths of the generated ones (LK-V-K32 to LK-V-K34, LK-V-I73)."""
    path, volume_names = SPEC.child("extraVolumes"), {volume.get("name") or "" for volume in spec.extra_volumes}
    yield from podrules.check_embedded("PodSpec.volumes", spec.extra_volumes, path)
    mounts_path = SPEC.child("extraVolumeMounts")
    mounts_model = runtime(spec.runtime).mounts_model and not spec.skip_model_init
    yield from volumes.mounted(
        spec.extra_volume_mounts, mounts_path, {*volume_names, *(names.GENERATED_VOLUMES if mounts_model else ())}
    )
    yield from podrules.check_embedded("Container.volumeMounts", spec.extra_volume_mounts, mounts_path)
    if not mounts_model:
        return
    for volume_path, volume in path.each(spec.extra_volumes):
        if volume.get("name") in names.GENERATED_VOLUMES:
            detail = "a volume of the model may have this name; choose another"
            yield field.invalid(volume_path.child("name"), volume["name"], detail)
    for mount_path, mount in mounts_path.each(spec.extra_volume_mounts):
        if (mount.get("mountPath") or "").rstrip("/") in names.GENERATED_MOUNTS:
            detail = "the model may be mounted there; choose another directory, or set skipModelInit"
            yield field.invalid(mount_path.child("mountPath"), mount["mountPath"], detail)


# Warnings of fields without effect, and of probable mistakes.


def warnings(service: InferenceService) -> Iterator[Advice]:
    spec, server = service.spec, runtime(service.spec.runtime)
    written = spec.model_dump(by_alias=True, exclude_defaults=True)
    yield from _unread(server, written)
    yield from server.advice(spec)
    yield from rejected_options(spec, server)
    yield from _overridden(server, spec, written)
    yield from fieldclass.without_effect(spec, SPEC)
    yield from _service_advice(spec)
    if spec.autoscaling:
        yield from _autoscaling_advice(spec, spec.autoscaling)
    yield from _pod_advice(server, spec)
    yield from advise([pod_view(service)])
    yield from _probe_advice(server, spec)
    yield from _image_name_advice(server, spec)


def _image_name_advice(server: Runtime, spec: InferenceServiceSpec) -> Iterator[Advice]:
    """Warn of names that no image has, and of an image of another engine than the runtime's (LK-V-I89)."""
    path, engine = SPEC.child("image"), engine_named(spec.image)
    yield from embedded.image_warnings(spec.image, path)
    if engine is not None and not spec.command and server.name in NAMES and engine.name != server.name:
        message = f"an image of {engine}, in which the server of runtime {server.name} cannot start"
        yield advice(path, f"{message}; set runtime {engine.name}, or another image")


def _unread(server: Runtime, written: Json) -> Iterator[Advice]:
    """Warn of fields that only other runtimes, or a metal agent, read (LK-V-I24 to LK-V-I28, LK-V-I36, LK-V-I63)."""
    for name, value in written.items():
        if is_set(value) and (reading := readers(name)) and server.name not in reading:
            hint = "; write them in extraArgs" if name == "args" and "extraArgs" in server.fields else ""
            message = f"no effect with runtime {server.name}, only with {spelt_out(reading)}{hint}"
            yield advice(SPEC.child(name), message, "no-effect")
    for name in _METAL_ONLY:  # LK-V-I63
        if is_set(written.get(name)):
            yield advice(SPEC.child(name), "no effect unless the Model's accelerator is metal", "no-effect")


_METAL_ONLY = ("evictionProtection", "turboQuantBits", "pagedSSDCacheDir", "pagedSSDCacheMaxSize", "hotCacheMaxSize")


_OVERRIDES = (("resources.memory", "resources.hostMemory"), ("priority", "priorityClassName"))


def _overridden(server: Runtime, spec: InferenceServiceSpec, written: Json) -> Iterator[Advice]:
    """Warn of values that another field, or ``extraArgs``, which come later, override (LK-V-I37 to LK-V-I48)."""
    for loser, winner in (*server.overridden, *_OVERRIDES):
        if all(is_set(value_at(written, path.split("."))) for path in (loser, winner)):
            yield advice(SPEC.child(*loser.split(".")), f"no effect beside {winner}", "no-effect")
    if "extraArgs" not in server.fields:
        return
    extra = read_extra(spec, server)
    repeats = GRAMMARS[extra.release.engine].repeats
    for path, option in server.flags.items():
        used = [given for given in extra.all(*option.spellings) if not given.keys]
        if len(used) > 1 and not option.is_list and repeats:
            names_ = " and ".join(dict.fromkeys(given.name for given in used))
            yield advice(SPEC.child("extraArgs"), f"{names_}: set more than once; the last value counts")
        if used and is_set(value_at(written, path.split("."))):
            overridden = path.rpartition(".")[0] if option.governs_block else path
            message = f"no effect beside {used[0].name} in extraArgs"
            yield advice(SPEC.child(*overridden.split(".")), message, "no-effect")
    if extra.gives("--port"):
        message = "probes and the Service do not follow --port; remove it and set containerPort instead"
        yield advice(SPEC.child("extraArgs"), message)


def _autoscaling_advice(spec: InferenceServiceSpec, autoscaling: types.Autoscaling) -> Iterator[Advice]:
    """Warn of replicas that autoscaling changes or does not start, and of metrics that cannot be measured."""
    lowest, replicas, path = autoscaling.min_replicas or 1, spec.replicas, SPEC.child("replicas")
    if missing := missing_metric(spec):  # LK-V-I80
        yield advice(SPEC.child("autoscaling", "metrics"), missing)
    start = min(max(replicas or 1, lowest), autoscaling.max_replicas)
    if replicas == 0:  # LK-V-I34
        yield advice(path, "0 stops the service: autoscaling does not start it again")
    elif replicas not in (None, 1, start):
        yield advice(path, f"{replicas} is outside minReplicas and maxReplicas: the service starts with {start}")
    resources = spec.requests
    requests = {"cpu": bool(resources.cpu), "memory": bool(resources.memory or resources.host_memory)}
    for metric_path, metric in SPEC.child("autoscaling", "metrics").each(autoscaling.metrics):
        if metric.target_average_utilization is not None and metric.target_average_value:  # LK-V-I32
            other = {"Pods": "targetAverageUtilization", "Resource": "targetAverageValue"}[metric.type]
            yield advice(metric_path.child(other), f"no effect with type {metric.type}", "no-effect")
        if metric.type == "Resource" and not requests.get(metric.name, True):  # LK-V-I33
            yield advice(metric_path, f"without a request in resources.{metric.name} no utilization can be measured")
    yield from _unreachable_target(spec, autoscaling)
    yield from _unknown_metrics(spec, autoscaling)


def _unknown_metrics(spec: InferenceServiceSpec, autoscaling: types.Autoscaling) -> Iterator[Advice]:
    """Warn of metrics that the pods do not export (LK-V-I88)."""
    server = runtime(spec.runtime)
    engine, typed = named_engine(spec, server), flag_values(spec, server.flags)
    arguments = [*(spelling for _, option, _ in typed for spelling in option.spellings), *spec.extra_args]
    metrics = SPEC.child("autoscaling", "metrics").each(autoscaling.metrics)
    for path, metric in islice(metrics, MAX_UNKNOWN_NAMES):
        target = metric.target_average_value
        if metric.type == "Pods" and (problem := autoscaler.metric_problem(metric.name, engine, target, arguments)):
            yield advice(path.child("name"), problem)
    of_pods = not autoscaling.metrics or any(metric.type == "Pods" for metric in autoscaling.metrics)
    if engine is not None and of_pods and (problem := without_metrics(engine, spec.extra_args)):
        yield advice(SPEC.child("extraArgs"), f"{problem}, and autoscaling needs them")


def _unreachable_target(spec: InferenceServiceSpec, autoscaling: types.Autoscaling) -> Iterator[Advice]:
    """Warn of a number of requests in process that a pod with so many slots never exceeds (LK-V-I87)."""
    path, slots, server = SPEC.child("autoscaling", "metrics"), spec.parallel_slots, runtime(spec.runtime)
    option = server.flags.get("parallelSlots")
    if option is None or read_extra(spec, runtime(spec.runtime)).gives(*option.spellings):
        return
    targets = [(where, m.name, m.target_average_value) for where, m in path.each(autoscaling.metrics)]
    for where, name, target in targets or [(path, server.metric, DEFAULT_TARGET)]:
        is_exceeded = slots is None or not quantity.is_quantity(target) or slots > quantity.parse(target)
        if name in _IN_PROCESS and not is_exceeded:
            message = f"at most {slots} requests are in process in a pod (parallelSlots), so that {target} of {name} is"
            yield advice(where, f"{message} never exceeded, and no pod is added; raise parallelSlots, or lower it")


_IN_PROCESS = frozenset({"llamacpp:requests_processing", "vllm:num_requests_running"})


def _service_advice(spec: InferenceServiceSpec) -> Iterator[Advice]:
    """Warn of fields of the endpoint, disruption and suspension without effect (LK-V-I69, LK-V-I74 to LK-V-I76)."""
    yield from podadvice.address_warnings(spec.bind_address, SPEC.child("bindAddress"))
    if re.fullmatch("[0-9.]+", spec.bind_address) and not hosts.address_of(spec.bind_address):
        yield advice(SPEC.child("bindAddress"), "not an IP address, so the server ends; leave it out, or write 0.0.0.0")
    if spec.bind_address.count(":") == 1:  # an IPv6 address has at least two
        yield advice(SPEC.child("bindAddress"), "an address has no port, so the server ends; set containerPort instead")
    if spec.endpoint and spec.endpoint.node_port and spec.endpoint.type != "NodePort":
        message = f"no effect with type {spec.endpoint.type}, only with NodePort"
        yield advice(SPEC.child("endpoint", "nodePort"), message, "no-effect")
    if spec.disruption and spec.disruption.protect_startup and not spec.disruption.protect_always:
        message = "no effect: to protect pods until they are ready would replace them; set protectAlways"
        yield advice(SPEC.child("disruption", "protectStartup"), message, "no-effect")
    if spec.suspend and spec.autoscaling:
        yield advice(SPEC.child("autoscaling"), "the autoscaler is away while suspend is true")


def _probe_advice(server: Runtime, spec: InferenceServiceSpec) -> Iterator[Advice]:
    """Warn of a server that does not answer its probes (LK-V-I82, LK-V-I83)."""
    overrides = spec.probe_overrides or types.ProbeOverrides()
    if None in (overrides.startup, overrides.liveness, overrides.readiness):
        extra = read_extra(spec, server, variables_of(spec.env))
        for given in (given for flag in server.unprobed if (given := extra.last(flag)) is not None):
            name, place = (given.option, "extraArgs") if given.at >= 0 else (given.name, "env")
            yield advice(SPEC.child(place), f"the probes fail with {name}; set all three of probeOverrides")


def _pod_advice(server: Runtime, spec: InferenceServiceSpec) -> Iterator[Advice]:
    """Warn of labels that are overwritten, and of a model's volume that the downloader may not write to."""
    for key in names.OPERATOR_LABELS:
        if key in spec.pod_labels:  # LK-V-I55
            message = "no effect: the label selects the pods of the service"
            yield advice(SPEC.child("podLabels").key(key), message, "no-effect")
    pod = spec.pod_security_context
    if server.mounts_model and not spec.skip_model_init and pod is not None and pod.get("fsGroup") is None:  # LK-V-I41
        message = "without fsGroup the downloader may not be able to write to the model's volume"
        yield advice(SPEC.child("podSecurityContext"), message)


# The service together with its Model: for ``modelhooks validate`` on files that hold both, and for ``Ready``.


def warnings_with_related(service: InferenceService, request: AnyRequest, settings: Settings) -> list[field.Advice]:
    """Warn of everything for which the service would not become ready with its Model (LK-V-X01 to LK-V-X22)."""
    related: observed.InferenceRelated = request.related
    metadata, spec = service.metadata, service.spec
    model = observed.decode(get(related.models, spec.model_ref, metadata.namespace))
    if model is None:
        return []
    if model.spec.on_metal:
        return list(_on_metal(spec))
    draft = observed.decode(get(related.models, draft_name(spec), metadata.namespace))
    service_plan = plan(service, model, draft, settings)
    causes = {*mistakes(service_plan, model), *refusals(service_plan, model.spec, related, settings)}
    places = {**_PLACES, "TensorParallelSize": (service_plan.runtime.config,)}
    problems = [
        advice(SPEC.child(*places.get(cause.reason, ())), cause.text)
        for cause in sorted(causes, key=lambda cause: cause.text)
        if cause.stage is Stage.SPEC
    ]
    fits = fitting.fit_with(spec, model, settings)
    if fits.answer is fit.FitAnswer.DOES_NOT_FIT:  # LK-7.5
        problems.append(advice(SPEC.child("modelRef"), fits.warning))
    problems += _too_little_disk(service_plan, model, settings)
    return [*problems, *_with_model(service, service_plan, model, settings)]


def assumes(service: InferenceService, request: AnyRequest, settings: Settings) -> Iterator[str]:
    """Say where a volume may land that the Job of a Model fills, which asks for no device, as its Model does not."""
    model = observed.decode(get(request.related.models, service.spec.model_ref, service.metadata.namespace))
    if model is None or model.spec.on_metal or names.DOWNLOAD in (model.metadata.annotations or {}):
        return
    model_plan, service_plan = plan_of_model(model, settings), plan(service, model, None, settings)
    own, mounts = service.spec.model_cache, service_plan.runtime.mounts_model and not service.spec.skip_model_init
    by_job = model_plan.download is not None and model_plan.awaits_pod is False
    if by_job and service_plan.gpus.count and mounts and own is None:
        yield (
            f"Model {model.metadata.name} asks for no GPU, and InferenceService {service.metadata.name} does: a Job "
            f"downloads on any node, so a volume whose StorageClass binds late may be where no GPU is; write "
            f"hardware.gpu into the Model, or its annotation {names.DOWNLOAD}: {names.BY_FIRST_POD}"
        )


def _too_little_disk(service_plan: InferencePlan, model: Model, settings: Settings) -> Iterator[Advice]:
    """Warn of weights that are above the pod's disk: the kubelet evicts it while it downloads them (LK-V-X12)."""
    spec, limit = service_plan.spec, service_plan.spec.requests.ephemeral_storage
    is_mounted = any(volume["name"] == names.STORAGE_VOLUME for volume in service_plan.pod.get("volumes", ()))
    in_pod = is_mounted and spec.model_cache is not None and spec.model_cache.persistence == "Ephemeral"
    is_repository = source_of(model.spec).kind is SourceClass.REPOSITORY
    by_server = is_repository and service_plan.runtime.image and not (spec.command or spec.extra_volume_mounts)
    if limit and (in_pod or by_server):
        weight = fitting.weights_of(spec, model, settings)
        if weight.least > quantity.parse(limit):
            message = f"the pod downloads the weights onto its disk, and they need {weight} ({weight.how})"
            yield advice(SPEC.child("resources", "ephemeralStorage"), message)


def refusals(
    service_plan: InferencePlan, model: ModelSpec, related: observed.InferenceRelated, settings: Settings
) -> Iterator[Cause]:
    """Yield the causes of phase Failed without pods: GPUs that cannot be requested, a missing claim."""
    spec = service_plan.spec
    if problem := sharing_problem(model, spec, settings):
        yield Cause(Stage.SPEC, f"Invalid gpuSharing: {problem}", "InvalidGPUSharing")
    if service_plan.gpus.count:
        yield from _too_few_gpus(service_plan)
    claim, pod_volumes = spec.cache_claim, service_plan.pod.get("volumes", ())
    if not claim or related.claims is None or get(related.claims, claim, service_plan.namespace) is not None:
        return
    if any(volume.get("persistentVolumeClaim", {}).get("claimName") == claim for volume in pod_volumes):
        text = f"PersistentVolumeClaim {claim} of modelCache.claimName does not exist in this namespace"
        yield Cause(Stage.CLAIM, text, "ModelCachePVCNotFound")


def _too_few_gpus(service_plan: InferencePlan) -> Iterator[Cause]:
    """Yield the options that ask for more GPUs than a pod has (LK-V-X05)."""
    server, gpus = service_plan.runtime, service_plan.gpus
    for name, size in server.needed_gpus(service_plan.spec).items():
        if size > max(gpus.count, 1) and not service_plan.claims_gpus:
            text = f"{server.config}.{name} is {size}, but a pod has {gpus.count} {gpus.resource}"
            yield Cause(Stage.SPEC, text, "TensorParallelSize")


def mistakes(service_plan: InferencePlan, model: Model) -> Iterator[Cause]:
    """Yield the causes for which pods can never run, so that ``Ready`` has them too (LK-6.5)."""
    spec, server = service_plan.spec, service_plan.runtime
    yield from _too_few_gpus(service_plan)
    yield from server.mistakes(spec)
    source = source_of(model.spec)
    if server.repositories_only and not source.repository:
        text = (
            f"runtime {server.name} only serves Hugging Face repositories, and Model {spec.model_ref} has source "
            f"{source.text}"
        )
        yield Cause(Stage.SPEC, text, "SourceNotServable")
    loadable = ("gguf", *server.formats)  # gguf is the default, which the user may not have written
    if server.formats and model.spec.format not in loadable and not spec.command:
        text = f"runtime {server.name} cannot load format {model.spec.format} of Model {spec.model_ref}"
        yield Cause(Stage.SPEC, text, "FormatNotServable")
    engine = service_engine(spec, service_plan.pod["containers"][0]["image"])
    quantizations = engine.values("--quantization") if engine is not None else ()
    if quantizations and "gguf" not in quantizations and source.text.partition("?")[0].endswith(".gguf"):
        text = f"{engine} does not load GGUF files, and Model {spec.model_ref} is one: use safetensors or another image"
        yield Cause(Stage.SPEC, text, "FormatNotServable")


_PLACES = {
    "FormatNotServable": ("modelRef",),
    "InvalidGPUSharing": ("resources", "gpuSharing"),
    "SourceNotServable": ("modelRef",),
}


def _render_group(service_plan: InferencePlan) -> Iterator[Advice]:
    """Warn of a server that cannot open the device file of its GPU, and then computes on the CPU without an error."""
    gpus, pod = service_plan.gpus, service_plan.pod.get("securityContext") or {}
    own = service_plan.pod["containers"][0].get("securityContext") or {}
    is_root = own.get("privileged") or own.get("runAsUser", pod.get("runAsUser")) == 0
    if gpus.count and gpus.resource == names.DRI_RENDER and not is_root and not pod.get("supplementalGroups"):
        yield advice(
            SPEC.child("podSecurityContext"),
            "the server opens /dev/dri/renderD128 only as a member of its group, and computes on the CPU otherwise; "
            "write the group's number on the nodes into supplementalGroups",
        )


def _with_model(
    service: InferenceService, service_plan: InferencePlan, model: Model, settings: Settings
) -> Iterator[Advice]:
    """Warn of GPUs that both objects count, and of fields that the runtime does not read (LK-V-I40, LK-V-X06)."""
    spec, server, count = service_plan.spec, service_plan.runtime, service_plan.gpus.count
    claim = spec.cache_claim
    if (
        claim
        and "initContainers" in service_plan.pod
        and (model.metadata.annotations or {}).get(names.DOWNLOAD) not in (names.BY_PODS, names.BY_FIRST_POD)
        and claim not in (names.claim_name(spec.model_ref), settings.llmkube_model_cache_claim)
    ):
        message = (
            f"the model is downloaded twice: once by the Model onto {names.claim_name(spec.model_ref)}, and once onto "
            f"{claim}; annotate the Model with {names.DOWNLOAD}={names.BY_PODS}, or leave claimName out to use the "
            "Model's claim"
        )
        yield advice(SPEC.child("modelCache", "claimName"), message)
    if server.loads_directories and source_of(model.spec).kind is SourceClass.REPOSITORY and not spec.skip_model_init:
        message = "set it to true: the Model is a repository, which the server downloads itself"  # LK-V-X03
        yield advice(SPEC.child("skipModelInit"), message)
    image = service_plan.pod["containers"][0]["image"]
    yield from server.advice_with_model(spec, model.spec, int(service_plan.has_gpus), image)
    yield from _render_group(service_plan)
    planned = planned_view(service, service_plan, model.spec, is_possible=not any(_too_few_gpus(service_plan)))
    yield from advise_further([planned], [pod_view(service)])
    for path, option, _ in flag_values(spec, server.flags):
        if option.needs_gpu and not service_plan.has_gpus:  # LK-V-I42
            yield advice(SPEC.child(*path.split(".")), "no effect without a GPU", "no-effect")
    gpu, gpus = model.spec.gpu, spec.requests.gpu
    if gpu.count and gpus not in (None, gpu.count):
        message = f"no effect: the Model's gpu.count {gpu.count} wins over {gpus}"
        yield advice(SPEC.child("resources", "gpu"), message, "no-effect")
    for name in dict.fromkeys(name for other in RUNTIMES.values() for name in other.gpu_fields):
        least = count or int(service_plan.claims_gpus)
        if getattr(gpu, name) is None or least >= server.gpu_fields.get(name, least + 1):
            continue
        amount = "GPUs of resourceClaims" if service_plan.claims_gpus else f"{count} GPUs in a pod"
        why = amount if name in server.gpu_fields else f"runtime {server.name}"
        yield advice(SPEC.child("modelRef"), f"the Model's hardware.gpu.{name} has no effect with {why}", "no-effect")


_NOT_ON_METAL = (
    *("image", "command", "args", "env", "containerPort", "autoscaling", "tolerations", "nodeSelector"),
    *("podLabels", "podAnnotations", "runtimeClassName", "probeOverrides", "podSecurityContext", "securityContext"),
    *("imagePullSecrets", "priorityClassName", "resources", "bindAddress", "affinity", "topologySpreadConstraints"),
    *("extraVolumes", "extraVolumeMounts", "revisionHistoryLimit", "modelCache", "disruption"),
)


def _on_metal(spec: InferenceServiceSpec) -> Iterator[Advice]:
    """Warn of fields that describe pods: the agent starts one process (LK-V-I64, LK-V-X11)."""
    for name in _NOT_ON_METAL:
        if getattr(spec, modelfields.fields(InferenceServiceSpec)[name][0]) not in (None, "", [], {}):
            yield advice(SPEC.child(name), "no effect with a Model on metal", "no-effect")
    if (spec.replicas or 0) > 1:
        yield advice(SPEC.child("replicas"), f"{spec.replicas}, but the agent of a Model on metal runs one process")
    if spec.endpoint and spec.endpoint.port != DEFAULT_ENDPOINT.port:
        message = f"the agent's Service always has port {DEFAULT_ENDPOINT.port}, so status.endpoint would be wrong"
        yield advice(SPEC.child("endpoint", "port"), message)
    if spec.endpoint and spec.endpoint.type != "ClusterIP":
        message = "no effect with a Model on metal: the Service is the agent's"
        yield advice(SPEC.child("endpoint", "type"), message, "no-effect")
