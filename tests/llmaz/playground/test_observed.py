"""Related objects of a Playground: only those that it names (LZ-10)."""

from __future__ import annotations

from app.kube.base import Json
from tests.llmaz.world import NAMESPACE, PLAYGROUND, customize, playground


def asked(item: Json) -> dict[str, Json]:
    return {rule["resource"]: rule for rule in customize(PLAYGROUND, item)}


def test_one_model() -> None:
    """The rules match the model, the default engine and any Service with the Playground's name."""
    assert asked(playground()) == {
        "openmodels": {"apiVersion": "llmaz.io/v1alpha1", "resource": "openmodels", "names": ["opt"]},
        "backendruntimes": {
            "apiVersion": "inference.llmaz.io/v1alpha1",
            "resource": "backendruntimes",
            "names": ["vllm"],
        },
        "services": {
            "apiVersion": "inference.llmaz.io/v1alpha1",
            "resource": "services",
            "namespace": NAMESPACE,
            "names": ["chat"],
        },
    }


def test_several_models() -> None:
    """The rules match each model once, and the engine that is named."""
    claim = {"models": [{"name": "a"}, {"name": "b", "role": "draft"}, {"name": "a"}]}
    rules = asked(playground(modelClaims=claim, backendRuntimeConfig={"backendName": "tgi"}))
    assert rules["openmodels"]["names"] == ["a", "b"]
    assert rules["backendruntimes"]["names"] == ["tgi"]


def test_a_claim_without_names_asks_for_no_models() -> None:
    """A claim without names matches no models, rather than all of them."""
    claims: tuple[Json, ...] = ({"modelClaims": {}}, {"modelClaim": {}})
    for spec in claims:
        assert "openmodels" not in asked(playground(**{"modelClaim": None, **spec}))
    assert all(rule.get("names") for rule in customize(PLAYGROUND, playground()))


def test_unreadable() -> None:
    """Customize does not fail on an invalid spec, because a deletion waits for it too."""
    assert customize(PLAYGROUND, playground(replicas="x")) == []
