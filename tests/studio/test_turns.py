"""Slow answers, for a page that sends a request for each change of a document."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest

from app.studio import models, routes, simulation
from app.studio.routes import create_app

NOTHING = models.Graph(nodes=[], edges=[])
BODY = orjson.dumps({"documents": []})


class Busy:
    """A slow graph that counts its concurrent callers."""

    def __init__(self) -> None:
        self.asked = self.at_once = 0
        self.most = 0
        self._lock = threading.Lock()

    def graph(self, _: models.GraphRequest) -> models.Graph:
        with self._lock:
            self.asked += 1
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        time.sleep(0.05)
        with self._lock:
            self.at_once -= 1
        return NOTHING


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Busy:
    busy = Busy()

    def graph(asked: models.GraphRequest) -> models.Graph:
        return busy.graph(asked)

    def check(_: models.Manifests) -> list[models.PlacedFinding]:
        busy.graph(models.GraphRequest(documents=[]))
        return []

    monkeypatch.setattr(simulation, "graph", graph)
    monkeypatch.setattr(routes, "check", check)
    return busy


def test_requests_take_turns(busy: Busy) -> None:
    async def ask() -> list[int]:
        transport = httpx.ASGITransport(app=create_app())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            paths = ("/api/graph", "/api/check") * 2
            answers = await asyncio.gather(*(client.post(path, content=BODY, headers=JSON) for path in paths))
        return [answer.status_code for answer in answers]

    assert asyncio.run(ask()) == [200] * 4
    assert (busy.asked, busy.most) == (4, 1)


JSON = {"content-type": "application/json"}


def test_nothing_is_made_for_a_page_that_has_gone(busy: Busy) -> None:
    """As an ASGI server reports it: the whole body, then the disconnect."""

    async def told() -> AsyncIterator[dict[str, Any]]:
        yield {"type": "http.request", "body": BODY, "more_body": False}
        while True:
            yield {"type": "http.disconnect"}

    sent: list[Any] = []

    async def ask() -> None:
        messages = told()
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/api/graph",
            "raw_path": b"/api/graph",
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
            "http_version": "1.1",
            "scheme": "http",
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 1),
            "root_path": "",
        }

        async def send(message: Any) -> None:
            sent.append(message)

        await create_app()(scope, lambda: anext(messages), send)

    asyncio.run(ask())
    assert busy.asked == 0
    assert sent[0]["status"] == 499
