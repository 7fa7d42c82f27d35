"""What is counted of syncs besides the HTTP requests."""

from __future__ import annotations

import orjson
from prometheus_client import REGISTRY

from app.llmkube.kinds import INFERENCE_SERVICE, MODEL
from app.server.metrics import synced


def counted(value: str) -> float:
    labels = {"kind": "Model", "field": "quantization", "value": value}
    return REGISTRY.get_sample_value("modelhooks_status_values_total", labels) or 0.0


def test_models_are_counted_by_quantization() -> None:
    """Users may write anything there, and each value would be a series: what llama.cpp does not know is one."""
    report = synced(MODEL)
    before = [counted(value) for value in ("Q4_K_M", "other")]
    for name in ("Q4_K_M", "our own", "another of ours", ""):
        report(orjson.dumps({"status": {"conditions": [], "quantization": name}, "children": []}))
    assert [counted(value) for value in ("Q4_K_M", "other")] == [before[0] + 1, before[1] + 2]
    assert counted("our own") == 0


def test_a_kind_without_such_a_field_is_not() -> None:
    synced(INFERENCE_SERVICE)(b'{"status":{"conditions":[{"type":"Ready","status":"True"}],"quantization":"F16"}}')
    assert counted("F16") == 0
