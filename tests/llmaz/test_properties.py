"""Properties of all objects that a user may write, valid or not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.hooks.sendable import clashes
from app.kube import field
from app.kube.base import Json
from app.kube.embedded.checks import TypeCheck
from tests.llmaz.world import (
    BACKEND_RUNTIME,
    NOW,
    OPEN_MODEL,
    PLAYGROUND,
    SERVICE,
    admit,
    customize,
    model,
    observed,
    playground,
    pods,
    runtime,
    service,
    sync,
)

pytestmark = pytest.mark.no_cover

names = st.sampled_from(["opt", "small", "", "a.b", "x" * 70])
texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["{{ .ModelPath }}", "{{ .ModelName }} x", "{{ .TP }}", "2", "--port", "$(A)"]),
)
quantities = st.one_of(st.sampled_from(["1", "500m", "2Gi", "1e3", "-1", "x", "0.5"]), st.integers(-2, 2**40))
amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "bad key!"]), quantities, max_size=3)
resources = st.fixed_dictionaries({}, optional={"limits": amounts, "requests": amounts})
uris = st.sampled_from(
    [
        *(
            "oss://b.e/p",
            "oss://b.e/p.gguf",
            "s3://b/p",
            "gs://b/p.gguf",
            "oci://i:1",
            "oci://a/i#/",
            "oci://b/i#/x.gguf",
        ),
        *("host:///srv/m", "host:///dev/shm", "host:///workspace/models/models--i", "ollama://m", "x"),
    ]
)
hubs = st.fixed_dictionaries(
    {"modelID": texts},
    optional={
        "name": st.sampled_from(["Huggingface", "ModelScope"]),
        "filename": texts,
        "allowPatterns": st.lists(texts),
    },
)
sources = st.one_of(
    st.fixed_dictionaries({"modelHub": hubs}),
    st.fixed_dictionaries({"uri": uris}),
    st.just({"modelHub": {"modelID": "a/b"}}),
)
flavors = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["a", "b"])},
        optional={
            "limits": amounts,
            "nodeSelector": st.dictionaries(st.sampled_from(["gpu", "a.b/c", "bad key!"]), texts, max_size=2),
            "params": st.dictionaries(st.sampled_from(["TP", "PP", "X-Y", "ModelName"]), texts, max_size=3),
        },
    ),
    max_size=3,
)
variables = st.one_of(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["A", "B", "HF_TOKEN", "MODEL_ID", "LWS_GROUP_SIZE"])}, optional={"value": texts}
    ),
    st.just({"name": "P", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}),
    st.just({"name": "Q", "future": [{"name": 1}, {"name": 1}], "number": 1e300, "nothing": None}),
)
junk: Any = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        texts,
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["name", "port", "x", "path"]), inner, max_size=3)
    ),
    max_leaves=6,
)
probes = st.one_of(
    st.just({"httpGet": {"path": "/", "port": 8080}, "initialDelaySeconds": 0}),
    st.just({"httpGet": {"port": 1, "httpHeaders": [{"name": "A", "value": ""}, {"name": "A", "value": "b"}]}}),
    st.fixed_dictionaries({"exec": st.just({"command": ["x"]})}, optional={"unknown": junk}),
)
triggers = st.fixed_dictionaries(
    {},
    optional={
        "hpa": st.fixed_dictionaries(
            {},
            optional={
                "metrics": st.lists(
                    st.one_of(
                        st.just(
                            {
                                "type": "Resource",
                                "resource": {
                                    "name": "cpu",
                                    "target": {"type": "AverageValue", "averageValue": "1000m"},
                                },
                            }
                        ),
                        st.fixed_dictionaries({"type": texts, "name": st.just("same")}),
                    ),
                    max_size=2,
                )
            },
        )
    },
)
presets = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["default", "speculative-decoding", "other"])},
        optional={
            "args": st.lists(texts, max_size=3),
            "paramArgs": st.lists(
                st.fixed_dictionaries(
                    {"param": st.sampled_from(["TP", "X-Y", ""])}, optional={"args": st.lists(texts, max_size=2)}
                ),
                max_size=2,
            ),
            "resources": resources,
            "sharedMemorySize": quantities,
            "scaleTrigger": triggers,
        },
    ),
    max_size=3,
)
runtimes = st.fixed_dictionaries(
    {"image": st.just("example.com/e"), "version": st.just("1"), "recommendedConfigs": presets},
    optional={
        "envs": st.lists(variables, max_size=4),
        "readinessProbe": probes,
        "lifecycle": junk,
        "command": st.lists(texts),
    },
)
claims = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["opt", "small"])}, optional={"role": st.sampled_from(["main", "draft"])}
    ),
    max_size=3,
)
playgrounds = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(-1, 4),
        "modelClaim": st.fixed_dictionaries(
            {"modelName": names}, optional={"inferenceFlavors": st.lists(texts, max_size=2)}
        ),
        "modelClaims": st.fixed_dictionaries({"models": claims}),
        "backendRuntimeConfig": st.fixed_dictionaries(
            {},
            optional={
                "configName": st.sampled_from(["default", "other"]),
                "args": st.lists(texts, max_size=2),
                "envs": st.lists(variables, max_size=3),
                "resources": resources,
                "sharedMemorySize": quantities,
                "version": texts,
            },
        ),
        "elasticConfig": st.fixed_dictionaries(
            {"maxReplicas": st.integers(0, 4)}, optional={"minReplicas": st.integers(-1, 3), "scaleTrigger": triggers}
        ),
        "unknown": junk,
    },
)
containers = st.fixed_dictionaries(
    {"name": st.sampled_from(["model-runner", "side"]), "image": st.just("x")},
    optional={
        "env": st.lists(variables, max_size=3),
        "args": st.lists(texts, max_size=2),
        "resources": resources,
        "ports": st.lists(st.fixed_dictionaries({"containerPort": st.integers(1, 2)}), max_size=2),
        "volumeMounts": st.lists(
            st.fixed_dictionaries({"name": st.just("v"), "mountPath": st.sampled_from(["/a", "/srv/m", "/dev/shm"])}),
            max_size=2,
        ),
        "readinessProbe": probes,
        "future": junk,
    },
)
templates = st.builds(
    lambda items, more: pods(*items, **more),
    st.lists(containers, min_size=1, max_size=2),
    st.fixed_dictionaries(
        {},
        optional={
            "volumes": st.lists(
                st.fixed_dictionaries({"name": st.sampled_from(["v", "model-volume"]), "emptyDir": st.just({})}),
                max_size=2,
            ),
            "initContainers": st.lists(containers, max_size=1),
            "future": junk,
        },
    ),
)
services = st.fixed_dictionaries(
    {},
    optional={
        "modelClaims": st.fixed_dictionaries(
            {"models": claims}, optional={"inferenceFlavors": st.lists(st.sampled_from(["a", "c"]), max_size=2)}
        ),
        "replicas": st.integers(-1, 3),
        "workload": st.fixed_dictionaries(
            {},
            optional={
                "size": st.integers(0, 3),
                "leaderTemplate": templates,
                "subGroupPolicy": st.fixed_dictionaries({"subGroupSize": st.integers(0, 3)}),
            },
        ),
        "rolloutStrategy": st.fixed_dictionaries(
            {},
            optional={
                "rollingUpdateConfiguration": st.fixed_dictionaries(
                    {}, optional={"maxUnavailable": st.sampled_from([0, 1, "10%", "x"]), "maxSurge": st.integers(-1, 1)}
                )
            },
        ),
    },
)
notes = st.sampled_from([None, {"llmaz.io/skip-model-loader": "true"}, {"llmaz.io/skip-model-loader": "x"}])
worlds = st.fixed_dictionaries({"opt": sources, "small": sources, "flavors": flavors, "runtime": runtimes})


def related(world: Json) -> list[Json]:
    config = {"flavors": world["flavors"]}
    return [
        model(source=world["opt"], inferenceConfig=config),
        model("small", source=world["small"]),
        runtime(**world["runtime"]),
    ]


def settled(kind: Any, item: Json, others: list[Json]) -> tuple[Json, Json]:
    """Return the answers of the second and third call, each with the children of the first call applied."""
    first = sync(kind, item, *others)
    children = [observed(child) for child in first["children"]]
    answers = []
    for seconds in (5, 600):
        again = {**item, "status": first["status"]}
        first = sync(kind, again, *others, children=children, now=NOW + timedelta(seconds=seconds))
        answers.append(first)
    return answers[0], answers[1]


def assert_settled(kind: Any, item: Json, others: list[Json]) -> Json:
    """Assert that a repeated sync changes nothing, even at a later time."""
    second, third = settled(kind, item, others)
    assert second == third
    for child in second["children"]:
        assert not list(clashes(child["spec"], field.Path("spec")))
    return second


@settings(max_examples=150)
@given(playgrounds, notes, worlds)
def test_playground(spec: Json, put: Json | None, world: Json) -> None:
    """Any Playground has a stable answer for any models and engine, and its customize rules have names."""
    item = playground(annotations=put, **({} if "modelClaims" in spec else {"modelClaim": {"modelName": "opt"}}) | spec)
    answer = assert_settled(PLAYGROUND, item, related(world))
    verdict = admit(PLAYGROUND, item)
    if verdict.errors:
        assert answer["children"] == []
    assert all(rule.get("names") for rule in customize(PLAYGROUND, item))
    accepted = not verdict.errors and not admit(BACKEND_RUNTIME, related(world)[-1]).errors
    for child in answer["children"]:
        if child["kind"] == "Service" and accepted:
            assert admit(SERVICE, child).errors == []


@settings(max_examples=150)
@given(services, templates, notes, worlds)
def test_service(spec: Json, worker: Json, put: Json | None, world: Json) -> None:
    """Any Service has a stable answer with a valid pod template."""
    item = service(worker=worker, annotations=put, **spec)
    answer = assert_settled(SERVICE, item, related(world))
    if admit(SERVICE, item).errors:
        assert answer["children"] == []
    for child in answer["children"]:
        if child["kind"] == "Deployment":
            type_check = TypeCheck()
            type_check.check(child["spec"]["template"], "PodTemplateSpec", field.Path("template"))
            assert type_check.errors == []
            labels = child["spec"]["template"]["metadata"]["labels"]
            assert child["spec"]["selector"]["matchLabels"].items() <= labels.items()


@settings(max_examples=100)
@given(playgrounds, services, templates, st.sampled_from(["models", "engine", "spec"]))
def test_nothing_is_lost(spec: Json, more: Json, worker: Json, gone: str) -> None:
    """If models or engine disappear or the spec becomes invalid, every observed child is sent again."""
    good = [model(), model("small"), runtime()]
    others = [] if gone == "models" else good[:2] if gone == "engine" else good
    wrong: Json = {"replicas": -1} if gone == "spec" else {}
    ran = [observed(child) for child in sync(PLAYGROUND, playground(), *good)["children"]]
    kept = sync(PLAYGROUND, playground(**wrong), *others, children=ran)
    assert [child["spec"] for child in kept["children"]] == [child["spec"] for child in ran]
    if gone == "engine":
        return
    ran = [observed(child) for child in sync(SERVICE, service(**more, worker=worker), *good)["children"]]
    kept = sync(SERVICE, service(**{**more, **(wrong or {"replicas": 1})}, worker=worker), *others, children=ran)
    if gone == "models":
        assert len(kept["children"]) == len(ran)
    if gone == "spec":
        assert sorted(child["kind"] for child in kept["children"]) == sorted(child["kind"] for child in ran)


@settings(max_examples=150)
@given(runtimes, sources, flavors)
def test_kinds_without_children(spec: Json, source: Json, config: list[Json]) -> None:
    """Their status agrees with admission, except about the name."""
    for kind, item in (
        (BACKEND_RUNTIME, runtime(**spec)),
        (OPEN_MODEL, model(source=source, inferenceConfig={"flavors": config})),
    ):
        item["metadata"]["uid"] = "u"
        answer = sync(kind, item)
        assert answer["children"] == []
        ready = answer["status"]["conditions"][0]
        assert (ready["status"] == "True") == (admit(kind, item).errors == [])


@settings(max_examples=150)
@given(st.sampled_from([OPEN_MODEL, BACKEND_RUNTIME, PLAYGROUND, SERVICE]), junk)
def test_anything_at_all(kind: Any, spec: Any) -> None:
    """Hooks and webhook answer for any value of spec."""
    metadata = {"name": "x", "namespace": "team" if kind.resource.namespaced else "", "uid": "u"}
    item = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, "metadata": metadata, "spec": spec}
    assert sync(kind, item)["status"]["conditions"]
    admit(kind, item)
    customize(kind, item)
