"""Admission of Playgrounds (LZ-PG01 to LZ-PG11, LZ-6.4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.llmaz.world import PLAYGROUND, Json, admit, paths, playground


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
def test_accepted(item: Json) -> None:
    """What upstream takes and can work."""
    assert paths(admit(PLAYGROUND, item)) == []


MODELS = "spec.modelClaims.models"
HPA = "spec.elasticConfig.scaleTrigger.hpa"
METRIC = f"{HPA}.metrics[0]"

REFUSED: dict[str, tuple[Json, list[str]]] = {
    "PG1 a dot in the name": (playground("playground-0.5b"), ["metadata.name"]),
    "PG2 no claim": ({**playground(), "spec": {"replicas": 1}}, ["spec"]),
    "PG2 no spec": ({**playground(), "spec": {}}, ["spec"]),
    "PG3 both claims": (
        playground(modelClaim={"modelName": "a"}, modelClaims={"models": [{"name": "a"}]}),
        ["spec"],
    ),
    "PG4 a draft and two mains": (claims(("a", "main"), ("b", "draft"), ("c", "main")), [MODELS, MODELS]),
    "PG4 a draft alone": (claims(("a", "draft")), [MODELS, MODELS]),
    "PG6 a limit below its request": (
        backend(resources={"requests": {"cpu": 10}, "limits": {"cpu": 5}}),
        ["spec.backendRuntimeConfig.resources.limits[cpu]"],
    ),
    "PG7 down to nothing": (elastic(minReplicas=0, maxReplicas=10), ["spec.elasticConfig.minReplicas"]),
    "PG8 no room": (elastic(maxReplicas=1), [HPA]),
    "PG8 upside down": (elastic(minReplicas=10, maxReplicas=1), [HPA]),
    "PG9 a trigger of nothing": (elastic(maxReplicas=2, scaleTrigger={}), ["spec.backendRuntime.scaleTrigger.hpa"]),
    "PG10 no maximum": (elastic(minReplicas=1), ["spec.elasticConfig.maxReplicas"]),
    "PG11 no models": (playground(modelClaims={"models": []}), [MODELS]),
    "PG11, N33 role lora": (claims(("a", "lora")), [f"{MODELS}[0].role"]),
    "N1 two mains": (claims(("a", "main"), ("b", None)), [MODELS]),
    "N1 two drafts": (claims(("a", "draft"), ("b", "draft")), [MODELS]),
    "N2 an empty claim": (playground(modelClaims={}), [MODELS]),
    "N3 no name": (playground(modelClaim={}), ["spec.modelClaim.modelName"]),
    "N4 a digit first": (playground("1chat"), ["metadata.name"]),
    "N5 sixty-one characters": (playground("a" * 61), ["metadata.name"]),
    "N6 a negative minimum": (elastic(minReplicas=-1, maxReplicas=2), ["spec.elasticConfig.minReplicas"]),
    "N8 negative replicas": (playground(replicas=-1), ["spec.replicas"]),
    "N23 an unknown type of metric": (trigger({"type": "resource"}), [f"{METRIC}.type"]),
    "N23 nothing of the type": (trigger({"type": "Pods"}), [f"{METRIC}.pods"]),
    "N23 something of another type": (
        trigger({**CPU, "external": {"metric": {"name": "x"}, "target": {"type": "Value", "value": "1"}}}),
        [f"{METRIC}.external"],
    ),
    "N23 a target without its value": (
        trigger({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}),
        [f"{METRIC}.resource.target.averageUtilization"],
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
    "several at once": (
        playground(replicas=-1, elasticConfig={"minReplicas": 3, "maxReplicas": 3}),
        ["spec.replicas", HPA],
    ),
}


@pytest.mark.parametrize(("item", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(item: Json, want: list[str]) -> None:
    """Every mistake of an object at once, each at the field to change."""
    assert paths(admit(PLAYGROUND, item)) == want


WARNED = {
    "N5 fifty-three characters": (playground("a" * 53), "metadata.name"),
    "N9 outside the range": (playground(replicas=9, elasticConfig={"maxReplicas": 3}), "spec.replicas"),
    "N24 no metrics": (trigger(), "80 percent"),
    "N30 an accelerator": (backend(resources={"limits": {"nvidia.com/gpu": 1}}), "nvidia.com/gpu"),
    "N31 another port": (backend(args=["--port", "9000"]), "args[0]"),
    "N31 another port in one argument": (backend(args=["--port=9000"]), "args[0]"),
    "N31 a placeholder": (backend(args=["{{ .ModelName }}"]), "args[0]"),
    "N32 a word that does nothing": (
        playground(annotations={"llmaz.io/skip-model-loader": "yes"}),
        "skip-model-loader",
    ),
    "T15 a lone limit": (backend(resources={"limits": {"cpu": 2}}), "requests.cpu"),
    "a repository in the place of a model": (
        playground(modelClaim={"modelName": "facebook/opt-125m"}),
        "spec.modelClaim.modelName: no OpenModel can be named",
    ),
    "the same of several models": (
        claims(("a", "main"), ("B", "draft")),
        "spec.modelClaims.models[1].name: no OpenModel can be named",
    ),
    "an engine that cannot exist": (backend(backendName="vLLM"), 'no BackendRuntime can be named "vLLM"'),
    "no engine": (backend(backendName=""), "spec.backendRuntimeConfig.backendName"),
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
def test_warned(item: Json, part: str) -> None:
    """Accepted, and the user is told."""
    verdict = admit(PLAYGROUND, item)
    assert verdict.errors == []
    assert any(part in warning for warning in verdict.warnings), verdict.warnings


def test_the_right_port_is_no_surprise() -> None:
    """Saying what is so anyway is fine."""
    assert admit(PLAYGROUND, backend(args=["--port", "8080", "--port=8080"])).warnings == []


def test_old_mistakes_stay_possible() -> None:
    """An update may keep what was wrong before, and is warned; a new mistake is refused."""
    old = playground(replicas=-1)
    verdict = admit(PLAYGROUND, playground(replicas=-1, backendRuntimeConfig={"args": ["-x"]}), old)
    assert verdict.errors == []
    assert any("unchanged from before" in warning for warning in verdict.warnings)
    assert paths(admit(PLAYGROUND, playground(replicas=-2), old)) == ["spec.replicas"]
