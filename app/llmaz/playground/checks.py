"""Rules and warnings of a Playground.

Source: LZ-PG01 to LZ-PG09, LZ-N01 to LZ-N08, LZ-N14, LZ-N18, LZ-N19, LZ-N23, LZ-N25.
"""

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from app.hooks import protocol, sendable
from app.kube import field
from app.kube.embedded import checks as embedded
from app.kube.field import SPEC, Advice, advice
from app.kube.names import is_dns1123_subdomain, respelled
from app.kube.quantity import is_quantity, parse
from app.llmaz import checks as shared
from app.llmaz import claims, flavors, quantities, references, scaling
from app.llmaz.backendruntime.checks import NO_TAG, runtime_engine, script_in_args, server_line
from app.llmaz.backendruntime.types import BackendRuntimeSpec, preset
from app.llmaz.checks import sizes
from app.llmaz.names import DEFAULT_BACKEND, skips_loader
from app.llmaz.playground.observed import Request
from app.llmaz.playground.plan import PlaygroundPlan, no_preset, plan
from app.llmaz.playground.types import BackendRuntimeConfig, ElasticConfig, Playground, PlaygroundReason, PlaygroundSpec
from app.llmaz.source import Hub, Image, ObjectStore
from app.settings import Settings
from app.workload.advice import podadvice
from app.workload.advice.advise import advise, advise_further
from app.workload.advice.podview import ContainerView, Devices, PodView, Sizes
from app.workload.engines import promptcache
from app.workload.engines.commandline import CommandLine, passes_arguments, variables_of, words
from app.workload.engines.engine import Engine, serves_tls
from app.workload.readiness.cause import Cause, Stage
from app.workload.rules import podrules, volumes

CONFIG = SPEC.child("backendRuntimeConfig")
ELASTIC = SPEC.child("elasticConfig")


def validate(playground: Playground, old: Playground | None, settings: Settings) -> Iterator[field.Error]:
    """Reject a negative number of replicas; the name is judged on creation only (LZ-N08)."""
    spec = playground.spec
    yield from () if old is not None else shared.workload_name(playground.metadata)
    yield from _claim(spec)
    if spec.replicas < 0:
        yield field.invalid(SPEC.child("replicas"), spec.replicas, "must be 0 or more")
    if spec.backend_runtime_config is not None:
        yield from _config(spec.backend_runtime_config)
    if spec.elastic_config is not None:
        yield from _elastic(spec.elastic_config)


def _claim(spec: PlaygroundSpec) -> Iterator[field.Error]:
    """Require one of ``modelClaim`` and ``modelClaims``, with the name of a model (LZ-PG02, LZ-PG03)."""
    if spec.model_claim is None and spec.model_claims is None:
        yield field.forbidden(SPEC, "set modelClaim or modelClaims to say which model to serve")
    elif spec.model_claim is not None and spec.model_claims is not None:
        error = field.forbidden(SPEC, "modelClaim and modelClaims are mutually exclusive; remove one of the two")
        yield replace(error, place=SPEC.child("modelClaims"))
    elif spec.model_claims is not None:
        yield from claims.check(spec.model_claims, SPEC.child("modelClaims"))
    elif spec.model_claim is not None and not spec.model_claim.model_name:
        yield field.required(SPEC.child("modelClaim", "modelName"), "name an OpenModel")


def _config(config: BackendRuntimeConfig) -> Iterator[field.Error]:
    """Reject a name that no BackendRuntime has, limits below requests, and invalid variables (LZ-PG06, LZ-N03)."""
    path = CONFIG.child("resources")
    if not is_dns1123_subdomain(config.backend_name):
        example = respelled(config.backend_name) or DEFAULT_BACKEND
        detail = f"must be the name of a BackendRuntime (a DNS-1123 subdomain), for example {example}"
        yield field.invalid(CONFIG.child("backendName"), config.backend_name, detail)
    if config.resources is not None:
        for where, detail in quantities.low_limits(config.resources, path):
            yield field.forbidden(where, detail)
    yield from quantities.check_resources(config.resources, path)
    yield from volumes.size_limit(config.shared_memory_size or 0, CONFIG.child("sharedMemorySize"))
    yield from podrules.check("Container.env", config.envs, CONFIG.child("envs"))
    for env_path, variable in CONFIG.child("envs").each(config.envs or ()):
        yield from sendable.check(variable, env_path)


def _elastic(elastic: ElasticConfig) -> Iterator[field.Error]:
    """Require at least one replica, a maximum above the minimum, and a metric in a trigger (LZ-PG07 to LZ-PG10)."""
    minimum, maximum, path = elastic.min_replicas, elastic.max_replicas, ELASTIC.child("minReplicas")
    if minimum == 0:
        yield field.forbidden(path, "an autoscaler cannot scale to 0; use 1 or more")
    elif minimum < 0:
        yield field.invalid(path, minimum, "must be 1 or more")
    if minimum >= maximum:
        error = field.invalid(path, minimum, f"minReplicas must be less than maxReplicas, which is {maximum}")
        yield shared.under_upstreams_path("spec.elasticConfig.scaleTrigger.hpa", error)
    trigger, path = elastic.scale_trigger, ELASTIC.child("scaleTrigger")
    if trigger is not None and trigger.hpa is None:
        error = field.forbidden(
            path.child("hpa"), f"{path}.hpa is required when scaleTrigger is set; add it or remove scaleTrigger"
        )
        yield shared.under_upstreams_path("spec.backendRuntime.scaleTrigger.hpa", error)
    yield from scaling.check(trigger, path)
    yield from scaling.unsendable(trigger, path)


def warnings(playground: Playground) -> list[Advice]:
    spec = playground.spec
    advices: list[Advice] = list(shared.workload_warnings(playground.metadata))
    if spec.model_claim is not None:
        advices += shared.claim_warnings(spec.model_claim.model_name, SPEC.child("modelClaim", "modelName"))
    if spec.model_claims is not None:
        advices += claims.warnings(spec.model_claims, SPEC.child("modelClaims"))
    if spec.backend_runtime_config is not None:
        advices += _config_warnings(spec.backend_runtime_config)
    if spec.elastic_config is not None:
        advices += _elastic_warnings(spec, spec.elastic_config)
    return advices


def _config_warnings(config: BackendRuntimeConfig) -> Iterator[Advice]:
    """Warn of placeholders in arguments, which are passed on as written, and of versions that are not tags (LZ-N31)."""
    args, path = config.args or [], CONFIG.child("args")
    for where, argument in path.each(args):
        if "{{" in argument and "." in argument:
            yield advice(
                where,
                "placeholders are only replaced in the arguments of a BackendRuntime; this one is passed on as written",
            )
    yield from shared.resource_warnings(config.resources, CONFIG.child("resources"))
    if config.version == "":
        message = "empty, so the image has no tag; remove the field to use the BackendRuntime's version"
        yield advice(CONFIG.child("version"), message)
    elif config.version and not embedded.is_tag(config.version):
        yield advice(CONFIG.child("version"), NO_TAG)
    yield from advise([pod_view(config, None)])


def pod_view(config: BackendRuntimeConfig, runtime: BackendRuntimeSpec | None) -> PodView:
    """Return the part of the pods that a Playground adds to those of its runtime, which may not be known."""
    args, path, below = config.args or [], CONFIG.child("args"), runtime or _UNKNOWN
    others = [argument for preset_ in below.recommended_configs or () for argument in preset_.args or ()]
    engine = runtime_engine(below, config.version) if runtime is not None else None
    command = {"command": below.command, "env": below.envs}
    image = f"{below.image}:{config.version or below.version}"
    script = script_in_args({**command, "image": image}, args, path) if runtime is not None else None
    line = script or CommandLine(args, path, engine, [*words(command), *others, *args], passes_arguments(command))
    container = ContainerView(
        {"env": config.envs, "image": f"{below.image}:{config.version}" if config.version else ""},
        CONFIG,
        base={
            "env": below.envs or [],
            "image": f"{below.image}:{below.version}",
            **(below.probes if config.version else {}),
        },
        places={"env": CONFIG.child("envs")},
        line=line,
        tag=CONFIG.child("version"),
        amounts=sizes(config.resources, config.shared_memory_size, CONFIG),
        requests=shared.REQUESTS,
    )
    return PodView({}, CONFIG, containers=[container], refuses_duplicates=False)


_UNKNOWN = BackendRuntimeSpec(image="", version="")


def _elastic_warnings(spec: PlaygroundSpec, elastic: ElasticConfig) -> Iterator[Advice]:
    """Warn of replicas outside of the range, and of 0, from which an autoscaler does not start (LZ-N09)."""
    minimum, maximum = elastic.min_replicas, elastic.max_replicas
    if minimum <= maximum and spec.replicas != 0 and not minimum <= spec.replicas <= maximum:
        yield advice(
            SPEC.child("replicas"),
            f"{spec.replicas} is not within elasticConfig's {minimum} to {maximum}, so an autoscaler will change it",
        )
    if spec.replicas == 0:
        yield advice(SPEC.child("replicas"), "0 stops the pods: elasticConfig does not start them again")
    yield from scaling.warnings(elastic.scale_trigger, ELASTIC.child("scaleTrigger"))


def against_related(playground: Playground, request: Request, settings: Settings) -> list[Advice]:
    """Return why no children would be created, and notes; empty if the objects it refers to are not available."""
    runtime = references.runtime(request.related.runtimes, playground.spec.backend_config.backend_name)
    rejected = [] if isinstance(runtime, Cause) else [*_rejected(playground.spec, runtime)]
    return [*rejected, *_unplanned(playground, request, settings)]


def _rejected(spec: PlaygroundSpec, runtime: BackendRuntimeSpec) -> Iterator[Advice]:
    """Warn of a preset that the BackendRuntime does not have, and of options and metrics that its engine does not."""
    config = spec.backend_config
    if config.config_name is not None and preset(runtime, config.config_name) is None:
        problem = no_preset(config.backend_name, config.config_name, runtime)
        yield advice(CONFIG.child("configName"), problem.text)
    yield from advise_further([pod_view(config, runtime)], [pod_view(config, None)])
    yield from _metrics(spec, runtime)


def _metrics(spec: PlaygroundSpec, runtime: BackendRuntimeSpec, decided: PlaygroundPlan | None = None) -> list[Advice]:
    """Warn of metrics that the pods do not export, with all options of the server where these are decided."""
    config, elastic = spec.backend_config, spec.elastic_config
    args, env = (config.args or [], config.envs) if decided is None else (decided.args, decided.env)
    line = server_line(runtime, runtime_engine(runtime, config.version), args, env)
    triggers = [(ELASTIC.child("scaleTrigger"), elastic.scale_trigger if elastic is not None else None, line)]
    image = f"{runtime.image}:{config.version or runtime.version}"
    return list(scaling.metric_warnings(triggers, image, is_whole=decided is not None))


_TLS = "the server speaks HTTPS, and the probes of BackendRuntime {} speak HTTP, so the pods never become ready"


def _prompt_cache(decided: PlaygroundPlan, engine: Engine | None) -> str:
    """Return why llama.cpp's cache of prompts may exceed the limit of memory; empty if it may not."""
    memory = decided.resources.get("limits", {}).get("memory", "")
    if engine is None or not engine.loads_files or not is_quantity(memory):
        return ""
    parsed = engine.read(decided.args, variables=variables_of(decided.env))
    return promptcache.problem(parsed, int(parse(memory)), "the limit")


def _not_loadable(main: references.ClaimedModel, engine: Engine | None) -> Iterator[str]:
    """Warn of a directory for an engine that loads files; whether the nodes have one is unknown."""
    is_directory = isinstance(main.source, (Hub, Image, ObjectStore)) and ".gguf" not in main.source.path(skip=False)
    if engine is not None and engine.loads_files and is_directory:
        yield f"{engine} loads one file, and OpenModel {main.name} is a directory; name the file in its source"


def _planned_view(playground: Playground, decided: PlaygroundPlan, model: references.ClaimedModel) -> PodView:
    """Return the view with what the model and its flavor add to the pods."""
    spec, config = playground.spec, playground.spec.backend_config
    view, flavor = pod_view(config, decided.runtime), flavors.chosen(model.flavors, spec.claims.inference_flavors or [])
    container, path = view.containers[0], SPEC.child("modelClaim" if spec.model_claim is not None else "modelClaims")
    limits, gpus = (flavor.limits, flavors.devices(flavor)) if flavor is not None else ({}, 0)
    remedy = f"request one in a flavor of OpenModel {model.name}"
    started = {"command": decided.runtime.command, "env": decided.runtime.envs, "args": decided.args}
    container = msgspec.structs.replace(
        container,
        line=container.line.beside(decided.args, config.envs, CONFIG.child("envs"), words(started)),
        devices=Devices([*(limits or {}), *decided.resources.get("limits", {})], path, remedy),  # LZ-N41
        sizes=Sizes(
            gpus,
            path=path,
            remedy=f"add --tensor-parallel-size {gpus} to backendRuntimeConfig.args, or request 1 in the flavor",
        ),
        weights=shared.weights(model.source, playground.metadata, container.line, path),
        fetches=shared.fetches(model.source),
    )
    nodes = flavors.node_selector(flavor) if flavor is not None else {}
    return msgspec.structs.replace(view, containers=[container], nodes=nodes)


def _unplanned(playground: Playground, request: Request, settings: Settings) -> list[Advice]:
    """Warn of what keeps the Playground from serving its models with its BackendRuntime (LZ-N19, LZ-N39, LZ-N41)."""
    related, spec = request.related, playground.spec
    claim, path = spec.claims, SPEC.child("modelClaim" if spec.model_claim is not None else "modelClaims")
    names = claim.names
    if not names or any(protocol.get(related.models, name) is None for name in names):
        return []
    claimed = references.models(related.models, names)
    if isinstance(claimed, Cause):
        return [advice(path, claimed.text)]
    advices = [
        advice(path, note) for note in flavors.notes(claimed[0].name, claimed[0].flavors, claim.inference_flavors or [])
    ]
    if protocol.get(related.runtimes, spec.backend_config.backend_name) is None:
        return advices
    decided = plan(playground, related, settings)
    if not isinstance(decided, Cause):
        config = spec.backend_config
        engine = runtime_engine(decided.runtime, config.version)
        base_views = [pod_view(config, None), pod_view(config, decided.runtime)]
        advices += advise_further([_planned_view(playground, decided, claimed[0])], base_views)
        base_warnings = _metrics(spec, decided.runtime)
        advices += (warning for warning in _metrics(spec, decided.runtime, decided) if warning not in base_warnings)
        probes = filter(None, decided.runtime.probes.values())
        if serves_tls(decided.args, variables_of(decided.env)) and any(map(podadvice.speaks_http, probes)):
            advices.append(advice(CONFIG.child("args"), _TLS.format(config.backend_name)))
        if problem := _prompt_cache(decided, engine):
            advices.append(advice(CONFIG.child("resources"), problem))
        loaded = () if skips_loader(playground.metadata) else claimed[:1]
        advices += (advice(path, problem) for model in loaded for problem in _not_loadable(model, engine))
        return [*advices, *(advice(SPEC, note) for note in decided.notes)]
    if decided.reason is PlaygroundReason.PRESET_NOT_FOUND and spec.backend_config.config_name is not None:
        return advices  # another rule warns of the name
    return [*advices, advice(path if decided.stage is Stage.MODEL else CONFIG, decided.text)]
