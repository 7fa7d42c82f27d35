"""The presets of KServe v0.17."""

from collections.abc import Mapping

from app.kserve.constants import PUBLIC_PORT
from app.kserve.spec.presets.latency import latency_predictor
from app.kserve.spec.presets.parts import DECODE_PORT, TRACING
from app.kserve.spec.presets.v017 import pods, router
from app.kube.base import Json

_MAIN = ".Spec.Parallelism"
_PREFILL = ".Spec.Prefill.Parallelism"

PRESETS: Mapping[str, Json] = {
    "config-llm-template": {"template": pods.single_node(PUBLIC_PORT)},
    "config-llm-decode-template": {"template": pods.single_node(DECODE_PORT, routed=True)},
    "config-llm-prefill-template": {"prefill": {"template": pods.single_node(PUBLIC_PORT)}},
    "config-llm-worker-data-parallel": {
        "template": pods.leader(PUBLIC_PORT, _MAIN),
        "worker": pods.worker(PUBLIC_PORT, _MAIN),
    },
    "config-llm-decode-worker-data-parallel": {
        "template": pods.leader(DECODE_PORT, _MAIN, routed=True),
        "worker": {
            **(decode_worker := pods.worker(DECODE_PORT, _MAIN)),
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
    "config-llm-worker-pipeline-parallel": {
        "template": pods.pipeline_leader(PUBLIC_PORT, _MAIN),
        "worker": pods.pipeline_worker(),
    },
    "config-llm-decode-worker-pipeline-parallel": {
        "template": pods.pipeline_leader(DECODE_PORT, _MAIN, routed=True),
        "worker": pods.pipeline_worker(),
    },
    "config-llm-prefill-worker-pipeline-parallel": {
        "prefill": {
            "template": pods.pipeline_leader(PUBLIC_PORT, _PREFILL),
            "worker": pods.pipeline_worker(),
        }
    },
    "config-llm-scheduler": {"router": {"scheduler": router.scheduler()}},
    "config-llm-router-route": {"router": {"route": {"http": {"spec": router.route()}}}},
    "config-llm-tracing": TRACING,
    "config-llm-scheduler-latency-predictor": latency_predictor(),
}
