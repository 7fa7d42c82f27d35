"""What a BackendRuntime's author should know of an accepted object. Source: llmaz spec N20, N22, N24 and N30."""

from __future__ import annotations

from collections.abc import Iterator

from app.kube import field
from app.kube.decode import SPEC
from app.llmaz import scaling
from app.llmaz.backendruntime.arguments import WORDS, unknown_words
from app.llmaz.backendruntime.types import DEFAULT_PRESET, RecommendedConfig, preset
from app.llmaz.backendruntime.validation import PRESETS, BackendRuntime
from app.llmaz.quantities import Resources
from app.workload import podrules


def warnings(runtime: BackendRuntime) -> list[str]:
    found = [
        warning
        for position, config in enumerate(runtime.spec.recommended_configs or ())
        for warning in _preset(config, PRESETS.index(position))
    ]
    found += podrules.env_warnings(runtime.spec.envs or [], str(SPEC.child("envs")))
    if preset(runtime.spec, DEFAULT_PRESET) is None:
        found.append(f"{PRESETS}: without a preset named {DEFAULT_PRESET}, Playgrounds have to set configName")
    return found


def _preset(config: RecommendedConfig, path: field.Path) -> Iterator[str]:
    for position, argument in enumerate(config.args or ()):
        for word in unknown_words(argument):
            where = path.child("args").index(position)
            known = ", ".join(WORDS)
            yield f"{where}: {{{{ .{word} }}}} has no value, no Playground can use the preset; known are {known}"
    yield from accelerators(config.resources, path.child("resources"))
    if config.scale_trigger is not None and config.scale_trigger.hpa is not None:
        yield from scaling.warnings(config.scale_trigger.hpa, path.child("scaleTrigger", "hpa"))


def accelerators(resources: Resources | None, path: field.Path) -> Iterator[str]:
    """Accelerators belong into a model's flavors, which overwrite what stands here."""
    for kind, amounts in (("limits", resources.limits), ("requests", resources.requests)) if resources else ():
        for name in amounts or ():
            if "/" in name:
                where = path.child(kind).key(name)
                yield f"{where}: overwritten by a model's flavor that lists it; put accelerators there"
