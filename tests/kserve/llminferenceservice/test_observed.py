"""What counts among the inputs of a service's pods."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.hooks.protocol import SyncRequest
from app.kserve.llminferenceservice.observed import shaping
from tests.kserve.objects import SERVICE_KIND, config, service

Json = dict[str, Any]

CONFIGS = "LLMInferenceServiceConfig.serving.kserve.io/v1alpha2"


def inputs(parent: Json, **related: Json) -> Json:
    """What shapes the pods of a service, with these objects by the kind's outer key and by name."""
    body = {"parent": parent, "children": {}, "related": related}
    request: SyncRequest[Any, Any] = SERVICE_KIND.decoder.decode(json.dumps(body).encode())
    return dict(shaping(request))


def config_map(text: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": text}}


@pytest.mark.parametrize(
    ("spec", "name", "counts"),
    [
        ({"baseRefs": [{"name": "base"}]}, "default/base", True),
        ({"baseRefs": [{"name": "base"}]}, "kserve/base", True),
        ({"baseRefs": [{"name": "base"}]}, "default/other", False),
        ({}, "default/base", False),
        ({}, "default/kserve-config-llm-template", True),
    ],
)
def test_a_config_counts_that_is_named_or_stands_for_a_preset(spec: Json, name: str, counts: bool) -> None:
    """An edit of another one would be a write to every service of the namespace."""
    namespace, _, last = name.partition("/")
    found = inputs(service(**spec), **{CONFIGS: {name: config(last, namespace, replicas=2)}})
    assert list(found["configs"]) == ([name] if counts else [])


@pytest.mark.parametrize(
    ("spec", "name", "counts"),
    [
        ({}, "default/x", False),
        ({}, "kserve/x", True),
        ({"router": {"scheduler": {"config": {"ref": {"name": "x"}}}}}, "default/x", True),
        ({"labels": {"a": "{{ .ObjectMeta.Name }}"}}, "default/x", True),
    ],
)
def test_a_config_map_counts_that_may_be_meant(spec: Json, name: str, counts: bool) -> None:
    """Those of the system namespace, those that are named, and any where a template may make the name."""
    found = inputs(service(**spec), **{"ConfigMap.v1": {name: config_map("b")}})
    assert list(found["configMaps"]) == ([name] if counts else [])
