"""Presets that are installed as LLMInferenceServiceConfigs, as KServe's own installation does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.desk.cluster.offline import World, holding
from app.desk.cluster.simulate import Cluster
from app.desk.cluster.store import stored
from app.desk.files.folders import read
from app.hooks.readystatus import ready_of
from app.kserve.constants import API_VERSION
from app.kserve.spec.presets import EDITIONS
from app.kube.base import Json
from app.settings import Settings

EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "kserve").glob("*.yaml"))
NOT_READY = {"stopped": "Stopped"}
"""Expected reasons of the examples whose services must not become ready."""
_DIGEST = "modelhooks.dev/template-inputs"


def installed(edition: str) -> list[Json]:
    """Return the presets of an edition as objects of the system namespace."""
    return [
        {
            "apiVersion": API_VERSION,
            "kind": "LLMInferenceServiceConfig",
            "metadata": {"name": f"kserve-{suffix}", "namespace": "kserve"},
            "spec": json.loads(json.dumps(preset)),
        }
        for suffix, preset in EDITIONS[edition].items()
    ]


def settled(example: Path, settings: Settings, configs: list[Json]) -> Cluster:
    """Return the cluster after the example's objects have settled."""
    cluster = holding(read([str(example)]), World(settings=settings))
    for config in configs:
        cluster.put(stored(config, "default"))
    cluster.settle()
    return cluster


def children(cluster: Cluster) -> dict[str, Json]:
    """Return the children of all services, without records and digests."""
    owned = [child for _, parent in cluster.parents() for child in cluster.children(parent)]
    for child in owned:
        annotations = child["metadata"]["annotations"]
        del annotations["metacontroller.k8s.io/last-applied-configuration"]
        annotations.pop(_DIGEST, None)
    return {f"{child['kind']}/{child['metadata']['name']}": child for child in owned}


def services(cluster: Cluster) -> list[Json]:
    return [parent["status"] for kind, parent in cluster.parents() if kind.resource.kind == "LLMInferenceService"]


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)
def test_make_the_same_children_as_built_in_ones(example: Path, edition: str) -> None:
    """Services become ready, with the same children and addresses as with built-in presets."""
    settings = Settings(kserve_presets=edition)
    built_in, configs = settled(example, settings, []), settled(example, settings, installed(edition))
    assert children(configs) == children(built_in)
    statuses = services(configs)
    assert [status.get("addresses") for status in statuses] == [s.get("addresses") for s in services(built_in)]
    for status in statuses:
        ready = ready_of(status["conditions"])
        assert (ready["status"], ready.get("reason", "")) == (
            ("False", NOT_READY[example.stem]) if example.stem in NOT_READY else ("True", "")
        ), ready
        assert ready["status"] == "False" or status["url"].startswith("http")
