"""Tables of fields: a readable size, and no field left out."""

import re

import pytest

from app.families import RESOURCES
from app.kube.resource import CustomResource
from tools.fieldpages import leaves, pages, table
from tools.fieldtables import LARGE_OBJECT, tables, without_repeats

TEXT = ("string", "honoured", "Text.")


def test_large_objects_have_their_own_table() -> None:
    large = {f"big.part.f{number}": TEXT for number in range(LARGE_OBJECT)}
    grouped = tables({"name": TEXT, "small.name": TEXT, **large, "big.name": TEXT})
    assert grouped == {
        "": {"name": TEXT, "small.name": TEXT, "big.name": TEXT},
        "big.part": {f"f{number}": TEXT for number in range(LARGE_OBJECT)},
    }


def test_a_repeated_object_names_the_earlier_one() -> None:
    rows = {"a.x": TEXT, "a.y": TEXT, "b[].x": TEXT, "b[].y": TEXT, "c.x": TEXT, "c.y": ("integer", "", "")}
    assert without_repeats(rows) == {
        "a.x": TEXT,
        "a.y": TEXT,
        "b[]": ("object", "", "The fields of `a`."),
        "c.x": TEXT,
        "c.y": ("integer", "", ""),
    }


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)
def test_every_field_is_on_a_page(resource: CustomResource) -> None:
    """A field has a row, or is in an object that names another one with the same fields."""
    shown: dict[str, str] = {}
    for text in pages("Family", [(resource, table(resource))]).values():
        for section in text.split("\n### `spec."):
            prefix = re.match(r"([\w.\[\]]+)`\n", section)
            for field, cells in re.findall(r"^\| `(.+?)` \| (.+) \|$", section, re.MULTILINE):
                shown[f"{prefix[1]}.{field}" if prefix else field] = cells
    objects = tuple(f"{path}." for path, cells in shown.items() if "The fields of" in cells)
    assert [path for path in leaves(resource) if path not in shown and not path.startswith(objects)] == []
