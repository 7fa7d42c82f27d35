"""The cluster client, without a cluster."""

from __future__ import annotations

import pytest

from app.desk.cluster import live


@pytest.mark.parametrize("api_version", ["v1", "apps/v1", "example.com/v1"])
def test_a_kind_is_read_again(api_version: str) -> None:
    """lightkube refuses to create a second class for a kind."""
    first, again = (live._class(api_version, "Thing") for _ in range(2))
    assert again is first
