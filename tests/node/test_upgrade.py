"""An upgrade of modelhooks refuses no write and restarts no model."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from tests.e2e.controlplane import TIMEOUT
from tests.node.conftest import Upgrade
from tests.node.load import Load
from tests.node.prepare import image_name, reference
from tests.node.samples import service
from tests.node.world import SERVICES, SYSTEM, World

pytestmark = pytest.mark.node

_SETTLED = 10.0
_KINDS = {"InferenceService": SERVICES, "Playground": "playgrounds", "LLMInferenceService": "llminferenceservices"}


@pytest.fixture(scope="module", autouse=True)
def steady(installed: World, namespace: str, tiny: str) -> None:
    """A ready service that must not be interrupted."""
    installed.apply(namespace, service("steady", tiny))
    installed.wait_true(SERVICES, "steady", namespace)


def test_a_rollout_restart_fails_no_webhook(installed: World, namespace: str) -> None:
    before = installed.restarts(namespace)
    with Load(installed.cluster, namespace, "steady") as load:
        installed.cluster.kubectl("-n", SYSTEM, "rollout", "restart", "deployment/modelhooks")
        installed.cluster.kubectl("-n", SYSTEM, "rollout", "status", "deployment/modelhooks", TIMEOUT)
        installed.wait_for(
            "earlier pods of modelhooks gone",
            lambda: installed.cluster.get("pods", "-n", SYSTEM, "--selector=app.kubernetes.io/component=server"),
            lambda pods: len(pods["items"]) == 2,
        )
    assert load.failed == []
    assert load.succeeded > 100
    assert installed.restarts(namespace) == before


def test_a_new_image_restarts_no_model(installed: World, namespace: str) -> None:
    pods, templates = installed.restarts(namespace), _templates(installed, namespace)
    name = image_name(installed.prepared.present.tree)
    installed.node.tag(reference(name), reference("modelhooks:next"))
    installed.cluster.kubectl("-n", SYSTEM, "set", "image", "deployment/modelhooks", "server=modelhooks:next")
    installed.rollout()
    _ask_anew(installed, "next")
    assert _templates(installed, namespace) == templates
    assert installed.restarts(namespace) == pods


def test_the_previous_releases_models_are_not_restarted(upgrade: Upgrade, installed: World) -> None:
    """The previous release created the models, and this release was installed over it before all tests."""
    if not upgrade.pods:
        pytest.skip("no earlier release is tagged in this clone; MODELHOOKS_PREVIOUS names a commit")
    _ask_anew(installed, "upgraded")
    assert installed.restarts(upgrade.namespace) == upgrade.pods


def _ask_anew(world: World, revision: str) -> None:
    """Change the hook URLs, as a release does, so that Metacontroller syncs every resource again."""
    asked = {kind: world.syncs(kind) for kind in _KINDS}
    there = {kind: len(world.cluster.get(resource, "-A")["items"]) for kind, resource in _KINDS.items()}
    controllers = world.cluster.kubectl("get", "compositecontrollers", "-o", "json").stdout
    world.cluster.kubectl("replace", "-f", "-", input=re.sub(r"rev=[^\"]+", f"rev={revision}", controllers))
    world.wait_for(
        "every resource asked about anew",
        lambda: {kind: world.syncs(kind) - asked[kind] for kind in _KINDS},
        lambda syncs: all(syncs[kind] >= there[kind] for kind in _KINDS),
    )
    time.sleep(_SETTLED)  # a wrong response would take effect within moments


def _templates(world: World, namespace: str) -> dict[str, Any]:
    """Return the pod templates of a namespace's Deployments."""
    deployments = world.cluster.get("deployments", "-n", namespace)["items"]
    return {deployment["metadata"]["name"]: deployment["spec"]["template"] for deployment in deployments}
