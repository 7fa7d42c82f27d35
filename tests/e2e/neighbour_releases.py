"""What the oldest and the newest releases of other projects make of our children of their kinds.

A real API server gets the CRD of each release from its Go module, and a dry run of every child of the examples.
`python -m tests.e2e.neighbour_releases` writes the answers into tests/world/README.md.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from app.desk.cluster.apply import with_record
from app.desk.cluster.store import plural
from app.hooks.lost import lost_fields
from app.hooks.protocol import SyncRequest
from app.kube.base import Json
from app.kube.objects import ObservedObject
from tests.e2e import binaries
from tests.e2e.controlplane import ControlPlane
from tests.e2e.pagetable import PageTable
from tests.e2e.processes import wait_until

ROOT = Path(__file__).parents[2]
TABLE = PageTable(ROOT / "tests" / "world" / "README.md", "releases")
EXAMPLES = [path for path in sorted((ROOT / "examples").rglob("*.yaml")) if "rejected" not in path.parts]
RELEASES: Mapping[str, tuple[str, Sequence[str]]] = {
    "podmonitors": ("Prometheus operator", ("v0.65.2", "v0.93.0")),
    "leaderworkersets": ("LeaderWorkerSet", ("v0.5.1", "v0.9.0")),
    "httproutes": ("Gateway API", ("v1.1.0", "v1.2.1", "v1.4.1", "v1.6.3")),
    "inferencepools": ("inference extension", ("v1.0.0", "v1.6.0")),
    "inferenceobjectives": ("inference extension", ("v1.0.0", "v1.5.0")),
    "scaledobjects": ("KEDA", ("v2.10.1", "v2.21.0")),
    "variantautoscalings": ("workload variant autoscaler", ("v0.7.0",)),
    "destinationrules": ("Istio", ("v1.22.0", "v1.32.0")),
    "aigatewayroutes": ("Envoy AI Gateway", ("v1.0.0",)),
    "aiservicebackends": ("Envoy AI Gateway", ("v1.0.0",)),
    "backends": ("Envoy Gateway", ("v1.9.1",)),
}
"""By plural: the project, and the oldest and the newest release that is tried; of the Gateway API also others that the
page names, one of them too old."""


def distinct_children(namespace: str) -> dict[str, list[Json]]:
    """Return the distinct children of the examples by plural."""
    command = [sys.executable, "-m", "app.cli", "render", "--namespace", namespace, *map(str, EXAMPLES)]
    text = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT).stdout
    documents = [item for item in yaml.load_all(text, Loader=yaml.CSafeLoader) if item and "spec" in item]
    distinct = {
        json.dumps([item["apiVersion"], item["kind"], item["spec"]], sort_keys=True): item for item in documents
    }
    children: dict[str, list[Json]] = {}
    for child in distinct.values():
        children.setdefault(plural(child["kind"]), []).append(child)
    return children


def newest_crds() -> list[Path]:
    """Return the CRDs of all optional kinds, in the newest releases that are tried; of the others, the pinned ones."""
    return [
        binaries.crd_of(name, RELEASES[name][1][-1]) if name in RELEASES else binaries.optional_crds(name)[0]
        for name in binaries.OPTIONAL_KINDS
    ]


def lost(sent: Json, kept: Json) -> list[str]:
    """Return the fields of a child that were sent and not kept."""
    child = msgspec.convert(with_record(kept, sent), Json)
    observed = msgspec.json.decode(msgspec.json.encode(child), type=ObservedObject)
    request: Any = SyncRequest(None, None, None)  # type: ignore[arg-type]
    request.observed = {("", ""): observed}
    return lost_fields(request)


def answers(cluster: ControlPlane, name: str, version: str, children: Sequence[Json]) -> list[str]:
    """Return the fields that a release does not keep or refuses, each once and without positions in lists."""
    file = binaries.crd_of(name, version)
    cluster.install_crds(file)
    fields = []
    for child in children:
        path = f"/apis/{child['apiVersion']}/namespaces/default/{name}"
        wait_until(lambda path=path: cluster.client.get(path).status_code == 200, f"{name} of {version}")  # type: ignore[misc]  # mypy cannot infer a lambda with a default
        answer = cluster.client.post(path, json=child, params={"dryRun": "All", "fieldValidation": "Ignore"})
        if answer.status_code == 201:
            fields += [f"`{place(text)}`" for text in lost(child, answer.json())]
        else:
            causes = answer.json()["details"]["causes"]
            fields += [f"refused for `{place(cause['field'])}`" for cause in causes if "." in cause["field"]]
    cluster.kubectl("delete", "-f", str(file))
    return [*dict.fromkeys(fields)]


def place(text: str) -> str:
    return re.sub(r"\[[^\]]*\]", "[]", text.partition(" of ")[0])


def table(children: Mapping[str, Sequence[Json]]) -> str:
    """Return the table of the page: a row per kind and release."""
    return "\n".join(["| Kind | Release | Children | Not kept |", "|---|---|---|---|", *_rows(children)])


def _rows(children: Mapping[str, Sequence[Json]]) -> Iterator[str]:
    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane(Path(folder), controllers=False, scheduler=False, kwok=False) as cluster,
    ):
        for name, (project, versions) in RELEASES.items():
            kind = children[name][0]["kind"]
            for version in versions:
                said = answers(cluster, name, version, children[name])
                not_kept = ", ".join(said) or "nothing"
                yield f"| {kind} | {project} {version.removeprefix('v')} | {len(children[name])} | {not_kept} |"


def seen() -> str:
    return f"Dry runs with Kubernetes {binaries.release().removeprefix('v')}"


if __name__ == "__main__":
    TABLE.write(table(distinct_children("default")), seen())
