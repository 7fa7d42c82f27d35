"""The CRDs of our types, and the linter that replaces the API server's checks."""

from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta
from pydantic import Field

from app.kube.base import KubeModel
from app.kube.schema.structural import SchemaError, structural_schema
from tests.kube.widget import Status, widget
from tools import structural
from tools.crds import custom_resource_definition

SCHEMA = structural_schema(widget())
SPEC = SCHEMA["properties"]["spec"]["properties"]
STATUS = SCHEMA["properties"]["status"]["properties"]

FIELDS = {
    "modelRef": {"description": "The model to serve.", "type": "string", "minLength": 1},
    "replicas": {
        "description": "How many.",
        "type": "integer",
        "format": "int32",
        "default": 1,
        "minimum": 0,
        "maximum": 10,
    },
    "seed": {"description": "Where chance begins.", "type": "integer", "format": "int64"},
    "ratio": {
        "description": "Share of the memory.",
        "type": "number",
        "minimum": 0,
        "exclusiveMinimum": True,
        "maximum": 1,
    },
    "maxSurge": {
        "description": "How many more during a rollout.",
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    },
    "mode": {"description": "There is but one.", "type": "string", "enum": ["only"]},
    "paused": {"description": "Whether to wait.", "type": "boolean"},
    "note": {"description": "For people.", "type": "string"},
    "quiet": {"description": "Ours.", "type": "string"},
    "labels": {
        "description": "Labels of the pods.",
        "type": "object",
        "additionalProperties": {"type": "string"},
        "maxProperties": 100,
    },
    "env": {
        "description": "Environment.",
        "type": "array",
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "x-kubernetes-list-type": "atomic",
    },
    "probe": {
        "description": "Tells whether it lives.",
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    },
    "anything": {"description": "Passed on.", "type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "since": {"description": "Not before.", "type": "string", "format": "date-time"},
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_is_written_as_the_api_server_wants_it(name: str) -> None:
    assert SPEC[name] == FIELDS[name]


def test_references_are_inlined_and_the_field_keeps_its_own_description() -> None:
    assert SPEC["main"]["description"] == "The first part."
    assert SPEC["main"]["required"] == ["name"]
    assert SPEC["main"]["properties"]["shape"]["default"] == "round"
    assert "description" not in SPEC["parts"]["items"]


def test_a_type_within_itself_ends_in_an_open_object() -> None:
    inner = SPEC["main"]["properties"]["parts"]["items"]
    assert inner == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def test_docstrings_for_programmers_are_not_in_the_schema() -> None:
    assert "Programmers" not in str(SCHEMA)


def test_conditions_are_a_map_by_type_with_the_fields_every_condition_has() -> None:
    assert STATUS["conditions"]["x-kubernetes-list-type"] == "map"
    assert STATUS["conditions"]["x-kubernetes-list-map-keys"] == ["type"]
    assert STATUS["conditions"]["items"]["required"] == ["type", "status", "reason", "message", "lastTransitionTime"]
    assert STATUS["conditions"]["items"]["properties"]["lastTransitionTime"]["format"] == "date-time"


def test_every_status_has_an_observed_generation_and_no_defaults() -> None:
    assert STATUS["observedGeneration"]["format"] == "int64"
    assert "default" not in str(STATUS)
    assert "required" not in SCHEMA["properties"]["status"]


def test_spec_is_required_where_the_kind_says_so() -> None:
    assert SCHEMA["required"] == ["spec"]
    assert "required" not in structural_schema(widget(spec_required=False))


def test_the_definition_names_the_kind_its_columns_and_subresources() -> None:
    spec = custom_resource_definition(widget())["spec"]
    assert spec["names"] == {
        "kind": "Widget",
        "listKind": "WidgetList",
        "plural": "widgets",
        "singular": "widget",
        "shortNames": ["wdg"],
    }
    assert spec["scope"] == "Namespaced"
    assert spec["conversion"] == {"strategy": "None"}
    version = spec["versions"][0]
    assert version["subresources"] == {
        "status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
    }
    assert version["additionalPrinterColumns"] == [
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp", "priority": 1},
    ]


def test_a_cluster_scoped_kind() -> None:
    assert custom_resource_definition(widget(namespaced=False))["spec"]["scope"] == "Cluster"


class Mute(KubeModel):
    field_name: str | None = None


class Torn(KubeModel):
    field_name: int | str | None = Field(default=None, description="One or the other.")


class MuteStatus(msgspec.Struct, rename="camel"):
    phase: str | None = None


class OddStatus(msgspec.Struct, rename="camel"):
    pair: Annotated[tuple[int, str] | None, Meta(description="Two.")] = None


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"spec": Mute}, r"spec\.fieldName: describe the field"),
        ({"spec": Torn}, r"spec\.fieldName: a CRD has no unions"),
        ({"status": MuteStatus}, r"status\.phase: describe the field"),
        ({"status": OddStatus}, r"status\.pair: a CRD cannot say prefixItems"),
    ],
)
def test_what_a_crd_cannot_say_is_refused_with_its_place(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        structural_schema(widget(**changes))


# The linter.


def lint(field: dict[str, Any], place: str = "spec") -> list[str]:
    """Return the findings about one field of a valid CRD."""
    crd = custom_resource_definition(widget())
    root = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    root["properties"][place]["properties"]["odd"] = {"description": "Odd.", **field}
    return structural.lint(crd)


def test_our_own_definition_is_structural() -> None:
    assert structural.lint(custom_resource_definition(widget())) == []


@pytest.mark.parametrize(
    ("field", "finding"),
    [
        ({}, "type None"),
        ({"type": "null"}, "type 'null'"),
        ({"type": "string", "description": ""}, "no description"),
        ({"$ref": "#/$defs/X", "type": "string"}, "$ref is not allowed here"),
        ({"type": "string", "title": "Odd"}, "title is not allowed here"),
        ({"type": "string", "nullable": True}, "nullable is not allowed here"),
        ({"type": "string", "minimum": 1}, "minimum is not allowed here"),
        ({"type": "string", "anyOf": [{"type": "string"}]}, "anyOf is only for int-or-string"),
        ({"type": "string", "x-kubernetes-int-or-string": True}, "int-or-string has no type"),
        ({"type": "array"}, "an array needs items"),
        ({"type": "array", "items": {}}, "spec.odd[]: type None"),
        ({"type": "object"}, "loses everything to pruning"),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, "spec.odd.a: no description"),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}},
            "exclude each other",
        ),
        ({"type": "object", "additionalProperties": {"type": "string"}, "required": ["a"]}, "requires a"),
        ({"type": "string", "format": "int32"}, "format 'int32' of a string"),
        ({"type": "integer", "exclusiveMinimum": 1}, "exclusiveMinimum is a flag"),
        ({"type": "string", "enum": []}, "an enum needs values"),
        ({"type": "string", "enum": ["a"], "default": "b"}, "default 'b' is not in the enum"),
        ({"type": "integer", "maximum": 3, "default": 4}, "out of bounds"),
        ({"type": "string", "pattern": "^a$", "default": "b"}, "does not match the pattern"),
        ({"type": "string", "pattern": "(?=a)b"}, "does not mean the same to Go"),
        ({"type": "string", "pattern": r"^\d+$"}, "does not mean the same to Go"),
        ({"type": "string", "pattern": r"(a)\1"}, "does not mean the same to Go"),
        ({"type": "string", "pattern": "("}, "pattern: missing )"),
        ({"type": "string", "x-kubernetes-list-type": "set"}, "list type 'set' of a string"),
        ({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map"}, "its keys go together"),
        (
            {
                "type": "array",
                "items": {"type": "object", "properties": {"name": {"type": "string", "description": "Name."}}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "neither required nor defaulted",
        ),
        ({"type": "string", "x-kubernetes-validations": [{"message": "no rule"}]}, "a validation needs a rule"),
    ],
)
def test_the_linter_finds(field: dict[str, Any], finding: str) -> None:
    findings = lint(field)
    assert any(finding in message for message in findings), findings


def test_the_linter_wants_no_defaults_in_a_status() -> None:
    assert lint({"type": "integer", "default": 1}, "status") == ["status.odd: no field of a status has a default"]


def test_the_linter_wants_a_status_subresource() -> None:
    crd = custom_resource_definition(widget())
    del crd["spec"]["versions"][0]["subresources"]
    assert structural.lint(crd) == ["subresources: status is missing; without it Metacontroller ignores the kind"]


def test_the_status_type_used_here_is_readable() -> None:
    """Otherwise the tests of its schema would mean nothing."""
    assert msgspec.json.decode(b'{"phase":"Ready","replicas":2}', type=Status).replicas == 2
