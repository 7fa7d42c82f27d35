"""Children that were asked for and are not there: only time tells why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from app.workload.absent import PATIENCE, absent_causes

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def since(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_at_first_they_are_on_their_way() -> None:
    """In the answer that asks for them, and for a minute after."""
    for asked in (None, since(1), since(PATIENCE)):
        (cause,) = absent_causes(["Service chat"], asked, NOW)
        assert (cause.reason, cause.text) == ("Creating", "Service chat is being created")


def test_after_a_minute_both_reasons_are_named() -> None:
    """A foreign object of that name, or a refusal of the API server, whose words are in an event."""
    causes = absent_causes(["Service chat", "Deployment chat"], since(PATIENCE + 1), NOW)
    assert {cause.reason for cause in causes} == {"NameConflict"}
    assert causes[1].text.startswith("Deployment chat cannot be created: ")
    for part in ("not ours", "the API server refuses", "events"):
        assert part in causes[1].text
