"""Consequences of a service's options for its server: the GPU memory they require, and those its engine rejects."""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from app.kube.decode import SPEC
from app.kube.field import Advice, advice
from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.runtimes.flag import Flag, Memory, flag_values
from app.llmkube.runtimes.runtime import Runtime, has_flag
from app.workload.engine import Engine, engine_of
from app.workload.memory import Usage


def memory_use(
    spec: InferenceServiceSpec,
    flags: Mapping[str, Flag],
    others: Iterable[str],
    share: float = 1.0,
    ignored: Container[str] = (),
) -> Usage:
    """Return the use of memory that a server's options describe.

    ``others`` are options without a field that change it, ``share`` is the fraction of the GPU's memory that the server
    takes by default, and ``ignored`` are the paths of fields that have no effect.
    """
    values: dict[Memory, dict[str, object]] = {kind: {} for kind in Memory}
    for path, option, value in flag_values(spec, flags):
        for kind in option.memory if path not in ignored else ():
            values[kind][path] = value
    spellings = [spelling for option in flags.values() if option.memory for spelling in option.spellings]
    extra = ["extraArgs"] if has_flag(spec.extra_args, *spellings, *others) else []
    elsewhere = ", ".join([*values[Memory.HOST], *extra])
    return Usage(
        context=_last(values[Memory.CONTEXT]),
        cache=(_last(values[Memory.KEYS]) or "auto", _last(values[Memory.VALUES]) or "auto"),
        share=_last(values[Memory.SHARE]),
        usual_share=share,
        gpus=None if extra else _last(values[Memory.GPUS]),
        quantization=_last(values[Memory.WEIGHTS]) or "",
        elsewhere=f"{elsewhere} may keep a part of it in host memory" if elsewhere else "",
        more=", ".join([*values[Memory.MORE], *extra]),
    )


def _last(values: Mapping[str, object]) -> Any:
    return next(reversed(list(values.values())), None)


def service_engine(spec: InferenceServiceSpec, default_image: str) -> Engine | None:
    """Return the engine of a service's image; ``None`` if it is unknown, or a command starts something else."""
    return None if spec.command else engine_of(spec.image or default_image)


def rejected_options(spec: InferenceServiceSpec, runtime: Runtime) -> Iterator[Advice]:
    """Warn of options and values that the engine rejects, which are left out or renamed (LK-V-I77)."""
    engine = service_engine(spec, runtime.image)
    if engine is None:
        return
    for name, option, value in flag_values(spec, runtime.flags):
        accepted, field = option.accepted(value, engine), SPEC.child(*name.split("."))
        if not engine.has(option.name):
            yield advice(field, f"no effect: {engine} has no option {option.name}", "no-effect")
        elif accepted is None:
            yield advice(field, f"no effect: {engine} does not support {value}; {_hint(option, engine)}", "no-effect")
        elif accepted != value:
            yield advice(field, f"{engine} calls this {accepted}, which is what it gets")
    for path, argument in SPEC.child("extraArgs").each(spec.extra_args if "extraArgs" in runtime.fields else ()):
        if not engine.knows(argument):
            yield advice(path, f"{engine} has no option {argument.partition('=')[0]}, and ends with it")


def _hint(option: Flag, engine: Engine) -> str:
    values = [value for value in engine.values(option.name) if not option.choices or value in option.choices]
    return option.hint or f"supported: {', '.join(values)}"
