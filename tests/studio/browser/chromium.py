"""What the tests of the studio's page need: a Chromium, and the page as ``make studio`` builds it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Route, ViewportSize, sync_playwright

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "app" / "studio" / "page"
STATIC = ROOT / "app" / "studio" / "static"
NAMES = ("chromium", "chromium-browser", "google-chrome")
SIZE: ViewportSize = {"width": 1440, "height": 900}
PATIENCE = 15_000
"""Milliseconds until something that is expected has to be there; on a busy machine much takes long."""
# A page that is watched says what its policy refused, from its first line on.
_WATCH = (
    "addEventListener('securitypolicyviolation', e => console.error(`refused: ${e.violatedDirective} ${e.blockedURI}`))"
)


def executable() -> str | None:
    """The machine's own browser; none is downloaded."""
    return os.environ.get("CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)


def missing() -> str | None:
    """Why these tests cannot run here, or None."""
    if executable() is None:
        return "no Chromium on PATH; on Debian: apt-get install chromium"
    if not (STATIC / "index.html").is_file():
        return "the studio's page is not built: make studio (needs npm)"
    return None


@contextmanager
def browser() -> Iterator[Browser]:
    """A headless browser; as root, which CI is, it has no sandbox."""
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=executable(), args=arguments)
        try:
            yield launched
        finally:
            launched.close()


def _said(message: ConsoleMessage) -> bool:
    """Whether it is an error of the page, rather than a refusal of the studio, which the page shows as text."""
    refused = any(f"status of {status}" in message.text for status in (404, 422))
    return message.type == "error" and not refused


@contextmanager
def watched(context: BrowserContext, address: str) -> Iterator[Page]:
    """A page of the studio at an address; in the end it must have asked nobody else, and had no errors."""
    origin = "/".join(address.split("/")[:3]) + "/"
    elsewhere: list[str] = []
    errors: list[str] = []

    def only_here(route: Route) -> None:
        if route.request.url.startswith((origin, "data:", "blob:")):
            route.continue_()
        else:
            elsewhere.append(route.request.url)
            route.abort()

    context.set_default_timeout(PATIENCE)
    context.route("**/*", only_here)
    context.add_init_script(_WATCH)
    page = context.new_page()
    page.on("console", lambda message: errors.append(message.text) if _said(message) else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(address)
    page.wait_for_selector("html[data-loaded]", state="attached")
    yield page
    assert elsewhere == []
    assert errors == []
