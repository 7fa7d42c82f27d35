"""The content of presets, and the scripts that start data-parallel and pipeline-parallel servers."""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kserve.llminferenceserviceconfig.checks import sample_data
from app.kserve.operator import Ingress, OperatorConfig
from app.kserve.spec import presets
from app.kserve.spec.presets import v020
from app.kserve.spec.presets.edition import DATA_PARALLEL, PIPELINE, SINGLE_NODE, Target
from app.kserve.spec.presets.v017 import join_script, pipeline_script, start_script
from app.kserve.spec.render import render_error
from app.kserve.spec.render import rendered as rendered_spec
from app.kserve.spec.template.bounds import Meter, TemplateError
from app.kserve.spec.template.data import ServiceData
from app.kserve.spec.template.language import Template
from app.kube.base import Json
from app.kube.field import Path as FieldPath
from app.kube.objects import ObservedMeta
from app.kube.origin import leaves
from app.kube.podspec import normalised
from app.settings import Settings
from tests.contract.recordings import records

METADATA = ObservedMeta(name="demo", namespace="ns")
needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="the script is for bash")


EVERY = [(edition, suffix) for edition, of_edition in presets.EDITIONS.items() for suffix in of_edition]
RECORDED = {"v0.17": "presets", "v0.20": "presets-0.20"}
OPERATOR = OperatorConfig("kserve", ingress=Ingress(kserve_ingress_gateway="kserve/gw"))
SAMPLE: Json = {
    "model": {"name": "m"},
    "parallelism": {"data": 2, "dataLocal": 1},
    "prefill": {"parallelism": {"data": 2}, "template": {}, "worker": {}},
    "template": {},
    "worker": {},
}


@pytest.mark.parametrize(("edition", "suffix"), EVERY)
def test_presets_render_for_the_sample_service(edition: str, suffix: str) -> None:
    """Every stored config must render for it."""
    assert render_error(presets.EDITIONS[edition][suffix], sample_data(Settings()))[1] == ""


@pytest.mark.parametrize("suffix", presets.SUFFIXES)
def test_presets_with_tls_render_for_the_sample_service(suffix: str) -> None:
    assert render_error(presets.ENCRYPTED[suffix], sample_data(Settings()))[1] == ""


@pytest.mark.parametrize(("edition", "suffix"), [pair for pair in EVERY if pair[1] in presets.PINNED])
def test_presets_have_upstreams_values(edition: str, suffix: str) -> None:
    """All values except the scripts and a few fields are upstream's; the recordings have digests of them.

    Those of v0.20 are digests of rendered values. API groups are as the API server defaults them; the other
    differences are in docs/compatibility.md.
    """
    theirs = next(preset["values"] for preset in records(RECORDED[edition]) if preset["name"] == suffix)
    document = normalised(presets.EDITIONS[edition][suffix])
    if edition == "v0.20":
        document, _ = rendered_spec(document, (), ServiceData(METADATA, SAMPLE, OPERATOR))
    ours = {
        str(path): hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
        for path, value in leaves(document, FieldPath())
        if "\n" not in str(value)
    }
    different = {path for path, value in ours.items() if theirs.get(path) != value}
    ours_on_purpose = (
        ".group",
        ".terminationMessagePolicy",
        ".startupProbe.periodSeconds",
        ".startupProbe.failureThreshold",
        "[llm-d-routing-sidecar].command[5]",  # group of the created pool
    )
    assert [path for path in different if not path.endswith(ours_on_purpose)] == []
    assert not theirs.keys() - ours.keys()


def test_presets_have_no_zero_values() -> None:
    """They are merged without being normalized, so they must be in normalized form."""
    for edition, suffix in EVERY:
        for pod in _pods(presets.EDITIONS[edition][suffix]):
            assert normalised(pod) == pod


def _pods(value: Any) -> list[Json]:
    if not isinstance(value, dict):
        return []
    if "containers" in value:
        return [value]
    return [pod for item in value.values() for pod in _pods(item)]


def test_every_template_of_a_preset_is_read_once() -> None:
    """A template that was not parsed in advance would count against the bounds of every service."""
    texts = [text for edition, suffix in EVERY for text in _texts(presets.EDITIONS[edition][suffix]) if "{{" in text]
    assert texts
    assert all(isinstance(text, presets.PresetText) for text in texts)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _texts(item)]


# The script.


def rendered(spec: Json, *, leader: bool = True, parallelism: str = ".Spec.Parallelism", port: int = 8000) -> str:
    return in_container(start_script(port, leader=leader, parallelism=parallelism), spec)


def in_container(script: str, spec: Json) -> str:
    """Return the script as the container gets it, after Kubernetes has expanded ``$(…)`` and ``$$``."""
    data = ServiceData(METADATA, spec, OPERATOR)
    text = Template(script).render(data, Meter())
    return text.replace("$$", "$")


def arguments(script: str, *args: str, env: dict[str, str] | None = None) -> list[str]:
    """Return the arguments with which the script calls the server."""
    stub = 'vllm() { printf \'%s\\0\' "$@"; }\nexec() { "$@"; }\n'
    command = ["bash", "-c", stub + script, "--", *args]
    done = subprocess.run(command, capture_output=True, check=True, env={**NODE, **(env or {})})
    return done.stdout.decode().split("\0")[:-1]


NODE = {"PATH": "/usr/bin:/bin", "LWS_LEADER_ADDRESS": "leader.example"}
FULL: Json = {
    "model": {"name": "org/model"},
    "parallelism": {"data": 32, "dataLocal": 8, "tensor": 1, "expert": True},
}


@needs_bash
def test_leader_arguments() -> None:
    """All arguments, in the order of KS-2.7.2."""
    assert arguments(rendered(FULL), "--extra", env={"VLLM_ADDITIONAL_ARGS": "--a 'b c'"}) == [
        "serve",
        "/mnt/models",
        *("--served-model-name", "org/model"),
        *("--port", "8000"),
        *("--api-server-count", "8"),
        "--enable-expert-parallel",
        *("--tensor-parallel-size", "1"),
        *("--data-parallel-size", "32"),
        *("--data-parallel-size-local", "8"),
        *("--data-parallel-address", "leader.example"),
        *("--data-parallel-rpc-port", "5555"),
        *("--a", "b c"),
        "--extra",
        "--trust-remote-code",
    ]


@needs_bash
@pytest.mark.parametrize("expert", [True, False])
@pytest.mark.parametrize("leader", [True, False])
def test_our_script_starts_the_server_that_upstreams_does(expert: bool, leader: bool) -> None:
    """The command lines are those recorded from upstream's preset, except for the leader's rank of 0."""
    spec = {"model": {"name": "m"}, "parallelism": {"data": 4, "dataLocal": 2, "expert": expert}}
    env = {"VLLM_ADDITIONAL_ARGS": "--a", "LWS_WORKER_INDEX": "1"}
    assert arguments(rendered(spec, leader=leader), "--b", env=env) == [
        *("serve", "/mnt/models", "--served-model-name", "m", "--port", "8000"),
        *(("--api-server-count", "8") if leader else ()),
        *(("--enable-expert-parallel",) if expert else ()),
        *("--data-parallel-size", "4", "--data-parallel-size-local", "2", "--data-parallel-address", "leader.example"),
        *("--data-parallel-rpc-port", "5555", *(() if leader else ("--data-parallel-start-rank", "2"))),
        *("--a", "--b", "--trust-remote-code"),
        *(() if leader else ("--headless",)),
    ]


@needs_bash
def test_worker_arguments() -> None:
    """A worker has no API server, and its rank follows from its index in the group."""
    spec = {"model": {"name": "m"}, "parallelism": {"data": 4, "dataLocal": 2, "dataRPCPort": 6000}}
    words = arguments(rendered(spec, leader=False, port=8001), env={"LWS_WORKER_INDEX": "1"})
    assert words[words.index("--data-parallel-start-rank") + 1] == "2"
    assert words[words.index("--data-parallel-rpc-port") + 1] == "6000"
    assert words[-2:] == ["--trust-remote-code", "--headless"]
    assert not {"--api-server-count", "--enable-expert-parallel", "--tensor-parallel-size"} & set(words)


@needs_bash
def test_numbers_that_are_not_set_have_defaults() -> None:
    words = arguments(rendered({"model": {"name": "m"}, "parallelism": {}}), env={"VLLM_API_SERVER_COUNT": "2"})
    pairs = dict(itertools.pairwise(words))
    assert pairs["--data-parallel-size"] == pairs["--data-parallel-size-local"] == "1"
    assert pairs["--api-server-count"] == "2"


def test_prefill_has_its_own_numbers() -> None:
    """They are required: without prefill.parallelism the preset cannot be rendered."""
    path = ".Spec.Prefill.Parallelism"
    spec = {**FULL, "prefill": {"parallelism": {"data": 6}}}
    assert "--data-parallel-size 6\n" in rendered(spec, parallelism=path)
    with pytest.raises(TemplateError, match="Prefill is not set"):
        rendered(FULL, parallelism=path)


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30)


@needs_bash
@settings(max_examples=25)
@given(NAMES)
def test_any_model_name_is_one_word(name: str) -> None:
    """The server gets the name unchanged, and the shell expands none of it."""
    words = arguments(rendered({**FULL, "model": {"name": name}}))
    assert words[words.index("--served-model-name") + 1] == name
    assert words[-1] == "--trust-remote-code"


# The scripts of v0.20.

PROGRAMS = {
    "vllm": """[ "$1" = --version ] && echo "$VERSION" && exit; printf '%s\\0' "$@" > "$LOG" """,
    "getent": """echo "10.0.0.7 $2" """,
}


def served(root: Path, script: str, *args: str, version: str = "0.23.0", **env: str) -> list[str]:
    """Run a script with stub programs, and return the server's arguments."""
    for name, text in PROGRAMS.items():
        (root / name).write_text(f"#!/bin/bash\n{text}\n")
        (root / name).chmod(0o755)
    log = root / "log"
    command = [shutil.which("bash") or "bash", "-c", script, "--", *args]
    path = {
        "PATH": f"{root}:/usr/bin:/bin",
        "LOG": str(log),
        "VERSION": version,
        "LWS_LEADER_ADDRESS": "leader.example",
    }
    subprocess.run(command, check=True, capture_output=True, timeout=30, env={**path, **env})
    return log.read_bytes().decode().split("\0")[:-1]


TARGET = Target(8000, ".Spec")
SINGLE = v020.script(TARGET, SINGLE_NODE, leader=True)
NAMED = ["serve", "/mnt/models", "--served-model-name", "m", "publishers/ns/models/m", "--port", "8000"]


@needs_bash
@pytest.mark.parametrize(
    ("version", "more"),
    [
        ("0.23.0+cu130", ["--disable-access-log-for-endpoints", "/health,/metrics,/ping", "--shutdown-timeout", "40"]),
        ("0.16.0", ["--disable-access-log-for-endpoints", "/health,/metrics,/ping"]),
        ("0.9.1", ["--disable-uvicorn-access-log"]),
        ("unknown", ["--disable-uvicorn-access-log"]),
    ],
)
def test_arguments_by_version(tmp_path: Path, version: str, more: list[str]) -> None:
    """Options that an older server in the user's image lacks are left out."""
    assert served(tmp_path, in_container(SINGLE, {"model": {"name": "m"}}), version=version) == [*NAMED, *more]


@needs_bash
@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["--max-model-len", "4096"], ["--max-model-len", "4096"]),
        (["two words"], ["two words"]),
        (["--compilation-config", '{"level": 3}'], ["--compilation-config", '{"level": 3}']),
        (['--compilation-config={"level": 3}'], ['--compilation-config={"level": 3}']),
        (['["a", "b"]'], ['["a", "b"]']),
    ],
)
def test_the_users_arguments(tmp_path: Path, given: list[str], wanted: list[str]) -> None:
    """They are words already, which the hook has read from the template."""
    words = served(tmp_path, in_container(SINGLE, {"model": {"name": "m"}}), *given, VLLM_ADDITIONAL_ARGS="--a 'b c'")
    assert words[words.index("--a") :] == ["--a", "b c", *wanted]


@needs_bash
@settings(max_examples=10)
@given(NAMES)
def test_any_model_name_is_one_argument(name: str) -> None:
    with tempfile.TemporaryDirectory() as root:
        words = served(Path(root), in_container(SINGLE, {"model": {"name": name}}))
    assert words[3:5] == [name, f"publishers/ns/models/{name}"]


@needs_bash
@pytest.mark.parametrize("leader", [True, False])
def test_a_data_parallel_server(tmp_path: Path, leader: bool) -> None:
    """Pods find the leader by its IP address, and workers have no API server."""
    script = v020.script(TARGET, DATA_PARALLEL, leader=leader)
    spec = {**FULL, "worker": {"terminationGracePeriodSeconds": 30}, "model": {"name": "m"}}
    assert served(tmp_path, in_container(script, spec), "--b", LWS_WORKER_INDEX="1") == [
        *NAMED,
        *("--enable-expert-parallel", "--tensor-parallel-size", "1"),
        *("--data-parallel-size", "32", "--data-parallel-size-local", "8", "--data-parallel-address", "10.0.0.7"),
        *("--data-parallel-rpc-port", "5555"),
        *(("--api-server-count", "8") if leader else ("--data-parallel-start-rank", "8", "--headless")),
        *("--disable-access-log-for-endpoints", "/health,/metrics,/ping"),
        *("--shutdown-timeout", "40" if leader else "10", "--b"),
    ]


@needs_bash
@pytest.mark.parametrize("leader", [True, False])
def test_a_pipeline_without_ray(tmp_path: Path, leader: bool) -> None:
    script = v020.script(TARGET, PIPELINE, leader=leader)
    spec = {"model": {"name": "m"}, "parallelism": {"pipeline": 2, "tensor": 8}}
    env = {"LWS_GROUP_SIZE": "2", "LWS_WORKER_INDEX": "0" if leader else "1"}
    assert served(tmp_path, in_container(script, spec), **env)[len(NAMED) :] == [
        *("--tensor-parallel-size", "8", "--pipeline-parallel-size", "2", "--nnodes", "2"),
        *("--node-rank", env["LWS_WORKER_INDEX"], "--master-addr", "10.0.0.7"),
        *(() if leader else ("--headless",)),
        *("--disable-access-log-for-endpoints", "/health,/metrics,/ping", "--shutdown-timeout", "40"),
    ]


# Pipelines.

STUBS = {
    "vllm": """printf '%s\\0' vllm "$@" >> "$LOG" """,
    "ray": """printf '%s\\0' ray "$@" >> "$LOG" """,
    "python3": """printf '%s\\0' count >> "$LOG"; tr '\\0' '\\n' < "$LOG" | grep -c '^count$' """,
    "sleep": "exit 0",
}


def started(root: Path, script: str, *args: str, **env: str) -> list[str]:
    """Run a script with stub programs, and return all its calls."""
    for name, text in STUBS.items():
        (root / name).write_text(f"#!/bin/bash\n{text}\n")
        (root / name).chmod(0o755)
    log = root / "log"
    command = [shutil.which("bash") or "bash", "-c", script, "--", *args]
    path = {"PATH": f"{root}:/usr/bin:/bin", "LOG": str(log)}
    subprocess.run(command, check=True, capture_output=True, timeout=30, env={**path, **env})
    return log.read_bytes().decode().split("\0")[:-1]


@needs_bash
def test_a_pipelines_leader_waits_for_its_group(tmp_path: Path) -> None:
    """Ray's head starts first; vLLM starts once both pods have joined, with the user's arguments last."""
    spec = {"model": {"name": "org/model"}, "parallelism": {"pipeline": 2, "tensor": 8, "expert": True}}
    script = in_container(pipeline_script(8000, ".Spec.Parallelism"), spec)
    env = {"LWS_GROUP_SIZE": "2", "VLLM_ADDITIONAL_ARGS": "--a 1"}
    assert started(tmp_path, script, "--b", "two words", **env) == [
        *("ray", "start", "--head", "--port=6379", "--disable-usage-stats"),
        *("count", "count"),
        *("vllm", "serve", "/mnt/models", "--served-model-name", "org/model", "--port", "8000"),
        *("--enable-expert-parallel", "--tensor-parallel-size", "8", "--pipeline-parallel-size", "2"),
        *("--distributed-executor-backend", "ray", "--a", "1", "--b", "two words"),
    ]


@needs_bash
@settings(max_examples=10)
@given(NAMES)
def test_any_model_name_is_one_word_of_a_pipeline(name: str) -> None:
    spec = {"model": {"name": name}, "parallelism": {"pipeline": 2}}
    with tempfile.TemporaryDirectory() as root:
        words = started(Path(root), in_container(pipeline_script(8000, ".Spec.Parallelism"), spec))
    assert words[words.index("--served-model-name") + 1] == name


@needs_bash
def test_a_pipelines_other_pods_join_the_leader(tmp_path: Path) -> None:
    """They join once the leader listens."""
    script = join_script().replace("6379", "$PORT")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
        words = started(tmp_path, script, LWS_LEADER_ADDRESS="127.0.0.1", PORT=port)
    assert words == ["ray", "start", f"--address=127.0.0.1:{port}", "--disable-usage-stats", "--block"]


def adapters(root: Path, **gids: dict[str, tuple[str, str]]) -> str:
    """Create RDMA adapters in a stand-in for sysfs, with type and address by index. Return a script that reads it."""
    for name, entries in gids.items():
        port = root / name / "ports" / "1"
        (port / "gid_attrs" / "types").mkdir(parents=True)
        (port / "gids").mkdir()
        (port / "state").write_text("4: ACTIVE\n" if not name.endswith("down") else "1: DOWN\n")
        for index, (kind, address) in entries.items():
            (port / "gid_attrs" / "types" / index).write_text(f"{kind}\n")
            (port / "gids" / index).write_text(f"{address}\n")
    show = "\nenv | grep -E '^(NCCL|NVSHMEM|UCX)_' | sort\nexit 0\n"
    script = rendered(FULL).replace("/sys/class/infiniband", str(root))
    return script.replace("\nrank=", f"{show}rank=")


def exported(script: str, **env: str) -> dict[str, str]:
    done = subprocess.run(
        ["bash", "-c", script, "--"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "KSERVE_INFER_ROCE": "true", **env},
    )
    lines = [line for line in done.stdout.splitlines() if "=" in line and not line.startswith("[")]
    return dict(line.split("=", 1) for line in lines)


V4, V6 = "0000:0000:0000:0000:0000:ffff:0a00:0001", "fe80:0000:0000:0000:0000:0000:0000:0001"
ROCE2, IB = "RoCE v2", "IB/RoCE v1"


@needs_bash
def test_rdma_adapters_are_found(tmp_path: Path) -> None:
    """Active RoCE v2 adapters are used, with their most frequent IPv4 index, or 3 if several are as frequent."""
    script = adapters(
        tmp_path,
        mlx5_0={"1": (IB, V4), "3": (ROCE2, V4)},
        mlx5_1={"2": (ROCE2, V6), "5": (ROCE2, V4)},
        mlx5_2_down={"3": (ROCE2, V4)},
        mlx5_3={"1": (IB, V4)},
    )
    variables = exported(script)
    assert variables["NCCL_IB_HCA"] == variables["NVSHMEM_HCA_LIST"] == "mlx5_0,mlx5_1"
    assert variables["UCX_NET_DEVICES"] == "mlx5_0:1,mlx5_1:1"
    assert variables["NCCL_IB_GID_INDEX"] == variables["NVSHMEM_IB_GID_INDEX"] == variables["UCX_IB_GID_INDEX"] == "3"


@needs_bash
def test_rdma_settings_of_the_users_own_stay(tmp_path: Path) -> None:
    """Variables that are set are kept; an index that is set is also used for the other libraries."""
    script = adapters(tmp_path, mlx5_0={"3": (ROCE2, V4)})
    variables = exported(script, NCCL_IB_HCA="mine", NCCL_IB_GID_INDEX="7")
    assert variables["NCCL_IB_HCA"] == "mine"
    assert variables["NVSHMEM_HCA_LIST"] == "mlx5_0"
    assert variables["NCCL_IB_GID_INDEX"] == variables["UCX_IB_GID_INDEX"] == "7"


@needs_bash
def test_rdma_is_only_looked_for_on_request(tmp_path: Path) -> None:
    script = adapters(tmp_path, mlx5_0={"3": (ROCE2, V4)})
    assert exported(script, KSERVE_INFER_ROCE="false") == {}
    (tmp_path / "none").mkdir()
    assert exported(adapters(tmp_path / "none")) == {}
