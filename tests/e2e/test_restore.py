"""What a restore leaves behind: children without an owner, with the label of a parent that is gone (howto/teams.md)."""

from __future__ import annotations

import re
import time

import pytest

from app.kube.base import Json
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import ROOT, Installation
from tests.e2e.processes import PATIENCE
from tests.e2e.test_llmaz import RUNTIMES
from tests.e2e.test_llmkube import condition, wait_ready

pytestmark = pytest.mark.e2e

FILES = [ROOT / "examples" / family / "quickstart.yaml" for family in ("llmkube", "llmaz", "kserve")]
PARENTS = "models,inferenceservices.inference.llmkube.dev,playgrounds,llminferenceservices"
COMMAND = re.compile(r"kubectl label --overwrite [^;]+")


def parents(cluster: ControlPlane, namespace: str) -> list[Json]:
    items: list[Json] = cluster.get(PARENTS, "-n", namespace)["items"]
    return items


def identities(cluster: ControlPlane, namespace: str, kinds: str) -> dict[str, str]:
    return {
        f"{i['kind']} {i['metadata']['name']}": i["metadata"]["uid"]
        for i in cluster.get(kinds, "-n", namespace)["items"]
    }


def test_the_commands_of_ready_hand_over_what_a_restore_left(installation: Installation, namespace: str) -> None:
    """All three families, the claim of a Model and the Service of a Playground; no pod is replaced."""
    cluster = installation.cluster
    applied = [argument for file in FILES for argument in ("-f", str(file))]
    cluster.kubectl("apply", "-k", str(RUNTIMES))
    cluster.kubectl("apply", "-n", namespace, *applied)
    names = [
        f"{i['kind'].lower()}.{i['apiVersion'].partition('/')[0]}/{i['metadata']['name']}"
        for i in parents(cluster, namespace)
    ]
    assert len(names) >= 4
    wait_ready(cluster, namespace, *names)
    kept = "pods,persistentvolumeclaims,deployments,services.inference.llmaz.io"
    before = identities(cluster, namespace, kept)
    cluster.kubectl("delete", "-n", namespace, PARENTS, "--all", "--cascade=orphan")
    cluster.kubectl("apply", "-n", namespace, *applied)
    ran = hand_over(cluster, namespace)
    wait_ready(cluster, namespace, *names)
    assert identities(cluster, namespace, kept) == before
    assert any("persistentvolumeclaim/" in command for command in ran)
    assert any("service.inference.llmaz.io/" in command for command in ran)
    uids = {item["metadata"]["uid"] for item in parents(cluster, namespace)}
    for item in cluster.get("persistentvolumeclaims,services.inference.llmaz.io", "-n", namespace)["items"]:
        assert {owner["uid"] for owner in item["metadata"]["ownerReferences"]} <= uids
    cluster.kubectl("delete", "-n", namespace, PARENTS, "--all")
    cluster.kubectl("delete", "-k", str(RUNTIMES))


def hand_over(cluster: ControlPlane, namespace: str) -> set[str]:
    """Run each command that a `Ready` names, as a reader would, until all are true; return the commands."""
    ran: set[str] = set()
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        told = [condition(item, "Ready") for item in parents(cluster, namespace)]
        if all(ready.get("status") == "True" for ready in told):
            break
        new = {c for ready in told for c in COMMAND.findall(ready.get("message", ""))} - ran
        for command in sorted(new):
            cluster.shell(command)
        ran |= new
        time.sleep(1)
    return ran
