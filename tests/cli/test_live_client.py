"""The cluster client, without a cluster."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from app.desk.cluster import live
from tests.cli.files import Command
from tests.cli.test_validate import NEW_FIELDS


class ApiServer(BaseHTTPRequestHandler):
    """Answers with the class' body, whatever is asked."""

    body = b""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/version" else 404)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def api_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[ApiServer]]:
    """An API server that only knows its version, which KUBECONFIG names."""

    class Fresh(ApiServer):
        pass

    with HTTPServer(("127.0.0.1", 0), Fresh) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        config = {
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
            "users": [{"name": "test", "user": {"token": "t"}}],
        }
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        monkeypatch.setenv("KUBECONFIG", str(path))
        yield Fresh
        server.shutdown()


@pytest.mark.parametrize(("release", "is_dropped"), [("v1.32.9-eks-1234567", True), ("v1.34.2", False)])
def test_validate_reads_the_release_of_the_cluster(
    command: Command, api_server: type[ApiServer], release: str, *, is_dropped: bool
) -> None:
    api_server.body = json.dumps({"major": "1", "gitVersion": release}).encode()
    result = command("validate", command.file("chat.yaml", NEW_FIELDS), "--kubernetes", "live", "--output", "json")
    assert ("hostUsers" in {f["path"].rpartition(".")[2] for f in result.findings}) is is_dropped


@pytest.mark.parametrize("body", [b"{}", b"no JSON", b"[]", b'{"gitVersion": "unknown"}', b'{"gitVersion": 5}'])
def test_a_cluster_that_does_not_say_its_release_is_an_error(
    command: Command, api_server: type[ApiServer], body: bytes
) -> None:
    api_server.body = body
    result = command("validate", command.file("chat.yaml", NEW_FIELDS), "--kubernetes", "live")
    assert (result.status, "the release of the API server cannot be read" in result.err) == (2, True)


def test_a_cluster_that_does_not_answer_is_an_error(
    command: Command, api_server: type[ApiServer], tmp_path: Path
) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(config.read_text().replace("127.0.0.1:", "127.0.0.1:1#"))
    result = command("validate", command.file("chat.yaml", NEW_FIELDS), "--kubernetes", "live")
    assert (result.status, "the release of the API server cannot be read" in result.err) == (2, True)


@pytest.mark.parametrize("api_version", ["v1", "apps/v1", "example.com/v1"])
def test_a_kind_is_read_again(api_version: str) -> None:
    """lightkube refuses to create a second class for a kind."""
    first, again = (live._class(api_version, "Thing") for _ in range(2))
    assert again is first
