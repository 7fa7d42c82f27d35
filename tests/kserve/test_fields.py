"""A field without effect causes a warning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec
from app.kube.base import Json
from app.kube.schema.fieldclass import Use
from tests.kserve.objects import admit, config, service
from tools.fieldpages import classes


def document(path: str) -> Json:
    """Return a spec in which the field is set."""
    spec: Any = _VALUES.get(path.rpartition(".")[2], 1)
    for part in reversed(path.split(".")):
        spec = {part.removesuffix("[]"): [spec] if part.endswith("[]") else spec}
    return _completed(spec)


_VALUES: dict[str, Any] = {
    "criticality": "Critical",
    "adapters": [],
    "name": "x",
    "namespace": "x",
    "optional": True,
    "behavior": {},
    "variantCost": "1",
    "group": "team",
    "appProtocol": "http",
    "template": {},
    "kvCacheOffloading": {"cpu": "10Gi"},
}


_POOL: Json = {
    "selector": {"matchLabels": {"a": "b"}},
    "targetPorts": [{"number": 8000}],
    "endpointPickerRef": {"name": "demo-epp-service", "port": {"number": 9002}},
}


def _completed(spec: Json) -> Json:
    """Add the fields that the tested field requires."""
    if "model" in spec:
        spec["model"]["uri"] = "hf://a/b"
    pool = spec.get("router", {}).get("scheduler", {}).get("pool", {}).get("spec")
    if pool:
        pool.update(_POOL)
    scheduler = spec.get("router", {}).get("scheduler", {})
    if scheduler.get("config"):
        scheduler["config"]["ref"].update(name="c", key="k")
    return spec


def _without_effect() -> list[str]:
    refused_anyway = ("scalingModifiers", "horizontalPodAutoscalerConfig.name", "fallback", "keda.", "hpa.")
    return [
        path
        for path, field in classes(LLMInferenceServiceSpec).items()
        if field is not None and field.use is Use.NO_EFFECT and not any(part in path for part in refused_anyway)
    ]


@pytest.mark.parametrize("make", [service, config])
@pytest.mark.parametrize("path", _without_effect())
def test_a_field_without_effect_is_a_warning(path: str, make: Callable[..., Json]) -> None:
    """Services and configs both warn."""
    spec = document(path)
    for base in (spec, spec.get("prefill", {})):
        if "scaling" in base:
            base["scaling"] = {"maxReplicas": 2, "wva": {"hpa": {}}, **base["scaling"]}
            base["scaling"]["wva"] = {"hpa": {}, **base["scaling"]["wva"]}
    verdict = admit(make(**spec))
    assert verdict.errors == []
    place = path.replace("[]", "[0]")
    named = [w.partition(": ")[0].removeprefix("spec.") for w in verdict.warnings]
    assert any(place.startswith(name) for name in named), verdict.warnings
