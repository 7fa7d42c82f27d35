"""GPU memory that an engine's server uses, by its command line.

The options are read as the fields of an InferenceService with the same runtime, whose rules then apply.
"""

from collections.abc import Iterable, Sequence

import orjson
from msgspec.structs import replace

from app.hooks.reader import read
from app.kube.base import Json
from app.kube.merge import replaced
from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.model.types import ModelSpec
from app.llmkube.runtimes.registry import RUNTIMES
from app.workload.engines import promptcache
from app.workload.engines.parse import Occurrence, Parsed, json_of, number_of
from app.workload.fit.memory import Usage

_TENSOR = ("--tensor-parallel-size", "--tp-size")
_PIPELINE = ("--pipeline-parallel-size", "--pp-size")
_DATA = ("--data-parallel-size", "--dp-size")
_ONE_GPU = ("vllm", "sglang")
"""Engines that use one GPU of several, unless an option divides the model."""
_DIVIDING = (*_TENSOR, *_PIPELINE, *_DATA)
_EXPERTS = "--enable-expert-parallel"
_WORDS = "words that only the running script knows"


def usage_of(engine: str, parsed: Parsed, image: str, *, has_more: bool = False) -> Usage:
    """Return the use of memory by an engine. ``has_more``: a script may add words."""
    use = replace(_use(engine, parsed, image), prompts=promptcache.limit_of(parsed))
    unknown = (_WORDS,) if has_more else ()
    use = replace(use, elsewhere=(*use.elsewhere, *unknown), more=(*use.more, *unknown))
    return _divided(engine, use, parsed)


def _use(engine: str, parsed: Parsed, image: str) -> Usage:
    """Return the memory use of an engine, by the fields that stand for its options."""
    spec: Json = {"modelRef": "model", "runtime": engine, "image": image}
    for path, flag in RUNTIMES[engine].flags.items():
        occurrences = parsed.all(*flag.spellings) if flag.memory else []
        if not occurrences:
            continue
        document = replaced(spec, path.split("."), _value(occurrences, parsed))
        reading = read(orjson.dumps(document), InferenceServiceSpec, needed=True)
        spec = spec if reading.errors or reading.spec is None else document
    use = RUNTIMES[engine].use(InferenceServiceSpec.model_validate(spec), ModelSpec(source="model"))
    extra = [flag for flag in RUNTIMES[engine].memory_flags if parsed.gives(flag) and flag not in _DIVIDING]
    return replace(use, elsewhere=_named(engine, use.elsewhere, extra), more=_named(engine, use.more, extra))


def _named(engine: str, paths: Iterable[str], extra: Iterable[str]) -> tuple[str, ...]:
    """Return the options for fields of LLMKube, and others."""
    flags = RUNTIMES[engine].flags
    return (*(flags[path].name if path in flags else path for path in paths), *extra)


def _value(occurrences: Sequence[Occurrence], parsed: Parsed) -> object:
    """Return the value of an option: true for a switch; a configuration is decoded and switched on."""
    last = occurrences[-1]
    if last.keys:
        return {
            "enabled": True,
            **{occurrence.keys[0]: _scalar(occurrence.value) for occurrence in occurrences if occurrence.keys},
        }
    number = number_of(parsed, last.option)
    if number is not None or not last.values:
        return last.is_on if number is None else number
    text = last.value
    value = (json_of(text) or text) if text.startswith("{") else _scalar(text)
    return {"enabled": True, **value} if isinstance(value, dict) else value


def _scalar(text: str) -> object:
    value = json_of(text)
    return text if value is None else value


def _divided(engine: str, use: Usage, parsed: Parsed) -> Usage:
    """Return the use of a server whose options divide the model.

    The stages of a pipeline hold different layers. With expert parallelism the data-parallel ranks share the experts;
    without it each rank holds a whole copy of the model.
    """
    tensor, stages, data = (_number(parsed, names) for names in (_TENSOR, _PIPELINE, _DATA))
    ranks = data if parsed.has(_EXPERTS) else 1
    if engine not in _ONE_GPU or not tensor or not stages or not ranks:
        return use
    copies = (f"{ranks} copies of the layers that are not experts",) if ranks > 1 else ()
    return replace(use, gpus=tensor * stages * ranks, tensor=tensor, more=(*use.more, *copies))


def _number(parsed: Parsed, names: Sequence[str]) -> int:
    """Return the value of options; 1 without one, 0 for no positive number."""
    return max(number_of(parsed, *names) or 0, 0) if parsed.gives(*names) else 1
