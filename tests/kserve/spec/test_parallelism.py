"""Arguments and GPUs that ``parallelism`` adds to a server without workers (KS-3.15)."""

from __future__ import annotations

from typing import Any

import pytest

from app.kserve.spec.parallelism import demand, parallelism_conflicts, with_parallelism
from app.kube.base import Json
from tests.hookcalls import unnoted
from tests.kserve.objects import AVAILABLE, Cluster, admit, config, service

TP, DP = "--tensor-parallel-size", "--data-parallel-size"
GPU = "nvidia.com/gpu"


def server(cluster: Cluster, name: str = "demo-kserve") -> Json:
    cluster.sync()
    containers = cluster.child("Deployment", name)["spec"]["template"]["spec"]["containers"]
    main: Json = next(container for container in containers if container["name"] == "main")
    return main


def template(**fields: Any) -> Json:
    return {"containers": [{"name": "main", **fields}]}


def gpus(container: Json) -> tuple[str | None, str | None]:
    resources = container.get("resources") or {}
    return resources.get("requests", {}).get(GPU), resources.get("limits", {}).get(GPU)


@pytest.mark.parametrize(
    ("parallelism", "arguments", "count"),
    [
        ({"tensor": 8, "pipeline": 1}, [TP, "8"], "8"),
        ({"tensor": 1}, [TP, "1"], "1"),
        ({"data": 4, "dataLocal": 4}, [DP, "4"], "4"),
        ({"data": 2, "dataLocal": 8, "tensor": 2}, [TP, "2", DP, "2"], "4"),
        ({"tensor": 4, "expert": True}, ["--enable-expert-parallel", TP, "4"], "4"),
        ({"data": 16, "dataLocal": 8, "tensor": 2}, [TP, "2"], "2"),
        ({"data": 1, "dataLocal": 8}, None, None),
        ({"data": 16, "dataLocal": 8}, None, None),
        ({"pipeline": 2}, None, None),
        ({"expert": True}, None, None),
        ({}, None, None),
    ],
)
@pytest.mark.parametrize("side", ["main", "prefill"])
def test_arguments_and_gpus(side: str, parallelism: Json, arguments: list[str] | None, count: str | None) -> None:
    """Parallelism that fits on one node sets arguments and GPUs; any other changes nothing."""
    if side == "main":
        main = server(Cluster(service(parallelism=parallelism)))
    else:
        cluster = Cluster(service(prefill={"parallelism": parallelism}))
        main = server(cluster, "demo-kserve-prefill")
        assert "args" not in server(cluster)
    assert (main.get("args"), gpus(main)) == (arguments, (count, count))


def test_the_users_own_arguments_and_resources_stay() -> None:
    """The user's arguments come last, so they win."""
    pod = template(args=["--max-model-len", "8192"], resources={"limits": {"cpu": "4"}, "requests": {"cpu": "2"}})
    main = server(Cluster(service(parallelism={"tensor": 2}, template=pod)))
    assert main["args"] == [TP, "2", "--max-model-len", "8192"]
    assert main["resources"] == {"limits": {"cpu": "4", GPU: "2"}, "requests": {"cpu": "2", GPU: "2"}}


@pytest.mark.parametrize("name", ["amd.com/cpx_nps4", "amd.com/spx_nps1", "nvidia.com/pgpu", "hygon.com/dcunum"])
def test_no_gpu_is_added_beside_another_device(name: str) -> None:
    """A node with the one has none of the other, so that the pod would wait for ever."""
    pod = template(image="vllm/vllm-openai-rocm:v0.20.0", resources={"limits": {name: "2"}})
    main = server(Cluster(service(parallelism={"tensor": 2}, template=pod)))
    assert main["resources"]["limits"] == {name: "2"}


@pytest.mark.parametrize(("resource", "is_warned"), [("example.com/board", True), ("rdma/hca", False)])
def test_a_gpu_beside_an_unknown_resource_is_not_added_in_silence(resource: str, is_warned: bool) -> None:
    pod = template(image="example.com/vllm:1", resources={"limits": {resource: "2"}})
    parent = service(parallelism={"tensor": 2}, template=pod)
    assert server(Cluster(parent))["resources"]["limits"][GPU] == "2"
    said = f"{GPU} is added for parallelism, and {resource} is no device that is known here"
    assert any(said in text for text in admit(parent).warnings) == is_warned


def test_numbers_of_a_base_count() -> None:
    cluster = Cluster(service(baseRefs=[{"name": "base"}]), config(parallelism={"tensor": 4}))
    assert server(cluster)["args"] == [TP, "4"]


def test_words_that_begin_a_command_stay_its_beginning() -> None:
    pod = template(command=["vllm"], args=["serve", "/mnt/models"])
    assert server(Cluster(service(parallelism={"tensor": 2}, template=pod)))["args"] == [
        "serve",
        "/mnt/models",
        TP,
        "2",
    ]


MIG = "nvidia.com/mig-1g.5gb"
SPEAKING: dict[str, Json] = {
    "fewer GPUs": template(resources={"limits": {GPU: 4}}),
    "no GPUs, on purpose": template(resources={"limits": {GPU: "0"}}),
    "GPUs of another maker, and not as many": template(resources={"limits": {"amd.com/gpu": "4"}}),
    "parts of GPUs": template(resources={"limits": {MIG: "8"}}),
    "a claimed device": template(resources={"claims": [{"name": "gpus"}]}),
    "GPUs of another container": {
        "containers": [{"name": "main"}, {"name": "server", "image": "x", "resources": {"limits": {GPU: "8"}}}]
    },
    "the argument": template(args=[TP, "8"]),
    "the argument in one word": template(args=[f"{TP}=8"]),
    "the argument in short": template(args=["-tp", "8"]),
    "the argument with a variable": template(args=[TP, "$(TP)"]),
    "the argument, misspelt as vLLM takes it": template(args=["--tensor_parallel_size=8"]),
    "the argument of copies": template(args=[DP, "8"]),
    "the argument in a script": template(command=["/bin/sh", "-c"], args=[f"exec vllm serve /mnt/models {TP} 8"]),
    "the argument in a variable": template(env=[{"name": "VLLM_ADDITIONAL_ARGS", "value": f"{TP} 8"}]),
    "another server": template(command=["python3", "-m", "sglang.launch_server"]),
    "a script that takes no arguments": template(command=["/bin/bash", "-c", "exec vllm serve /mnt/models"]),
    "a script without room for them": template(command=["/bin/bash", "-c", 'exec vllm serve /mnt/models "$@"']),
}


@pytest.mark.parametrize("pod", SPEAKING.values(), ids=list(SPEAKING))
def test_a_template_that_speaks_for_itself_is_left_as_it_is(pod: Json) -> None:
    """Children do not change at all, so an upgrade restarts no pods."""
    cluster, plain = Cluster(service(template=pod, parallelism={"tensor": 8})), Cluster(service(template=pod))
    cluster.sync()
    plain.sync()
    assert unnoted(cluster.answer["children"]) == unnoted(plain.answer["children"])


@pytest.mark.parametrize("maker", [GPU, "amd.com/gpu"])
def test_a_template_with_as_many_gpus_gets_the_arguments(maker: str) -> None:
    """The GPUs match already, so only the arguments are added."""
    resources = {"limits": {maker: "8"}}
    cluster = Cluster(service(template=template(resources=resources), parallelism={"tensor": 8}))
    assert server(cluster)["args"] == [TP, "8"]
    assert server(cluster)["resources"] == resources


def test_a_script_that_passes_its_arguments_on_gets_them() -> None:
    pod = template(command=["/bin/bash", "-c", 'exec vllm serve /mnt/models "$@"', "--"])
    assert server(Cluster(service(parallelism={"tensor": 2}, template=pod)))["args"] == [TP, "2"]


@pytest.mark.parametrize("path", ["main", "prefill"])
def test_workers_keep_their_scripts(path: str) -> None:
    """With workers, the preset's scripts pass the arguments, and GPUs are left to the templates."""
    group: Json = {"worker": {}, "parallelism": {"data": 4, "dataLocal": 2, "tensor": 2}}
    cluster = Cluster(service(**group) if path == "main" else service(prefill=group))
    cluster.sync()
    name = "demo-kserve-mn" if path == "main" else "demo-kserve-mn-prefill"
    pods = cluster.child("LeaderWorkerSet", name)["spec"]["leaderWorkerTemplate"]
    for pod in (pods["leaderTemplate"], pods["workerTemplate"]):
        assert ("args" in pod["spec"]["containers"][0], gpus(pod["spec"]["containers"][0])) == (False, (None, None))


@pytest.mark.parametrize("path", ["main", "prefill"])
@pytest.mark.parametrize(
    ("more", "count"), [({}, "4"), ({"template": template(resources={"limits": {GPU: "8"}})}, "8")]
)
def test_a_pipelines_pods_have_the_gpus_of_a_stage(path: str, more: Json, count: str) -> None:
    group: Json = {"worker": {}, "parallelism": {"pipeline": 2, "tensor": 4}, **more}
    cluster = Cluster(service(**group) if path == "main" else service(prefill=group))
    cluster.sync()
    name = "demo-kserve-mn" if path == "main" else "demo-kserve-mn-prefill"
    pods = cluster.child("LeaderWorkerSet", name)["spec"]["leaderWorkerTemplate"]
    assert pods["size"] == 2
    assert gpus(pods["leaderTemplate"]["spec"]["containers"][0])[1] == count
    assert gpus(pods["workerTemplate"]["spec"]["containers"][0]) == ("4", "4")


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        (template(resources={"limits": {GPU: "4"}}), "each pod needs 8 GPUs, and container main requests 4"),
        (template(args=[TP, "4"], resources={"limits": {GPU: "8"}}), "is 8, and container main passes"),
        (template(resources={"limits": {MIG: "8"}}), "nothing is added to its arguments; add --tensor-parallel-size 8"),
        (template(args=[TP, "8"]), "no GPUs are added"),
    ],
)
def test_a_contradiction_is_a_cause_while_the_service_is_not_ready(pod: Json, said: str) -> None:
    cluster = Cluster(service(parallelism={"tensor": 8}, template=pod))
    cluster.settle()
    ready = cluster.condition("Ready")
    assert ready is not None
    assert said in ready["message"]
    cluster.report("Deployment", "demo-kserve", **AVAILABLE)
    cluster.settle()
    assert cluster.says("Ready") == "True"


@pytest.mark.parametrize(
    "pod",
    [
        template(resources={"limits": {GPU: "8"}}, args=[TP, "8"]),
        template(resources={"limits": {GPU: "0"}}),
        template(resources={"limits": {GPU: "8"}}, args=[TP, "$(TP)"]),
        template(resources={"limits": {"nvidia.com/gpumem": "3000", GPU: "1"}}, args=[TP, "8"]),
        template(command=["python3", "serve.py"]),
        {"containers": [{"name": "server", "image": "x"}]},
    ],
)
def test_values_that_agree_cause_no_conflict(pod: Json) -> None:
    """Values that agree, cannot be compared, or were set on purpose cause no conflict."""
    assert parallelism_conflicts({"template": pod, "parallelism": {"tensor": 8}}) == []


def test_what_is_added_leaves_no_quarrel_and_is_added_once() -> None:
    spec = {"template": template(command=["vllm"]), "parallelism": {"tensor": 2, "data": 2, "dataLocal": 2}}
    done = with_parallelism(spec, ())
    assert done != spec
    assert with_parallelism(done, ()) == done
    assert parallelism_conflicts(done) == []


def test_adds_nothing_without_parallelism() -> None:
    assert demand(None) is demand({}) is None
