"""The presets of one edition by their names, from the workloads and the router that it builds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.kserve.constants import PUBLIC_PORT
from app.kserve.spec.presets.latency import latency_predictor
from app.kserve.spec.presets.parts import DECODE_PORT
from app.kube.base import Json

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
    "config-llm-": Target(PUBLIC_PORT, ".Spec"),
    "config-llm-decode-": Target(DECODE_PORT, ".Spec", routed=True),
    "config-llm-prefill-": Target(PUBLIC_PORT, ".Spec.Prefill"),
}


def edition(forms: Mapping[str, Callable[[Target], Json]], scheduler: Json, route: Json) -> Mapping[str, Json]:
    """Return the presets of an edition; ``forms`` build the parts of a workload, by the end of the names."""
    workloads = {prefix + form: build(target) for form, build in forms.items() for prefix, target in _TARGETS.items()}
    prefill = {name: {"prefill": spec} for name, spec in workloads.items() if name.startswith("config-llm-prefill-")}
    return {
        **workloads,
        **prefill,
        "config-llm-scheduler": {"router": {"scheduler": scheduler}},
        "config-llm-router-route": {"router": {"route": {"http": {"spec": route}}}},
        "config-llm-tracing": _TRACING,
        "config-llm-scheduler-latency-predictor": latency_predictor(),
    }
