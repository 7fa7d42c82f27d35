"""The studio as users run it: the command, and actions on its page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect

from tests.studio.browser.chromium import PATIENCE, ROOT

expect.set_options(timeout=PATIENCE)
_PASTE = """(content, text) => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    content.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""


@contextmanager
def serving(*arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run `modelhooks studio` with these arguments, and return the address that it prints."""
    with process(*arguments, environment=environment) as (address, _):
        yield address


@contextmanager
def process(*arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[tuple[str, int]]:
    """Run `modelhooks studio` with these arguments, and return the address that it prints and its process ID."""
    command = [sys.executable, "-m", "app.cli", "studio", "--no-browser", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **(environment or {})}, stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            assert running.stdout is not None
            address = re.search(r"http://127\.0\.0\.1:\d+/\S+/", running.stdout.readline())
            assert address is not None
            yield address[0], running.pid
        finally:
            running.terminate()


@dataclass(frozen=True)
class Studio:
    """Elements of the studio's page, and actions on them."""

    page: Page

    @property
    def editor(self) -> Locator:
        """The editor of the active document."""
        return self.page.locator("#editor .cm-content")

    @property
    def problems(self) -> Locator:
        """The list of findings."""
        return self.page.locator("#findings > li")

    @property
    def counted(self) -> Locator:
        """The number of findings, in words."""
        return self.page.locator("#findings-title")

    @property
    def cards(self) -> Locator:
        """The cards of the graph."""
        return self.page.locator(".card")

    def write(self, text: str) -> None:
        """Replace the active document by pasting."""
        self.editor.focus()
        self.page.keyboard.press("Control+a")
        self.editor.evaluate(_PASTE, text)

    def text(self) -> str:
        """Return the visible lines of the active document."""
        return "\n".join(self.editor.locator(".cm-line").all_inner_texts())

    def show(self, view: str) -> None:
        """Open a view."""
        self.page.locator("#views").get_by_role("tab", name=view).click()

    def card(self, kind: str) -> Locator:
        """Return the graph's card of the only object of a kind."""
        return self.cards.filter(has=self.page.locator(".card-kind", has_text=re.compile(f"^{kind}$")))

    def item(self, kind: str) -> Locator:
        """Return the same object in the tree for screen readers and keyboards."""
        return self.page.locator(f'#tree [data-node^="{kind}."]')

    def choose(self, kind: str) -> None:
        """Click the card of the only object of a kind."""
        box = self.card(kind).bounding_box()
        assert box is not None
        self.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
