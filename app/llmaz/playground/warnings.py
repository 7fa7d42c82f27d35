"""What a Playground's author should know, although the object is accepted. Source: llmaz spec 6.4 and T15."""

from __future__ import annotations

from collections.abc import Iterator

from app.kube.decode import SPEC
from app.llmaz import naming, scaling
from app.llmaz.backendruntime.arguments import looks_templated
from app.llmaz.backendruntime.warnings import accelerators
from app.llmaz.names import PORT
from app.llmaz.playground.types import BackendRuntimeConfig, ElasticConfig, PlaygroundSpec
from app.llmaz.playground.validation import CONFIG, ELASTIC, Playground
from app.llmaz.quantities import Resources
from app.llmaz.skip import annotation_warnings
from app.workload import podrules


def warnings(playground: Playground) -> list[str]:
    spec = playground.spec
    found = [*naming.workload_name_warnings(playground.metadata), *annotation_warnings(playground.metadata)]
    if spec.backend_runtime_config is not None:
        found += _config(spec.backend_runtime_config)
    if spec.elastic_config is not None:
        found += _elastic(spec, spec.elastic_config)
    return found


def _config(config: BackendRuntimeConfig) -> Iterator[str]:
    yield from _arguments(config.args or [])
    yield from podrules.env_warnings(config.envs or [], str(CONFIG.child("envs")))
    path = CONFIG.child("resources")
    yield from accelerators(config.resources, path)
    if config.resources is not None:
        yield from _lone_limits(config.resources)
    if config.version == "":
        yield f"{CONFIG.child('version')}: empty, so the image has no tag; leave it out for the BackendRuntime's"


def _arguments(args: list[str]) -> Iterator[str]:
    for position, argument in enumerate(args):
        where = CONFIG.child("args").index(position)
        if looks_templated(argument):
            yield f"{where}: placeholders are replaced in a BackendRuntime's arguments only; this one stays as it is"
        option, equals, value = argument.partition("=")
        if option != "--port":
            continue
        port = value if equals else args[position + 1] if position + 1 < len(args) else ""
        if port != str(PORT):
            yield f"{where}: the port is always {PORT}; probes and the Service do not follow this argument"


def _lone_limits(resources: Resources) -> Iterator[str]:
    """A limit without a request: the preset's request wins when it is higher (T15)."""
    requests = resources.requests or {}
    for name in ("cpu", "memory"):
        if name in (resources.limits or {}) and name not in requests:
            where = CONFIG.child("resources", "limits").key(name)
            yield f"{where}: raised to the preset's request where that is higher; set requests.{name} as well"


def _elastic(spec: PlaygroundSpec, elastic: ElasticConfig) -> Iterator[str]:
    least, most = elastic.min_replicas, elastic.max_replicas
    if least <= most and spec.replicas != 0 and not least <= spec.replicas <= most:
        yield (
            f"{SPEC.child('replicas')}: {spec.replicas} is outside elasticConfig's range from {elastic.min_replicas} "
            f"to {elastic.max_replicas}; the autoscaler will change it"
        )
    if elastic.scale_trigger is not None and elastic.scale_trigger.hpa is not None:
        yield from scaling.warnings(elastic.scale_trigger.hpa, ELASTIC.child("scaleTrigger", "hpa"))
