"""Rules apply to rendered templates: a value gets the same verdict whether it is written or rendered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.kube.base import Json
from tests.hookcalls import unnoted
from tests.kserve.objects import Cluster, admit, config, service


def container(**fields: Any) -> Json:
    return {"template": {"containers": [{"name": "main", **fields}]}}


def named(text: str) -> Json:
    return {"template": {"containers": [{"name": "main"}, {"name": text, "image": "x"}]}}


PLACES: dict[str, tuple[Callable[[str], Json], str]] = {
    "label, reserved": (lambda key: {"labels": {key: "a"}}, "controller-uid"),
    "annotation, reserved": (lambda key: {"annotations": {key: "a"}}, "metacontroller.k8s.io/x"),
    "prefill label, reserved": (lambda key: {"prefill": {"labels": {key: "a"}}}, "controller-uid"),
    "scheduler label, reserved": (lambda key: {"router": {"scheduler": {"labels": {key: "a"}}}}, "controller-uid"),
    "label that selects": (lambda key: {"labels": {key: "a"}}, "app.kubernetes.io/name"),
    "label, no key": (lambda key: {"labels": {key: "a"}}, "a/b/c"),
    "label, no value": (lambda value: {"labels": {"a": value}}, "no label"),
    "container, duplicate": (named, "main"),
    "variable, duplicate": (lambda name: container(env=[{"name": "A"}, {"name": name}]), "A"),
    "quantity": (lambda value: container(resources={"limits": {"cpu": value}}), "many"),
    "account": (lambda name: {"template": {"serviceAccountName": name}}, "No Name"),
    "restart policy": (lambda value: {"template": {"restartPolicy": value}}, "Never"),
    "pull policy": (lambda value: container(imagePullPolicy=value), "Often"),
    "address": (lambda value: {"model": {"uri": value}}, "nowhere"),
    "sound": (lambda value: container(args=[value]), "a value"),
}

WAYS = {
    "print": "{{{{ print `{}` }}}}",
    "a literal": "{{{{ `{}` }}}}",
    "a pipe": "{{{{ `{}` | printf `%s` }}}}",
    "a condition": "{{{{ if .Name }}}}{}{{{{ end }}}}",
    "in parts": "{{{{/* */}}}}{}",
}


def verdict(document: Json) -> tuple[list[Any], list[str]]:
    judged = admit(document)
    return [(str(error.path), error.type) for error in judged.errors], [*judged.warnings]


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
@pytest.mark.parametrize(("place", "text"), PLACES.values(), ids=list(PLACES))
def test_written_and_rendered_are_judged_alike(place: Callable[[str], Json], text: str, way: str) -> None:
    """Compares admission's verdict, the reason of ``Ready``, and the children of a sync."""
    written, rendered = service(**place(text)), service(**place(way.format(text)))
    plain = verdict(written)
    if "many" not in text:  # the schema validates a quantity before rendering
        assert verdict(rendered) == plain
    assert bool(verdict(rendered)[0]) == bool(plain[0])
    as_written, as_rendered = Cluster(written), Cluster(rendered)
    as_written.sync()
    as_rendered.sync()
    assert as_rendered.says("Ready") == as_written.says("Ready")
    assert unnoted(as_rendered.answer["children"]) == unnoted(as_written.answer["children"])


@pytest.mark.parametrize(("place", "text"), PLACES.values(), ids=list(PLACES))
def test_what_a_base_has_a_part_in_is_judged_when_it_is_known(place: Callable[[str], Json], text: str) -> None:
    """Admission accepts a template of the merged spec; sync treats its value like a written one."""
    base = config(model={"name": text})
    document = service(
        uri=None, baseRefs=[{"name": "base"}], **{"model": {"uri": "hf://a/b"}, **place("{{ .Spec.Model.Name }}")}
    )
    cluster = Cluster(document, base)
    cluster.sync()
    children = cluster.answer["children"]
    for child in children:
        for labels in (child["metadata"].get("labels", {}), _pod_labels(child)):
            assert not any(key == "controller-uid" or key.startswith("metacontroller") for key in labels)
    if text in ("controller-uid", "metacontroller.k8s.io/x", "Never", "Often", "No Name"):
        assert (cluster.says("Ready"), children) == ("CombineBaseError", [])


def _pod_labels(child: Json) -> Json:
    metadata = child.get("spec", {}).get("template", {}).get("metadata", {})
    return {**metadata.get("labels", {}), **metadata.get("annotations", {})}


CONTROLS = ["\x1b[31m", "\x00", "\x7f", "\x9b", "\r\x08"]


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize(
    "text",
    [
        "{{ .Annotations }}",
        '{{ index .Annotations "a" }}',
        '{{ printf "%q" .Annotations }}',
        "{{ ShellQuote .Annotations }}",
    ],
)
def test_control_characters_do_not_come_in_through_annotations(text: str, control: str) -> None:
    """This covers strings of the service and of a config that it uses."""
    notes = {"a": f"x{control}y"}
    document = service(notes=notes, **container(args=[text]))
    (error,) = admit(document).errors
    assert "control characters" in str(error)
    cluster = Cluster(document)
    cluster.sync()
    assert (cluster.says("Ready"), cluster.answer["children"]) == ("InvalidSpec", [])
    cluster = Cluster(service(notes=notes, baseRefs=[{"name": "base"}]), config(**container(args=[text])))
    cluster.sync()
    assert (cluster.says("Ready"), cluster.answer["children"]) == ("CombineBaseError", [])


@pytest.mark.parametrize("key", ["{{ print `a` }}", "{{ `a` }}"])
def test_two_keys_do_not_become_one(key: str) -> None:
    """It would be undefined which value wins."""
    (error,) = admit(service(labels={"a": "1", key: "2"})).errors
    assert "a key that exists already" in str(error)


@pytest.mark.parametrize("reserved", ["controller-uid", "metacontroller.k8s.io/x"])
def test_a_config_cannot_bring_reserved_keys(reserved: str) -> None:
    """Neither written nor rendered, and not in a config that bypassed admission."""
    for key in (reserved, f"{{{{ print `{reserved}` }}}}", f"{{{{ if .Name }}}}{reserved}{{{{ end }}}}"):
        shared = config(labels={key: "a"})
        assert (admit(shared).errors != []) is (".Name" not in key)
        cluster = Cluster(service(baseRefs=[{"name": "base"}]), shared)
        cluster.sync()
        assert (cluster.says("Ready"), cluster.answer["children"]) == ("CombineBaseError", [])


NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False, width=16)
TEXTS = st.sampled_from(["", "a", "{{ .Name }}", "{{ print `a` }}"])
KEYS = st.sampled_from(["a", "name", "emptyDir", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.no_cover
@pytest.mark.parametrize("place", ["template", "worker", "prefill", "scheduler", "config"])
@example(value=[[{"a": None, "name": 0}, {"a": None, "name": 0}]])
@example(value=[None, {"name": False}, {"name": False}])
@given(value=JSON)
def test_what_is_unknown_is_passed_on_or_refused_but_never_a_failure(place: str, value: Any) -> None:
    """Sync reports an error exactly if admission does, for any value, including nulls in nested lists."""
    pod = {"a": value, "containers": [{"name": "main", "image": "x", "b": value}]}
    spec: Json = {"template": pod} if place in ("template", "config") else {}
    if place == "worker":
        spec = {"worker": pod, "parallelism": {"data": 2, "dataLocal": 1}}
    elif place == "prefill":
        spec = {"prefill": {"template": pod}}
    elif place == "scheduler":
        spec = {"router": {"scheduler": {"template": pod}}}
    document = service(baseRefs=[{"name": "base"}]) if place == "config" else service(**spec)
    cluster = Cluster(document, *([config(**spec)] if place == "config" else []))
    cluster.sync()
    if place != "config":
        assert (cluster.says("Ready") in ("InvalidSpec", "CombineBaseError")) is bool(admit(document).errors)


VARIABLES = [{"name": f"A{n}", "value": "x" * 1000} for n in range(300)]
LARGE: dict[str, Json] = {
    "variables": container(env=VARIABLES),
    "one text": container(args=["x" * 200_000]),
    "many containers": {"template": {"containers": [{"name": f"c{n}", "image": "x"} for n in range(10_000)]}},
    "labels of leader and worker": {
        "labels": {f"k{n}": "y" * 50 for n in range(2500)},
        "worker": {"containers": [{"name": "main"}]},
        "template": {"containers": [{"name": "main"}]},
        "parallelism": {"data": 2, "dataLocal": 1},
    },
    "rendered": container(args=["{{ .Annotations }}"], env=VARIABLES[:150]),
    "many bases": {"baseRefs": [{"name": "base"}] * 20_000},
}


@pytest.mark.parametrize("spec", LARGE.values(), ids=list(LARGE))
def test_a_child_that_could_not_be_stored_is_refused_at_apply(spec: Json) -> None:
    """Admission and sync refuse it alike."""
    document = service(notes={"a": "x" * 120_000}, **spec)
    assert [error.type.value for error in admit(document).errors] == ["FieldValueTooLong"]
    cluster = Cluster(document)
    cluster.sync()
    assert cluster.says("Ready") == "InvalidSpec"
