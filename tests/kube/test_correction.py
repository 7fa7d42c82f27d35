"""Suggestions in messages about invalid values."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.families import RESOURCES
from app.kube import field, quantity
from app.kube.base import FORMS
from app.kube.correction import Members, wrong_type
from app.kube.modelfields import unknown_fields
from app.kube.reading.decode import decode_document
from app.kube.schema.structural import structural_schema
from app.kube.spelling import closest_name, nearest

ENV = Members(("name", "value", "valueFrom"), ("name",))


@pytest.mark.parametrize(
    ("value", "wanted", "words"),
    [
        ("4k", "integer", "write 4000 or write 4096"),
        (" 2 ", "integer", "write 2 without quotes"),
        ("8,192", "integer", "write 8192"),
        ("1_000_000", "integer", "write 1000000"),
        ("{{ .Values.replicas }}", "integer", "this is an unrendered template"),
        ([3], "integer", "write x: 3, without a list"),
        ("off", "boolean", "write false without quotes"),
        (1, "boolean", "write true without quotes"),
        (True, "string", 'write "true" in quotes'),
        (1.5, "string", 'write "1.5" in quotes'),
        (1.5, "memory", "write x: 1.5Gi"),
        (2**20, "memory", 'write "1048576" in quotes'),
        (-1, "memory", 'write "-1" in quotes'),
        (True, "memory", 'write "true" in quotes'),
        ({"name": "m"}, "string", "write x: m, the name alone"),
        ({"url": "https://a"}, "string", "write x: https://a, without url"),
        ("$REPLICAS", "integer", "this is an unrendered template"),
        ("<replicas>", "integer", "this is an unrendered template"),
        ("--a 'b c'", "array", 'write x: ["--a","b c"]'),
        (8080, "array", "write x: [8080]"),
    ],
)
def test_a_correction(value: Any, wanted: str, words: str) -> None:
    """The message has the value and the correction."""
    error = wrong_type(field.Path("x"), value, wanted)
    assert words in error.body
    assert error.body.startswith(f"Invalid value: {field.render(value)}: must be ")


def test_labels_of_a_selector_that_is_a_map() -> None:
    error = wrong_type(field.Path("selector").key("matchLabels"), {"app": "a", "tier": "b"}, "string")
    assert error.body.endswith("remove this level: the labels must be directly below the selector")


@pytest.mark.parametrize(
    ("value", "wanted", "suggested"),
    [
        (" 2 ", "integer", "2"),
        (True, "string", '"true"'),
        (1.5, "memory", "1.5Gi"),
        ({}, "array", "[]"),
        ({"name": "m"}, "string", "m"),
        ("8,192", "integer", "8192"),
        ("8,1", "integer", None),
        ("4k", "integer", None),
        ("text", "integer", None),
    ],
)
def test_the_value_to_write_is_data(value: Any, wanted: str, suggested: str | None) -> None:
    assert wrong_type(field.Path("x"), value, wanted).suggested == ((suggested,) if suggested else ())


@pytest.mark.parametrize(
    ("value", "wanted", "words"),
    [
        ({"A": "1"}, "array", 'write each entry as an item with "- name: A" and "value:" below it'),
        ({"name": "A"}, "array", 'begin each item with "- ", as in "- name: A"'),
        ("A", "array", 'write it as an item: "- name: A"'),
        ("A", "object", "write x: {name: A}"),
        (3, "object", "write x: {name: 3}"),
        ([{"name": "A"}], "object", 'write its fields directly below x, without "- "'),
        ([{"models": []}], "object", "must be an object; its fields are name, value, valueFrom"),
        (True, "object", "its fields are name, value, valueFrom"),
    ],
)
def test_a_correction_names_the_fields(value: Any, wanted: str, words: str) -> None:
    assert words in wrong_type(field.Path("x"), value, wanted, ENV).body


@pytest.mark.parametrize(
    ("value", "members", "words"),
    [
        (True, Members(("refs",)), "write x: {} for the defaults, or its fields: refs"),
        (False, Members(("refs",)), "its fields are refs"),
        ("a/b", Members(("name", "modelID"), (), ("name",)), "its fields are name, modelID"),
        (8080, Members(("hostPort", "containerPort"), ("containerPort",)), "write x: {containerPort: 8080}"),
    ],
)
def test_a_scalar_in_place_of_an_object_names_the_field_it_belongs_to(value: Any, members: Members, words: str) -> None:
    assert wrong_type(field.Path("x"), value, "object", members).body.endswith(words)


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("GGUF", ("gguf", "mlx"), "gguf"),
        ("model_ref", ("replicas", "modelRef"), "modelRef"),
        ("nvidia", ("amd", "arm"), ""),
        ("ClusterIp", ("ClusterIP", "NodePort"), "ClusterIP"),
        ("", ("a",), ""),
    ],
)
def test_suggests_the_name_that_is_meant(word: str, known: tuple[str, ...], meant: str) -> None:
    """Names that differ in case or punctuation come first, then the closest ones."""
    assert nearest(word, known) == meant


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("replica", "replicas", True),
        ("rpelicas", "replicas", True),
        ("maxSurgee", "maxsurge", True),
        ("--max_model_length", "--max-model-len", False),
        ("--max-model-lne", "--max-model-len", True),
        ("--mx-model-ln", "--max-model-len", True),
        ("--mx-modl-ln", "--max-model-len", False),
        ("fever", "fewar", False),
        ("fewer", "fewar", True),
        ("swapin-q", "swaping-", True),
        ("-tp4", "-tp2", False),
        ("a", "b", False),
        ("", "b", True),
    ],
)
def test_suggests_a_name_within_a_typing_error(name: str, known: str, meant: bool) -> None:
    assert closest_name(name, [known, "another-one"]) == (known if meant else "")


@given(st.text("ab-1", max_size=14), st.text("ab-1", max_size=14))
def test_two_slips_are_a_typing_error_of_long_names_only(name: str, known: str) -> None:
    """The search leaves most names out before it counts slips; none that is near enough is among them."""
    slips = 2 if len(name) >= 8 else 1
    meant = name.count("1") == known.count("1") and _slips(name, known) <= slips and (len(name) != 1 or name in known)
    assert closest_name(name, [known]) == (known if meant else "")


@cache
def _slips(name: str, other: str) -> int:
    """Return the distance of two strings by its definition, from their ends."""
    if not name or not other:
        return len(name) + len(other)
    ways = [_slips(name[:-1], other) + 1, _slips(name, other[:-1]) + 1]
    ways.append(_slips(name[:-1], other[:-1]) + (name[-1] != other[-1]))
    if name[-2:] == other[-2:][::-1] and len(name) > 1:
        ways.append(_slips(name[:-2], other[:-2]) + 1)
    return min(ways)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("4 GB", "4G or 4Gi"),
        ("500 m", "500m"),
        ("4GiB", "4Gi"),
        ("16gi", "16Gi"),
        ("2 cores", "2"),
        ("1,5", "1.5"),
        ("“2”", "2"),
        ("x", ""),
    ],
)
def test_the_quantity_that_is_meant(text: str, meant: str) -> None:
    assert quantity.suggestion(text) == (f"; did you mean {meant}?" if meant else "")
    with pytest.raises(quantity.QuantityError):
        quantity.parse(text)


def patterns(node: Any) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(patterns, node))
    if not isinstance(node, dict):
        return set()
    pattern = (
        {node["pattern"]}
        if isinstance(node.get("pattern"), str) and not node.get("x-kubernetes-int-or-string")
        else set()
    )
    return pattern.union(*map(patterns, node.values()))


def test_every_pattern_has_words() -> None:
    """Messages show descriptions instead of regular expressions."""
    used = set().union(*(patterns(structural_schema(resource)["properties"]["spec"]) for resource in RESOURCES))
    assert used
    assert used <= FORMS.keys()


@pytest.mark.parametrize(
    ("kind", "spec", "words"),
    [
        ("InferenceService", {"modelRef": "m", "env": ["A=1"]}, 'write - {name: A, value: "1"}'),
        ("InferenceService", {"modelRef": "m", "imagePullSecrets": ["regcred"]}, "write - name: regcred"),
        ("LLMInferenceService", {"model": "hf://x/y"}, "write model: {uri: hf://x/y}"),
        ("LLMInferenceService", {"containers": []}, 'did you mean "template.containers"?'),
        ("Playground", {"modelName": "opt"}, 'did you mean "modelClaim.modelName"?'),
        ("OpenModel", {"familyName": "f", "source": {"modelHub": "a/b"}}, "its fields are name, modelID, "),
    ],
)
def test_the_fields_of_every_object_in_place_of_a_scalar_are_known(kind: str, spec: dict[str, Any], words: str) -> None:
    """Fields of our own types and of embedded ones are suggested."""
    resource = next(resource for resource in RESOURCES if resource.kind == kind)
    _, errors = decode_document(spec, resource.spec)
    unknown = unknown_fields(spec, resource.spec, field.Path("spec"))
    assert any(words in text for text in [*map(str, errors), *unknown])


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("llama3-405b", ""),
        ("llama-9b", ""),
        ("llama-8", "llama-8b"),
        ("lama-8b", "llama-8b"),
        ("llmaa-8b", "llama-8b"),
        ("LLama_8b", "llama-8b"),
        ("qwen-intsruc", "qwen-instruct"),
        ("qwen", ""),
        ("instruct", ""),
        ("cat", "chat"),
        ("hta", ""),
        ("", ""),
    ],
)
def test_names_of_users_are_suggested_within_a_typing_error(name: str, meant: str) -> None:
    """A name with other digits is another model and is not suggested."""
    assert closest_name(name, ("llama-8b", "llama3-8b", "qwen-instruct", "chat")) == meant
