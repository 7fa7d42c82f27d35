"""Options and values that the engine of a service's image does not accept."""

from collections.abc import Iterator

from app.kube.decode import SPEC
from app.kube.field import Advice, advice
from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.runtimes.flag import Flag, flag_values
from app.llmkube.runtimes.runtime import Runtime
from app.workload.engine import Engine, engine_of


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
