"""Groups that a Go operator left are taken over: beside their real controller, no pod of them restarts."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator

import pytest

from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from tests.contract import recordings
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import Installation
from tests.e2e.processes import wait_until
from tests.world.test_leaderworkerset import KSERVE, LLMAZ, SETS, cluster, pods

__all__ = ["cluster"]

pytestmark = [pytest.mark.e2e, pytest.mark.world("lws")]

_TWICE = "llmaz names a variable twice in a container, which an API server refuses"
REFUSED = {
    "sample-multi-nodes-service": _TWICE,
    "service-multi-node-flavors": _TWICE,
    "service-workload-template-all": _TWICE,
    "service-multi-node-leader-without-runner": "no container is named model-runner, which admission refuses",
}
"""Recorded cases that no cluster with modelhooks has, and why."""
_PARENTS = {"LLMInferenceService": KSERVE, "Service": LLMAZ}
_SHARED = ("LLMInferenceServiceConfig", "ConfigMap")
"""Kinds of a case's objects in an operator's namespace that shape pods."""


def group_cases() -> list[Json]:
    """Recorded cases with a group of several pods; of llmaz those with the ConfigMap, which they share."""
    found = [case for family in ("kserve", "llmaz") for case in recordings.cases(family) if _has_group(case)]
    return [case for case in found if case["family"] == "kserve" or "ConfigMap" in _kinds(case)]


def _has_group(case: Json) -> bool:
    sets = [child for child in case["expect"].get("children", []) if child["kind"] == "LeaderWorkerSet"]
    return any(item["spec"]["leaderWorkerTemplate"].get("size", 1) > 1 for item in sets)


def _kinds(case: Json) -> set[str]:
    return {item["kind"] for item in case["objects"]}


class Remains:
    """What the operator of a recorded case left in a namespace, its children labelled as docs/migration.md does."""

    def __init__(self, cluster: ControlPlane, case: Json) -> None:
        self.name = case["name"]
        self._cluster = cluster
        self._namespace = cluster.create_namespace()
        text = json.dumps(case)
        for model in (item["metadata"]["name"] for item in case["objects"] if item["kind"] == "OpenModel"):
            text = text.replace(model, f"{model}-{self._namespace}")  # no namespace holds them
        case = json.loads(text)
        written = [item for item in case["objects"] if _namespace_of(item) == "default" and not _is_owned(item)]
        self.is_refused = not self._apply(*(_unstored(item, {}, "") for item in written))
        if not self.is_refused:
            (parent,) = (item for item in written if item["kind"] in _PARENTS)
            uid = self._get(_PARENTS[parent["kind"]], parent["metadata"]["name"])["metadata"]["uid"]
            children = [c for c in case["expect"]["children"] if c["kind"] in ("LeaderWorkerSet", "ServiceAccount")]
            self.is_refused = not self._apply(*(_unstored(child, {"controller-uid": uid}, uid) for child in children))

    def _apply(self, *items: Json) -> bool:
        """Apply objects; report whether the API server, which the recorded operators did not have, accepts them all."""
        together = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        arguments = ("apply", "-n", self._namespace, "--validate=false", "-f", "-")
        return self._cluster.kubectl(*arguments, input=together, check=False).returncode == 0

    def _get(self, *arguments: str) -> Json:
        found: Json = self._cluster.get(*arguments, "-n", self._namespace)
        return found

    def sets(self) -> list[Json]:
        return list(self._get(SETS)["items"])

    def is_up(self) -> bool:
        """Report whether every group has its leader; workers may wait for GPUs that no node has."""
        return all(item.get("status", {}).get("replicas") == item["spec"]["replicas"] for item in self.sets())

    def is_taken_over(self) -> bool:
        """Report whether Metacontroller has recorded what the hook asked for."""
        return all(LAST_APPLIED in item["metadata"].get("annotations", {}) for item in self.sets())

    def pods(self) -> set[tuple[str, str]]:
        """Names and uids of the groups' pods."""
        return {(name, pod["metadata"]["uid"]) for name, pod in pods(self._cluster, self._namespace).items()}

    def revisions(self) -> int:
        """Return the largest number of templates that the groups' controller has recorded for a set."""
        owners = [item["metadata"]["ownerReferences"][0]["uid"] for item in self._get("controllerrevisions")["items"]]
        return max(owners.count(item["metadata"]["uid"]) for item in self.sets())

    def delete(self) -> None:
        self._cluster.kubectl("delete", "namespace", self._namespace, "--wait=false")


def _namespace_of(item: Json) -> str:
    return str(item["metadata"].get("namespace", "default"))


def _is_owned(item: Json) -> bool:
    return "ownerReferences" in item["metadata"]


def _unstored(item: Json, labels: dict[str, str], owner: str) -> Json:
    """Return a recorded object without what the API server adds, with further labels and the uid of its owner."""
    recorded = item["metadata"]
    metadata = {key: recorded[key] for key in ("name", "annotations") if key in recorded}
    metadata["labels"] = {**recorded.get("labels", {}), **labels}
    metadata["ownerReferences"] = [{**each, "uid": owner} for each in recorded.get("ownerReferences", [])]
    return {key: value for key, value in item.items() if key != "status"} | {"metadata": metadata}


@contextlib.contextmanager
def shared(cluster: ControlPlane, cases: list[Json]) -> Iterator[None]:
    """The objects of the cases in the namespaces of the operators, for as long as the test needs them."""
    items = [item for case in cases for item in case["objects"] if item["kind"] in _SHARED]
    items = [item for item in items if _namespace_of(item) != "default"]
    namespaces = sorted({_namespace_of(item) for item in items})
    for name in namespaces:
        cluster.create_namespace(name)
    for item in items:
        cluster.kubectl("apply", "-n", _namespace_of(item), "-f", "-", input=json.dumps(_unstored(item, {}, "")))
    yield
    cluster.kubectl("delete", "namespace", *namespaces)


@pytest.fixture
def current_presets(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The presets that users get who set none."""
    with monkeypatch.context() as patched:
        patched.delenv("MODELHOOKS_KSERVE_PRESETS")
        installation.stop_service()
        installation.start_service()
    yield
    installation.stop_service()
    installation.start_service()


@pytest.mark.usefixtures("current_presets")
def test_no_pod_restarts(installation: Installation, cluster: ControlPlane) -> None:
    """Nor does a template change: the groups' controller would record another one."""
    cases = group_cases()
    with shared(cluster, cases):
        installation.metacontroller.stop()
        try:
            everything = [Remains(cluster, case) for case in cases]
            assert {each.name for each in everything if each.is_refused} == REFUSED.keys()
            remains = [each for each in everything if not each.is_refused]
            wait_until(lambda: all(each.is_up() for each in remains), "every group has its leader", 300, 1)
            before = {each.name: each.pods() for each in remains}
        finally:
            installation.metacontroller.restart()
        wait_until(lambda: all(each.is_taken_over() for each in remains), "every group is taken over", 300, 1)
        time.sleep(5)
        assert not {each.name: lost for each in remains if (lost := before[each.name] - each.pods())}
        assert not {each.name: count for each in remains if (count := each.revisions()) > 1}
        for each in everything:
            each.delete()
