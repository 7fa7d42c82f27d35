"""The experiments that find the sources of values: objects that differ in names alone share them."""

from __future__ import annotations

import pytest

from app.desk.cluster.offline import World, identity, served, settled
from app.desk.cluster.simulate import Cluster
from app.desk.cluster.store import outer_key
from app.desk.files.folders import read
from app.desk.files.manifests import parse
from app.desk.files.yaml import dump_all
from app.desk.origins.tracer import Attributions, neighbourhood, origins, settled_pod_templates
from app.hooks.kind import AnyKind
from app.kube.base import Json
from app.settings import Settings
from tests.bench.desk import PATTERNS, ROOT, SHARED, thousand

SETTINGS = Settings()


@pytest.mark.no_cover
def test_copies_of_an_object_are_tried_once() -> None:
    """A second team's objects have the sources that they would have alone, without further experiments."""
    size = sum(len(read([str(ROOT / pattern)])) for pattern in PATTERNS)
    teams = parse(dump_all(thousand(2 * size)), "teams.yaml")
    world = settled([*teams, *read([str(ROOT / SHARED)])], World(settings=SETTINGS))
    shared = Attributions()
    values = 0
    for number, manifest in enumerate(teams):
        kind, key, tried = served(manifest), identity(manifest, "default"), len(shared.fields)
        assert kind is not None
        assert key is not None
        parent = world.objects[key]
        cluster, pods = neighbourhood(world, kind, parent), settled_pod_templates(world, parent)
        with_shared = origins(cluster, kind, parent, pods, SETTINGS, shared)
        if number >= size:
            assert len(shared.fields) == tried, manifest.name
            assert with_shared == origins(cluster, kind, parent, pods, SETTINGS)
            values += len(with_shared)
    assert values > 300


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Cluster]:
    """The clusters that hooks were asked with."""
    clusters: list[Cluster] = []
    ask = Cluster.ask

    def counted(cluster: Cluster, kind: AnyKind, parent: Json) -> Json:
        clusters.append(cluster)
        return ask(cluster, kind, parent)

    monkeypatch.setattr(Cluster, "ask", counted)
    return clusters


def test_copies_of_fields_are_found_together(asked: list[Cluster]) -> None:
    """Each Playground reads some 80 fields; the second of a sort needs few experiments, of two hooks each."""
    manifests = read([str(ROOT / "examples" / "llmaz" / "sources.yaml"), str(ROOT / SHARED)])
    world = settled(manifests, World(settings=SETTINGS))
    shared = Attributions()
    counts = []
    for manifest in manifests:
        if manifest.kind == "Playground":
            kind, key = served(manifest), identity(manifest, "default")
            assert kind is not None
            assert key is not None
            parent = world.objects[key]
            cluster, pods = neighbourhood(world, kind, parent), settled_pod_templates(world, parent)
            asked.clear()
            assert origins(cluster, kind, parent, pods, SETTINGS, shared)
            counts.append(len(asked))
    assert max(counts) < 100
    assert counts[2] < 20  # from-google: the fields are those of from-s3


def test_objects_without_bearing_are_left_out_of_experiments(asked: list[Cluster]) -> None:
    """Of 16 services of a route group, the one that is asked about has all its values from its own fields."""
    group = _route_group(16)
    sources = _sources_of_first(group, asked)
    assert {"spec.model.uri", "spec.template.containers[0].image"} <= sources
    services = [len(world.objects.of_kind(outer_key(group[0]))) for world in asked]
    assert services.count(1) > 0.9 * len(services)
    assert services.count(16) < 5
    assert len(services) < 16, "as many as for a service alone"


def test_fields_of_which_other_values_are_errors_are_tried_apart(asked: list[Cluster]) -> None:
    """Operators and effects are words of a list; with other keys and values in the same experiment all are refused."""
    tolerations = [
        {"key": f"team-{number}", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"} for number in range(20)
    ]
    model = {"source": "https://example.com/chat.gguf"}
    documents = [
        {"apiVersion": "inference.llmkube.dev/v1alpha1", "kind": kind, "metadata": {"name": "chat"}, "spec": spec}
        for kind, spec in (("InferenceService", {"modelRef": "chat", "tolerations": tolerations}), ("Model", model))
    ]
    sources = _sources_of_first(documents, asked)
    assert {"spec.tolerations[19].operator", "spec.tolerations[19].effect", "spec.tolerations[19].key"} <= sources
    assert len(asked) < 100


def test_no_experiment_is_without_what_an_object_must_have(asked: list[Cluster]) -> None:
    """Objects that are named stay, required fields too, and words of a list have no other values."""
    hardware = {"accelerator": "cuda", "gpu": {"enabled": True, "count": 1}}
    model = {"source": "https://example.com/chat.gguf", "format": "gguf", "hardware": hardware}
    service = {"modelRef": "chat", "runtime": "llamacpp", "contextSize": 4096}
    documents = [
        {"apiVersion": "inference.llmkube.dev/v1alpha1", "kind": kind, "metadata": {"name": "chat"}, "spec": spec}
        for kind, spec in (("InferenceService", service), ("Model", model))
    ]
    sources = _sources_of_first(documents, asked)
    assert {"spec.modelRef", "spec.contextSize", "Model/chat spec.hardware.gpu.count"} <= sources
    for cluster in asked:
        services, models = (cluster.objects.of_kind(outer_key(document)).values() for document in documents)
        assert all("modelRef" in item["spec"] for item in services)
        assert {item["spec"].get("runtime") for item in services} <= {"llamacpp", None}
        assert models
        assert all("source" in item["spec"] for item in models)
        assert {item["spec"].get("format") for item in models} <= {"gguf", None}
        assert {item["spec"]["hardware"].get("accelerator") for item in models} <= {"cuda", None}


def _sources_of_first(documents: list[Json], asked: list[Cluster]) -> set[str]:
    """Return the sources of the first object's values in a settled cluster; ``asked`` has the experiments."""
    manifests = parse(dump_all(documents), "test.yaml")
    world = settled(manifests, World(settings=SETTINGS))
    kind, key = served(manifests[0]), identity(manifests[0], "default")
    assert kind is not None
    assert key is not None
    parent = world.objects[key]
    cluster, pods = neighbourhood(world, kind, parent), settled_pod_templates(world, parent)
    asked.clear()
    return {origin.source for origin in origins(cluster, kind, parent, pods, SETTINGS)}


def _route_group(size: int) -> list[Json]:
    route = {"group": "members", "weight": 1}
    containers = [{"name": "main", "image": "vllm/vllm-openai:v0.20.0"}]
    return [
        {
            "apiVersion": "serving.kserve.io/v1alpha2",
            "kind": "LLMInferenceService",
            "metadata": {"name": f"member-{number}", "namespace": "default"},
            "spec": {
                "model": {"uri": f"hf://example/model-{number}", "name": "chat"},
                "router": {"route": route, "gateway": {}},
                "template": {"containers": containers},
            },
        }
        for number in range(size)
    ]
