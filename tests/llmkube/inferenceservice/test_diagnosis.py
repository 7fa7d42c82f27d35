"""Conditions about downloads and drivers, derived from containers' messages (LK-5.8)."""

from __future__ import annotations

import pytest

from app.kube.base import Json
from app.limits import MAX_READ_CHARACTERS, MAX_STEADY_PROBLEMS
from tests.llmkube.inferenceservice.world import NAMESPACE, POD_LABELS, condition, model, service, sync


def pod(name: str, message: str, *, init: bool, code: int = 1) -> Json:
    ended = {"terminated": {"exitCode": code, "message": message, "reason": "Error"}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    status = {
        "name": name,
        "ready": False,
        **({"state": ended} if code == 0 else {"state": waiting, "lastState": ended}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": NAMESPACE, "labels": POD_LABELS},
        "status": {"phase": "Pending", "initContainerStatuses" if init else "containerStatuses": [status]},
    }


TRANSFERS = {
    "curl: (60) SSL certificate problem: self-signed certificate": "ModelSourceUntrusted",
    "curl: (22) The requested URL returned error: 403": "ModelSourceUnauthorized",
    "trying again would not help (curl 22, HTTP 401)": "ModelSourceUnauthorized",
    "line\ncurl: (22) The requested URL returned error: 404\nline": "ModelSourceNotFound",
    "<Code>NoSuchBucket</Code>": "ModelSourceNotFound",
    "write error: No space left on device": "ModelTransferOutOfSpace",
    "curl: (6) Could not resolve host: models.example": "ModelSourceUnreachable",
}


@pytest.mark.parametrize(("message", "reason"), TRANSFERS.items())
@pytest.mark.parametrize("container", ["model-downloader", "draft-model-downloader"])
def test_a_failed_download_has_a_reason(container: str, message: str, reason: str) -> None:
    transfer = condition(sync(service(), model(), pod(container, message, init=True)), "ModelTransferHealthy")
    assert (transfer["status"], transfer["reason"]) == ("False", reason)
    assert len(transfer["message"]) < 300


def test_a_download_that_works_again_says_so() -> None:
    """The condition is absent before the first failure, and True after a later success."""
    done = pod("model-downloader", "{}", init=True, code=0)
    assert condition(sync(service(), model(), done), "ModelTransferHealthy") == {}
    failed = sync(service(), model(), pod("model-downloader", "error: 404 not found", init=True))
    again = sync(service(status=failed["status"]), model(), done)
    assert condition(again, "ModelTransferHealthy")["reason"] == "ModelTransferSucceeded"
    unknown = sync(service(status=failed["status"]), model(), pod("model-downloader", "what", init=True))
    assert condition(unknown, "ModelTransferHealthy")["status"] == "False"


def test_the_end_of_a_long_output_is_read() -> None:
    """A kubelet takes no more from a log; what is longer would cost seconds for some hundred pods."""
    for message, expected in (
        ("x" * 100_000 + "\ncurl: (22) The requested URL returned error: 404", "ModelSourceNotFound"),
        ("error: 404 not found\n" + "x" * MAX_READ_CHARACTERS, None),
    ):
        failed = pod("model-downloader", message, init=True)
        assert condition(sync(service(), model(), failed), "ModelTransferHealthy").get("reason") == expected


@pytest.mark.parametrize(("others", "expected"), [(MAX_STEADY_PROBLEMS - 1, "ModelSourceNotFound"), (300, None)])
def test_some_hundred_different_outputs_are_read(others: int, expected: str | None) -> None:
    """Equal ones count once."""
    pods = [pod("model-downloader", f"try {n}", init=True) for n in range(others)]
    pods += [pod("model-downloader", "try 0", init=True) for _ in range(50)]
    pods.append(pod("model-downloader", "error: 404 not found", init=True))
    for n, each in enumerate(pods):
        each["metadata"] = {**each["metadata"], "name": f"a-{n}"}
    assert condition(sync(service(), model(), *pods), "ModelTransferHealthy").get("reason") == expected


@pytest.mark.parametrize(
    "message",
    [
        "RuntimeError: CUDA driver version is insufficient for CUDA runtime version",
        "Error 803: system has unsupported display driver / cuda driver combination",
        "Error 804: forward compatibility was attempted on non supported HW",
    ],
)
def test_an_old_driver_has_a_condition(message: str) -> None:
    failed = sync(service(), model(), pod("llama-server", message, init=False))
    compatible = condition(failed, "DriverCompatible")
    assert (compatible["status"], compatible["reason"]) == ("False", "CUDADriverInsufficient")
    assert message in compatible["message"]
    started = pod("llama-server", "", init=False)
    started["status"]["containerStatuses"] = [{"name": "llama-server", "started": True, "state": {"running": {}}}]
    again = sync(service(status=failed["status"]), model(), started)
    assert condition(again, "DriverCompatible")["reason"] == "RuntimeStarted"


def test_an_endpoints_gateway_is_refused_aloud() -> None:
    parent = service(endpoint={"gateway": {"enabled": True, "gatewayRef": {"name": "g"}}})
    answer = sync(parent, model())
    assert condition(answer, "GatewayReady")["reason"] == "GatewayCRDsNotInstalled"
    assert condition(sync(service(status=answer["status"]), model()), "GatewayReady") == {}


@pytest.mark.parametrize(
    ("spec", "mode"),
    [({}, "chat"), ({"mode": "rerank"}, "rerank"), ({"endpoint": {"path": "/v1/embeddings"}}, "embedding")],
)
def test_the_mode_is_in_the_status(spec: Json, mode: str) -> None:
    assert sync(service(**spec), model())["status"]["mode"] == mode


def test_what_others_wrote_into_the_status_stays() -> None:
    status = {"acceleration": {"device": "CUDA0", "layersTotal": 33}, "gateway": {"routeReady": True}}
    assert sync(service(status=status), model())["status"].items() >= status.items()
