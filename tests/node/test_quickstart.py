"""The quickstart: installed as in the README, a model is downloaded and served, and answers a chat."""

from __future__ import annotations

import base64
import json
import shlex

import pytest

from app.settings import Settings
from tests.e2e.controlplane import TIMEOUT
from tests.node.images import ROOT
from tests.node.pages import Reader
from tests.node.samples import service
from tests.node.world import SERVICES, SYSTEM, World, restricted, status_of
from tests.repository.test_readme import commands

pytestmark = pytest.mark.node


def test_the_service_runs_without_rights(installed: World) -> None:
    """The service runs as a user other than root, without capabilities or privilege escalation, and with seccomp."""
    pods = installed.pods(SYSTEM, "app.kubernetes.io/component=server")
    assert len(pods) == 2
    for pod in pods:
        (process,) = installed.processes(pod, "modelhooks")
        restricted(process, 65532)


def test_a_wrong_authority_is_mended_as_documented(installed: World, shell: dict[str, str]) -> None:
    """The commands of docs/operations.md run the Job of the night, and every webhook has the right CA again."""
    cluster = installed.cluster
    webhooks = cluster.get("validatingwebhookconfiguration", "modelhooks")["webhooks"]
    right = [webhook["clientConfig"]["caBundle"] for webhook in webhooks]
    wrong = base64.b64encode(cluster.ca_file.read_bytes()).decode()
    change = [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": wrong}]
    cluster.kubectl("patch", "validatingwebhookconfiguration", "modelhooks", "--type=json", "-p", json.dumps(change))
    _, _, section = (ROOT / "docs/operations.md").read_text().partition("### Renew the certificate\n")
    with Reader(section.partition("\n### ")[0], shell) as page:
        page.read()
    webhooks = cluster.get("validatingwebhookconfiguration", "modelhooks")["webhooks"]
    assert [webhook["clientConfig"]["caBundle"] for webhook in webhooks] == right


def test_a_model_is_served_and_answers(installed: World, namespace: str, tiny: str) -> None:
    """The Service is reached by its DNS name: from the node, and from a pod with the README's chat."""
    installed.apply(namespace, service("chat", tiny))
    installed.wait_true(SERVICES, "chat", namespace)
    url = f"http://chat.{namespace}.svc.cluster.local:8080"
    assert installed.ask(url)["choices"][0]["message"]["role"] == "assistant"

    document = installed.find(SERVICES, "chat", namespace)
    assert document is not None
    assert document["status"]["endpoint"].startswith(url)
    (chat,) = (command for command in commands(ROOT / "README.md") if command.startswith("curl "))
    *_, body = shlex.split(chat)
    installed.cluster.kubectl(
        *(
            "run",
            "asks",
            "-n",
            namespace,
            "--restart=Never",
            f"--image={Settings().llmkube_init_container_image}",
            "--",
        ),
        *("curl", "-sS", "--max-time", "60", "--json", body, "http://chat:8080/v1/chat/completions"),
    )
    installed.cluster.kubectl("wait", "-n", namespace, "--for=jsonpath={.status.phase}=Succeeded", "pod/asks", TIMEOUT)
    printed = installed.cluster.kubectl("logs", "-n", namespace, "asks").stdout
    assert json.loads(printed)["object"] == "chat.completion"


def test_a_model_server_is_kept_from_more_rights(installed: World, namespace: str) -> None:
    (pod,) = installed.pods(namespace, "app=chat")
    (process,) = installed.processes(pod, "llama-server")
    status = status_of(process)
    assert (status["CapEff"], status["NoNewPrivs"], status["Seccomp"]) == ("0" * 16, "1", "2")
