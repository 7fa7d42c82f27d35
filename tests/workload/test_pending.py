"""Changes that are not made: only time tells those on their way from those refused."""

from __future__ import annotations

from datetime import UTC, datetime

from app.workload.absent import PATIENCE
from app.workload.pending import change_causes


def test_time_tells() -> None:
    """First it is under way; after a minute the API server must have refused it."""
    now = datetime(2026, 1, 1, 12, 1, 1, tzinfo=UTC)
    assert PATIENCE == 60
    for since in (None, "2026-01-01T12:00:30Z"):
        assert [cause.reason for cause in change_causes(["Deployment chat"], since, now)] == ["RollingOut"]
    refused = change_causes(["Deployment chat", "Service chat"], "2026-01-01T12:00:00Z", now)
    assert [cause.reason for cause in refused] == ["ChangeRefused", "ChangeRefused"]
    assert refused[1].text.startswith("Service chat cannot be changed")
