"""Sync answers every object that admission allows, even with unknown fields that an API server would prune."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from app.kube.base import Json
from tests import hookcalls
from tests.kserve.objects import SERVICE_KIND, Cluster, admit, gateway, service
from tests.kserve.workload.test_artifacts import operator

SAME_NAME = [{"name": "a"}, {"name": "a"}]
"""Two items that Metacontroller would merge into one, so no answer may contain them."""
POOL: Json = {
    "selector": {"matchLabels": {"a": "b"}},
    "targetPorts": [{"number": 8000}],
    "endpointPickerRef": {"name": "picker", "port": {"number": 9002}},
}
RULE: Json = {
    "matches": [{"path": {"value": "/"}, "headers": [{"name": "h", "value": "v"}]}],
    "filters": [{"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/"}}}],
    "backendRefs": [{"name": "a", "port": 1}],
    "timeouts": {"request": "1s"},
}
FULL: Json = {
    "model": {"uri": "hf://a/b", "name": "m", "lora": {"adapters": [{"name": "x", "uri": "hf://a/x"}]}},
    "template": {"containers": [{"name": "main", "image": "x"}]},
    "scaling": {"minReplicas": 1, "maxReplicas": 3, "wva": {"keda": {"advanced": {"scalingModifiers": {}}}}},
    "prefill": {"parallelism": {"tensor": 1}},
    "storageInitializer": {"enabled": True},
    "tracing": {},
    "router": {
        "gateway": {"refs": [{"name": "g"}]},
        "route": {"http": {"spec": {"hostnames": ["a.example"], "rules": [RULE]}}},
        "scheduler": {"pool": {"spec": POOL}, "config": {"inline": {"kind": "EndpointPickerConfig"}}},
    },
}
PROMETHEUS = {"autoscaling-wva-controller-config": {"prometheus": {"url": "http://prometheus:9090"}}}
ALL_KINDS = hookcalls.optional_kinds(SERVICE_KIND)


def built(spec: Json) -> Cluster:
    return Cluster(service(**spec), gateway("g", "default"), operator(**PROMETHEUS), optional=ALL_KINDS)


def test_every_kind_of_child_is_made() -> None:
    cluster = built(FULL)
    cluster.sync()
    assert {"HTTPRoute", "InferencePool", "ScaledObject", "VariantAutoscaling"} <= {kind for kind, _ in cluster.names}


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every map in a document."""
    if isinstance(value, dict):
        yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(item, (*path, key))


@pytest.mark.parametrize("path", list(places(FULL)), ids=lambda path: ".".join(map(str, path)))
@pytest.mark.parametrize("name", ["x", "matchExpressions"])
def test_unknown_field_with_two_items_of_one_name(path: tuple[str | int, ...], name: str) -> None:
    spec = copy.deepcopy(FULL)
    holder: Any = spec
    for step in path:
        holder = holder[step]
    holder[name] = SAME_NAME
    if not admit(service(**spec)).errors:
        assert built(spec).sync()["children"]


def test_unknown_fields_of_the_pool_do_not_reach_it() -> None:
    spec = copy.deepcopy(FULL)
    spec["router"]["scheduler"]["pool"]["spec"]["endpointPickerRef"]["x"] = 1
    synced = built(spec)
    synced.sync()
    reference = synced.child("InferencePool", "demo-inference-pool")["spec"]["endpointPickerRef"]
    assert reference == {"group": "", "kind": "Service", "failureMode": "FailClose", **POOL["endpointPickerRef"]}
