"""The studio's application behind its guard, and requests to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.kube.base import Json
from app.studio.guard import Guard
from app.studio.routes import create_app, examples
from tests.cli.files import Command

AUTHORITY = "127.0.0.1:8431"
EXAMPLES = {example.name: example.text for example in examples()}
Ask = Callable[..., Any]


def client_of(app: Any) -> TestClient:
    """Return a client that opened the printed address."""
    return TestClient(Guard(app, "token", AUTHORITY), base_url=f"http://{AUTHORITY}/token/")


def documents(*texts: str) -> list[Json]:
    return [{"name": f"{number}.yaml", "text": text} for number, text in enumerate(texts)]


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """A client of the application with an empty page, because the real one needs npm."""
    static = tmp_path_factory.mktemp("static")
    (static / "index.html").touch()
    return client_of(create_app(static=static))


@pytest.fixture(scope="session")
def ask(client: TestClient) -> Ask:
    """POST to a path below api/ and return the answer, which must have status 200."""

    def post(path: str, *texts: str, **fields: Any) -> Any:
        response = client.post(f"api/{path}", json={"documents": documents(*texts), **fields})
        assert response.status_code == 200, response.text
        return response.json()

    return post


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, capsys)
