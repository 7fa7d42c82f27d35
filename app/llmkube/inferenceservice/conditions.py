"""The upstream conditions of a service, by phase. Source: llmkube spec 5.7, with its corrections of stale ones."""

from __future__ import annotations

from app.kube.conditions import Conditions
from app.llmkube.inferenceservice.types import ConditionType, InferenceServiceSpec, Phase, Reason


def progress(
    conditions: Conditions,
    phase: Phase,
    ready: int,
    desired: int,
    cause: str = "",
    *,
    waiting_for: str = "",
    position: int = 0,
) -> None:
    """Writes ``Available``, ``Progressing``, ``Degraded`` and ``GPUAvailable``; each says only what holds now.

    ``cause``: why the phase is Failed or Pending. ``waiting_for`` and ``position`` are those of the queue for GPUs.
    """
    if phase is not Phase.WAITING_FOR_GPU:
        conditions.remove(ConditionType.GPU_AVAILABLE)
    if phase is not Phase.FAILED:
        conditions.remove(ConditionType.DEGRADED)
    _availability(conditions, phase, ready, desired)
    match phase:
        case Phase.CREATING | Phase.PROGRESSING:
            message = f"{ready} of {desired} replicas are ready"
            conditions.set(ConditionType.PROGRESSING, True, Reason.CREATING, message)
        case Phase.WAITING_FOR_GPU:
            place = f"; place {position} in the queue" if position else ""
            conditions.set(ConditionType.PROGRESSING, True, Reason.WAITING_FOR_GPU, f"waits for a node{place}")
            message = f"no node has enough free GPUs: {waiting_for}"
            conditions.set(ConditionType.GPU_AVAILABLE, False, Reason.INSUFFICIENT_GPU, message)
        case Phase.PENDING:
            conditions.set(ConditionType.PROGRESSING, True, Reason.PENDING, cause)
        case Phase.FAILED:
            conditions.remove(ConditionType.PROGRESSING)
            conditions.set(ConditionType.DEGRADED, True, Reason.FAILED, cause)
        case Phase.READY | Phase.STOPPED:
            conditions.remove(ConditionType.PROGRESSING)


def _availability(conditions: Conditions, phase: Phase, ready: int, desired: int) -> None:
    """``Available`` becomes true with the phase Ready; afterwards it follows the pods, also while the Model is away."""
    known = conditions.get(ConditionType.AVAILABLE)
    if phase is Phase.FAILED:
        conditions.remove(ConditionType.AVAILABLE)
    elif phase is Phase.STOPPED:
        conditions.set(ConditionType.AVAILABLE, False, Reason.MANUALLY_SCALED_TO_ZERO, "replicas is 0")
    elif phase is Phase.READY:
        message = f"{ready} of {desired} replicas are ready"
        conditions.set(ConditionType.AVAILABLE, True, Reason.INFERENCE_READY, message)
    elif known is not None and ready == 0:
        conditions.set(ConditionType.AVAILABLE, False, Reason.NO_READY_REPLICAS, "no replica is ready any more")
    elif known is not None and known.status != "True":
        conditions.set(ConditionType.AVAILABLE, True, Reason.INFERENCE_READY, f"{ready} replicas are ready")


def speculative(conditions: Conditions, spec: InferenceServiceSpec) -> None:
    """Writes ``VLLMSpecValid``: false when speculative decoding is on without a model; true only after it was false."""
    if spec.runtime != "vllm":
        conditions.remove(ConditionType.VLLM_SPEC_VALID)
        return
    config = spec.vllm_config.speculative if spec.vllm_config else None
    if config is not None and config.enabled and not config.model:
        message = "SpeculativeInvalid: vllmConfig.speculative.enabled needs model; speculative decoding is left out"
        conditions.set(ConditionType.VLLM_SPEC_VALID, False, Reason.SPECULATIVE_MISSING_MODEL, message)
    elif conditions.get(ConditionType.VLLM_SPEC_VALID) is not None:
        conditions.set(ConditionType.VLLM_SPEC_VALID, True, Reason.CONFIG_VALID, "the vLLM options fit together")
