"""Generates the table and the manifests of ``docs/howto/recipes.md`` from ``recipes.toml``, with ``fit``'s answers."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from app.desk.cluster.offline import World, holding, in_cluster, served
from app.desk.files import yaml
from app.desk.files.manifests import ManifestFiles
from app.desk.fitting import answer
from app.workload.fit.gpumodels import gpu_model

_SOURCE = "https://github.com/vllm-project/recipes/blob/8959cf64189c71d36e11c6a30335f923f261b1f7/models"
_SECTIONS = re.compile(r"(<!-- (table|manifests) -->\n).*?(<!-- end -->)", re.DOTALL)
_NONE = "\N{EN DASH}"
_PARSERS = {"--tool-call-parser": "tools", "--reasoning-parser": "reasoning"}

Recipe = dict[str, Any]


@cache
def recipes() -> list[Recipe]:
    """Return the recipes in their order."""
    entries: list[Recipe] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["recipe"]
    return entries


def page(text: str) -> str:
    """Return the page with its table and manifests brought up to date."""
    parts = {"table": _table, "manifests": _manifests}
    return _SECTIONS.sub(lambda found: f"{found[1]}{''.join(parts[found[2]]())}{found[3]}", text)


def manifest(recipe: Recipe) -> str:
    """Return an LLMInferenceService as YAML."""
    context = [f"--max-model-len={recipe['context']}"] if "context" in recipe else []
    image = {"image": recipe["image"]} if "image" in recipe else {}
    gpus, model = recipe["gpus"], gpu_model(recipe["gpu"])
    assert model is not None, recipe["gpu"]
    container = {
        "name": "main",
        **image,
        **({"args": [*context, *recipe["args"]]} if context or recipe["args"] else {}),
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    spec: dict[str, Any] = {"model": {"uri": f"hf://{recipe['repository']}", "name": recipe["repository"]}}
    if gpus > 1:
        spec["parallelism"] = {"tensor": gpus}
    spec["template"] = {"nodeSelector": {"nvidia.com/gpu.product": model.label}, "containers": [container]}
    document = {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": recipe["name"]},
        "spec": spec,
    }
    return yaml.dump(document)


def fits(recipe: Recipe) -> str:
    """Return the answer of ``fit``, and the memory that the service needs."""
    reading, world = ManifestFiles(), World()
    reading.add(manifest(recipe), f"{recipe['name']}.yaml", whole=True)
    (service,) = reading.manifests
    kind = served(service)
    assert kind is not None
    fit = answer(kind, in_cluster(service, world.namespace), holding([service], world), world.settings)
    assert fit is not None
    (needed,) = (amount for name, amount, _ in fit.rows if name == "needed")
    return f"{fit.answer}" if "known" in needed else f"{fit.answer}: {needed}"


def _table() -> Iterator[str]:
    yield "| Model | GPUs | Context | Parsers | `fit` says | Note |\n|---|---|---|---|---|---|\n"
    for recipe in recipes():
        source = (
            f"[{recipe['repository']}]({_SOURCE}/{recipe['source']}.yaml)"
            if "source" in recipe
            else recipe["repository"]
        )
        options = dict(argument.partition("=")[::2] for argument in recipe["args"])
        parsers = ", ".join(f"{what} `{options[name]}`" for name, what in _PARSERS.items() if name in options)
        gpus = f"{recipe['gpus']} {recipe['gpu']}"
        cells = (source, gpus, recipe.get("context"), parsers, fits(recipe), recipe["note"])
        yield f"| {' | '.join(str(cell or _NONE) for cell in cells)} |\n"


def _manifests() -> Iterator[str]:
    for recipe in recipes():
        yield f"\n### {recipe['repository'].rpartition('/')[2]}\n\n```yaml\n{manifest(recipe)}```\n"
    yield "\n"
