"""Related objects of a Service: only those that it names (LZ-10)."""

from __future__ import annotations

from typing import Any

from app.settings import Settings
from tests.llmaz.world import NAMESPACE, SERVICE, customize, service


def test_its_models_its_pods_and_the_familys_configmap_are_read() -> None:
    """The rules match its models, its pods and the family's ConfigMap in the operator's namespace."""
    models, config, pods = customize(SERVICE, service(), Settings(llmaz_system_namespace="ops"))
    assert models == {"apiVersion": "llmaz.io/v1alpha1", "resource": "openmodels", "names": ["opt"]}
    assert (config["resource"], config["namespace"], config["names"]) == ("configmaps", "ops", ["llmaz-global-config"])
    assert (pods["resource"], pods["namespace"]) == ("pods", NAMESPACE)
    assert pods["labelSelector"] == {"matchLabels": {"llmaz.io/inference-service": "chat"}}


def test_pods_of_a_group() -> None:
    """If LeaderWorkerSet is declared, a rule matches its pods too."""
    rules = customize(SERVICE, service(), Settings(), optional=True)
    assert rules[-1]["labelSelector"] == {"matchLabels": {"leaderworkerset.sigs.k8s.io/name": "chat"}}
    assert [rule["resource"] for rule in rules].count("pods") == 2


def test_pods_are_asked_for_where_there_can_be_some() -> None:
    """No rule for pods if replicas is 0; no rule for a Deployment's pods if the pods run in groups."""

    def asked(item: dict[str, Any]) -> list[str]:
        rules = customize(SERVICE, item, Settings(), optional=True)
        return [key for rule in rules if rule["resource"] == "pods" for key in rule["labelSelector"]["matchLabels"]]

    assert asked(service(replicas=0)) == []
    template = service()["spec"]["workloadTemplate"]
    assert asked(service(workloadTemplate={**template, "size": 2})) == ["leaderworkerset.sigs.k8s.io/name"]


def test_pods_are_the_operators_choice() -> None:
    """No rule matches pods if the setting is off or the name is not a valid label value."""
    for rules in (
        customize(SERVICE, service(), Settings(watch_pods=False)),
        customize(SERVICE, service("a" * 64)),
    ):
        assert "pods" not in [rule["resource"] for rule in rules]


def test_no_rule_asks_for_all_objects() -> None:
    """Every rule is restricted by names or labels."""
    for item in (service(), service(modelClaims={}), service(modelClaims=None)):
        assert all(rule.get("names") or rule.get("labelSelector") for rule in customize(SERVICE, item))
