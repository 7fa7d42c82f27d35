"""A new engine needs only the manifest of a BackendRuntime; no code refers to an engine by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from app.kube.base import Json
from app.llmaz.names import DEFAULT_BACKEND
from app.llmaz.source import Ollama
from tests.hookcalls import unnoted
from tests.llmaz.test_shipped import ENGINES, ROOT
from tests.llmaz.world import PLAYGROUND, SERVICE, child, model, observed, playground, sync

PRESETS = [
    (engine, config["name"]) for engine, item in ENGINES.items() for config in item["spec"]["recommendedConfigs"]
]


def deployment(engine: Json, preset: str) -> Json:
    """Return the Deployment of a Playground with that engine and preset."""
    models = [{"name": "opt"}, {"name": "small", "role": "draft"}]
    config = {"backendName": engine["metadata"]["name"], "configName": preset}
    item = playground(modelClaims={"models": models}, backendRuntimeConfig=config)
    related = (model(), model("small"))
    service = child(sync(PLAYGROUND, item, *related, engine), "Service")
    return child(sync(SERVICE, observed(service), *related), "Deployment")


@pytest.mark.parametrize(("engine", "preset"), PRESETS)
def test_an_engine_of_another_name_gets_the_same_pods(engine: str, preset: str) -> None:
    """The names of engine and image change nothing except the image."""
    known = ENGINES[engine]
    unknown = {**known, "metadata": {"name": "brand-new"}, "spec": {**known["spec"], "image": "example.com/brand-new"}}
    want, got = deployment(known, preset), deployment(unknown, preset)
    image = f"example.com/brand-new:{known['spec']['version']}"
    want["spec"]["template"]["spec"]["containers"][0]["image"] = image
    assert unnoted([got]) == unnoted([want])


def test_an_engine_comes_with_its_manifest_alone() -> None:
    """An unknown engine gets command, arguments, variables, probes and resources from its manifest."""
    probe = {"httpGet": {"path": "/up", "port": 8080}}
    engine = {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "BackendRuntime",
        "metadata": {"name": "brand-new"},
        "spec": {
            "image": "example.com/brand-new",
            "version": "v7",
            "command": ["serve"],
            "envs": [{"name": "MODE", "value": "fast"}],
            "readinessProbe": probe,
            "recommendedConfigs": [
                {
                    "name": "duo",
                    "args": ["--weights={{ .ModelPath }}", "{{ .DraftModelPath }}", "{{ .ModelName }}"],
                    "resources": {"requests": {"cpu": 2}},
                    "sharedMemorySize": "1Gi",
                }
            ],
        },
    }
    pod = deployment(engine, "duo")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    parts = {key: container[key] for key in ("image", "command", "args", "env", "readinessProbe", "resources")}
    path = "/workspace/models/models--facebook--"
    assert parts == {
        "image": "example.com/brand-new:v7",
        "command": ["serve"],
        "args": [f"--weights={path}opt", f"{path}small", "opt"],
        "env": [{"name": "MODE", "value": "fast"}],
        "readinessProbe": probe,
        "resources": {"requests": {"cpu": "2"}},
    }
    assert {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}} in pod["volumes"]


def texts() -> Iterator[str]:
    """Yield every string in the family's code except docstrings."""
    for file in sorted((ROOT / "app" / "llmaz").rglob("*.py")):
        tree = ast.parse(file.read_text())
        prose = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in prose:
                yield node.value


def test_no_engine_is_known_by_name() -> None:
    """The exceptions are the API's default and the protocol of sources that only one engine can load."""
    naming = [text for text in texts() if any(name in text.lower().replace(".", "") for name in ENGINES)]
    of_sources = f"{Ollama.protocol}://"
    assert sorted(text for text in naming if of_sources not in text) == sorted([DEFAULT_BACKEND, Ollama.protocol])
