"""LoRA adapters: rules, files, arguments of servers, and their place in scheduler and status."""

from __future__ import annotations

from typing import Any

import pytest

from app.kserve.names import adapter_volume
from app.kube.base import Json
from app.kube.names import is_dns1123_label
from tests.kserve.objects import Cluster, admit, config, fields, service
from tests.kserve.workload.test_artifacts import container, named
from tests.kserve.workload.test_workloads import DP, account, group, template

MODULES = "--lora-modules"


def adapter(name: str, uri: str = "hf://acme/adapter") -> Json:
    return {"name": name, "uri": uri}


def model(*adapters: Json, uri: str = "hf://acme/base", **lora: Any) -> Json:
    return {"uri": uri, "lora": {"adapters": list(adapters), **lora}}


def pod(*adapters: Json, uri: str = "hf://acme/base", lora: Json | None = None, **spec: Any) -> Json:
    cluster = Cluster(service(model=model(*adapters, uri=uri, **(lora or {})), **spec))
    cluster.sync()
    pod_spec: Json = template(cluster)["spec"]
    return pod_spec


def args(pod: Json) -> list[str]:
    words: list[str] = container(pod).get("args", [])
    return words


# Rules.


def modules(*names: str, quote: str = "") -> list[str]:
    """Return the adapters as arguments: each by its name, and by the name in the route's rules."""
    paths = [(name, f"/mnt/lora/{name.replace('/', '-')}") for name in names]
    return [
        f'{quote}{{"name":"{served}","path":"{path}"}}{quote}'
        for name, path in paths
        for served in (name, f"publishers/default/models/{name}")
    ]


@pytest.mark.parametrize(
    ("adapters", "wrong"),
    [
        ([{"uri": "hf://a/b"}], [("[0].name", "Required")]),
        ([{"name": "", "uri": "hf://a/b"}], [("[0].name", "Required")]),
        ([adapter("..")], [("[0].name", "Invalid")]),
        ([adapter("x"), adapter("y"), adapter("x")], [("[2].name", "Invalid")]),
        ([adapter("a/b"), adapter("a-b")], [("[1].name", "Invalid")]),
        ([adapter("demo")], [("[0].name", "Invalid")]),
        ([{"name": "x"}], [("[0].uri", "Required")]),
        ([adapter("x", "acme/adapter")], [("[0].uri", "Invalid")]),
        ([adapter("x", "oci://registry.example.com/x:1")], [("[0].uri", "Invalid")]),
        ([adapter("x", "abfs://models/x")], [("[0].uri", "Invalid")]),
        ([adapter("{{ .Name }}-x", "{{ .Spec.Model.URI }}-x")], []),
        ([adapter("org/x"), adapter("y", "s3://b/y"), adapter("z", "gs://bucket/z"), adapter("v", "pvc://c/v")], []),
    ],
)
def test_what_an_adapter_needs(adapters: list[Json], wrong: list[tuple[str, str]]) -> None:
    """An adapter needs a unique name, and a URI that can be downloaded or mounted."""
    expected = [(f"spec.model.lora.adapters{path}", type_) for path, type_ in wrong]
    assert fields(service(model=model(*adapters))) == expected


def test_the_model_may_be_named_by_a_base() -> None:
    """Adapters are compared with the model's name after merging, as a base may set it."""
    parent = service(model=model(adapter("demo")), baseRefs=[{"name": "base"}])
    assert fields(parent) == []
    cluster = Cluster(parent, config(model={"name": "other"}))
    assert cluster.sync()["children"]
    cluster = Cluster(parent, config(model={"name": "demo"}))
    cluster.sync()
    condition = cluster.condition("PresetsCombined")
    assert condition is not None
    assert "spec.model.lora.adapters[0].name" in condition["message"]
    assert "the base model" in condition["message"]


def test_adapters_of_a_base_are_judged_when_they_are_used() -> None:
    """The schema leaves adapters open in configs, too."""
    base = config(model={"lora": {"adapters": [{"name": 5, "uri": "hf://a/b"}]}})
    cluster = Cluster(service(baseRefs=[{"name": "base"}]), base)
    cluster.sync()
    assert cluster.says("PresetsCombined") == "CombineBaseError"


@pytest.mark.parametrize(
    ("lora", "extra", "said"),
    [
        ({"maxRank": 10}, {}, "spec.model.lora.maxRank: vLLM takes 8, 16"),
        ({"maxAdapters": 4, "maxCpuAdapters": 2}, {}, "spec.model.lora.maxCpuAdapters: must be at least"),
        ({"adapters": [], "maxRank": 8}, {}, "spec.model.lora: accepted, no effect; adapters is empty"),
        ({}, {"storageInitializer": {"enabled": False}}, "spec.model.lora: accepted, no effect; storageInitializer"),
        (
            {},
            {"template": {"containers": [{"name": "main", "command": ["sh", "-c", "vllm serve /mnt/models"]}]}},
            "spec.template.containers[0].command: this script does not pass its arguments on",
        ),
    ],
)
def test_what_vllm_would_refuse_is_warned_of(lora: Json, extra: Json, said: str) -> None:
    verdict = admit(service(model=model(adapter("x")) | {"lora": {"adapters": [adapter("x")], **lora}}, **extra))
    assert verdict.errors == []
    assert [warning for warning in verdict.warnings if warning.startswith(said)]


# Files.


def test_adapters_are_fetched_beside_the_model() -> None:
    """One initializer downloads all, sorted by name, into a separate volume."""
    pod_spec = pod(adapter("b", "s3://bucket/b"), adapter("a", "gs://bucket/a"))
    init = container(pod_spec, "storage-initializer", "initContainers")
    pairs = [("hf://acme/base", "/mnt/models"), ("gs://bucket/a", "/mnt/lora/a"), ("s3://bucket/b", "/mnt/lora/b")]
    assert init["args"] == [part for pair in pairs for part in pair]
    mount = {"name": "lora-adapters", "mountPath": "/mnt/lora"}
    assert mount in init["volumeMounts"]
    assert {**mount, "readOnly": True} in container(pod_spec)["volumeMounts"]
    assert named(pod_spec["volumes"], "lora-adapters") == {"name": "lora-adapters", "emptyDir": {}}
    assert args(pod_spec) == ["--enable-lora", MODULES, *modules("a", "b")]


@pytest.mark.parametrize("uri", ["pvc://weights/base", "oci://registry.example.com/base:1"])
def test_adapters_of_a_mounted_model(uri: str) -> None:
    """The initializer downloads only adapters, and the model's mount is unchanged."""
    pod_spec = pod(adapter("a"), uri=uri)
    init = container(pod_spec, "storage-initializer", "initContainers")
    assert init["args"] == ["hf://acme/adapter", "/mnt/lora/a"]
    assert [mount["mountPath"] for mount in init["volumeMounts"]] == ["/mnt/lora"]
    before = [mount for mount in container(pod(uri=uri))["volumeMounts"] if mount["mountPath"].startswith("/mnt")]
    assert [mount for mount in container(pod_spec)["volumeMounts"] if mount in before] == before


def test_claims_with_adapters_are_mounted() -> None:
    """If other adapters are downloaded, the parent volume is writable, so that mount points can be created."""
    pod_spec = pod(adapter("Org/A", "pvc://claim/a"), adapter("b", "pvc://claim"), adapter("c"))
    mounts = {mount["mountPath"]: mount for mount in container(pod_spec)["volumeMounts"]}
    assert mounts["/mnt/lora/Org-A"]["subPath"] == "a"
    assert "subPath" not in mounts["/mnt/lora/b"]
    assert "readOnly" not in mounts["/mnt/lora"]
    for path in ("/mnt/lora/Org-A", "/mnt/lora/b"):
        volume = named(pod_spec["volumes"], mounts[path]["name"])
        assert volume is not None
        assert volume["persistentVolumeClaim"] == {"claimName": "claim"}
    assert args(pod_spec)[2:] == modules("Org/A", "b", "c")


@pytest.mark.parametrize("name", ["a", "A", "a/b", "a-", "-", "@@@", "x" * 100, "x" * 100 + "Y"])
def test_volumes_of_adapters_have_names(name: str) -> None:
    assert is_dns1123_label(adapter_volume(name))
    assert adapter_volume(name) != adapter_volume(f"{name}.")


def test_a_share_with_an_adapter_keeps_its_directories() -> None:
    pod_spec = pod(adapter("a", "https://acme.file.core.windows.net/share/lora/a"))
    assert "/mnt/lora/a/lora/a" in args(pod_spec)[-1]


def test_credentials_cover_model_and_adapters() -> None:
    """Each provider's credentials are added once."""
    parent = service(model=model(adapter("a", "s3://bucket/a"), adapter("b", "s3://bucket/b")))
    cluster = Cluster(parent, account("default", secrets=[{"name": "s"}]))
    cluster.sync()
    variables = container(template(cluster)["spec"], "storage-initializer", "initContainers")["env"]
    assert [variable["name"] for variable in variables][:3] == [
        "HF_TOKEN",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
    ]


def test_without_the_initializer_nothing_is_added() -> None:
    pod_spec = pod(adapter("a"), storageInitializer={"enabled": False})
    assert args(pod_spec) == []
    assert named(pod_spec["volumes"], "lora-adapters") is None


# Servers.


def test_limits_are_flags() -> None:
    pod_spec = pod(adapter("a"), lora={"maxRank": 16, "maxAdapters": 2, "maxCpuAdapters": 4})
    flags = ["--enable-lora", "--max-lora-rank=16", "--max-loras=2", "--max-cpu-loras=4", MODULES, *modules("a")]
    assert args(pod_spec) == flags


def main(**fields: Any) -> Json:
    return {"containers": [{"name": "main", **fields}]}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"args": ["--max-loras=9"]}, ["--enable-lora", MODULES, *modules("a"), "--max-loras=9"]),
        (
            {"command": ["vllm"], "args": ["serve", "/mnt/models"]},
            ["serve", "/mnt/models", "--enable-lora", MODULES, *modules("a", quote="")],
        ),
        ({"args": [MODULES, "mine=/x"]}, [MODULES, "mine=/x"]),
        ({"env": [{"name": "VLLM_ADDITIONAL_ARGS", "value": f"{MODULES} mine=/x"}]}, []),
        ({"command": ["sh", "-c"], "args": ["vllm serve /mnt/models"]}, ["vllm serve /mnt/models"]),
        ({"command": ["sh", "-c", "vllm serve /mnt/models"]}, []),
        (
            {"command": ["sh", "-c", 'vllm serve /mnt/models "$@"', "--"]},
            ["--enable-lora", MODULES, *modules("a", quote="")],
        ),
    ],
)
def test_what_the_user_says_to_the_server_counts(fields: Json, expected: list[str]) -> None:
    """The user's flags come last. A list of modules and a script without arguments are left alone."""
    assert args(pod(adapter("a"), template=main(**fields))) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["vllm", "serve"], '{"name":"a=$$b","path":"/mnt/lora/a--b"}'),
        (["bash", "-c", 'eval "vllm serve $*"', "--"], '\'{"name":"a=$$b","path":"/mnt/lora/a--b"}\''),
    ],
)
def test_names_with_signs_reach_the_server(command: list[str] | None, expected: str) -> None:
    """Names are passed as JSON, in quotes if a script evaluates its arguments."""
    fields = {"command": command} if command else {}
    assert args(pod(adapter("a=$b"), template=main(**fields)))[-2] == expected


def test_every_pod_of_a_group_loads_them() -> None:
    """Leader, workers and prefill servers load them alike."""
    cluster = Cluster(service(model=model(adapter("a")), worker={}, parallelism=DP, prefill={}))
    cluster.sync()
    pods = [group(cluster)["leaderWorkerTemplate"][name]["spec"] for name in ("leaderTemplate", "workerTemplate")]
    pods.append(template(cluster, "demo-kserve-prefill")["spec"])
    assert all(args(pod_spec)[:2] == ["--enable-lora", MODULES] for pod_spec in pods)


def test_a_base_brings_adapters() -> None:
    """The list is replaced as a whole: the last layer that sets it wins."""
    base = config(model={"lora": {"adapters": [adapter("x")], "maxRank": 8}})
    parent = service(baseRefs=[{"name": "base"}])
    cluster = Cluster(parent, base)
    cluster.sync()
    assert args(template(cluster)["spec"]) == ["--enable-lora", "--max-lora-rank=8", MODULES, *modules("x")]
