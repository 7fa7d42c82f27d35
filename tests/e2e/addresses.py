"""Helm's post-renderer of the tests: the objects on standard input, with the addresses of a process in place of ours.

There is no cluster DNS. ``HELM_TEST_URL`` is where the service listens.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import yaml

from app.installation import CONVERSION_PATH, HOOK_HOST


def addressed(objects: list[dict[str, Any]], url: str) -> list[dict[str, Any]]:
    """The objects, whose hooks, webhooks and conversions are changed in place."""
    for found in objects:
        spec = found.get("spec", {})
        for hook in spec.get("hooks", {}).values():
            hook["webhook"]["url"] = hook["webhook"]["url"].replace(f"https://{HOOK_HOST}", url)
        for webhook in found.get("webhooks", []):
            webhook["clientConfig"] = {"url": url + webhook["clientConfig"]["service"]["path"]}
        if spec.get("conversion", {}).get("strategy") == "Webhook":
            spec["conversion"]["webhook"]["clientConfig"] = {"url": url + CONVERSION_PATH}
    return objects


if __name__ == "__main__":
    given = [found for found in yaml.load_all(sys.stdin, yaml.CSafeLoader) if found]
    yaml.dump_all(addressed(given, os.environ["HELM_TEST_URL"]), sys.stdout, yaml.CSafeDumper)
