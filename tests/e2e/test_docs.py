"""The commands of the README and of the docs, in the order of the pages, on a cluster with the product installed.

Those of docs/migration.md have a separate test. Commands that delete something, or need a kubelet, are omitted.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import binaries
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import ROOT, Installation
from tests.repository.test_readme import commands

pytestmark = pytest.mark.e2e

PAGES = ("README.md", "docs/tutorial.md", "docs/install.md", "docs/troubleshooting.md", "docs/cli.md")
NOT_HERE = {
    "create": "makes a Job whose image nobody pulls; tests/e2e/test_certs.py runs its command",
    "examples/llmkube/rejected/three-mistakes.yaml": "is refused; tests/node/test_tutorial.py compares the message",
    "delete": "removes the installation that other tests stand on",
    "job/modelhooks-certs": "is deleted five minutes after its end; the tests on a node wait for it",
    "manifests/metacontroller": "is fetched from GitHub, which tests/node/test_tutorial.py plays",
    "patch": "empties the Secret with the certificates that are in use",
    "port-forward": "needs a kubelet; tests/node/test_tutorial.py runs it",
    "statefulset/metacontroller": "runs outside the cluster here",
}
"""Words of commands that are not run, and the reason."""


def documented() -> list[str]:
    """Return the kubectl commands of the pages, each once."""
    kubectl_commands = (command for page in PAGES for command in commands(ROOT / page) if command.startswith("kubectl"))
    return list(
        dict.fromkeys(command for command in kubectl_commands if not set(shlex.split(command)) & NOT_HERE.keys())
    )


@pytest.fixture(scope="module")
def cluster(installation: Installation) -> Iterator[ControlPlane]:
    """The control plane with an example that pages only read; it and the pages' examples are deleted afterwards."""
    looked_at = ROOT / "examples/kserve/quickstart.yaml"
    installation.cluster.kubectl("apply", "-f", looked_at)
    yield installation.cluster
    examples = [("-f", ROOT / "examples" / name) for name in ("llmkube/quickstart.yaml", "llmaz/cpu.yaml")]
    for option, path in (*examples, ("-k", ROOT / "manifests/llmaz-runtimes"), ("-f", looked_at)):
        installation.cluster.kubectl("delete", "--ignore-not-found", option, path)


@pytest.mark.parametrize("command", documented())
def test_a_documented_command_does_what_the_page_says(cluster: ControlPlane, command: str) -> None:
    """The command succeeds. Installations use a dry run, because the installation has other addresses here."""
    first, _, then = command.partition(" | ")
    arguments = [str(ROOT / word) if (ROOT / word).exists() and "/" in word else word for word in shlex.split(first)]
    if str(ROOT / "manifests/overlays/quickstart") in arguments:
        arguments.append("--dry-run=server")
    output = cluster.kubectl(*arguments[1:]).stdout
    assert output
    if then:
        assert _explained(then, output)


def _explained(command: str, objects: str) -> str:
    program, *arguments = shlex.split(command)
    assert program == "modelhooks"
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments],
        input=objects,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_is_left_out_without_a_reason() -> None:
    """Each excluded word occurs on a page."""
    words = {word for page in PAGES for command in commands(Path(ROOT / page)) for word in shlex.split(command)}
    assert set(NOT_HERE) <= words
    assert len(documented()) > 8


@pytest.mark.parametrize(
    "command", re.findall(r"\$ (kubectl patch services.*)", (ROOT / "docs/howto/rollout.md").read_text())
)
def test_clients_move_by_a_whole_selector(command: str, tmp_path: Path) -> None:
    """A label that stays, such as one of a Deployment of the user's own, would leave the Service without endpoints."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "chat"},
        "spec": {"selector": {"app": "chat"}, "ports": [{"port": 8000}]},
    }
    file = tmp_path / "service.json"
    file.write_text(json.dumps(service))
    *_, option, patch = shlex.split(command.partition("  # ")[0])
    assert option.startswith("--patch") or option == "-p"
    local = [str(binaries.program("kubectl")), "patch", "--local", "-f", str(file), "--type=json", "-p", patch]
    patched = json.loads(subprocess.check_output([*local, "-o", "json"]))
    assert list(patched["spec"]["selector"].values()) == ["coder-2"]
