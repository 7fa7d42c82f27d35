"""The rules of a Playground that its types cannot say. Source: LZ-PG01 to LZ-PG09, LZ-N01 to LZ-N08 and LZ-N23."""

from __future__ import annotations

from collections.abc import Iterator

from app.hooks import sendable
from app.kube import field
from app.kube.decode import SPEC
from app.kube.resource import Resource
from app.llmaz import claims, naming, scaling
from app.llmaz.playground.types import BackendRuntimeConfig, ElasticConfig, PlaygroundSpec, PlaygroundStatus
from app.llmaz.quantities import check_resources, low_limits
from app.llmaz.shown import UpstreamPath
from app.settings import Settings
from app.workload import podrules

Playground = Resource[PlaygroundSpec, PlaygroundStatus]

CONFIG = SPEC.child("backendRuntimeConfig")
ELASTIC = SPEC.child("elasticConfig")


def validate(playground: Playground, old: Playground | None, settings: Settings) -> list[field.Error]:
    """Every rule; the name is judged on creation only, because it never changes."""
    spec = playground.spec
    errors = [] if old is not None else list(naming.workload_name(playground.metadata))
    errors += _claim(spec)
    if spec.replicas < 0:
        errors.append(field.invalid(SPEC.child("replicas"), spec.replicas, "must be 0 or more"))
    if spec.backend_runtime_config is not None:
        errors += _config(spec.backend_runtime_config)
    if spec.elastic_config is not None:
        errors += _elastic(spec.elastic_config)
    return errors


def _claim(spec: PlaygroundSpec) -> Iterator[field.Error]:
    if spec.model_claim is None and spec.model_claims is None:
        yield field.forbidden(SPEC, "say which model to serve: set modelClaim or modelClaims")
    elif spec.model_claim is not None and spec.model_claims is not None:
        yield field.forbidden(SPEC, "modelClaim and modelClaims exclude each other; remove one of the two")
    elif spec.model_claims is not None:
        yield from claims.check(spec.model_claims, SPEC.child("modelClaims"))
    elif spec.model_claim is not None and not spec.model_claim.model_name:
        yield field.required(SPEC.child("modelClaim", "modelName"), "name an OpenModel")


def _config(config: BackendRuntimeConfig) -> Iterator[field.Error]:
    path = CONFIG.child("resources")
    if config.resources is not None:
        for where, detail in low_limits(config.resources, path):
            yield field.forbidden(where, detail)
    yield from check_resources(config.resources, path)
    yield from podrules.env(config.envs or [], CONFIG.child("envs"))
    for position, variable in enumerate(config.envs or ()):
        yield from sendable.check(variable, CONFIG.child("envs").index(position))


def _elastic(elastic: ElasticConfig) -> Iterator[field.Error]:
    least, most, where = elastic.min_replicas, elastic.max_replicas, ELASTIC.child("minReplicas")
    trigger = elastic.scale_trigger
    if least == 0:
        yield field.forbidden(where, "an autoscaler cannot go down to 0; use 1 or more")
    elif least < 0:
        yield field.invalid(where, least, "must be 1 or more")
    if least >= most:
        shown = UpstreamPath("spec.elasticConfig.scaleTrigger.hpa", where)
        yield field.invalid(shown, least, f"minReplicas must be less than maxReplicas, which is {most}")
    if trigger is None:
        return
    path = ELASTIC.child("scaleTrigger", "hpa")
    if trigger.hpa is None:
        shown = UpstreamPath("spec.backendRuntime.scaleTrigger.hpa", path)
        yield field.forbidden(shown, f"{path} is required where scaleTrigger is set; add it or remove scaleTrigger")
    else:
        yield from scaling.check(trigger.hpa, path)
        yield from scaling.unsendable(trigger.hpa, path)
