"""What a Service asks for: exactly what it names (LZ-10)."""

from __future__ import annotations

from typing import Any

from app.settings import Settings
from tests.llmaz.world import NAMESPACE, SERVICE, customize, service


def test_rules() -> None:
    """Its models, the family's ConfigMap in the operator's namespace, and its own pods."""
    models, config, pods = customize(SERVICE, service(), Settings(llmaz_system_namespace="ops"))
    assert models == {"apiVersion": "llmaz.io/v1alpha1", "resource": "openmodels", "names": ["opt"]}
    assert (config["resource"], config["namespace"], config["names"]) == ("configmaps", "ops", ["llmaz-global-config"])
    assert (pods["resource"], pods["namespace"]) == ("pods", NAMESPACE)
    assert pods["labelSelector"] == {"matchLabels": {"llmaz.io/inference-service": "chat"}}


def test_pods_of_a_group() -> None:
    """Where LeaderWorkerSet is declared, its pods too."""
    rules = customize(SERVICE, service(), Settings(), optional=True)
    assert rules[-1]["labelSelector"] == {"matchLabels": {"leaderworkerset.sigs.k8s.io/name": "chat"}}
    assert [rule["resource"] for rule in rules].count("pods") == 2


def test_pods_are_asked_for_where_there_can_be_some() -> None:
    """None of a stopped service; of groups none by the label of a Deployment's."""

    def asked(item: dict[str, Any]) -> list[str]:
        rules = customize(SERVICE, item, Settings(), optional=True)
        return [key for rule in rules if rule["resource"] == "pods" for key in rule["labelSelector"]["matchLabels"]]

    assert asked(service(replicas=0)) == []
    template = service()["spec"]["workloadTemplate"]
    assert asked(service(workloadTemplate={**template, "size": 2})) == ["leaderworkerset.sigs.k8s.io/name"]


def test_pods_are_the_operators_choice() -> None:
    """They can be switched off, and a name that is no label value asks for none."""
    for rules in (
        customize(SERVICE, service(), Settings(watch_pods=False)),
        customize(SERVICE, service("a" * 64)),
    ):
        assert "pods" not in [rule["resource"] for rule in rules]


def test_never_everything() -> None:
    """Every rule is bound by names or labels."""
    for item in (service(), service(modelClaims={}), service(modelClaims=None)):
        assert all(rule.get("names") or rule.get("labelSelector") for rule in customize(SERVICE, item))
