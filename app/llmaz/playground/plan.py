"""Every decision about a Playground: which engine and preset serve which models. Source: LZ-3, LZ-4.1, LZ-4.5."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from app.kube.base import Json
from app.kube.child import without_none
from app.kube.podspec import each_name_once, normalised
from app.kube.quantity import parse
from app.llmaz import arguments, flavors, references
from app.llmaz.backendruntime.checks import runtime_engine
from app.llmaz.backendruntime.types import (
    DEFAULT_PRESET,
    SPECULATIVE_PRESET,
    BackendRuntimeSpec,
    RecommendedConfig,
    preset,
)
from app.llmaz.claims import speculative
from app.llmaz.names import INFERENCE_API, skips_loader
from app.llmaz.openmodel.types import Flavor
from app.llmaz.playground.observed import PlaygroundRelated
from app.llmaz.playground.types import BackendRuntimeConfig, ElasticConfig, Playground, PlaygroundReason, PlaygroundSpec
from app.llmaz.quantities import Resources
from app.llmaz.references import ClaimedModel
from app.llmaz.scaling import stored_metric
from app.llmaz.source import Ollama
from app.settings import Settings
from app.workload.autoscaler import stored_behavior
from app.workload.engines.engine import Engine
from app.workload.readiness.cause import Cause, Stage


class PlaygroundPlan(msgspec.Struct, frozen=True):
    image: str
    runtime: BackendRuntimeSpec
    args: list[str]
    env: list[Json]
    resources: dict[str, dict[str, str]]
    shared_memory: str | None
    scaling: Json | None
    """The spec of the autoscaler."""
    notes: list[str]


def plan(playground: Playground, related: PlaygroundRelated, settings: Settings) -> PlaygroundPlan | Cause:
    spec, metadata = playground.spec, playground.metadata
    claims, config, skip = spec.claims, spec.backend_config, skips_loader(metadata)
    models = references.loadable_models(related.models, claims.names, settings, skip=skip)
    if isinstance(models, Cause):
        return models
    runtime = references.runtime(related.runtimes, config.backend_name)
    if isinstance(runtime, Cause):
        return runtime
    inferred = SPECULATIVE_PRESET if speculative(claims.models or []) else DEFAULT_PRESET
    chosen = inferred if config.config_name is None else config.config_name
    base = preset(runtime, chosen)
    if base is None:
        return no_preset(config.backend_name, chosen, runtime)
    flavor = flavors.chosen(models[0].flavors, claims.inference_flavors or [])
    params = flavors.words(flavor)
    engine = runtime_engine(runtime, config.version)
    templates = [*(base.args or ()), *_param_args(base, params, config.args or [], engine)]
    try:
        args = arguments.render(templates, {**params, **_values(models, skip=skip)})
    except arguments.ArgumentError as error:
        text = f"preset {chosen} of BackendRuntime {config.backend_name}: {error}"
        return Cause(Stage.SPEC, text, PlaygroundReason.ARGUMENT_NOT_RENDERABLE)
    version = runtime.version if config.version is None else config.version
    scaling = _scaling(metadata.name, spec.elastic_config, (base, preset(runtime, inferred)))
    return PlaygroundPlan(
        image=f"{runtime.image}:{version}",
        runtime=runtime,
        args=arguments.together(engine, args, config.args or []),
        env=[normalised(variable) for variable in each_name_once([*_variables(runtime, params), *(config.envs or ())])],
        resources=merged_resources(base.resources, config.resources),
        shared_memory=config.shared_memory_size or base.shared_memory_size,
        scaling=scaling,
        notes=[
            *_engine_notes(models[0], config, runtime),
            *_scaling_notes(spec, scaling),
            *_degree_notes(flavor, base, runtime),
        ],
    )


def no_preset(backend: str, name: str, runtime: BackendRuntimeSpec) -> Cause:
    names = ", ".join(config.name for config in runtime.recommended_configs or ()) or "none"
    text = f"BackendRuntime {backend} has no preset {name}; its presets are: {names}"
    return Cause(Stage.SPEC, text, PlaygroundReason.PRESET_NOT_FOUND)


def _values(models: list[ClaimedModel], *, skip: bool) -> dict[str, str]:
    values = {arguments.MODEL_NAME: models[0].served_name, arguments.MODEL_PATH: models[0].source.path(skip=skip)}
    if len(models) > 1:
        values[arguments.DRAFT_MODEL_PATH] = models[1].source.path(skip=skip)
    return values


def _param_args(
    base: RecommendedConfig, params: Mapping[str, str], args: Sequence[str], engine: Engine | None
) -> Iterator[str]:
    """Return arguments for the flavor's params, unless the args set them or a degree is 1, the default (LZ-3.5)."""
    for group in base.param_args or ():
        is_set = group.param in params and (group.param not in arguments.DEGREES or params[group.param] != "1")
        if is_set and not arguments.has_option(engine, args, [*(group.args or ()), *(group.unless or ())]):
            yield from group.args or ()


def _variables(runtime: BackendRuntimeSpec, params: Mapping[str, str]) -> Iterator[Json]:
    for variable in runtime.envs or ():
        value = variable.get("value")
        yield {**variable, "value": arguments.render_variable(value, params)} if value else variable


def _scaling(name: str, elastic: ElasticConfig | None, presets: Iterable[RecommendedConfig | None]) -> Json | None:
    """Use the first trigger of the Playground, its preset, and the preset that its models imply (LZ-T08)."""
    if elastic is None:
        return None
    triggers = (elastic.scale_trigger, *(config.scale_trigger for config in presets if config is not None))
    trigger = next((trigger for trigger in triggers if trigger is not None), None)
    if trigger is None or trigger.hpa is None:
        return None
    return without_none(
        scaleTargetRef={"apiVersion": INFERENCE_API, "kind": "Playground", "name": name},
        minReplicas=elastic.min_replicas,
        maxReplicas=elastic.max_replicas,
        metrics=[stored_metric(metric) for metric in trigger.hpa.metrics or ()] or None,
        behavior=stored_behavior(trigger.hpa.behavior),
    )


def _engine_notes(main: ClaimedModel, config: BackendRuntimeConfig, runtime: BackendRuntimeSpec) -> Iterator[str]:
    """Warn of ollama sources with another engine, and of other sources with ollama (LZ-N18)."""
    protocol = Ollama.protocol
    is_ollama = protocol in config.backend_name or protocol in runtime.image
    if isinstance(main.source, Ollama) and not is_ollama:
        yield f"OpenModel {main.name} has an {protocol}:// source, which backend {config.backend_name} cannot fetch"
    if is_ollama and not isinstance(main.source, Ollama):
        yield f"backend {config.backend_name} only serves {protocol}:// sources; OpenModel {main.name} has another one"


def _scaling_notes(spec: PlaygroundSpec, scaling: Json | None) -> Iterator[str]:
    """Warn of an elastic Playground without a trigger (LZ-N25)."""
    if spec.elastic_config is not None and scaling is None:
        yield "elasticConfig has no effect, because neither it nor the preset has a scaleTrigger"


def _degree_notes(flavor: Flavor | None, base: RecommendedConfig, runtime: BackendRuntimeSpec) -> Iterator[str]:
    """Warn of parallelism in a flavor for which the preset has no placeholder (LZ-N35)."""
    added = (argument for group in base.param_args or () for argument in group.args or ())
    templates = [*(base.args or ()), *added, *(variable.get("value") or "" for variable in runtime.envs or ())]
    placeholders = {word for template in templates for word in arguments.named_words(template)}
    params = (flavor.params if flavor is not None else None) or {}
    for word in arguments.DEGREES:
        if flavor is not None and params.get(word, "1") != "1" and word not in placeholders:
            yield f"flavor {flavor.name}: {word} has no effect, because the preset has no placeholder for it"


def merged_resources(preset: Resources | None, playground: Resources | None) -> dict[str, dict[str, str]]:
    """Merge requests and limits of the engine; empty ones are left out.

    The Playground's values replace the preset's one by one. A limit of the Playground lowers the preset's request to
    it, and a request raises the preset's limit. Without a limit of cpu or memory, the request is the limit.
    """
    limits, requests = _amounts(preset, "limits"), _amounts(preset, "requests")
    if playground is not None:
        replaced = _amounts(playground, "limits")
        limits, requests = limits | replaced, requests | _amounts(playground, "requests")
        for name, request in requests.items():
            limit = limits.get(name)
            if limit is None and name in ("cpu", "memory"):
                limits[name] = request
            elif limit is not None and parse(limit) < parse(request):
                if name in replaced:
                    requests[name] = limit
                else:
                    limits[name] = request
    return {key: amounts for key, amounts in (("limits", limits), ("requests", requests)) if amounts}


def _amounts(resources: Resources | None, kind: str) -> dict[str, str]:
    return dict((getattr(resources, kind) if resources is not None else None) or {})
