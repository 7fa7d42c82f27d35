"""Screenshots for README and docs: ``MODELHOOKS_SCREENSHOTS=1`` writes them to docs/images.

Other runs take them without keeping them, because fonts differ between machines.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.studio.browser.chromium import ROOT
from tests.studio.browser.studio import Studio
from tests.studio.browser.test_page import PULL, example

IMAGES = ROOT / "docs" / "images"


@pytest.fixture
def pictures(studio: Studio, tmp_path: Path) -> Path:
    """Return the directory for the screenshots."""
    studio.page.set_viewport_size({"width": 1280, "height": 800})
    return IMAGES if os.environ.get("MODELHOOKS_SCREENSHOTS") else tmp_path


def take(studio: Studio, directory: Path, name: str) -> None:
    """Take a screenshot after the fonts are loaded. The page's policy refuses the style that Playwright would add."""
    studio.page.evaluate("document.fonts.ready")
    file = directory / f"studio-{name}.png"
    studio.page.screenshot(path=file, caret="initial")
    assert 10_000 < file.stat().st_size < 250_000


def test_the_graph_and_who_set_a_value(studio: Studio, pictures: Path) -> None:
    studio.write(example("llmkube/quickstart"))
    expect(studio.card("Deployment")).to_be_visible()
    studio.choose("Deployment")
    studio.page.get_by_role("tab", name="Values").click()
    studio.page.get_by_role("searchbox").fill("args")
    expect(studio.page.locator(".origins tbody tr").first).to_be_visible()
    take(studio, pictures, "graph")


def test_findings_with_their_corrections(studio: Studio, pictures: Path) -> None:
    text = example("llmkube/quickstart").replace("contextSize", "contextsize")
    studio.write(text.replace("memory: 1Gi", "memory: 1 GB"))
    expect(studio.problems).not_to_have_count(0)
    expect(studio.cards).not_to_have_count(0)
    take(studio, pictures, "findings")
    for left, correction in ((1, "Write contextSize"), (0, "Write 1Gi")):
        studio.page.get_by_role("button", name=correction, exact=True).click()
        expect(studio.problems).to_have_count(left)
    expect(studio.card("InferenceService")).to_contain_text("Ready")
    take(studio, pictures, "corrected")


def test_a_simulated_failure(studio: Studio, pictures: Path) -> None:
    studio.page.emulate_media(color_scheme="dark")
    studio.page.set_viewport_size({"width": 1280, "height": 880})  # so that no card of the graph is cut
    studio.write(example("llmkube/quickstart"))
    studio.show("Simulate")
    studio.page.get_by_role("checkbox", name=PULL).check()
    expect(studio.card("Deployment")).to_contain_text("Failing")
    take(studio, pictures, "simulate")


def test_a_comparison(studio: Studio, pictures: Path) -> None:
    studio.write(example("llmkube/quickstart"))
    studio.show("Compare")
    studio.page.get_by_role("button", name="Compare with this from now on").click()
    changed = example("llmkube/quickstart").replace("contextSize: 4096", "contextSize: 8192")
    studio.write(changed.replace("memory: 1Gi", "memory: 2Gi") + "  replicas: 2\n")
    expect(studio.page.locator(".change").filter(has_text="Deployment")).to_be_visible()
    take(studio, pictures, "compare")
