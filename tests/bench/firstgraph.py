"""The time until the studio shows the first graph: of the largest example, and of 150 and 1,000 objects."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from playwright.sync_api import Browser
from starlette.testclient import TestClient

from app.studio.routes import create_app
from tests.bench.page import largest
from tests.studio.browser import chromium
from tests.studio.browser.studio import process
from tests.studio.browser.test_fleet import fleet

# Notes when something is visible, and when the first graph is: its summary is written, and two frames are painted.
_CLOCK = """() => {
    const graph = () => document.querySelector(".summary")?.textContent;
    new MutationObserver((_, observer) => {
        if (!graph()) return;
        observer.disconnect();
        requestAnimationFrame(() => requestAnimationFrame(() => (window.firstGraph = performance.now())));
    }).observe(document, { childList: true, subtree: true, characterData: true });
}"""
_PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def run(rounds: int = 3) -> None:
    """Print the seconds on the page's clock, and the CPU seconds of the page's main thread and of the server."""
    if (reason := chromium.missing()) is not None:
        print(f"studio, first graph: {reason}", flush=True)
        return
    example = largest(TestClient(create_app(), base_url="http://127.0.0.1"))
    targets = [(example.name, example.text, 1.0), ("150 objects", fleet(6), 1.5), ("1,000 objects", fleet(45), 3.0)]
    with tempfile.TemporaryDirectory() as directory, chromium.browser() as browser:
        for name, text, target in targets:
            file = Path(directory) / "manifests.yaml"
            file.write_text(text)
            graph, painted, page, server = min(_first_graph(browser, file) for _ in range(rounds))
            print(
                f"studio, first graph of {name:14} {graph:5.2f} s (target {target}), something visible after "
                f"{painted:.2f} s; page {page:.2f} CPU s, server {server:.2f} CPU s",
                flush=True,
            )


def _first_graph(browser: Browser, file: Path) -> tuple[float, float, float, float]:
    with process(str(file)) as (address, pid), browser.new_context(viewport=chromium.SIZE) as context:
        page = context.new_page()
        page.add_init_script(f"({_CLOCK})()")
        session = context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = _cpu_seconds(pid)
        page.goto(address)
        page.wait_for_function("() => window.firstGraph", timeout=120_000)
        server = _cpu_seconds(pid) - before
        metrics = {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}
        for idle in ("#findings-title[class]", "html[data-loaded]"):  # the studio has nothing left to do
            page.wait_for_selector(idle, state="attached")
        graph, painted = page.evaluate(f"[window.firstGraph, {_PAINTED}]")
        return graph / 1000, painted / 1000, metrics["TaskDuration"], server


def _cpu_seconds(pid: int) -> float:
    """Return the user and system CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    run()
