"""The answers of the real operators, replayed through the hooks: every compared field is equal.

Intended differences are in ``recorded/<family>-differences.json`` if the requirements have them, and otherwise in
``differences/<family>.json``. The latter have their reasons in ``differences/README.md``.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.admission import review
from app.desk.cluster.kinds import find_version
from app.kube.base import Json
from app.settings import Settings
from tests.contract import parity, strictfields
from tests.contract.recordings import RECORDED, RECORDINGS, replayed
from tests.contract.world import World

ROOT = Path(__file__).parents[2]
DIFFERENCES = Path(__file__).parent / "differences"

SETTINGS = {
    "modelCachePath": "llmkube_model_cache_path",
    "modelCacheSize": "llmkube_model_cache_size",
    "modelCacheStorageClass": "llmkube_model_cache_storage_class",
    "modelCacheAccessMode": "llmkube_model_cache_access_mode",
    "caCertConfigMap": "llmkube_ca_cert_configmap",
    "initContainerImage": "llmkube_init_container_image",
    "defaultFSGroup": "llmkube_default_fsgroup",
    "intelGPUResource": "llmkube_intel_gpu_resource",
    "gpuSharingSharedPool": "llmkube_gpu_sharing_pool",
    "systemNamespace": "llmaz_system_namespace",
}
"""Flags of the recorded operators, as settings. KServe's are in a ConfigMap of the case."""


@functools.cache
def reviewed(family: str) -> parity.Rules:
    files = (RECORDED / f"{family}-differences.json", DIFFERENCES / f"{family}.json")
    return parity.Rules([entry for file in files for entry in json.loads(file.read_text())])


def settings(case: Json, **changes: Any) -> Settings:
    """Return the recorded operator's settings. Pod templates are not kept, because a case may start with older ones."""
    given = {} if case["family"] == "kserve" else case.get("settings") or {}
    listed: Json = {"llmkube_allowed_host_paths": "/"} if case["family"] == "llmkube" else {}
    if case["recording"] == "kserve":
        listed = {"kserve_presets": "v0.17"}
    values = {"keep_pod_templates": False, **listed, **{SETTINGS[name]: value for name, value in given.items()}}
    return Settings(**{name: value for name, value in {**values, **changes}.items() if value is not None})


def _ids(case: Json) -> str:
    return f"{case['recording']}:{case['name']}"


WORLDS = [case for recording in RECORDINGS for case in replayed(recording) if "objects" in case]
VERDICTS = [case for recording in RECORDINGS for case in replayed(recording) if "object" in case]


@pytest.mark.parametrize("case", WORLDS, ids=_ids)
def test_children_and_statuses(case: Json) -> None:
    """Syncs run until nothing changes. A case that our admission refuses is not compared."""
    world = World(case, settings(case))
    world.run()
    assert [problem for child in world.children().values() for problem in strictfields.problems(child)] == []
    if not case.get("designRejects"):
        unreviewed = parity.differences(case, world, reviewed(case["family"]))
        assert not unreviewed, "\n".join(map(str, unreviewed))


@pytest.mark.parametrize("case", VERDICTS, ids=_ids)
def test_verdicts(case: Json) -> None:
    """The same objects are denied, for at least the same fields."""
    kind = find_version(case["object"]["apiVersion"], case["object"]["kind"])
    assert kind is not None
    answer = orjson.loads(review.answer(kind, orjson.dumps(parity.review(case)), settings(case)))
    assert parity.verdict(case, answer["response"], reviewed(case["family"])) == []
