"""Warnings of servers whose events do not reach a precise prefix cache's scorer.

What publishers and pickers do was seen with vLLM's own publisher and llm-d's own scorer; see the module's docstrings.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.desk.cluster.offline import direct, request_of
from app.desk.cluster.simulate import Cluster
from app.desk.cluster.store import stored
from app.kserve.constants import PICKER_VERSION
from app.kserve.llminferenceservice.combined import cross_object_warnings
from app.kube.base import Json
from app.settings import Settings
from tests.kserve.objects import SERVICE_KIND, admit, service

CONFIG: Json = {
    "apiVersion": "inference.networking.x-k8s.io/v1alpha1",
    "kind": "EndpointPickerConfig",
    "plugins": [{"type": "precise-prefix-cache-scorer"}],
}
EVENTS = '{"enable_kv_cache_events":true,"publisher":"zmq"}'
PUBLISHES = ["--kv-events-config", EVENTS]
NEW, OLD = "vllm/vllm-openai:v0.24.0", "vllm/vllm-openai:v0.23.0"
UNREAD = "does not read the events that vLLM"
SILENT = "without the events of the servers' caches"


def main(args: list[str] | None = None, **fields: Any) -> Json:
    return {"containers": [{"name": "main", "args": PUBLISHES if args is None else args, **fields}]}


def warnings(template: Json, scheduler: Json | None = None, **spec: Any) -> list[str]:
    scheduler = {"config": {"inline": CONFIG}} if scheduler is None else scheduler
    verdict = admit(service(template=template, router={"route": {}, "gateway": {}, "scheduler": scheduler}, **spec))
    return [text for text in verdict.warnings if UNREAD in text or SILENT in text]


def test_events_that_the_picker_cannot_read_are_told_at_the_image() -> None:
    (text,) = warnings(main(image=NEW))
    assert text == (
        "spec.template.containers[0].image: the endpoint picker, up to version 0.9, does not read the events that vLLM "
        "0.24.0 publishes, so precise-prefix-cache-scorer prefers no pod; use an image with vLLM before 0.24, or a "
        "newer picker"
    )


def test_the_release_of_vllm_in_an_image_of_llm_d_counts() -> None:
    (text,) = warnings(main(image="ghcr.io/llm-d/llm-d-cuda:v0.9.0"))
    assert "vLLM 0.26.0" in text


def test_a_server_for_prompts_publishes_too() -> None:
    (text,) = warnings(main(image=OLD), prefill={"template": main(image=NEW)})
    assert text.startswith("spec.prefill.template.containers[0].image: ")


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--kv-events-config", '{"publisher":"zmq"}'],
        ["--kv-events-config", '{"enable_kv_cache_events":false}'],
        ["--kv-events-config.publisher=zmq"],
        ["--kv_events_config.enable_kv_cache_events=false"],
        ["--kv-events-config", '{"enable_kv_cache_events":"no"}'],
    ],
    ids=["no option", "not enabled", "off", "another key", "off by its key", "no"],
)
def test_a_server_that_publishes_nothing_is_told(args: list[str]) -> None:
    (text,) = warnings(main(args, image=NEW))
    assert text.startswith("spec.template: precise-prefix-cache-scorer prefers no pod ")
    assert "--kv-events-config" in text


@pytest.mark.parametrize(
    "template",
    [
        main(),
        main(image=OLD),
        main(image="vllm/vllm-openai:latest"),
        main(["--kv_events_config.enable_kv_cache_events=true"], image=OLD),
        main(["--kv-events-config=$(EVENTS)"], image=OLD),
        main(["--kv-events-config.enable_kv_cache_events=$(ON)"], image=OLD),
        main(["--kv-events-config.enable_kv_cache_events", "1"], image=OLD),
        main([], image=OLD, envFrom=[{"configMapRef": {"name": "server"}}]),
        main([], image=OLD, command=["sh", "-c", f"exec vllm serve /m --kv-events-config '{EVENTS}'"]),
        main([], image=OLD, env=[{"name": "VLLM_ADDITIONAL_ARGS", "value": f"--kv-events-config '{EVENTS}'"}]),
        main([], image="lmsysorg/sglang:v0.5.15"),
    ],
    ids=[
        "preset",
        "older",
        "unknown",
        "key",
        "variable",
        "key's variable",
        "1",
        "environment",
        "script",
        "additional",
        "another engine",
    ],
)
def test_nothing_is_said_of_a_server_whose_events_may_be_read(template: Json) -> None:
    assert warnings(template) == []


@pytest.mark.parametrize(
    "scheduler",
    [
        {},
        {"config": {"inline": {**CONFIG, "plugins": [{"type": "prefix-cache-scorer"}]}}},
        {"config": {"inline": CONFIG}, "annotations": {PICKER_VERSION: "0.10.0"}},
        {"config": {"inline": CONFIG}, "template": {"containers": [{"name": "main", "image": "picker:v0.10.0"}]}},
    ],
    ids=["default", "another scorer", "newer by its annotation", "an image of one's own"],
)
def test_nothing_is_said_beside_another_scorer_or_picker(scheduler: Json) -> None:
    assert warnings(main(image=NEW), scheduler) == []


def test_the_version_of_the_pickers_own_image_counts() -> None:
    image = "registry.example.com/llm-d-router-endpoint-picker:v0.9.0"
    scheduler = {"config": {"inline": CONFIG}, "template": {"containers": [{"name": "main", "image": image}]}}
    assert len(warnings(main(image=NEW), scheduler)) == 1


def test_a_configuration_as_text_counts() -> None:
    args = {"template": {"containers": [{"name": "main", "args": ["--config-text", json.dumps(CONFIG)]}]}}
    assert len(warnings(main(image=NEW), args)) == 1
    assert len(warnings(main(image=NEW), {"config": {"inline": json.dumps(CONFIG)}})) == 1


def test_a_configuration_in_a_config_map_counts() -> None:
    spec = {"scheduler": {"config": {"ref": {"name": "picker", "key": "epp"}}}, "route": {}, "gateway": {}}
    written = stored(service(template=main(image=NEW), router=spec), "default")
    cluster = Cluster(direct(Settings()))
    for document in (written, config_map(json.dumps(CONFIG))):
        cluster.put(document)
    request = request_of(SERVICE_KIND, written, cluster)
    resource, _ = SERVICE_KIND.decode(request.parent)
    assert resource is not None
    (text,) = (str(item) for item in cross_object_warnings(resource, request, Settings()))
    assert text.startswith("spec.template.containers[0].image: ")
    assert UNREAD in text


def config_map(text: str) -> Json:
    metadata = {"name": "picker", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"epp": text}}
