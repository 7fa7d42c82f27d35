"""Annotations about devices are refused as KServe v0.20 refuses them."""

from __future__ import annotations

import pytest

from tests.kserve.objects import fields, service

DRA = "serving.kserve.io/exp-dra-"


@pytest.mark.parametrize(
    ("annotations", "wrong"),
    [
        ({"device-class": "gpu.example.com"}, []),
        ({"device-class": "a.b", "device-count": "2", "cel-selector": "true"}, []),
        ({"device-class": "Not Ok"}, [("device-class", "Invalid")]),
        ({"device-count": "2"}, [("device-class", "Required")]),
        ({"device-class": "a.b", "device-count": "0"}, [("device-count", "Invalid")]),
        ({"device-class": "a.b", "device-count": "two"}, [("device-count", "Invalid")]),
        ({"device-class": "a.b", "cel-selector": " "}, [("cel-selector", "Invalid")]),
    ],
)
def test_rules(annotations: dict[str, str], wrong: list[tuple[str, str]]) -> None:
    parent = service(notes={DRA + key: value for key, value in annotations.items()})
    assert fields(parent) == [(f"metadata.annotations[{DRA}{key}]", type_) for key, type_ in wrong]


def test_the_older_version_has_no_such_rules() -> None:
    parent = service(notes={f"{DRA}device-count": "2"})
    assert fields({**parent, "apiVersion": "serving.kserve.io/v1alpha1"}) == []
