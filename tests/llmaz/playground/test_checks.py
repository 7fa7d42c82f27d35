"""Admission of Playgrounds (LZ-PG01 to LZ-PG11, LZ-6.4)."""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.base import Json
from tests.llmaz.world import PLAYGROUND, admit, paths, playground


def claims(*models: tuple[str, str | None]) -> Json:
    return playground(modelClaims={"models": [{"name": n, **({"role": r} if r else {})} for n, r in models]})


def backend(**config: Any) -> Json:
    return playground(backendRuntimeConfig=config)


def elastic(**config: Any) -> Json:
    return playground(elasticConfig=config)


def trigger(*metrics: Json) -> Json:
    return elastic(maxReplicas=2, scaleTrigger={"hpa": {"metrics": list(metrics)}})


CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}

ACCEPTED: dict[str, Json] = {
    "one model": playground(),
    "an unknown engine": backend(backendName="unknown"),
    "limits without requests": backend(resources={"limits": {"cpu": 5}}),
    "main and draft": claims(("a", "main"), ("b", "draft")),
    "draft first, the role of the main one left out": claims(("a", "draft"), ("b", None)),
    "its own draft": claims(("a", None), ("a", "draft")),
    "a range": elastic(maxReplicas=2),
    "a metric": trigger(CPU),
    "no replicas": playground(replicas=0),
    "sixty characters": playground("a" * 60),
}


@pytest.mark.parametrize("item", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_works_upstream_is_accepted(item: Json) -> None:
    """Upstream accepts these objects, and they can work."""
    assert paths(admit(PLAYGROUND, item)) == []


MODELS = "spec.modelClaims.models"
HPA = "spec.elasticConfig.scaleTrigger.hpa"
METRIC = f"{HPA}.metrics[0]"

BEHAVIOR = "spec.elasticConfig.scaleTrigger.hpa.behavior"
ODD = {"type": "Replicas", "value": 0, "periodSeconds": 1801}


def behaving(**behavior: Json) -> Json:
    return elastic(maxReplicas=2, scaleTrigger={"hpa": {"metrics": [CPU], "behavior": behavior}})


REFUSED: dict[str, tuple[Json, list[str]]] = {
    "LZ-PG01 a dot in the name": (playground("playground-0.5b"), ["metadata.name"]),
    "LZ-PG02 no claim": ({**playground(), "spec": {"replicas": 1}}, ["spec"]),
    "LZ-PG02 no spec": ({**playground(), "spec": {}}, ["spec"]),
    "LZ-PG03 both claims": (
        playground(modelClaim={"modelName": "a"}, modelClaims={"models": [{"name": "a"}]}),
        ["spec"],
    ),
    "LZ-PG04 a draft and two mains": (claims(("a", "main"), ("b", "draft"), ("c", "main")), [MODELS, MODELS]),
    "LZ-PG04 a draft alone": (claims(("a", "draft")), [MODELS, MODELS]),
    "LZ-PG06 a limit below its request": (
        backend(resources={"requests": {"cpu": 10}, "limits": {"cpu": 5}}),
        ["spec.backendRuntimeConfig.resources.limits[cpu]"],
    ),
    "LZ-PG07 down to nothing": (elastic(minReplicas=0, maxReplicas=10), ["spec.elasticConfig.minReplicas"]),
    "LZ-PG08 no room": (elastic(maxReplicas=1), [HPA]),
    "LZ-PG08 upside down": (elastic(minReplicas=10, maxReplicas=1), [HPA]),
    "LZ-PG09 a trigger of nothing": (elastic(maxReplicas=2, scaleTrigger={}), ["spec.backendRuntime.scaleTrigger.hpa"]),
    "LZ-PG10 no maximum": (elastic(minReplicas=1), ["spec.elasticConfig.maxReplicas"]),
    "LZ-PG11 no models": (playground(modelClaims={"models": []}), [MODELS]),
    "LZ-PG11, LZ-N33 role lora": (claims(("a", "lora")), [f"{MODELS}[0].role"]),
    "LZ-N01 two mains": (claims(("a", "main"), ("b", None)), [MODELS]),
    "LZ-N01 two drafts": (claims(("a", "draft"), ("b", "draft")), [MODELS]),
    "LZ-N02 an empty claim": (playground(modelClaims={}), [MODELS]),
    "LZ-N03 no name": (playground(modelClaim={}), ["spec.modelClaim.modelName"]),
    "LZ-N04 a digit first": (playground("1chat"), ["metadata.name"]),
    "LZ-N05 sixty-one characters": (playground("a" * 61), ["metadata.name"]),
    "LZ-N06 a negative minimum": (elastic(minReplicas=-1, maxReplicas=2), ["spec.elasticConfig.minReplicas"]),
    "LZ-N08 negative replicas": (playground(replicas=-1), ["spec.replicas"]),
    "LZ-N23 an unknown type of metric": (trigger({"type": "resource"}), [f"{METRIC}.type"]),
    "LZ-N23 nothing of the type": (trigger({"type": "Pods"}), [f"{METRIC}.pods"]),
    "LZ-N23 something of another type": (
        trigger({**CPU, "external": {"metric": {"name": "x"}, "target": {"type": "Value", "value": "1"}}}),
        [f"{METRIC}.external"],
    ),
    "LZ-N23 a target without its value": (
        trigger({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}),
        [f"{METRIC}.resource.target.averageUtilization"],
    ),
    "a window, a choice and a tolerance": (
        behaving(scaleDown={"stabilizationWindowSeconds": 3601, "selectPolicy": "Mean", "tolerance": "-0.1"}),
        [f"{BEHAVIOR}.scaleDown.{name}" for name in ("stabilizationWindowSeconds", "selectPolicy", "tolerance")],
    ),
    "policies of how fast to scale": (
        behaving(scaleUp={"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}, ODD]}),
        [f"{BEHAVIOR}.scaleUp.policies[1].{name}" for name in ("type", "value", "periodSeconds")],
    ),
    "a variable from two places": (
        backend(envs=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]),
        ["spec.backendRuntimeConfig.envs[0].valueFrom"],
    ),
    "no quantity": (backend(sharedMemorySize="2 GB"), ["spec.backendRuntimeConfig.sharedMemorySize"]),
    "a negative request": (
        backend(resources={"requests": {"cpu": "-1"}}),
        ["spec.backendRuntimeConfig.resources.requests[cpu]"],
    ),
    "a BackendRuntime that cannot exist": (backend(backendName="vLLM"), ["spec.backendRuntimeConfig.backendName"]),
    "no BackendRuntime": (backend(backendName=""), ["spec.backendRuntimeConfig.backendName"]),
    "several at once": (
        playground(replicas=-1, elasticConfig={"minReplicas": 3, "maxReplicas": 3}),
        ["spec.replicas", HPA],
    ),
}


@pytest.mark.parametrize(("item", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_all_mistakes_are_refused_at_once(item: Json, want: list[str]) -> None:
    """All errors of an object are reported at once, each at the field to change."""
    assert paths(admit(PLAYGROUND, item)) == want


WARNED = {
    "LZ-N05 fifty-one characters": (playground("a" * 51), "metadata.name"),
    "LZ-N09 outside the range": (playground(replicas=9, elasticConfig={"maxReplicas": 3}), "spec.replicas"),
    "LZ-N09 nothing to scale": (
        playground(replicas=0, elasticConfig={"maxReplicas": 3}),
        "spec.replicas: 0 stops the pods",
    ),
    "LZ-N24 no metrics": (trigger(), "80 percent"),
    "LZ-N30 an accelerator": (backend(resources={"limits": {"nvidia.com/gpu": 1}}), "nvidia.com/gpu"),
    "LZ-N31 another port": (backend(args=["--port", "9000"]), "args[0]"),
    "LZ-N31 another port in one argument": (backend(args=["--port=9000"]), "args[0]"),
    "LZ-N31 a placeholder": (backend(args=["{{ .ModelName }}"]), "args[0]"),
    "LZ-N32 a word that does nothing": (
        playground(annotations={"llmaz.io/skip-model-loader": "yes"}),
        "skip-model-loader",
    ),
    "a repository in the place of a model": (
        playground(modelClaim={"modelName": "facebook/opt-125m"}),
        "spec.modelClaim.modelName: no OpenModel can be named",
    ),
    "the same of several models": (
        claims(("a", "main"), ("B", "draft")),
        "spec.modelClaims.models[1].name: no OpenModel can be named",
    ),
    "a model in capitals": (
        playground(modelClaim={"modelName": "OPT_125m"}),
        ': names are lower case; did you mean "opt-125m"?',
    ),
    "an empty tag": (backend(version=""), "version"),
    "a container of another name": (
        trigger(
            {
                "type": "ContainerResource",
                "containerResource": {
                    "name": "cpu",
                    "container": "engine",
                    "target": {"type": "Utilization", "averageUtilization": 50},
                },
            }
        ),
        "model-runner",
    ),
}


@pytest.mark.parametrize(("item", "part"), WARNED.values(), ids=WARNED.keys())
def test_what_is_accepted_with_a_bad_effect_is_warned_of(item: Json, part: str) -> None:
    """The object is accepted with a warning."""
    verdict = admit(PLAYGROUND, item)
    assert verdict.errors == []
    assert any(part in warning for warning in verdict.warnings), verdict.warnings


@pytest.mark.parametrize(
    ("name", "example"), [("vLLM", "vllm"), ("tensorrt_llm", "tensorrt-llm"), ("Llama.Cpp", "llama.cpp"), ("", "vllm")]
)
def test_suggests_a_valid_backend_name(name: str, example: str) -> None:
    """The error suggests the same name in a valid spelling, or else the default."""
    (error,) = admit(PLAYGROUND, backend(backendName=name)).errors
    assert str(error).endswith(f"for example {example}")


def test_no_warning_for_the_default_port() -> None:
    """Arguments that repeat the default port cause no warning."""
    assert admit(PLAYGROUND, backend(args=["--port", "8080", "--port=8080"])).warnings == []


def test_old_mistakes_stay_possible() -> None:
    """An update that keeps an existing mistake is accepted with a warning; a new mistake is refused."""
    old = playground(replicas=-1)
    verdict = admit(PLAYGROUND, playground(replicas=-1, backendRuntimeConfig={"args": ["-x"]}), old)
    assert verdict.errors == []
    assert any("unchanged from before" in warning for warning in verdict.warnings)
    assert paths(admit(PLAYGROUND, playground(replicas=-2), old)) == ["spec.replicas"]
