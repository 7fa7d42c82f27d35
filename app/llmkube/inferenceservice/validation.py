"""Every rule of an InferenceService that its types cannot say. Rule numbers are those of llmkube spec 6.2 to 6.4.

What only does nothing is no mistake: manifests are shared between runtimes (:mod:`.warnings`).
"""

from __future__ import annotations

import re
from itertools import chain

from app.hooks import sendable
from app.kube import field, quantity
from app.kube.decode import SPEC
from app.kube.names import LABEL_MAX, is_dns1035_label, is_dns1123_subdomain, validate_annotation_keys, validate_labels
from app.kube.resource import Resource
from app.llmkube import names
from app.llmkube.inferenceservice.types import (
    Autoscaling,
    InferenceServiceSpec,
    InferenceServiceStatus,
    Metric,
    ServiceResources,
)
from app.settings import Settings
from app.workload import podrules

Service = Resource[InferenceServiceSpec, InferenceServiceStatus]
Errors = list[field.Error]


def validate(service: Service, _: Service | None, __: Settings) -> Errors:
    """Every mistake, each with what to write instead."""
    spec = service.spec
    return [
        *_name(service.metadata.name),
        *_model(spec),
        *_image(spec),
        *_resources(spec.resources or ServiceResources(), SPEC.child("resources")),
        *_endpoint(spec),
        *(_autoscaling(spec.autoscaling, SPEC.child("autoscaling")) if spec.autoscaling else ()),
        *_runtimes(spec),
        *_pod(spec),
        *_embedded(spec),
    ]


def _name(name: str) -> Errors:
    """V-I57: the Service takes the name with dashes for dots, and Services must begin with a letter."""
    path = field.Path("metadata").child("name")
    if len(name) > LABEL_MAX:
        return [field.too_long(path, LABEL_MAX, "a Service and labels take the name")]
    if name and not is_dns1035_label(names.service_name(name)):
        detail = "must begin with a letter and consist of lower case letters, digits, '-' and '.': a Service takes it"
        return [field.invalid(path, name, detail)]
    return []


def _model(spec: InferenceServiceSpec) -> Errors:
    """V-I01. No Model has another name, and pods carry it as a label."""
    path = SPEC.child("modelRef")
    if not spec.model_ref:
        return [field.required(path, "name a Model of this namespace")]
    if len(spec.model_ref) > LABEL_MAX:
        return [field.too_long(path, LABEL_MAX, "no Model has so long a name")]
    if not is_dns1123_subdomain(spec.model_ref):
        return [field.invalid(path, spec.model_ref, _MODEL_NAME)]
    return []


_MODEL_NAME = (
    "must be the name of a Model in this namespace: lower case letters, digits, '-' and '.', for example smollm"
)
_NEEDS_IMAGE = ("generic", "personaplex")


def _image(spec: InferenceServiceSpec) -> Errors:
    """V-I22 and V-I23."""
    path = SPEC.child("image")
    if not spec.image and spec.runtime in _NEEDS_IMAGE:
        return [field.required(path, f"runtime {spec.runtime} has no image of its own; name one")]
    if spec.image != spec.image.strip():
        return [field.invalid(path, spec.image, "must not begin or end with blanks")]
    return []


def _resources(resources: ServiceResources, path: field.Path) -> Errors:
    """V-I20 and V-I21."""
    texts = {
        "cpu": (resources.cpu, "500m"),
        "memory": (resources.memory, "16Gi"),
        "hostMemory": (resources.host_memory, "64Gi"),
        "gpuMemory": (resources.gpu_memory, "24Gi"),
    }
    checked = (quantity.quantity_errors(t, path.child(n), example=e) for n, (t, e) in texts.items() if t)
    return list(chain.from_iterable(checked))


_URL_PATH = re.compile(r"/[^\s]*")


def _endpoint(spec: InferenceServiceSpec) -> Errors:
    """V-I30: the path stands in status.endpoint."""
    path = spec.endpoint.path if spec.endpoint else ""
    if not path or _URL_PATH.fullmatch(path):
        return []
    detail = "must begin with '/' and have no blanks, for example /v1/chat/completions"
    return [field.invalid(SPEC.child("endpoint", "path"), path, detail)]


def _autoscaling(autoscaling: Autoscaling, path: field.Path) -> Errors:
    errors: Errors = []
    lowest = autoscaling.min_replicas or 1
    if lowest > autoscaling.max_replicas:  # V-I29
        detail = f"must be at least minReplicas, which is {lowest}"
        errors.append(field.invalid(path.child("maxReplicas"), autoscaling.max_replicas, detail))
    for position, metric in enumerate(autoscaling.metrics):
        errors += _metric(metric, path.child("metrics").index(position))
    return errors


def _metric(metric: Metric, path: field.Path) -> Errors:
    """V-I20, V-I31 and V-I66."""
    errors = [] if metric.name else [field.required(path.child("name"), "name the metric")]
    if metric.type == "Pods":
        return errors + _pods_metric(metric, path)
    if metric.name not in ("", "cpu", "memory"):
        errors.append(field.not_supported(path.child("name"), metric.name, ["cpu", "memory"], "for type Resource"))
    here = path.child("targetAverageUtilization")
    if metric.target_average_utilization is None:
        errors.append(field.required(here, "type Resource needs it, in percent of the request, for example 80"))
    elif metric.target_average_utilization < 1:
        errors.append(field.invalid(here, metric.target_average_utilization, "must be at least 1"))
    return errors


def _pods_metric(metric: Metric, path: field.Path) -> Errors:
    errors: Errors = []
    if metric.name in (".", "..") or "/" in metric.name or "%" in metric.name:
        errors.append(field.invalid(path.child("name"), metric.name, "must not contain '/' or '%'"))
    here = path.child("targetAverageValue")
    if not metric.target_average_value:
        return [*errors, field.required(here, 'type Pods needs it as a quantity, for example "2"')]
    return errors + quantity.quantity_errors(metric.target_average_value, here, positive=True, example='"2"')


def _runtimes(spec: InferenceServiceSpec) -> Errors:
    """V-I51: numbers upstream passes on to a server that then ends."""
    vllm, tgi = spec.vllm_config, spec.tgi_config
    numbers = [
        (SPEC.child("vllmConfig", "tensorParallelSize"), vllm.tensor_parallel_size if vllm else None),
        (SPEC.child("vllmConfig", "maxModelLen"), vllm.max_model_len if vllm else None),
        (SPEC.child("tgiConfig", "maxInputLength"), tgi.max_input_length if tgi else None),
        (SPEC.child("tgiConfig", "maxTotalTokens"), tgi.max_total_tokens if tgi else None),
    ]
    return [
        field.invalid(path, value, "must be at least 1; leave it out for the server's own choice")
        for path, value in numbers
        if value is not None and value < 1
    ]


def _pod(spec: InferenceServiceSpec) -> Errors:
    """V-I54, V-I56 and V-I65."""
    return [
        *validate_labels(spec.pod_labels, SPEC.child("podLabels")),
        *validate_annotation_keys(spec.pod_annotations, SPEC.child("podAnnotations")),
        *podrules.node_selector(spec.node_selector, SPEC.child("nodeSelector")),
        *podrules.object_name(spec.runtime_class_name, SPEC.child("runtimeClassName")),
        *podrules.object_name(spec.priority_class_name, SPEC.child("priorityClassName")),
    ]


def _embedded(spec: InferenceServiceSpec) -> Errors:
    """V-I59 and V-K01 to V-K27."""
    errors = [
        *podrules.env(spec.env, SPEC.child("env")),
        *podrules.tolerations(spec.tolerations, SPEC.child("tolerations")),
        *sendable.check(spec.tolerations, SPEC.child("tolerations")),
        *podrules.pull_secrets(spec.image_pull_secrets, SPEC.child("imagePullSecrets")),
    ]
    for name, items in (("env", spec.env), ("imagePullSecrets", spec.image_pull_secrets)):
        for position, item in enumerate(items):  # one by one: names that stand there twice are sent once
            errors += sendable.check(item, SPEC.child(name).index(position))
    if spec.pod_security_context:
        path = SPEC.child("podSecurityContext")
        errors += podrules.pod_security_context(spec.pod_security_context, path)
        errors += sendable.check(spec.pod_security_context, path)
    if spec.security_context:
        path = SPEC.child("securityContext")
        errors += podrules.container_security_context(spec.security_context, path)
        errors += sendable.check(spec.security_context, path)
    return errors + _probes(spec) + _tokens(spec)


def _probes(spec: InferenceServiceSpec) -> Errors:
    overrides = spec.probe_overrides
    errors: Errors = []
    for purpose in ("startup", "liveness", "readiness"):
        value, path = getattr(overrides, purpose, None), SPEC.child("probeOverrides", purpose)
        if value is not None:
            errors += podrules.probe(value, path, purpose)
            errors += sendable.check(value, path)
    return errors


def _tokens(spec: InferenceServiceSpec) -> Errors:
    """V-I59."""
    configs = {
        "vllmConfig": spec.vllm_config,
        "tgiConfig": spec.tgi_config,
        "personaPlexConfig": spec.persona_plex_config,
    }
    errors: Errors = []
    for name, config in configs.items():
        if config is not None and config.hf_token_secret_ref is not None:
            path = SPEC.child(name, "hfTokenSecretRef")
            errors += podrules.key_reference(config.hf_token_secret_ref, path)
            errors += sendable.check(config.hf_token_secret_ref, path)
    return errors
