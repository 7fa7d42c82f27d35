"""The presets of one edition by their names: its workloads and its router, and those that every edition has."""

from collections.abc import Callable, Mapping

import msgspec

from app.kserve.constants import PUBLIC_PORT
from app.kserve.spec.presets import latency, parts
from app.kube.base import Json

ONLY, DECODE, PREFILL = "config-llm-", "config-llm-decode-", "config-llm-prefill-"
"""Beginnings of the names of presets for the only workload, the decode and the prefill one."""
SINGLE_NODE, DATA_PARALLEL, PIPELINE = "template", "worker-data-parallel", "worker-pipeline-parallel"
"""Ends of those names: the form of the workload."""
SCHEDULER, ROUTE, TRACING = "config-llm-scheduler", "config-llm-router-route", "config-llm-tracing"
LATENCY_PREDICTOR = "config-llm-scheduler-latency-predictor"

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_WORKER_ENV: Json = {"name": "VLLM_RANDOMIZE_DP_DUMMY_INPUTS", "value": "1"}
"""Variable of the workers of a data-parallel decode workload."""
_TRACING: Json = {
    "tracing": {
        "exporterEndpoint": "http://otel-collector:4317",
        "sampler": "parentbased_traceidratio",
        "samplerArg": "0.05",
        "exporter": "otlp",
    }
}


class Target(msgspec.Struct, frozen=True):
    """A workload that presets are for: the only one, the decode one or the prefill one."""

    port: int
    path: str
    """Path of its values in the data of templates."""
    routed: bool = False
    """True if its pods have the routing sidecar."""

    @property
    def parallelism(self) -> str:
        return f"{self.path}.Parallelism"


_TARGETS = {
    ONLY: Target(PUBLIC_PORT, ".Spec"),
    DECODE: Target(parts.DECODE_PORT, ".Spec", routed=True),
    PREFILL: Target(PUBLIC_PORT, ".Spec.Prefill"),
}


class Builders(msgspec.Struct, frozen=True):
    """Functions by which an edition builds the parts of workloads; True: for a pod of a group."""

    command: Callable[[Target, str, bool], list[str]]
    """Of a server of that form; True: of the first pod, which takes the requests."""
    server: Callable[[int, list[str], bool], Json]
    sidecar: Callable[[bool], Json]
    pod: Callable[[Json, Json | None, bool], Json]


def edition(builders: Builders, scheduler: Json, route: Json, common: Mapping[str, Json]) -> dict[str, Json]:
    """Return the presets of an edition; ``common`` is in all of its workloads."""
    presets: dict[str, Json] = {}
    for form in (SINGLE_NODE, DATA_PARALLEL, PIPELINE):
        for prefix, target in _TARGETS.items():
            spec = {**common, **_workload(builders, target, form)}
            presets[prefix + form] = {"prefill": spec} if prefix == PREFILL else spec
    return {
        **presets,
        SCHEDULER: {"router": {"scheduler": scheduler}},
        ROUTE: {"router": {"route": {"http": {"spec": route}}}},
        TRACING: _TRACING,
        LATENCY_PREDICTOR: latency.latency_predictor(),
    }


def _workload(build: Builders, target: Target, form: str) -> Json:
    """Build a server that fits one pod, or a group. Its workers get no requests, so they have no probes."""
    grouped = form != SINGLE_NODE
    server = build.server(target.port, build.command(target, form, True), grouped)
    template = build.pod(server, build.sidecar(grouped) if target.routed else None, grouped)
    if not grouped:
        return {"template": template}
    worker = build.server(target.port, build.command(target, form, False), grouped)
    for name in (*_PROBES, "ports") if form == PIPELINE else _PROBES:
        del worker[name]
    if form == DATA_PARALLEL and target.routed:
        worker["env"] = [*worker["env"], _WORKER_ENV]
    return {"template": template, "worker": build.pod(worker, None, grouped)}
