"""A Model's download Job with a web server that misbehaves: the shipped script in an image like the shipped one."""

from __future__ import annotations

import hashlib

import pytest

from tests.node.files import Asked
from tests.node.samples import model
from tests.node.world import World, restricted

pytestmark = pytest.mark.node

_SMALL = 256 * 1024


@pytest.fixture(scope="module")
def digest(installed: World) -> str:
    return hashlib.sha256(installed.prepared.model.read_bytes()).hexdigest()


@pytest.fixture(scope="module", autouse=True)
def models(installed: World, namespace: str, digest: str) -> None:
    """Create all Models at once, because each takes some seconds."""
    url = installed.files.url
    for name in ("crowded", "unsized"):
        installed.volumes.limit(namespace, f"{name}-cache", _SMALL)
    installed.apply(
        namespace,
        model("checked", f"{url}/tiny.gguf", sha256=digest),
        model("moved", f"{url}/moved/tiny.gguf"),
        model("cut", f"{url}/cut/tiny.gguf", sha256=digest),
        model("absent", f"{url}/absent.gguf"),
        model("altered", f"{url}/tiny.gguf", sha256="0" * 64),
        model("crowded", f"{url}/tiny.gguf"),
        model("unsized", f"{url}/unsized/tiny.gguf"),
        model("slow", f"{url}/slow/tiny.gguf"),
    )


def test_a_slow_download_runs_without_rights(installed: World, namespace: str) -> None:
    """The container runs as the user of curl's image: the pod security context and the image agree."""
    processes = installed.wait_for(
        "curl of the slow download runs",
        lambda: [
            process
            for pod in installed.pods(namespace, "inference.llmkube.dev/model=slow")
            for process in installed.processes(pod, "curl")
        ],
        bool,
    )
    restricted(processes[0], 100)
    installed.wait_true("models", "slow", namespace)


def test_reports_the_facts_of_a_verified_file(installed: World, namespace: str, digest: str) -> None:
    installed.wait_true("models", "checked", namespace)
    downloaded = installed.find("models", "checked", namespace)
    assert downloaded is not None
    assert downloaded["status"]["sha256"] == digest
    (file,) = installed.volumes.directory(namespace, "checked-cache").glob("*/checked.gguf")
    assert hashlib.sha256(file.read_bytes()).hexdigest() == digest
    assert (file.stat().st_uid, file.stat().st_gid) == (100, 102)


def test_a_redirect_is_followed(installed: World, namespace: str) -> None:
    installed.wait_true("models", "moved", namespace)
    assert Asked("/moved/tiny.gguf", None, 302) in installed.files.asked


def test_a_broken_transfer_goes_on_where_it_ended(installed: World, namespace: str) -> None:
    """Only the rest is requested, and the whole file has the required SHA-256."""
    installed.wait_true("models", "cut", namespace)
    size = installed.prepared.model.stat().st_size
    assert Asked("/cut/tiny.gguf", f"bytes={size * 2 // 5}-", 206) in installed.files.asked


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent", "404"),
        ("altered", "SHA-256"),
        ("crowded", "full"),
        ("unsized", "full"),
    ],
)
def test_a_model_says_why_it_is_not_there(installed: World, namespace: str, name: str, words: str) -> None:
    installed.wait_not_ready("models", name, namespace, words)
