"""Hot loops: no resync of an example at rest writes anything, beside the newest releases of other projects' kinds.

Ten resyncs of a hundred objects take minutes on a busy machine, so this is no test of CI.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from app.families import RESOURCES
from tests.e2e.conftest import optional_components
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import ROOT, Installation
from tests.e2e.neighbour_releases import EXAMPLES, newest_crds
from tests.e2e.processes import wait_until
from tests.e2e.test_kserve import make_gateway, play_controllers
from tests.world import programs

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.world,
    pytest.mark.skipif(not programs.REQUIRED, reason="takes minutes on a busy machine (make world-test)"),
]

FAMILIES = sorted({resource.family for resource in RESOURCES})
RESYNCS = 10
EVERY_SECOND = {"spec": {"resyncPeriodSeconds": 1}}
AUDIT = {
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


@pytest.fixture(scope="module")
def at_rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """All examples, each family in a namespace, with every component and a resync every second."""
    workdir = tmp_path_factory.mktemp("at-rest")
    with ControlPlane(workdir / "control-plane", audit=AUDIT) as cluster:
        cluster.install_crds(*newest_crds())
        with Installation(cluster, workdir / "installation", optional_components()) as installed:
            make_gateway(cluster)
            cluster.kubectl("apply", "-k", ROOT / "manifests" / "llmaz-runtimes")
            for family in FAMILIES:
                cluster.create_namespace(family)
                files = [path for path in EXAMPLES if path.parent == ROOT / "examples" / family]
                cluster.kubectl("apply", "-n", family, *(argument for path in files for argument in ("-f", path)))
            for kind in ("compositecontrollers", "decoratorcontrollers"):
                for item in cluster.get(kind)["items"]:
                    _merge(cluster, f"metacontroller.k8s.io/v1alpha1/{kind}/{item['metadata']['name']}", EVERY_SECOND)
            yield installed


def _merge(cluster: ControlPlane, path: str, change: object) -> None:
    header = {"Content-Type": "application/merge-patch+json"}
    cluster.client.patch(f"/apis/{path}", json=change, headers=header).raise_for_status()


def _writes(cluster: ControlPlane) -> Counter[str]:
    """Return the number of Metacontroller's writes by verb and object."""
    found: Counter[str] = Counter()
    for event in cluster.audit_events("metacontroller"):
        ref = event["objectRef"]
        parts = [ref.get(key, "") for key in ("resource", "namespace", "name", "subresource")]
        found[" ".join((event["verb"], "/".join(filter(None, parts))))] += 1
    return found


def _resyncs(cluster: ControlPlane) -> Counter[str]:
    """Return the number of syncs that one resync makes, by the path of the hook."""
    objects = {
        f"{resource.hook_path}/sync": cluster.get(f"{resource.plural}.{resource.group}", "-A")["items"]
        for resource in RESOURCES
    }
    assert all(objects.values())
    return Counter({path: len(items) for path, items in objects.items()})


def test_ten_resyncs_write_nothing(at_rest: Installation) -> None:
    """News, such as that a metric is still missing after a minute, are written once, and a hot loop has no end."""
    cluster, each = at_rest.cluster, _resyncs(at_rest.cluster)
    written: Counter[str] = Counter()

    def nothing_is_written() -> bool:
        nonlocal written
        play_controllers(cluster, "kserve")
        syncs, before = at_rest.syncs(), _writes(cluster)
        wanted = Counter({path: RESYNCS * number for path, number in each.items()})
        wait_until(lambda: at_rest.syncs() - syncs >= wanted, f"{RESYNCS} resyncs")
        written = _writes(cluster) - before
        return not written

    try:
        wait_until(nothing_is_written, "resyncs write nothing", interval=0)
    except TimeoutError:
        assert written == Counter()
        raise
