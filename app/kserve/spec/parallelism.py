"""What ``parallelism`` asks of a server that has no workers: its arguments, and its GPUs. Source: KS-3.15.

A template that names another number of GPUs, or one of the arguments, speaks for itself: nothing is added to it, and
what does not fit together is said. Pods come in as plain JSON that others share, and go out as new objects.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from app.kserve.arguments import passes_arguments, with_arguments
from app.kserve.names import MAIN
from app.kube import field
from app.kube.base import Json
from app.kube.decode import SPEC
from app.kube.field import Advice, advice
from app.kube.quantity import QuantityError, parse

GPU = "nvidia.com/gpu"
"""The resource that is added: what the presets' image runs on."""
TENSOR, DATA, EXPERT = "--tensor-parallel-size", "--data-parallel-size", "--enable-expert-parallel"


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked of each pod of a workload."""

    tensor: int | None
    copies: int = 1
    """Copies of the model in the pod."""
    expert: bool = False

    @property
    def gpus(self) -> int:
        """GPUs of one pod."""
        return (self.tensor or 1) * self.copies

    @property
    def arguments(self) -> list[str]:
        """Words for the server."""
        words = [EXPERT] if self.expert else []
        words += [TENSOR, str(self.tensor)] if self.tensor is not None else []
        return words + ([DATA, str(self.copies)] if self.copies > 1 else [])


def demand(parallelism: Mapping[str, Any] | None) -> Demand | None:
    """Of a workload without workers; ``None`` where nothing is asked that one node can do."""
    numbers = parallelism or {}
    tensor, data = numbers.get("tensor"), numbers.get("data") or 1
    copies = data if data <= (numbers.get("dataLocal") or 1) else 1
    return None if tensor is None and copies == 1 else Demand(tensor, copies, bool(numbers.get("expert")))


# What is added.


def with_parallelism(spec: Json, pipelines: Collection[str]) -> Json:
    """Add to the servers of a merged spec the arguments and GPUs that their parallelism needs.

    ``pipelines``: the workloads, ``""`` and ``prefill``, whose pods a built-in preset starts as a pipeline. Its script
    has the arguments.
    """
    spec = _with_side(spec, scripted="" in pipelines)
    if spec.get("prefill") is None:
        return spec
    prefill = _with_side(spec["prefill"], scripted="prefill" in pipelines)
    return spec if prefill is spec["prefill"] else {**spec, "prefill": prefill}


def _with_side(workload: Json, *, scripted: bool) -> Json:
    parallelism = workload.get("parallelism")
    if scripted:
        gpus = Demand((parallelism or {}).get("tensor")).gpus
        pods = {key: workload[key] for key in ("template", "worker") if workload.get(key) is not None}
        return {**workload, **{key: _with_gpus(pod, gpus) for key, pod in pods.items() if not _has_gpus(pod)}}
    wanted = demand(parallelism)
    pod, server = workload.get("template"), main_container(workload.get("template"))
    if wanted is None or pod is None or workload.get("worker") is not None:
        return workload
    if (_has_gpus(pod) and _count(server) != wanted.gpus) or _sizes_passed(server) or not _takes_arguments(server):
        return workload
    replaced = _replaced(pod, with_arguments(server, wanted.arguments))
    return {**workload, "template": replaced if _has_gpus(pod) else _with_gpus(replaced, wanted.gpus)}


def main_container(pod: Json | None) -> Json:
    """The server's container; an empty one where the pod has none."""
    containers: list[Json] = (pod or {}).get("containers") or []
    return next((one for one in containers if one.get("name") == MAIN), {})


def _with_gpus(pod: Json, count: int) -> Json:
    """The pod whose server requests GPUs; as an extended resource's, request and limit are the same."""
    server = main_container(pod)
    resources = server.get("resources") or {}
    amounts = {part: {**(resources.get(part) or {}), GPU: str(count)} for part in ("limits", "requests")}
    return _replaced(pod, {**server, "resources": {**resources, **amounts}}) if server else pod


def _replaced(pod: Json, server: Json) -> Json:
    return {**pod, "containers": [server if one.get("name") == MAIN else one for one in pod["containers"]]}


# What a template says itself.

_DEVICE = re.compile(r"gpu|tpu|npu|/mig-|gaudi|neuron|ascend|mlu|dcu|/xe|accelerator", re.IGNORECASE)
"""In the names of resources that servers compute on: ``amd.com/gpu``, ``habana.ai/gaudi``."""
_WHOLE = "/gpu"
"""What names of resources end with that are counted as GPUs: not parts of one, or its memory."""


def _has_gpus(pod: Json) -> bool:
    """Whether a container names a GPU, even none of them, or claims a device."""
    return any(_devices(one) or (one.get("resources") or {}).get("claims") for one in pod.get("containers") or ())


def _devices(container: Json) -> dict[str, Any]:
    """Amounts of accelerators, by the resource's name."""
    resources = container.get("resources") or {}
    found = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: amount for name, amount in found.items() if "/" in name and _DEVICE.search(name)}


def _count(container: Json) -> Decimal | None:
    """Return the number of GPUs of a container, None where it is unknown."""
    devices = _devices(container)
    try:
        amounts = [parse(str(amount)) for name, amount in devices.items() if name.endswith(_WHOLE)]
    except QuantityError:
        return None
    return sum(amounts, Decimal(0)) if amounts and len(amounts) == len(devices) else None


_FLAGS = {
    TENSOR: re.compile(r"(?:--tensor[-_]parallel[-_]size|--tp-size|-tp)(?:[\s=]+(\d+)?|$)"),
    DATA: re.compile(r"(?:--data[-_]parallel[-_]size|--dp-size|-dp)(?:[\s=]+(\d+)?|$)"),
}
_ADDITIONAL = "VLLM_ADDITIONAL_ARGS"


def _sizes_passed(container: Json) -> dict[str, int | None]:
    """The sizes that the container passes to its server itself; ``None`` where the number is a variable's."""
    words = [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]
    words += [str(one.get("value")) for one in container.get("env") or () if one.get("name") == _ADDITIONAL]
    text = " ".join(words)
    found = {flag: match[1] for flag, pattern in _FLAGS.items() if (match := pattern.search(text))}
    return {flag: None if number is None else int(number) for flag, number in found.items()}


def _takes_arguments(container: Json) -> bool:
    """Report whether the container passes its arguments to vLLM."""
    started = container.get("command") or [container.get("image") or ""]
    return "vllm" in " ".join(map(str, started)).lower() and passes_arguments(container)


# What does not fit together.


def contradictions(pod: Json | None, parallelism: Mapping[str, Any] | None, path: field.Path) -> Iterator[Advice]:
    """Where a template without workers says another number than ``parallelism``, whose path is ``path``."""
    wanted = demand(parallelism)
    if wanted is None:
        return
    server = main_container(pod)
    count, passed = _count(server), _sizes_passed(server)
    if count not in (None, 0, wanted.gpus):
        text = f"each pod needs {_gpus(wanted)}, and container {MAIN} requests {count}; make them equal"
        yield advice(path, text, "contradiction")
    for flag, name, number in ((TENSOR, "tensor", wanted.tensor), (DATA, "data", (parallelism or {}).get("data"))):
        if number is not None and passed.get(flag) not in (None, number):
            text = f"is {number}, and container {MAIN} passes {flag} {passed[flag]}; make them equal, or leave one out"
            yield advice(path.child(name), text, "contradiction")


def ignored_by_server(pod: Json | None, parallelism: Mapping[str, Any] | None, path: field.Path) -> Iterator[Advice]:
    """What a whole template would have to say itself, because it says a part or starts something else than vLLM."""
    wanted, server = demand(parallelism), main_container(pod)
    if wanted is None or _count(server) == 0:
        return
    passed, has_gpus = _sizes_passed(server), _has_gpus(pod or {})
    sizes = ((TENSOR, wanted.tensor or 1), (DATA, wanted.copies))
    missing = " ".join(f"{flag} {number}" for flag, number in sizes if number > 1 and flag not in passed)
    if has_gpus and missing and (_count(server) != wanted.gpus or not _takes_arguments(server)):
        text = f"container {MAIN} requests GPUs itself, so nothing is added to its arguments; add {missing}"
        yield advice(path, text)
    elif passed and not has_gpus:
        flags = f"container {MAIN} passes {' and '.join(passed)} itself"
        yield advice(path, f"{flags}, so no GPUs are added; request {wanted.gpus} of {GPU}")
    elif not has_gpus and not _takes_arguments(server):
        text = f"container {MAIN} does not pass its args on to vLLM, so nothing is added; start the server for it there"
        yield advice(path, f"accepted, no effect; {text}", "no-effect")


def _gpus(wanted: Demand) -> str:
    return f"{wanted.gpus} GPU{'' if wanted.gpus == 1 else 's'}"


def with_command(pod: Json | None) -> Json:
    """A user's template whose server is started as the presets do, unless it says how."""
    server = {"name": MAIN, "command": ["vllm"], **main_container(pod)}
    others = [one for one in (pod or {}).get("containers") or () if one.get("name") != MAIN]
    return {**(pod or {}), "containers": [server, *others]}


def unused(parallelism: Mapping[str, Any], path: field.Path) -> Iterator[Advice]:
    """What one node cannot do, or does not need."""
    data, local = parallelism.get("data") or 1, parallelism.get("dataLocal") or 1
    if (parallelism.get("pipeline") or 1) > 1:
        yield _no_effect(path.child("pipeline"), "a pipeline runs over several pods; add worker")
    if data > local:
        needed = f"{data} copies, {local} in each pod, need {-(-data // local)} pods"
        yield _no_effect(path.child("data"), f"{needed}; add worker, or set dataLocal to {data}")
    if parallelism.get("dataRPCPort") is not None:
        yield _no_effect(path.child("dataRPCPort"), "copies in one pod find each other; remove it, or add worker")
    if parallelism.get("expert") and demand(parallelism) is None:
        yield _no_effect(path.child("expert"), "experts are spread over the GPUs of tensor or data; set one of them")


def _no_effect(path: field.Path, instead: str) -> Advice:
    return advice(path, f"accepted, no effect; {instead}", "no-effect")


def parallelism_conflicts(spec: Json) -> list[Advice]:
    """Warn where pods of a merged spec contradict its parallelism."""
    found: list[Advice] = []
    for workload, path in ((spec, SPEC), (spec.get("prefill"), SPEC.child("prefill"))):
        if workload is None or workload.get("worker") is not None:
            continue
        where = path.child("parallelism")
        for compare in (contradictions, ignored_by_server):
            found += compare(workload.get("template"), workload.get("parallelism"), where)
    return [one for one in found if one.id != "no-effect"]
