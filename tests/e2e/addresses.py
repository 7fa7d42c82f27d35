"""Helm's post-renderer of the tests: replaces the service's addresses in the objects on standard input.

The cluster has no DNS. ``HELM_TEST_URL`` is the address on which the service listens.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import yaml

from app.installation import CONVERSION_PATH, HOOK_HOST


def addressed(objects: list[dict[str, Any]], url: str) -> list[dict[str, Any]]:
    """Change the addresses of hooks, webhooks and conversions in place, and return the objects."""
    for manifest in objects:
        spec = manifest.get("spec", {})
        for hook in spec.get("hooks", {}).values():
            hook["webhook"]["url"] = hook["webhook"]["url"].replace(f"https://{HOOK_HOST}", url)
        for webhook in manifest.get("webhooks", []):
            webhook["clientConfig"] = {"url": url + webhook["clientConfig"]["service"]["path"]}
        if spec.get("conversion", {}).get("strategy") == "Webhook":
            spec["conversion"]["webhook"]["clientConfig"] = {"url": url + CONVERSION_PATH}
    return objects


if __name__ == "__main__":
    given = [manifest for manifest in yaml.load_all(sys.stdin, yaml.CSafeLoader) if manifest]
    yaml.dump_all(addressed(given, os.environ["HELM_TEST_URL"]), sys.stdout, yaml.CSafeDumper)
