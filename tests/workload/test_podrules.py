"""The table of Kubernetes' rules for pods, and the traversal that applies it."""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.embedded_types import TYPES
from app.kube.field import Path
from app.workload import podrules


def errors(place: str, value: Any) -> list[str]:
    return [str(error) for error in podrules.check(place, value, Path("spec"))]


def reachable(type_name: str) -> set[str]:
    """Return the types and fields below a type that the traversal visits."""
    found = {type_name}
    for name, part in TYPES[type_name].items():
        place = f"{type_name}.{name}"
        found.add(place)
        if podrules._place(place).type:
            found |= reachable(part.type)
    return found


def test_every_rule_is_reached_from_a_pod() -> None:
    assert podrules.RULES.keys() <= reachable("PodSpec")


@pytest.mark.parametrize(
    ("place", "value", "error"),
    [
        (
            "EnvVarSource.secretKeyRef",
            {"name": "a"},
            "spec.key: Required value: write the key of the object that is meant",
        ),
        (
            "PodSpec.topologySpreadConstraints",
            [{"topologyKey": "a"}],
            "spec[0].maxSkew: Invalid value: 0: must be at least 1",
        ),
        (
            "Container.lifecycle",
            {"preStop": {"sleep": {"seconds": -1}}},
            "spec.preStop.sleep.seconds: Invalid value: -1: must be at least 0",
        ),
    ],
)
def test_an_absent_required_field_has_the_zero_value(place: str, value: Any, error: str) -> None:
    assert error in errors(place, value)


def test_null_counts_as_absent() -> None:
    assert errors("PodSpec.tolerations", None) == []
    assert errors("Container.env", [None, {"name": "A", "value": None, "valueFrom": None}]) == []


def test_checks_selectors_of_volume_claim_templates() -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Ti"}}}
    template = {"spec": {**claim, "selector": {"matchLabels": {"zone": "a b"}}}}
    volume = {"name": "cache", "ephemeral": {"volumeClaimTemplate": template}}
    [error] = errors("PodSpec.volumes", [volume])
    assert error.startswith("spec[0].ephemeral.volumeClaimTemplate.spec.selector.matchLabels[zone]: Invalid value")


def test_requires_the_size_and_the_access_modes_of_volume_claim_templates() -> None:
    volume = {"name": "cache", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "nvme"}}}}
    assert [
        error.partition(": Required")[0].rpartition("spec.")[2] for error in errors("PodSpec.volumes", [volume])
    ] == [
        "accessModes",
        "resources.requests.storage",
    ]


def test_a_volume_accepts_fields_that_a_variable_does_not() -> None:
    reference = {"fieldPath": "metadata.labels"}
    volume = {"name": "info", "downwardAPI": {"items": [{"path": "labels", "fieldRef": reference}]}}
    assert errors("PodSpec.volumes", [volume]) == []
    assert len(errors("Container.env", [{"name": "A", "valueFrom": {"fieldRef": reference}}])) == 1
