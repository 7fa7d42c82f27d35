"""The presets of KServe v0.20: its values, with texts of our own."""

from collections.abc import Mapping

from app.kserve.constants import MODEL_ROUTING, PUBLIC_PORT
from app.kserve.spec.presets.latency import latency_predictor
from app.kserve.spec.presets.parts import DECODE_PORT, TRACING
from app.kserve.spec.presets.v020 import pods, router
from app.kube.base import Json

_MAIN = ".Spec.Parallelism"
_PREFILL = ".Spec.Prefill.Parallelism"
_DUMMY_INPUTS: Json = {"name": "VLLM_RANDOMIZE_DP_DUMMY_INPUTS", "value": "1"}


_BY_MODEL: Json = {"annotations": {MODEL_ROUTING: "true"}}


PRESETS: Mapping[str, Json] = {
    "config-llm-template": {**_BY_MODEL, "template": pods.single_node(PUBLIC_PORT, ".Spec.Template")},
    "config-llm-decode-template": {
        **_BY_MODEL,
        "template": pods.single_node(DECODE_PORT, ".Spec.Template", routed=True),
    },
    "config-llm-prefill-template": {
        "prefill": {**_BY_MODEL, "template": pods.single_node(PUBLIC_PORT, ".Spec.Prefill.Template")}
    },
    "config-llm-worker-data-parallel": {**_BY_MODEL, **pods.data_parallel(PUBLIC_PORT, ".Spec", _MAIN)},
    "config-llm-decode-worker-data-parallel": {
        **_BY_MODEL,
        **pods.data_parallel(DECODE_PORT, ".Spec", _MAIN, routed=True, env=[_DUMMY_INPUTS]),
    },
    "config-llm-prefill-worker-data-parallel": {
        "prefill": {**_BY_MODEL, **pods.data_parallel(PUBLIC_PORT, ".Spec.Prefill", _PREFILL)}
    },
    "config-llm-worker-pipeline-parallel": {**_BY_MODEL, **pods.pipeline(PUBLIC_PORT, ".Spec", _MAIN)},
    "config-llm-decode-worker-pipeline-parallel": {
        **_BY_MODEL,
        **pods.pipeline(DECODE_PORT, ".Spec", _MAIN, routed=True),
    },
    "config-llm-prefill-worker-pipeline-parallel": {
        "prefill": {**_BY_MODEL, **pods.pipeline(PUBLIC_PORT, ".Spec.Prefill", _PREFILL)}
    },
    "config-llm-scheduler": {"router": {"scheduler": router.scheduler()}},
    "config-llm-router-route": {"router": {"route": {"http": {"spec": router.route()}}}},
    "config-llm-tracing": TRACING,
    "config-llm-scheduler-latency-predictor": latency_predictor(),
}
