"""What Argo CD's own code says about objects, with the ConfigMap that we ship.

`python -m tests.world.argocd` writes its answers, and those of kstatus, into docs/howto/gitops.md.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import yaml

from app.kube.base import Json
from tests.e2e import neighbours
from tests.world import programs

CONFIG_MAP = neighbours.ROOT / "manifests" / "gitops" / "argocd-cm.yaml"


def verdicts(objects: Iterable[Json]) -> list[dict[str, str]]:
    """Return for each object what kstatus and Argo CD say."""
    items = list(objects)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "argocd-cm.json")
        file.write_text(json.dumps(yaml.safe_load(CONFIG_MAP.read_text())))
        lines = "\n".join(json.dumps(item) for item in items)
        command = [programs.program("argocd"), file]
        done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    answers = map(json.loads, done.stdout.splitlines())
    return [{**said, **answer} for said, answer in zip(neighbours.verdicts(items), answers, strict=True)]


if __name__ == "__main__":
    neighbours.TABLE.write(neighbours.table(verdicts), neighbours.seen())
