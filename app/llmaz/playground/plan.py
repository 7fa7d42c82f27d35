"""Every decision about a Playground: which engine and preset serve which models. Source: LZ-3, LZ-4.1, LZ-4.5."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.kube.podspec import each_name_once, stored
from app.llmaz import loadable, lookup
from app.llmaz.backendruntime.arguments import (
    DRAFT_MODEL_PATH,
    MODEL_NAME,
    MODEL_PATH,
    ArgumentError,
    render,
)
from app.llmaz.backendruntime.types import (
    DEFAULT_PRESET,
    SPECULATIVE_PRESET,
    BackendRuntimeSpec,
    RecommendedConfig,
    preset,
)
from app.llmaz.claims import ModelReference, main_first, speculative
from app.llmaz.embedded import Json
from app.llmaz.lookup import Model, Runtime
from app.llmaz.names import SKIP_LOADER
from app.llmaz.playground import merge
from app.llmaz.playground.related import Related
from app.llmaz.playground.types import BackendRuntimeConfig, ElasticConfig, PlaygroundSpec, Reason, models
from app.llmaz.playground.validation import Playground
from app.llmaz.scaling import HPATrigger
from app.llmaz.skip import skips_loader
from app.llmaz.source import Ollama
from app.workload.cause import Cause, Stage

_NO_CONFIG = BackendRuntimeConfig()


@dataclass(frozen=True, slots=True)
class Scaling:
    """A range of replicas and what to scale on."""

    least: int
    most: int
    trigger: HPATrigger


@dataclass(frozen=True, slots=True)
class Plan:
    """What a Playground comes to."""

    name: str
    namespace: str
    skip_annotation: str | None
    """Value of the annotation, handed down as it is."""
    models: list[ModelReference]
    flavors: list[str]
    replicas: int
    image: str
    runtime: Runtime
    args: list[str]
    env: list[Json]
    resources: dict[str, dict[str, str]]
    shared_memory: str | None
    scaling: Scaling | None
    notes: list[str]
    """What the user should know, although it stops nothing."""


def plan(playground: Playground, related: Related) -> Plan | Cause:
    """The plan, or why there is none: then everything stays as it is."""
    spec, metadata = playground.spec, playground.metadata
    references = models(spec).models or []
    found = lookup.models(related.models, [reference.name for reference in main_first(references)])
    if isinstance(found, Cause):
        return found
    skip = skips_loader(metadata)
    cannot = loadable.unloadable(found, skip=skip)
    if cannot is not None:
        return cannot
    config = spec.backend_runtime_config or _NO_CONFIG
    engine = lookup.runtime(related.runtimes, config.backend_name)
    if isinstance(engine, Cause):
        return engine
    return _decide(playground, found, engine, skip=skip)


def _decide(playground: Playground, found: list[Model], engine: Runtime, *, skip: bool) -> Plan | Cause:
    """The plan of a Playground whose models and engine are there."""
    spec, metadata, runtime = playground.spec, playground.metadata, engine.spec
    claims, config = models(spec), spec.backend_runtime_config or _NO_CONFIG
    references = claims.models or []
    inferred = SPECULATIVE_PRESET if speculative(references) else DEFAULT_PRESET
    chosen = inferred if config.config_name is None else config.config_name
    base = preset(runtime, chosen)
    if base is None:
        return _no_preset(config.backend_name, chosen, runtime)
    try:
        args = render(base.args or (), _values(found, skip=skip))
    except ArgumentError as error:
        text = f"preset {chosen} of BackendRuntime {config.backend_name}: {error}"
        return Cause(Stage.SPEC, text, Reason.ARGUMENT_NOT_RENDERABLE)
    version = runtime.version if config.version is None else config.version
    scaling = _scaling(spec.elastic_config, preset(runtime, inferred))
    return Plan(
        name=metadata.name,
        namespace=metadata.namespace,
        skip_annotation=(metadata.annotations or {}).get(SKIP_LOADER),
        models=references,
        flavors=claims.inference_flavors or [],
        replicas=spec.replicas,
        image=f"{runtime.image}:{version}",
        runtime=engine,
        args=[*args, *(config.args or ())],
        env=[stored(one) for one in each_name_once([*(runtime.envs or ()), *(config.envs or ())])],
        resources=merge.resources(base.resources, config.resources),
        shared_memory=config.shared_memory_size or base.shared_memory_size,
        scaling=scaling,
        notes=[*_engine_notes(found[0], config, runtime), *_scaling_notes(spec, scaling, base)],
    )


def _no_preset(backend: str, name: str, runtime: BackendRuntimeSpec) -> Cause:
    known = ", ".join(config.name for config in runtime.recommended_configs or ()) or "none"
    text = f"BackendRuntime {backend} has no preset {name}; it has {known}"
    return Cause(Stage.SPEC, text, Reason.PRESET_NOT_FOUND)


def _values(found: list[Model], *, skip: bool) -> dict[str, str]:
    """What placeholders stand for."""
    values = {MODEL_NAME: found[0].served_name, MODEL_PATH: found[0].source.path(skip=skip)}
    if len(found) > 1:
        values[DRAFT_MODEL_PATH] = found[1].source.path(skip=skip)
    return values


def _scaling(elastic: ElasticConfig | None, inferred: RecommendedConfig | None) -> Scaling | None:
    """The Playground's trigger, else that of the preset its models imply, whatever ``configName`` says (LZ-T08)."""
    if elastic is None:
        return None
    trigger = elastic.scale_trigger or (inferred.scale_trigger if inferred is not None else None)
    if trigger is None or trigger.hpa is None:
        return None
    return Scaling(elastic.min_replicas, elastic.max_replicas, trigger.hpa)


def _engine_notes(main: Model, config: BackendRuntimeConfig, runtime: BackendRuntimeSpec) -> Iterator[str]:
    """Rule LZ-N18."""
    is_ollama = "ollama" in config.backend_name or "ollama" in runtime.image
    if isinstance(main.source, Ollama) and not is_ollama:
        yield f"OpenModel {main.name} is one of ollama's, which backend {config.backend_name} cannot fetch"
    if is_ollama and not isinstance(main.source, Ollama):
        yield f"backend {config.backend_name} serves models of ollama:// sources, OpenModel {main.name} has another"


def _scaling_notes(spec: PlaygroundSpec, scaling: Scaling | None, base: RecommendedConfig) -> Iterator[str]:
    """Rule LZ-N25, and the preset whose trigger does not count (LZ-T08)."""
    if spec.elastic_config is None or scaling is not None:
        return
    hint = f"; the trigger of preset {base.name} does not count" if base.scale_trigger is not None else ""
    yield f"elasticConfig has no effect, because neither it nor the preset has a scaleTrigger{hint}"
