"""Specs with the longest lists that fit into them, by the name of their kind: what a random search rarely builds."""

from __future__ import annotations

from app.kube.base import Json
from app.limits import MAX_ADAPTERS

_NAMES = [{"name": f"{number:x}"} for number in range(11_900)]
_TWICE = [*_NAMES, _NAMES[-1]]
"""About as many names as a spec can hold, of which the last is there twice."""
_GROUP: Json = {"worker": {}, "parallelism": {"data": 4, "dataLocal": 2}}


def _with_adapters(uri: str, number: int) -> Json:
    adapters = [{"name": f"a{position}", "uri": uri} for position in range(number)]
    model = {"uri": "hf://a/b", "lora": {"adapters": adapters}}
    return {"model": model, "router": {"route": {}, "gateway": {}, "scheduler": {}}, "prefill": _GROUP, **_GROUP}


LONG_LISTS: dict[str, dict[str, Json]] = {
    "inference.llmkube.dev/InferenceService": {"volumes": {"modelRef": "m", "extraVolumes": _TWICE}},
    "serving.kserve.io/LLMInferenceService": {
        "variables": {"model": {"uri": "hf://a/b"}, "template": {"containers": [{"name": "main", "env": _TWICE}]}},
        "adapters": _with_adapters("s3://a/b", MAX_ADAPTERS),
        "adapters on claims": _with_adapters("pvc://a/b", MAX_ADAPTERS),
        "too many adapters": _with_adapters("pvc://a/b", 3 * MAX_ADAPTERS),
    },
}
