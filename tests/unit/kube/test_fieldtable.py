"""The field tables of the documentation."""

import pytest
from pydantic import Field

from app.kube.base import Int32, KubeModel, Probe
from app.kube.fieldtable import Use, fields, leaves, markdown, page, problems
from app.kube.resource import CustomResource
from tests.unit.kube.widget import widget


class Part(KubeModel):
    size: Int32 = Field(default=1, ge=1, le=5, description="How big it is | in metres.")


class Whole(KubeModel):
    name: str = Field(description="What it is called.")
    mode: str = Field(default="", description="Text.", json_schema_extra={"enum": ["a", "b"], "default": "a"})
    parts: list[Part] = Field(default_factory=list, description="What it consists of.")
    labels: dict[str, str] = Field(default_factory=dict, description="Labels.")
    probe: Probe | None = Field(default=None, description="A probe of Kubernetes.")
    least: Int32 = Field(default=2, ge=2, description="At least two.")
    most: Int32 | None = Field(default=None, le=9, description="At most nine.")


@pytest.fixture
def whole() -> CustomResource:
    made = widget()
    values = {name: getattr(made, name) for name in made.__dataclass_fields__}
    return CustomResource(**{**values, "spec": Whole})


def test_leaves_are_what_a_user_writes(whole: CustomResource) -> None:
    """Fields that only hold other fields of ours have no row; embedded types are one value."""
    assert list(leaves(whole)) == ["name", "mode", "parts[].size", "labels", "probe", "least", "most"]


def test_a_table_is_complete_or_says_what_is_not(whole: CustomResource) -> None:
    table = fields(Use.HONOURED, "name", "parts[].size", "labels", "probe", "least", "other")
    assert problems(whole, table) == [
        f"{whole.kind}: spec.mode is not classified",
        f"{whole.kind}: spec.most is not classified",
        f"{whole.kind}: there is no spec.other",
    ]


def test_a_row_says_values_use_and_meaning(whole: CustomResource) -> None:
    table = {**fields(Use.HONOURED, *leaves(whole)), **fields(Use.NO_EFFECT, "name", note="here")}
    rows = [line for line in markdown(whole, table).splitlines() if line.startswith("| `")]
    assert rows == [
        "| `name` | string | no effect: here | What it is called. |",
        "| `mode` | `a`, `b`; default `a` | honoured | Text. |",
        "| `parts[].size` | integer, 1 to 5; default `1` | honoured | How big it is \\| in metres. |",
        "| `labels` | map of string | honoured | Labels. |",
        "| `probe` | object | honoured | A probe of Kubernetes. |",
        "| `least` | integer, at least 2; default `2` | honoured | At least two. |",
        "| `most` | integer, at most 9 | honoured | At most nine. |",
    ]


def test_a_page_explains_its_words(whole: CustomResource) -> None:
    text = page("Widgets", [(whole, fields(Use.HONOURED, *leaves(whole)))])
    assert text.startswith("# Fields of Widgets\n")
    assert all(f"**{use}**" in text for use in Use)
    assert f"## {whole.kind} " in text
