"""What a container needs to start: a user, a home, and the keys of Secrets. What validate says of what lacks it."""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.base import Json
from tests.cli.files import Command, model, service
from tests.cli.test_fit import llmaz

HUB = "hf://meta-llama/Llama-3.1-8B-Instruct"
GPU: Json = {"limits": {"nvidia.com/gpu": "1"}}


def secret(name: str, *keys: str) -> Json:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": dict.fromkeys(keys, "x")}


def llm(main: Json, *, uri: str = HUB, annotations: Json | None = None, **pod: Any) -> Json:
    return {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": "chat", "annotations": annotations or {}},
        "spec": {
            "model": {"uri": uri, "name": "q"},
            "template": {**pod, "containers": [{"name": "main", "resources": GPU, **main}]},
        },
    }


def messages(command: Command, *documents: Json) -> list[str]:
    findings = command("validate", command.file("all.yaml", *documents), "--output", "json").findings
    return [f"{finding['path']}: {finding['message']}" for finding in findings]


VLLM = {"image": "vllm/vllm-openai:v0.20.0"}


@pytest.mark.parametrize("image", ["vllm/vllm-openai:v0.20.0", "docker.io/vllm/vllm-openai-rocm@sha256:" + "0" * 64])
def test_an_image_that_runs_as_root_is_refused_under_the_presets(command: Command, image: str) -> None:
    assert any(
        "template.containers[0].image" in m and "runs as root" in m for m in messages(command, llm({"image": image}))
    )


@pytest.mark.parametrize(
    "main",
    [
        {},
        {"image": "ghcr.io/llm-d/llm-d-cuda:v0.8.0"},
        {**VLLM, "securityContext": {"runAsNonRoot": False}},
        {**VLLM, "securityContext": {"runAsUser": 2000}, "env": [{"name": "USER", "value": "vllm"}]},
    ],
    ids=["preset", "image with a user", "root", "user"],
)
def test_other_images_start(command: Command, main: Json) -> None:
    assert not [m for m in messages(command, llm(main)) if "root" in m or "has no user" in m]


def test_a_user_without_a_home_is_warned_of(command: Command) -> None:
    """As OpenShift gives it, or as Pod Security's level restricted asks for it."""
    context = {"runAsNonRoot": True, "runAsUser": 1000680000, "fsGroup": 1000680000}
    spec = {"modelRef": "m", "runtime": "vllm", "podSecurityContext": context}
    about_homes = [m for m in messages(command, service(spec)) if "has no user 1000680000" in m]
    assert len(about_homes) == 1
    assert "set HOME and USER in env, and mount an emptyDir at HOME" in about_homes[0]
    mended = {
        **spec,
        "env": [{"name": "HOME", "value": "/home"}, {"name": "USER", "value": "vllm"}],
        "extraVolumes": [{"name": "home", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "home", "mountPath": "/home"}],
    }
    assert not [m for m in messages(command, service(mended)) if "has no user" in m]


@pytest.mark.parametrize(("key", "is_found"), [("token", True), ("HF_TOKEN", False)])
def test_a_secret_without_the_key_that_the_download_reads(command: Command, key: str, *, is_found: bool) -> None:
    """The container starts without the variable, since the key is optional."""
    documents = [secret("hf", key), llm({}, annotations={"serving.kserve.io/storageSecretName": "hf"})]
    words = (
        'metadata.annotations[serving.kserve.io/storageSecretName]: Secret "hf" has no key "HF_TOKEN", which has token'
    )
    assert (words in messages(command, *documents)) is is_found


@pytest.mark.parametrize(("keys", "is_found"), [(("access", "secret"), True), (("AWS_SECRET_ACCESS_KEY",), False)])
def test_keys_for_object_storage(command: Command, keys: tuple[str, ...], *, is_found: bool) -> None:
    """One of the keys that are read is enough."""
    annotations = {"serving.kserve.io/storageSecretName": "s3"}
    texts = messages(command, secret("s3", *keys), llm({}, uri="s3://bucket/model", annotations=annotations))
    assert any('Secret "s3" has no key' in message for message in texts) is is_found


@pytest.mark.parametrize(("key", "is_found"), [("token", True), ("HF_TOKEN", False)])
def test_the_secret_of_a_service_account(command: Command, key: str, *, is_found: bool) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}, "secrets": [{"name": "hf"}]}
    texts = messages(command, secret("hf", key), account, llm({}, serviceAccountName="a"))
    assert any('Secret "hf" has no key "HF_TOKEN"' in message for message in texts) is is_found


@pytest.mark.parametrize(("key", "is_found"), [("token", True), ("HF_TOKEN", False)])
def test_the_secret_of_llmaz(command: Command, key: str, *, is_found: bool) -> None:
    texts = messages(command, secret("modelhub-secret", key), *llmaz())
    assert any('Secret "modelhub-secret" has no key "HF_TOKEN"' in message for message in texts) is is_found


@pytest.mark.parametrize(
    ("source", "key", "right"),
    [
        ("s3://bucket/model.gguf", "AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY_ID"),
        ("s3://bucket/model.gguf", "AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL"),
        ("https://huggingface.co/o/n/resolve/main/model.gguf", "HF_TOKEN", "HF_TOKEN"),
        ("hf://o/n/model.gguf", "HF_TOKEN", "HF_TOKEN"),
    ],
)
def test_the_secret_of_a_model(command: Command, source: str, key: str, right: str) -> None:
    """The downloader has its keys as variables, and asks without credentials where the right ones are missing."""
    spec = {"source": source, "sourceSecretRef": {"name": "bucket"}}
    model = {"apiVersion": "inference.llmkube.dev/v1alpha1", "kind": "Model", "metadata": {"name": "m"}, "spec": spec}
    words = f'spec.sourceSecretRef.name: Secret "bucket" has no key "{key}", which has access, secret'
    assert [message for message in messages(command, secret("bucket", "access", "secret"), model) if message == words]
    assert not [message for message in messages(command, secret("bucket", right), model) if "has no key" in message]
    assert not [message for message in messages(command, secret("bucket"), model) if "has no key" in message]


OFFLINE = [{"name": "HF_HUB_OFFLINE", "value": "1"}]


def test_a_download_that_may_not_ask_the_hub(command: Command) -> None:
    initializer = {"name": "storage-initializer", "env": OFFLINE}
    assert any("HF_HUB_OFFLINE" in m for m in messages(command, llm({}, initContainers=[initializer])))
    assert not [m for m in messages(command, llm({"env": OFFLINE})) if "HF_HUB_OFFLINE" in m], "the model is mounted"


@pytest.mark.parametrize(("hub", "is_found"), [("Huggingface", True), ("ModelScope", False)])
def test_the_loader_of_llmaz_has_the_variables_of_its_engine(command: Command, hub: str, *, is_found: bool) -> None:
    model, playground = llmaz()
    model["spec"]["source"]["modelHub"]["name"] = hub
    playground["spec"]["backendRuntimeConfig"] = {"backendName": "vllm", "envs": OFFLINE}
    assert any("may not ask the hub" in m for m in messages(command, model, playground)) is is_found


def test_a_server_of_kserve_that_downloads_may_not_ask_the_hub(command: Command) -> None:
    """Without the storage initializer, a command of one's own names the repository."""
    main = {"env": OFFLINE, "command": ["vllm", "serve", "Qwen/Qwen3-8B"]}
    document = llm(main)
    document["spec"]["storageInitializer"] = {"enabled": False}
    assert any("may not ask the hub" in m for m in messages(command, document))
    main["volumeMounts"] = [{"name": "hub", "mountPath": "/hub"}]
    document = llm(main, volumes=[{"name": "hub", "persistentVolumeClaim": {"claimName": "hub"}}])
    document["spec"]["storageInitializer"] = {"enabled": False}
    assert not any("may not ask the hub" in m for m in messages(command, document))


def test_a_server_that_may_not_ask_the_hub(command: Command) -> None:
    spec = {"modelRef": "m", "runtime": "vllm", "skipModelInit": True, "env": OFFLINE}
    assert any("may not ask the hub" in m for m in messages(command, service(spec)))
    mounted = {
        **spec,
        "extraVolumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}],
        "extraVolumeMounts": [{"name": "models", "mountPath": "/models"}],
    }
    assert not [m for m in messages(command, service(mounted)) if "may not ask the hub" in m]


@pytest.mark.parametrize(("value", "is_found"), [("true", True), ("", True), ("false", False), (None, False)])
def test_a_login_that_nothing_here_reads(command: Command, value: str | None, *, is_found: bool) -> None:
    annotations = {} if value is None else {"security.opendatahub.io/enable-auth": value}
    texts = messages(command, llm({}, annotations=annotations))
    assert any("nothing here asks clients for a token" in message for message in texts) is is_found


def test_a_field_of_the_next_release_is_called_newer(command: Command) -> None:
    document = llm({})
    document["spec"]["scaling"] = {"minReplicas": 1, "maxReplicas": 3, "keda": {"triggers": []}}
    document["spec"]["rolloutStrategy"] = {"maxSurge": 0}
    newer = [m for m in messages(command, document) if "newer than KServe v0.20" in m]
    assert ["spec.scaling.keda" in newer[0], "spec.rolloutStrategy" in newer[1]] == [True, True]
    weights = model(spec={"source": "https://h/m.gguf", "prefetchTolerations": []})
    (only,) = (m for m in messages(command, weights) if "newer than LLMKube v0.9.19" in m)
    assert "modelhooks.dev/download=Pods" in only


@pytest.mark.parametrize(("version", "is_found"), [("v0.5.15.post1", True), ("v0.4.5-cu121", False), (None, False)])
def test_a_newer_sglang_answers_the_probes_of_its_runtime_too_late(
    command: Command, version: str | None, *, is_found: bool
) -> None:
    model, playground = llmaz()
    runtime = {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "BackendRuntime",
        "metadata": {"name": "mine"},
        "spec": {
            "image": "lmsysorg/sglang",
            "version": "v0.4.5-cu121",
            "command": ["python3", "-m", "sglang.launch_server"],
            "livenessProbe": {"httpGet": {"path": "/health", "port": 8080}},
            "recommendedConfigs": [{"name": "default", "args": ["--model-path", "{{ .ModelPath }}"]}],
        },
    }
    config = {"backendName": "mine", **({"version": version} if version else {})}
    playground["spec"]["backendRuntimeConfig"] = config
    texts = messages(command, model, runtime, playground)
    assert any("backendRuntimeConfig.version" in m and "so livenessProbe may fail" in m for m in texts) is is_found
