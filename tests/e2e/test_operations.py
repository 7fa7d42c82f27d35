"""What docs/operations.md and docs/howto/teams.md say: admission that fails open, and rights of teams."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import yaml

from tests.e2e.installation import ROOT, Installation
from tests.e2e.processes import wait_until
from tests.e2e.test_llmkube import QUICKSTART, apply, condition, wait_ready
from tests.repository.test_readme import commands

pytestmark = pytest.mark.e2e

EXAMPLES = ROOT / "examples"
TEAMS = (ROOT / "docs/howto/teams.md").read_text()
MANIFESTS = [
    item
    for block in re.findall(r"^```yaml\n(.*?)^```", TEAMS, re.MULTILINE | re.DOTALL)
    for item in yaml.safe_load_all(block)
]
(LET_THROUGH,) = (command for command in commands(ROOT / "docs/operations.md") if "failurePolicy" in command)
CLOSE = re.sub("Fail/(.*)Ignore/", r"Ignore/\1Fail/", LET_THROUGH)
EDITOR, VIEWER = "editor", "viewer"


def of_kind(kind: str) -> str:
    return yaml.safe_dump_all(item for item in MANIFESTS if item["kind"] == kind)


def test_writes_are_let_through(installation: Installation, namespace: str) -> None:
    """Mistakes of what was written are in its status once the service is back; then admission is closed again."""
    cluster = installation.cluster
    wrong = EXAMPLES / "llmkube/rejected/three-mistakes.yaml"
    installation.stop_service()
    try:
        cluster.shell(LET_THROUGH)
        written = ("apply", "-n", namespace, "-f", wrong, "-f", EXAMPLES / "kserve/quickstart.yaml")
        wait_until(lambda: cluster.kubectl(*written, check=False).returncode == 0, "writes are let through")
        older = ("get", "llminferenceservices.v1alpha1.serving.kserve.io", "tiny-chat", "-n", namespace)
        assert "conversion webhook for serving.kserve.io" in cluster.kubectl(*older, check=False).stderr
    finally:
        installation.start_service()
        cluster.shell(CLOSE)
    webhooks = cluster.get("validatingwebhookconfiguration", "modelhooks")["webhooks"]
    assert {webhook["failurePolicy"] for webhook in webhooks} == {"Fail"}

    def told() -> bool:
        (service,) = cluster.get("inferenceservices.inference.llmkube.dev", "-n", namespace)["items"]
        return condition(service, "Ready").get("reason") == "InvalidSpec"

    wait_until(told, "the mistakes in the status")


@pytest.fixture
def team(installation: Installation, namespace: str) -> Iterator[str]:
    """A namespace in which one user may edit and another may view, with the page's roles."""
    kubectl = installation.cluster.kubectl
    kubectl("apply", "-f", "-", input=of_kind("ClusterRole"))
    for user, role in ((EDITOR, "edit"), (VIEWER, "view")):
        kubectl("create", "rolebinding", user, "-n", namespace, f"--clusterrole={role}", f"--user={user}")
    users = (f"--user={EDITOR}", f"--user={VIEWER}")
    kubectl("create", "clusterrolebinding", namespace, "--clusterrole=models-shared-view", *users)
    yield namespace
    kubectl("delete", "clusterrolebinding", namespace)
    kubectl("delete", "-f", "-", input=of_kind("ClusterRole"))


def test_a_team_has_the_rights_of_the_page(installation: Installation, team: str) -> None:
    """Editors write the resources of their namespace and scale them; viewers read. Both only read shared objects."""
    cluster = installation.cluster

    def may(user: str, verb: str, resource: str) -> bool:
        return cluster.kubectl("auth", "can-i", verb, resource, "-n", team, "--as", user, check=False).returncode == 0

    for role in (item for item in MANIFESTS if item["kind"] == "ClusterRole"):
        verb = role["rules"][0]["verbs"][0]
        names = {f"{name}.{rule['apiGroups'][0]}" for rule in role["rules"] for name in rule["resources"]}
        resources = [name for name in names if "/" not in name]
        # Kubernetes adds the rules to its own roles a moment later.
        wait_until(lambda v=verb, rs=resources: all(may(EDITOR, v, r) for r in rs), verb)  # type: ignore[misc]  # a default
        assert {may(VIEWER, verb, resource) for resource in resources} == {verb == "get"}
    apply(cluster, team, QUICKSTART)
    wait_ready(cluster, team, "model/smollm", "inferenceservice/smollm-chat")
    scale = ("scale", "inferenceservice.inference.llmkube.dev/smollm-chat", "-n", team, "--replicas=2", "--as")
    cluster.kubectl(*scale, EDITOR)
    assert "forbidden" in cluster.kubectl(*scale, VIEWER, check=False).stderr
    assert not any(may(EDITOR, "create", r) for r in ("openmodels.llmaz.io", "backendruntimes.inference.llmaz.io"))
