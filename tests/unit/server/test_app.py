"""The application as other ASGI servers get it."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import httpx
import pytest

from app import selftest
from app.families import RESOURCES
from app.hooks.kind import Kind
from app.main import create_app
from app.settings import Settings


def get(path: str) -> httpx.Response:
    """What a fresh application answers."""

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=create_app(Settings()))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get(path)

    return asyncio.run(ask())


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_it_says_how_it_is(path: str) -> None:
    """Also with a query string, as everywhere."""
    assert get(path).status_code == get(f"{path}?verbose").status_code == 200


@pytest.mark.parametrize(("broken", "status"), [("", 200), ("llmaz/services", 503)])
def test_a_process_that_cannot_answer_is_not_ready(broken: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One kind is enough; whoever asks meanwhile waits for the result."""

    def check(kind: Kind[Any, Any], settings: Settings, now: datetime) -> None:
        if kind.resource.hook_path == f"/{broken}":
            raise ImportError("no such library")
        selftest.check(kind, settings, now)

    monkeypatch.setattr("app.main.check", check)

    async def ask() -> httpx.Response:
        service = create_app(Settings())
        transport = httpx.ASGITransport(app=service)
        async with service.router.lifespan_context(service), httpx.AsyncClient(transport=transport) as client:
            return await client.get("http://test/readyz")

    answer = asyncio.run(ask())
    assert (answer.status_code, answer.json()["status"]) == (status, "self-test failed" if broken else "ok")


def test_every_endpoint_is_a_route_too() -> None:
    """Hooks and admission are looked up before routing; whoever lists the routes finds them all the same."""
    paths = {getattr(route, "path", "") for route in create_app(Settings()).routes}
    for resource in RESOURCES:
        assert {f"{resource.hook_path}/sync", resource.admission_path} <= paths


def test_an_endpoint_takes_posts_only() -> None:
    """Whoever asks otherwise is told so."""
    assert get(f"{RESOURCES[0].hook_path}/sync").status_code == 405
    assert get("/nothing").status_code == 404
