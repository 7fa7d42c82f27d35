"""GPUs that are shared, partitioned or claimed, and those that cannot be requested (LK-3.4.1)."""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.base import Json
from app.settings import Settings
from tests.llmkube.inferenceservice.world import (
    applied,
    args,
    child,
    condition,
    container,
    kinds,
    model,
    pod_spec,
    service,
    sync,
)
from tests.llmkube.objects import errors
from tests.llmkube.objects import model as written_model
from tests.llmkube.objects import service as written

RUNNING = {"readyReplicas": 1, "replicas": 1}
POOL = Settings(llmkube_gpu_sharing_pool=(("pool", "shared"),))


def gpu(count: int = 1, **more: Any) -> Json:
    return {"accelerator": "cuda", "gpu": {"count": count, **more}}


def sharing(mode: str, **more: Any) -> Json:
    return service(resources={"gpuSharing": {"mode": mode, **more}})


def test_a_partition_is_requested_by_its_profile() -> None:
    answer = sync(sharing("partitioned", profile="1g.10gb"), model(hardware=gpu()))
    assert container(answer)["resources"]["limits"] == {"nvidia.com/mig-1g.10gb": "1"}
    assert [toleration["key"] for toleration in pod_spec(answer)["tolerations"]] == ["nvidia.com/mig-1g.10gb"]
    assert child(answer, "Deployment")["spec"]["strategy"] == {"type": "Recreate"}
    users_key = sync(sharing("partitioned", profile="1g.10gb"), model(hardware=gpu(tolerationKey="a.b/c")))
    assert [toleration["key"] for toleration in pod_spec(users_key)["tolerations"]] == ["a.b/c"]


def test_a_shared_gpu_is_on_the_pools_nodes() -> None:
    answer = sync(sharing("shared"), model(hardware=gpu()), settings=POOL)
    assert pod_spec(answer)["nodeSelector"] == {"pool": "shared"}
    assert container(answer)["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    parent = sharing("shared")
    parent["spec"]["nodeSelector"] = {"pool": "mine"}
    assert pod_spec(sync(parent, model(hardware=gpu()), settings=POOL))["nodeSelector"] == {"pool": "mine"}
    amd = sync(sharing("shared"), model(hardware=gpu(vendor="amd")), settings=POOL)
    assert "nodeSelector" not in pod_spec(amd)


REFUSED: dict[str, tuple[Json, Json, str]] = {
    "two GPUs": (sharing("shared"), gpu(2), "requires exactly one GPU, and a pod requests 2"),
    "no GPU": (sharing("partitioned", profile="1g.10gb"), {}, "requires exactly one GPU, and a pod requests 0"),
    "no pool": (sharing("shared"), gpu(), "MODELHOOKS_LLMKUBE_GPU_SHARING_POOL"),
    "a partition of AMD": (sharing("partitioned", profile="1g.10gb"), gpu(vendor="amd"), "requires NVIDIA GPUs"),
    "two resources": (sharing("partitioned", profile="1g.10gb"), gpu(resourceName="a.b/c"), "resourceName a.b/c"),
    "a claim": (
        sharing("shared"),
        gpu(resourceClaims=[{"name": "g", "resourceClaimName": "c"}]),
        "cannot be combined with hardware.gpu.resourceClaims",
    ),
    "tensors": (
        service(runtime="vllm", vllmConfig={"tensorParallelSize": 2}),
        gpu(),
        "vllmConfig.tensorParallelSize is 2, but a pod has 1 nvidia.com/gpu",
    ),
    "experts": (
        service(runtime="sglang", sglangConfig={"expertParallelSize": 4}),
        gpu(2),
        "sglangConfig.expertParallelSize is 4, but a pod has 2 nvidia.com/gpu",
    ),
}


@pytest.mark.parametrize(("parent", "hardware", "words"), REFUSED.values(), ids=REFUSED)
def test_gpus_that_cannot_be_requested_fail(parent: Json, hardware: Json, words: str) -> None:
    """No child is created, existing children are kept, and the status reports the reason."""
    answer = sync(parent, model(hardware=hardware))
    assert kinds(answer) == []
    assert answer["status"]["phase"] == "Failed"
    assert words in condition(answer, "Ready")["message"]
    assert condition(answer, "Degraded")["reason"] == "Failed"
    assert answer["status"]["modelReady"] is True
    assert answer["status"]["desiredReplicas"] == 1
    assert "endpoint" not in answer["status"]
    before = applied(sync(service(), model()), Deployment=RUNNING)
    assert applied(sync(parent, model(hardware=hardware), children=before), before, Deployment=RUNNING) == before


def test_claims_are_of_the_pod_and_its_container() -> None:
    claims = [{"name": "g", "resourceClaimTemplateName": "t"}, {"name": "h", "resourceClaimName": "c"}]
    answer = sync(service(flashAttention=True), model(hardware=gpu(0, resourceClaims=claims)))
    assert pod_spec(answer)["resourceClaims"] == claims
    assert container(answer)["resources"] == {"claims": [{"name": "g"}, {"name": "h"}]}
    assert child(answer, "Deployment")["spec"]["strategy"] == {"type": "Recreate"}
    assert "tolerations" not in pod_spec(answer)
    assert "--n-gpu-layers 99" in args(answer)
    assert "--flash-attn on" in args(answer)


@pytest.mark.parametrize(
    ("claims", "more", "words"),
    [
        ([{"name": "g"}], {}, "each claim must set either resourceClaimName or resourceClaimTemplateName"),
        ([{"name": "G", "resourceClaimName": "c"}], {}, "resourceClaims[0].name: Invalid value"),
        ([{"name": "g", "resourceClaimName": "C"}], {}, "resourceClaims[0].resourceClaimName: Invalid value"),
        ([{"name": "g", "resourceClaimName": "c"}] * 2, {}, "resourceClaims: Duplicate value"),
        ([{"name": "g", "resourceClaimName": "c"}], {"resourceName": "a.b/c"}, "must not both be set"),
    ],
)
def test_rejects_claims_that_no_pod_can_have(claims: list[Json], more: Json, words: str) -> None:
    """Claims must be unique and valid, and set exactly one source (LK-V-M44)."""
    assert words in str(errors(written_model(hardware={"gpu": {"resourceClaims": claims, **more}})))


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ({"mode": "partitioned"}, "profile is required with mode partitioned"),
        ({"profile": "1g.10gb"}, "profile must only be set with mode partitioned"),
        ({"mode": "partitioned", "profile": "all"}, "gpuSharing.profile: Invalid value"),
        ({"memoryLimitGiB": 8}, "memoryLimitGiB must only be set with mode shared"),
    ],
)
def test_rejects_sharing_that_means_nothing(shares: Json, words: str) -> None:
    """``profile`` requires mode partitioned, and ``memoryLimitGiB`` mode shared (LK-V-I79)."""
    assert words in str(errors(written(resources={"gpuSharing": shares})))
