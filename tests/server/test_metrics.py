"""Metrics of syncs besides those of HTTP requests."""

from __future__ import annotations

from prometheus_client import REGISTRY

from app.hooks.protocol import SyncAnswer
from app.llmkube.kinds import INFERENCE_SERVICE, MODEL
from app.server.metrics import synced

READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def counted(value: str) -> float:
    labels = {"kind": "Model", "field": "quantization", "value": value}
    return REGISTRY.get_sample_value("modelhooks_status_values_total", labels) or 0.0


def test_models_are_counted_by_quantization() -> None:
    """Values that llama.cpp does not know are counted as one series, because users may write any value."""
    report = synced(MODEL)
    before = [counted(value) for value in ("Q4_K_M", "other")]
    for name in ("Q4_K_M", "our own", "another of ours", ""):
        report(SyncAnswer(b"{}", {"conditions": [], "quantization": name}))
    assert [counted(value) for value in ("Q4_K_M", "other")] == [before[0] + 1, before[1] + 2]
    assert counted("our own") == 0


def test_a_kind_without_quantization_is_not_counted() -> None:
    synced(INFERENCE_SERVICE)(SyncAnswer(b"{}", {**READY, "quantization": "F16"}))
    assert counted("F16") == 0


def test_kept_templates_are_counted_by_what_waits() -> None:
    name, labels = "modelhooks_kept_templates_total", {"kind": "InferenceService"}
    before = REGISTRY.get_sample_value(name, labels) or 0.0
    for waiting in ([], ["Deployment chat: spec.containers[vllm].args", "Deployment chat: spec.volumes"]):
        synced(INFERENCE_SERVICE)(SyncAnswer(b"{}", READY, waiting))
    assert REGISTRY.get_sample_value(name, labels) == before + 1
