"""Admission reviews: the response has the uid, all errors, and warnings with suggestions (HTTP-1, HTTP-6.3)."""

from typing import Any

import orjson
import pytest

from app.admission import review
from app.admission.protocol import creation
from app.errors import ProtocolError
from app.kube.names import ANNOTATIONS_MAX
from app.limits import MAX_WARNING_CHARACTERS
from app.llmaz.kinds import KINDS as LLMAZ
from app.settings import Settings
from tests import hookcalls
from tests.widgets import WIDGET, widget

SETTINGS = Settings()


def body(spec: Any = None, old: Any = None, **over: Any) -> dict[str, Any]:
    request = {
        "uid": "r-1",
        "operation": "UPDATE" if old is not None else "CREATE",
        "kind": {"group": "example.dev", "version": "v1", "kind": "Widget"},
        "name": "w",
        "namespace": "ns",
        "object": widget(spec),
        "oldObject": None if old is None else widget(old),
        **over,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def ask(document: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = orjson.loads(review.answer(WIDGET, orjson.dumps(document), SETTINGS))["response"]
    return answer


def causes(answer: dict[str, Any]) -> list[tuple[str, str]]:
    return [(cause["field"], cause["reason"]) for cause in answer["status"]["details"]["causes"]]


def test_allows_a_valid_object() -> None:
    """The response has only `uid` and `allowed`."""
    assert ask(body()) == {"uid": "r-1", "allowed": True}


def test_reports_all_errors_at_once() -> None:
    """They are in the causes and in the message, because kubectl prints only one of the two."""
    answer = ask(body({"size": "x", "replicas": 99, "ports": [{"number": 0}]}))
    assert not answer["allowed"]
    assert (answer["status"]["code"], answer["status"]["reason"]) == (422, "Invalid")
    fields = [path for path, _ in causes(answer)]
    assert fields == ["spec.size", "spec.replicas", "spec.ports[0].number"]
    assert all(path in answer["status"]["message"] for path in fields)
    assert answer["status"]["message"].startswith('Widget.example.dev "w" is invalid: [')


def test_a_denial_is_a_status_as_the_api_server_writes_it() -> None:
    """Clients decode it: client-go makes an error of reason Invalid of it, and kubectl prints the causes."""
    answer = ask(body(object={**widget({"size": "x"}), "metadata": {}}, name="", namespace=""))
    size = 'Unsupported value: "x": supported values: "small", "large"'
    name = "Required value: name or generateName is required"
    assert answer == {
        "uid": "r-1",
        "allowed": False,
        "status": {
            "status": "Failure",
            "code": 422,
            "reason": "Invalid",
            "message": f'Widget.example.dev "" is invalid: [metadata.name: {name}, spec.size: {size}]',
            "details": {
                "group": "example.dev",
                "kind": "Widget",
                "name": "",
                "causes": [
                    {"reason": "FieldValueRequired", "message": name, "field": "metadata.name"},
                    {"reason": "FieldValueNotSupported", "message": size, "field": "spec.size"},
                ],
            },
        },
    }


def test_a_review_that_contradicts_itself_is_a_bad_request() -> None:
    answer = review.answer(WIDGET, orjson.dumps(body(operation="PATCH")), SETTINGS)
    assert orjson.loads(answer) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": "r-1",
            "allowed": False,
            "status": {"status": "Failure", "code": 400, "reason": "BadRequest", "message": "unknown operation"},
        },
    }


def test_an_answer_has_the_facts_for_metrics_and_the_log() -> None:
    """The uid, the number of warnings, and the types of a denial's errors."""
    facts = [
        review.answer_with_facts(WIDGET, orjson.dumps(document), SETTINGS)
        for document in (
            body({"size": "small", "replica": 2}),
            body({"size": "x", "minimum": 5}),
            body(operation="PATCH"),
        )
    ]
    assert {answer.uid for answer in facts} == {"r-1"}
    assert [(answer.allowed, answer.warnings, sorted(answer.reasons)) for answer in facts] == [
        (True, 1, []),
        (False, 0, ["FieldValueInvalid", "FieldValueNotSupported"]),
        (False, 0, ["BadRequest"]),
    ]


def test_a_new_object_is_reviewed_as_the_api_server_asks() -> None:
    """The command and the service's first answers ask about objects that no API server sent."""
    made = creation(WIDGET.resource, {**widget(), "metadata": {"name": "w", "namespace": "ns", "uid": "r-1"}})
    wanted = body(object={**widget(), "metadata": {"name": "w", "namespace": "ns", "uid": "r-1"}})
    del wanted["request"]["oldObject"]
    assert orjson.loads(made) == wanted


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"size": "x", "minimum": 5}, ["spec.size", "spec.minimum"]),
        ({"minimum": 5}, ["spec.size", "spec.minimum"]),
        ({"size": "small", "minimum": 5, "ports": [{"number": 0}]}, ["spec.ports[0].number", "spec.minimum"]),
        ({"size": "small", "minimum": 5, "ports": [{}]}, ["spec.ports[0].number", "spec.minimum"]),
        ({"size": "small", "minimum": "x"}, ["spec.minimum"]),
    ],
)
def test_mistakes_of_both_layers_together(spec: dict[str, Any], fields: list[str]) -> None:
    """Rules across fields apply to the parts that have the right types."""
    assert [path for path, _ in causes(ask(body(spec)))] == fields


def test_a_rule_about_a_list_waits_until_its_items_are_right() -> None:
    """Without the item of the wrong type the list would be empty, which is not what the user wrote."""
    playground = next(kind for kind in LLMAZ if kind.resource.kind == "Playground")
    document = {
        "apiVersion": playground.resource.api_version,
        "kind": "Playground",
        "metadata": {"name": "chat", "namespace": "team"},
        "spec": {"modelClaims": {"models": [{"name": 5}]}},
    }
    errors = hookcalls.admit(playground, document).errors
    assert [str(error.path) for error in errors] == ["spec.modelClaims.models[0].name"]


@pytest.mark.parametrize(
    ("spec", "warning"),
    [
        ({"size": "small", "replica": 2}, 'unknown field "spec.replica", did you mean "replicas"?'),
        (
            {"size": "small", "zzzz": 2},
            'unknown field "spec.zzzz"; the fields are size, replicas, minimum, name, ports, env',
        ),
        (
            {"size": "small", "ports": [{"number": 1, "nmuber": 2}]},
            'unknown field "spec.ports[0].nmuber", did you mean "number"?',
        ),
        ({"size": "small", "name": "a"}, "spec.name: has no effect"),
    ],
)
def test_warns_of_unknown_fields_and_fields_without_effect(spec: dict[str, Any], warning: str) -> None:
    """Unknown fields, with the most similar name, and fields without effect."""
    answer = ask(body(spec))
    assert answer["allowed"]
    assert answer["warnings"] == [warning]


def test_warnings_are_one_printable_line() -> None:
    """They are sent in an HTTP header, where a control character would remove them."""
    (warning,) = ask(body({"size": "small", "a\nb" + "x" * 500: 1}))["warnings"]
    assert warning.isprintable()
    assert len(warning) <= 240


def test_a_warning_is_cut_behind_its_largest_length() -> None:
    field = "q" * (MAX_WARNING_CHARACTERS - len('unknown field "spec."'))
    whole, cut = (ask(body({"size": "small", name: 1}))["warnings"] for name in (field, f"{field}q"))
    assert (whole, cut) == ([f'unknown field "spec.{field}"'], [f'unknown field "spec.{field}…'])


def test_old_mistakes_are_warnings_on_update() -> None:
    """An object that became invalid can still be edited in other fields."""
    old = {"size": "small", "replicas": 1, "minimum": 5}
    answer = ask(body({**old, "name": "a"}, old=old))
    assert answer["allowed"]
    assert "spec.minimum" in answer["warnings"][0]


def test_a_change_that_keeps_a_rule_broken_is_refused() -> None:
    """The other field of the rule changed, so the mistake is new."""
    answer = ask(
        body({"size": "small", "replicas": 2, "minimum": 5}, old={"size": "small", "replicas": 1, "minimum": 5})
    )
    assert causes(answer) == [("spec.minimum", "FieldValueInvalid")]


def test_immutable_fields() -> None:
    answer = ask(body({"size": "large"}, old={"size": "small"}))
    assert answer["status"]["details"]["causes"][0]["message"] == 'Invalid value: "large": field is immutable'


@pytest.mark.parametrize(
    "over",
    [
        {"operation": "DELETE", "object": None},
        {"operation": "CONNECT"},
        {"subResource": "status"},
        {"kind": {"group": "", "version": "v1", "kind": "Pod"}},
        {
            "object": {**widget({}), "metadata": {"name": "w", "deletionTimestamp": "2020-01-01T00:00:00Z"}},
            "operation": "UPDATE",
        },
        {"userInfo": None},
        {"dryRun": True},
    ],
)
def test_deletions_and_other_kinds_are_allowed(over: dict[str, Any]) -> None:
    """Deletions, other kinds and other subresources are allowed."""
    assert ask(body(**over))["allowed"]


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ({"operation": "create"}, "unknown operation"),
        ({"operation": ""}, "unknown operation"),
        ({"object": None}, "the request has no object"),
        (
            {"kind": {"group": "example.dev", "version": "v9", "kind": "Widget"}},
            "Widget is served as example.dev/v1 only",
        ),
        ({"namespace": "other"}, "request.namespace and object.metadata.namespace differ"),
        ({"name": "other"}, "request.name and object.metadata.name differ"),
        ({"object": {**widget(), "kind": "Gadget"}}, "request.kind and object.kind differ"),
    ],
)
def test_reviews_that_contradict_themselves(over: dict[str, Any], message: str) -> None:
    """They are denied with code 400, not with an HTTP error."""
    answer = ask(body(**over))
    assert not answer["allowed"]
    assert (answer["status"]["code"], answer["status"]["message"]) == (400, message)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"},
        {**body(), "apiVersion": "admission.k8s.io/v1beta1"},
        {**body(), "kind": "Foo"},
        body(uid=""),
        body(uid=5),
        body(uid="a\nb"),
        body(uid="x" * 1000),
        body(object=[]),
    ],
)
def test_reviews_that_cannot_be_answered(document: dict[str, Any]) -> None:
    """Without a usable uid there can only be an HTTP error."""
    with pytest.raises(ProtocolError):
        ask(document)


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        ({"name": "w", "labels": []}, "metadata.labels"),
        ({"name": "w", "uid": 5}, "metadata.uid"),
        ({"name": "w", "annotations": {"a": 1}}, "metadata.annotations[a]"),
        ([], "metadata"),
        ({"name": "w", "labels": {"controller-uid": "x"}}, "metadata.labels[controller-uid]"),
        ({"name": "w", "uid": None, "labels": {"controller-uid": "x"}}, "metadata.labels[controller-uid]"),
        (
            {"name": "w", "annotations": {"metacontroller.k8s.io/last-applied-configuration": "x"}},
            "metadata.annotations[metacontroller.k8s.io/last-applied-configuration]",
        ),
        ({"name": "w", "annotations": {"a": "x" * 300_000}}, "metadata.annotations"),
        ({}, "metadata.name"),
    ],
)
def test_invalid_metadata_is_denied(metadata: Any, path: str) -> None:
    """Values of the wrong type, reserved keys, and annotations over their limit are denied."""
    answer = ask(body(object={**widget(), "metadata": metadata}, name="", namespace=""))
    assert path in [where for where, _ in causes(answer)]


@pytest.mark.parametrize(("more", "is_allowed"), [(0, True), (1, False)])
def test_annotations_may_have_as_many_bytes_as_the_api_server_takes(more: int, is_allowed: bool) -> None:
    annotations = {"a": "ü" * ((ANNOTATIONS_MAX - 1) // 2) + "x" * ((ANNOTATIONS_MAX - 1) % 2 + more)}
    metadata = {"name": "w", "annotations": annotations}
    assert ask(body(object={**widget(), "metadata": metadata}))["allowed"] is is_allowed


def test_a_child_that_is_restored_from_a_backup_is_admitted() -> None:
    """Backup tools remove the owner and keep the rest."""
    record = {"metacontroller.k8s.io/last-applied-configuration": "{}"}
    metadata = {"name": "w", "labels": {"controller-uid": "x"}, "annotations": record}
    assert ask(body(object={**widget(), "metadata": metadata}))["allowed"]


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (None, "metadata: Invalid value: null: must be an object"),
        ("w", 'metadata: Invalid value: "w": must be an object; write metadata: {name: w}'),
        ("x" * 100_000, 'metadata: Invalid value: "": must be an object'),
        ([1], "metadata: Invalid value: []: must be an object"),
        (5, "metadata: Invalid value: 0: must be an object"),
        (True, "metadata: Invalid value: true: must be an object"),
        (False, "metadata: Invalid value: false: must be an object"),
    ],
)
def test_metadata_that_is_not_an_object(metadata: Any, words: str) -> None:
    answer = ask(body(object={**widget(), "metadata": metadata}, name="", namespace=""))
    assert words in answer["status"]["message"]


def test_a_part_of_metadata_of_another_type_is_told_what_it_must_be() -> None:
    metadata = {"name": 5, "labels": {"a": 1}, "annotations": [], "deletionTimestamp": {}}
    answer = ask(body(object={**widget(), "metadata": metadata}, name="", namespace=""))
    assert [(cause["field"], cause["message"]) for cause in answer["status"]["details"]["causes"]] == [
        ("metadata.labels[a]", 'Invalid value: 1: must be a string; write "1" in quotes'),
        (
            "metadata.annotations",
            'Invalid value: []: must be an object; write names and values directly below annotations, without "- "',
        ),
        ("metadata.name", 'Invalid value: 5: must be a string; write "5" in quotes'),
        ("metadata.deletionTimestamp", "Invalid value: {}: must be a string"),
    ]


def test_many_errors_are_counted() -> None:
    """There are at most twenty causes, and the number of further ones."""
    spec = {"size": "small", "env": [{"name": 1}] * 250}
    answer = ask(body(spec))
    *_, last = answer["status"]["details"]["causes"]
    assert len(answer["status"]["details"]["causes"]) == 21
    assert last == {"reason": "FieldValueInvalid", "message": "and 230 more errors", "field": ""}
    assert "and 230 more errors" in answer["status"]["message"]
    assert len(orjson.dumps(answer)) < 64 * 1024


def test_deep_nesting_is_a_users_mistake() -> None:
    """The review is denied at the field that is too deep."""
    deep = orjson.loads(b'{"a":' * 64 + b"1" + b"}" * 64)
    assert causes(ask(body({"size": "small", "env": [deep]}))) == [("spec.env", "FieldValueInvalid")]


@pytest.mark.parametrize("evil", ["\x1b[31m", "\x9b31m", "a\x07\n::error::x", "\x00\u202e\u2028"])
def test_control_characters_are_refused_and_quoted(evil: str) -> None:
    """A value or the name of a field could reach a terminal."""
    answer = ask(body({"size": "small", "env": [{"name": "A", "value": evil}]}))
    assert causes(answer) == [("spec.env[0].value", "FieldValueInvalid")]
    assert evil not in answer["status"]["message"]
    (place, _), *_ = causes(ask(body({"size": "small", evil: evil})))
    status = ask(body({"size": {evil: evil}, evil: evil}))["status"]
    words = [place, status["message"], *(cause[key] for cause in status["details"]["causes"] for key in cause)]
    assert all(word.isprintable() for word in words)


@pytest.mark.parametrize("spec", [None, "x", [], 5])
def test_spec_of_the_wrong_kind(spec: Any) -> None:
    """A missing spec is required; another type is a type error."""
    answer = ask(body(object={**widget(), "spec": spec}))
    assert causes(answer)[0][0] == "spec"
