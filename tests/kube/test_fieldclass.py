"""Field classes: from the type to the warning and to the documentation."""

from typing import Annotated

import pytest
from msgspec.structs import replace
from pydantic import Field

from app.families import RESOURCES
from app.kube.base import Int32, KubeModel, Probe
from app.kube.field import Path
from app.kube.resource import CustomResource
from app.kube.schema.fieldclass import (
    DEFAULTED,
    HONOURED,
    PASSED_THROUGH,
    Use,
    honoured,
    no_effect,
    without_effect,
)
from tests.kube.widget import widget
from tools.fieldpages import classes, leaves, pages, table


class Part(KubeModel):
    size: Annotated[Int32, no_effect("parts have no size", "here")] = Field(
        default=1, ge=1, le=5, description="Size | metres."
    )
    colour: str = Field(default="", description="Its colour.")


class Whole(KubeModel):
    name: Annotated[str, HONOURED] = Field(description="What it is called.")
    mode: Annotated[str, DEFAULTED] = Field(
        default="", description="Text.", json_schema_extra={"enum": ["a", "b"], "default": "a"}
    )
    parts: Annotated[list[Part], honoured("in order")] = Field(default_factory=list, description="Of what it consists.")
    labels: Annotated[dict[str, str], HONOURED] = Field(default_factory=dict, description="Labels.")
    probe: Annotated[Probe | None, PASSED_THROUGH] = Field(default=None, description="A probe of Kubernetes.")
    least: Annotated[Int32, HONOURED] = Field(default=2, ge=2, description="At least two.")
    spare: Annotated[Part | None, no_effect(asks=lambda part: part.size > 1)] = Field(None, description="Not used.")


@pytest.fixture
def whole() -> CustomResource:
    return replace(widget(), spec=Whole)


def test_a_class_holds_for_what_is_below_until_a_field_says_otherwise() -> None:
    fields = {path: known and (known.use, known.note) for path, known in classes(Whole).items()}
    assert fields["parts[].colour"] == (Use.HONOURED, "in order")
    assert fields["parts[].size"] == (Use.NO_EFFECT, "here")
    assert fields["spare.colour"] == (Use.NO_EFFECT, "")
    assert classes(Part)["colour"] is None


def test_warns_of_a_field_without_effect_that_the_user_wrote() -> None:
    """The warning has the path. A default has none, because the API server may have written it."""
    spec = Whole(name="x", parts=[Part(), Part(size=3)], spare=Part(size=2))
    assert [(str(a.path), str(a)) for a in without_effect(spec, Path("spec"))] == [
        ("spec.parts[1].size", "spec.parts[1].size: accepted, no effect; parts have no size"),
        ("spec.spare", "spec.spare: accepted, no effect"),
    ]
    assert not list(without_effect(Whole(name="x", spare=Part(colour="red")), Path("spec")))


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.plural)
def test_the_types_and_the_schema_have_the_same_fields(resource: CustomResource) -> None:
    """Classes are read from the types, and rows from the schema."""
    assert list(classes(resource.spec)) == list(leaves(resource))


def test_a_field_without_a_class_stops_the_generator(whole: CustomResource) -> None:
    with pytest.raises(SystemExit, match=r"no class for spec\.colour"):
        table(replace(whole, spec=Part))


def test_a_row_says_values_use_and_meaning(whole: CustomResource) -> None:
    rows = [
        line for line in pages("Widgets", [(whole, table(whole))])["widgets.md"].splitlines() if line.startswith("| `")
    ]
    assert rows[:6] == [
        "| `name` | string | honoured | What it is called. |",
        "| `mode` | `a`, `b`; default `a` | defaulted | Text. |",
        "| `parts[].size` | integer, 1 to 5; default `1` | no effect: here; parts have no size | Size \\| metres. |",
        "| `parts[].colour` | string | honoured: in order | Its colour. |",
        "| `labels` | map of string | honoured | Labels. |",
        "| `probe` | object | passed through | A probe of Kubernetes. |",
    ]


def test_a_page_explains_its_words(whole: CustomResource) -> None:
    text = pages("Widgets", [(whole, table(whole))])["widgets.md"]
    assert text.startswith("# Fields of Widgets\n")
    assert all(f"**{use}**" in text for use in Use)
    assert f"## {whole.kind} " in text
