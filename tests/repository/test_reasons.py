"""Each reason of the families is one that a person has to mend, one of rest, or one that may pass by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.hooks.readystatus import LASTING, RESTING
from tests.repository.test_docs_troubleshooting import enumerations, reasons
from tests.repository.test_readme import ROOT

OF_KUBERNETES = frozenset(
    {
        *("ContainerCannotRun", "OOMKilled", "StartError"),  # of a container that ended
        *(
            "ErrImageNeverPull",
            "ImageInspectError",
            "InvalidImageName",
            "SignatureValidationFailed",
        ),  # of one that waits
        "ReplicaSetCreateError",  # of a Deployment
    }
)
"""Words of the kubelet and of controllers, which become reasons as they are."""

NOT_OF_READY = {
    *("AbortProcessing", "ConfigValid", "GatewayCRDsNotInstalled", "MemberDivergence", "NoScheduler", "NoWeight"),
    *("NotRouted", "NotSuspended", "OffloadingNotSupported", "PluginServerMissing", "SpeculativeAcceptThresholdUnused"),
    *("SpeculativeInvalid", "SpeculativeMissingConfig", "SpeculativeMissingModel", "TLSNotSupported"),
    *("UnknownCriticality", "DevicesNotSupported", "MetricRequired", "NoRequestYet", "Superseded"),
    *("CUDADriverInsufficient", "ModelSourceNotFound", "ModelSourceUnauthorized", "ModelSourceUnreachable"),
    *("ModelSourceUntrusted", "ModelTransferOutOfSpace", "DeletionBlocked", "InUse", "NotInUse"),
}
"""Reasons of other conditions: Stalled follows Ready, and conditions that name its cause."""

GOOD = {
    *(
        "InferenceReady",
        "MetalAgentManaged",
        "ModelReady",
        "ModelTransferSucceeded",
        "PVCModelReady",
        "PlaygroundReady",
    ),
    *("Rendered", "RuntimeResolved", "RuntimeStarted", "ServiceReady", "Valid", "WorkloadResolved"),
}
PASSING = {
    *("CopyStarted", "Creating", "DownloadStarted", "HPAProgressing", "Pending", "PlaygroundInProgress", "Progressing"),
    *("ScaledObjectProgressing", "ServiceInProgress", "ServiceNotReported", "Terminating", "WaitingForGPU"),
    *("WaitingForGateway", "NoReadyReplicas", "PlaygroundNotReady", "ServiceNotReady"),
}
"""Steps on the way."""

ABSENT = {
    *("BackendRuntimeNotFound", "ConfigNotFound", "GatewayFetchError", "GatewaysNotReady", "HTTPRoutesNotReady"),
    *("InferencePoolFetchError", "InferencePoolNotReady", "InsufficientGPU", "ModelNotFound", "PVCNotBound"),
    *("PVCNotFound", "RefsInvalid"),
}
"""What another object has to bring, which may be applied, or become ready, a moment later."""

OVER_A_CAUSE = {
    *("Failed", "HTTPRouteReconcileError", "ReconcileMultiNodeWorkloadError", "ReconcileSingleNodeWorkloadError"),
    "SchedulerReconcileError",
}
"""Words for any cause of a phase, which another condition names."""


def members() -> Iterator[str]:
    for enum in enumerations():
        if enum.__name__.endswith(("Reason", "Obstacle")):
            yield from (member.value for member in enum)


@pytest.mark.parametrize("reason", sorted({*members()} - LASTING - RESTING))
def test_what_does_not_last_is_known_to_pass(reason: str) -> None:
    """A new reason needs a decision: it is in the table of lasting ones, or here."""
    assert reason in NOT_OF_READY | GOOD | PASSING | ABSENT | OVER_A_CAUSE


def test_no_reason_is_decided_twice() -> None:
    here = NOT_OF_READY | GOOD | PASSING | ABSENT | OVER_A_CAUSE
    assert here <= {*members()}
    assert not here & (LASTING | RESTING)


@pytest.mark.parametrize("reason", sorted(LASTING | RESTING))
def test_a_lasting_reason_is_one_that_something_gives(reason: str) -> None:
    """It is one of the families' own, a text in the code of causes, or a word of Kubernetes."""
    assert reason in OF_KUBERNETES or reason in {*reasons()} or _is_written(reason)


def _is_written(reason: str) -> bool:
    paths = (path for path in (ROOT / "app").rglob("*.py") if path.name != "readystatus.py")
    return any(f'"{reason}"' in path.read_text(encoding="utf-8") for path in paths)
