"""Groups that a Go operator left are taken over beside the real LeaderWorkerSet controller without a pod restart."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from tests.contract import recordings
from tests.contract.newergroup import NAME, newer_group
from tests.e2e import objects
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import Installation
from tests.e2e.processes import wait_until
from tests.world.leaderworkerset import POD_LABEL
from tests.world.test_leaderworkerset import KSERVE, LLMAZ, SETS, cluster

__all__ = ["cluster"]

pytestmark = [pytest.mark.e2e, pytest.mark.world("lws")]

_TWICE = "llmaz names a variable twice in a container, which an API server refuses"
REFUSED = {
    "sample-multi-nodes-service": _TWICE,
    "service-multi-node-flavors": _TWICE,
    "service-workload-template-all": _TWICE,
    "service-multi-node-leader-without-runner": "no container is named model-runner, which admission refuses",
}
"""Recorded cases that cannot exist in a cluster with modelhooks, and the reason."""
_PARENTS = {"LLMInferenceService": KSERVE, "Service": LLMAZ}
_LEFT = ("LeaderWorkerSet", "ServiceAccount", "ResourceClaimTemplate")
"""Kinds of the children that are left behind: pods, and what they need."""
_SHARED = ("LLMInferenceServiceConfig", "ConfigMap")
"""Kinds in an operator's namespace that affect pods."""


def group_cases() -> list[Json]:
    """Return the recorded multi-node cases; of llmaz only those with the ConfigMap, which they share."""
    with_groups = [case for family in ("kserve", "llmaz") for case in recordings.cases(family) if _has_group(case)]
    return [*(case for case in with_groups if case["family"] == "kserve" or "ConfigMap" in _kinds(case)), newer_group()]


def _has_group(case: Json) -> bool:
    sets = [child for child in case["expect"].get("children", []) if child["kind"] == "LeaderWorkerSet"]
    return any(item["spec"]["leaderWorkerTemplate"].get("size", 1) > 1 for item in sets)


def _kinds(case: Json) -> set[str]:
    return {item["kind"] for item in case["objects"]}


def leave_behind(cluster: ControlPlane, case: Json) -> str | None:
    """Create what the operator of a case left in a new namespace, with children labelled as in docs/migration.md.

    Return the namespace, or None if the API server refuses an object; the operators were recorded without one.
    """
    namespace = cluster.create_namespace()

    def apply(*items: Json) -> bool:
        return not any(objects.apply(cluster.client, namespace, item) for item in items)

    text = json.dumps(case)
    for model in (item["metadata"]["name"] for item in case["objects"] if item["kind"] == "OpenModel"):
        text = text.replace(model, f"{model}-{namespace}")  # cluster-scoped, so names must be unique
    case = json.loads(text)
    written = [item for item in case["objects"] if _namespace_of(item) == "default" and not _is_owned(item)]
    if not apply(*(_unstored(item, {}, "") for item in written)):
        return None
    (parent,) = (item for item in written if item["kind"] in _PARENTS)
    uid = cluster.get(_PARENTS[parent["kind"]], parent["metadata"]["name"], "-n", namespace)["metadata"]["uid"]
    children = [child for child in case["expect"]["children"] if child["kind"] in _LEFT]
    return namespace if apply(*(_unstored(child, {"controller-uid": uid}, uid) for child in children)) else None


class Groups:
    """The groups in some namespaces, with the names of their cases."""

    def __init__(self, cluster: ControlPlane, cases: dict[str, str]) -> None:
        self._cluster = cluster
        self._cases = cases

    def _items(self, kind: str, *arguments: str) -> list[Json]:
        items = self._cluster.get(kind, "--all-namespaces", *arguments)["items"]
        return [item for item in items if item["metadata"]["namespace"] in self._cases]

    def are_up(self) -> bool:
        """Report whether every group has its leader, and some have workers. Others wait for GPUs that no node has."""
        led = all(item.get("status", {}).get("replicas") == item["spec"]["replicas"] for item in self._items(SETS))
        return led and len(self.pods()) > len(self._cases) + len(REFUSED)

    def are_taken_over(self) -> bool:
        """Report whether Metacontroller has recorded what the hook asked for."""
        return all(LAST_APPLIED in item["metadata"].get("annotations", {}) for item in self._items(SETS))

    def pods(self) -> dict[str, str]:
        """Return case and name of each pod by uid, without terminating pods."""
        metadata = (item["metadata"] for item in self._items("pods", f"--selector={POD_LABEL}"))
        return {
            pod["uid"]: f"{self._cases[pod['namespace']]}: {pod['name']}"
            for pod in metadata
            if "deletionTimestamp" not in pod
        }

    def changed_templates(self) -> list[str]:
        """Return the cases whose LeaderWorkerSet has revisions with different templates.

        The controller may record the same template twice.
        """
        sets = {item["metadata"]["uid"]: item["metadata"]["namespace"] for item in self._items(SETS)}
        revisions = self._items("controllerrevisions")
        templates = {(item["metadata"]["ownerReferences"][0]["uid"], json.dumps(item["data"])) for item in revisions}
        counts = Counter(owner for owner, _ in templates)
        return [self._cases[namespace] for uid, namespace in sets.items() if counts[uid] != 1]


def _namespace_of(item: Json) -> str:
    return str(item["metadata"].get("namespace", "default"))


def _is_owned(item: Json) -> bool:
    return "ownerReferences" in item["metadata"]


def _unstored(item: Json, labels: dict[str, str], owner: str) -> Json:
    """Return a recorded object without server-set fields, with added labels and its owner's uid."""
    recorded = item["metadata"]
    metadata = {key: recorded[key] for key in ("name", "annotations") if key in recorded}
    metadata["labels"] = {**recorded.get("labels", {}), **labels}
    metadata["ownerReferences"] = [{**each, "uid": owner} for each in recorded.get("ownerReferences", [])]
    return {key: value for key, value in item.items() if key != "status"} | {"metadata": metadata}


@contextlib.contextmanager
def shared(cluster: ControlPlane, cases: list[Json]) -> Iterator[None]:
    """Create the shared objects of the cases in the operators' namespaces while the test runs."""
    items = [item for case in cases for item in case["objects"] if item["kind"] in _SHARED]
    by_name = {(_namespace_of(item), item["metadata"]["name"]): item for item in items}
    namespaces = {namespace for namespace, _ in by_name} - {"default"}
    for name in namespaces:
        cluster.create_namespace(name)
    for (namespace, _), item in by_name.items():
        if namespace in namespaces:
            assert not objects.apply(cluster.client, namespace, _unstored(item, {}, ""))
    yield
    for (namespace, _), item in by_name.items():
        if namespace in namespaces:
            objects.delete(cluster.client, namespace, item)


@pytest.fixture
def current_presets(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use the presets that apply when none are configured."""
    with monkeypatch.context() as patched:
        patched.delenv("MODELHOOKS_KSERVE_PRESETS")
        installation.stop_service()
        installation.start_service()
    yield
    installation.stop_service()
    installation.start_service()


@pytest.mark.usefixtures("current_presets")
def test_no_pod_restarts(installation: Installation, cluster: ControlPlane) -> None:
    """No pod is replaced, and the LeaderWorkerSet controller records no new template.

    This is the package's last test: what runs ends with the control plane, which takes less time than deleting it.
    """
    cases = group_cases()
    with shared(cluster, cases), ThreadPoolExecutor(max_workers=4) as pool:
        installation.metacontroller.stop()
        try:
            left = pool.map(partial(leave_behind, cluster), cases)
            namespaces = {case["name"]: namespace for case, namespace in zip(cases, left, strict=True)}
            assert {name for name, namespace in namespaces.items() if namespace is None} == REFUSED.keys()
            groups = Groups(cluster, {namespace: name for name, namespace in namespaces.items() if namespace})
            wait_until(groups.are_up, "every group has its leader", interval=1)
            before = groups.pods()
            claimed = _claim_template(cluster, namespaces)
        finally:
            installation.metacontroller.restart()
        wait_until(groups.are_taken_over, "every group is taken over", interval=1)
        time.sleep(5)  # a restart would begin at once
        assert not before.items() - groups.pods().items()
        assert not groups.changed_templates()
        (port,) = cluster.get("services", "demo-kserve-workload-svc", "-n", namespaces[NAME] or "")["spec"]["ports"]
        assert (port["name"], port["appProtocol"]) == ("https", "https")  # as its servers speak
        taken = _claim_template(cluster, namespaces)
        assert (taken["metadata"]["uid"], taken["spec"]) == (claimed["metadata"]["uid"], claimed["spec"])
        assert LAST_APPLIED in taken["metadata"]["annotations"]


def _claim_template(cluster: ControlPlane, namespaces: dict[str, str | None]) -> Json:
    return dict(cluster.get("resourceclaimtemplates", "demo-managed-dra", "-n", namespaces[NAME] or ""))
