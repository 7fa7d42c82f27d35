"""Every field without effect has a warning, and manifests for the Go operator are admitted."""

from typing import Any

import pytest

from app.kube.base import Json
from app.kube.schema.fieldclass import Use
from app.llmkube.kinds import INFERENCE_SERVICE, MODEL
from tests.contract.recordings import cases
from tests.llmkube.objects import errors, model, service, sync, warned
from tools.fieldpages import classes

EXAMPLES: dict[str, Any] = {
    "prefetch": True,
    "hardware.gpu.enabled": True,
    "resources.gpuSharing.memoryLimitGiB": 8,
    "endpoint.gateway": {"gatewayRef": {"name": "g"}},
    "disruption.protectStartup": False,
    "sglangConfig.enablePrefixCaching": True,
    "personaPlexConfig.quantize4Bit": True,
    "slo": {"objective": "99.5"},
    "rolloutPolicy": {"waitForIdle": True},
    "maxPodLifetimeSeconds": 3600,
    "maxPodLifetimeIdleTimeoutSeconds": 60,
}
"""A value for each field without effect, or for its parent field."""


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (make, path)
        for make, resource in ((model, MODEL), (service, INFERENCE_SERVICE))
        for path, example in classes(resource.spec).items()
        if example is not None and example.use is Use.NO_EFFECT
    ],
)
def test_a_field_without_effect_is_warned_of(make: Any, path: str) -> None:
    path = next(example for example in EXAMPLES if path == example or path.startswith((f"{example}.", f"{example}[")))
    first, *rest = path.split(".")
    value: Any = EXAMPLES[path]
    for name in reversed(rest):
        value = {name: value}
    assert [text for text in warned(make(**{first: value})) if f"spec.{path}" in text and "no effect" in text]


def parents(case: Json) -> list[Json]:
    """Return the Models and InferenceServices of a recorded case."""
    return [document for document in case["objects"] if document["apiVersion"] == MODEL.api_version]


def test_every_sample_of_upstream_is_admitted() -> None:
    """Users of the Go operator need not change their manifests."""
    samples = [document for case in cases("llmkube") if case["class"] == "a" for document in parents(case)]
    assert len(samples) > 30
    for document in samples:
        document["metadata"].setdefault("namespace", "default")
        document["metadata"].setdefault("uid", "u")
        assert errors(document) == [], document["metadata"]["name"]
        assert sync(document)["status"]["phase"]


def test_what_the_recordings_call_a_mistake_is_one() -> None:
    """Recorded cases that the design rejects break a rule, and no other case does."""
    for case in cases("llmkube"):
        broken = any(errors(document) for document in parents(case))
        assert broken == case.get("designRejects", "").startswith("V-"), case["name"]
