"""Record what this release leaves in the cluster of each case: the workloads and their parents' statuses.

Run `python -m tests.contract.releases` on the commit of a release; the next release is tested with the result. With the
argument `digests`, it records only the digests of templates' inputs: for a new `FORMAT`, or with new cases.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import sys
from collections.abc import Iterable

from app.hooks.template import INPUTS
from app.kube.base import Json
from tests.contract.recordings import FAMILIES, RECORDED, replayed
from tests.contract.test_goldens import settings
from tests.contract.world import World

WORKLOADS = {
    "Deployment.apps/v1": "template",
    "LeaderWorkerSet.leaderworkerset.x-k8s.io/v1": "leaderWorkerTemplate",
    "Service.inference.llmaz.io/v1alpha1": "workloadTemplate",
}
"""Kinds with pods, and the field of their spec whose changes restart the pods."""


def left(case: Json) -> Json:
    """Return what a release leaves: workloads with their records, and each parent's status."""
    world = World(case, settings(case))
    world.run()
    objects = world.objects.items()
    owned = [item for (kind, _, _), item in objects if kind in WORKLOADS and item["metadata"].get("ownerReferences")]
    statuses = {f"{item['kind']}/{item['metadata']['name']}": item["status"] for _, item in objects if "status" in item}
    return {"family": case["family"], "name": case["name"], "workloads": owned, "statuses": statuses}


def digests(left: Json) -> str:
    """Return a digest of the digests of a case's workloads."""
    noted = sorted(item["metadata"].get("annotations", {}).get(INPUTS, "") for item in left["workloads"])
    return hashlib.sha256("\n".join(noted).encode()).hexdigest()[:8]


def _write(name: str, documents: Iterable[Json]) -> None:
    text = "".join(json.dumps(document, separators=(",", ":"), sort_keys=True) + "\n" for document in documents)
    (RECORDED / f"{name}.jsonl.xz").write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    cases = [left(case) for family in FAMILIES for case in replayed(family) if "objects" in case]
    _write("digests", [{f"{case['family']}/{case['name']}": digests(case) for case in cases}])
    if sys.argv[1:] != ["digests"]:
        _write("released", cases)
