"""Embedded Kubernetes types, checked with the table of their fields."""

from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kube import base, field
from app.kube.base import EmbeddedType
from app.kube.embedded import checks as embedded
from app.kube.embedded.types import TYPES
from app.limits import MAX_ERRORS, MAX_SHOWN_ERRORS, MAX_WARNINGS

PATH = field.Path("spec").child("x")


def check(
    value: Any, type_name: str, path: field.Path, optional: Collection[str] = ()
) -> tuple[list[field.Error], list[field.Advice]]:
    type_check = embedded.TypeCheck()
    type_check.check(value, type_name, path, optional)
    return type_check.errors, embedded.concerning(type_check.warnings, "")


def errors(value: Any, type_name: str, **options: Any) -> list[str]:
    return [str(error) for error in check(value, type_name, PATH, **options)[0]]


def warnings(value: Any, type_name: str) -> list[str]:
    return [str(warning) for warning in check(value, type_name, PATH)[1]]


def wrong(where: str, value: str, words: str) -> str:
    return f"spec.x{where}: Invalid value: {value}: must be {words}"


YES = "(kubectl reads a bare y, n, yes, no, on or off as true or false)"
FULL_POD = {
    "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
    "spec": {
        "containers": [
            {
                "name": "server",
                "image": "example/server:1",
                "args": ["--port", "8080"],
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "T", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
                    {"name": "M", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
                ],
                "envFrom": [{"configMapRef": {"name": "settings"}}],
                "ports": [{"containerPort": 8080, "name": "http"}],
                "resources": {"limits": {"cpu": 2, "memory": "8Gi", "nvidia.com/gpu": "1"}, "requests": {"cpu": 0.5}},
                "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 5},
                "livenessProbe": {"httpGet": {"path": "/health", "port": 8080}},
                "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
                "securityContext": {"runAsUser": 3_000_000_000, "capabilities": {"drop": ["ALL"]}},
                "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
            }
        ],
        "nodeSelector": {"gpu": "a100"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 60}],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
                }
            }
        },
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    },
}
HPA = {
    "maxReplicas": 3,
    "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
    "metrics": [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}},
        {
            "type": "Pods",
            "pods": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "500m"}},
        },
    ],
    "behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}},
}


@pytest.mark.parametrize(
    ("value", "type_name"),
    [
        (FULL_POD, "PodTemplateSpec"),
        (HPA, "HorizontalPodAutoscalerSpec"),
        ({"ports": [{"port": 80, "targetPort": "http"}], "selector": {"a": "b"}}, "ServiceSpec"),
        ({}, "PodSecurityContext"),
        ({"value": None, "name": "A"}, "EnvVar"),
        ({"name": "A", "valueFrom": None}, "EnvVar"),
        ({"failureThreshold": 3.0}, "Probe"),
    ],
)
def test_accepts_what_kubernetes_accepts(value: Any, type_name: str) -> None:
    errors, warnings = check(value, type_name, PATH)
    assert (errors, embedded.concerning(warnings, "")) == ([], [])


@pytest.mark.parametrize(
    ("value", "type_name", "expected"),
    [
        (
            {"failureThreshold": "3"},
            "Probe",
            wrong(".failureThreshold", '"3"', "a whole number; write 3 without quotes"),
        ),
        ({"failureThreshold": True}, "Probe", wrong(".failureThreshold", "true", "a whole number")),
        ({"failureThreshold": 3.5}, "Probe", wrong(".failureThreshold", "3.5", "a whole number")),
        ({"name": "A", "value": 1}, "EnvVar", wrong(".value", "1", 'a string; write "1" in quotes')),
        (
            {"runAsNonRoot": "yes"},
            "SecurityContext",
            wrong(".runAsNonRoot", '"yes"', "true or false; write true without quotes"),
        ),
        ([], "EnvVar", wrong("", "[]", 'an object; write its fields directly below x, without "- "')),
        (None, "EnvVar", wrong("", "null", "an object; its fields are name, value, valueFrom")),
        (
            {"httpGet": []},
            "Probe",
            wrong(".httpGet", "[]", 'an object; write its fields directly below httpGet, without "- "'),
        ),
        ({"name": "c", "env": {}}, "Container", wrong(".env", "{}", "a list; write [] for none")),
        (
            {"name": "c", "env": ["A=1"]},
            "Container",
            wrong(".env[0]", '"A=1"', 'an object; write - {name: A, value: "1"}'),
        ),
        (
            {"name": "c", "args": ["a", 8080]},
            "Container",
            wrong(".args[1]", "8080", 'a string; write "8080" in quotes'),
        ),
        ({"httpGet": {"port": True}}, "Probe", wrong(".httpGet.port", "true", "a whole number")),
        (
            {"limits": {"cpu": True}},
            "ResourceRequirements",
            wrong(".limits[cpu]", "true", f'a string; write "true" in quotes {YES}'),
        ),
        (
            {"limits": ["cpu"]},
            "ResourceRequirements",
            wrong(".limits", '["cpu"]', 'an object; write names and values directly below limits, without "- "'),
        ),
        ({"matchLabels": {"a": 1}}, "LabelSelector", wrong(".matchLabels[a]", "1", 'a string; write "1" in quotes')),
        ({"managedFields": [{"fieldsV1": 1}]}, "ObjectMeta", wrong(".managedFields[0].fieldsV1", "1", "an object")),
        ({"value": "1"}, "EnvVar", "spec.x.name: Required value"),
        ({"name": None}, "EnvVar", "spec.x.name: Required value"),
        ({"name": "c", "ports": [{}]}, "Container", "spec.x.ports[0].containerPort: Required value"),
        (
            {"containerPort": 2**31},
            "ContainerPort",
            wrong(".containerPort", "2147483648", "at most 2147483647"),
        ),
        (
            {"runAsUser": -(2**63) - 1},
            "SecurityContext",
            wrong(".runAsUser", "-9223372036854775809", "at least -9223372036854775808"),
        ),
        (
            {"limits": {"memory": "8 GB"}},
            "ResourceRequirements",
            wrong(".limits[memory]", '"8 GB"', "a quantity, for example 500m or 16Gi; did you mean 8G or 8Gi?"),
        ),
    ],
)
def test_a_mistake_is_an_error_that_says_what_to_write(value: Any, type_name: str, expected: str) -> None:
    assert errors(value, type_name) == [expected]


def test_all_mistakes_are_found_at_once() -> None:
    value = {"containers": [{"image": 1, "env": [{"value": 1}]}], "hostNetwork": "no"}
    assert [str(error.path) for error in check(value, "PodSpec", PATH)[0]] == [
        "spec.x.containers[0].image",
        "spec.x.containers[0].env[0].value",
        "spec.x.containers[0].env[0].name",
        "spec.x.containers[0].name",
        "spec.x.hostNetwork",
    ]


def test_a_field_of_the_type_may_be_optional_at_its_place() -> None:
    assert errors({}, "PodSpec") == ["spec.x.containers: Required value"]
    assert errors({}, "PodSpec", optional={"containers"}) == []


@pytest.mark.parametrize(
    ("value", "type_name", "expected"),
    [
        ({"name": "A", "valeu": "1"}, "EnvVar", 'unknown field "spec.x.valeu", did you mean "value"?'),
        ({"httpget": {}}, "Probe", 'unknown field "spec.x.httpget", did you mean "httpGet"?'),
        ({"qqq": 1}, "Probe", 'unknown field "spec.x.qqq"'),
        (
            {"containers": [], "spec": {"containers": [], "volumes": []}},
            "PodSpec",
            'unknown field "spec.x.spec"; remove this level: containers, volumes must be directly below spec.x',
        ),
        ({"containers": [], "spec": {"other": 1}}, "PodSpec", 'unknown field "spec.x.spec"'),
        ({"containers": [], "spec": {}}, "PodSpec", 'unknown field "spec.x.spec"'),
        ({"a\n\x00": 1}, "Probe", 'unknown field "spec.x.a\\n\\x00"'),
    ],
)
def test_an_unknown_field_is_a_warning(value: Any, type_name: str, expected: str) -> None:
    assert check(value, type_name, PATH) == ([], [expected])


def test_the_number_of_warnings_is_limited() -> None:
    assert len(warnings({f"unknown{i}": 1 for i in range(1000)}, "Probe")) == MAX_WARNINGS


def test_an_unknown_type_raises() -> None:
    assert "EnvVarr" not in TYPES
    with pytest.raises(KeyError):
        check({}, "EnvVarr", PATH)


def test_every_marker_names_a_type_of_the_table() -> None:
    markers = [marker for value in vars(base).values() for marker in getattr(value, "__metadata__", ())]
    names = [marker.name for marker in markers if isinstance(marker, EmbeddedType)]
    assert names
    assert [name for name in names if name not in TYPES] == []


def test_every_type_named_in_the_table_is_in_it() -> None:
    scalars = {"string", "boolean", "int32", "int64", "quantity", "int-or-string", "any"}
    used = {part.type for declared in TYPES.values() for part in declared.values()}
    assert used - scalars <= TYPES.keys()


KEYS = sorted({key for declared in TYPES.values() for key in declared})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner, max_size=6),
    max_leaves=40,
)


@given(JSON, st.sampled_from(sorted(TYPES)))
def test_any_json_is_judged_without_an_exception(value: Any, type_name: str) -> None:
    errors, warnings = check(value, type_name, PATH)
    for error in errors:
        assert str(error).startswith("spec.x")
    for warning in warnings:
        assert warning.isprintable() or not warning.isascii()
        assert "\n" not in warning


def test_the_number_of_errors_is_limited() -> None:
    """The check stops after more errors than are shown."""
    for value, type_name in (
        ([{"x": 1}] * 5000, "EnvVar"),
        ([{"name": 1}] * 5000, "EnvVar"),
        ([{"name": "a", "valueFrom": []}] * 5000, "EnvVar"),
    ):
        findings = embedded.TypeCheck()
        for item in value:
            findings.check(item, type_name, PATH)
        assert findings.full
        assert MAX_SHOWN_ERRORS < len(findings.errors) <= MAX_ERRORS
        assert len(findings.warnings) <= MAX_WARNINGS
