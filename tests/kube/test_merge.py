"""Kubernetes' strategic merge on plain JSON."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kube.base import Json
from app.kube.merge import OPEN, PATCH, MergeRules, find, merge, merge_lists
from app.kube.podspec import MERGE_KEYS, POD, normalised


def named(*names: str) -> list[Json]:
    return [{"name": name} for name in names]


@pytest.mark.parametrize(
    ("base", "override", "result"),
    [
        ("az", "bz", "baz"),
        ("x", "y", "yx"),
        ("hvc", "v", "hvc"),
        ("hvc", "fc", "fhvc"),
        ("x", "", "x"),
        ("", "ab", "ab"),
        ("abc", "ca", "bca"),
        ("abc", "xcy", "xabcy"),
    ],
)
def test_order_of_keyed_lists(base: str, override: str, result: str) -> None:
    """The override's items keep their order; a base item comes before the first override item that followed it."""
    merged = merge_lists(named(*base), named(*override), "name")
    assert "".join(item["name"] for item in merged) == result


def test_items_of_one_key_merge_field_by_field() -> None:
    """An environment variable of the override changes the base's variable of that name, in its place."""
    base = {"env": [{"name": "A", "value": "1"}, {"name": "Z", "value": "42"}]}
    shape = MergeRules(lists={"env": ("name", OPEN)})
    assert merge(base, {"env": [{"name": "Z", "value": "7"}]}, shape) == {
        "env": [{"name": "A", "value": "1"}, {"name": "Z", "value": "7"}]
    }


@pytest.mark.parametrize(
    ("base", "override", "result"),
    [
        ({"args": ["a", "b"]}, {"args": ["x"]}, {"args": ["x"]}),
        ({"tolerations": [{"key": "t1"}]}, {"tolerations": [{"key": "t2"}]}, {"tolerations": [{"key": "t2"}]}),
        (
            {"resources": {"requests": {"cpu": "1", "gpu": "1"}, "limits": {"gpu": "1"}}},
            {"resources": {"requests": {"memory": "1Gi"}, "limits": {"cpu": "2"}}},
            {"resources": {"requests": {"cpu": "1", "gpu": "1", "memory": "1Gi"}, "limits": {"gpu": "1", "cpu": "2"}}},
        ),
        ({"replicas": 2}, {}, {"replicas": 2}),
        ({"replicas": 2}, {"replicas": 0}, {"replicas": 0}),
    ],
)
def test_maps_merge_and_other_lists_are_replaced(base: Json, override: Json, result: Json) -> None:
    """Maps merge by key; scalars and lists without a merge key are replaced."""
    assert merge(base, override) == result


def test_last_writer_of_a_one_of_wins() -> None:
    """A probe with another handler has only that one, and keeps its numbers."""
    base = {"containers": [{"name": "main", "livenessProbe": {"httpGet": {"port": 8000}, "periodSeconds": 10}}]}
    override = {"containers": [{"name": "main", "livenessProbe": {"exec": {"command": ["true"]}}}]}
    merged = merge(base, override, POD)
    assert merged["containers"][0]["livenessProbe"] == {"exec": {"command": ["true"]}, "periodSeconds": 10}


@pytest.mark.parametrize(
    ("override", "result"),
    [
        ({"persistentVolumeClaim": {"claimName": "c"}}, {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}),
        ({"emptyDir": {"sizeLimit": "1Gi"}}, {"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}),
    ],
)
def test_a_volume_has_one_source(override: Json, result: Json) -> None:
    """Another source replaces the base's; the same source merges."""
    base = {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}
    assert merge(base, {"volumes": [{"name": "v", **override}]}, POD)["volumes"] == [result]


def test_env_value_and_source_exclude_each_other() -> None:
    """A variable with a source loses the base's value."""
    base = {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}]}
    source = {"secretKeyRef": {"name": "s", "key": "k"}}
    override = {"containers": [{"name": "main", "env": [{"name": "A", "valueFrom": source}]}]}
    assert merge(base, override, POD)["containers"][0]["env"] == [{"name": "A", "valueFrom": source}]


def test_whole_objects_are_replaced() -> None:
    """An object marked as atomic does not merge."""
    assert merge({"x": {"a": 1}}, {"x": {"b": 2}}, MergeRules(atomic=frozenset({"x"}))) == {"x": {"b": 2}}


SHAPE = MergeRules(lists={"items": ("name", OPEN)})


@pytest.mark.parametrize(
    ("override", "result"),
    [
        ({"a": {PATCH: "delete"}}, {"items": named("x", "y")}),
        ({"a": {PATCH: "replace", "c": 3}}, {"a": {"c": 3}, "items": named("x", "y")}),
        ({"a": {PATCH: "merge", "c": 3}}, {"a": {"b": 1, "c": 3}, "items": named("x", "y")}),
        ({"items": [{"name": "x", PATCH: "delete"}]}, {"a": {"b": 1}, "items": named("y")}),
        ({"items": [{PATCH: "replace"}, {"name": "z"}]}, {"a": {"b": 1}, "items": named("z")}),
        ({"items": [{PATCH: "replace"}]}, {"a": {"b": 1}}),
        (
            {"items": [{"name": "x", PATCH: "replace", "v": 1}]},
            {"a": {"b": 1}, "items": [{"name": "x", "v": 1}, *named("y")]},
        ),
    ],
)
def test_patch_directives_delete_or_replace(override: Json, result: Json) -> None:
    """``$patch`` deletes or replaces its object or item."""
    assert merge({"a": {"b": 1}, "items": named("x", "y")}, override, SHAPE) == result


def test_find_follows_merge_keys() -> None:
    """A path selects list items by their merge key."""
    document = {"containers": [{"name": "a"}, {"name": "main", "image": "i"}]}
    assert find(document, ["containers", ("name", "main"), "image"]) == "i"
    assert find(document, ["containers", ("name", "none"), "image"]) is None
    assert find(document, ["volumes", "x"]) is None


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ({"env": [{"name": "A", "value": ""}]}, {"env": [{"name": "A"}]}),
        ({"hostNetwork": False, "hostUsers": False}, {"hostUsers": False}),
        ({"securityContext": {"runAsNonRoot": False}}, {"securityContext": {"runAsNonRoot": False}}),
        ({"initialDelaySeconds": 0, "terminationGracePeriodSeconds": 0}, {"terminationGracePeriodSeconds": 0}),
        ({"resources": {}, "emptyDir": {}, "args": []}, {"emptyDir": {}}),
        (
            {"resources": {"limits": {"cpu": 128, "memory": "1024Mi"}}},
            {"resources": {"limits": {"cpu": "128", "memory": "1Gi"}}},
        ),
        ({"nodeSelector": {"x": ""}, "image": None}, {"nodeSelector": {"x": ""}}),
        (
            {"containers": [{"name": "a", "ports": [{"containerPort": 1.0, "hostPort": 0}]}]},
            {"containers": [{"name": "a", "ports": [{"containerPort": 1}]}]},
        ),
    ],
)
def test_normalised_as_the_api_server_stores_it(value: Json, result: Json) -> None:
    """Zero values that mean "not set" are removed, quantities become canonical, and pointers to zero stay."""
    assert normalised(value) == result


# Properties.

names = st.sampled_from(["a", "b", "c", "d", "e"])
keyed = st.lists(names, unique=True, max_size=5).map(lambda ns: [{"name": n} for n in ns])
scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
json_values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "env", "ports", "x", "value", "emptyDir", PATCH]), inner, max_size=4)
    ),
    max_leaves=12,
)
json_objects = st.dictionaries(st.sampled_from(["containers", "volumes", "x", "y"]), json_values, max_size=3)


def containers(draw: st.DrawFn) -> list[Json]:
    pods: list[Json] = []
    for name in draw(st.lists(st.sampled_from(["main", "side"]), unique=True)):
        env = [
            {"name": n, "value": draw(st.sampled_from("12"))} for n in draw(st.lists(names, unique=True, max_size=3))
        ]
        pods.append({"name": name, "env": env} if env else {"name": name})
    return pods


@st.composite
def pods(draw: st.DrawFn) -> Json:
    pod: Json = {"nodeSelector": draw(st.dictionaries(names, st.just("v"), max_size=2))}
    items = containers(draw)
    if items:
        pod["containers"] = items
    return pod


@given(pods(), pods())
def test_merging_changes_neither_side(base: Json, override: Json) -> None:
    """Results may share parts with their inputs, but inputs are not changed."""
    before = copy.deepcopy((base, override))
    merge(base, override, POD)
    assert (base, override) == before


@given(pods(), pods())
def test_the_override_is_in_the_result(base: Json, override: Json) -> None:
    """Merging the override again changes nothing, and merging with an empty object has no effect."""
    once = merge(base, override, POD)
    assert merge(once, override, POD) == once
    assert merge({}, override, POD) == override
    assert merge(base, {}, POD) == base


@given(pods(), pods(), pods())
def test_values_merge_associatively(first: Json, second: Json, third: Json) -> None:
    """The grouping of three layers does not affect the fields of a container, only the order of items."""

    def values(pod: Json) -> Json:
        return {
            "nodeSelector": pod.get("nodeSelector", {}),
            **{
                container["name"]: {variable["name"]: variable["value"] for variable in container.get("env", ())}
                for container in pod.get("containers", ())
            },
        }

    left = merge(merge(first, second, POD), third, POD)
    right = merge(first, merge(second, third, POD), POD)
    assert values(left) == values(right)


@given(keyed, keyed)
def test_no_item_is_lost_or_doubled(base: list[Json], override: list[Json]) -> None:
    """The result has every key of both lists once, and the override's in their order."""
    merged = [item["name"] for item in merge_lists(base, override, "name")]
    wanted = [item["name"] for item in override]
    assert sorted(merged) == sorted({item["name"] for item in (*base, *override)})
    assert [name for name in merged if name in wanted] == wanted


@given(json_objects, json_objects)
def test_any_normalised_json_merges(base: Json, override: Json) -> None:
    """Values of the wrong type are replaced, and reported elsewhere."""
    known = normalised(base).keys() | normalised(override).keys()
    assert merge(normalised(base), normalised(override), POD).keys() <= known


@given(pods(), pods())
def test_directives_switched_off_give_the_same(base: Json, override: Json) -> None:
    """Without ``$patch`` the fast path has the same result."""
    assert merge(base, override, POD, directives=False) == merge(base, override, POD)


def test_merge_keys_are_kubernetes_own() -> None:
    """The keys are those of Kubernetes' patchMergeKey tags."""
    assert MERGE_KEYS["env"] == "name"
    assert MERGE_KEYS["ports"] == "containerPort"
    assert MERGE_KEYS["volumeMounts"] == "mountPath"
    assert MERGE_KEYS["hostAliases"] == "ip"
    assert MERGE_KEYS["topologySpreadConstraints"] == "topologyKey"
