"""Runtimes: one server each, listed in the registry and in the type ``Runtime`` of the spec."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from app.kube.base import Json, KubeModel
from app.kube.field import SPEC, Advice, advice
from app.kube.modelfields import fields
from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.model.types import ModelSpec
from app.llmkube.runtimes.flag import Flag, Memory, field_flags, flag_values, flags_of, is_set
from app.llmkube.source import Source
from app.workload.engines.commandline import variables_of
from app.workload.engines.engine import NAMES, Engine, engine_of
from app.workload.engines.grammar import GRAMMARS
from app.workload.engines.parse import Occurrence, Parsed, Variables, fraction_of, number_of
from app.workload.fit.memory import UNKNOWN_USE, Usage
from app.workload.readiness import cause


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    runtime: str
    spec: InferenceServiceSpec
    model: ModelSpec
    source: Source
    path: str
    """File of the model inside the pod; empty when nothing is mounted."""
    mounts_model: bool
    """The runtime reads its model from a volume, and the user did not set ``skipModelInit``."""
    port: int
    gpus: int
    draft: str = ""
    """Draft model of speculative decoding: a path, a repository or the user's value."""
    directory: str = ""
    """Directory of a model of several files; empty for a model of one."""
    engine: Engine | None = None
    extra: Parsed
    """``extraArgs`` as the engine reads them."""

    @property
    def repository(self) -> str:
        """Return the model's name for a server that downloads it: the repository, else the source as written."""
        return self.source.repository or self.source.text

    def listen(self, flag: str = "--host") -> list[str]:
        """Return the flag of the address that the server listens on; nothing if ``extraArgs`` have it."""
        default = "0.0.0.0"  # noqa: S104 - nodes without IPv6 could not bind to ``::``
        return [] if self.has(flag) else [flag, self.spec.bind_address or default]

    @property
    def revision(self) -> list[str]:
        revision = "" if self.path else self.source.revision
        return flag("--revision", None if self.has("--revision") else revision)

    def has(self, *flags: str) -> bool:
        """Return True if ``extraArgs`` set one of the options, in any spelling that the engine reads."""
        return self.extra.gives(*flags)

    def _replaces(self, flag: Flag) -> bool:
        """Return True if ``extraArgs`` have an option of which the engine takes only one."""
        return not GRAMMARS[self.extra.release.engine].repeats and self.extra.gives(*flag.spellings)

    def options(self, options: KubeModel, *names: str, **written: list[str]) -> list[str]:
        """Return the arguments of fields, or of all; ``written`` are those of fields that become more than a flag."""
        arguments: dict[str, list[str]] = {}
        flags = field_flags(type(options), self.runtime, own=options is not self.spec)
        for name in names or flags:
            flag, value = flags[name], getattr(options, name)
            if name in written:
                arguments[name] = written[name]
            elif flag is not None and (self.gpus or not flag.needs_gpu) and not self._replaces(flag):
                arguments.setdefault(flag.name, [])
                if is_set(value):
                    arguments[flag.name] = flag.arguments(flag.accepted(value, self.engine))
        return [argument for group in arguments.values() for argument in group]


class Runtime(msgspec.Struct, frozen=True):
    """A server that can run a service (LK-3.2)."""

    name: str
    container: str
    port: int
    arguments: Callable[[Serving], list[str]]
    """Builder of the container's arguments, whose order is part of the contract (LK-3.5)."""
    image: str = ""
    device_images: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Default images by the kind of GPU: ``cuda``, ``amd``, or the ``gpu.runtime`` of an AMD GPU."""
    command: tuple[str, ...] = ()
    health: str = "/health"
    """Path of the HTTP probes, which a server answers once its model is loaded; empty for TCP probes."""
    generates: str = ""
    """Path of the startup and readiness probes, where it differs."""
    metric: str = "llamacpp:requests_processing"
    """Default metric of an autoscaler, whose target is an average of two per pod; empty for none."""
    mounts_model: bool = False
    loads_directories: bool = False
    """The server loads several files as one model, unless they are GGUF."""
    scraped: bool = False
    divides_layers: bool = False
    """It divides each layer of the model among the GPUs of a pod."""
    engine: str = ""
    """The engine that it starts, where that has another name."""
    unprobed: tuple[str, ...] = ()
    """Options with which it does not answer the probes."""
    service_links: bool | None = None
    variables: Mapping[str, str] = msgspec.field(default_factory=dict)

    formats: tuple[str, ...] = ()
    """Formats of a Model that it loads; empty for all."""
    repositories_only: bool = False
    gpu_fields: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Fields of a Model's ``hardware.gpu`` that it reads, and the number of GPUs from which they have an effect."""

    reads: tuple[str, ...] = ()
    """Fields of a service's spec that become no flag, and that not every runtime reads."""
    not_on_metal: tuple[str, ...] | None = None
    """Fields that an agent on a Mac, which runs this server, does not read; ``None`` where it runs another one."""
    config: str = ""
    overrides: tuple[tuple[str, str], ...] = ()
    """Pairs of fields of which the first has no effect beside the second."""
    advice: Callable[[InferenceServiceSpec], Iterable[Advice]] = lambda _: ()
    advice_with_model: Callable[[InferenceServiceSpec, ModelSpec, int, str], Iterable[Advice]] = lambda *_: ()
    """Warnings for a service together with its Model, the number of GPUs in a pod, and the image of its server."""
    mistakes: Callable[[InferenceServiceSpec], Iterable[cause.Cause]] = lambda _: ()
    needed_gpus: Callable[[InferenceServiceSpec], Mapping[str, int]] = lambda _: {}
    """Number of GPUs that a pod needs, by the options in ``config`` that ask for them."""

    condition: str = ""
    """Type of the condition on ``config``; a service with another runtime has none."""
    valid: str = ""
    """Its message while ``config`` is valid."""
    judge: Callable[[InferenceServiceSpec], tuple[str, str] | None] = lambda _: None
    """The condition's reason and message while ``config`` is not valid."""
    memory_share: float = 1.0
    """Default fraction of a GPU's memory that the server takes for weights and cache."""
    keeps_latent: bool = False
    """It caches latent attention as one vector for each token and layer."""
    keeps_windows: bool = False
    """It caches no more than the window in layers with one."""
    divides_heads: bool = False
    """It divides the heads of each layer among its GPUs, and ends where that leaves a rest."""
    memory_flags: tuple[str, ...] = ()
    """Options without a field that change the use of memory."""
    use: Callable[[InferenceServiceSpec, ModelSpec], Usage] = lambda *_: Usage(unknown=UNKNOWN_USE)
    draft: Callable[[InferenceServiceSpec], str] = lambda _: ""
    """Draft model of speculative decoding, as the user wrote it; empty without one."""
    draft_of: Callable[[list[str]], str] = lambda _: ""
    """Draft model on the command line of a running server; empty without one."""
    draft_problem: Callable[[InferenceServiceSpec], str] = lambda _: ""
    draft_is_model: bool = False
    """The draft model is always the name of a Model, which must be Ready."""

    @property
    def flags(self) -> Mapping[str, Flag]:
        return flags_of(InferenceServiceSpec, self.name, self.config)

    @property
    def fields(self) -> set[str]:
        """Return the fields of a service's spec that it reads, and that not every runtime does."""
        return {*self.reads, *(path.partition(".")[0] for path in self.flags)}

    @property
    def metal(self) -> set[str]:
        """Return the fields that an agent on a Mac reads as well."""
        return set() if self.not_on_metal is None else self.fields - {*self.not_on_metal}

    @property
    def overridden(self) -> Iterator[tuple[str, str]]:
        """Yield ``overrides``, and the fields that become one option: the last of them wins."""
        yield from self.overrides
        last: dict[str, str] = {}
        for path, option in self.flags.items():
            if option.name in last:
                yield last[option.name], path
            last[option.name] = path

    def options(self, spec: InferenceServiceSpec) -> KubeModel | None:
        return getattr(spec, fields(InferenceServiceSpec)[self.config][0]) if self.config else None

    def environment(self, spec: InferenceServiceSpec) -> list[Json]:
        reference = getattr(self.options(spec), "hf_token_secret_ref", None)
        token = [] if reference is None else [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}}]
        return [*token, *({"name": name, "value": value} for name, value in self.variables.items())]


def flag(name: str, value: object) -> list[str]:
    return [] if value is None or value == "" else [name, str(value)]


def switch(name: str, on: object) -> list[str]:
    return [name] if on else []


def host_memory(spec: InferenceServiceSpec, model: ModelSpec) -> str:
    """Return the quantity of host memory that a pod requests, the service's or else the Model's (LK-B-03)."""
    fallback = model.resources.memory if model.resources is not None else ""
    return spec.requests.host_memory or spec.requests.memory or fallback


def mode(spec: InferenceServiceSpec) -> str:
    """Return the purpose of the model: the field, else by the arguments or the endpoint's path (LK-3.5)."""
    args, path = [*spec.extra_args, *spec.args], spec.endpoint.path if spec.endpoint else ""
    if spec.mode:
        return spec.mode
    parsed = _LLAMACPP.read(args)
    if parsed.has("--reranking"):
        return "rerank"
    if parsed.has("--embedding"):
        return "embedding"
    return "rerank" if "/rerank" in path else "embedding" if "/embeddings" in path else "chat"


_LLAMACPP = Engine("llamacpp")


def read_extra(spec: InferenceServiceSpec, runtime: Runtime, variables: Variables = ()) -> Parsed:
    """Return ``extraArgs``, and variables, as the runtime's engine reads them."""
    name = runtime.engine or runtime.name
    engine = service_engine(spec, runtime.image)
    if engine is None or engine.name != name:
        engine = Engine(name if name in GRAMMARS else _LLAMACPP.name)
    return engine.read(spec.extra_args, 0 if not spec.command else None, variables)


# Consequences of a service's options: the GPU memory they require, and those that its engine rejects.


def memory_use(spec: InferenceServiceSpec, runtime: Runtime, ignored: Container[str] = ()) -> Usage:
    """Return the use of memory that a server's options describe; ``ignored`` are paths of fields without effect."""
    flags = runtime.flags
    values: dict[Memory, dict[str, object]] = {kind: {} for kind in Memory}
    for path, option, value in flag_values(spec, flags):
        for kind in option.memory if path not in ignored else ():
            values[kind][path] = value
    parsed = read_extra(spec, runtime, variables_of(spec.env))
    for path, option in flags.items():
        if not option.memory or (occurrence := parsed.last(*option.spellings)) is None:
            continue
        for kind in option.memory:
            if occurrence.at >= 0 or not values[kind]:  # fields become words, which count more than variables
                values[kind].pop(path, None)
                values[kind]["extraArgs" if occurrence.at >= 0 else "env"] = _amount(kind, occurrence, parsed)
    extra = ["extraArgs"] if parsed.gives(*runtime.memory_flags) else []
    share = parsed.release.options.get(parsed.release.spellings.get(_SHARE, ""))
    return Usage(
        context=_last(values[Memory.CONTEXT]),
        cache=(_last(values[Memory.KEYS]) or "auto", _last(values[Memory.VALUES]) or "auto"),
        share=_last(values[Memory.SHARE]),
        usual_share=(share.default if share is not None else None) or runtime.memory_share,
        gpus=None if extra else _last(values[Memory.GPUS]),
        quantization=_last(values[Memory.WEIGHTS]) or "",
        keeps_latent=runtime.keeps_latent,
        keeps_windows=runtime.keeps_windows,
        tensor=None if runtime.divides_heads and not extra else 1,
        elsewhere=(*values[Memory.HOST], *extra),
        more=(*values[Memory.MORE], *extra),
    )


_SHARE = "--gpu-memory-utilization"


def _amount(kind: Memory, occurrence: Occurrence, parsed: Parsed) -> object:
    """Return the value of an option that is about memory."""
    if kind in (Memory.CONTEXT, Memory.GPUS):
        return number_of(parsed, occurrence.option)
    return fraction_of(occurrence) if kind is Memory.SHARE else occurrence.value


def _last(values: Mapping[str, object]) -> Any:
    return next(reversed(list(values.values())), None)


def service_engine(spec: InferenceServiceSpec, default_image: str) -> Engine | None:
    """Return the engine of a service's image; ``None`` if it is unknown, or a command starts something else."""
    return None if spec.command else engine_of(spec.image or default_image)


def rejected_options(spec: InferenceServiceSpec, runtime: Runtime) -> Iterator[Advice]:
    """Warn of options and values that the engine rejects; those of fields are left out or renamed (LK-V-I77)."""
    engine = service_engine(spec, runtime.image)
    if engine is not None:
        yield from _rejected_fields(engine, spec, runtime)


def named_engine(spec: InferenceServiceSpec, runtime: Runtime) -> Engine | None:
    """Return the engine of a runtime, in a version that may be unknown; ``None`` if a command starts something else."""
    is_engine = runtime.name in NAMES and not spec.command
    return (service_engine(spec, runtime.image) or Engine(runtime.name)) if is_engine else None


def _rejected_fields(engine: Engine, spec: InferenceServiceSpec, runtime: Runtime) -> Iterator[Advice]:
    """Warn of fields whose option, or its value, the engine does not have (LK-V-I77)."""
    for name, option, value in flag_values(spec, runtime.flags):
        accepted, field = option.accepted(value, engine), SPEC.child(*name.split("."))
        if not engine.has(option.name):
            yield advice(field, f"no effect: {engine} has no option {option.name}", "no-effect")
        elif accepted is None:
            yield advice(field, f"no effect: {engine} does not support {value}; {_hint(option, engine)}", "no-effect")
        elif accepted != value:
            yield advice(field, f"{engine} calls this {accepted}, which is what it gets")


def _hint(option: Flag, engine: Engine) -> str:
    values = [value for value in engine.values(option.name) if not option.choices or value in option.choices]
    return option.hint or f"supported: {', '.join(values)}"
