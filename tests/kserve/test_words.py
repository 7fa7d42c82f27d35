"""The words that a server gets, from the manifest to the process, with values that a shell would change."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kserve.spec.presets.parts import WORDS
from app.kserve.words import UnreadableError, split
from app.kube.base import Json
from app.settings import Settings
from tests.kserve.objects import V017, Cluster, admit, service
from tests.kserve.workload.test_artifacts import container
from tests.startedpods import HOSTILE, Started, start

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the scripts are for bash")

KEY: Json = {"name": "API_KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "key"}}}
VALUES = {f"KEY_{number}": value for number, value in enumerate(HOSTILE)}
KEYS: list[Json] = [{"name": name, "valueFrom": {"secretKeyRef": {"name": "keys", "key": name}}} for name in VALUES]
LATEST = Settings()
FORMS: dict[str, tuple[Settings, Json]] = {
    "v0.20": (LATEST, {}),
    "v0.20 data parallel": (LATEST, {"worker": {}, "parallelism": {"data": 2, "dataLocal": 1}}),
    "v0.20 pipeline": (LATEST, {"worker": {}, "parallelism": {"pipeline": 2, "tensor": 1}}),
    "v0.17": (V017, {}),
    "v0.17 data parallel": (V017, {"worker": {}, "parallelism": {"data": 2, "dataLocal": 1}}),
    "v0.17 pipeline": (V017, {"worker": {}, "parallelism": {"pipeline": 2, "tensor": 1}}),
}
GROUP = {"LWS_LEADER_ADDRESS": "localhost", "LWS_GROUP_SIZE": "1", "LWS_WORKER_INDEX": "0"}


def servers(form: str, *args: str, env: list[Json] = [], **container_fields: Json) -> list[Json]:  # noqa: B006 - read
    """Return the containers that the service's servers have: one, or a leader and a worker."""
    config, spec = FORMS[form]
    main = {"name": "main", "args": list(args), "env": env, **container_fields}
    pods = {name: {"containers": [main]} for name in ("template", "worker") if name == "template" or name in spec}
    cluster = Cluster(service(**dict(spec, **pods)), settings=config)
    cluster.sync()
    if "worker" not in spec:
        return [container(cluster.child("Deployment", "demo-kserve")["spec"]["template"]["spec"])]
    group = cluster.child("LeaderWorkerSet", "demo-kserve-mn")["spec"]["leaderWorkerTemplate"]
    return [container(group[name]["spec"]) for name in ("leaderTemplate", "workerTemplate")]


def started(root: Path, form: str, server: Json, **others: str) -> Started:
    for name, text in {"ray": "exit 0", "python3": "echo 1"}.items():
        (root / name).write_text(f"#!/bin/sh\n{text}\n")
        (root / name).chmod(0o755)
    return start(root, server, "vllm", {**GROUP, **others} if "worker" in FORMS[form][1] else others)


def users(argv: list[str] | None, first: str) -> list[str]:
    assert argv is not None
    return argv[argv.index(first) :]


def is_of_ray(server: Json) -> bool:
    return any("ray start --address" in part for part in server["command"])


@pytest.mark.parametrize("form", FORMS)
def test_no_value_is_evaluated(tmp_path: Path, form: str) -> None:
    """What the kubelet puts in place of a variable arrives as it is, as one argument. One start has all values."""
    args = [word for name in VALUES for word in (f"--api-key=$({name})", "--name", f"$({name})")]
    for number, server in enumerate(servers(form, "--begin", *args, "--end", env=KEYS)):
        if not is_of_ray(server):
            arrives_as_it_is(tmp_path / str(number), form, server)


@pytest.mark.parametrize("form", [form for form in FORMS if form != "v0.17"])
def test_no_value_in_additional_arguments_is_evaluated(tmp_path: Path, form: str) -> None:
    args = " ".join(f"--api-key=$({name}) --name '$({name})'" for name in VALUES)
    additional = {"name": "VLLM_ADDITIONAL_ARGS", "value": f"--begin {args} --end"}
    arrives_as_it_is(tmp_path / "server", form, servers(form, env=[*KEYS, additional])[0])


def arrives_as_it_is(root: Path, form: str, server: Json) -> None:
    root.mkdir()
    words = users(started(root, form, server, **VALUES).argv, "--begin")
    expected = [word for value in HOSTILE for word in (f"--api-key={value}", "--name", value)]
    assert words[1 : len(expected) + 2] == [*expected, "--end"]
    assert not (root / "ran").exists()


@pytest.mark.parametrize("value", HOSTILE)
def test_additional_arguments_from_elsewhere_are_never_run(tmp_path: Path, value: str) -> None:
    """A ConfigMap's text is split into words, or the container ends and says why."""
    variable = {"name": "VLLM_ADDITIONAL_ARGS", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}
    process = started(tmp_path, "v0.20", servers("v0.20", env=[variable])[0], VLLM_ADDITIONAL_ARGS=f"--begin {value}")
    assert not (tmp_path / "ran").exists()
    if process.argv is None:
        assert process.code == 64
        assert process.said == "cannot read VLLM_ADDITIONAL_ARGS: a quote, a bracket or a backslash has no end\n"
    else:
        assert users(process.argv, "--begin")[1:] == [w.replace("$(HOME)", "/home") for w in split(value)]


@pytest.mark.parametrize("value", ["it's", 'a"b', "'", "a\\", '{"a": 1', "--x=[1, 2", "'a' 'b"])
def test_what_cannot_be_read_ends_the_container(tmp_path: Path, value: str) -> None:
    for form in FORMS:
        if form != "v0.17":
            server = servers(form, "--api-key=k", env=[{"name": "VLLM_ADDITIONAL_ARGS", "value": value}])[0]
            process = started(tmp_path, form, server)
            assert (process.code, process.argv) == (64, None)
            assert "VLLM_ADDITIONAL_ARGS" in process.said


POD_IP: Json = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["--max-model-len", "4096"], ["--max-model-len", "4096"]),
        (["--max-model-len 4096 --seed=1"], ["--max-model-len", "4096", "--seed=1"]),
        (["--compilation-config", "'{\"level\": 3}'"], ["--compilation-config", '{"level": 3}']),
        (["--compilation-config='{\"level\": 3}'"], ['--compilation-config={"level": 3}']),
        (['--compilation-config {"level": 3}'], ["--compilation-config", '{"level": 3}']),
        (['--compilation-config={"level": 3}'], ['--compilation-config={"level": 3}']),
        (['["a", "b"]', ""], ['["a", "b"]', ""]),
        (["--served-model-name", "chat (beta)"], ["--served-model-name", "chat (beta)"]),
        (["--host=$POD_IP", "--x", "a${POD_IP}b"], ["--host=it's $(touch ran)", "--x", "ait's $(touch ran)b"]),
        (["--x \"ip $POD_IP\" '$POD_IP'"], ["--x", "ip it's $(touch ran)", "$POD_IP"]),
        (["--api-key=it's", "$x", "$(id)"], ["--api-key=it's", "$x", "$(id)"]),
        (["$(MORE)"], ["--a", "b c"]),
        (["$$(POD_IP)"], ["$(POD_IP)"]),
        (["--api-key it's"], ["--api-key it's"]),
    ],
)  # fmt: skip
def test_what_a_template_writes_for_a_shell(tmp_path: Path, given: list[str], wanted: list[str]) -> None:
    """Options with values in one string, quotes around JSON, and variables of the container mean what they did."""
    more = {"name": "MORE", "value": "--a 'b c'"}
    server = servers("v0.20", "--begin", *given, env=[POD_IP, more])[0]
    process = started(tmp_path, "v0.20", server, POD_IP="it's $(touch ran)")
    assert users(process.argv, "--begin")[1:] == wanted
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("--a 'b c' \"d 'e'\"", ["--a", "b c", "d 'e'"]),
        ("--a \\\n  --b", ["--a", "--b"]),
        ("--c '{\"topic\": \"kv@$(POD_IP)@${POD_IP}\"}'", ["--c", '{"topic": "kv@10.0.0.1@${POD_IP}"}']),
        ('--c={"a": "it\'s", "b": [1, 2]} --d', ['--c={"a": "it\'s", "b": [1, 2]}', "--d"]),
        ('--c={\\"a\\": 1}', ['--c={"a": 1}']),
        ("$POD_IP \"${POD_IP}:1\" '$POD_IP' \\$POD_IP $x", ["10.0.0.1", "10.0.0.1:1", "$POD_IP", "$POD_IP", "$x"]),
        ("$(MORE)", ["--m", "n o"]),
        ("", []),
    ],
)  # fmt: skip
def test_what_additional_arguments_mean(tmp_path: Path, given: str, wanted: list[str]) -> None:
    env = [POD_IP, {"name": "MORE", "value": "--m 'n o'"}, {"name": "VLLM_ADDITIONAL_ARGS", "value": given}]
    server = servers("v0.20", "--end", env=env)[0]
    argv = started(tmp_path, "v0.20", server, POD_IP="10.0.0.1").argv or []
    after = argv.index("--shutdown-timeout") + 2
    assert argv[after:] == [*wanted, "--end"]


@settings(max_examples=40)
@given(st.text(st.sampled_from("ab$(){}[]'\"\\ \n\t-=,ü"), max_size=25))
def test_the_script_reads_words_as_we_do(text: str) -> None:
    script = f'{WORDS}\nserver=()\nwords it "$1"\nprintf "%s\\0" "${{server[@]}}"'
    bash = shutil.which("bash") or "bash"
    done = subprocess.run([bash, "-c", script, "--", text], capture_output=True, check=False, timeout=30, env={})
    try:
        wanted: list[str] | None = split(text)
    except UnreadableError:
        wanted = None
    words = done.stdout.decode().split("\0")[:-1] if done.returncode == 0 else None
    assert words == (wanted if wanted != [] else [""])


def test_a_group_with_a_forged_index_ends(tmp_path: Path) -> None:
    for form in ("v0.20 data parallel", "v0.20 pipeline", "v0.17 data parallel"):
        server = servers(form)[1]
        process = started(tmp_path, form, server, LWS_WORKER_INDEX="a[$(touch ran)]")
        assert (process.code, process.argv, process.said) == (64, None, "LWS_WORKER_INDEX is not a number\n")
        assert not (tmp_path / "ran").exists()


def test_other_commands_keep_their_arguments() -> None:
    """Only the presets' scripts have arguments that are read here."""
    script = 'eval "vllm serve /mnt/models $@"'
    server = servers("v0.20", "--max-model-len 4096", "$HOME", command=["bash", "-c", script, "--"])[0]  # type: ignore[arg-type]
    assert server["args"] == ["--max-model-len 4096", "$HOME"]
    assert servers("v0.17", "--max-model-len 4096", "$HOME")[0]["args"] == ["--max-model-len 4096", "$HOME"]


def test_adapters_and_traces_are_words(tmp_path: Path) -> None:
    """What is added here needs no quotes."""
    model = {"uri": "hf://a/b", "lora": {"adapters": [{"name": "x", "uri": "hf://a/x"}]}}
    cluster = Cluster(service(model=model, tracing={"exporterEndpoint": "http://c:4317/a?b&c"}))
    cluster.sync()
    server = container(cluster.child("Deployment", "demo-kserve")["spec"]["template"]["spec"])
    argv = started(tmp_path, "v0.20", server).argv or []
    modules = argv[argv.index("--lora-modules") + 1 :]
    assert json.loads(modules[0]) == {"name": "x", "path": "/mnt/lora/x"}
    assert argv[argv.index("--otlp-traces-endpoint") + 1] == "http://c:4317/a?b&c"


# Findings.


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--api-key"], "args[0]: --api-key has no value"),
        (["--api-key="], "args[0]: --api-key has no value"),
        (["--api-key", ""], "args[0]: --api-key has no value"),
        (["--api-key", "--seed=1"], "args[0]: --api-key has no value"),
        (["--served-model-name", "chat (beta)"], "args[1]: passed on as it is, with blanks"),
        (["--api-key=it's"], "args[0]: passed on as it is, with blanks"),
        (["--api-key=a&b"], "args[0]: passed on as it is, with blanks"),
        (["serve", "/mnt/models"], "args[0]: the preset starts vllm serve with the model; leave out serve"),
        (["vllm", "serve", "--seed=1"], "args[0]: the preset starts vllm serve with the model; leave out vllm serve"),
        (["--host=$NOWHERE"], "args[0]: $NOWHERE is passed on as it is, because env has no NOWHERE"),
    ],
)
def test_what_an_upgrade_reads_otherwise_is_reported(arguments: list[str], wanted: str) -> None:
    warnings = admit(service(template={"containers": [{"name": "main", "args": arguments}]})).warnings
    assert any(wanted in warning for warning in warnings)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--api-key=$(API_KEY)", "--api-key", "$(API_KEY)"],
        ["--seed 1", "'{\"a\": 1}'", '{"a": "b c"}', '--allowed-origins=["*"]', "$HOME/x", "${API_KEY}"],
    ],
)
def test_what_is_read_as_before_is_not_reported(arguments: list[str]) -> None:
    warnings = admit(service(template={"containers": [{"name": "main", "args": arguments, "env": [KEY]}]})).warnings
    assert not [warning for warning in warnings if "passed on as it is" in warning or "--api-key" in warning]


def test_additional_arguments_that_cannot_be_read_are_reported() -> None:
    env = [{"name": "VLLM_ADDITIONAL_ARGS", "value": "--name it's"}]
    warnings = admit(service(template={"containers": [{"name": "main", "env": env}]})).warnings
    assert any("env[0].value: a quote, a bracket or a backslash has no end" in warning for warning in warnings)
