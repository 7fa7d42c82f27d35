"""Merging the resources of preset and Playground (LZ-3.4)."""

from __future__ import annotations

import pytest

from app.llmaz.playground.plan import merged_resources
from app.llmaz.quantities import Resources

Amounts = dict[str, str]


def both(limits: Amounts | None = None, requests: Amounts | None = None) -> Resources:
    return Resources(limits=limits, requests=requests)


FOUR = both({"cpu": "4", "memory": "8Gi"}, {"cpu": "4", "memory": "8Gi"})

CASES: dict[str, tuple[Resources | None, Resources | None, Amounts, Amounts]] = {
    "nothing anywhere": (None, None, {}, {}),
    "the preset alone is taken as it is": (both({"cpu": "2"}, {"cpu": "1"}), None, {"cpu": "2"}, {"cpu": "1"}),
    "a higher request lifts the limit": (
        FOUR,
        both(None, {"cpu": "10"}),
        {"cpu": "10", "memory": "8Gi"},
        {"cpu": "10", "memory": "8Gi"},
    ),
    "a lower limit lowers the request (LZ-T15)": (
        FOUR,
        both({"cpu": "2"}),
        {"cpu": "2", "memory": "8Gi"},
        {"cpu": "2", "memory": "8Gi"},
    ),
    "of whatever resource": (
        both({"ephemeral-storage": "4Gi"}, {"ephemeral-storage": "4Gi"}),
        both({"ephemeral-storage": "2Gi"}),
        {"ephemeral-storage": "2Gi"},
        {"ephemeral-storage": "2Gi"},
    ),
    "a limit between the preset's": (
        both({"cpu": "8"}, {"cpu": "2"}),
        both({"cpu": "4"}),
        {"cpu": "4"},
        {"cpu": "2"},
    ),
    "both of the Playground's": (
        FOUR,
        both({"cpu": "10"}, {"cpu": "1"}),
        {"cpu": "10", "memory": "8Gi"},
        {"cpu": "1", "memory": "8Gi"},
    ),
    "a limit is invented": (None, both(None, {"cpu": "2"}), {"cpu": "2"}, {"cpu": "2"}),
    "an empty object of the Playground's invents it too": (
        both(None, {"cpu": "2"}),
        both(),
        {"cpu": "2"},
        {"cpu": "2"},
    ),
    "other resources get no limit": (None, both(None, {"ephemeral-storage": "2Gi"}), {}, {"ephemeral-storage": "2Gi"}),
}


@pytest.mark.parametrize(("preset", "playground", "limits", "requests"), CASES.values(), ids=CASES.keys())
def test_amounts_of_the_playground_win(
    preset: Resources | None, playground: Resources | None, limits: Amounts, requests: Amounts
) -> None:
    """Each amount of the Playground wins and adjusts the preset's, so that no limit is below its request."""
    want = {key: amounts for key, amounts in (("limits", limits), ("requests", requests)) if amounts}
    assert merged_resources(preset, playground) == want


def test_inputs_are_left_alone() -> None:
    """The preset is not modified, because Playgrounds share it."""
    before = FOUR.model_dump()
    merged_resources(FOUR, both(None, {"cpu": "10"}))
    assert before == FOUR.model_dump()


def test_quantities_are_canonical() -> None:
    """Quantities are converted to the form in which the API server stores them."""
    given = Resources.model_validate({"limits": {"cpu": 4, "memory": "8192Mi", "x.y/z": "1000"}})
    assert given.limits == {"cpu": "4", "memory": "8Gi", "x.y/z": "1k"}
