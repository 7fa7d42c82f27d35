"""An upgrade of modelhooks restarts no pod until the user changes something."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from app.kube.base import Json
from tests.e2e import binaries
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import Installation, clear
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
"""A release before templates were kept: every container differs, and the template's inputs are not recorded."""

NEXT = """
from app.workload import parts
parts.TERMINATION_MESSAGE_POLICY = "File"
from app.cli import main
main()
"""
"""The next release: every container differs, too."""

PRESENT = ("-m", "app.cli")


@pytest.fixture
def cluster(installation: Installation) -> Iterator[ControlPlane]:
    """The control plane; afterwards the present release runs, and cluster-scoped objects are deleted."""
    yield installation.cluster
    _upgrade(installation, PRESENT)
    installation.cluster.kubectl("delete", "openmodels,backendruntimes", "updated", "--ignore-not-found")


@pytest.fixture
def namespaces(control_plane: ControlPlane) -> Iterator[list[str]]:
    """A new namespace for each family."""
    names = [control_plane.create_namespace() for _ in UPDATES]
    yield names
    clear(control_plane, *names)


def _upgrade(installation: Installation, program: tuple[str, str]) -> None:
    installation.stop_service()
    installation.start_service(program)


class Chat:
    """The resource of an :class:`Update`, and its current state."""

    def __init__(self, cluster: ControlPlane, namespace: str, update: Update) -> None:
        self.cluster, self.namespace, self.update = cluster, namespace, update
        cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump_all(update.documents))

    def ready(self) -> Json:
        document = self.cluster.get(self.update.kind, "chat", "-n", self.namespace)
        return next((c for c in document.get("status", {}).get("conditions", []) if c["type"] == "Ready"), {})

    def is_ready(self) -> bool:
        return self.ready().get("status") == "True"

    def waits(self) -> bool:
        return "a newer pod template waits" in self.ready().get("message", "")

    def deployment(self) -> Json:
        return next(iter(self.cluster.get("deployments", "-n", self.namespace)["items"]), {})

    def template(self) -> Json:
        return dict(self.deployment()["spec"]["template"])

    def policy(self) -> str:
        """Return the field that differs between releases."""
        return str(self.template()["spec"]["containers"][0]["terminationMessagePolicy"]) if self.deployment() else ""

    def noted(self) -> str:
        """Return the recorded inputs of the template."""
        annotations: Json = self.deployment().get("metadata", {}).get("annotations", {})
        return str(annotations.get("modelhooks.dev/template-inputs", ""))

    def versions(self) -> list[str]:
        """Return the resource versions of the resource and its Deployment, which change with every write."""
        items = self.cluster.get(f"deployments,{self.update.kind}", "-n", self.namespace)["items"]
        return sorted(f"{item['kind']}@{item['metadata']['resourceVersion']}" for item in items)

    def change(self, spec: Json) -> None:
        text = json.dumps({"spec": spec}).replace("TAG", "v2")
        self._kubectl("patch", "--type=merge", "-p", text)

    def annotate(self, text: str) -> None:
        self._kubectl("annotate", text)

    def wake(self, label: str) -> None:
        """Trigger a sync, as Metacontroller does for all resources when the hook's address has a new release."""
        self._kubectl("label", label)

    def _kubectl(self, verb: str, *more: str) -> None:
        self.cluster.kubectl(verb, self.update.kind, "chat", "-n", self.namespace, *more)


def _wait_for_rest(chats: Sequence[Chat]) -> None:
    """Wait until all are ready and nothing is written any more."""

    def at_rest() -> bool:
        before = [chat.versions() for chat in chats]
        time.sleep(3)
        return before == [chat.versions() for chat in chats] and all(chat.is_ready() for chat in chats)

    wait_until(at_rest, "nothing is written any more")


def _wait_for_all(chats: Sequence[Chat], ready: Callable[[Chat], bool], what: str) -> None:
    for chat in chats:
        wait_until(lambda chat=chat: ready(chat), f"{chat.update.kind}: {what}")  # type: ignore[misc]  # mypy cannot infer a lambda with a default


def test_pods_stay_until_the_user_changes_them(
    installation: Installation, cluster: ControlPlane, namespaces: list[str], tmp_path: Path
) -> None:
    """`Ready` stays true throughout and reports the waiting template; scaling does not roll it out."""
    _upgrade(installation, ("-c", EARLIER))
    chats = [Chat(cluster, name, update) for name, update in zip(namespaces, UPDATES.values(), strict=True)]
    _wait_for_all(chats, Chat.is_ready, "the first release's service ready")
    _wait_for_rest(chats)
    before = [chat.template() for chat in chats]
    assert [(chat.policy(), chat.noted()) for chat in chats] == [("File", "")] * len(chats)

    watches = [Watch(chat, tmp_path / chat.update.kind) for chat in chats]
    _upgrade(installation, PRESENT)
    for chat in chats:
        chat.wake("example.com/looked-at=1")
    _wait_for_all(chats, Chat.waits, "Ready says what waits")
    _wait_for_rest(chats)
    assert [chat.template() for chat in chats] == before
    noted = [chat.noted() for chat in chats]
    assert all(noted)

    _upgrade(installation, ("-c", NEXT))
    for chat in chats:
        chat.wake("example.com/looked-at-again=1")
    _wait_for_all(chats, lambda chat: not chat.waits(), "what it would write is what is there")
    _wait_for_rest(chats)
    _upgrade(installation, PRESENT)
    for chat in chats:
        chat.wake("example.com/looked-at-once-more=1")
    _wait_for_all(chats, Chat.waits, "as before")
    _wait_for_rest(chats)
    assert [chat.template() for chat in chats] == before
    assert [chat.noted() for chat in chats] == noted
    assert [watch.values() for watch in watches] == [{"True"}] * len(chats)

    for chat in chats:
        chat.change({"replicas": 3})
    _wait_for_all(chats, lambda chat: chat.deployment()["spec"]["replicas"] == 3, "more replicas")
    _wait_for_all(chats, Chat.is_ready, "ready with more replicas")
    assert [chat.template() for chat in chats] == before

    for chat in chats:
        chat.change(chat.update.spec)
    changed = "the change and what waited for it roll out"
    _wait_for_all(chats, lambda chat: chat.policy() == "FallbackToLogsOnError", changed)
    _wait_for_all(chats, lambda chat: chat.is_ready() and not chat.waits(), "nothing waits any more")


def test_the_annotation_rolls_it_out_at_once(installation: Installation, cluster: ControlPlane, namespace: str) -> None:
    """The annotation also works on a Playground, whose Service owns the Deployment."""
    chat = Chat(cluster, namespace, UPDATES["llmaz"])
    wait_until(lambda: chat.policy() == "FallbackToLogsOnError", "the first release's Deployment")
    _upgrade(installation, ("-c", NEXT))
    chat.annotate("modelhooks.dev/rollout=Latest")
    wait_until(lambda: chat.policy() == "File", "the newer template")


class Watch:
    """Records every value of `Ready` from now on, including short-lived ones."""

    def __init__(self, chat: Chat, log: Path) -> None:
        path = '{.status.conditions[?(@.type=="Ready")].status}{"\\n"}'
        asked = ["get", chat.update.kind, "chat", "-n", chat.namespace, "--watch", "-o", f"jsonpath={path}"]
        config = f"--kubeconfig={chat.cluster.kubeconfig}"
        self._process = Process("kubectl", [binaries.program("kubectl"), config, *asked], log)
        wait_until(lambda: bool(log.read_text().strip()), "the watch has begun")

    def values(self) -> set[str]:
        """Return the values so far; ends the watch."""
        self._process.check()
        self._process.stop()
        return set(self._process.log.read_text().split())
