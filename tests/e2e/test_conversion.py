"""Both versions of KServe's kinds on a real API server, and the takeover of KServe's CRD with its objects."""

from __future__ import annotations

import json
import time
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import Installation
from tests.e2e.processes import wait_until
from tests.e2e.takeover import GROUP, NAMESPACE, PLURAL, VERSIONS, stored

pytestmark = pytest.mark.e2e

OLDER, NEWER = (f"{PLURAL}.{version}.{GROUP}" for version in VERSIONS)
READ_INTERVAL_SECONDS = 0.05


@pytest.fixture(scope="module")
def taken_over(bare_installation: Installation) -> Installation:
    """A cluster with KServe's CRD, stored objects and a conversion webhook from before the installation."""
    return bare_installation


def test_objects_of_kserves_crd_are_taken_over_in_place(taken_over: Installation) -> None:
    """No object is written, the stored version stays the same, and both versions can be read."""
    cluster = taken_over.cluster
    crd = cluster.get("crd", f"{PLURAL}.{GROUP}")
    assert crd["status"]["storedVersions"] == ["v1alpha2"]
    assert not [key for key in crd["metadata"].get("annotations", {}) if key.startswith("cert-manager.io/")]
    for resource, version in ((OLDER, "v1alpha1"), (NEWER, "v1alpha2")):
        item = cluster.get(resource, "before", "-n", NAMESPACE)
        assert (item["apiVersion"], item["spec"]["model"]["uri"]) == (f"{GROUP}/{version}", "hf://facebook/opt-125m")
    wait_until(lambda: has_child(cluster, NAMESPACE, "before"), "its Deployment")
    (deployment,) = cluster.get("deployments", "-n", NAMESPACE)["items"]
    (owner,) = deployment["metadata"]["ownerReferences"]
    assert owner["apiVersion"] == f"{GROUP}/v1alpha2", "as KServe writes it"


def has_child(cluster: ControlPlane, namespace: str, name: str) -> bool:
    return cluster.kubectl("get", "deployment", f"{name}-kserve", "-n", namespace, check=False).returncode == 0


def test_what_is_written_in_one_version_is_read_in_the_other(taken_over: Installation) -> None:
    cluster = taken_over.cluster
    namespace = cluster.create_namespace()
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(stored("ports", 8000, 8001)))
    older = cluster.get(OLDER, "ports", "-n", namespace)
    pool = older["spec"]["router"]["scheduler"]["pool"]["spec"]
    assert (pool["targetPortNumber"], pool["selector"]) == (8000, {"app": "x"})
    assert pool["extensionRef"]["portNumber"] == 9002

    change = {"spec": {"model": {"criticality": "Critical"}, "replicas": 2}}
    cluster.kubectl("patch", OLDER, "ports", "-n", namespace, "--type=merge", "-p", json.dumps(change))
    newer = cluster.get(NEWER, "ports", "-n", namespace)
    assert newer["spec"]["replicas"] == 2
    assert "criticality" not in newer["spec"]["model"]
    assert newer["metadata"]["annotations"]["internal.serving.kserve.io/model-criticality"] == "Critical"
    assert newer["spec"]["router"]["scheduler"]["pool"]["spec"]["targetPorts"] == [{"number": 8000}, {"number": 8001}]
    assert cluster.get(OLDER, "ports", "-n", namespace)["spec"]["model"]["criticality"] == "Critical"


def test_each_version_has_its_own_admission(taken_over: Installation) -> None:
    """An object is validated in the version in which it was written, and errors name that version's fields."""
    cluster = taken_over.cluster
    namespace = cluster.create_namespace()
    route = {"route": {"http": {"spec": {"parentRefs": [{"name": "g", "namespace": "n"}]}}}}
    both = {"router": {**route, "gateway": {"refs": [{"name": "g", "namespace": "n"}]}}}
    document = stored("twice")
    document["spec"] |= both
    older = {**document, "apiVersion": f"{GROUP}/v1alpha1"}
    refused = cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(older), check=False)
    assert refused.returncode != 0
    assert "spec.router.route.http.spec: Invalid value" in refused.stderr
    assert "parentRefs and gateway.refs are mutually exclusive" in refused.stderr
    accepted = cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(document))
    assert "repeats gateway.refs" in accepted.stderr


def test_the_version_that_is_stored_is_there_while_the_service_restarts(taken_over: Installation) -> None:
    """Over two restarts, reads of the stored version never fail.

    Reads of the older one may fail from the end of the only replica until the first that succeeds after its restart;
    they recover without intervention.
    """
    cluster = taken_over.cluster
    seen: dict[str, list[tuple[float, bool]]] = {version: [] for version in VERSIONS}
    done = Event()

    def read(version: str) -> None:
        while not done.wait(READ_INTERVAL_SECONDS):
            answer = cluster.client.get(f"/apis/{GROUP}/{version}/namespaces/{NAMESPACE}/{PLURAL}?limit=500")
            seen[version].append((time.monotonic(), answer.status_code == 200))

    older, newer = seen.values()
    readers = [Thread(target=read, args=(version,)) for version in seen]
    for reader in readers:
        reader.start()
    stopped = []
    for _ in range(2):
        time.sleep(2)
        before = time.monotonic()
        taken_over.stop_service()
        taken_over.start_service()
        started = time.monotonic()
        # The last read began after the one before it had ended.
        wait_until(lambda: len(older) > 1 and older[-1][1] and older[-2][0] > started, "an older read")  # noqa: B023
        stopped.append((before, older[-1][0]))
    time.sleep(2)
    done.set()
    for reader in readers:
        reader.join()
    assert all(ok for _, ok in newer), "the version that is stored needs nobody"
    failed = [when for when, ok in older if not ok]
    outside = [when for when in failed if not any(a <= when <= b for a, b in stopped)]
    assert outside == []
    assert older[-1][1], "reads of the older version come back"
    print(f"{len(failed)} of {len(older)} reads of the older version failed, in {stopped}")


def test_a_list_in_the_older_version_is_converted_as_a_whole(taken_over: Installation, tmp_path: Path) -> None:
    """The list has more objects than kubectl requests at once, which is 500 by default."""
    cluster = taken_over.cluster
    namespace = cluster.create_namespace()
    names = {f"s{n}" for n in range(60)}
    items = [stored(name) for name in sorted(names)]
    for item in items:
        item["metadata"]["annotations"] = {"serving.kserve.io/stop": "true"}
    path = tmp_path / "many.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    cluster.kubectl("create", "-n", namespace, "-f", str(path))
    items = cluster.get(OLDER, "-n", namespace, "--chunk-size=50")["items"]
    assert {item["metadata"]["name"] for item in items} == names
    assert {item["apiVersion"] for item in items} == {f"{GROUP}/v1alpha1"}
