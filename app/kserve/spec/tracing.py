"""``spec.tracing``: OpenTelemetry for the model servers and the endpoint picker. Source: KS-2.9."""

from collections.abc import Iterator, Sequence

from app.kserve.arguments import has_flag, has_option, word
from app.kserve.constants import MAIN, MODEL_SERVERS
from app.kserve.llminferenceservice.types import TracingSpec
from app.kube import merge, objects, podspec
from app.kube.base import Json
from app.kube.field import SPEC, Advice, advice, did_you_mean, go_quote, is_template, name_meant, with_hint
from app.kube.spelling import nearest
from app.workload.engines.commandline import passes_arguments

_NODE, _POD = "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME", "OTEL_RESOURCE_ATTRIBUTES_POD_NAME"
_PICKER = ("router", "scheduler", "template")
_SAMPLERS = tuple(
    f"{base}{name}" for base in ("", "parentbased_") for name in ("always_on", "always_off", "traceidratio")
)

_BY_RATIO = ("traceidratio", "parentbased_traceidratio")
"""Samplers whose argument is a ratio. The second is the preset's."""


def traced(document: Json, metadata: objects.ObservedMeta) -> Json:
    """Return a spec whose servers send traces; without an endpoint only the endpoint picker does."""
    tracing = document.get("tracing")
    if not isinstance(tracing, dict):
        return document
    endpoint = str(tracing.get("exporterEndpoint") or "")
    for path in MODEL_SERVERS if endpoint else ():
        name = f"inference-server-{'prefill' if path[0] == 'prefill' else 'decode'}"
        flags = (("--otlp-traces-endpoint", endpoint), ("--collect-detailed-traces", "all"))
        document = _traced(document, path, flags, _variables(tracing, name, metadata))
    return _traced(document, _PICKER, (), _variables(tracing, "inference-scheduler", metadata))


def tracing_advice(tracing: TracingSpec, based: bool) -> Iterator[Advice]:
    """Warn of an endpoint, samplers and ratios that OpenTelemetry does not understand; vendors have more samplers."""
    endpoint, sampler, path = tracing.exporter_endpoint or "", tracing.sampler or "", SPEC.child("tracing")
    if endpoint and "://" not in endpoint and not is_template(endpoint):
        scheme, slashes, host = endpoint.rpartition("//")
        hint = did_you_mean(f"{'https' if 'https' in scheme else 'http'}://{host if slashes else endpoint}")
        yield advice(path.child("exporterEndpoint"), with_hint("must be a URL, or no traces are sent", hint))
    if sampler not in _SAMPLERS and (suggestion := nearest(sampler, _SAMPLERS)):
        message = f"OpenTelemetry has no sampler {go_quote(sampler)}, and takes its default"
        yield advice(path.child("sampler"), with_hint(message, name_meant(suggestion)))
    ratio, by_ratio = tracing.sampler_arg or "", sampler in _BY_RATIO or (not sampler and not based)
    if by_ratio and ratio and not is_template(ratio) and not _is_ratio(ratio):
        message = "must be a number between 0 and 1: with others the server traces every request, or ends"
        yield advice(path.child("samplerArg"), message)


def _is_ratio(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


def _traced(document: Json, path: Sequence[str], flags: Sequence[tuple[str, str]], env: Sequence[Json]) -> Json:
    pod = merge.find(document, path)
    if not pod or not pod.get("containers"):
        return document
    changed = podspec.with_container(pod, MAIN, lambda main: _container(main, flags, env))
    return merge.replaced(document, path, changed)


def picker_arguments(container: Json) -> list[str]:
    """Return the arguments with which an endpoint picker sends traces, if it has none: in one word."""
    return ["--tracing=true"] if passes_arguments(container) and not has_flag(container, "tracing") else []


def _container(container: Json, flags: Sequence[tuple[str, str]], env: Sequence[Json]) -> Json:
    """The container with the flags and variables that it lacks."""
    args = list(container.get("args") or ())
    for flag, value in flags:
        if passes_arguments(container) and not has_option(container, flag):
            args += [flag, word(value, container)]
    present = list(container.get("env") or ())
    names = {variable.get("name") for variable in present}
    added = [variable for variable in env if variable["name"] not in names]
    return {**container, **({"args": args} if args else {}), "env": [*present, *added]}


def _variables(tracing: Json, service: str, metadata: objects.ObservedMeta) -> list[Json]:
    """In an order that never changes; the last one refers to two before it."""

    def field(name: str, path: str) -> Json:
        return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}

    attributes = {
        "k8s.namespace.name": metadata.namespace,
        "k8s.node.name": f"$({_NODE})",
        "k8s.pod.name": f"$({_POD})",
        "llmisvc.name": metadata.name,
    }
    values: list[tuple[str, object]] = [
        ("OTEL_SERVICE_NAME", service),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", tracing.get("exporterEndpoint")),
        ("OTEL_TRACES_EXPORTER", tracing.get("exporter")),
        ("OTEL_TRACES_SAMPLER", tracing.get("sampler")),
        ("OTEL_TRACES_SAMPLER_ARG", tracing.get("samplerArg")),
    ]
    return [
        *({"name": name, "value": value} for name, value in values if value),
        field(_NODE, "spec.nodeName"),
        field(_POD, "metadata.name"),
        {"name": "OTEL_RESOURCE_ATTRIBUTES", "value": ",".join(f"{k}={v}" for k, v in attributes.items())},
    ]
