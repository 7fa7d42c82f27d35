"""Labels on objects that are also parents of others (MC-9)."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from pydantic import Field

from app.errors import ProtocolError
from app.hooks.labels import Decorator, Label, answer_decorate
from app.kube.base import KubeModel
from tests.kube.widget import widget


class Spec(KubeModel):
    """The only field that is read."""

    model_ref: str = Field(description="The model to serve.")


WIDGET = widget(spec=Spec)
KEY = "toys.example.dev/model"
MODELS = Decorator("toys", "models", (Label(WIDGET, KEY, lambda spec: str(spec.model_ref)),))


def answer(**given: Any) -> Any:
    parent = {"apiVersion": WIDGET.api_version, "kind": WIDGET.kind, "metadata": {"name": "w"}, **given}
    request = {"controller": {}, "object": parent, "attachments": {}, "related": {}, "finalizing": False}
    return orjson.loads(answer_decorate(MODELS, orjson.dumps(request)))


def test_controller_component_and_path_have_the_name_of_the_kind() -> None:
    """Controller and component have one name, and the hook is beside those of the kinds."""
    assert (MODELS.component, MODELS.hook_path) == ("toys-models", "/toys/models")


def test_a_field_becomes_a_label() -> None:
    """The status is left to another controller."""
    assert answer(spec={"modelRef": "opt"}) == {"labels": {KEY: "opt"}, "attachments": []}


@pytest.mark.parametrize("value", ["not a label value", "x" * 64])
def test_a_value_that_is_no_label_removes_the_label(value: str) -> None:
    """The API server would refuse the whole object, and the previous value would be wrong."""
    assert answer(spec={"modelRef": value})["labels"] == {KEY: None}


@pytest.mark.parametrize("spec", [{}, {"modelRef": 7}, [], None], ids=str)
def test_an_object_that_cannot_be_read_keeps_its_labels(spec: Any) -> None:
    assert answer(spec=spec) == {"labels": {}, "attachments": []}


@pytest.mark.parametrize("other", [{"kind": "Gadget"}, {"apiVersion": "toys.example.dev/v2"}])
def test_refuses_an_object_of_another_kind(other: dict[str, str]) -> None:
    with pytest.raises(ProtocolError, match="must be one of Widget"):
        answer(spec={"modelRef": "opt"}, **other)


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"object": 1}'])
def test_rejects_invalid_requests(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        answer_decorate(MODELS, body)
