"""Warnings about what the endpoint picker's version does not read of its configuration."""

import itertools
from collections.abc import Iterator

from app.kserve.constants import MAIN, TOKENIZER
from app.kserve.llminferenceservice.types import SchedulerSpec
from app.kserve.spec.pickerconfig import (
    TEXT_FLAGS,
    Picker,
    converted,
    document_of,
    objects,
    picker_version,
    plugins,
)
from app.kube.base import Json
from app.kube.field import Advice, Path, advice, render
from app.kube.podspec import container_named
from app.limits import MAX_UNKNOWN_NAMES


def unread_advice(scheduler: SchedulerSpec, below: Json, path: Path) -> Iterator[Advice]:
    """Warn of parameters that a scheduler's picker gets otherwise than written; ``below`` is the preset's scheduler."""
    picker = picker_of(scheduler, below)
    for config, where in written_configs(scheduler, path):
        yield from unread_parameters(config, picker, where)


def written_configs(scheduler: SchedulerSpec, path: Path) -> Iterator[tuple[object, Path]]:
    """Yield the configurations that are written in a scheduler, as text or object, with their places."""
    if scheduler.config is not None:
        yield scheduler.config.inline, path.child("config", "inline")
    for where, container in path.child("template", "containers").each(
        objects((scheduler.template or {}).get("containers"))
    ):
        args = container.get("args") or [] if container.get("name") == MAIN else []
        for position, (flag, text) in enumerate(itertools.pairwise(args)):
            if flag in TEXT_FLAGS:
                yield text, where.child("args").index(position + 1)


def picker_of(scheduler: SchedulerSpec, below: Json) -> Picker:
    """Return the picker of a scheduler over a preset's, as far as its configuration depends on it."""
    annotations = {**(below.get("annotations") or {}), **(scheduler.annotations or {})}
    pods = (below.get("template"), scheduler.template)
    return Picker(picker_version(annotations), any(container_named(pod, TOKENIZER) for pod in pods))


def unread_parameters(config: object, picker: Picker, path: Path) -> Iterator[Advice]:
    """Warn of the parameters of each plugin that the picker's version refuses, so that they are moved or left out."""
    entries = path.child("plugins").each(plugins(document_of(config)))
    return itertools.islice(
        (
            advice(path if isinstance(config, str) else where.child("parameters"), message)
            for where, plugin in entries
            if (message := _unread(plugin, picker))
        ),
        MAX_UNKNOWN_NAMES,
    )


def _unread(plugin: Json, picker: Picker) -> str:
    *added, effective = converted(plugin, picker)
    names = list(_changes(plugin.get("parameters"), effective.get("parameters")))
    if not names or picker.version is None:
        return ""
    shown = [render(name) for name in names[:MAX_UNKNOWN_NAMES]]
    shown += ["others"] if len(names) > len(shown) else []
    version = ".".join(map(str, picker.version))
    gets = render([*added, effective] if added else effective.get("parameters") or {})
    return f"the endpoint picker of version {version} does not use {', '.join(shown)} as written; it gets {gets}"


def _changes(written: object, given: object, parent: str = "") -> Iterator[str]:
    """List the parameters that the picker does not get as they are written. Empty ones are ignored."""
    if not isinstance(written, dict):
        return
    there = given if isinstance(given, dict) else {}
    for key, value in written.items():
        if isinstance(value, dict) and isinstance(there.get(key), dict):
            yield from _changes(value, there[key], f"{parent}{key}.")
        elif value not in (None, {}, []) and (key not in there or there[key] != value):
            yield f"{parent}{key}"
