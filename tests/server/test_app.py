"""The application as ASGI servers call it."""

from __future__ import annotations

import asyncio
import threading
from datetime import datetime
from typing import Any

import httpx
import orjson
import pytest
from prometheus_client import REGISTRY

from app.families import DECORATORS, KINDS, RESOURCES
from app.hooks.kind import Kind
from app.installation import CONVERSION_PATH, hook_query, version
from app.main import OTHER_RELEASE_SECONDS, Application, self_test
from app.settings import Settings


@pytest.mark.parametrize(
    ("query", "again"),
    [("", None), (f"?{hook_query(version())}", None), (f"?{hook_query('0.0.9')}", OTHER_RELEASE_SECONDS)],
    ids=["none", "own", "other"],
)
def test_a_query_from_manifests_of_another_release_is_answered_with_a_resync(query: str, again: float | None) -> None:
    """Metacontroller asks about every resource when it gets new manifests, while earlier pods still answer."""
    kind = next(kind for kind in KINDS if kind.resource.kind == "BackendRuntime")
    parent = {
        "apiVersion": kind.resource.api_version,
        "kind": kind.resource.kind,
        "metadata": {"name": "x", "uid": "u", "generation": 1},
        "spec": {"command": ["serve"], "image": "registry.example/server", "version": "v1"},
    }
    request = {"controller": {}, "parent": parent, "children": {}, "related": {}, "finalizing": False}

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=Application(Settings()))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.post(f"{kind.resource.hook_path}/sync{query}", json=request)

    answer = asyncio.run(ask())
    assert answer.status_code == 200
    assert answer.json().get("resyncAfterSeconds") == again


def get(path: str, settings: Settings | None = None) -> httpx.Response:
    """Return a new application's answer."""

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=Application(settings or Settings()))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get(path)

    return asyncio.run(ask())


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_health_endpoints_answer_200(path: str) -> None:
    """A query string has no effect."""
    assert get(path).status_code == get(f"{path}?verbose").status_code == 200


@pytest.mark.parametrize(("broken", "status"), [("", 200), ("llmaz/services", 503)])
def test_a_process_that_cannot_answer_is_not_ready(broken: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One failing kind is enough; requests during the check wait for its result."""

    def check(kind: Kind[Any, Any], settings: Settings, now: datetime) -> None:
        if kind.resource.hook_path == f"/{broken}":
            raise ImportError("no such library")
        self_test(kind, settings, now)

    monkeypatch.setattr("app.main.self_test", check)

    async def ask() -> httpx.Response:
        service = Application(Settings())
        transport = httpx.ASGITransport(app=service)
        async with service.router.lifespan_context(service), httpx.AsyncClient(transport=transport) as client:
            return await client.get("http://test/readyz")

    answer = asyncio.run(ask())
    assert (answer.status_code, answer.json()["status"]) == (status, "self-test failed" if broken else "ok")


HOOKS = {CONVERSION_PATH, *(f"{decorator.hook_path}/sync" for decorator in DECORATORS)} | {
    path
    for kind in KINDS
    for path in (
        f"{kind.resource.hook_path}/sync",
        *(version.resource.admission_path for version in (kind, *kind.older)),
        *([f"{kind.resource.hook_path}/customize"] if kind.hooks.customize is not None else []),
        *([f"{kind.resource.hook_path}/finalize"] if kind.hooks.finalize is not None else []),
    )
}


def test_every_hook_is_a_route_that_is_counted() -> None:
    """FastAPI knows the route, and the instrumentator counts it for any answer."""

    async def ask() -> None:
        transport = httpx.ASGITransport(app=Application(Settings()))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            for path in HOOKS:
                assert (await client.post(path, json={})).status_code == 400
                assert (await client.request("PURGE", path)).status_code == 405

    before = [counted(path) for path in HOOKS]
    asyncio.run(ask())
    assert [counted(path) for path in HOOKS] == [(posts + 1, others + 1) for posts, others in before]


def counted(path: str) -> tuple[float, float]:
    """Return how many requests of a path were malformed, and how many had another method."""
    labels = ({"method": "POST", "status": "400"}, {"method": "other", "status": "405"})
    samples = [REGISTRY.get_sample_value("http_requests_total", {"handler": path, **more}) or 0.0 for more in labels]
    return samples[0], samples[1]


def test_conversion_never_runs_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cost per byte is the highest of all requests."""
    monkeypatch.setattr("app.conversion.answer", lambda *_: orjson.dumps(threading.current_thread().name))

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=Application(Settings()))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.post(CONVERSION_PATH, json={})

    assert asyncio.run(ask()).json() == "worker-1"


@pytest.mark.parametrize("wanted", [False, True])
def test_openapi_is_served_only_where_the_setting_enables_it(wanted: bool) -> None:
    """It is served only if the setting enables it."""
    for path in ("/openapi.json", "/docs"):
        assert get(path, Settings(openapi=wanted)).status_code == (200 if wanted else 404)


def test_the_document_describes_every_hook() -> None:
    document = Application(Settings(openapi=True)).openapi()
    schemas = document["components"]["schemas"]
    assert set(document["paths"]) == HOOKS
    assert len(HOOKS) == 8 + 6 + (8 + 2) + 1 + 1 + 1
    assert references(document) <= {f"#/components/schemas/{name}" for name in schemas}
    for operations in document["paths"].values():
        assert set(operations["post"]["responses"]) == {"200", "4XX", "5XX"}
    for kind in KINDS:
        request = document["paths"][f"{kind.resource.hook_path}/sync"]["post"]["requestBody"]
        sync = resolve(schemas, request["content"]["application/json"]["schema"])
        spec = resolve(schemas, resolve(schemas, sync["parent"])["spec"])
        assert list(spec) == [field.alias for field in kind.resource.spec.model_fields.values()]


def resolve(schemas: Any, reference: Any) -> Any:
    """Return the properties of the referenced schema."""
    return schemas[reference["$ref"].rpartition("/")[2]]["properties"]


def references(value: Any) -> set[str]:
    """Return every ``$ref`` in a document."""
    if isinstance(value, list):
        return set().union(*map(references, value))
    if not isinstance(value, dict):
        return set()
    reference = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
    return reference.union(*map(references, value.values()))


def test_an_endpoint_takes_posts_only() -> None:
    """Other methods get 405."""
    assert get(f"{RESOURCES[0].hook_path}/sync").status_code == 405
    assert get("/nothing").status_code == 404
