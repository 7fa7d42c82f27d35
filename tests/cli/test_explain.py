"""``modelhooks explain``: why an object is not ready, its children, and the source of each value of its pods."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from app.kube.base import Json
from tests.cli.files import Command, model, service
from tests.corpus.requests import UID


def explained(command: Command, *documents: Json) -> dict[str, Json]:
    """Return the explanations by object."""
    result = command("explain", command.file("all.yaml", *documents), "--output", "json")
    assert result.status == 0, result.err
    return {item["object"]: item for item in result.json}


def sources(explanation: Json) -> dict[str, str]:
    """Return the source of each value, by its path below the pod template."""
    return {row["path"].partition(" spec.template.")[2]: row["source"] for row in explanation["values"]}


@pytest.fixture
def both(command: Command) -> dict[str, str]:
    spec: Json = {
        "contextSize": 4096,
        "image": "server:1",
        "env": [{"name": "A", "value": "1"}],
        "tolerations": [{"key": "t", "operator": "Exists"}],
        "priority": "high",
    }
    gpu = model(spec={"source": "https://models.example.com/m.gguf", "hardware": {"gpu": {"count": 2}}})
    return sources(explained(command, gpu, service(spec))["InferenceService/s"])


EXPECTED = {
    "spec.containers[llama-server].image": "spec.image",
    "spec.containers[llama-server].env[A].value": "spec.env[0].value",
    "spec.containers[llama-server].resources.limits[nvidia.com/gpu]": "Model/m spec.hardware.gpu.count",
    "spec.tolerations[t].key": "spec.tolerations[0].key",
    "spec.priorityClassName": "spec.priority",
    "spec.initContainers[model-downloader].env[MODEL_SOURCE].value": "Model/m spec.source",
    "spec.initContainers[model-downloader].image": "setting MODELHOOKS_LLMKUBE_INIT_CONTAINER_IMAGE",
    "spec.securityContext.fsGroup": "setting MODELHOOKS_LLMKUBE_DEFAULT_FSGROUP",
    "spec.containers[llama-server].livenessProbe.httpGet.path": "default",
    "metadata.labels.app": "metadata.name",
    "metadata.labels[inference.llmkube.dev/model]": "spec.modelRef",
}


@pytest.mark.parametrize(("path", "source"), EXPECTED.items(), ids=list(EXPECTED))
def test_each_value_has_its_source(both: dict[str, str], path: str, source: str) -> None:
    """A source is a field of the object or of a related one, an operator's setting, or a default."""
    assert both[path] == source


def test_an_argument_and_its_value_have_the_same_source(both: dict[str, str], command: Command) -> None:
    """They are separate items of a list."""
    values = explained(command, model(), service({"contextSize": 4096}))["InferenceService/s"]["values"]
    place = next(n for n, row in enumerate(values) if row["value"] == "--ctx-size")
    assert [row["source"] for row in values[place : place + 2]] == ["spec.contextSize"] * 2
    assert values[place + 1]["value"] == "4096"


def test_every_value_of_the_pod_is_there(command: Command) -> None:
    """Each path is there once."""
    values = explained(command, model(), service())["InferenceService/s"]["values"]
    paths = [row["path"] for row in values]
    assert len(paths) == len(set(paths)) > 30


def test_what_is_not_applied_yet_says_what_will_be(command: Command) -> None:
    """The state and the children are predicted from the files."""
    answer = explained(command, model(), service())["InferenceService/s"]
    assert answer["state"].startswith("not applied yet; once everything runs: ready")
    assert answer["why"] == []
    assert {child["kind"] for child in answer["children"]} >= {"Deployment", "Service"}


def test_a_missing_model_is_named(command: Command) -> None:
    """The Model may exist in the cluster, but is not in the files."""
    answer = explained(command, service())["InferenceService/s"]
    assert "not ready" in answer["state"]
    assert "Model m does not exist" in answer["why"][0]


def test_an_invalid_object_is_not_explained_further(command: Command) -> None:
    """Each mistake is listed with its place, and the exit status is that of ``validate``."""
    broken = command.file("all.yaml", model(), service({"replicas": 99, "image": " x"}))
    result = command("explain", broken, "--output", "json")
    [answer] = [item for item in result.json if item["object"] == "InferenceService/s"]
    assert result.status == 1
    assert answer["state"] == "invalid"
    assert [("spec.replicas" in text, "spec.image" in text) for text in answer["why"]] == [(True, False), (False, True)]
    assert "all.yaml:" in answer["why"][0]


CONDITIONS = [
    {"type": "Available", "status": "False", "reason": "NoReadyReplicas", "message": "none"},
    {"type": "Ready", "status": "False", "reason": "ImagePullBackOff", "message": "pod s-1: cannot pull its image"},
]


def test_a_status_that_was_written_speaks_for_itself(command: Command) -> None:
    """It is used if the files have nothing else to judge by."""
    written = service(status={"conditions": CONDITIONS})
    answer = explained(command, model(), written)["InferenceService/s"]
    assert answer["state"] == "not ready (ImagePullBackOff)"
    assert answer["why"] == ["pod s-1: cannot pull its image"]
    assert answer["conditions"] == CONDITIONS[:1]


def cluster(*pods: Json) -> list[Json]:
    """Return the output of ``kubectl get -o yaml`` for a service whose pods have problems."""
    status: Json = {
        "phase": "Ready",
        "cacheKey": "k",
        "conditions": [{"type": "Ready", "status": "True", "reason": "X"}],
    }
    owned = {"controller-uid": UID}
    deployment: Json = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "s", "namespace": "default", "uid": "d", "generation": 1, "labels": owned},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "s"}},
            "template": {"metadata": {"labels": {"app": "s"}}, "spec": {"containers": []}},
        },
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1},
    }
    parent = service(status={"conditions": CONDITIONS})
    parent["metadata"] |= {"uid": UID, "namespace": "default", "generation": 1}
    return [{"apiVersion": "v1", "kind": "List", "items": [model(status=status), parent, deployment, *pods]}]


def pod(**container: Any) -> Json:
    statuses = [{"name": "llama-server", "ready": False, "restartCount": 3, **container}]
    labels = {"app": "s", "inference.llmkube.dev/service": "s"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "s-1", "namespace": "default", "labels": labels},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "PodScheduled", "status": "True"}],
            "containerStatuses": statuses,
        },
    }


def test_pods_among_the_files_say_why(command: Command) -> None:
    """The present state of the pods is used instead of the stored status."""
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": "cannot load model"}}
    broken = pod(state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState=ended)
    answer = explained(command, *cluster(broken))["InferenceService/s"]
    assert answer["state"].startswith("not ready")
    assert "cannot load model" in answer["why"][0]
    assert {child["kind"]: child["exists"] for child in answer["children"]}["Deployment"]


@pytest.mark.parametrize(("others", "expected"), [([], False), (["other"], True), (["other", "nvidia"], False)])
def test_a_missing_runtime_class_is_a_cause_where_the_files_have_classes(
    command: Command, others: list[str], expected: bool
) -> None:
    """If the files have no RuntimeClass, those of the cluster are unknown."""
    head = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "runc"}
    classes = [{**head, "metadata": {"name": name}} for name in others]
    (objects,) = cluster()
    objects["items"][1]["spec"]["runtimeClassName"] = "nvidia"
    why = explained(command, objects, *classes)["InferenceService/s"]["why"]
    assert any("RuntimeClass nvidia does not exist" in line for line in why) == expected


def test_prints_a_heading_for_each_part(command: Command) -> None:
    """The headings are the object with its state, why, conditions, children and pods."""
    result = command("explain", command.file("all.yaml", *cluster(pod(state={"waiting": {"reason": "ErrImagePull"}}))))
    lines = result.out.splitlines()
    assert "InferenceService/s in namespace default: not ready (ImagePullBackOff)" in lines
    assert any(line.startswith("  why: ") for line in lines)
    assert "  children:" in lines
    assert "    Service/s (not among the files)" in lines
    assert "  pods of Deployment/s spec.template:" in lines


@pytest.mark.parametrize(
    "document", [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, {"kind": "Model"}]
)
def test_nothing_to_explain(command: Command, document: Json) -> None:
    """The exit status is 2, with a reason."""
    result = command("explain", command.file("all.yaml", document))
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("modelhooks explain: ")


def test_an_object_without_a_name(command: Command) -> None:
    """Without a name it cannot exist in a cluster."""
    result = command("explain", command.file("all.yaml", {**model(), "metadata": {}}))
    assert result.status == 2
    assert "metadata.name is missing" in result.err


BROKEN_RUNTIME: Json = {
    "apiVersion": "inference.llmaz.io/v1alpha1",
    "kind": "BackendRuntime",
    "metadata": {"name": "vllm"},
    "spec": {"command": ["serve"], "image": "tool", "version": "v1"},
}


@pytest.mark.parametrize(
    ("presets", "reason"),
    [([], "BackendRuntime"), ([{"name": "default", "args": ["{{ .Missing }}"]}], "ArgumentNotRenderable")],
)
def test_a_playground_that_cannot_be_rendered(command: Command, presets: list[Json], reason: str) -> None:
    """If its preset is missing, or a placeholder has no value, the state names it, and no pod is explained."""
    opt = {
        "apiVersion": "llmaz.io/v1alpha1",
        "kind": "OpenModel",
        "metadata": {"name": "opt"},
        "spec": {"familyName": "opt", "source": {"modelHub": {"modelID": "facebook/opt-125m"}}},
    }
    playground = {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "Playground",
        "metadata": {"name": "demo"},
        "spec": {"modelClaim": {"modelName": "opt"}},
    }
    runtime = {**BROKEN_RUNTIME, "spec": {**BROKEN_RUNTIME["spec"], "recommendedConfigs": presets}}
    answer = explained(command, opt, runtime, playground)["Playground/demo"]
    assert "not ready" in answer["state"]
    assert reason in answer["state"] + "".join(answer["why"])
    assert answer["values"] == []


def test_two_levels_are_explained_as_one(command: Command) -> None:
    """A Playground's pods belong to the Service that it creates; the sources are the Playground's fields."""
    documents = [
        {
            "apiVersion": "llmaz.io/v1alpha1",
            "kind": "OpenModel",
            "metadata": {"name": "opt"},
            "spec": {"familyName": "opt", "source": {"modelHub": {"modelID": "facebook/opt-125m"}}},
        },
        {
            "apiVersion": "inference.llmaz.io/v1alpha1",
            "kind": "BackendRuntime",
            "metadata": {"name": "tool"},
            "spec": {
                "command": ["serve"],
                "image": "tool",
                "version": "v1",
                "recommendedConfigs": [
                    {
                        "name": "default",
                        "args": ["--model", "{{ .ModelPath }}"],
                        "resources": {"requests": {"memory": "8Gi"}, "limits": {"memory": "8Gi"}},
                    }
                ],
            },
        },
        {
            "apiVersion": "inference.llmaz.io/v1alpha1",
            "kind": "Playground",
            "metadata": {"name": "demo"},
            "spec": {"modelClaim": {"modelName": "opt"}, "backendRuntimeConfig": {"backendName": "tool"}},
        },
    ]
    answer = explained(command, *documents)["Playground/demo"]
    source_of = sources(answer)
    assert "once everything runs: ready" in answer["state"]
    assert source_of["spec.containers[model-runner].command[0]"] == "BackendRuntime/tool spec.command[0]"
    assert "BackendRuntime/tool spec.image" in source_of["spec.containers[model-runner].image"]
    preset = "BackendRuntime/tool spec.recommendedConfigs[0]"
    for part in ("requests", "limits"):  # a limit is never below its request
        assert (
            source_of[f"spec.containers[model-runner].resources.{part}.memory"] == f"{preset}.resources.{part}.memory"
        )
    assert source_of["metadata.labels[llmaz.io/model-family-name]"] == "OpenModel/opt spec.familyName"


def test_what_never_changes_in_place_has_its_sources(command: Command) -> None:
    """A Job, and the size of a LeaderWorkerSet, are kept as they are, whatever the fields of their object are."""
    (claimed, served) = [
        {
            "apiVersion": "llmaz.io/v1alpha1",
            "kind": "OpenModel",
            "metadata": {"name": "opt"},
            "spec": {"familyName": "opt", "source": {"modelHub": {"modelID": "facebook/opt-125m"}}},
        },
        {
            "apiVersion": "inference.llmaz.io/v1alpha1",
            "kind": "Service",
            "metadata": {"name": "demo"},
            "spec": {
                "modelClaims": {"models": [{"name": "opt"}]},
                "workloadTemplate": {
                    "size": 2,
                    "workerTemplate": {"spec": {"containers": [{"name": "model-runner", "image": "tool"}]}},
                },
            },
        },
    ]
    answer = explained(command, claimed, served)["Service/demo"]
    size = "LeaderWorkerSet/demo spec.leaderWorkerTemplate.size"
    assert [row["source"] for row in answer["values"] if row["path"] == size] == ["spec.workloadTemplate.size"]
    job = sources(explained(command, model(), service())["Model/m"])
    assert job["spec.containers[model-downloader].env[KEEP_KEYS].name"] == "setting MODELHOOKS_LLMKUBE_KEEP_OLD_FILES"


def test_a_number_that_has_to_be_large_enough_is_a_source(command: Command) -> None:
    """Three replicas of a scheduler elect a leader, as four do; one has none to elect."""
    document = {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": "qwen"},
        "spec": {"model": {"uri": "hf://Qwen/Qwen2.5-0.5B", "name": "qwen"}, "router": {"scheduler": {"replicas": 3}}},
    }
    rows = explained(command, document)["LLMInferenceService/qwen"]["values"]
    elects = [row["source"] for row in rows if row["value"] == "--ha-enable-leader-election"]
    assert elects == ["spec.router.scheduler.replicas"]


LLM = {"apiVersion": "serving.kserve.io/v1alpha1", "kind": "LLMInferenceService"}


def test_presets_are_named(command: Command) -> None:
    """Presets are not objects of the cluster; the kind itself provides them."""
    spec = {"model": {"uri": "hf://Qwen/Qwen2.5-0.5B", "name": "qwen"}}
    document = {**LLM, "metadata": {"name": "qwen"}, "spec": spec}
    source_of = sources(explained(command, document)["LLMInferenceService/qwen"])
    assert source_of["spec.containers[main].image"] == "preset kserve-config-llm-template"


def test_what_an_empty_object_asks_for_is_named_by_its_preset(command: Command) -> None:
    """``scheduler: {}`` sets no value: those of the picker's pod are the preset's, which are counted."""
    spec: Json = {"model": {"uri": "hf://Qwen/Qwen2.5-0.5B"}, "router": {"scheduler": {}}}
    document = {**LLM, "metadata": {"name": "qwen"}, "spec": spec}
    values = explained(command, document)["LLMInferenceService/qwen"]["values"]
    picker = {row["path"]: row["source"] for row in values if "router-scheduler spec" in row["path"]}
    image = "Deployment/qwen-kserve-router-scheduler spec.template.spec.containers[main].image"
    assert picker[image] == "preset kserve-config-llm-scheduler"


def test_objects_that_differ_in_names_alone_are_explained_alike(command: Command) -> None:
    """Reusing the first one's explanation gives the same result; a value that is equal to a name is not replaced."""
    spec: Json = {"contextSize": 4096, "image": "s:1", "env": [{"name": "A", "value": "s"}], "priority": "high"}
    other = {**spec, "image": "t:1", "env": [{"name": "A", "value": "t"}]}
    objects = [model("m"), service(spec, "s"), service(other, "t"), service(spec, "u")]
    together = explained(command, *objects)
    for document in objects[1:]:
        alone = explained(command, model("m"), document)
        name = f"InferenceService/{document['metadata']['name']}"
        assert together[name]["values"] == alone[name]["values"]


def test_defaults_are_folded_and_paths_are_filtered(command: Command) -> None:
    """Values that the user set come first; --all shows defaults too, and --path only values with that path."""
    file = command.file("a.yaml", model(), service({"contextSize": 4096}))
    folded, everything = command("explain", file).out, command("explain", file, "--all").out
    assert re.search(r"[0-9]+ values? by default; --all shows them", folded)
    assert "--all" not in everything
    assert len(everything.splitlines()) > len(folded.splitlines())
    only = command("explain", file, "--path", "startupProbe").out
    rows = [line for line in only.splitlines() if line.startswith("    ") and "/" not in line.split()[0]]
    assert rows
    assert all("startupProbe" in line for line in rows)


def test_a_probe_is_one_line(command: Command) -> None:
    file = command.file("a.yaml", model(), service())
    rows = [line for line in command("explain", file, "--all").out.splitlines() if "livenessProbe" in line]
    assert len(rows) == 1
    assert "failureThreshold=" in rows[0]


def test_a_probe_that_is_copied_is_one_line(command: Command) -> None:
    """Its fields come from the same fields of another probe: only the probe is named."""
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 7}
    file = command.file("a.yaml", model(), service({"probeOverrides": {"liveness": probe}}))
    rows = [line.split() for line in command("explain", file).out.splitlines() if "livenessProbe" in line]
    assert rows == [
        [
            "spec.containers[llama-server].livenessProbe",
            "httpGet.path=/healthz",
            "httpGet.port=8080",
            "periodSeconds=7",
            "spec.probeOverrides.liveness",
        ]
    ]


LARGE: Json = {
    "source": "https://models.example.com/Llama-3.1-70B-Q4_K_M.gguf",
    "hardware": {"gpu": {"count": 1, "memory": "24Gi"}},
}


def test_a_line_says_whether_the_model_fits(command: Command) -> None:
    file = command.file("all.yaml", model(spec=LARGE), service())
    assert "  memory: does not fit: it needs at least 36.6 GiB, and has 24.0 GiB\n" in command("explain", file).out
    answers = explained(command, model(spec=LARGE), service())
    assert answers["InferenceService/s"]["fit"].startswith("does not fit: ")
    assert answers["Model/m"]["fit"] == ""


def test_an_autoscaled_service_starts_with_its_replicas(command: Command) -> None:
    """It is predicted to be ready with them; an autoscaler is not simulated."""
    spec: Json = {"replicas": 3, "autoscaling": {"maxReplicas": 5}}
    explanation = explained(command, model(), service(spec))["InferenceService/s"]
    assert explanation["state"] == "not applied yet; once everything runs: ready (InferenceReady)"
    rendered = command("render", command.file("scaled.yaml", model(), service(spec)), "--output", "json").json
    assert [
        child["spec"]["replicas"]
        for answer in rendered
        for child in answer["children"]
        if child["kind"] == "Deployment"
    ] == [3]


def test_autoscalers_and_objectives_have_sources_too(command: Command) -> None:
    """KServe: fields of the spec, a base, annotations that replace fields, and the operator's settings."""
    settings = {"prometheus": {"url": "https://prometheus:9090"}}
    operator = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "inferenceservice-config", "namespace": "kserve"},
        "data": {"autoscaling-wva-controller-config": json.dumps(settings)},
    }
    base = {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceServiceConfig",
        "metadata": {"name": "base", "namespace": "default"},
        "spec": {"scaling": {"maxReplicas": 4, "wva": {"keda": {"pollingInterval": 9}}}},
    }
    served = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "LLMInferenceService",
        "metadata": {"name": "chat", "namespace": "default"},
        "spec": {
            "baseRefs": [{"name": "base"}],
            "model": {"uri": "hf://org/model", "criticality": "Critical"},
            "scaling": {"minReplicas": 2, "maxReplicas": 5, "wva": {"keda": {}}},
            "router": {"scheduler": {}},
        },
    }
    answer = explained(command, operator, base, served)["LLMInferenceService/chat"]
    source_of = {row["path"]: row["source"] for row in answer["values"]}
    scaled = "ScaledObject/chat-kserve-keda spec"
    assert source_of[f"{scaled}.minReplicaCount"] == "spec.scaling.minReplicas"
    assert source_of[f"{scaled}.maxReplicaCount"] == "spec.scaling.maxReplicas"
    assert (
        source_of[f"{scaled}.pollingInterval"] == "LLMInferenceServiceConfig/base spec.scaling.wva.keda.pollingInterval"
    )
    trigger = f"{scaled}.triggers[wva-desired-replicas].metadata"
    prometheus = "ConfigMap/inferenceservice-config autoscaling-wva-controller-config"
    assert source_of[f"{trigger}.serverAddress"] == prometheus
    assert source_of[f"{trigger}.threshold"] == "default"
    objective = source_of["InferenceObjective/chat-inference-objective spec.priority"]
    assert objective == "setting MODELHOOKS_KSERVE_PRIORITY_CRITICAL"
