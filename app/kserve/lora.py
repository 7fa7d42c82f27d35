"""LoRA adapters: their rules, their directories in the pods, and vLLM's arguments for them. Source: KS-3.13."""

import json
import re
from collections.abc import Iterator, Sequence

from app.kserve.arguments import has_option, with_arguments, word
from app.kserve.constants import MAIN, OPEN
from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec, LLMModelSpec, LoRASpec
from app.kserve.modeluri import InvalidURL, parse, url_problem
from app.kserve.sources import Artifact, problem, provider, shown
from app.kube import field
from app.kube.base import Json
from app.kube.correction import Members, wrong_type
from app.kube.podspec import container_named
from app.limits import MAX_ADAPTERS
from app.workload.engines.commandline import passes_arguments

LORA = field.SPEC.child("model", "lora")
ADAPTERS = LORA.child("adapters")
LORA_PATH = "/mnt/lora"
_MODULES = "--lora-modules"
RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Valid values of vLLM's ``--max-lora-rank``."""
_OTHERS = re.compile(r"[^A-Za-z0-9._-]")
_FORMS = "hf://, s3://, gs:// or pvc:// and a path"
_ADAPTER = Members(("uri", "name"), ("uri", "name"))


def adapters(model: LLMModelSpec | None) -> list[Artifact]:
    """Return the adapters of a model that passed :func:`check`, sorted by name."""
    listed = []
    for _, entry in entries(model):
        uri = parse(entry["uri"])
        listed.append(Artifact(uri, provider(uri), f"{LORA_PATH}/{_directory(entry['name'])}", entry["name"]))
    return sorted(listed, key=lambda adapter: adapter.name)


def adapter_names(listed: object) -> list[str]:
    """Return the names of the adapters in a list, as far as they are sound."""
    items = listed if isinstance(listed, list) else []
    return sorted(str(entry["name"]) for entry in items if isinstance(entry, dict) and entry.get("name"))


def uris(model: LLMModelSpec | None) -> list[str]:
    listed = [entry.get("uri") for _, entry in entries(model)]
    return [uri for uri in (model.uri if model is not None else None, *listed) if isinstance(uri, str)]


def entries(model: LLMModelSpec | None) -> Iterator[tuple[field.Path, Json]]:
    """Yield the adapters that are objects; :func:`check_types` reports the others."""
    listed = model.lora.adapters if model is not None and model.lora is not None else None
    for position, entry in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(entry, dict):
            yield ADAPTERS.index(position), entry


def _directory(name: str) -> str:
    return _OTHERS.sub("-", name)


def check_types(model: LLMModelSpec) -> Iterator[field.Error]:
    """Require adapters to be objects with names and addresses (KS-L01)."""
    listed = model.lora.adapters if model.lora is not None else None
    if listed is None:
        return
    if not isinstance(listed, list):
        yield wrong_type(ADAPTERS, listed, "array", _ADAPTER)
        return
    if len(listed) > MAX_ADAPTERS:
        yield field.too_many(ADAPTERS, len(listed), MAX_ADAPTERS)
        return
    for adapter_path, adapter in ADAPTERS.each(listed):
        if not isinstance(adapter, dict):
            yield wrong_type(adapter_path, adapter, "object", _ADAPTER)
            continue
        for key in ("uri", "name"):
            value = adapter.get(key)
            if value is not None and not isinstance(value, str):
                yield wrong_type(adapter_path.child(key), value, "string")
        if isinstance(adapter.get("uri"), str):
            yield from check_url(adapter["uri"], adapter_path.child("uri"))


def check_url(uri: str, path: field.Path) -> Iterator[field.Error]:
    """Require an address to be a valid URL (KS-7.6)."""
    if reason := url_problem(uri):
        yield field.invalid(path, shown(uri), f"is not a valid URL: {reason}")


def is_loaded(spec: LLMInferenceServiceSpec) -> bool:
    """Report whether adapters are downloaded into the pods: not if the storage initializer is disabled."""
    return spec.storage_initializer is None or spec.storage_initializer.enabled is not False


def check(spec: LLMInferenceServiceSpec, service: str, *, final: bool) -> Iterator[field.Error]:
    """Reject adapters that vLLM or the download always refuses (KS-L02 to KS-L07).

    ``final`` is True for a merged spec. Before merging, a base may name the model, or disable the storage initializer.
    """
    if not is_loaded(spec) or spec.model is None:
        return
    used_names: dict[str, tuple[str, field.Path]] = {}
    base = spec.model.name or ("" if spec.base_refs and not final else service)
    for position, entry in entries(spec.model):
        name, uri = entry.get("name"), entry.get("uri")
        if isinstance(name, (str, type(None))):
            yield from _name(name or "", position, base, used_names)
        if not uri:
            yield field.required(position.child("uri"), f"set the address of the adapter: {_FORMS}")
        elif isinstance(uri, str) and OPEN not in uri and (final or not spec.base_refs):
            reason = fault(uri)
            if reason:
                yield field.invalid(position.child("uri"), shown(uri), reason)


def _name(
    name: str, position: field.Path, base: str, used_names: dict[str, tuple[str, field.Path]]
) -> Iterator[field.Error]:
    """Require a name of an adapter that no other model and no other adapter's directory has (KS-L02 to KS-L05)."""
    path = position.child("name")
    if not name:
        yield field.required(path, "requests ask for the adapter by its name")
    elif OPEN in name:
        return
    elif name in (".", ".."):
        yield field.invalid(path, name, "cannot be the name of a directory; use letters, digits, '.', '_' and '-'")
    elif name == base:
        yield field.invalid(path, name, "is the name of the base model; requests could not tell the two apart")
    elif (other := used_names.get(_directory(name))) is not None:
        same = f"is the name of {other[1]} already; adapters need different names"
        near = f"would be stored in the directory of {other[1]}, {field.render(other[0])}: characters other than "
        detail = same if other[0] == name else f"{near}letters, digits, '.', '_' and '-' become '-' there"
        yield field.invalid(path, name, detail)
    used_names.setdefault(_directory(name), (name, position))


def fault(uri: str) -> str:
    """Return why an adapter cannot be fetched from an address; empty if it can, or if the address is not a URL."""
    try:
        parsed = parse(uri)
    except InvalidURL:
        return ""
    reason = problem(parsed, enabled=True)
    if not reason and provider(parsed).is_image:
        return f"an adapter cannot be an image; use {_FORMS}"
    return reason


def advice(spec: LLMInferenceServiceSpec) -> Iterator[field.Advice]:
    """Warn of values that vLLM probably refuses, and of adapters that the server does not load."""
    lora = spec.model.lora if spec.model is not None else None
    if lora is None:
        return
    if not is_loaded(spec):
        hint = (
            "storageInitializer.enabled is false, so adapters are not downloaded; the container must load them itself"
        )
        yield field.no_effect(LORA, hint)
        return
    if not lora.adapters:
        if not spec.base_refs and (lora.max_rank or lora.max_adapters or lora.max_cpu_adapters):
            yield field.no_effect(LORA, "adapters is empty")
        return
    if lora.max_rank is not None and lora.max_rank not in RANKS:
        yield field.advice(LORA.child("maxRank"), f"vLLM takes {', '.join(map(str, RANKS[1:]))}, not {lora.max_rank}")
    if lora.max_cpu_adapters is not None and lora.max_cpu_adapters < (lora.max_adapters or 1):
        text = f"must be at least maxAdapters, {lora.max_adapters or 1}: each adapter on a GPU has a place in memory"
        yield field.advice(LORA.child("maxCpuAdapters"), text)
    for workload, path in spec.workloads():
        for pod, pod_path in workload.pods(path):
            yield from _ignored_by_server(pod, pod_path)
    if len(adapter_names(lora.adapters)) > 1 and lora.max_adapters is None and not spec.base_refs:
        yield from _one_at_a_time(spec)


def _one_at_a_time(spec: LLMInferenceServiceSpec) -> Iterator[field.Advice]:
    """Warn of adapters that vLLM computes one at a time, because no number is set."""
    mains = [container_named(pod, MAIN) for workload, path in spec.workloads() for pod, _ in workload.pods(path)]
    if not any(has_option(main, "--max-loras") for main in mains):
        text = "vLLM computes for one adapter at a time by default, and the others wait; set the number for one batch"
        yield field.advice(LORA.child("maxAdapters"), text)


def _ignored_by_server(pod: Json | None, path: field.Path) -> Iterator[field.Advice]:
    """Warn of a user's script that passes no arguments to its server."""
    for position, container in enumerate((pod or {}).get("containers") or ()):
        if container.get("name") != MAIN or passes_arguments(container) or has_option(container, _MODULES):
            continue
        yield field.advice(
            path.child("containers").index(position).child("command"),
            f"this script does not pass its arguments on, so the server does not load the adapters: add {_MODULES} "
            f'<name>={LORA_PATH}/<name> there, or "$@"',
        )


def with_adapters(container: Json, lora: LoRASpec, served: Sequence[tuple[str, str]]) -> Json:
    """Add the arguments that load the adapters, ``(name, directory)`` each, if the container passes arguments."""
    if has_option(container, _MODULES) or not passes_arguments(container):
        return container
    limits = (
        ("--max-lora-rank", lora.max_rank),
        ("--max-loras", lora.max_adapters),
        ("--max-cpu-loras", lora.max_cpu_adapters),
    )
    flags = ["--enable-lora", *(f"{flag}={value}" for flag, value in limits if value is not None)]
    modules = [{"name": name, "path": path} for name, path in served]
    texts = [json.dumps(module, separators=(",", ":"), ensure_ascii=False) for module in modules]
    return with_arguments(container, [*flags, _MODULES, *(word(text, container) for text in texts)])
