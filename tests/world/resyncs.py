"""All examples at rest beside other projects' kinds, and what Metacontroller writes when it syncs them again.

`python -m tests.world.resyncs` writes what it writes beside the oldest releases into tests/world/README.md.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from app.families import RESOURCES
from app.hooks.readystatus import KEEPS_NO_NOTE
from app.images import INSTALLATION
from app.limits import CHILD_TIMEOUT_SECONDS
from tests.e2e import binaries
from tests.e2e.conftest import optional_components
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import ROOT, Installation
from tests.e2e.neighbour_releases import EXAMPLES, RELEASES, place
from tests.e2e.pagetable import PageTable
from tests.e2e.processes import wait_until
from tests.e2e.test_kserve import make_gateway, play_controllers

TABLE = PageTable(ROOT / "tests" / "world" / "README.md", "resyncs")
RESYNCS, WINDOWS = 10, 6
_FAMILIES = sorted({resource.family for resource in RESOURCES})
_EVERY_SECOND = {"spec": {"resyncPeriodSeconds": 1}}
_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "resources": [{"group": "", "resources": ["events"]}]},
        {"level": "Metadata", "users": ["metacontroller"], "verbs": ["create", "update", "patch", "delete"]},
        {"level": "None"},
    ],
}
"""What Metacontroller writes but for events, also where it changes nothing."""


def oldest_crds() -> list[Path]:
    """Return the CRDs of all optional kinds, in the oldest releases that are tried; of the others, the pinned ones."""
    return [
        binaries.crd_of(name, RELEASES[name][1][0]) if name in RELEASES else binaries.optional_crds(name)[0]
        for name in binaries.OPTIONAL_KINDS
    ]


@contextmanager
def examples_at_rest(workdir: Path, crds: Sequence[Path]) -> Iterator[Installation]:
    """Install all examples, each family in a namespace, with every component and a resync every second."""
    with ControlPlane(workdir / "control-plane", audit=_AUDIT) as cluster:
        cluster.install_crds(*crds)
        with Installation(cluster, workdir / "installation", optional_components()) as installed:
            make_gateway(cluster)
            cluster.kubectl("apply", "-k", ROOT / "manifests" / "llmaz-runtimes")
            for family in _FAMILIES:
                cluster.create_namespace(family)
                files = [path for path in EXAMPLES if path.parent == ROOT / "examples" / family]
                cluster.kubectl("apply", "-n", family, *(argument for path in files for argument in ("-f", path)))
            for kind in ("compositecontrollers", "decoratorcontrollers"):
                for item in cluster.get(kind)["items"]:
                    _merge(cluster, f"metacontroller.k8s.io/v1alpha1/{kind}/{item['metadata']['name']}", _EVERY_SECOND)
            yield installed


def remaining_writes(at_rest: Installation) -> Counter[str]:
    """Return the writes of ten resyncs by verb and object, once they are the same as in the ten before, or none.

    News, such as that a metric is still missing after a minute, are written once, and a hot loop has no end.
    """
    earlier: Counter[str] = Counter()
    for _ in range(WINDOWS):
        written = _written(at_rest)
        if not written or written.keys() == earlier.keys():
            return written
        earlier = written
    raise TimeoutError(f"still other writes after {WINDOWS} times {RESYNCS} resyncs: {earlier}")


def _written(at_rest: Installation) -> Counter[str]:
    play_controllers(at_rest.cluster, "kserve")
    each = _each_sync(at_rest.cluster)
    syncs, before = at_rest.syncs(), _writes(at_rest.cluster)
    for number in range(1, RESYNCS + 1):
        wanted = Counter({path: number * count for path, count in each.items()})
        wait_until(lambda wanted=wanted: at_rest.syncs() - syncs >= wanted, f"resync {number}")  # type: ignore[misc]  # mypy cannot infer a lambda with a default
    return _writes(at_rest.cluster) - before


def _merge(cluster: ControlPlane, path: str, change: object) -> None:
    header = {"Content-Type": "application/merge-patch+json"}
    cluster.client.patch(f"/apis/{path}", json=change, headers=header).raise_for_status()


def _writes(cluster: ControlPlane) -> Counter[str]:
    """Return the number of Metacontroller's writes by verb and object."""
    written: Counter[str] = Counter()
    for event in cluster.audit_events("metacontroller"):
        ref = event["objectRef"]
        parts = [ref.get(key, "") for key in ("resource", "namespace", "name", "subresource")]
        written[" ".join((event["verb"], "/".join(filter(None, parts))))] += 1
    return written


def _each_sync(cluster: ControlPlane) -> Counter[str]:
    """Return the number of syncs that one resync makes, by the path of the hook."""
    objects = {
        f"{resource.hook_path}/sync": cluster.get(f"{resource.plural}.{resource.group}", "-A")["items"]
        for resource in RESOURCES
    }
    assert all(objects.values())
    return Counter({path: len(items) for path, items in objects.items()})


def table(at_rest: Installation) -> str:
    """Return the table of the page: a row per kind and verb that every resync writes.

    That a child is refused is said after a minute, so the statuses are read until they name each child.
    """
    writes: dict[tuple[str, str], list[str]] = {}
    for write in remaining_writes(at_rest):
        verb, _, path = write.partition(" ")
        writes.setdefault((path.partition("/")[0], verb), []).append(path.rpartition("/")[2])
    said: dict[str, str] = {}

    def is_said() -> bool:
        messages = _messages(at_rest.cluster)
        said.update({name: _words(messages, name) for names in writes.values() for name in names})
        return all(said.values())

    wait_until(is_said, "a status that says why each child is written at every sync", timeout=2 * CHILD_TIMEOUT_SECONDS)
    kinds = {child.plural: child.kind for resource in RESOURCES for child in resource.children}
    rows = ["| Kind | Release | At every sync | What the status says |", "|---|---|---|---|"]
    for (resource, verb), names in sorted(writes.items()):
        project, versions = RELEASES[resource]
        words = ", ".join(sorted({said[name] for name in names}))
        release = f"{project} {versions[0].removeprefix('v')}"
        rows.append(f"| {kinds[resource]} | {release} | {verb} {len(names)} | {words} |")
    return "\n".join(rows)


def _messages(cluster: ControlPlane) -> list[tuple[str, str]]:
    """Return reason and message of the conditions of all resources."""
    items = (
        item for resource in RESOURCES for item in cluster.get(f"{resource.plural}.{resource.group}", "-A")["items"]
    )
    conditions = (condition for item in items for condition in item["status"].get("conditions") or ())
    return [(condition.get("reason", ""), condition.get("message", "")) for condition in conditions]


def _words(messages: Sequence[tuple[str, str]], name: str) -> str:
    """Return what a status says of a child: the fields that are not kept, or why it is not there; empty for nothing."""
    for reason, message in messages:
        note = message.partition(KEEPS_NO_NOTE)[2]
        if fields := re.findall(rf"(\S+) of \w+ {name}\b", note):
            return ", ".join(f"keeps no `{place(path)}`" for path in fields)
        if f" {name} cannot be created" in message:
            return f"`{reason}`"
    return ""


def seen() -> str:
    metacontroller = INSTALLATION[1].rpartition(":v")[2]
    return f"Seen with Metacontroller {metacontroller} and Kubernetes {binaries.release().removeprefix('v')}"


if __name__ == "__main__":
    if "METACONTROLLER" not in os.environ:
        sys.exit("METACONTROLLER has to name its program: the page says what the real one writes")
    with tempfile.TemporaryDirectory() as folder, examples_at_rest(Path(folder), oldest_crds()) as resources:
        TABLE.write(table(resources), seen())
