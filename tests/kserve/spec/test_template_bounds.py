"""Bounds on the cost of templates: admission and sync enforce the same ones in every field, and name them.

Costs are counted, not timed: steps, actions and bytes of :class:`app.kserve.spec.template.bounds.Meter`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.admission import review
from app.hooks.answer import answer_sync
from app.kserve.operator import OperatorConfig
from app.kserve.spec import presets
from app.kserve.spec.template import bounds
from app.kserve.spec.template.bounds import Meter, RefusedError, TemplateError
from app.kserve.spec.template.data import ServiceData
from app.kserve.spec.template.language import Template
from app.kube.base import Json
from app.kube.objects import ObservedMeta
from app.limits import (
    MAX_ACTIONS,
    MAX_BASES,
    MAX_COMBINED_BYTES,
    MAX_RENDERED_SPEC_BYTES,
    MAX_RENDERED_STRING_BYTES,
    MAX_SPEC_ACTIONS,
    MAX_SPEC_BYTES,
    MAX_STEPS,
    MAX_TEMPLATE_CHARACTERS,
)
from app.settings import Settings
from tests.builders import NOW
from tests.kserve.objects import Cluster, admit, config, kind_of, service

ROOT = Path(__file__).parents[3]
NOTE = {"a": "x" * 200_000}

COSTLY: dict[str, tuple[str, str]] = {
    "one annotation, 4,000 times": ("{{.Annotations}}" * 4000, "actions in one text"),
    "one annotation, 5 times": ("{{.Annotations}}" * 5, "renders to more than"),
    "printed, but not shown": ("{{ if print .Annotations }}{{ end }}" * 100, "steps"),
    "printed in a pipe": ("{{ .Annotations | print | print | print | print | len }}" * 200, "steps"),
    "quoted for a shell": ("{{ ShellQuote (ShellQuote (printf `%q%q` .Annotations .Annotations)) }}", "steps"),
    "compared": ('{{ if eq (index .Annotations "a") (index .Annotations "a") }}{{ end }}' * 100, "steps"),
    "as a format": ('{{ if printf (index .Annotations "a") }}{{ end }}' * 100, "steps"),
    "50,000 actions": ("{{0}}" * 50_000, "131072 bytes"),
    "10,000 actions": ("{{0}}" * 10_000, "actions in one text"),
    "600 nested ifs": ("{{if .Name}}" * 600 + "x" + "{{end}}" * 600, "ifs within each other"),
    "60 nested ifs": ("{{if .Name}}" * 60 + "x" + "{{end}}" * 60, "ifs within each other"),
    "60 nested elses": ("{{if .Unset}}{{else}}" * 60 + "x" + "{{end}}" * 60, "ifs within each other"),
    "20,000 parentheses": ("{{" + "(" * 20_000 + ".Name" + ")" * 20_000 + "}}", "words and signs"),
    "20,000 pipes": ("{{ .Name " + "| print " * 8000 + "}}", "words and signs"),
    "20,000 operands": ("{{ print " + "1 " * 20_000 + "}}", "words and signs"),
    "a number of 5,000 digits": ("{{ print " + "1" * 5000 + " }}", "64 bits"),
    "a number of 5,000 digits with a point": ("{{ print " + "1" * 5000 + ".5 }}", "64 bits"),
    "2**63": ("{{ print 9223372036854775808 }}", "64 bits"),
    "a long text": ("{{ .Name }}" + "x" * MAX_TEMPLATE_CHARACTERS, "characters"),
    "a thousand lines without an end": ("{{ .Name }}\n" * 255 + "{{", "unclosed action"),
    "comments without an end": ("{{/* " + "*/ " * 20_000, "unclosed comment"),
    "spaces after a comment": ("{{ /* */" + " " * 60_000 + "x }}", "unclosed comment"),
    "quotes without an end": ('{{ "' * 16_000, "unclosed action"),
    "spaces": ("{{ -" + " " * 60_000 + "x }}", "unexpected"),
}


def argument(text: str) -> Json:
    return {"template": {"containers": [{"name": "main", "args": [text]}]}}


PLACES: dict[str, Callable[[str], Json]] = {
    "an argument": argument,
    "a variable": lambda text: {"template": {"containers": [{"name": "main", "env": [{"name": "A", "value": text}]}]}},
    "a name": lambda text: {"template": {"containers": [{"name": "main", "env": [{"name": text, "value": "a"}]}]}},
    "a probe": lambda text: {
        "template": {"containers": [{"name": "main", "livenessProbe": {"exec": {"command": [text]}}}]}
    },
    "a label": lambda text: {"labels": {"a": text}},
    "a label's key": lambda text: {"labels": {text: "a"}},
    "an annotation": lambda text: {"annotations": {"a": text}},
    "prefill": lambda text: {"prefill": argument(text)},
    "the scheduler": lambda text: {"router": {"scheduler": argument(text)}},
    "an inline configuration": lambda text: {"router": {"scheduler": {"config": {"inline": {"a": [text]}}}}},
}


OF_EACH_STAGE = ("one annotation, 5 times", "printed, but not shown", "600 nested ifs", "a long text")
"""One text for each stage that refuses: the length, parsing, the steps of rendering, and what it renders to."""
REFUSED = {
    f"{name}-{place}": (*COSTLY[name], PLACES[place])
    for name in COSTLY
    for place in (PLACES if name in OF_EACH_STAGE else ["an argument"])
}
"""Every text in one place, and a text for each stage in every place: all strings are rendered by the same function."""


def message(document: Json) -> str:
    return " ".join(map(str, admit(document).errors))


def ready(cluster: Cluster) -> Json:
    cluster.sync()
    condition = cluster.condition("Ready")
    assert condition is not None
    return condition


@pytest.mark.parametrize(("text", "bound", "place"), REFUSED.values(), ids=list(REFUSED))
def test_admission_and_sync_refuse_with_the_same_bound(text: str, bound: str, place: Callable[[str], Json]) -> None:
    """Each field has the same bounds; children of an existing service are kept."""
    document = service(notes=NOTE, **place(text))
    assert bound in message(document)
    cluster = Cluster(service())
    before = cluster.settle()["children"]
    cluster.parent = document
    assert (ready(cluster)["reason"], cluster.answer["children"]) == ("InvalidSpec", before)
    assert bound in ready(cluster)["message"]
    assert len(json.dumps(cluster.answer["status"])) < 8 * 1024


@pytest.mark.parametrize(("text", "bound", "place"), REFUSED.values(), ids=list(REFUSED))
def test_a_config_cannot_do_it_either(text: str, bound: str, place: Callable[[str], Json]) -> None:
    """The bounds also hold for a config that bypassed admission: its services report the error."""
    shared = config(**place(text))
    if "Annotations" not in text:  # the sample service's annotations are short
        assert bound in message(shared)
    cluster = Cluster(service(notes=NOTE, baseRefs=[{"name": "base"}]), shared)
    condition = ready(cluster)
    assert condition["reason"] == "CombineBaseError"
    assert bound in condition["message"]
    assert len(condition["message"]) < 2000


def test_what_all_bases_render_to_together_is_bounded() -> None:
    """Each config renders to 30 kB, which is allowed; eight of them are too large."""
    shared = [config(f"c{n}", annotations={f"a{n}": "{{ .Annotations }}"}) for n in range(8)]
    for document in shared:
        assert message(document) == ""
    refs = [{"name": document["metadata"]["name"]} for document in shared]
    note = {"a": "x" * 30_000}
    condition = ready(Cluster(service(notes=note, baseRefs=refs), *shared))
    assert (condition["reason"], f"more than {MAX_RENDERED_SPEC_BYTES} bytes" in condition["message"]) == (
        "CombineBaseError",
        True,
    )
    assert ready(Cluster(service(notes=note, baseRefs=refs[:2]), *shared))["reason"] != "CombineBaseError"


def test_the_number_and_the_size_of_bases_are_bounded() -> None:
    """Each base costs a merge."""
    assert admit(service(baseRefs=[{"name": "base"}] * MAX_BASES)).errors == []
    assert "spec.baseRefs: Too many" in message(service(baseRefs=[{"name": "base"}] * (MAX_BASES + 1)))
    large = config(**argument("x" * 100_000))
    condition = ready(Cluster(service(baseRefs=[{"name": "base"}] * 4), large))
    assert (condition["reason"], f"more than {MAX_COMBINED_BYTES} bytes" in condition["message"]) == (
        "CombineBaseError",
        True,
    )


def test_bounds_actions_of_all_strings_together() -> None:
    """Actions of all strings are added; parsing stops at the bound."""
    texts = ["{{ .Name }}" * 100] * (MAX_SPEC_ACTIONS // 100)
    spec: Json = {"template": {"containers": [{"name": "main", "args": texts}]}}
    assert admit(service(**spec)).errors == []
    spec["template"]["containers"][0]["args"] = [*texts, "{{ .Name }}"]
    (error,) = admit(service(**spec)).errors
    assert f"more than {MAX_SPEC_ACTIONS} actions" in str(error)


METADATA = ObservedMeta(name="demo", namespace="ns", annotations=NOTE, labels={f"k{n}": "v" for n in range(5000)})
DATA = ServiceData(METADATA, {"labels": METADATA.labels, "annotations": METADATA.annotations}, OperatorConfig("kserve"))
WORDS = (
    "{{ }} {{- -}} ( ) | .Annotations .Labels .Spec .Labels.K9 .Name if else end print printf index ShellQuote eq lt "
    'or and not len "%v%q" `%s` "a" /* */ 5 99999999999999999999 ChildName'
)
PIECE = st.sampled_from(tuple(WORDS.split())) | st.text(max_size=3)


@given(st.lists(PIECE, max_size=60), st.integers(min_value=1, max_value=300))
def test_no_string_exceeds_its_bounds(pieces: list[str], times: int) -> None:
    """Rendering gives a string within the bounds or a TemplateError, with bounded work."""
    meter = Meter()
    text = " ".join(pieces) * times
    try:
        result = Template(text).render(DATA, meter)
    except TemplateError:
        result = ""
    assert len(result.encode("utf-8", "surrogatepass")) <= max(
        MAX_RENDERED_STRING_BYTES, 0 if "{{" in text else len(text)
    )
    assert meter.steps <= MAX_STEPS + 1 + 200_000 // bounds.STEP


class Counted(str):
    """A string that counts the characters that its searches visit."""

    __slots__ = ()
    looked = 0

    def find(self, sub: str, *place: Any) -> int:
        position = super().find(sub, *place)
        Counted.looked += (len(self) if position < 0 else position) - (place[0] if place else 0)
        return position

    def count(self, sub: str, *place: Any) -> int:
        start, end = place or (0, len(self))
        Counted.looked += end - start
        return super().count(sub, *place)


@pytest.mark.parametrize("line", ["{{0}}", "\n{{0}}", "{{0}}{{/* a */}}"])
def test_reading_is_one_pass(line: str) -> None:
    """The parser visits each character at most four times, for any number of actions."""
    text = Counted(line * (MAX_ACTIONS // line.count("{{")) + "x" * 1000)
    Counted.looked = 0
    assert Template(text).actions == MAX_ACTIONS
    assert Counted.looked <= 4 * len(text)


def test_a_bound_ends_the_work() -> None:
    """Rendering stops once a bound is exceeded, and never holds a larger string."""
    meter = Meter()
    with pytest.raises(RefusedError):
        Template("{{ print .Annotations .Annotations .Annotations .Annotations }}" * 200).render(DATA, meter)
    assert meter.steps <= MAX_STEPS + 1 + 200_000 // bounds.STEP


BAD = ["1e400", "-1e400", "9" * 5000]


@pytest.mark.parametrize("place", ["spec", "metadata"])
@pytest.mark.parametrize("bad", BAD, ids=["1e400", "-1e400", "5,000 digits"])
def test_what_json_does_not_have_in_a_config_is_its_fault(bad: str, place: str) -> None:
    """The hook does not fail; a service that uses the config reports the error."""
    shared = config(**argument("x"))
    if place == "spec":
        shared["spec"]["template"]["x"] = "@@"
    else:
        shared["metadata"]["managedFields"] = ["@@"]
    key = "LLMInferenceServiceConfig.serving.kserve.io/v1alpha2"
    body = json.dumps(
        {
            "parent": service(baseRefs=[{"name": "base"}]),
            "children": {"Deployment.apps/v1": {}, "Service.v1": {}},
            "related": {key: {"default/base": shared}},
            "finalizing": False,
        }
    ).replace('"@@"', bad)
    answer = json.loads(answer_sync(kind_of(service()), body.encode(), Settings(), NOW))
    reasons = {c["reason"] for c in answer["status"]["conditions"] if c["type"] == "Ready"}
    assert reasons == ({"CombineBaseError"} if place == "spec" else {"Progressing"})


def test_the_largest_service_is_judged() -> None:
    """A spec just below the size limit is accepted, one above it is refused."""
    document = service(template={"containers": [{"name": "main", "env": []}]})
    env = [{"name": f"A{n}", "value": "x" * 1000} for n in range(185)]
    document["spec"]["template"]["containers"][0]["env"] = env
    assert len(json.dumps(document["spec"])) < MAX_SPEC_BYTES
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "operation": "CREATE",
            "kind": {"group": "serving.kserve.io", "version": "v1alpha2", "kind": "LLMInferenceService"},
            "object": document,
        },
    }

    def allowed() -> Any:
        return json.loads(review.answer(kind_of(document), json.dumps(body).encode(), Settings()))["response"][
            "allowed"
        ]

    assert allowed()
    env += env[:10]
    assert not allowed()


def _templates(value: Any) -> dict[str, int]:
    """Return the number of actions of each template of the presets."""
    if isinstance(value, presets.PresetText):
        return {str(value): value.template.actions}
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {text: actions for item in items for text, actions in _templates(item).items()}


OURS = _templates(presets.EDITIONS)


@pytest.mark.parametrize(("text", "actions"), OURS.items())
def test_counts_a_presets_string_in_a_users_spec(text: str, actions: int) -> None:
    """Only presets' templates are exempt. A long one with few actions exceeds the limit on bytes first."""
    texts = [text] * (MAX_SPEC_ACTIONS // actions + 1)
    (error,) = admit(service(template={"containers": [{"name": "main", "args": texts}]})).errors
    long = len(json.dumps(texts)) > MAX_SPEC_BYTES
    assert ("Too long" if long else "the spec has more than") in str(error)
