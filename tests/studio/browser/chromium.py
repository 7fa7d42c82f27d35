"""Chromium for the tests of the studio's page, which ``make studio`` builds."""

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
PATIENCE = 60_000
"""Milliseconds until an expected element must exist; a busy machine is slow."""
# Logs violations of the page's policy, from its first line on.
_WATCH = (
    "addEventListener('securitypolicyviolation', e => console.error(`refused: ${e.violatedDirective} ${e.blockedURI}`))"
)


def executable() -> str | None:
    """Return the path of the machine's own browser, or None; none is downloaded."""
    return os.environ.get("CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)


def missing() -> str | None:
    """Return why these tests cannot run here, or None."""
    if executable() is None:
        return "no Chromium on PATH; on Debian: apt-get install chromium"
    if not (STATIC / "index.html").is_file():
        return "the studio's page is not built: make studio (needs npm)"
    return None


@contextmanager
def browser() -> Iterator[Browser]:
    """Launch a headless browser, without a sandbox as root, which CI is."""
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=executable(), args=arguments)
        try:
            yield launched
        finally:
            launched.close()


def _said(message: ConsoleMessage) -> bool:
    """Return whether a message is an error of the page, not a refusal or no answer, which the page shows as text."""
    shown = ("status of 404", "status of 422", "net::ERR_INTERNET_DISCONNECTED")
    return message.type == "error" and not any(words in message.text for words in shown)


@contextmanager
def watched(context: BrowserContext, address: str) -> Iterator[Page]:
    """Open a page at an address; at the end it must have had no errors and no requests to other hosts."""
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
