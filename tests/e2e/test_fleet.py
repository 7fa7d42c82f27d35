"""Many services at once: an idle cluster has no syncs and no writes, and each status write has new content.

The tests count the service's requests, and Metacontroller's writes in the API server's audit log.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import orjson
import pytest
import yaml

from app.kube.base import Json
from app.workload.readiness.waiting import RESYNC
from tests.bench.fleet import FLEETS, Fleet
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import Installation, clear
from tests.e2e.processes import wait_until

pytestmark = pytest.mark.e2e

NUMBER = 20
CHANGES: dict[str, Json] = {
    "llmkube": {"env": [{"name": "A", "value": "b"}]},
    "llmaz": {"backendRuntimeConfig": {"envs": [{"name": "A", "value": "b"}]}},
    "kserve": {"labels": {"a": "b"}},
}
"""By family: a change that replaces every service's pods."""


@pytest.fixture(scope="module")
def fleets(bare_installation: Installation) -> Iterator[Installation]:
    """Twenty ready services of each family."""
    cluster = bare_installation.cluster
    for fleet in FLEETS.values():
        cluster.create_namespace(fleet.namespace)
        documents = [*fleet.shared, *fleet.services(NUMBER)]
        cluster.kubectl("apply", "-n", fleet.namespace, "-f", "-", input=yaml.safe_dump_all(documents))
    for fleet in FLEETS.values():
        wait_until(partial(_are_ready, cluster, fleet, 1), f"services of {fleet.family}")
    yield bare_installation
    clear(cluster, *(fleet.namespace for fleet in FLEETS.values()))


def _are_ready(cluster: ControlPlane, fleet: Fleet, generation: int) -> bool:
    """Report whether all services are ready, with pods of that generation."""
    items = cluster.get(f"{fleet.resource.plural}.{fleet.resource.group}", "-n", fleet.namespace)["items"]
    deployments = cluster.get("deployments", "-n", fleet.namespace)["items"]
    return (
        len(items) == len(deployments) == NUMBER
        and all(_ready(item) and item["metadata"]["generation"] == generation for item in items)
        and all(_rolled_out(item) and item["metadata"]["generation"] == generation for item in deployments)
    )


def _ready(item: Json) -> bool:
    conditions = item.get("status", {}).get("conditions", [])
    return any((c["type"], c["status"]) == ("Ready", "True") for c in conditions)


def _rolled_out(item: Json) -> bool:
    status = item.get("status", {})
    return bool(
        status.get("observedGeneration") == item["metadata"]["generation"]
        and status.get("replicas") == status.get("updatedReplicas") == status.get("readyReplicas") == 1
    )


def _writes(cluster: ControlPlane) -> list[Json]:
    """Return Metacontroller's writes in the fleets' namespaces, except for events."""
    namespaces = {fleet.namespace for fleet in FLEETS.values()}
    return [
        event
        for event in cluster.audit_events("metacontroller")
        if event["verb"] in ("create", "update", "patch", "delete")
        and event["objectRef"].get("namespace") in namespaces
        and event["objectRef"]["resource"] != "events"
        and event["responseStatus"]["code"] < 300
    ]


def _visible(status: Json) -> bytes:
    """Return a status without its timestamps."""

    def kept(value: Any) -> Any:
        if isinstance(value, Mapping):
            times = ("lastTransitionTime", "lastUpdated")
            return {key: kept(inner) for key, inner in value.items() if key not in times}
        return [kept(inner) for inner in value] if isinstance(value, list) else value

    return orjson.dumps(kept(status), option=orjson.OPT_SORT_KEYS)


def _assert_that_statuses_tell_news(writes: list[Json]) -> None:
    """Assert that no status is written twice, and only a few differ from the last one in timestamps alone.

    The latter happens because of Metacontroller's cache: a sync may have the status before the last one, and the same
    change then gets the timestamp of the next second.
    """
    told: dict[str, list[Json]] = {}
    for event in writes:
        ref = event["objectRef"]
        if ref.get("subresource") == "status":
            told.setdefault(f"{ref['resource']} {ref['namespace']}/{ref['name']}", []).append(
                event["requestObject"]["status"]
            )
    pairs = [(name, *pair) for name, statuses in told.items() for pair in pairwise(statuses)]
    assert [name for name, before, after in pairs if before == after] == []
    stamped = [name for name, before, after in pairs if _visible(before) == _visible(after)]
    assert len(stamped) * 4 < len(pairs), stamped


def _children(writes: list[Json]) -> Counter[tuple[str, str]]:
    """Return the number of writes by verb and kind of object."""
    return Counter((e["verb"], e["objectRef"]["resource"]) for e in writes if "subresource" not in e["objectRef"])


def test_a_status_is_written_when_it_says_something_new(fleets: Installation) -> None:
    """From creation until all pods are ready, each child is written once, and each status write has new content."""
    writes = _writes(fleets.cluster)
    _assert_that_statuses_tell_news(writes)
    assert _children(writes) == {("create", "deployments"): 3 * NUMBER, ("create", "services"): 4 * NUMBER}


def test_a_rollout_writes_each_child_once(fleets: Installation) -> None:
    """New pods for all services cause one update of each Deployment, and status writes with new content.

    ``services`` has updates of two families: llmaz' Playgrounds change their Service of ``inference.llmaz.io``, and the
    labels of an LLMInferenceService are also on its workload Service.
    """
    cluster = fleets.cluster
    before = len(_writes(cluster))
    for fleet in FLEETS.values():
        resource = fleet.resource
        path = f"/apis/{resource.api_version}/namespaces/{fleet.namespace}/{resource.plural}"
        change = orjson.dumps({"spec": CHANGES[fleet.family]})
        for service in fleet.services(NUMBER):
            name, header = service["metadata"]["name"], {"Content-Type": "application/merge-patch+json"}
            cluster.client.patch(f"{path}/{name}", content=change, headers=header).raise_for_status()
    for fleet in FLEETS.values():
        wait_until(partial(_are_ready, cluster, fleet, 2), f"the rollout of {fleet.family}")
    # A sync writes a service's Deployment before its Service.
    wait_until(lambda: _children(_writes(cluster)[before:]).total() >= 5 * NUMBER, "the Services of the rollout")
    writes = _writes(cluster)[before:]
    _assert_that_statuses_tell_news(writes)
    assert _children(writes) == {("update", "deployments"): 3 * NUMBER, ("update", "services"): 2 * NUMBER}


def test_nothing_happens_while_nothing_happens(fleets: Installation) -> None:
    """Once the timers of the rollout have expired, nothing is synced or written."""
    time.sleep(RESYNC + 5)

    def nothing_happens() -> bool:
        before = fleets.syncs(), len(_writes(fleets.cluster))
        time.sleep(20)
        return before == (fleets.syncs(), len(_writes(fleets.cluster)))

    wait_until(nothing_happens, "20 s without syncs and writes", interval=0)
