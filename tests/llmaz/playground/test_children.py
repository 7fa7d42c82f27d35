"""The children of a Playground: its Service and autoscaler, or none if an input is unusable (LZ-3, LZ-4.1, LZ-4.5)."""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.base import Json
from tests.hookcalls import unnoted
from tests.llmaz.world import (
    PLAYGROUND,
    child,
    condition,
    model,
    model_at,
    playground,
    preset,
    runner,
    runtime,
    state,
    sync,
)


def template(answer: Json) -> Json:
    """Return the pod template of the Service in the answer."""
    template_spec: Json = child(answer, "Service")["spec"]["workloadTemplate"]["workerTemplate"]
    return template_spec


def test_leaves_defaults_out_of_the_service() -> None:
    """The API server fills in the CRD's defaults; labels and owner references are not set either."""
    answer = sync(PLAYGROUND, playground(replicas=2), model(), runtime())
    created = child(answer, "Service")
    assert unnoted([created])[0]["metadata"] == {"name": "chat", "namespace": "team"}
    spec = created["spec"]
    assert spec["modelClaims"] == {"models": [{"name": "opt", "role": "main"}]}
    assert (spec["replicas"], spec["rolloutStrategy"]) == (2, {"type": "RollingUpdate"})
    assert list(spec["workloadTemplate"]) == ["workerTemplate"]
    assert template(answer)["spec"] == {
        "terminationGracePeriodSeconds": 130,
        "containers": [
            {
                "name": "model-runner",
                "image": "example.com/engine:v1",
                "args": ["--model", "/workspace/models/models--facebook--opt"],
                "ports": [{"name": "http", "protocol": "TCP", "containerPort": 8080}],
                "terminationMessagePolicy": "FallbackToLogsOnError",
            }
        ],
    }


def test_tag_and_arguments_of_the_playground_win() -> None:
    """The Playground's tag replaces the runtime's; its arguments follow the preset's and are not rendered."""
    config = {"version": "v2", "args": ["{{ .ModelName }}"]}
    server = runner(template(sync(PLAYGROUND, playground(backendRuntimeConfig=config), model(), runtime())))
    assert server["image"] == "example.com/engine:v2"
    assert server["args"][-1] == "{{ .ModelName }}"


def test_environment_has_one_order() -> None:
    """The Playground's variables replace the runtime's in place or follow them; no name appears twice (LZ-T05)."""
    base = [{"name": "B", "value": "1"}, {"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    own = [{"name": "C", "value": ""}, {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    alone = runner(template(sync(PLAYGROUND, playground(), model(), runtime(envs=base))))
    assert alone["env"] == [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]
    item = playground(backendRuntimeConfig={"envs": own})
    merged = runner(template(sync(PLAYGROUND, item, model(), runtime(envs=base))))
    assert merged["env"] == [{"name": "B", "value": "2"}, own[1], {"name": "C"}]


SHARED: dict[str, tuple[Any, Any, Any]] = {
    "the preset's": (2**30, None, "1073741824"),
    "the Playground's": ("1Gi", "4096Mi", "4Gi"),
    "none": (None, None, None),
}


@pytest.mark.parametrize(("of_preset", "own", "want"), SHARED.values(), ids=SHARED.keys())
def test_shared_memory(of_preset: Any, own: Any, want: Any) -> None:
    """A memory-backed volume is mounted at /dev/shm if a size is set."""
    config = {"backendRuntimeConfig": {"sharedMemorySize": own}} if own else {}
    engine = preset(**({"sharedMemorySize": of_preset} if of_preset else {}))
    spec = template(sync(PLAYGROUND, playground(**config), model(), engine))["spec"]
    if want is None:
        assert "volumes" not in spec
        return
    assert spec["volumes"] == [{"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": want}}]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "dshm", "mountPath": "/dev/shm"}]


def test_handlers_are_passed_on() -> None:
    """Probes and lifecycle are passed on without values that the API server does not store."""
    probe = {"httpGet": {"path": "/health", "port": 8080}, "initialDelaySeconds": 0, "periodSeconds": 5}
    engine = runtime(readinessProbe=probe, lifecycle={"preStop": {"exec": {"command": ["x"]}}})
    server = runner(template(sync(PLAYGROUND, playground(), model(), engine)))
    assert server["readinessProbe"] == {"httpGet": {"path": "/health", "port": 8080}, "periodSeconds": 5}
    assert server["lifecycle"] == {"preStop": {"exec": {"command": ["x"]}}}


def test_speculative_decoding() -> None:
    """A draft model selects the preset; the list keeps the user's order, and the arguments follow the roles."""
    claim = {"models": [{"name": "small", "role": "draft"}, {"name": "opt"}]}
    answer = sync(PLAYGROUND, playground(modelClaims=claim), model(), model("small"), runtime())
    models = child(answer, "Service")["spec"]["modelClaims"]["models"]
    assert models == [{"name": "small", "role": "draft"}, {"name": "opt", "role": "main"}]
    assert runner(template(answer))["args"] == [
        "--model",
        "/workspace/models/models--facebook--opt",
        "--draft",
        "/workspace/models/models--facebook--small",
    ]


def test_a_model_that_is_its_own_draft() -> None:
    """It is claimed once, because Metacontroller merges this list by name; the arguments name it twice."""
    claim = {"models": [{"name": "opt"}, {"name": "opt", "role": "draft"}]}
    answer = sync(PLAYGROUND, playground(modelClaims=claim), model(), runtime())
    assert child(answer, "Service")["spec"]["modelClaims"]["models"] == [{"name": "opt", "role": "main"}]
    assert runner(template(answer))["args"].count("/workspace/models/models--facebook--opt") == 2


def test_ollama_gets_its_own_name_for_the_model() -> None:
    """The engine gets ollama's name for the model, not the name of the OpenModel."""
    engine = preset(args=["run", "{{ .ModelName }}"])
    answer = sync(PLAYGROUND, playground(), model_at("ollama://qwen2:0.5b"), engine)
    assert runner(template(answer))["args"] == ["run", "qwen2:0.5b"]
    assert "backend vllm cannot fetch" in condition(answer, "Ready")["message"]


def test_skip_annotation_is_handed_down() -> None:
    """The value is passed on unchanged; only ``true`` changes the path."""
    for value, path in (("true", "facebook/opt"), ("True", "/workspace/models/models--facebook--opt")):
        item = playground(annotations={"llmaz.io/skip-model-loader": value, "other": "x"})
        answer = sync(PLAYGROUND, item, model(), runtime())
        assert unnoted([child(answer, "Service")])[0]["metadata"]["annotations"] == {
            "llmaz.io/skip-model-loader": value
        }
        assert runner(template(answer))["args"][1] == path


CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "1000m"}}}
STORED = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "1"}}}


def scaled(trigger: Json | None = None, **spec: Any) -> Json:
    elastic: Json = {"maxReplicas": 3, **({"scaleTrigger": trigger} if trigger is not None else {})}
    return playground(elasticConfig=elastic, **spec)


def test_an_autoscaler_scales_the_playground() -> None:
    """It targets the Playground, prefers its trigger to the preset's, and has quantities in their stored form."""
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 0, "tolerance": "0.05"}}
    trigger = {"hpa": {"metrics": [CPU], "behavior": behavior}}
    engine = preset(scaleTrigger={"hpa": {"metrics": []}})
    autoscaler = child(sync(PLAYGROUND, scaled(trigger), model(), engine), "HorizontalPodAutoscaler")
    assert autoscaler["spec"] == {
        "scaleTargetRef": {"apiVersion": "inference.llmaz.io/v1alpha1", "kind": "Playground", "name": "chat"},
        "minReplicas": 1,
        "maxReplicas": 3,
        "metrics": [STORED],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0, "tolerance": "50m"}},
    }


@pytest.mark.parametrize("behavior", [{}, {"scaleUp": {}, "scaleDown": {"stabilizationWindowSeconds": 60}}])
def test_passes_on_an_empty_behavior(behavior: Json) -> None:
    """An empty behavior is passed on; the API server's defaults apply with or without it."""
    trigger = {"hpa": {"metrics": [CPU], "behavior": {**behavior, "future": None}}}
    item = playground(elasticConfig={"maxReplicas": 2, "scaleTrigger": trigger})
    assert child(sync(PLAYGROUND, item, model(), runtime()), "HorizontalPodAutoscaler")["spec"]["behavior"] == behavior


MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1"}}}


@pytest.mark.parametrize(("chosen", "metric"), [("own", MEMORY), ("none", STORED)])
def test_autoscaler_of_the_preset(chosen: str, metric: Json) -> None:
    """The trigger comes from the chosen preset, or else from the preset that the models imply (LZ-T08)."""
    presets = [
        {"name": "default", "scaleTrigger": {"hpa": {"metrics": [CPU]}}},
        {"name": "own", "scaleTrigger": {"hpa": {"metrics": [MEMORY]}}},
        {"name": "none"},
    ]
    item = scaled(backendRuntimeConfig={"configName": chosen})
    answer = sync(PLAYGROUND, item, model(), runtime(recommendedConfigs=presets))
    assert child(answer, "HorizontalPodAutoscaler")["spec"]["metrics"] == [metric]


@pytest.mark.parametrize("engine", [runtime(), preset(scaleTrigger={})], ids=["no trigger", "a trigger of nothing"])
def test_no_autoscaler(engine: Json) -> None:
    """Without a trigger no autoscaler is created, and Ready reports it (LZ-N25)."""
    answer = sync(PLAYGROUND, scaled(), model(), engine)
    assert [c["kind"] for c in answer["children"]] == ["Service"]
    assert "elasticConfig has no effect" in condition(answer, "Ready")["message"]


UNUSABLE: dict[str, tuple[Json, list[Json], str]] = {
    "no model": (playground(), [runtime()], "ModelNotFound"),
    "no draft model": (
        playground(modelClaims={"models": [{"name": "opt"}, {"name": "small", "role": "draft"}]}),
        [model(), runtime()],
        "ModelNotFound",
    ),
    "an unusable model": (playground(), [model_at("x://y"), runtime()], "ModelInvalid"),
    "no engine": (playground(), [model()], "BackendRuntimeNotFound"),
    "an unusable engine": (playground(), [model(), {**runtime(), "spec": {"image": 1}}], "BackendRuntimeInvalid"),
    "no such preset": (playground(backendRuntimeConfig={"configName": "x"}), [model(), runtime()], "PresetNotFound"),
    "no draft for the preset": (
        playground(backendRuntimeConfig={"configName": "speculative-decoding"}),
        [model(), runtime()],
        "ArgumentNotRenderable",
    ),
    "a name that would be a script": (
        playground(),
        [model_at("ollama://a;b"), preset(args=["run {{ .ModelName }}"])],
        "ArgumentNotRenderable",
    ),
    "a whole image, which nothing can copy": (playground(), [model_at("oci://x:1#/"), runtime()], "ModelNotLoadable"),
}


@pytest.mark.parametrize(("item", "related", "reason"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_creates_no_children_from_unusable_inputs(item: Json, related: list[Json], reason: str) -> None:
    """No child is created, and Progressing and Ready report it (LZ-T03, LZ-T10)."""
    answer = sync(PLAYGROUND, item, *related)
    assert answer["children"] == []
    assert state(answer, "Progressing") == ("False", "AbortProcessing")
    assert state(answer, "Ready") == ("False", reason)
    assert condition(answer, "Available") == {}
    assert answer["status"]["replicas"] == 0
