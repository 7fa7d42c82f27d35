"""The parts of the node tests that need no node."""

from __future__ import annotations

import hashlib
import json
import os
import re
import ssl
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from tests.e2e import binaries
from tests.node import __main__ as command
from tests.node import archive, hub, images, machine, pages, prepare, programs, report
from tests.node.archive import Image
from tests.node.clean import clean, started
from tests.node.files import Asked, FileServer
from tests.node.pages import Reader
from tests.node.prepare import Prepared, Release

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux says of processes")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that a test may kill."""
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def test_a_shared_layer_is_stored_once(tmp_path: Path) -> None:
    for name in ("low", "high"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    low, high = tmp_path / "low", tmp_path / "high"
    images_ = [Image("a:1", [low], {"User": "1"}), Image("b:1", [low, high], {})]
    archive.write(tmp_path / "images.tar", images_)
    with tarfile.open(tmp_path / "images.tar") as written:
        names = written.getnames()
        contents = {name: _read(written, name) for name in names}
    manifest = json.loads(contents["manifest.json"])
    assert [entry["RepoTags"] for entry in manifest] == [["a:1"], ["b:1"]]
    assert manifest[0]["Layers"] == manifest[1]["Layers"][:1]
    assert len([name for name in names if name.endswith("layer.tar")]) == 2
    for entry in manifest:
        config = json.loads(contents[entry["Config"]])
        digests = [f"sha256:{hashlib.sha256(contents[layer]).hexdigest()}" for layer in entry["Layers"]]
        assert config["rootfs"]["diff_ids"] == digests
        assert entry["Config"] == f"{hashlib.sha256(contents[entry['Config']]).hexdigest()}.json"


def _read(written: tarfile.TarFile, name: str) -> bytes:
    file = written.extractfile(name)
    assert file is not None
    return file.read()


def test_the_file_server_has_its_manners(tmp_path: Path) -> None:
    content = bytes(range(250)) * 4
    (tmp_path / "model").write_bytes(content)
    with FileServer("127.0.0.1", tmp_path) as files, httpx.Client(base_url=files.url, trust_env=False) as client:
        assert client.get("/model").content == content
        assert client.get("/absent").status_code == 404
        assert client.get("/moved/model", follow_redirects=True).content == content
        with pytest.raises(httpx.RemoteProtocolError):
            client.get("/cut/model")
        rest = client.get("/cut/model", headers={"Range": "bytes=400-"})
        assert (rest.status_code, rest.content) == (206, content[400:])
        assert rest.headers["Content-Range"] == "bytes 400-999/1000"
        unsized = client.get("/unsized/model")
        assert unsized.content == content
        assert "Content-Length" not in unsized.headers
        assert client.get("/model", headers={"Range": "bytes=1000-"}).status_code == 416
        assert client.get("/model", headers={"Range": "bytes=4-", "If-Range": '"another"'}).content == content
    assert files.asked[-1] == Asked("/model", "bytes=4-", 200)


@linux
def test_clean_ends_the_process_that_a_run_noted(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    run = tmp_path / "modelhooks-node-test"
    run.mkdir()
    machine.note(run, sleeper.pid)
    clean(run)
    assert sleeper.wait(10) < 0
    assert not run.exists()


@linux
def test_clean_ends_no_process_that_took_the_number(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    run = tmp_path / "modelhooks-node-test"
    run.mkdir()
    machine.note(run, sleeper.pid)
    noted = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(noted | {"started": "1"}))
    clean(run)
    assert sleeper.poll() is None
    assert not run.exists()


@linux
def test_started_tells_processes_apart(sleeper: subprocess.Popen[bytes]) -> None:
    assert started(sleeper.pid) == started(sleeper.pid)
    assert started(sleeper.pid) != started(1)
    assert started(2**22 + 1) is None  # above the kernel's largest


@linux
def test_without_root_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.delenv("MODELHOOKS_NODE", raising=False)
    assert command.main([]) == 0
    assert capsys.readouterr().err == "no node: a node needs root\n"
    monkeypatch.setenv("MODELHOOKS_NODE", "required")
    assert command.main([]) == 1


@linux
def test_missing_programs_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = machine.missing()
    assert reason is not None
    assert re.match(r"a node needs apt-get, buildah, .*unshare \(packages of Debian: ", reason)


@linux
def test_reports_a_machine_without_cgroup_delegation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(machine, "make_cgroup", refused)
    reason = machine.unusable(tmp_path)
    assert reason is not None
    assert "Permission denied" in reason


def test_what_is_prepared_is_read_as_it_was_written(tmp_path: Path) -> None:
    release = Release(Path("tree"), Path("image.tar"))
    for previous in (None, release):
        client = None if previous is None else Path("client.tar")
        prepared = Prepared(
            Path("programs"), Path("tools.tar"), Path("tiny.gguf"), Path("authority"), client, release, previous
        )
        prepare.write(prepared, tmp_path / "prepared.json")
        assert prepare.read(tmp_path / "prepared.json") == prepared


def test_steps_become_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(report.STEPS, str(tmp_path / "steps"))
    with report.step("one"):
        pass
    assert report.table(tmp_path / "steps") == "| Step | Seconds |\n|---|---:|\n| one | 0 |"


def test_names_of_images_are_those_of_the_tree() -> None:
    assert prepare.reference(prepare.image_name(images.ROOT)).startswith("docker.io/library/modelhooks:")
    assert images.base_name(images.ROOT).startswith("python:3.13")
    documents = yaml.safe_load_all((images.ROOT / "tests" / "node" / "cluster.yaml").read_text())
    (deployment,) = (document for document in documents if document["kind"] == "Deployment")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == images.COREDNS
    version = images.COREDNS.rpartition(":")[2]
    assert f"github.com/coredns/coredns {version}\n" in (binaries.TOOLS / "coredns" / "go.mod").read_text()


def test_every_program_has_its_module() -> None:
    for module, package in (programs.PACKAGES | programs.ADAPTER).values():
        pins = (binaries.TOOLS / module / "go.mod").read_text()
        assert package == "." or re.search(rf"^(tool |\t){re.escape(package)}$", pins, re.MULTILINE)


def test_a_page_is_read_as_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Blocks run in order; unexpected output or an unexpected exit code is an error."""
    page = "```sh\necho 'a\nb'\nsleep 60 &\necho c; echo d 1>&2\n```\n\n```text\na\n…\nc…\n```\n\n```sh\nfalse\n```\n"
    with Reader(page, os.environ) as reader:
        reader.read(1)
        with pytest.raises(AssertionError, match=r"false: code 1"):
            reader.read()
    assert "$ false" in capsys.readouterr().err
    other = Reader("```sh\necho other\n```\n\n```text\nsame\n```\n", os.environ)
    with pytest.raises(AssertionError, match=r"printed:\nother"):
        other.read()
    with Reader("```sh\nfalse examples/rejected/x.yaml\n```\n", os.environ) as reader:
        reader.read()


def test_what_pages_reach_for_is_played(tmp_path: Path) -> None:
    """The repository has the Metacontroller release of our manifests; scripts accept only the pages' command lines."""
    pages.add_repository(tmp_path / "github")
    git = ["git", "-c", f"url.file://{tmp_path}/github/.insteadOf=https://github.com/"]
    (resource,) = yaml.safe_load((images.ROOT / "manifests/metacontroller/kustomization.yaml").read_text())["resources"]
    repository, _, release = resource.partition("//manifests/production?ref=")
    listed = subprocess.run([*git, "ls-remote", repository, release], capture_output=True, text=True, check=True)
    assert listed.stdout.endswith(f"refs/tags/{release}\n")
    pages.add_script(tmp_path / "kind", {"create cluster": "echo made"})
    created = subprocess.run([tmp_path / "kind", "create", "cluster"], capture_output=True, text=True, check=True)
    assert created.stdout == "made\n"
    assert subprocess.run([tmp_path / "kind", "other"], capture_output=True, check=False).returncode == 1


def test_the_hub_is_trusted_by_its_authority(tmp_path: Path) -> None:
    (tmp_path / "tiny").write_bytes(b"weights")
    hub.make_authority(tmp_path / "authority.json", tmp_path)
    authority = hub.read_authority(tmp_path / "authority.json")
    context = ssl.create_default_context(cadata=authority.certificate)
    with hub.serve("127.0.0.1", tmp_path / "tiny", authority, tmp_path / "hub", port=0) as server:
        url = server.url.replace("http://", "https://") + f"/owner/name/resolve/main/{hub.FILES[0]}"
        with httpx.Client(verify=context, trust_env=False) as client:
            answer = client.get(url, extensions={"sni_hostname": hub.NAME})
    assert answer.content == b"weights"
