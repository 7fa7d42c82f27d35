"""Fixtures: one browser and one studio for the session, and a new page for each test.

The tests are skipped if there is no browser.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.collected import below
from tests.studio.browser import chromium
from tests.studio.browser.studio import Studio, serving

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests if there is no browser; with `MODELHOOKS_BROWSER=required` they fail instead."""
    reason = None if os.environ.get("MODELHOOKS_BROWSER") == "required" else chromium.missing()
    for item in below(_HERE, items):
        item.add_marker(pytest.mark.browser)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of the session."""
    with chromium.browser() as launched:
        yield launched


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of a studio without a cluster."""
    with serving() as studio:
        yield studio


@pytest.fixture
def studio(browser: Browser, address: str) -> Iterator[Studio]:
    """The studio's page in a new browser profile."""
    context = browser.new_context(viewport=chromium.SIZE, reduced_motion="reduce", color_scheme="light")
    with context, chromium.watched(context, address) as page:
        yield Studio(page)
