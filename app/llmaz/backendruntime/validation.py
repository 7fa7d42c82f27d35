"""The rules of a BackendRuntime that its types cannot say. Source: LZ-BR01 and LZ-BR02, LZ-N21 and LZ-N23."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.hooks import sendable
from app.kube import field
from app.kube.decode import SPEC
from app.kube.resource import Resource
from app.llmaz import scaling
from app.llmaz.backendruntime.types import BackendRuntimeSpec, BackendRuntimeStatus, RecommendedConfig
from app.llmaz.quantities import check_resources, low_limits
from app.llmaz.shown import UpstreamPath
from app.settings import Settings
from app.workload import podrules

BackendRuntime = Resource[BackendRuntimeSpec, BackendRuntimeStatus]

PRESETS = SPEC.child("recommendedConfigs")


def validate(runtime: BackendRuntime, old: BackendRuntime | None, settings: Settings) -> list[field.Error]:
    return [*_presets(runtime.spec.recommended_configs or []), *unusable(runtime.spec)]


def probes(spec: BackendRuntimeSpec) -> dict[str, dict[str, Any] | None]:
    """The probes by what they are for."""
    return {"startup": spec.startup_probe, "liveness": spec.liveness_probe, "readiness": spec.readiness_probe}


def unusable(spec: BackendRuntimeSpec) -> Iterator[field.Error]:
    """What no pod or autoscaler can be made with, whatever the Playground says."""
    yield from podrules.env(spec.envs or [], SPEC.child("envs"))
    for name, probe in probes(spec).items():
        if probe is not None:
            yield from podrules.probe(probe, SPEC.child(f"{name}Probe"), name)
            yield from sendable.check(probe, SPEC.child(f"{name}Probe"))
    yield from podrules.lifecycle(spec.lifecycle or {}, SPEC.child("lifecycle"))
    yield from sendable.check(spec.lifecycle, SPEC.child("lifecycle"))
    for position, variable in enumerate(spec.envs or ()):
        yield from sendable.check(variable, SPEC.child("envs").index(position))
    for position, preset in enumerate(spec.recommended_configs or ()):
        if preset.scale_trigger is not None and preset.scale_trigger.hpa is not None:
            path = PRESETS.index(position).child("scaleTrigger", "hpa")
            yield from scaling.unsendable(preset.scale_trigger.hpa, path)


def _presets(presets: list[RecommendedConfig]) -> Iterator[field.Error]:
    seen: set[str] = set()
    for position, preset in enumerate(presets):
        path = PRESETS.index(position)
        if preset.name in seen:
            where = UpstreamPath("spec.args.name", path.child("name"))
            yield field.forbidden(
                where, f"{path}: the name {field.go_quote(preset.name)} is there already; choose another"
            )
        seen.add(preset.name)
        if preset.resources is not None:
            for low, detail in low_limits(preset.resources, path.child("resources")):
                yield field.forbidden(UpstreamPath("spec.resources", low), f"{low}: {detail}")
            yield from check_resources(preset.resources, path.child("resources"))
        yield from _trigger(preset, path.child("scaleTrigger"))


def _trigger(preset: RecommendedConfig, path: field.Path) -> Iterator[field.Error]:
    if preset.scale_trigger is None:
        return
    if preset.scale_trigger.hpa is None:
        yield field.required(path.child("hpa"), "a trigger needs something to scale on; add hpa or remove scaleTrigger")
        return
    yield from scaling.check(preset.scale_trigger.hpa, path.child("hpa"))
