"""What a Playground's author should know, although the object is accepted. Source: LZ-6.4 and LZ-T15."""

from __future__ import annotations

from collections.abc import Iterator

from app.kube import field
from app.kube.decode import SPEC
from app.kube.names import is_dns1123_subdomain
from app.llmaz import claims, naming, scaling
from app.llmaz.backendruntime.arguments import looks_templated
from app.llmaz.backendruntime.warnings import accelerators, ports
from app.llmaz.playground.types import BackendRuntimeConfig, ElasticConfig, PlaygroundSpec
from app.llmaz.playground.validation import CONFIG, ELASTIC, Playground
from app.llmaz.quantities import Resources
from app.llmaz.skip import annotation_warnings
from app.workload import podrules


def warnings(playground: Playground) -> list[str]:
    spec = playground.spec
    found = [*naming.workload_name_warnings(playground.metadata), *annotation_warnings(playground.metadata)]
    if spec.model_claim is not None and naming.names_no_model(spec.model_claim.model_name):
        found.append(naming.no_model(SPEC.child("modelClaim", "modelName"), spec.model_claim.model_name))
    if spec.model_claims is not None:
        found += claims.warnings(spec.model_claims, SPEC.child("modelClaims"))
    if spec.backend_runtime_config is not None:
        found += _config(spec.backend_runtime_config)
    if spec.elastic_config is not None:
        found += _elastic(spec, spec.elastic_config)
    return found


def _config(config: BackendRuntimeConfig) -> Iterator[str]:
    if not is_dns1123_subdomain(config.backend_name):
        where = CONFIG.child("backendName")
        yield f"{where}: no BackendRuntime can be called {field.go_quote(config.backend_name)}, so nothing is made"
    yield from _arguments(config.args or [])
    yield from podrules.env_warnings(config.envs or [], str(CONFIG.child("envs")))
    path = CONFIG.child("resources")
    yield from accelerators(config.resources, path)
    if config.resources is not None:
        yield from _lone_limits(config.resources)
    if config.version == "":
        yield f"{CONFIG.child('version')}: empty, so the image has no tag; leave it out for the BackendRuntime's"


def _arguments(args: list[str]) -> Iterator[str]:
    path = CONFIG.child("args")
    for position, argument in enumerate(args):
        if looks_templated(argument):
            where = path.index(position)
            yield f"{where}: placeholders are replaced in a BackendRuntime's arguments only; this one stays as it is"
    yield from ports(args, path)


def _lone_limits(resources: Resources) -> Iterator[str]:
    """A limit without a request: the preset's request wins when it is higher (LZ-T15)."""
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
