"""A transition time changes only with the status."""

from datetime import timedelta

from app.kube.conditions import MESSAGE_MAX, Condition, Conditions, is_true
from tests.hookcalls import NOW
from tests.widgets import NOW_TEXT

OLD = "2020-01-01T00:00:00Z"


def test_time_stays_while_the_status_does() -> None:
    """A new reason and message do not change it."""
    conditions = Conditions([Condition("Ready", "False", "A", "a", OLD, 1)], 2, NOW)
    conditions.set("Ready", False, "B", "b")
    assert conditions.list() == [Condition("Ready", "False", "B", "b", OLD, 2)]


def test_time_moves_with_the_status() -> None:
    """A change from False to True and a new condition have the present time."""
    conditions = Conditions([Condition("Ready", "False", "A", "a", OLD, 1)], 1, NOW)
    conditions.set("Ready", True, "A")
    conditions.set("Other", "Unknown", "A")
    assert [c.last_transition_time for c in conditions.list()] == [NOW_TEXT, NOW_TEXT]


def test_foreign_conditions_stay() -> None:
    """Conditions of others are kept, in their place."""
    foreign = Condition("MemoryPressure", "True", "Warning", "", OLD)
    conditions = Conditions([foreign], 1, NOW + timedelta(days=1))
    conditions.set("Ready", True, "A")
    assert conditions.list()[0] == foreign
    assert is_true(conditions.list(), "Ready")


def test_a_message_is_cut_to_the_schemas_limit() -> None:
    """A longer message would cause the whole status to be refused."""
    conditions = Conditions(None, 1, NOW)
    conditions.set("Ready", False, "A", "x" * (MESSAGE_MAX + 1))
    assert len(conditions.list()[0].message) == MESSAGE_MAX
