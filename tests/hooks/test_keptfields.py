"""Which fields of a running pod template may stay while a newer one waits: none that gives its pods more rights."""

from __future__ import annotations

from typing import Any

import pytest

from app.hooks.keptfields import RULES, as_it_runs, claim, covers, differences, part_to_keep, union, without_rights
from app.kube.base import Json

PLANNED: Json = {
    "env": [
        {"name": "A", "value": "1"},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
    ],
    "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    "lifecycle": {"preStop": {"exec": {"command": ["sleep", "5"]}}},
    "securityContext": {"allowPrivilegeEscalation": False},
    "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}},
}
POD: Json = {
    "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}],
    "tolerations": [{"key": "gpu", "operator": "Exists"}, {"key": "spot", "operator": "Exists"}],
    "serviceAccountName": "server",
}


def secret(name: str, key: str = "token") -> Json:
    return {"secretKeyRef": {"name": name, "key": key}}


def field(name: str, value: Any) -> Json:
    return {"name": "X", "valueFrom": {name: value}}


CONTAINERS: dict[str, tuple[Json, bool]] = {
    "another image": ({"image": "other:1"}, True),
    "no variables": ({"env": None}, True),
    "another value": ({"env": [{"name": "A", "value": "2"}]}, True),
    "a field of the pod": ({"env": [field("fieldRef", {"fieldPath": "status.podIP"})]}, True),
    "a resource of the pod": ({"env": [field("resourceFieldRef", {"resource": "limits.cpu"})]}, True),
    "the planned Secret by another name": ({"env": [{"name": "B", "valueFrom": secret("hub")}]}, True),
    "another Secret": ({"env": [{"name": "B", "valueFrom": secret("admin")}]}, False),
    "another key of the Secret": ({"env": [{"name": "B", "valueFrom": secret("hub", "ca")}]}, False),
    "a field of the pod and a Secret": (
        {"env": [{"name": "B", "valueFrom": {**secret("admin"), "fieldRef": {"fieldPath": "status.podIP"}}}]},
        False,
    ),
    "variables of another type": ({"env": "A=1"}, False),
    "a variable of another type": ({"env": ["A=1"]}, False),
    "variables of a whole Secret": ({"envFrom": [{"secretRef": {"name": "admin"}}]}, False),
    "no mounts": ({"volumeMounts": None}, True),
    "another mount": ({"volumeMounts": [{"name": "host", "mountPath": "/host"}]}, False),
    "another command before the end": ({"lifecycle": {"preStop": {"exec": {"command": ["sleep", "9"]}}}}, True),
    "no hook": ({"lifecycle": None}, True),
    "another hook": ({"lifecycle": {"preStop": {"httpGet": {"port": 1}}}}, False),
    "a hook after the start": ({"lifecycle": {"postStart": {"exec": {"command": ["x"]}}}}, False),
    "another path of a probe": ({"readinessProbe": {"httpGet": {"path": "/", "port": 1}}}, True),
    "another host of a probe": ({"readinessProbe": {"httpGet": {"path": "/health", "port": 8000, "host": "x"}}}, False),
    "files that cannot be written": (
        {"securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True}},
        True,
    ),
    "files that can be written": (
        {"securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": False}},
        False,
    ),
    "more rights": ({"securityContext": {"privileged": True}}, False),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_keeps_no_more_rights_than_are_planned(name: str) -> None:
    over, is_allowed = CONTAINERS[name]
    main = {"name": "main", **PLANNED}
    judged = differences(
        {"spec": {**POD, "containers": [{**main, **over}]}},
        {"spec": {**POD, "containers": [main]}},
        RULES["Deployment"],
    )
    assert judged
    assert all(difference.allowed for difference in judged) is is_allowed
    assert all(difference.path.startswith("spec.containers[main].") for difference in judged)


@pytest.mark.parametrize(("user", "is_allowed"), [(None, True), (0, False), (1000, False)])
def test_an_init_container_keeps_no_other_user(user: int | None, is_allowed: bool) -> None:
    """Without one it has the user of the pod, which has to equal the plan's."""
    planned = {**POD, "initContainers": [{"name": "init", "securityContext": {"runAsUser": 100}}]}
    kept = {
        **POD,
        "initContainers": [{"name": "init", "securityContext": {"runAsUser": user} if user is not None else {}}],
    }
    (difference,) = differences({"spec": kept}, {"spec": planned}, RULES["Deployment"])
    assert difference == ("spec.initContainers[init].securityContext.runAsUser", is_allowed)
    kept["securityContext"] = {"runAsUser": 0}
    assert not all(one.allowed for one in differences({"spec": kept}, {"spec": planned}, RULES["Deployment"]))


PODS: dict[str, tuple[Json, bool]] = {
    "a larger directory": ({"volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "9Gi"}}]}, True),
    "no volumes": ({"volumes": None}, True),
    "a directory of the node": ({"volumes": [{"name": "tmp", "hostPath": {"path": "/"}}]}, False),
    "a directory in memory": ({"volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory"}}]}, False),
    "volumes of another type": ({"volumes": ["tmp"]}, False),
    "fewer tolerations": ({"tolerations": [{"key": "gpu", "operator": "Exists"}]}, False),
    "no tolerations": ({"tolerations": None}, True),
    "another toleration": ({"tolerations": [{"operator": "Exists"}]}, False),
    "more time to end": ({"terminationGracePeriodSeconds": 90}, True),
    "another account": ({"serviceAccountName": "admin"}, False),
    "the node's network": ({"hostNetwork": True}, False),
    "another container": ({"containers": [{"name": "main"}, {"name": "mine"}]}, False),
    "a container twice": ({"containers": [{"name": "main"}, {"name": "main"}]}, False),
    "no containers": ({"containers": []}, False),
    "containers of another type": ({"containers": {"main": {}}}, False),
}


@pytest.mark.parametrize("name", PODS)
def test_a_pod_keeps_no_more_rights_than_are_planned(name: str) -> None:
    over, is_allowed = PODS[name]
    planned = {**POD, "containers": [{"name": "main"}]}
    judged = differences({"spec": {**planned, **over}}, {"spec": planned}, RULES["Deployment"])
    assert judged
    assert all(difference.allowed for difference in judged) is is_allowed


def test_a_container_that_is_planned_in_addition_may_wait() -> None:
    kept, planned = ([{"name": name} for name in names] for names in (["main"], ["main", "proxy"]))
    (difference,) = differences({"spec": {"containers": kept}}, {"spec": {"containers": planned}}, RULES["Deployment"])
    assert difference == ("spec.containers[proxy]", True)


NAMED = [{"name": "a", "x": 1}, {"name": "b"}]


@pytest.mark.parametrize(
    ("value", "part", "is_covered"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 2}}, True),
        (NAMED, [{"name": "b"}], True),
        (NAMED, [{"name": "a", "x": 2}], False),
        (NAMED, [{"name": "c"}], False),
        ([1, 2], [1], False),
        ([], [], True),
        (NAMED, [], False),
        (None, {}, False),
    ],
)
def test_a_merge_of_what_a_value_has_changes_nothing(value: object, part: object, is_covered: bool) -> None:
    """Items of lists are merged by their names where all have one."""
    assert covers(value, part) is is_covered


@pytest.mark.parametrize(
    ("running", "planned", "kept"),
    [
        ({"spec": {"hostNetwork": True}}, {"spec": {}}, {"spec": {"hostNetwork": False}}),
        (
            {"spec": {"nodeName": "n", "schedulerName": "s"}},
            {},
            {"spec": {"nodeName": "", "schedulerName": "default-scheduler"}},
        ),
        (
            {"spec": {"serviceAccountName": "x"}},
            {"spec": {"serviceAccountName": "y"}},
            {"spec": {"serviceAccountName": "y"}},
        ),
        ({"spec": {"hostPID": False}}, {"spec": {}}, {"spec": {}}),
        (
            {"leaderTemplate": {"spec": {"hostIPC": True}}},
            {"leaderTemplate": {"spec": {}}, "size": 2},
            {"leaderTemplate": {"spec": {"hostIPC": False}}, "size": 2},
        ),
    ],
)
def test_rights_that_only_the_running_template_has_are_taken(running: Json, planned: Json, kept: Json) -> None:
    assert without_rights(planned, running) == kept


def test_what_running_values_are_recorded_with() -> None:
    """The recorded fields, with the values that run, change nothing; claimed ones are taken away by the next answer."""
    running = {"a": 1, "items": NAMED, "plain": [1, 2]}
    assert as_it_runs({"a": 9, "items": [{"name": "a"}, {"name": "c"}], "gone": 1}, running) == {
        "a": 1,
        "items": [{"name": "a"}],
    }
    assert as_it_runs({"plain": [9]}, running) == {"plain": [1, 2]}
    assert claim(running, {"a": 1, "items": [{"name": "a", "x": 1}]}) == {"items": [{"name": "b"}]}
    assert claim({"labels": {"a": "1", "b": "2"}}, {"labels": {"a": "1"}}) == {"labels": {"b": "2"}}
    assert claim({"serviceAccountName": "x"}, {}) == {"serviceAccountName": "x"}
    assert claim({"serviceAccountName": "x"}, {"serviceAccountName": "y"}) is None
    assert claim({"map": {"a": 1}}, {}) == {"map": {}}


def test_a_union_has_the_fields_and_items_of_both() -> None:
    assert union({"a": 1, "items": [{"name": "a"}]}, {"b": 2, "items": [{"name": "a", "x": 1}, {"name": "b"}]}) == {
        "a": 1,
        "b": 2,
        "items": [{"name": "a", "x": 1}, {"name": "b"}],
    }
    assert union(None, {"a": 1}) == {"a": 1}
    assert union(1, 2) == 1
    assert union({"a": {"x": 1}}, {"a": {"x": 2, "y": 3}}) == {"a": {"x": 1, "y": 3}}


def test_the_part_of_a_running_template_that_may_be_sent() -> None:
    planned = {"spec": {"containers": [{"name": "main", "image": "a:2", "stdin": True}]}}
    running = {"spec": {"containers": [{"name": "main", "image": "a:1", "stdin": True, "tty": True}], "hostPID": True}}
    assert part_to_keep(running, planned, RULES["Deployment"]) == {
        "spec": {"containers": [{"name": "main", "image": "a:1", "stdin": True}]}
    }


def test_of_variables_with_another_secret_the_names_that_are_planned_stay() -> None:
    running = [{"name": "A", "value": "2"}, {"name": "B", "valueFrom": secret("admin")}]
    planned = [{"name": "A", "value": "1"}, {"name": "C", "value": "1"}]
    kept = part_to_keep(
        {"spec": {"containers": [{"name": "main", "env": running}]}},
        {"spec": {"containers": [{"name": "main", "env": planned}]}},
        RULES["Deployment"],
    )
    assert kept == {"spec": {"containers": [{"name": "main", "env": [{"name": "A"}]}]}}


def test_what_must_equal_the_plan_stays_where_it_does() -> None:
    assert part_to_keep({"a": 1, "b": 2}, {"a": 1}, None) == {"a": 1}
    assert part_to_keep({"a": 2, "b": 2}, {"a": 1}, None) is None
    assert part_to_keep({"a": 2}, None, None) is None
