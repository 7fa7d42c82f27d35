"""The ASGI application: routes of every kind, metrics and health."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_fastapi_instrumentator import Instrumentator
from starlette.exceptions import HTTPException
from starlette.routing import Route

from app.admission import protocol, review
from app.families import KINDS
from app.hooks.kind import Kind, answer_customize, answer_sync
from app.selftest import check
from app.server.body import BODIES_BYTES, Load
from app.server.endpoint import Endpoint
from app.server.logs import Log
from app.settings import Settings

if TYPE_CHECKING:
    from app.server.tls import Certificate

MAX_REVIEW_BYTES = 7 * 1024 * 1024
"""Two objects of the API server's 3 MiB and what surrounds them."""
HEARTBEAT_SECONDS = 1.0
STALLED_SECONDS = 5.0

RETRY_ADMISSION, RETRY_SYNC = 1, 2
"""``Retry-After`` under overload, seconds. The API server retries within its timeout, Metacontroller later."""


def utc_now() -> datetime:
    """The service's only look at the clock, in whole seconds as Kubernetes has them."""
    return datetime.now(UTC).replace(microsecond=0)


class Service(FastAPI):
    """The application. Hooks and admission are looked up by path before FastAPI routes anything else."""

    def __init__(
        self,
        settings: Settings | None = None,
        log: Log | None = None,
        certificate: Certificate | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        super().__init__(
            title="modelhooks",
            docs_url=None,
            redoc_url=None,
            openapi_url=None,
            redirect_slashes=False,
            lifespan=_lifespan,
        )
        self.settings = settings or Settings()
        self.log = log or Log()
        self.certificate = certificate
        self.load = Load(max(BODIES_BYTES, 4 * self.settings.max_sync_bytes))
        self.beat = time.monotonic()
        self.sound: asyncio.Task[bool] | None = None
        self._clock = clock
        self._endpoints: dict[str, Endpoint] = {}
        for kind in KINDS:
            self._add_kind(kind)
        self._add_operations()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Hot paths go straight to their endpoint; everything else through FastAPI and its middleware."""
        endpoint = self._endpoints.get(scope["path"]) if scope["type"] == "http" else None
        if endpoint is not None:
            await endpoint(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    def _add_kind(self, kind: Kind[Any, Any]) -> None:
        settings, clock = self.settings, self._clock
        hook, limit = kind.resource.hook_path, settings.max_sync_bytes
        self._add(f"{hook}/sync", lambda body: answer_sync(kind, body, settings, clock()), limit, RETRY_SYNC)
        if kind.customize is not None:
            self._add(f"{hook}/customize", lambda body: answer_customize(kind, body, settings), limit, RETRY_SYNC)
        self._add(
            kind.resource.admission_path,
            lambda body: review.answer(kind, body, settings),
            MAX_REVIEW_BYTES,
            RETRY_ADMISSION,
            protocol.denial,
        )

    def _add(
        self,
        path: str,
        handle: Callable[[bytes], bytes],
        max_bytes: int,
        retry_after: int,
        denial: Callable[[bytes], dict[str, str] | None] | None = None,
    ) -> None:
        endpoint = Endpoint(path, handle, max_bytes, retry_after, self.load, self.log, denial=denial)
        self._endpoints[path] = endpoint
        self.router.routes.append(Route(path, endpoint))

    def _add_operations(self) -> None:
        self.add_exception_handler(HTTPException, _refused)
        self.add_api_route("/healthz", self._healthz, include_in_schema=False)
        self.add_api_route("/readyz", self._readyz, include_in_schema=False)
        Instrumentator(excluded_handlers=["/healthz", "/readyz", "/metrics"]).instrument(self).expose(
            self, include_in_schema=False
        )

    async def test_itself(self) -> bool:
        """Whether every kind answers; beside the requests that come meanwhile."""
        for kind in KINDS:
            try:
                check(kind, self.settings, self._clock())
            except Exception as fault:  # noqa: BLE001 - whatever it is, others should serve instead
                self.log.fault(kind.resource.hook_path, "self-test", fault, {}, with_message=True)
                return False
            await asyncio.sleep(0)
        return True

    async def _healthz(self) -> Response:
        """Alive: the event loop turned within the last seconds, and the worker is not stuck in one request."""
        stalled = time.monotonic() - self.beat > STALLED_SECONDS or self.load.worker.stuck
        return JSONResponse({"status": "stalled" if stalled else "ok"}, 503 if stalled else 200)

    async def _readyz(self) -> Response:
        """Ready: not stopping, with a certificate that is valid for a while, and sound by its own test."""
        if self.load.draining:
            return JSONResponse({"status": "stopping"}, 503, {"connection": "close"})
        if self.certificate is not None and not self.certificate.usable:
            return JSONResponse({"status": "certificate expired"}, 503)
        if self.sound is None:  # nobody has to wait for it who does not want to know
            self.sound = asyncio.create_task(self.test_itself())
        if not await asyncio.shield(self.sound):
            return JSONResponse({"status": "self-test failed"}, 503)
        return JSONResponse({"status": "ok"})


async def _refused(_request: Request, problem: Exception) -> Response:
    """No such path, or not by this method; in the form of every other refusal."""
    assert isinstance(problem, HTTPException)
    return JSONResponse({"error": problem.detail.lower()}, problem.status_code, problem.headers)


@contextlib.asynccontextmanager
async def _lifespan(service: FastAPI) -> AsyncIterator[None]:
    assert isinstance(service, Service)
    tasks = [asyncio.create_task(_heartbeat(service))]
    if service.certificate is not None:
        tasks.append(asyncio.create_task(service.certificate.follow()))
    yield
    for task in tasks:
        task.cancel()


async def _heartbeat(service: Service) -> None:
    while True:
        service.beat = time.monotonic()
        await asyncio.sleep(HEARTBEAT_SECONDS)


def create_app(settings: Settings | None = None, clock: Callable[[], datetime] = utc_now) -> Service:
    """The application for tests and for other ASGI servers; ``modelhooks serve`` runs the same."""
    return Service(settings, clock=clock)
