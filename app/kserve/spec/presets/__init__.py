"""The presets that every installation has, built once. Source: KS-2.3 and KS-2.7.

A config of the same name, in the service's namespace or the system namespace, stands in for its preset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.kserve.names import PUBLIC_PORT
from app.kserve.spec.merge import Layer
from app.kserve.spec.presets import pods, router
from app.kserve.spec.template.language import OPEN, Template
from app.kube.base import Json

SCHEDULER, ROUTE, TRACING = "config-llm-scheduler", "config-llm-router-route", "config-llm-tracing"

_MAIN = ".Spec.Parallelism"
_PREFILL = ".Spec.Prefill.Parallelism"
_DECODE = pods.DECODE_PORT
_PIPELINE = "worker-pipeline-parallel"

_PRESETS: dict[str, Json] = {
    "config-llm-template": {"template": pods.single_node(PUBLIC_PORT)},
    "config-llm-decode-template": {"template": pods.single_node(_DECODE, routed=True)},
    "config-llm-prefill-template": {"prefill": {"template": pods.single_node(PUBLIC_PORT)}},
    "config-llm-worker-data-parallel": {
        "template": pods.leader(PUBLIC_PORT, _MAIN),
        "worker": pods.worker(PUBLIC_PORT, _MAIN),
    },
    "config-llm-decode-worker-data-parallel": {
        "template": pods.leader(_DECODE, _MAIN, routed=True),
        "worker": {
            **(decode_worker := pods.worker(_DECODE, _MAIN)),
            "containers": [
                {**server, "env": [*server["env"], {"name": "VLLM_RANDOMIZE_DP_DUMMY_INPUTS", "value": "1"}]}
                for server in decode_worker["containers"]
            ],
        },
    },
    "config-llm-prefill-worker-data-parallel": {
        "prefill": {
            "template": pods.leader(PUBLIC_PORT, _PREFILL),
            "worker": pods.worker(PUBLIC_PORT, _PREFILL),
        }
    },
    f"config-llm-{_PIPELINE}": {
        "template": pods.pipeline_leader(PUBLIC_PORT, _MAIN),
        "worker": pods.pipeline_worker(),
    },
    f"config-llm-decode-{_PIPELINE}": {
        "template": pods.pipeline_leader(_DECODE, _MAIN, routed=True),
        "worker": pods.pipeline_worker(),
    },
    f"config-llm-prefill-{_PIPELINE}": {
        "prefill": {
            "template": pods.pipeline_leader(PUBLIC_PORT, _PREFILL),
            "worker": pods.pipeline_worker(),
        }
    },
    SCHEDULER: {"router": {"scheduler": router.scheduler()}},
    ROUTE: {"router": {"route": {"http": {"spec": router.route()}}}},
    TRACING: {
        "tracing": {
            "exporterEndpoint": "http://otel-collector:4317",
            "sampler": "parentbased_traceidratio",
            "samplerArg": "0.05",
            "exporter": "otlp",
        }
    },
}
PINNED = tuple(suffix for suffix in _PRESETS if suffix != TRACING and not suffix.endswith(_PIPELINE))
"""Those whose names are kept in ``status.annotations``: the eight that KServe keeps there, too."""


class PresetText(str):
    """A template of a preset, read once. The same text of a user's is a plain ``str``, and counts against bounds."""

    __slots__ = ("template",)

    template: Template


def _read(value: Any) -> Any:
    """``value`` with its templates read."""
    if isinstance(value, dict):
        return {key: _read(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_read(item) for item in value]
    if not isinstance(value, str) or OPEN not in value:
        return value
    text = PresetText(value)
    text.template = Template(value)
    return text


PRESETS: dict[str, Json] = _read(_PRESETS)
"""Preset by suffix: what stands after the configured prefix (``kserve-``)."""


def pipelines(chosen: Mapping[str, Layer]) -> set[str]:
    """The workloads, ``""`` and ``prefill``, whose pods a preset of ours starts as a pipeline.

    ``chosen``: presets by suffix. A config of a preset's name may start them in any way.
    """
    return {
        "prefill" if "prefill" in suffix else ""
        for suffix, layer in chosen.items()
        if suffix.endswith(_PIPELINE) and layer.spec is PRESETS[suffix]
    }
