"""``modelhooks studio``, and that the service does not depend on it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from app.cli import main
from app.desk.files.yaml import dump_all
from app.main import Application
from app.settings import Settings
from app.studio.routes import NOT_BUILT, has_page
from tests.bench.desk import thousand
from tests.cli.files import Command

ROOT = Path(__file__).parents[2]
STUDIO = [sys.executable, "-m", "app.cli", "studio", "--no-browser"]


def test_it_prints_an_address_that_answers_and_ends_with_an_interrupt(tmp_path: Path) -> None:
    """Also while a graph is computed: without a traceback, and without waiting for it."""
    (tmp_path / "chat.yaml").write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n")
    process = subprocess.Popen(
        [*STUDIO, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        printed = process.stdout.readline()
        match = re.search(r"http://\S+", printed)
        assert match, printed
        address = urlsplit(match[0])
        assert address.hostname == "127.0.0.1"
        computing = http.client.HTTPConnection(address.netloc, timeout=30)
        large = json.dumps({"documents": [{"name": "large.yaml", "text": dump_all(thousand())}]})
        computing.request("POST", f"{address.path}api/graph", large, {"Content-Type": "application/json"})
        connection = http.client.HTTPConnection(address.netloc, timeout=30)
        connection.request("GET", f"{address.path}api/session")
        response = connection.getresponse()
        assert response.status == 200
        assert response.getheader("server") is None
        (document,) = json.loads(response.read())["documents"]
        assert document["name"].endswith("chat.yaml")
        connection.close()
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    computing.close()
    warning = "" if has_page() else f"modelhooks studio: {NOT_BUILT}"
    assert (process.returncode, errors) == (130, warning)


def test_two_studios_have_two_tokens() -> None:
    from app.studio.guard import new_token

    assert new_token() != new_token()
    assert len(new_token()) >= 32


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no-such-file.yaml"], "no such file"),
        (["--live", "--context", "nowhere"], "modelhooks studio: "),
    ],
)
def test_reports_unreadable_files(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], words: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    status, _, said = command("studio", "--no-browser", *arguments)
    assert status == 2
    assert words in said


def test_reports_a_port_in_use(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        status, _, said = command("studio", "--no-browser", "--port", str(taken.getsockname()[1]))
    assert status == 2
    assert "cannot listen on 127.0.0.1" in said


def test_the_service_does_not_know_the_studio() -> None:
    paths = {getattr(route, "path", "") for route in Application(Settings(openapi=True)).routes}
    assert not [path for path in paths if path.startswith("/api") or "studio" in path]
    code = "import app.main, app.run, app.cli.serve, sys; print([m for m in sys.modules if 'studio' in m])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout.strip() == "[]"


_WITHOUT_THIS_TREE = """
import sys
sys.meta_path = [one for one in sys.meta_path if "editable" not in str(one).lower()]  # it would find this tree's
from app.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_the_image_goes_without_it_and_its_command_line_does_not_offer_it(tmp_path: Path) -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored.index("app/studio") > ignored.index("!app")
    app = tmp_path / "app"
    app.mkdir()
    for entry in (ROOT / "app").iterdir():
        if entry.name not in ("studio", "__pycache__"):
            (app / entry.name).symlink_to(entry)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    run = [sys.executable, "-c", _WITHOUT_THIS_TREE]
    shown = subprocess.run([*run, "--help"], capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    assert "validate" in shown.stdout
    assert "studio" not in shown.stdout
    asked = subprocess.run([*run, "studio"], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert asked.returncode == 2
    assert "No such command" in asked.stderr


def test_the_help_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "studio" in capsys.readouterr().out


def test_the_pages_about_fields_and_reasons_exist(client: TestClient) -> None:
    """Every kind that is served has its section, and every family its page of reasons."""
    docs = Path(__file__).parents[2] / "docs"
    session = client.get("api/session").json()
    assert session["docs"].endswith("/docs/")
    for kind, page in session["fields"].items():
        file, _, anchor = page.partition("#")
        headings = [line[3:] for line in (docs / file).read_text().splitlines() if line.startswith("## ")]
        assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}, kind
        assert (docs / "troubleshooting" / Path(file).name).is_file()
    assert session["fields"].keys() == client.get("api/schemas").json().keys()
