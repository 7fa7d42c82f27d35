"""Every decision about a Playground: which engine and preset serve which models. Source: LZ-3, LZ-4.1, LZ-4.5."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.kube.base import Json
from app.kube.podspec import each_name_once, stored
from app.llmaz import flavors, references
from app.llmaz.arguments import (
    DEGREES,
    DRAFT_MODEL_PATH,
    MODEL_NAME,
    MODEL_PATH,
    ArgumentError,
    named_words,
    render,
    render_variable,
    says_so,
)
from app.llmaz.backendruntime.types import (
    DEFAULT_PRESET,
    SPECULATIVE_PRESET,
    BackendRuntimeSpec,
    RecommendedConfig,
    preset,
)
from app.llmaz.claims import ModelReference, main_first, speculative
from app.llmaz.names import SKIP_LOADER, skips_loader
from app.llmaz.openmodel.types import Flavor
from app.llmaz.playground.observed import Related
from app.llmaz.playground.types import BackendRuntimeConfig, ElasticConfig, Playground, PlaygroundSpec, Reason, models
from app.llmaz.quantities import Resources, below
from app.llmaz.references import Model, Runtime
from app.llmaz.scaling import HPATrigger
from app.llmaz.source import Ollama
from app.settings import Settings
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
    """Warnings that stop nothing."""


def plan(playground: Playground, related: Related, settings: Settings) -> Plan | Cause:
    """Build the plan, or return the cause that keeps everything unchanged."""
    spec, metadata = playground.spec, playground.metadata
    claimed = models(spec).models or []
    found = references.models(related.models, [model.name for model in main_first(claimed)])
    if isinstance(found, Cause):
        return found
    skip = skips_loader(metadata)
    cannot = references.unloadable(found, settings, skip=skip)
    if cannot is not None:
        return cannot
    config = spec.backend_runtime_config or _NO_CONFIG
    engine = references.runtime(related.runtimes, config.backend_name)
    if isinstance(engine, Cause):
        return engine
    return _decide(playground, found, engine, skip=skip)


def _decide(playground: Playground, found: list[Model], engine: Runtime, *, skip: bool) -> Plan | Cause:
    """The plan of a Playground whose models and engine are there."""
    spec, metadata, runtime = playground.spec, playground.metadata, engine.spec
    claims, config = models(spec), spec.backend_runtime_config or _NO_CONFIG
    claimed = claims.models or []
    inferred = SPECULATIVE_PRESET if speculative(claimed) else DEFAULT_PRESET
    chosen = inferred if config.config_name is None else config.config_name
    base = preset(runtime, chosen)
    if base is None:
        return _no_preset(config.backend_name, chosen, runtime)
    flavor = flavors.chosen(found[0].flavors, claims.inference_flavors or [])
    params = flavors.words(flavor)
    given = [*(base.args or ()), *_param_args(base, params, config.args or [])]
    try:
        args = render(given, {**params, **_values(found, skip=skip)})
    except ArgumentError as error:
        text = f"preset {chosen} of BackendRuntime {config.backend_name}: {error}"
        return Cause(Stage.SPEC, text, Reason.ARGUMENT_NOT_RENDERABLE)
    version = runtime.version if config.version is None else config.version
    scaling = _scaling(spec.elastic_config, (base, preset(runtime, inferred)))
    return Plan(
        name=metadata.name,
        namespace=metadata.namespace,
        skip_annotation=(metadata.annotations or {}).get(SKIP_LOADER),
        models=claimed,
        flavors=claims.inference_flavors or [],
        replicas=spec.replicas,
        image=f"{runtime.image}:{version}",
        runtime=engine,
        args=[*args, *(config.args or ())],
        env=[stored(one) for one in each_name_once([*_variables(runtime, params), *(config.envs or ())])],
        resources=merged_resources(base.resources, config.resources),
        shared_memory=config.shared_memory_size or base.shared_memory_size,
        scaling=scaling,
        notes=[
            *_engine_notes(found[0], config, runtime),
            *_scaling_notes(spec, scaling),
            *_degree_notes(flavor, base, runtime),
        ],
    )


def _no_preset(backend: str, name: str, runtime: BackendRuntimeSpec) -> Cause:
    known = ", ".join(config.name for config in runtime.recommended_configs or ()) or "none"
    text = f"BackendRuntime {backend} has no preset {name}; its presets are: {known}"
    return Cause(Stage.SPEC, text, Reason.PRESET_NOT_FOUND)


def _values(found: list[Model], *, skip: bool) -> dict[str, str]:
    """Values of the placeholders."""
    values = {MODEL_NAME: found[0].served_name, MODEL_PATH: found[0].source.path(skip=skip)}
    if len(found) > 1:
        values[DRAFT_MODEL_PATH] = found[1].source.path(skip=skip)
    return values


def _param_args(base: RecommendedConfig, params: Mapping[str, str], own: Sequence[str]) -> Iterator[str]:
    """Arguments for the flavor's params, unless the Playground's own args have them. Source: LZ-3.5.

    Being split over one device is what every engine does by itself, so nothing says it.
    """
    for added in base.param_args or ():
        is_set = added.param in params and (added.param not in DEGREES or params[added.param] != "1")
        if is_set and not says_so(own, [*(added.args or ()), *(added.unless or ())]):
            yield from added.args or ()


def _variables(runtime: BackendRuntimeSpec, params: Mapping[str, str]) -> Iterator[Json]:
    for variable in runtime.envs or ():
        value = variable.get("value")
        yield {**variable, "value": render_variable(value, params)} if value else variable


def _scaling(elastic: ElasticConfig | None, presets: Iterable[RecommendedConfig | None]) -> Scaling | None:
    """The Playground's trigger, else that of the preset it uses, else that of the preset its models imply (LZ-T08)."""
    if elastic is None:
        return None
    triggers = (elastic.scale_trigger, *(config.scale_trigger for config in presets if config is not None))
    trigger = next((trigger for trigger in triggers if trigger is not None), None)
    if trigger is None or trigger.hpa is None:
        return None
    return Scaling(elastic.min_replicas, elastic.max_replicas, trigger.hpa)


def _engine_notes(main: Model, config: BackendRuntimeConfig, runtime: BackendRuntimeSpec) -> Iterator[str]:
    """Sources that one engine alone can have, which is called like their protocol, and has no others (LZ-N18)."""
    own = Ollama.protocol
    has_own = own in config.backend_name or own in runtime.image
    if isinstance(main.source, Ollama) and not has_own:
        yield f"OpenModel {main.name} has an {own}:// source, which backend {config.backend_name} cannot fetch"
    if has_own and not isinstance(main.source, Ollama):
        yield f"backend {config.backend_name} only serves {own}:// sources; OpenModel {main.name} has another one"


def _scaling_notes(spec: PlaygroundSpec, scaling: Scaling | None) -> Iterator[str]:
    """An elastic Playground that nothing scales (LZ-N25)."""
    if spec.elastic_config is not None and scaling is None:
        yield "elasticConfig has no effect, because neither it nor the preset has a scaleTrigger"


def _degree_notes(flavor: Flavor | None, base: RecommendedConfig, runtime: BackendRuntimeSpec) -> Iterator[str]:
    """Warn of parallelism in a flavor for which the preset has no placeholder (LZ-N35)."""
    added = (argument for one in base.param_args or () for argument in one.args or ())
    texts = [*(base.args or ()), *added, *(variable.get("value") or "" for variable in runtime.envs or ())]
    told = {word for text in texts for word in named_words(text)}
    given = (flavor.params if flavor is not None else None) or {}
    for word in DEGREES:
        if flavor is not None and given.get(word, "1") != "1" and word not in told:
            yield f"flavor {flavor.name}: {word} has no effect, because the preset has no placeholder for it"


def merged_resources(preset: Resources | None, playground: Resources | None) -> dict[str, dict[str, str]]:
    """Requests and limits of the engine; empty ones are left out.

    Without settings of the Playground the preset's are taken as they are. Otherwise the Playground's win one by one,
    and take the preset's with them: a limit lowers a request that is above it, a request raises a limit that is below
    it. A limit of cpu or memory that nobody set becomes the request.
    """
    limits, requests = _amounts(preset, "limits"), _amounts(preset, "requests")
    if playground is not None:
        own = _amounts(playground, "limits")
        limits, requests = limits | own, requests | _amounts(playground, "requests")
        for name, request in requests.items():
            limit = limits.get(name)
            if limit is None and name in ("cpu", "memory"):
                limits[name] = request
            elif limit is not None and below(limit, request):
                if name in own:
                    requests[name] = limit
                else:
                    limits[name] = request
    return {key: amounts for key, amounts in (("limits", limits), ("requests", requests)) if amounts}


def _amounts(given: Resources | None, kind: str) -> dict[str, str]:
    return dict((getattr(given, kind) if given is not None else None) or {})
