"""A release of modelhooks takes the place of another one: no pod restarts until the user changes something."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from app.kube.base import Json
from tests.e2e import binaries
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import Installation, quiet
from tests.e2e.processes import Process, wait_until
from tests.e2e.test_broken_update import UPDATES, Update

pytestmark = pytest.mark.e2e


EARLIER = """
from app.hooks import template
from app.workload import parts
parts.TERMINATION_MESSAGE_POLICY = "File"
template._annotated = lambda workload, _: {**workload, "metadata": {"annotations": {}, **workload["metadata"]}}
from app.cli import main
main()
"""
"""A release before templates were kept: what it writes into every container differs, and it notes nothing."""

NEXT = """
from app.workload import parts
parts.TERMINATION_MESSAGE_POLICY = "File"
from app.cli import main
main()
"""
"""The next release: what it writes into every container differs, too."""

PRESENT = ("-m", "app.cli")


@pytest.fixture
def cluster(installation: Installation) -> Iterator[ControlPlane]:
    """Leaves the present release, and nothing that belongs to no namespace."""
    yield installation.cluster
    _upgrade(installation, PRESENT)
    installation.cluster.kubectl("delete", "openmodels,backendruntimes", "updated", "--ignore-not-found")


def _upgrade(installation: Installation, program: tuple[str, str]) -> None:
    installation.stop_service()
    installation.start_service(program)


class Chat:
    """The resource of an :class:`Update`, and what became of it."""

    def __init__(self, cluster: ControlPlane, namespace: str, update: Update) -> None:
        self.cluster, self.namespace, self.update = cluster, namespace, update
        cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump_all(update.documents))

    def ready(self) -> Json:
        found = self.cluster.get(self.update.kind, "chat", "-n", self.namespace)
        return next((c for c in found.get("status", {}).get("conditions", []) if c["type"] == "Ready"), {})

    def is_ready(self) -> bool:
        return self.ready().get("status") == "True"

    def waits(self) -> bool:
        return "a newer pod template waits" in self.ready().get("message", "")

    def deployment(self) -> Json:
        return next(iter(self.cluster.get("deployments", "-n", self.namespace)["items"]), {})

    def template(self) -> Json:
        return dict(self.deployment()["spec"]["template"])

    def policy(self) -> str:
        """What differs from release to release."""
        return str(self.template()["spec"]["containers"][0]["terminationMessagePolicy"]) if self.deployment() else ""

    def noted(self) -> str:
        """What the template was made from."""
        annotations: Json = self.deployment().get("metadata", {}).get("annotations", {})
        return str(annotations.get("modelhooks.dev/template-inputs", ""))

    def is_at_rest(self) -> bool:
        before, after = quiet(self.cluster, self.namespace, f"deployments,{self.update.kind}", 3)
        return before == after and self.is_ready()

    def change(self, spec: Json) -> None:
        text = json.dumps({"spec": spec}).replace("TAG", "v2")
        self._kubectl("patch", "--type=merge", "-p", text)

    def annotate(self, text: str) -> None:
        self._kubectl("annotate", text)

    def wake(self, label: str) -> None:
        """Have it looked at, as Metacontroller does with all of them when the hook's address has a new release."""
        self._kubectl("label", label)

    def _kubectl(self, verb: str, *more: str) -> None:
        self.cluster.kubectl(verb, self.update.kind, "chat", "-n", self.namespace, *more)


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
def test_pods_stay_until_the_user_changes_them(
    installation: Installation, cluster: ControlPlane, namespace: str, update: Update, tmp_path: Path
) -> None:
    """`Ready` stays true with every write, and says what waits; scaling brings nothing along."""
    _upgrade(installation, ("-c", EARLIER))
    chat = Chat(cluster, namespace, update)
    wait_until(chat.is_ready, "the first release's service ready")
    wait_until(chat.is_at_rest, "nothing is written any more")
    before = chat.template()
    assert (chat.policy(), chat.noted()) == ("File", "")

    watched = Watch(cluster, namespace, update, tmp_path / "ready.txt")
    _upgrade(installation, PRESENT)
    chat.wake("example.com/looked-at=1")
    wait_until(chat.waits, "Ready says what waits")
    wait_until(chat.is_at_rest, "the present release has noted everything")
    assert chat.template() == before
    noted = chat.noted()
    assert noted

    _upgrade(installation, ("-c", NEXT))
    chat.wake("example.com/looked-at-again=1")
    wait_until(lambda: not chat.waits(), "what it would write is what is there")
    wait_until(chat.is_at_rest, "nothing is written any more")
    _upgrade(installation, PRESENT)
    chat.wake("example.com/looked-at-once-more=1")
    wait_until(chat.waits, "as before")
    wait_until(chat.is_at_rest, "nothing is written any more")
    assert (chat.template(), chat.noted()) == (before, noted)
    assert watched.seen() == {"True"}

    chat.change({"replicas": 3})
    wait_until(lambda: chat.deployment()["spec"]["replicas"] == 3, "more replicas")
    wait_until(chat.is_ready, "ready with more replicas")
    assert chat.template() == before

    chat.change(update.spec)
    wait_until(lambda: chat.policy() == "FallbackToLogsOnError", "the change and what waited for it roll out")
    wait_until(lambda: chat.is_ready() and not chat.waits(), "nothing waits any more")


def test_the_annotation_rolls_it_out_at_once(installation: Installation, cluster: ControlPlane, namespace: str) -> None:
    """Also through a Playground, whose Service has the Deployment."""
    chat = Chat(cluster, namespace, UPDATES["llmaz"])
    wait_until(lambda: chat.policy() == "FallbackToLogsOnError", "the first release's Deployment")
    _upgrade(installation, ("-c", NEXT))
    chat.annotate("modelhooks.dev/rollout=Latest")
    wait_until(lambda: chat.policy() == "File", "the newer template")


class Watch:
    """Every `Ready` that the API server has had from now on, and not only those that somebody asked about."""

    def __init__(self, cluster: ControlPlane, namespace: str, update: Update, log: Path) -> None:
        path = '{.status.conditions[?(@.type=="Ready")].status}{"\\n"}'
        asked = ["get", update.kind, "chat", "-n", namespace, "--watch", "-o", f"jsonpath={path}"]
        config = f"--kubeconfig={cluster.kubeconfig}"
        self._process = Process("kubectl", [binaries.program("kubectl"), config, *asked], log)
        wait_until(lambda: bool(log.read_text().strip()), "the watch has begun")

    def seen(self) -> set[str]:
        """The values so far; ends the watch."""
        self._process.check()
        self._process.stop()
        return set(self._process.log.read_text().split())
