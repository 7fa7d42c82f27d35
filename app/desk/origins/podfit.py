"""Judge whether a model fits into the GPUs of the pods that serve it, by the command line of their server.

For families whose services have no fields for the options of an engine.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from app.desk.cluster.simulate import Cluster
from app.desk.cluster.store import related
from app.desk.origins.tracer import TEMPLATES, Pods
from app.hooks.fit import NOTHING, Asked, Fit, FitAnswer
from app.hooks.kind import AnyKind
from app.kube.base import Json
from app.kube.field import SPEC
from app.kube.merge import find as value_at
from app.kube.objects import ObservedMeta
from app.kube.quantity import is_quantity, parse
from app.workload.devices import ONE_EACH, Counts, counts, is_accelerator
from app.workload.engines.commandline import script_line, split_words, variables_of
from app.workload.engines.engine import ADDITIONAL, PROGRAMS, Engine, engine_named
from app.workload.engines.parse import Parsed
from app.workload.fit.gpumodels import gpu_asked_for, node_gpu, node_gpu_memory, slice_memory, tells_memory
from app.workload.fit.memory import UNKNOWN_USE, Question, answer, with_enough, with_facts
from app.workload.fit.modelfacts import facts_of

ENGINES = {program: name for name, program in PROGRAMS.items()} | {
    "llama.cpp": "llamacpp",
    "text-generation-inference": "tgi",
}
"""Runtimes of LLMKube by words of a command or an image."""
_MODEL_OPTIONS = ("--model", "--model-path", "--model-id", "--served-model-name")
_ORDER = (FitAnswer.DOES_NOT_FIT, FitAnswer.CANNOT_KNOW, FitAnswer.FITS)
_MEMORY_FIELD = "name the GPU in a node selector such as nvidia.com/gpu.product, or use modelhooks fit --gpu"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pods_fit(kind: AnyKind, document: Json, templates: Pods, asked: Asked = NOTHING) -> Fit | None:
    """Return the worst answer of an object's pod templates that run an engine; ``None`` for a kind without replicas."""
    if kind.resource.scale is None:
        return None
    judged = [(answer(question), question) for question in _questions_of(kind, document, templates, asked)]
    if not judged:
        return Fit(FitAnswer.CANNOT_KNOW, UNKNOWN_USE if templates else "it has no pods", ())
    fit, question = min(judged, key=lambda pair: _ORDER.index(pair[0].answer))
    return with_enough(question, fit)


def too_large(cluster: Cluster, kind: AnyKind, document: Json, templates: Callable[[], Pods]) -> str:
    """Return the warning about a model that certainly does not fit; empty for any other answer.

    The pod templates are only made for a kind with replicas, and only read where the memory of a GPU is known.
    """
    if kind.resource.scale is None or not any(map(_may_tell_memory, _read(cluster, kind, document))):
        return ""
    known = {place: template for place, template in templates().items() if _is_memory_known(template)}
    for question in _questions_of(kind, document, known):
        if (fit := answer(question)).answer is FitAnswer.DOES_NOT_FIT:
            return with_enough(question, fit).warning
    return ""


def _read(cluster: Cluster, kind: AnyKind, document: Json) -> Iterator[Json]:
    """Yield an object and those that its hook reads, of which its pods are made."""
    yield document
    for group in related(kind, cluster.rules(kind, document), cluster.objects).values():
        yield from group.values()


def _may_tell_memory(value: object) -> bool:
    """Report whether an object has a name that tells the memory of a GPU; without one no pod made of it has."""
    match value:
        case dict():
            return any(tells_memory(name) or _may_tell_memory(item) for name, item in value.items())
        case list():
            return any(map(_may_tell_memory, value))
        case str():
            return tells_memory(value)
    return False


def _questions_of(kind: AnyKind, document: Json, templates: Pods, asked: Asked = NOTHING) -> Iterator[Question]:
    """Yield a question about each of an object's pod templates that runs an engine."""
    model = value_at(document, ("spec", "model", "uri")) or ""
    claimed = _claimed(document) if kind.resource.family == "kserve" else {}
    facts = facts_of(asked)
    for place, template in templates.items():
        if place.partition("/")[0] in TEMPLATES.keys() - {"Job"}:
            for question in _questions(template, model, asked.gpu_memory, claimed):
                yield question if facts is None else with_facts(question, facts)


def _claimed(document: Json) -> Mapping[str, int]:
    """Return the number of whole GPUs of each claim that KServe's annotations describe."""
    from app.kserve.devices import CLAIM, claimed_gpus  # the other families do without

    return {CLAIM: claimed_gpus(ObservedMeta(annotations=value_at(document, ("metadata", "annotations"))))}


def _spec_of(template: Json) -> Json:
    pod = template.get("leaderTemplate") or template.get("workerTemplate") or template
    return pod.get("spec") or {}


def _is_memory_known(template: Json) -> bool:
    """Report whether a resource or the nodes tell the memory of a GPU of any container."""
    spec = _spec_of(template)
    labels, containers = _node_labels(spec), spec.get("containers") or ()
    return any(node_gpu_memory(labels, _deciding(_accelerators(container)))[0] for container in containers)


def _questions(template: Json, model: str, gpu_memory: str, claimed: Mapping[str, int]) -> Iterator[Question]:
    """Yield a question about the first container of a pod template that starts an engine."""
    from app.llmkube.runtimes.usage import usage_of  # few pods of other families are asked about

    spec = _spec_of(template)
    requested, gpu = gpu_asked_for(gpu_memory) if gpu_memory else (0, None)
    for container in spec.get("containers") or ():
        image, line = container.get("image", ""), script_line(container, SPEC)
        words = list(_words(container) if line is None else line.words)
        if not (engine := _engine(words, image)):
            continue
        variables = variables_of(container.get("env"))
        parsed = _parsed(engine, image, tuple(words), tuple(variables)) if line is None else line.parsed
        after_serve = [later for word, later in itertools.pairwise(words) if word == "serve"]
        named = [model, *after_serve, *(parsed.value(option) for option in _MODEL_OPTIONS)]
        names = tuple(dict.fromkeys(filter(None, named)))
        accelerators, labels = _accelerators(container), _node_labels(spec)
        claims = value_at(container, ("resources", "claims")) or ()
        of_claim = max((claimed.get(claim.get("name"), 0) for claim in claims), default=0)
        resource = _deciding(accelerators)
        memory, memory_from = (requested, "as requested") if requested else node_gpu_memory(labels, resource)
        yield Question(
            names=names,
            formats=names,
            dtype=parsed.value("--dtype"),
            gguf=any(name.endswith(".gguf") for name in names),
            use=usage_of(engine, parsed, image, has_more=line is not None and line.is_open),
            gpus=(_gpus(accelerators) + of_claim) * template.get("size", 1),
            memory=memory,
            gpu=gpu or (None if requested else node_gpu(labels)),
            claimed=bool(claims),
            memory_from=memory_from,
            memory_field=_MEMORY_FIELD,
            resource=resource,
            host=_host(container),
        )
        return


def _host(container: Json) -> int:
    """Return the bytes of a container's limit of memory, else of its request; 0 without either."""
    amounts = (value_at(container, ("resources", kind, "memory")) for kind in ("limits", "requests"))
    return next((int(parse(str(amount))) for amount in amounts if amount and is_quantity(str(amount))), 0)


def _node_labels(spec: Json) -> dict[str, str]:
    """Return the labels that nodes of the pods must have, by selector and by required affinity."""
    terms = value_at(spec, ("affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms")) or []
    expressions = terms[0].get("matchExpressions") or [] if len(terms) == 1 else []
    single = {e["key"]: e["values"][0] for e in expressions if e.get("operator") == "In" and len(e["values"]) == 1}
    return {**single, **(spec.get("nodeSelector") or {})}


def _words(container: Json) -> Iterator[str]:
    variables = {e.get("name"): e.get("value") for e in container.get("env") or ()}
    extra = variables.get(ADDITIONAL) or ""
    return split_words([*(container.get("command") or ()), *(container.get("args") or ()), extra])


def _engine(words: Sequence[str], image: str) -> str:
    programs = [word.rpartition("/")[2].partition(".")[0] for word in words if not word.startswith("-")]
    named = [ENGINES[program] for program in programs if program in ENGINES]
    named += [runtime for word, runtime in ENGINES.items() if word in image]
    return named[0] if named else ""


@lru_cache(maxsize=64)
def _parsed(engine: str, image: str, words: tuple[str, ...], variables: tuple[tuple[str, str], ...]) -> Parsed:
    """Return the options of a command line, and of variables, as the engine reads them.

    Many objects have the script of one preset, of which each release of the engine reads five hundred words.
    """
    known = engine_named(image)
    there = known if known is not None and known.name == engine else Engine(engine)
    return there.options_in(words, variables)


def _accelerators(container: Json) -> dict[str, int]:
    """Return the numbers of a container's accelerators, and of parts of them, by resource."""
    limits: Mapping[str, object] = value_at(container, ("resources", "limits")) or {}
    amounts = {name: str(value) for name, value in limits.items() if is_accelerator(name)}
    numbers = {name: int(parse(value)) for name, value in amounts.items() if is_quantity(value)}
    return {name: number for name, number in numbers.items() if number > 0}


def _gpus(accelerators: Mapping[str, int]) -> int:
    """Return the number of GPUs that a process can use: one slice of several, and one turn, for two may be of one GPU.

    Memory or cores are of one GPU, unless the number of GPUs is beside them.
    """
    counted = {name: number for name, number in accelerators.items() if counts(name) is not Counts.AMOUNT}
    numbers = [1 if counts(name) in ONE_EACH else number for name, number in counted.items()]
    return sum(numbers) if numbers else min(len(accelerators), 1)


def _deciding(accelerators: Iterable[str]) -> str:
    """Return the resource that decides the memory of a GPU: a part of one, of slices the smallest."""
    return min(accelerators, key=lambda name: (counts(name) is Counts.DEVICES, slice_memory(name)), default="")
