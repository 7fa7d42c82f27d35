"""Rules and warnings of a BackendRuntime (LZ-BR01 to LZ-BR03, LZ-N20 to LZ-N24, LZ-N30, LZ-N31)."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from msgspec.structs import replace

from app.hooks import sendable
from app.kube import field
from app.kube.base import Json
from app.kube.embedded import checks as embedded
from app.kube.field import SPEC, Advice, advice
from app.kube.spelling import nearest
from app.llmaz import arguments, quantities, scaling
from app.llmaz.backendruntime.types import DEFAULT_PRESET, BackendRuntime, BackendRuntimeSpec, RecommendedConfig, preset
from app.llmaz.checks import REQUESTS, resource_warnings, sizes, under_upstreams_path
from app.llmaz.names import GRACE_SECONDS, PORT, PORT_NAME
from app.settings import Settings
from app.workload.advice.advise import advise
from app.workload.advice.podview import ContainerView, PodView, ServerPort
from app.workload.engines.commandline import (
    CommandLine,
    evaluates,
    passes_arguments,
    script_line,
    variables_of,
    words,
)
from app.workload.engines.engine import Engine, engine_named
from app.workload.rules import podrules, volumes, wholepod

PRESETS = SPEC.child("recommendedConfigs")
NO_TAG = "must be a tag of the BackendRuntime's image, without its name"


def validate(runtime: BackendRuntime, old: BackendRuntime | None, settings: Settings) -> Iterator[field.Error]:
    yield from _presets(runtime.spec.recommended_configs or [])
    yield from unusable(runtime.spec)


def unusable(spec: BackendRuntimeSpec) -> Iterator[field.Error]:
    """Validate the fields that make every pod or autoscaler of the runtime invalid."""
    yield from podrules.check("Container.env", spec.envs, SPEC.child("envs"))
    for name, probe in spec.probes.items():
        yield from podrules.check_embedded(f"Container.{name}", probe, SPEC.child(name))
    yield from podrules.check_embedded("Container.lifecycle", spec.lifecycle, SPEC.child("lifecycle"))
    yield from wholepod.long_sleeps(spec.lifecycle or {}, SPEC.child("lifecycle"), GRACE_SECONDS)
    for path, variable in SPEC.child("envs").each(spec.envs or ()):
        yield from sendable.check(variable, path)
    for path, config in PRESETS.each(spec.recommended_configs or ()):
        yield from scaling.unsendable(config.scale_trigger, path.child("scaleTrigger"))


def _presets(configs: list[RecommendedConfig]) -> Iterator[field.Error]:
    """Reject two presets of one name, and invalid resources and triggers (LZ-BR01, LZ-BR02, LZ-N21)."""
    names: set[str] = set()
    for path, config in PRESETS.each(configs):
        if config.name in names:
            detail = f"{path}: another preset is already named {field.go_quote(config.name)}; choose a different name"
            yield under_upstreams_path("spec.args.name", field.forbidden(path.child("name"), detail))
        names.add(config.name)
        for where, param_args in path.child("paramArgs").each(config.param_args or ()):
            if not param_args.param:
                yield field.required(where.child("param"), "name the param of the flavor, for example TP")
        if config.resources is not None:
            for low, detail in quantities.low_limits(config.resources, path.child("resources")):
                yield under_upstreams_path("spec.resources", field.forbidden(low, f"{low}: {detail}"))
            yield from quantities.check_resources(config.resources, path.child("resources"))
        if config.scale_trigger is not None and config.scale_trigger.hpa is None:
            yield field.required(path.child("scaleTrigger", "hpa"), "set what to scale on, or remove scaleTrigger")
        yield from scaling.check(config.scale_trigger, path.child("scaleTrigger"))
        yield from volumes.size_limit(config.shared_memory_size or 0, path.child("sharedMemorySize"))


def warnings(runtime: BackendRuntime) -> list[Advice]:
    """Warn of a runtime without a preset named default, so Playgrounds must name one (LZ-N22)."""
    spec = runtime.spec
    advices: list[Advice] = [*_image(spec), *_not_rendered(spec)]
    engine = runtime_engine(spec)
    for path, config in PRESETS.each(spec.recommended_configs or ()):
        advices += _preset(config, path)
    triggers = (
        (path.child("scaleTrigger"), config.scale_trigger, server_line(spec, engine, config.args or (), spec.envs))
        for path, config in PRESETS.each(spec.recommended_configs or ())
    )
    advices += scaling.metric_warnings(triggers, f"{spec.image}:{spec.version}")
    advices += advise(pod_views(spec))
    if preset(spec, DEFAULT_PRESET) is None:
        advices.append(advice(PRESETS, f"no preset is named {DEFAULT_PRESET}, so Playgrounds must set configName"))
    return advices


def pod_views(spec: BackendRuntimeSpec) -> Iterator[PodView]:
    """Yield the part of pods that all Playgrounds of a runtime have, and the parts that its presets add."""
    engine, names = runtime_engine(spec), [variable.get("name") or "" for variable in spec.envs or ()]
    command = {"command": spec.command, "env": spec.envs}
    tag = {"image": f"{spec.image}:{spec.version}"} if spec.version and ":" not in spec.image.rpartition("/")[2] else {}
    line = CommandLine((), PRESETS, engine, words(command), passes_arguments(command), evaluates(command))
    started = {**command, "image": f"{spec.image}:{spec.version}"}
    shared = ContainerView(
        {**command, **tag, "lifecycle": spec.lifecycle, **spec.probes},
        SPEC,
        places=_PLACES,
        line=script_line(started, SPEC, _PLACES) or line,
        port=ServerPort(PORT_NAME, None if engine is None else PORT),
        tag=SPEC.child("version"),
    )
    yield PodView({}, SPEC, containers=[shared], refuses_duplicates=False)
    presets = [
        _preset_view(config, path, line, script_in_args(started, config.args, path.child("args")), names)
        for path, config in PRESETS.each(spec.recommended_configs or ())
    ]
    yield PodView({}, SPEC, containers=[*chain.from_iterable(presets)], is_whole=False)


_PLACES = {"env": SPEC.child("envs")}


def script_in_args(started: Json, args: Sequence[str] | None, path: field.Path) -> CommandLine | None:
    """Return the command line of a script that arguments at ``path`` have; ``None`` if they have none."""
    line = script_line({**started, "args": args}, SPEC, {**_PLACES, "args": path})
    return line if line is not None and line.path.is_within(path) else None


def _preset_view(
    config: RecommendedConfig, path: field.Path, line: CommandLine, script: CommandLine | None, names: Sequence[str]
) -> Iterator[ContainerView]:
    args, where = config.args or [], path.child("args")
    line = replace(line, arguments=args, path=where, words=[*line.words, *args])
    yield ContainerView(
        {},
        path,
        line=script or line,
        variables=names,
        amounts=sizes(config.resources, config.shared_memory_size, path),
        requests=REQUESTS,
    )
    for where, param_args in path.child("paramArgs").each(config.param_args or ()):
        added = replace(line, arguments=param_args.args or (), path=where.child("args"))
        yield ContainerView({}, path, line=added, variables=names, amounts=(), requests=REQUESTS)


def server_line(
    spec: BackendRuntimeSpec, engine: Engine | None, args: Sequence[str], env: Iterable[Json] | None
) -> CommandLine:
    """Return what starts the server of a runtime with these arguments and variables."""
    started = {"command": spec.command, "args": args}
    passes, reads, variables = passes_arguments(started), evaluates(started), variables_of(env)
    return CommandLine(args, SPEC, engine, words(started), passes, reads, variables=variables)


def runtime_engine(spec: BackendRuntimeSpec, version: str | None = None) -> Engine | None:
    """Return the engine that a runtime starts, in its own version or another; ``None`` if it is unknown."""
    engine = engine_named(f"{spec.image}:{version or spec.version}")
    return engine if engine is not None and engine.is_started_by(spec.command or ()) else None


def _image(spec: BackendRuntimeSpec) -> Iterator[Advice]:
    """Warn of parts that are not an image reference when a colon joins them."""
    if ":" in spec.image.rpartition("/")[2]:
        yield advice(SPEC.child("image"), "already has a tag, and version is appended to it; move the tag to version")
    elif spec.image and spec.version:
        if spec.version != spec.version.strip():
            yield advice(SPEC.child("version"), NO_TAG)
        yield from embedded.image_warnings(f"{spec.image}:{spec.version}".strip(), SPEC.child("image"))
    for name, text in (("image", spec.image), ("version", spec.version)):
        if not text:
            message = f"empty, so the image would be {field.go_quote(f'{spec.image}:{spec.version}')}"
            yield advice(SPEC.child(name), message)


def _not_rendered(spec: BackendRuntimeSpec) -> Iterator[Advice]:
    """Warn of placeholders that are not replaced (LZ-3.3)."""
    for path, text in SPEC.child("command").each(spec.command or ()):
        if arguments.names_a_word(text):
            message = "placeholders are only replaced in the args of presets; this one is passed on as written"
            yield advice(path, message)
    for path, variable in SPEC.child("envs").each(spec.envs or ()):
        text = variable.get("value") or ""
        if arguments.misses(text) or not set(arguments.OF_MODELS).isdisjoint(arguments.named_words(text)):
            yield advice(
                path.child("value"),
                "only params of the flavor, such as {{ .TP }}, are replaced in a variable; this placeholder is passed "
                "on as written",
            )


def _placeholders(args: list[str], path: field.Path, known: Collection[str]) -> Iterator[Advice]:
    """Warn of placeholders that are not replaced, or only for some models (LZ-N20)."""
    for where, argument in path.each(args):
        for word in arguments.named_words(argument):
            if word in arguments.WORDS or word in known:
                continue
            near = nearest(word, arguments.WORDS)
            hint = f"did you mean {near}?" if near else "an argument of paramArgs is left out where it has not"
            yield advice(
                where,
                f"{{{{ .{word} }}}} has a value only where the model's flavor has a param {word}; other Playgrounds "
                f"cannot use the preset ({hint})",
            )
        if arguments.misses(argument):
            yield advice(where, f"this placeholder is not replaced; write it like {{{{ .{arguments.MODEL_PATH} }}}}")


def _preset(config: RecommendedConfig, path: field.Path) -> Iterator[Advice]:
    yield from _placeholders(config.args or [], path.child("args"), known=())
    for where, param_args in path.child("paramArgs").each(config.param_args or ()):
        yield from _placeholders(param_args.args or [], where.child("args"), (param_args.param,))
    yield from resource_warnings(config.resources, path.child("resources"))
    yield from scaling.warnings(config.scale_trigger, path.child("scaleTrigger"))
