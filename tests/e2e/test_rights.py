"""Metacontroller's smaller role on a real API server: sufficient for every child, and no more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.families import RESOURCES
from app.kserve import permissions
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import Installation
from tests.e2e.processes import wait_until

pytestmark = pytest.mark.e2e

ACCOUNT = "system:serviceaccount:metacontroller:metacontroller"
RBAC = "rbac.authorization.k8s.io"
CHILDREN = sorted({(child.plural, child.api_version) for resource in RESOURCES for child in resource.children})


@pytest.fixture(scope="module")
def cluster(installation: Installation) -> ControlPlane:
    """The control plane with every component, once it has aggregated the roles."""
    wait_until(lambda: _may(installation.cluster, "create", "roles", RBAC), "the collected role")
    return installation.cluster


def _may(cluster: ControlPlane, verb: str, resource: str, group: str = "") -> bool:
    """Return what `kubectl auth can-i` of the account returns."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {"verb": verb, "group": group, "resource": resource, "namespace": "default"},
        },
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = cluster.client.post(path, json=review, headers={"Impersonate-User": ACCOUNT}).raise_for_status()
    return bool(answer.json()["status"]["allowed"])


@pytest.mark.parametrize(("plural", "version"), CHILDREN)
def test_it_may_keep_every_child(cluster: ControlPlane, plural: str, version: str) -> None:
    """The role has every verb for every child."""
    group = version.rpartition("/")[0]
    verbs = ("get", "list", "watch", "create", "update", "patch", "delete")
    assert [verb for verb in verbs if not _may(cluster, verb, plural, group)] == []


@pytest.mark.parametrize("rules", [permissions.SIDECAR_RULES, permissions.SCHEDULER_RULES], ids=["sidecar", "picker"])
def test_it_may_create_the_roles(cluster: ControlPlane, namespace: str, rules: tuple[dict[str, Any], ...]) -> None:
    """The API server requires an account to have every right that it grants."""
    role = permissions.role({"name": "made", "namespace": namespace}, rules)
    cluster.kubectl("create", "--dry-run=server", "--as", ACCOUNT, "-f", "-", input=json.dumps(role))


def test_it_may_create_no_other_role(cluster: ControlPlane, namespace: str) -> None:
    """The account may not grant other rights, not even reading Secrets."""
    rules = ({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},)
    role = permissions.role({"name": "made", "namespace": namespace}, rules)
    done = cluster.kubectl(
        "create", "--dry-run=server", "--as", ACCOUNT, "-f", "-", input=json.dumps(role), check=False
    )
    assert "attempting to grant RBAC permissions not currently held" in done.stderr


@pytest.mark.parametrize(
    ("resource", "group"),
    [("secrets", ""), ("clusterroles", RBAC), ("validatingwebhookconfigurations", "admissionregistration.k8s.io")],
)
def test_it_has_no_right_that_it_does_not_need(cluster: ControlPlane, resource: str, group: str) -> None:
    """docs/security.md lists these resources."""
    assert not _may(cluster, "get", resource, group)
    assert not _may(cluster, "create", resource, group)
