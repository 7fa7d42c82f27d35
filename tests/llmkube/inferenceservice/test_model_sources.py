"""Newer fields of a Model in pods: files of repositories and buckets, and names of devices."""

from __future__ import annotations

from typing import Any

import pytest

from app import images
from app.kube.base import Json
from tests.llmkube.inferenceservice.world import (
    POD_LABELS,
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


def staged(source: str, *files: str, **spec: Any) -> Json:
    """Return a Model whose files are downloaded."""
    listed: Json = {"files": list(files)} if files else {}
    every = [*files, *([spec["mmproj"]] if "mmproj" in spec else [])]
    return model(source=source, status={"cacheKey": "0123456789abcdef", "stagedFiles": every}, **listed, **spec)


ROOT = "/models/0123456789abcdef"


def init(answer: Json) -> Json:
    return dict(pod_spec(answer)["initContainers"][0])


def test_llamacpp_serves_the_first_of_several_files() -> None:
    """The init container restores missing files of the claim, with the same credentials (LK-3.6.1)."""
    secret = {"sourceSecretRef": {"name": "hub"}}
    answer = sync(service(), staged("hf://org/name", "q/1.gguf", "q/2.gguf", mmproj="p.gguf", **secret))
    assert args(answer).startswith(f"--model {ROOT}/q/1.gguf --host ")
    assert f" --mmproj {ROOT}/p.gguf " in args(answer)
    assert init(answer)["envFrom"] == [{"secretRef": {"name": "hub"}}]
    assert {"name": "MODEL_FILES", "value": "q/1.gguf\nq/2.gguf\np.gguf"} in init(answer)["env"]
    assert {"name": "CACHE_DIR", "value": ROOT} in init(answer)["env"]
    assert "envFrom" not in container(answer)
    assert container(answer)["volumeMounts"][0]["mountPath"] == "/models"


def test_a_projector_of_the_users_own_switches_ours_off() -> None:
    extra = service(extraArgs=["--mmproj", "/other"])
    assert args(sync(extra, staged("org/name", "m.gguf", mmproj="p.gguf"))).count("--mmproj") == 1


@pytest.mark.parametrize(("format_", "path"), [("safetensors", ROOT), ("gguf", f"{ROOT}/a.bin")])
def test_vllm_loads_the_directory_of_other_formats(format_: str, path: str) -> None:
    answer = sync(service(runtime="vllm"), staged("org/name", "a.bin", "config.json", format=format_))
    assert container(answer)["args"][0] == path


def test_without_a_cache_each_pod_fetches_all() -> None:
    without = staged("s3://bucket/prefix", "m.gguf", "x/y")
    without["status"]["cacheKey"] = ""
    answer = sync(service(), without)
    assert args(answer).startswith("--model /models/ns1-m/m.gguf ")
    assert {"name": "CACHE_DIR", "value": "/models/ns1-m"} in init(answer)["env"]
    assert pod_spec(answer)["volumes"] == [{"name": "model-storage", "emptyDir": {}}]


@pytest.mark.parametrize("runtime", ["vllm", "tgi"])
def test_passes_the_revision_to_the_server(runtime: str) -> None:
    """Upstream appends the revision to the name, which no server accepts."""
    answer = sync(service(runtime=runtime), model(source="hf://org/name@v1", format="safetensors"))
    assert "org/name" in container(answer)["args"]
    assert "--revision v1" in args(answer)


def test_a_revision_of_the_users_own_wins() -> None:
    answer = sync(service(runtime="vllm", extraArgs=["--revision=main"]), model(source="hf://org/name@v1"))
    assert args(answer).count("--revision") == 1


def test_llamacpp_fetches_a_repository_by_its_name() -> None:
    assert args(sync(service(), model(source="hf://org/name"))).startswith("--hf-repo org/name ")


def test_tgi_fetches_the_repository_of_files_itself() -> None:
    answer = sync(service(runtime="tgi"), staged("org/name", "a.safetensors", format="safetensors"))
    assert args(answer).startswith("--model-id org/name ")
    assert "initContainers" not in pod_spec(answer)


def test_a_service_waits_until_other_files_are_there() -> None:
    """The Model's status is for the previous list and generation, so the service waits (LK-T-18)."""
    changed = staged("org/name", "new.gguf")
    ready = {"type": "Ready", "status": "True", "reason": "ModelReady", "message": "", "observedGeneration": 1}
    ready["lastTransitionTime"] = "2030-01-01T00:00:00Z"
    changed["metadata"]["generation"] = 2
    changed["status"] |= {"stagedFiles": ["old.gguf"], "conditions": [ready], "cacheKey": "a5edb88f0d0b9e20"}
    answer = sync(service(), changed)
    assert kinds(answer) == []
    assert condition(answer, "Ready")["reason"] == "ModelNotReady"


def test_a_proposer_may_be_a_file_of_a_repository() -> None:
    draft = staged("hf://org/small/d.gguf")
    draft["metadata"]["name"] = "draft"
    draft["status"]["stagedFiles"] = ["d.gguf"]
    speculative = {"speculative": {"enabled": True, "model": "draft"}}
    answer = sync(service(runtime="vllm", vllmConfig=speculative), model(), draft)
    assert '--speculative-config {"model":"/draft-model/0123456789abcdef/d.gguf",' in args(answer)


def gpu(accelerator: str = "cuda", **fields: Any) -> Json:
    return model(hardware={"accelerator": accelerator, "gpu": {"count": 1, **fields}})


@pytest.mark.parametrize(
    ("wanted", "resource", "key"),
    [
        (gpu(resourceName="nvidia.com/mig-1g.10gb"), "nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb"),
        (gpu(resourceName="example.com/gpu", vendor="amd", runtime="rocm"), "example.com/gpu", "example.com/gpu"),
        (gpu(tolerationKey="example.com/dedicated"), "nvidia.com/gpu", "example.com/dedicated"),
        (gpu("rocm", vendor="amd", runtime="rocm"), "devic.es/dri-render", "devic.es/dri-render"),
        (gpu("vulkan", vendor="amd", runtime="vulkan"), "devic.es/dri-render", "devic.es/dri-render"),
        (gpu("vulkan"), "devic.es/dri-render", "devic.es/dri-render"),
        (gpu(runtime="vulkan"), "nvidia.com/gpu", "nvidia.com/gpu"),
        (gpu("rocm", vendor="amd"), "amd.com/gpu", "amd.com/gpu"),
    ],
)
def test_which_device_is_requested(wanted: Json, resource: str, key: str) -> None:
    """The resource's name in the Model wins over the one derived from accelerator and vendor (LK-3.3)."""
    answer = sync(service(image="mine"), wanted)
    assert container(answer)["resources"]["limits"] == {resource: "1"}
    assert [item["key"] for item in pod_spec(answer)["tolerations"]] == [key]


@pytest.mark.parametrize(
    ("runtime", "fields", "image"),
    [
        ("llamacpp", {"vendor": "amd", "runtime": "vulkan"}, "ghcr.io/defilantech/llmkube-llama-vulkan@sha256:"),
        ("llamacpp", {"vendor": "amd", "runtime": "rocm"}, "ghcr.io/defilantech/llmkube-llama-rocm@sha256:"),
        ("llamacpp", {"vendor": "nvidia", "runtime": "vulkan"}, images.LLAMACPP_CUDA),
        ("llamacpp", {"vendor": "amd"}, images.LLAMACPP),
        ("vllm", {"vendor": "amd", "runtime": "rocm"}, images.VLLM_ROCM),
        ("vllm", {"vendor": "nvidia"}, images.VLLM),
        ("sglang", {"vendor": "amd"}, images.SGLANG_ROCM),
        ("sglang", {"vendor": "nvidia", "resourceName": "nvidia.com/mig-1g.10gb"}, images.SGLANG),
    ],
)
def test_the_default_image_is_built_for_the_gpu(runtime: str, fields: Json, image: str) -> None:
    assert container(sync(service(runtime=runtime), gpu(**fields)))["image"].startswith(image)
    assert container(sync(service(runtime=runtime, image="mine"), gpu(**fields)))["image"] == "mine"


def test_the_scheduler_may_lack_a_device_of_any_name() -> None:
    parent = service(image="mine")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns1", "labels": POD_LABELS},
        "spec": {},
        "status": {
            "phase": "Pending",
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "0/1 nodes are available: 1 Insufficient example.com/gpu.",
                    "lastTransitionTime": "2030-01-01T00:00:00Z",
                }
            ],
        },
    }
    answer = sync(parent, gpu(resourceName="example.com/gpu"), pod)
    assert answer["status"]["phase"] == "WaitingForGPU"
    assert answer["status"]["waitingFor"] == "example.com/gpu: 1"


def test_a_model_without_newer_fields_has_the_pods_it_had() -> None:
    """The init container has no fields or variables for credentials or several files."""
    answer = sync(service(), model())
    assert set(init(answer)) == {
        *("name", "image", "command", "env", "volumeMounts", "securityContext", "terminationMessagePolicy")
    }
    assert [item["name"] for item in init(answer)["env"]] == ["MODEL_SOURCE", "CACHE_DIR", "MODEL_PATH"]
    assert "credentials" not in init(answer)["command"][2]
    assert child(answer, "Deployment")["spec"]["template"]["spec"]["volumes"][0]["name"] == "model-cache"
