"""``modelhooks convert`` of users' own workloads: the pods are the same, but for what the account lists."""

from __future__ import annotations

import functools
import io
import json
import operator
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.desk.convert import dockerrun
from app.desk.convert.counterparts import FAMILIES
from app.desk.convert.own import translate_own
from app.desk.convert.ownsecrets import without_secrets
from app.desk.convert.translate import Keys, Translation, leaves, path_of
from app.desk.convert.workloads import is_own, server_of
from app.desk.files.manifests import Manifest, parse
from app.desk.files.yaml import dump_all
from app.kube.base import Json
from app.kube.podspec import normalised
from tests.cli.files import Command

INPUTS = sorted(Path(__file__).with_name("own").glob("*"))
CASES = [pytest.param(file, to, id=f"{file.stem}-{to}") for file in INPUTS for to in FAMILIES]
POD: Keys = ("spec", "template", "spec")
_MOVED = ("--host", "--hostname", "--port", "--model", "--model-path", "--model-id", "--model-url", "--hf-repo", "-m")
"""Options that families write themselves; the model and the port are compared apart."""
_RENAMED = ("name", "command", "args", "env", "volumes", "volumeMounts", "affinity", "securityContext")
"""Parts that are compared in their own way below, or that a preset adds to."""


REFUSED = {("baked", "kserve"), ("own-image", "kserve")}
"""Inputs that a family does not take at all."""


def read(file: Path) -> list[Manifest]:
    text = file.read_text()
    return (
        parse(text, file.name)
        if file.suffix == ".yaml"
        else [manifest for manifest, _ in dockerrun.workloads(text, file.name)]
    )


def translated(manifests: list[Manifest], to: str) -> Translation:
    result = Translation()
    translate_own(manifests, to, result)
    return result


@pytest.mark.parametrize(("file", "to"), CASES)
def test_every_value_is_in_the_account_once(file: Path, to: str) -> None:
    """Each leaf of each object is carried over, changes nothing, or is lost."""
    manifests = [without_secrets(item, "kept")[0] if is_own(item) else item for item in read(file)]
    result = translated(manifests, to)
    for manifest in manifests:
        told = {
            name: [row.keys for row in rows if row.manifest is manifest]
            for name, rows in (("carried", result.carried), ("default", result.defaults), ("lost", result.lost))
        }
        for keys, _ in leaves(manifest.document):
            names = [name for name, parts in told.items() for part in parts if keys[: len(part)] == part]
            if manifest.kind == "Service":
                names = names[:1]  # it stays, also where the new pods lack one of its ports
            assert len(names) == 1, (manifest.kind, str(path_of(keys)), names)


@pytest.mark.parametrize(("file", "to"), CASES)
def test_the_rendered_pod_is_the_same_but_for_the_losses(command: Command, file: Path, to: str) -> None:
    """Image, options, environment, resources, port and all other fields: what differs is listed as lost."""
    manifests = read(file)
    result = translated(manifests, to)
    workloads = [item for item in manifests if is_own(item)]
    if not result.documents:  # nothing usable would be left
        assert (file.stem, to) in REFUSED
        return
    out = command.file("new.yaml", *result.documents)
    checked = command("validate", out)
    assert checked.status == 0, checked.out
    given = command.file("given.yaml", *named(workloads[0]))
    rendered = [item for item in parse(command("render", out, "--with", given).out, "out") if item.kind == "Deployment"]
    assert len(rendered) == len(workloads) == 1
    lost = [item.keys for item in result.lost if item.manifest.kind == workloads[0].kind]
    listed = {item.keys for item in result.defaults}
    old, new = (item.document["spec"]["template"]["spec"] for item in (workloads[0], rendered[0]))
    different = [keys for keys in differences(old, new, to) if keys not in listed]
    unlisted = [str(path_of(keys)) for keys in different if not any(keys[: len(part)] == part for part in lost)]
    assert unlisted == []


def named(workload: Manifest) -> list[Json]:
    """Return the claims and the account that a pod names."""
    metadata = {"namespace": workload.document["metadata"].get("namespace", "default")}
    pod = workload.document["spec"]["template"]["spec"]
    claims = [
        volume["persistentVolumeClaim"]["claimName"]
        for volume in pod.get("volumes") or ()
        if "persistentVolumeClaim" in volume
    ]
    core: Json = {"apiVersion": "v1"}
    account = {
        **core,
        "kind": "ServiceAccount",
        "metadata": {**metadata, "name": pod.get("serviceAccountName", "default")},
    }
    bound = {"kind": "PersistentVolumeClaim", "status": {"phase": "Bound"}, "spec": {"accessModes": ["ReadWriteMany"]}}
    return [account, *({**core, **bound, "metadata": {**metadata, "name": name}} for name in claims)]


def differences(old: Json, new: Json, to: str) -> Iterator[Keys]:
    """Yield the places of an original pod whose values the new pod does not have."""
    engines = [n for n, item in enumerate(old["containers"]) if server_of(item).engine]
    with_gpu = [n for n in engines if "limits" in (old["containers"][n].get("resources") or {})]
    place = next(iter((*with_gpu, *engines)), 0)
    names = {"llmaz": "model-runner", "kserve": "main"}
    name = names.get(to) or new["containers"][0]["name"]
    for number, container in enumerate(old["containers"]):
        wanted = name if number == place else container["name"]
        counterpart: Json = next((item for item in new["containers"] if item["name"] == wanted), {})
        keys = (*POD, "containers", number)
        shape = numbered if to == "llmkube" else dict  # it has one name for the port
        yield from absent(normalised(shape(container)), normalised(shape(counterpart)), keys)
        yield from variables(container, counterpart, keys)
        mounts = {item["mountPath"] for item in counterpart.get("volumeMounts") or ()}
        for at, item in enumerate(container.get("volumeMounts") or ()):
            if item["mountPath"] not in mounts and not is_model(item, container, counterpart):
                yield (*keys, "volumeMounts", at, "mountPath")
        if number == place:
            yield from words(container, counterpart, keys)
        elif any(container.get(part) != counterpart.get(part) for part in ("command", "args")):
            yield (*keys, "args")
    pod = {key: value for key, value in old.items() if key != "containers"}
    yield from absent(normalised(pod), normalised(new), POD)


def numbered(container: Json) -> Json:
    """Return a container whose probes name its ports by their numbers."""
    ports = {port["name"]: port["containerPort"] for port in container.get("ports") or () if "name" in port}
    result = dict(container)
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        for handler, part in (container.get(name) or {}).items():
            if isinstance(part, dict) and "port" in part:
                result[name] = {**container[name], handler: {**part, "port": ports.get(part["port"], part["port"])}}
    return result


def is_model(mount: Json, old: Json, new: Json) -> bool:
    """Report whether the volume of a model is mounted elsewhere, with the model on the command line."""
    model, other = server_of(old).model, server_of(new).model
    return model.startswith(mount["mountPath"]) and other.startswith("/model-source/") and other.endswith(model[-8:])


def absent(old: Any, new: Any, keys: Keys) -> Iterator[Keys]:
    """Yield the leaves of a value that another one does not have."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            if key not in _RENAMED and not (key == "protocol" and value == "TCP"):
                yield from absent(value, new.get(key), (*keys, key))
    elif isinstance(old, list) and isinstance(new, list) and old and isinstance(old[0], dict):
        for number, value in enumerate(old):
            others = [candidate for candidate in new if not any(True for _ in absent(value, candidate, keys))]
            yield from () if others else absent(value, new[number] if number < len(new) else None, (*keys, number))
    elif old != new:
        yield from ((*keys, *below) for below, _ in leaves(old))


def variables(old: Json, new: Json, keys: Keys) -> Iterator[Keys]:
    theirs = {variable["name"]: variable for variable in new.get("env") or ()}
    for number, variable in enumerate(old.get("env") or ()):
        wanted = json.loads(
            json.dumps(variable).replace(f'"containerName": "{old["name"]}"', f'"containerName": "{new["name"]}"')
        )
        if normalised(theirs.get(variable["name"], {})) != normalised(wanted):
            yield (*keys, "env", number, "name")


def words(old: Json, new: Json, keys: Keys) -> Iterator[Keys]:
    """Compare how the engine reads both command lines; an unread one has to be the same."""
    before, after = server_of(old), server_of(new)
    if before.parsed is None or not before.is_plain:
        parts = ("command", "args") if old.get("command") else ("args",)  # KServe writes the image's command out
        if [word for part in parts for word in old.get(part) or ()] != [
            w for part in parts for w in new.get(part) or ()
        ]:
            yield (*keys, "args")
        return
    assert after.parsed is not None
    if before.program[:1] and before.program[0].startswith("/") and before.program != after.program:
        assert not new.get("command"), "another program than the image's"
        assert before.name in ("llamacpp", "tgi"), "the family starts it by a name in PATH"
    for given in before.parsed.occurrences:
        if given.option and given.option not in map(before.parsed.release.spellings.get, _MOVED):
            last = after.parsed.last(given.option)
            if last is None or (number(last.value), last.is_on) != (number(given.value), given.is_on):
                yield (*keys, "args", given.at)
    if before.model != after.model and not after.model.startswith("/model-source/"):
        yield (*keys, "args")
    if before.port != after.port:
        yield (*keys, "ports", 0, "containerPort") if old.get("ports") else (*keys, "name")


def number(text: str) -> object:
    text = {"8k": "8000"}.get(text, text)
    try:
        return float(text)
    except ValueError:
        return text


DOCKER = """\
model=Qwen/Qwen3-8B
$ sudo docker run -itd --rm --gpus '"device=0,1"' --shm-size 16g --name chat \\
    -v /data/hf:/root/.cache/huggingface:ro -v cache:/cache -p 9000:8000 --ulimit memlock=-1 \\
    -e HF_TOKEN -e MODE=fast --env-file {file} vllm/vllm-openai:v0.20.0 --model $model --tensor-parallel-size 2
"""


def test_a_line_of_docker_run_becomes_a_service(command: Command, tmp_path: Path) -> None:
    """Each option is in the pod, or is listed with what to do."""
    variables = tmp_path / "variables"
    variables.write_text("# of the team\nTEAM=search\n")
    line = tmp_path / "run.txt"
    line.write_text(DOCKER.format(file=variables))
    result = command("convert", "--to", "llmaz", str(line))
    assert result.status == 1
    service = next(item.document for item in parse(result.out, "out") if item.kind == "Service")
    assert service["metadata"]["name"] == "chat"
    pod = service["spec"]["workloadTemplate"]["workerTemplate"]["spec"]
    (container,) = pod["containers"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "2"}}
    assert container["args"] == ["--model", "Qwen/Qwen3-8B", "--tensor-parallel-size", "2", "--port", "8080"]
    secret = {"secretKeyRef": {"name": "chat-env", "key": "HF_TOKEN"}}
    assert container["env"][0] == {"name": "HF_TOKEN", "valueFrom": secret}
    assert {item["name"]: item.get("value") for item in container["env"][1:]} == {"MODE": "fast", "TEAM": "search"}
    volumes = {item["name"]: item for item in pod["volumes"]}
    assert volumes["dshm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Gi"}
    assert [volumes[name]["persistentVolumeClaim"]["claimName"] for name in ("hf", "cache")] == ["chat-hf", "cache"]
    lost = [row for row in result.err.splitlines() if ": lost: " in row]
    assert all(row.startswith(f"{line}:2:1: lost: Deployment/chat ") for row in lost)
    for option in ("--gpus", "--ulimit", "--publish", "--volume", "--env"):
        assert any(f" {option} " in row for row in lost), option


STRANGE: list[Any] = [None, "", [], {}, -1, True, "x", ["x"], {"a": 1}, [None], 1.5]


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from _places(item, (*path, key))


@pytest.mark.parametrize(("file", "to"), [case for case in CASES if Path(str(case.values[0])).suffix == ".yaml"])
def test_a_value_of_another_type_is_converted_or_named(command: Command, file: Path, to: str) -> None:
    """What no API server takes may end the command with a message, never with a traceback."""
    chance = random.Random(file.stem)
    for _ in range(12):
        documents = [document for document in yaml.load_all(file.read_text(), yaml.CSafeLoader) if document]
        *above, last = chance.choice(list(_places(documents)))
        functools.reduce(operator.getitem, above, documents)[last] = chance.choice(STRANGE)
        broken = command.file("broken.yaml", *(document for document in documents if isinstance(document, dict)))
        result = command("convert", "--to", to, broken)
        assert result.status in (0, 1, 2)
        assert result.status < 2 or result.err


def test_a_malformed_probe_is_refused_at_its_line(command: Command) -> None:
    container = {"name": "a", "image": "vllm/vllm-openai:v0.20.0", "livenessProbe": 3}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"containers": [container]}}}
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}
    result = command("convert", "--to", "kserve", command.file("a.yaml", workload))
    assert result.status == 2
    assert "spec.template.spec.containers[0].livenessProbe: Invalid value: 3: must be an object" in result.err


SIZES = {"512m": "512Mi", "16g": "16Gi", "1.5GB": "1.5Gi", "64 MiB": "64Mi", "1024": "1024"}


@pytest.mark.parametrize("size", SIZES)
def test_a_size_of_docker_s_is_a_quantity(command: Command, tmp_path: Path, size: str) -> None:
    file = tmp_path / "run.txt"
    file.write_text(f"docker run --gpus all --shm-size '{size}' vllm/vllm-openai:v0.20.0 --model a/b\n")
    assert f"sizeLimit: {SIZES[size]}" in command("convert", "--to", "kserve", str(file)).out.replace('"', "")


@pytest.mark.parametrize("size", ["abc", "", "1.2.3g", "-1g"])
def test_what_is_no_size_is_an_error_at_its_line(command: Command, tmp_path: Path, size: str) -> None:
    file = tmp_path / "run.txt"
    file.write_text(f"\ndocker run --gpus all --shm-size '{size}' vllm/vllm-openai:v0.20.0 --model a/b\n")
    result = command("convert", "--to", "kserve", str(file))
    assert result.status == 2
    assert f"{file}:2" in result.err
    assert f"{size!r} is no size" in result.err


def test_docker_run_is_read_from_standard_input(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"docker run --gpus 1 -p 8000:8000 vllm/vllm-openai:v0.20.0 --model Qwen/Qwen3-8B\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text))))
    result = command("convert", "--to", "llmkube", "-")
    assert [manifest.kind for manifest in parse(result.out, "out")] == ["Model", "InferenceService"]
    assert "source: Qwen/Qwen3-8B" in result.out


def test_what_is_beside_a_workload_follows_the_new_pods() -> None:
    """Autoscaler, monitor and budget are written for the new pods; the Service is patched as a whole."""
    manifests = read(Path(__file__).with_name("own") / "vllm-with-everything.yaml")
    for to, kinds in (
        ("llmkube", {"PodDisruptionBudget"}),
        ("llmaz", {"PodDisruptionBudget", "PodMonitor", "HorizontalPodAutoscaler"}),
        ("kserve", {"PodDisruptionBudget", "PodMonitor", "HorizontalPodAutoscaler"}),
    ):
        result = translated(manifests, to)
        copies = {
            document["kind"]: document
            for document in result.documents
            if document["metadata"]["name"] == "assistant-llm"
        }
        assert kinds <= copies.keys()
        patch = next(step for step in result.steps if "patch services.v1. assistant " in step)
        operations = json.loads(patch.partition("--patch '")[2].removesuffix("'"))
        selector = operations[0]["value"]
        assert operations[0]["path"] == "/spec/selector"
        assert copies["PodDisruptionBudget"]["spec"]["selector"] == {"matchLabels": selector}
        pods = result.documents[-1] if to == "llmkube" else {}
        assert "assistant" not in selector.values(), pods
        if "HorizontalPodAutoscaler" in copies:
            assert copies["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"] == "assistant-llm"
    service = next(
        document for document in translated(manifests, "llmkube").documents if document["kind"] == "InferenceService"
    )
    assert service["spec"]["autoscaling"] == {
        "minReplicas": 2,
        "maxReplicas": 6,
        "metrics": [{"type": "Pods", "name": "vllm:num_requests_waiting", "targetAverageValue": "4"}],
    }


def test_no_label_of_the_old_selectors_is_on_the_new_pods(command: Command) -> None:
    """A Service of before sends no request to a new pod until it is patched."""
    manifests = read(Path(__file__).with_name("own") / "vllm-module.yaml")
    for to in FAMILIES:
        out = command.file("new.yaml", *translated(manifests, to).documents)
        pods = next(manifest for manifest in parse(command("render", out).out, "out") if manifest.kind == "Deployment")
        labels = pods.document["spec"]["template"]["metadata"]["labels"]
        assert labels["tier"] == "gold"
        assert not {"app.kubernetes.io/name": "chat", "app.kubernetes.io/instance": "release"}.items() & labels.items()


AMD = """\
docker run -it --network=host --group-add=video --device /dev/kfd --device /dev/dri \\{space}
  --mount type=bind,source=/data/models,target=/models,readonly -p 8000-8005:8000-8005 \\
  vllm/vllm-openai-rocm:v0.20.0 --model /models/llama --tensor-parallel-size=4 2>&1 | tee log
"""


def test_docker_run_with_devices_of_amd(command: Command, tmp_path: Path) -> None:
    """They are its GPUs; ranges of ports and options of the machine are listed, and a pipe is none of the words."""
    line = tmp_path / "run.txt"
    line.write_text(AMD.format(space=" "))
    result = command("convert", "--to", "kserve", str(line))
    (service,) = (item.document for item in parse(result.out, "out"))
    (container,) = service["spec"]["template"]["containers"]
    assert container["resources"]["limits"] == {"amd.com/gpu": "4"}
    assert container["args"] == ["--model", "/models/llama", "--tensor-parallel-size=4"]
    assert service["spec"]["model"]["uri"] == "pvc://vllm-openai-rocm-models/llama"
    mount = next(item for item in container["volumeMounts"] if item["mountPath"] == "/models")
    assert mount["readOnly"] is True
    for option in ("--group-add", "--device", "--publish", "--volume"):
        assert f" {option} " in result.err, option
    line.write_text("docker run --gpus all 'vllm\n")
    refused = command("convert", "--to", "kserve", str(line))
    assert (refused.status, refused.out) == (2, "")
    assert f"{line}:1:1: " in refused.err


def test_a_service_of_several_workloads_is_not_patched_for_one_alone() -> None:
    """The pods of the other would get no request any more."""
    documents = [item.document for item in read(Path(__file__).with_name("own") / "llamacpp-claim.yaml")]
    other = json.loads(json.dumps(documents[0]))
    other["metadata"]["name"] = "second"
    both = {"selector": {"app": "llama-server"}, "ports": [{"port": 80}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "both"}, "spec": both}
    manifests = parse(dump_all([*documents, other, service]), "all.yaml")
    for to in FAMILIES:
        result = translated(manifests, to)
        assert [step for step in result.steps if " patch " in step] == []
        (lost,) = (item for item in result.lost if item.manifest.kind == "Service")
        assert "several workloads" in lost.reason


def test_the_pods_of_a_family_are_not_converted_again(command: Command) -> None:
    """A Deployment that was made for an InferenceService belongs to it."""
    (document,) = (manifest.document for manifest in read(Path(__file__).with_name("own") / "stateful.yaml"))
    owner = {
        "apiVersion": "inference.llmkube.dev/v1alpha1",
        "kind": "InferenceService",
        "name": "chat",
        "controller": True,
    }
    document["metadata"]["ownerReferences"] = [{**owner, "uid": "1"}]
    result = command("convert", "--to", "kserve", command.file("owned.yaml", document))
    assert (result.status, result.out) == (2, "")


SECRETS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat, namespace: ml}
spec:
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      initContainers:
        - name: login
          image: registry.example.com/login:1
          command: [sh, -c, 'hf auth login --token "hf-clear-1" && export WANDB_API_KEY=clear-2']
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.20.0
          COMMAND
          env:
            - {name: HF_TOKEN, value: hf-clear-3}
            - {name: HUGGING_FACE_HUB_TOKEN, value: hf-clear-4}
            - {name: VLLM_API_KEY, value: sk-clear-5}
            - {name: AWS_SECRET_ACCESS_KEY, value: clear-6}
            - {name: TOKENIZERS_PARALLELISM, value: "false"}
            - {name: MODEL_KEY, valueFrom: {secretKeyRef: {name: mine, key: model}}}
          resources: {limits: {nvidia.com/gpu: 1}}
"""
PLAIN = "args: [Qwen/Qwen3-8B, --api-key, sk-clear-7, sk-clear-8, --hf-token=hf-clear-9, --max-model-len, '4096']"
SCRIPT = """command: [sh, -c, "vllm serve Qwen/Qwen3-8B --api-key 'sk-clear-7' --hf-token=hf-clear-9"]"""


@pytest.mark.parametrize("to", FAMILIES)
@pytest.mark.parametrize("words", [PLAIN, SCRIPT], ids=["plain", "script"])
def test_a_secret_in_clear_text_becomes_a_reference_and_is_told(
    command: Command, tmp_path: Path, words: str, to: str
) -> None:
    """Neither the objects nor the account have its value; the first step makes the Secret that the pods read."""
    file = str(tmp_path / "chat.yaml")
    Path(file).write_text(SECRETS.replace("COMMAND", words))
    result = command("convert", "--to", to, file)
    assert result.status == 1
    assert "clear-" not in result.out + result.err + command("convert", "--to", to, "-o", "json", file).out
    told = [row for row in result.err.splitlines() if "a secret is not written into manifests" in row]
    assert all(row.startswith(f"{file}:") and ": lost: Deployment/chat spec.template.spec." in row for row in told)
    (step,) = (row for row in result.err.splitlines() if "create secret" in row)
    literals = dict(word.partition("=")[2].split("=", 1) for word in step.split() if word.startswith("--from-literal"))
    assert step.startswith("then: kubectl --namespace ml create secret generic chat-llm-env --from-literal=")
    assert {text.strip('"$') for text in literals.values()} == {f"{{{key}:?}}" for key in literals}
    assert {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "VLLM_API_KEY", "AWS_SECRET_ACCESS_KEY", "API_KEY"} <= literals.keys()
    references = {ref["key"] for ref in _references(result.out) if ref["name"] == "chat-llm-env"}
    of_login = {"WANDB_API_KEY"} if to == "llmkube" else set()  # which has no init containers
    assert references >= literals.keys() - of_login - {"HF_TOKEN"}
    assert {"name": "mine", "key": "model"} in _references(result.out)
    assert "value: 'false'" in result.out
    assert "$(API_KEY)" in result.out
    (tmp_path / "new.yaml").write_text(result.out)
    checked = command("validate", str(tmp_path / "new.yaml"))
    assert (checked.status, "error:" in checked.out) == (0, False)


def _references(text: str) -> list[Json]:
    """Return all references to keys of Secrets in the objects of a text."""
    parts = [value for item in parse(text, "out") for value in _mappings(item.document)]
    return [value for value in parts if value.keys() == {"name", "key"}]


def _mappings(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _mappings(item)


@pytest.mark.parametrize("to", FAMILIES)
def test_a_secret_of_docker_run_becomes_a_reference_and_is_told(command: Command, tmp_path: Path, to: str) -> None:
    """Also one of a file with variables, and beside one that only the shell knows."""
    variables = tmp_path / "variables"
    variables.write_text("HUGGING_FACE_HUB_TOKEN=hf-clear-1\n")
    line = tmp_path / "run.txt"
    options = f"-e HF_TOKEN=hf-clear-2 -e OPENAI_API_KEY -e MODE=fast --env-file {variables}"
    line.write_text(f"docker run --gpus all --name chat {options} vllm/vllm-openai:v0.20.0 m/m --api-key=sk-clear-3\n")
    result = command("convert", "--to", to, str(line))
    assert (result.status, "clear-" in result.out + result.err) == (1, False)
    keys = ("OPENAI_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "API_KEY")
    (step,) = (row for row in result.err.splitlines() if row.startswith("then: "))
    assert step.startswith("then: kubectl create secret generic chat-env ")
    assert all(f'--from-literal={key}="${{{key}:?}}"' in step for key in keys)
    assert {ref["key"] for ref in _references(result.out)} == {*keys}
    assert result.err.count("a secret is not written into manifests") == 3
    assert '"MODE=fast"' not in result.err
