"""Status of a config: whether it can be used."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.hooks.answer import answer_finalize
from app.kube.base import Json
from tests.hookcalls import NOW
from tests.kserve.objects import CONFIG_KIND, Cluster, config, customize, service


def status(**spec: Any) -> Json:
    cluster = Cluster(config(**spec))
    answer = cluster.sync()
    assert answer["children"] == []
    reported: Json = answer["status"]
    return reported


def test_a_config_that_renders_is_ready() -> None:
    """Templates are rendered for the sample service."""
    reported = status(template={"containers": [{"name": "main", "args": ["{{ .Spec.Model.Name }}"]}]})
    assert reported["observedGeneration"] == 1
    assert [(c["type"], c["status"], c["reason"]) for c in reported["conditions"]] == [
        ("ConfigInUse", "False", "NotInUse"),
        ("Ready", "True", "Rendered"),
    ]


def test_a_config_that_does_not_render_says_where() -> None:
    """The message has the field and the line."""
    reported = status(template={"containers": [{"name": "main", "args": ["{{ .Spec.Nothing }}"]}]})
    ready, stalled = reported["conditions"]
    assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")
    assert (stalled["type"], stalled["status"]) == ("Stalled", "True")
    assert "spec.template.containers[0].args[0], line 1: .Spec.Nothing does not exist" in ready["message"]


def test_a_config_of_the_wrong_form_says_so() -> None:
    ready, _ = status(replicas="3")["conditions"]
    assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")
    assert "spec.replicas" in ready["message"]


# Which services use it.


def used(*services: Json, namespace: str = "default") -> Cluster:
    cluster = Cluster(config("base", namespace), *services)
    cluster.sync()
    return cluster


def in_use(cluster: Cluster) -> tuple[str, str, str, str]:
    condition = cluster.condition("ConfigInUse") or {}
    return condition["status"], condition["severity"], condition["reason"], condition["message"]


def test_services_that_refer_to_a_config() -> None:
    """Services of the same namespace that name it in ``baseRefs`` are listed; others mean another config."""
    elsewhere = service("c", baseRefs=[{"name": "base"}])
    elsewhere["metadata"]["namespace"] = "other"
    users = [service(name, baseRefs=[{"name": "other"}, {"name": "base"}]) for name in ("b", "a")]
    cluster = used(*users, service("d", baseRefs=[{"name": "other"}]), elsewhere)
    assert in_use(cluster) == ("True", "Info", "InUse", "used by default/a, default/b")
    assert cluster.answer["status"]["referencedBy"] == [
        {"name": "a", "namespace": "default"},
        {"name": "b", "namespace": "default"},
    ]
    cluster.related.clear()
    cluster.sync()
    assert in_use(cluster)[:3] == ("False", "Info", "NotInUse")
    assert "referencedBy" not in cluster.answer["status"]


def test_users_of_a_config_of_the_system_namespace_are_not_listed() -> None:
    """The services of all namespaces would be too many for one request."""
    cluster = used(service("a", baseRefs=[{"name": "base"}]), namespace="kserve")
    assert cluster.condition("ConfigInUse") is None
    assert customize(config("base", "kserve")) == []


# Deletion, with the component config-protection.

DELETED = "2026-01-01T00:00:00Z"


def finalize(parent: Json, *services: Json) -> Json:
    group = {f"{member['metadata']['namespace']}/{member['metadata']['name']}": member for member in services}
    related = {"LLMInferenceService.serving.kserve.io/v1alpha2": group}
    body = {"parent": parent, "children": {}, "related": related, "finalizing": True}
    answer: Json = json.loads(answer_finalize(CONFIG_KIND, json.dumps(body).encode(), NOW))
    return answer


def deleted(**spec: Any) -> Json:
    parent = config("base", **spec)
    parent["metadata"]["deletionTimestamp"] = DELETED
    return parent


def test_deletion_waits_for_the_services_that_use_a_config() -> None:
    answer = finalize(deleted(), service("a", baseRefs=[{"name": "base"}]))
    assert "finalized" not in answer
    (condition,) = answer["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("ConfigInUse", "True", "DeletionBlocked")
    assert "deletion waits for default/a: remove their baseRefs" in condition["message"]


@pytest.mark.parametrize("spec", [{}, {"replicas": "3"}, {"baseRefs": 1}])
def test_an_unused_config_goes_even_if_it_is_invalid(spec: Json) -> None:
    answer = finalize(deleted(**spec), service("a", baseRefs=[{"name": "other"}]))
    assert answer["finalized"] is True
    assert answer["children"] == []


def test_a_config_that_nobody_deletes_stays() -> None:
    """Metacontroller also calls finalize for objects that its selector no longer matches."""
    assert "finalized" not in finalize(config("base"))
