"""The presets of one edition by their names, from the workloads and the router that it builds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.kserve.constants import PUBLIC_PORT
from app.kserve.spec.presets.latency import latency_predictor
from app.kserve.spec.presets.parts import DECODE_PORT
from app.kube.base import Json

ONLY, DECODE, PREFILL = "config-llm-", "config-llm-decode-", "config-llm-prefill-"
"""Beginnings of the names of presets for the only workload, the decode and the prefill one."""
SINGLE_NODE, DATA_PARALLEL, PIPELINE = "template", "worker-data-parallel", "worker-pipeline-parallel"
"""Ends of those names: the form of the workload."""
SCHEDULER, ROUTE, TRACING = "config-llm-scheduler", "config-llm-router-route", "config-llm-tracing"
LATENCY_PREDICTOR = "config-llm-scheduler-latency-predictor"

WORKER_ENV: Json = {"name": "VLLM_RANDOMIZE_DP_DUMMY_INPUTS", "value": "1"}
"""Variable of the workers of a data-parallel decode workload."""
_TRACING: Json = {
    "tracing": {
        "exporterEndpoint": "http://otel-collector:4317",
        "sampler": "parentbased_traceidratio",
        "samplerArg": "0.05",
        "exporter": "otlp",
    }
}


@dataclass(frozen=True, slots=True)
class Target:
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
    DECODE: Target(DECODE_PORT, ".Spec", routed=True),
    PREFILL: Target(PUBLIC_PORT, ".Spec.Prefill"),
}


def edition(forms: Mapping[str, Callable[[Target], Json]], scheduler: Json, route: Json) -> Mapping[str, Json]:
    """Return the presets of an edition; ``forms`` build the parts of a workload, by the end of the names."""
    workloads = {prefix + form: build(target) for form, build in forms.items() for prefix, target in _TARGETS.items()}
    prefill = {name: {"prefill": spec} for name, spec in workloads.items() if name.startswith(PREFILL)}
    return {
        **workloads,
        **prefill,
        SCHEDULER: {"router": {"scheduler": scheduler}},
        ROUTE: {"router": {"route": {"http": {"spec": route}}}},
        TRACING: _TRACING,
        LATENCY_PREDICTOR: latency_predictor(),
    }
