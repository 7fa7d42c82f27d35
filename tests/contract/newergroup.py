"""What KServe v0.20 leaves of a group with devices, TLS and a cache for keys and values.

No recording has all of them in one service. Each was recorded in a case of its own, whose answer equals ours, so the
presets of the recordings and these features make the children that v0.20 makes.
"""

from __future__ import annotations

import json

from app.kube.base import Json
from app.kube.names import CONTROLLER_UID
from tests.contract import recordings
from tests.contract.test_goldens import settings
from tests.contract.world import World

RECORDING, NAME = "kserve-0.20", "v20-tensor-worker"
_SETTINGS: Json = {"ingress": {"enableLLMInferenceServiceTLS": True}}


def newer_group() -> Json:
    """Return a case with the children as v0.20 leaves them, and without its presets, which are built in here."""
    (case,) = (case for case in recordings.cases(RECORDING) if case["name"] == NAME)
    service, *others = case["objects"]
    service["metadata"]["annotations"] = {"serving.kserve.io/exp-dra-device-class": "gpu.example.com"}
    tier = {"fileSystem": {"emptyDir": {"size": "50Gi"}}}
    service["spec"]["kvCacheOffloading"] = {"cpu": "10Gi", "evictionPolicy": "lru", "secondary": [tier]}
    metadata = {"name": "inferenceservice-config", "namespace": "kserve"}
    data = {key: json.dumps(value) for key, value in _SETTINGS.items()}
    operator = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    presets = settings(case, kserve_presets="v0.20")  # whatever the tests around set
    world = World({**case, "objects": [service, *others, operator]}, presets, complete=True)
    world.run()
    children = [_left(child, service) for child in world.children().values()]
    referenced = [item for item in others if item["kind"] != "LLMInferenceServiceConfig"]
    expect = {"children": children, "status": {}}
    return {**case, "settings": _SETTINGS, "objects": [service, *referenced, operator], "expect": expect}


def _left(child: Json, parent: Json) -> Json:
    """Return a child without what only modelhooks and Metacontroller write on it."""
    recorded = child["metadata"]
    labels = {key: value for key, value in (recorded.get("labels") or {}).items() if key != CONTROLLER_UID}
    owner = {"apiVersion": parent["apiVersion"], "kind": parent["kind"], "name": parent["metadata"]["name"]}
    owners = [{**owner, "controller": True, "blockOwnerDeletion": True}]
    metadata = {"name": recorded["name"], "namespace": recorded["namespace"], "labels": labels}
    return {**child, "metadata": {**metadata, "ownerReferences": owners}}
