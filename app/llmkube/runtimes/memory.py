"""The GPU memory that a server's options require."""

from collections.abc import Container, Iterable, Mapping
from typing import Any

from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.runtimes.flag import Flag, Memory, flag_values
from app.llmkube.runtimes.runtime import has_flag
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
