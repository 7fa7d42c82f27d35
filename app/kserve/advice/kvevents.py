"""Warnings of a precise prefix cache's scorer that learns of no cache, so that it prefers no pod."""

from collections.abc import Iterable, Iterator

from app import images
from app.kserve import arguments
from app.kserve.advice.picker import picker_of, written_configs
from app.kserve.constants import MAIN
from app.kserve.llminferenceservice.merged import SCHEDULER
from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec, SchedulerSpec
from app.kserve.spec.pickerconfig import PRECISE, document_of, plugins, version_of
from app.kube.base import Json
from app.kube.field import Advice, Path, advice
from app.kube.merge import find
from app.kube.podspec import container_named
from app.workload.address import repository_and_tag
from app.workload.engines.engine import engine_named
from app.workload.engines.grammar import ordered
from app.workload.engines.parse import json_of

FLAG = "--kv-events-config"
_ENABLED = "enable_kv_cache_events"
_OFF = ("false", "f", "no", "n", "off", "0")
"""Strings that pydantic reads as false."""
_SILENT = (
    f"{PRECISE} prefers no pod without the events of the servers' caches; add {FLAG} to args, with {_ENABLED} and the "
    "picker's endpoint and topic"
)
_AS_MAPS = (0, 24)
"""From this release on vLLM publishes an event as a map; before it was a list of the values alone."""
_READS_LISTS = (0, 9)
"""The newest endpoint picker that reads lists alone, and drops every map."""


def events_advice(spec: LLMInferenceServiceSpec, below: Json) -> Iterator[Advice]:
    """Warn of servers whose events do not reach the precise scorer of their picker; ``below`` is the presets' spec.

    Seen with vLLM's own publisher of 0.20.0, 0.32.0 and 0.33.0 and the scorer of llm-d's picker 0.9; the class of an
    event changes from 0.23.0 to 0.24.0.
    """
    if spec.scheduler is not None:
        yield from unheard_servers(spec, below, (config for config, _ in written_configs(spec.scheduler, SCHEDULER)))


def unheard_servers(spec: LLMInferenceServiceSpec, below: Json, configs: Iterable[object]) -> Iterator[Advice]:
    """Warn of servers whose events do not reach a picker with these configurations."""
    if spec.scheduler is None or not any(_is_precise(config) for config in configs):
        return
    reads_lists = _reads_lists(spec.scheduler, find(below, ("router", "scheduler")) or {})
    for workload, path in spec.workloads():
        for pod, pod_path in workload.pods(path):
            if pod_path != path.child("template"):
                continue
            container = container_named(pod, MAIN)
            engine = engine_named(container.get("image") or images.LLM_D)
            if engine is None or engine.name != "vllm":
                continue
            if _is_silent(container):
                yield advice(pod_path, _SILENT)
            elif reads_lists and engine.version and ordered(engine.version) >= _AS_MAPS:
                yield advice(_image(pod, pod_path), _unread(engine.version))


def _reads_lists(scheduler: SchedulerSpec, below: Json) -> bool:
    """Report whether the picker reads only lists; an image whose tag is not a version may be newer."""
    if image := container_named(scheduler.template, MAIN).get("image"):
        version = version_of(repository_and_tag(image)[1])
        return version is not None and version <= _READS_LISTS
    version = picker_of(scheduler, below).version
    return version is None or version <= _READS_LISTS


def _image(pod: Json | None, path: Path) -> Path:
    """Return the place of the server's image."""
    containers = path.child("containers").each((pod or {}).get("containers") or ())
    return next((where.child("image") for where, container in containers if container.get("name") == MAIN), path)


def _unread(version: str) -> str:
    since, newest = (".".join(map(str, part)) for part in (_AS_MAPS, _READS_LISTS))
    return (
        f"the endpoint picker, up to version {newest}, does not read the events that vLLM {version} publishes, so "
        f"{PRECISE} prefers no pod; use an image with vLLM before {since}, or a newer picker"
    )


def _is_precise(config: object) -> bool:
    return any(plugin.get("type") == PRECISE for plugin in plugins(document_of(config)))


def _is_silent(container: Json) -> bool:
    """Report whether a server publishes no events, for certain."""
    options = arguments.options(container).all(FLAG)
    if not options:
        return not arguments.may_hide(container, FLAG)
    enabled: object = None
    for option in options:
        if not option.keys:
            settings = json_of(option.value)
            if not isinstance(settings, dict):
                return False
            enabled = settings.get(_ENABLED)
        elif option.keys[0].replace("-", "_") == _ENABLED:
            enabled = option.value
    return enabled is None or str(enabled).lower() in _OFF
