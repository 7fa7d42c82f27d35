"""Fields in which a kept pod template may differ from the plan, for each family's workloads (docs/security.md).

Each workload gets a template that was never planned: either in Metacontroller's record and in the cluster, as a user
with write access could do, or without a record, like a workload that is older than its service.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import pytest

from app.desk.cluster import apply
from app.desk.cluster.store import outer_key
from app.hooks.template import INPUTS, KEPT, WAITS
from app.kube.base import Json
from tests.changed import copied
from tests.contract import recordings
from tests.contract.releases import WORKLOADS
from tests.contract.test_goldens import settings
from tests.contract.world import Key, World, key

pytestmark = pytest.mark.no_cover

WANTED = {
    ("llmkube", "Deployment.apps/v1"),
    ("llmaz", "Deployment.apps/v1"),
    ("llmaz", "LeaderWorkerSet.leaderworkerset.x-k8s.io/v1"),
    ("llmaz", "Service.inference.llmaz.io/v1alpha1"),
    ("kserve", "Deployment.apps/v1"),
    ("kserve", "LeaderWorkerSet.leaderworkerset.x-k8s.io/v1"),
}
"""A family and a kind of its workloads."""

Change = Callable[[Json, Json], Any]
"""Changes a pod's spec and its first container."""


def _of_pod(name: str, value: Any) -> Change:
    return lambda pod, _: pod.update({name: value})


def _of_container(name: str, value: Any) -> Change:
    return lambda _, container: container.update({name: value})


def _item(name: str, item: Json) -> Change:
    return lambda pod, _: pod.setdefault(name, []).append(item)


def _item_of_container(name: str, item: Json) -> Change:
    return lambda _, container: container.setdefault(name, []).append(item)


FORGED = {
    "hostPID": _of_pod("hostPID", True),
    "hostIPC": _of_pod("hostIPC", True),
    "hostNetwork": _of_pod("hostNetwork", True),
    "shareProcessNamespace": _of_pod("shareProcessNamespace", True),
    "automountServiceAccountToken": _of_pod("automountServiceAccountToken", True),
    "serviceAccountName": _of_pod("serviceAccountName", "forged"),
    "priorityClassName": _of_pod("priorityClassName", "forged"),
    "runtimeClassName": _of_pod("runtimeClassName", "forged"),
    "nodeName": _of_pod("nodeName", "forged"),
    "schedulerName": _of_pod("schedulerName", "forged"),
    "nodeSelector": _of_pod("nodeSelector", {"node": "forged"}),
    "tolerations": _of_pod("tolerations", [{"key": "forged", "operator": "Exists"}]),
    "affinity": _of_pod("affinity", {"nodeAffinity": {"forged": []}}),
    "securityContext": _of_pod("securityContext", {"runAsUser": 0, "sysctls": [{"name": "forged", "value": "1"}]}),
    "hostAliases": _of_pod("hostAliases", [{"ip": "127.0.0.1", "hostnames": ["forged"]}]),
    "imagePullSecrets": _of_pod("imagePullSecrets", [{"name": "forged"}]),
    "resourceClaims": _of_pod("resourceClaims", [{"name": "forged"}]),
    "ephemeralContainers": _of_pod("ephemeralContainers", [{"name": "other", "image": "forged"}]),
    "hostPath": _item("volumes", {"name": "forged", "hostPath": {"path": "/"}}),
    "secret": _item("volumes", {"name": "other", "secret": {"secretName": "forged"}}),
    "csi": _item("volumes", {"name": "other", "csi": {"driver": "forged"}}),
    "nfs": _item("volumes", {"name": "other", "nfs": {"server": "forged", "path": "/"}}),
    "projected": _item("volumes", {"name": "other", "projected": {"sources": [{"secret": {"name": "forged"}}]}}),
    "another container": _item("containers", {"name": "other", "image": "forged"}),
    "another init container": _item("initContainers", {"name": "other", "image": "forged"}),
    "container: securityContext": _of_container("securityContext", {"privileged": True, "procMount": "Forged"}),
    "container: lifecycle": _of_container("lifecycle", {"postStart": {"httpGet": {"host": "forged", "port": 80}}}),
    "container: livenessProbe": _of_container("livenessProbe", {"httpGet": {"host": "forged", "port": 80}}),
    "container: startupProbe": _of_container("startupProbe", {"tcpSocket": {"host": "forged", "port": 80}}),
    "container: envFrom": _of_container("envFrom", [{"secretRef": {"name": "forged"}}]),
    "container: env": _of_container("env", [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "forged"}}}]),
    "container: volumeDevices": _of_container("volumeDevices", [{"name": "forged", "devicePath": "/dev/x"}]),
    "container: workingDir": _of_container("workingDir", "/forged"),
    "container: restartPolicy": _of_container("restartPolicy", "Forged"),
    "container: resources": _of_container("resources", {"claims": [{"name": "forged"}]}),
    "container: ports": _item_of_container("ports", {"name": "forged", "containerPort": 1, "hostPort": 1}),
    "container: volumeMounts": _item_of_container("volumeMounts", {"name": "forged", "mountPath": "/forged"}),
}
"""Fields that no release changes. The values occur only in forged templates."""

RELEASED = {
    "image": _of_container("image", "released:1"),
    "args": _of_container("args", ["--released"]),
    "env": _of_container("env", [{"name": "RELEASED", "value": "1"}]),
    "livenessProbe": _of_container("livenessProbe", {"exec": {"command": ["released"]}}),
    "resources.requests": _of_container("resources", {"requests": {"cpu": "7"}}),
}
"""Fields that a release may change."""

cases = pytest.mark.parametrize(("family", "kind"), sorted(WANTED), ids=lambda case: case.partition(".")[0])


@cases
@pytest.mark.parametrize("forged", FORGED.values(), ids=list(FORGED))
def test_a_forged_record_is_not_sent(family: str, kind: str, forged: Change) -> None:
    """With a digest of the present inputs, and without any digest."""
    for noted in (True, False):
        world, identity, planned = _settled(family, kind)
        world.put(_forged(world.objects[identity], kind, forged, recorded=True, noted=noted))
        _assert_nothing_forged_is_sent(world, identity)
        assert _without_account(_template(world.objects[identity], kind)) == _without_account(planned)


@cases
@pytest.mark.parametrize("forged", FORGED.values(), ids=list(FORGED))
def test_what_was_made_beforehand_is_not_sent(family: str, kind: str, forged: Change) -> None:
    world, identity, _ = _settled(family, kind)
    world.put(_forged(world.objects[identity], kind, forged, recorded=False, noted=False))
    _assert_nothing_forged_is_sent(world, identity)


@cases
@pytest.mark.parametrize("forged", FORGED.values(), ids=list(FORGED))
def test_a_forged_record_is_not_sent_while_the_spec_is_invalid(family: str, kind: str, forged: Change) -> None:
    """The workload is left unchanged, because no template can be planned."""
    world, identity, planned = _settled(family, kind)
    intact = world.objects[identity]
    record = apply.last_applied(_forged(intact, kind, forged, recorded=True))
    world.put(apply.with_record(copied(intact), record))
    parent = _owner(world, intact)
    world.put({**parent, "spec": {**parent["spec"], "replicas": -1}})
    _assert_nothing_forged_is_sent(world, identity)
    assert _template(world.objects[identity], kind) == planned


@cases
def test_a_workload_of_other_containers_becomes_the_planned_one(family: str, kind: str) -> None:
    """It may have the planned name, but no record."""
    world, identity, planned = _settled(family, kind)
    other = {"name": "other", "image": "other"}

    def replace(pod: Json, _: Json) -> None:
        pod.update(hostPID=True, containers=[other], volumes=[{"name": "other", "hostPath": {"path": "/"}}])

    world.put(_forged(world.objects[identity], kind, replace, recorded=False, noted=False))
    world.run()
    assert _template(world.objects[identity], kind) == planned


@cases
@pytest.mark.parametrize("field", RELEASED)
def test_what_a_release_may_change_stays_and_is_named(family: str, kind: str, field: str) -> None:
    world, identity, planned = _settled(family, kind)
    world.put(_forged(world.objects[identity], kind, RELEASED[field], recorded=True))
    world.run()
    kept = world.objects[identity]
    assert _template(kept, kind) != planned
    assert KEPT in kept["metadata"]["annotations"]
    ready = _ready(_owner(world, kept))
    assert WAITS in ready
    assert f"{kept['kind']} {identity[2]}: " in ready
    assert field in ready


# A case's cluster, and its answers.


@functools.cache
def _settled_world(family: str, kind: str) -> World:
    """Return the settled cluster of the family's first recorded case with such a workload; cached for all tests."""
    worlds = (_world(case) for case in recordings.replayed(family) if "objects" in case)
    return next(world for world in worlds if _workload_key(world, kind))


def _world(case: Json) -> World:
    world = World(case, settings(case).model_copy(update={"keep_pod_templates": True}))
    world.run()
    return world


def _workload_key(world: World, kind: str) -> Key | None:
    """Return the key of a workload of that kind with an owner, or None."""
    owned = (
        item for item in world.objects.values() if key(item)[0] == kind and item["metadata"].get("ownerReferences")
    )
    workloads = (item for item in owned if _pods(_template(item, kind)))
    return next((key(item) for item in workloads), None)


def _settled(family: str, kind: str) -> tuple[World, Key, Json]:
    world = _settled_world(family, kind).copy()
    identity = _workload_key(world, kind)
    assert identity is not None
    return world, identity, copied(_template(world.objects[identity], kind))


def _forged(item: Json, kind: str, change: Change, *, recorded: bool, noted: bool = True) -> Json:
    """Return the workload with its pods changed, and also its record, if there is one."""
    forged, record = copied(apply.without_record(item)), copied(apply.last_applied(item))
    for each in (forged, record):
        for pods in _pods(_template(each, kind)):
            change(pods["spec"], pods["spec"]["containers"][0])
        if not noted:
            each["metadata"]["annotations"].pop(INPUTS, None)
    return apply.with_record(forged, record) if recorded else forged


def _assert_nothing_forged_is_sent(world: World, identity: Key) -> None:
    """Run until nothing changes. No answer has a forged value in such a workload."""
    world.answers.clear()
    world.run()
    children = [child for answer in world.answers for child in json.loads(answer).get("children", ())]
    sent = [child for child in children if outer_key(child) == identity[0]]
    assert sent
    assert "forged" not in json.dumps(sent).lower()


def _without_account(template: Json) -> Json:
    """Remove the default account: a field cannot be removed, so the default account replaces a forged one."""
    for pods in _pods(template):
        if pods["spec"].get("serviceAccountName") == "default":
            pods["spec"].pop("serviceAccountName")
    return template


def _template(item: Json, kind: str) -> Json:
    return dict(item["spec"].get(WORKLOADS[kind]) or {})


def _pods(template: Json) -> list[Json]:
    """Return the pod templates in a template."""
    groups = [template[name] for name in ("leaderTemplate", "workerTemplate") if name in template]
    return groups or ([template] if "spec" in template else [])


def _owner(world: World, child: Json) -> Json:
    (owner,) = child["metadata"]["ownerReferences"]
    return next(item for item in world.objects.values() if item["metadata"]["uid"] == owner["uid"])


def _ready(parent: Json) -> str:
    return next(str(c["message"]) for c in parent["status"]["conditions"] if c["type"] == "Ready")
