"""What ``validate`` says of a service of KServe together with its configs, at the line that has the value."""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.base import Json
from tests.cli.files import Command

API_VERSION = "serving.kserve.io/v1alpha2"
GPU: Json = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
HTTPS: Json = {"livenessProbe": {"httpGet": {"path": "/health", "port": 8000, "scheme": "HTTPS"}}}


def config(name: str, *containers: Json, namespace: str = "team", **spec: Any) -> Json:
    metadata = {"name": name, "namespace": namespace}
    pod = {"template": {"containers": [*containers]}} if containers else {}
    return {"apiVersion": API_VERSION, "kind": "LLMInferenceServiceConfig", "metadata": metadata, "spec": pod | spec}


def service(*bases: str, name: str = "chat", **spec: Any) -> Json:
    given = {"model": {"uri": "hf://a/b"}, "baseRefs": [{"name": base} for base in bases], **spec}
    metadata = {"name": name, "namespace": "team"}
    return {"apiVersion": API_VERSION, "kind": "LLMInferenceService", "metadata": metadata, "spec": given}


def main(**fields: Any) -> Json:
    return {"name": "main", **GPU, **fields}


def findings(command: Command, *files: str) -> set[tuple[str, str, str]]:
    """Return file, path and id of the findings."""
    rows = command("validate", "-o", "json", *files).findings
    return {(row["file"].rpartition("/")[2], row["path"], row["id"]) for row in rows}


def test_the_pod_of_a_config_is_judged_with_the_service(command: Command) -> None:
    args = ["--tool-call-parser", "hermez", "--enable-auto-tool-choice", "--tensor-parallel-size=4"]
    pod = main(args=args, env=[{"name": "HF_TOKEN", "value": "x"}], **HTTPS)
    places = {
        ("work.yaml", "spec.template.containers[0].args[0]", "advice"),
        ("work.yaml", "spec.template.containers[0].args[3]", "advice"),
        ("work.yaml", "spec.template.containers[0].env[0]", "advice"),
        ("work.yaml", "spec.template.containers[0].livenessProbe.httpGet.scheme", "advice"),
    }
    files = command.file("work.yaml", config("work", pod)), command.file("chat.yaml", service("work"))
    assert findings(command, *files) == places
    whole = command.file("whole.yaml", service(template={"containers": [pod]}))
    assert {(path, id_) for _, path, id_ in findings(command, whole)} == {(path, id_) for _, path, id_ in places}


def test_a_value_is_judged_where_it_is_written_last(command: Command) -> None:
    first = config("first", {"name": "proxy", "image": "proxy:1"}, main(args=["--max-model-lne=1"], **HTTPS))
    second = config("second", main(args=["--max-model-lne=2"]))
    files = (
        command.file("first.yaml", first),
        command.file("second.yaml", second),
        command.file("chat.yaml", service("first", "second", template={"containers": [main(env=[])]})),
    )
    assert findings(command, *files) == {
        ("first.yaml", "spec.template.containers[1].livenessProbe.httpGet.scheme", "advice"),
        ("second.yaml", "spec.template.containers[0].args[0]", "advice"),
    }


def test_a_value_of_the_service_is_judged_with_what_a_config_has(command: Command) -> None:
    base = config("work", main(image="vllm/vllm-openai:v0.20.0"))
    chat = service("work", template={"containers": [{"name": "main", "args": ["--no-such-option"]}]})
    files = command.file("work.yaml", base), command.file("chat.yaml", chat)
    assert findings(command, *files) == {
        ("chat.yaml", "spec.template.containers[0].args[0]", "advice"),
        ("work.yaml", "spec.template.containers[0].image", "advice"),  # it runs as root
    }


def test_a_volume_without_its_image(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """From Kubernetes 1.37 on no API server takes the Deployment, whoever wrote the volume."""
    base = config("work", main(volumeMounts=[{"name": "v", "mountPath": "/v"}]))
    base["spec"]["template"]["volumes"] = [{"name": "v", "image": {"pullPolicy": "Always"}}]
    file = command.file("all.yaml", base, service("work"))
    words = "spec.template.volumes[0].image.reference: Required value"
    assert words not in command("explain", file).out
    monkeypatch.setenv("MODELHOOKS_KUBERNETES_RELEASE", "1.37")
    assert words in command("explain", file).out


def test_a_group_whose_members_have_pools(command: Command) -> None:
    """Most gateways refuse to divide requests between pools, or answer 500; a scheduler may be a config's."""
    route = {"route": {"group": "g", "weight": 1}}
    base = config("work", main(), router={"scheduler": {}})
    stable, canary = service("work", router=route), service(name="canary", router={**route, "scheduler": {}})
    files = command.file("work.yaml", base), command.file("chat.yaml", stable), command.file("canary.yaml", canary)
    pools = {("work.yaml", "spec.router.scheduler", "advice"), ("canary.yaml", "spec.router.scheduler", "combination")}
    assert pools <= findings(command, *files)
    assert not pools & findings(command, *files[:2])  # no group of one
    assert not pools & findings(command, "--without", "gateway-api", *files)
    members = service("plain", router=route), service("plain", name="b", router=route)
    plain = command.file("all.yaml", config("plain", main()), *members)
    assert findings(command, plain) == set()


def test_a_config_of_several_services_is_judged_once(command: Command) -> None:
    files = command.file("all.yaml", config("work", main(**HTTPS)), service("work"), service("work", name="other"))
    rows = command("validate", "-o", "json", files).findings
    assert [row["path"] for row in rows] == ["spec.template.containers[0].livenessProbe.httpGet.scheme"]


def test_what_a_config_outside_of_the_files_has_is_said_of_the_service(command: Command) -> None:
    work, chat = command.file("work.yaml", config("work", main(**HTTPS))), command.file("chat.yaml", service("work"))
    (row,) = command("validate", "-o", "json", "--with", work, chat).findings
    assert row["path"] == "spec.baseRefs"
    assert row["message"].startswith("LLMInferenceServiceConfig team/work: spec.template.containers[0].livenessProbe")


@pytest.mark.parametrize("base", [config("work", main()), config("work", parallelism={"tensor": 1}, replicas=2)])
def test_says_nothing_of_a_config_that_completes_a_service(command: Command, base: Json) -> None:
    assert findings(command, command.file("all.yaml", base, service("work"))) == set()
