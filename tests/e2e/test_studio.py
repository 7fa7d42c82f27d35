"""The studio's live mode in a browser, on a real API server: the page shows the cluster's objects and messages."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import expect

from tests.e2e.installation import Installation
from tests.e2e.processes import wait_until
from tests.e2e.test_llmkube import QUICKSTART, apply, condition, wait_ready
from tests.studio.browser import chromium
from tests.studio.browser.studio import Studio, serving

_MISSING = None if os.environ.get("MODELHOOKS_BROWSER") == "required" else chromium.missing()
pytestmark = [pytest.mark.e2e, pytest.mark.browser, pytest.mark.skipif(_MISSING is not None, reason=str(_MISSING))]
BROKEN = ("inferenceservice.inference.llmkube.dev", "broken", "-n")


def test_live_mode_follows_the_cluster(installation: Installation, namespace: str, reading: Path) -> None:
    """Read rights are sufficient; the edit at the end is not applied."""
    cluster = installation.cluster
    with (
        serving("--live", environment={"KUBECONFIG": str(reading)}) as address,
        chromium.browser() as browser,
        browser.new_context(viewport=chromium.SIZE) as context,
        chromium.watched(context, address) as page,
    ):
        studio = Studio(page)
        row = page.locator(".live-row").filter(has_text=f"{namespace}/smollm-chat")
        expect(page.get_by_role("listbox", name="Objects of the cluster")).to_be_visible()
        expect(row).to_have_count(0)
        apply(cluster, namespace, QUICKSTART)
        created = time.perf_counter()
        expect(row).to_be_visible()
        print(f"a created object is on the page after {time.perf_counter() - created:.2f} s")
        wait_ready(cluster, namespace, "model/smollm", "inferenceservice/smollm-chat")
        expect(row.locator(".pill.ready")).to_be_visible()

        _, service = yaml.safe_load_all(QUICKSTART.read_text())
        service["metadata"] = {"name": "broken", "namespace": namespace}
        service["spec"]["image"] = "registry.example.com/server:ImagePullBackOff"
        cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(service))
        broken = page.locator(".live-row").filter(has_text=f"{namespace}/broken")
        wait_until(lambda: "ImagePullBackOff" in words(installation, namespace), "a status with the pod's trouble")
        expect(broken.locator(".pill.failing")).to_be_visible()
        page.get_by_role("searchbox", name="Filter by text").fill(f"{namespace}/broken")
        expect(page.locator(".live-row")).to_have_count(1)
        expect(broken.locator(".live-cause")).to_contain_text("cannot pull its image")

        broken.click(delay=200)  # as long as a person's: the list is drawn again when it gets the focus
        for kind in ("InferenceService", "Deployment", "Pod"):
            expect(studio.item(kind).filter(has_text="broken")).to_have_class(re.compile(r"\bfailing\b"))
        expect(studio.item("InferenceService").locator(".item-cause")).to_have_text(words(installation, namespace))
        expect(studio.editor).to_contain_text("name: broken")

        cluster.kubectl("delete", *BROKEN, namespace)
        expect(page.get_by_role("alert")).to_be_visible()
        page.get_by_role("button", name="All objects").click()
        expect(broken).to_have_count(0)
        page.get_by_role("searchbox", name="Filter by text").fill(f"{namespace}/smollm-chat")
        expect(row).to_have_count(1)
        page.get_by_role("listbox", name="Objects of the cluster").focus()
        page.keyboard.press("Enter")
        expect(studio.editor).to_contain_text("name: smollm-chat")
        studio.write(studio.text().replace("contextSize: 4096", "contextSize: 8192"))
        edit = page.locator(".live-edit")
        expect(edit.locator(".change").filter(has_text="Deployment").locator(".effect").first).to_have_text(
            "rolls pods"
        )
        expect(edit.locator(".command")).to_contain_text("kubectl apply")


def words(installation: Installation, namespace: str) -> str:
    """Return Ready's message of the broken service."""
    return str(condition(installation.cluster.get(*BROKEN, namespace), "Ready").get("message", ""))
