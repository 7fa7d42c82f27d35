"""What a BackendRuntime's author should know of an accepted object. Source: LZ-N20, LZ-N22, LZ-N24 and LZ-N30."""

from __future__ import annotations

from collections.abc import Iterator

from app.kube import field
from app.kube.decode import SPEC
from app.llmaz import scaling
from app.llmaz.backendruntime.arguments import MODEL_PATH, WORDS, misses, names_a_word, other_ports, unknown_words
from app.llmaz.backendruntime.types import (
    DEFAULT_PRESET,
    SPECULATIVE_PRESET,
    BackendRuntimeSpec,
    RecommendedConfig,
    preset,
)
from app.llmaz.backendruntime.validation import PRESETS, BackendRuntime, probes
from app.llmaz.names import PORT, PORT_NAME
from app.llmaz.quantities import Resources
from app.workload import podrules


def warnings(runtime: BackendRuntime) -> list[str]:
    spec = runtime.spec
    found = [*_image(spec), *_not_rendered(spec)]
    for position, config in enumerate(spec.recommended_configs or ()):
        found += _preset(config, PRESETS.index(position))
    found += podrules.env_warnings(spec.envs or [], str(SPEC.child("envs")))
    for name, probe in probes(spec).items():
        found += podrules.probe_warnings(probe or {}, str(SPEC.child(f"{name}Probe")), (PORT_NAME,))
    if preset(spec, DEFAULT_PRESET) is None:
        found.append(f"{PRESETS}: without a preset named {DEFAULT_PRESET}, Playgrounds have to set configName")
    return found


def _image(spec: BackendRuntimeSpec) -> Iterator[str]:
    """Image and version are put together with a colon, whatever they are."""
    if ":" in spec.image.rpartition("/")[2]:
        yield f"{SPEC.child('image')}: has a tag, and version is put after it; move the tag to version"
    for name, text in (("image", spec.image), ("version", spec.version)):
        if not text:
            yield f"{SPEC.child(name)}: empty, so there is no such image as {spec.image}:{spec.version}"


def _not_rendered(spec: BackendRuntimeSpec) -> Iterator[str]:
    """Placeholders where they stay as they are (LZ-3.3)."""
    texts = [(SPEC.child("command").index(position), text) for position, text in enumerate(spec.command or ())]
    for position, variable in enumerate(spec.envs or ()):
        texts.append((SPEC.child("envs").index(position).child("value"), variable.get("value") or ""))
    for where, text in texts:
        if names_a_word(text):
            yield f"{where}: placeholders are replaced in the args of presets only; this one stays as it is"


def _preset(config: RecommendedConfig, path: field.Path) -> Iterator[str]:
    known = ", ".join(WORDS)
    for position, argument in enumerate(config.args or ()):
        where = path.child("args").index(position)
        for word in unknown_words(argument):
            yield f"{where}: {{{{ .{word} }}}} has no value, no Playground can use the preset; known are {known}"
        if misses(argument):
            yield f"{where}: not replaced; a placeholder is one word after a dot, as in {{{{ .{MODEL_PATH} }}}}"
    yield from ports(config.args or [], path.child("args"))
    yield from accelerators(config.resources, path.child("resources"))
    if config.scale_trigger is None:
        return
    if config.name not in (DEFAULT_PRESET, SPECULATIVE_PRESET):
        yield (
            f"{path.child('scaleTrigger')}: has no effect, only those of the presets {DEFAULT_PRESET} and "
            f"{SPECULATIVE_PRESET} have, whatever configName a Playground sets"
        )
    if config.scale_trigger.hpa is not None:
        yield from scaling.warnings(config.scale_trigger.hpa, path.child("scaleTrigger", "hpa"))


def ports(args: list[str], path: field.Path) -> Iterator[str]:
    """Rule LZ-N31."""
    for position in other_ports(args):
        yield f"{path.index(position)}: the port is always {PORT}; probes and the Service do not follow this argument"


def accelerators(resources: Resources | None, path: field.Path) -> Iterator[str]:
    """Accelerators belong into a model's flavors, which overwrite what stands here."""
    for kind, amounts in (("limits", resources.limits), ("requests", resources.requests)) if resources else ():
        for name in amounts or ():
            if "/" in name:
                where = path.child(kind).key(name)
                yield f"{where}: overwritten by a model's flavor that lists it; put accelerators there"
