"""Arguments and GPUs of a server without workers, from its ``parallelism``. Source: KS-3.15.

Nothing is added to a template with another number of GPUs, or with one of the arguments; a conflict is reported.
"""

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from app import images
from app.kserve.arguments import options, with_arguments
from app.kserve.constants import MAIN
from app.kube import field, quantity
from app.kube.base import Json
from app.kube.field import SPEC, Advice, advice
from app.kube.podspec import container_named, with_container
from app.workload.devices import is_accelerator, is_unknown
from app.workload.engines.commandline import passes_arguments
from app.workload.engines.parse import Parsed, number_of

GPU = "nvidia.com/gpu"
"""The resource that is added: what the presets' image runs on."""
TENSOR, DATA, EXPERT = "--tensor-parallel-size", "--data-parallel-size", "--enable-expert-parallel"


class Demand(msgspec.Struct, frozen=True):
    """Needs of each pod of a workload."""

    tensor: int | None
    copies: int = 1
    """Copies of the model in the pod."""
    expert: bool = False

    @property
    def gpus(self) -> int:
        return (self.tensor or 1) * self.copies

    @property
    def arguments(self) -> list[str]:
        words = [EXPERT] if self.expert else []
        words += [TENSOR, str(self.tensor)] if self.tensor is not None else []
        return words + ([DATA, str(self.copies)] if self.copies > 1 else [])


def demand(parallelism: Mapping[str, Any] | None) -> Demand | None:
    """Of a workload without workers; ``None`` where nothing is asked that one node can do."""
    numbers = parallelism or {}
    tensor, data = numbers.get("tensor"), numbers.get("data") or 1
    copies = data if data <= (numbers.get("dataLocal") or 1) else 1
    return None if tensor is None and copies == 1 else Demand(tensor, copies, bool(numbers.get("expert")))


def with_parallelism(spec: Json, pipelines: Collection[str], *, adds_gpus: bool = True) -> Json:
    """Add to the servers of a merged spec the arguments and GPUs that their parallelism needs.

    ``pipelines``: the workloads, ``""`` and ``prefill``, whose pods a built-in preset starts as a pipeline. Its script
    has the arguments. ``adds_gpus``: False if the pods get devices in another way.
    """
    spec = _with_side(spec, scripted="" in pipelines, adds_gpus=adds_gpus)
    if spec.get("prefill") is None:
        return spec
    prefill = _with_side(spec["prefill"], scripted="prefill" in pipelines, adds_gpus=adds_gpus)
    return spec if prefill is spec["prefill"] else {**spec, "prefill": prefill}


def _with_side(workload: Json, *, scripted: bool, adds_gpus: bool) -> Json:
    parallelism = workload.get("parallelism")
    if scripted and not adds_gpus:
        return workload
    if scripted:
        gpus = Demand((parallelism or {}).get("tensor")).gpus
        pods = {key: workload[key] for key in ("template", "worker") if workload.get(key) is not None}
        return {**workload, **{key: _with_gpus(pod, gpus) for key, pod in pods.items() if not _has_gpus(pod)}}
    needs = demand(parallelism)
    pod, server = workload.get("template"), container_named(workload.get("template"), MAIN)
    if needs is None or pod is None or workload.get("worker") is not None:
        return workload
    if (_has_gpus(pod) and gpu_count(server) != needs.gpus) or _sizes_passed(server) or not _takes_arguments(server):
        return workload
    changed = with_container(pod, MAIN, lambda main: with_arguments(main, needs.arguments))
    return {**workload, "template": _with_gpus(changed, needs.gpus) if adds_gpus and not _has_gpus(pod) else changed}


def _with_gpus(pod: Json, count: int) -> Json:
    """Add GPUs to the pod's server; request and limit of an extended resource must be equal."""
    server = container_named(pod, MAIN)
    resources = server.get("resources") or {}
    amounts = {part: {**(resources.get(part) or {}), GPU: str(count)} for part in ("limits", "requests")}
    return with_container(pod, MAIN, lambda main: {**main, "resources": {**resources, **amounts}}) if server else pod


def _has_gpus(pod: Json) -> bool:
    """Report whether a container names a GPU, even with amount 0, or claims a device."""
    return any(
        _devices(container) or (container.get("resources") or {}).get("claims")
        for container in pod.get("containers") or ()
    )


def _devices(container: Json) -> dict[str, object]:
    """Amounts of accelerators, by the resource's name."""
    resources = container.get("resources") or {}
    amounts = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: amount for name, amount in amounts.items() if is_accelerator(name)}


def gpu_count(container: Json) -> Decimal | None:
    """Return the number of GPUs of a container, None where it is unknown: of parts of GPUs, or of their memory."""
    devices = _devices(container)
    try:
        amounts = [quantity.parse(str(amount)) for name, amount in devices.items() if name.endswith("/gpu")]
    except quantity.QuantityError:
        return None
    return sum(amounts, Decimal(0)) if amounts and len(amounts) == len(devices) else None


def _sizes_passed(container: Json) -> dict[str, int | None]:
    """Return the sizes in the container's arguments; None for a number from a variable, or a very long one."""
    parsed = options(container)
    return {flag: _size(parsed, flag) for flag in (TENSOR, DATA) if parsed.gives(flag)}


def _size(parsed: Parsed, flag: str) -> int | None:
    size = number_of(parsed, flag)
    return size if size is not None and size < _LONGEST else None


_LONGEST = 10**9


def _takes_arguments(container: Json) -> bool:
    """Report whether the container passes its arguments to vLLM."""
    started = container.get("command") or [container.get("image") or ""]
    return "vllm" in " ".join(map(str, started)).lower() and passes_arguments(container)


def contradictions(pod: Json | None, parallelism: Mapping[str, object] | None, path: field.Path) -> Iterator[Advice]:
    """Warn where a template without workers contradicts ``parallelism``, whose path is ``path``."""
    needs = demand(parallelism)
    if needs is None:
        return
    server = container_named(pod, MAIN)
    count, passed = gpu_count(server), _sizes_passed(server)
    if count not in (None, 0, needs.gpus):
        unit = "GPU" if needs.gpus == 1 else "GPUs"
        text = f"each pod needs {needs.gpus} {unit}, and container {MAIN} requests {count}; make them equal"
        yield advice(path, text, "contradiction")
    for flag, name, number in ((TENSOR, "tensor", needs.tensor), (DATA, "data", (parallelism or {}).get("data"))):
        if number is not None and passed.get(flag) not in (None, number):
            text = f"is {number}, and container {MAIN} passes {flag} {passed[flag]}; make them equal, or leave one out"
            yield advice(path.child(name), text, "contradiction")


def undersized(pod: Json | None, numbers: Mapping[str, Any], path: field.Path) -> Iterator[Advice]:
    """Warn of a pod among several of a replica with fewer GPUs than the presets' command uses."""
    needed, server = (numbers.get("tensor") or 1) * (numbers.get("dataLocal") or 1), container_named(pod, MAIN)
    count = gpu_count(server)
    if count and count < needed and not server.get("command"):
        text = f"each pod needs {needed} GPUs, tensor times dataLocal, and container {MAIN} requests {count}"
        yield advice(path, f"{text}; request them, or spread the layers over the pods by pipeline", "contradiction")


def ignored_by_server(pod: Json | None, parallelism: Mapping[str, object] | None, path: field.Path) -> Iterator[Advice]:
    """Warn of arguments that are not added, because the template sets a part of them or does not start vLLM."""
    needs, server = demand(parallelism), container_named(pod, MAIN)
    if needs is None or gpu_count(server) == 0:
        return
    passed, has_gpus = _sizes_passed(server), _has_gpus(pod or {})
    sizes = ((TENSOR, needs.tensor or 1), (DATA, needs.copies))
    missing = " ".join(f"{flag} {number}" for flag, number in sizes if number > 1 and flag not in passed)
    if has_gpus and missing and (gpu_count(server) != needs.gpus or not _takes_arguments(server)):
        text = f"container {MAIN} requests GPUs itself, so nothing is added to its arguments; add {missing}"
        yield advice(path, text)
    elif passed and not has_gpus:
        flags = f"container {MAIN} passes {' and '.join(passed)} itself"
        yield advice(path, f"{flags}, so no GPUs are added; request {needs.gpus} of {GPU}")
    elif not has_gpus and not _takes_arguments(server):
        text = f"container {MAIN} does not pass its args to vLLM, so nothing is added; start the server for it there"
        yield field.no_effect(path, text)


def with_command(pod: Json | None) -> Json:
    """Add the presets' command to a user's template without one."""
    server = {"name": MAIN, "command": ["vllm"], **container_named(pod, MAIN)}
    others = [container for container in (pod or {}).get("containers") or () if container.get("name") != MAIN]
    return {**(pod or {}), "containers": [server, *others]}


def doubled(pod: Json | None, path: field.Path, *, adds_gpus: bool) -> Iterator[Advice]:
    """Warn of GPUs that are added beside a resource which may be an accelerator, in an image of the user's choice."""
    server, pod = container_named(pod, MAIN), pod or {}
    if not adds_gpus or not server.get("image") or server["image"] == images.LLM_D or _has_gpus(pod):
        return
    unknown = [name for name in (server.get("resources") or {}).get("limits") or {} if is_unknown(name)]
    if unknown and not _sizes_passed(server) and _takes_arguments({"command": ["vllm"], **server}):
        where = path.child("containers")
        text = f"{GPU} is added for parallelism, and {unknown[0]} is no device that is known here"
        yield advice(where, f'{text}; if the server computes on it, write {GPU}: "0" beside it')


def claimed(
    pod: Json | None, numbers: Mapping[str, Any], path: field.Path, count: int, *, several: bool
) -> Iterator[Advice]:
    """Warn where annotations claim another number of devices than a pod uses, or its server requests GPUs, too.

    ``path`` is the path of the workload, ``several`` is true for pods among several of a replica.
    """
    server, needs = container_named(pod, MAIN), demand(numbers)
    requested = next((name for name, amount in _devices(server).items() if str(amount) != "0"), "")
    if requested:
        text = (
            f"container {MAIN} requests {requested}, and annotations claim devices: each pod holds both; leave one out"
        )
        yield advice(path.child("template"), text, "contradiction")
    local = (numbers.get("tensor") or 1) * (numbers.get("dataLocal") or 1) if several else None
    needed = local or (needs.gpus if needs else _sizes_passed(server).get(TENSOR))
    if needed and (count < needed or (count > needed and not several)):
        unit = "GPU" if needed == 1 else "GPUs"
        text = f"each pod needs {needed} {unit}, and claims {count} by annotation; make them equal"
        yield advice(path.child("parallelism"), text, "contradiction")


def unused(parallelism: Mapping[str, Any], path: field.Path) -> Iterator[Advice]:
    """Warn of values that need several pods, or have no effect in one."""
    data, local = parallelism.get("data") or 1, parallelism.get("dataLocal") or 1
    if (parallelism.get("pipeline") or 1) > 1:
        yield field.no_effect(path.child("pipeline"), "a pipeline runs over several pods; add worker")
    if data > local:
        needed = f"{data} copies, {local} in each pod, need {-(-data // local)} pods"
        yield field.no_effect(path.child("data"), f"{needed}; add worker, or set dataLocal to {data}")
    if parallelism.get("dataRPCPort") is not None:
        yield field.no_effect(
            path.child("dataRPCPort"), "data-parallel ranks of one pod need no port; remove it, or add worker"
        )
    if parallelism.get("expert") and demand(parallelism) is None:
        yield field.no_effect(
            path.child("expert"), "experts are distributed over the GPUs of tensor or data; set one of them"
        )


def parallelism_conflicts(spec: Json) -> list[Advice]:
    """Warn where pods of a merged spec contradict its parallelism."""
    advices: list[Advice] = []
    for workload, path in ((spec, SPEC), (spec.get("prefill"), SPEC.child("prefill"))):
        if workload is None or workload.get("worker") is not None:
            continue
        where = path.child("parallelism")
        for compare in (contradictions, ignored_by_server):
            advices += compare(workload.get("template"), workload.get("parallelism"), where)
    return [item for item in advices if item.id != "no-effect"]
