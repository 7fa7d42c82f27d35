"""The application: a FastAPI route for every hook and every admission webhook, metrics and health."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_fastapi_instrumentator import Instrumentator

from app import conversion, installation
from app.admission import protocol, review
from app.families import CONVERT, DECORATORS, KINDS
from app.hooks.answer import answer_customize, answer_finalize, answer_sync, answer_sync_with_facts
from app.hooks.kind import AnyKind
from app.hooks.labels import answer_decorate
from app.hooks.protocol import SyncAnswer
from app.kube.base import Json
from app.limits import BODY_BUDGET_BYTES, MAX_REVIEW_BYTES, STALLED_SECONDS
from app.server import openapi, problems, worker
from app.server.body import Load
from app.server.endpoint import Answer, Handle, HookEndpoint, HookRoute
from app.server.logs import Log, logged
from app.server.metrics import HTTP, reviewed, synced
from app.settings import Settings

if TYPE_CHECKING:
    from app.server.tls import Certificate

HEARTBEAT_SECONDS = 1.0

RETRY_ADMISSION, RETRY_SYNC = 1, 2
"""``Retry-After`` under overload, seconds. The API server retries within its timeout, Metacontroller later."""
OTHER_RELEASE_SECONDS = 300.0
"""Seconds until another sync if the manifests are of another release: its pods are starting (MC-7.7)."""


def utc_now() -> datetime:
    """Return the time in whole seconds, as Kubernetes has it; nothing else in the service reads the clock."""
    return datetime.now(UTC).replace(microsecond=0)


class Application(FastAPI):
    def __init__(
        self,
        settings: Settings | None = None,
        log: Log | None = None,
        certificate: Certificate | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.settings = settings or Settings()
        self.log = log or Log()
        self.certificate = certificate
        self.load = Load(max(BODY_BUDGET_BYTES, 4 * self.settings.max_sync_bytes))
        self.beat = time.monotonic()
        self.sound: asyncio.Task[bool] | None = None
        self._clock = clock
        self._query = installation.hook_query(installation.version()).encode()
        super().__init__(
            title="modelhooks",
            description=openapi.DESCRIPTION,
            docs_url="/docs" if self.settings.openapi else None,
            redoc_url=None,
            openapi_url="/openapi.json" if self.settings.openapi else None,
            redirect_slashes=False,
            lifespan=_lifespan,
            exception_handlers=problems.handlers(self.load, self.log),
        )
        self.router.route_class = HookRoute
        for kind in KINDS:  # first: routes are tried in their order, twice a request, and most requests are syncs
            self._add_sync(kind)
        for kind in KINDS:
            self._add_other_hooks(kind)
            for version in (kind, *kind.older):
                self._add_admission(version)
        for decorator in DECORATORS:
            decorate = partial(answer_decorate, decorator)
            self._add_hook(f"{decorator.hook_path}/sync", decorate, partial(openapi.decorate, decorator))
        convert = partial(conversion.answer, CONVERT)
        limit, lane = self.settings.max_sync_bytes, worker.Lane.CONVERSION
        endpoint = HookEndpoint(convert, limit, RETRY_ADMISSION, self.load, lane=lane)
        self._add(installation.CONVERSION_PATH, endpoint, openapi.convert)
        self._add_operations()

    def _add_sync(self, kind: AnyKind) -> None:
        def sync(body: bytes, again: float | None = None) -> SyncAnswer:
            return answer_sync_with_facts(kind, body, self.settings, self._clock(), again)

        resource, limit = kind.resource, self.settings.max_sync_bytes
        again = partial(sync, again=OTHER_RELEASE_SECONDS)
        report = synced(resource)
        endpoint = HookEndpoint(sync, limit, RETRY_SYNC, self.load, report, query=self._query, handle_other=again)
        self._add(f"{resource.hook_path}/sync", endpoint, partial(openapi.sync, resource))

    def _add_other_hooks(self, kind: AnyKind) -> None:
        def finalize(body: bytes) -> bytes:
            return answer_finalize(kind, body, self._clock())

        resource = kind.resource
        if kind.hooks.customize is not None:
            customize = partial(answer_customize, kind, settings=self.settings)
            self._add_hook(f"{resource.hook_path}/customize", customize, partial(openapi.customize, resource))
        if kind.hooks.finalize is not None:
            self._add_hook(f"{resource.hook_path}/finalize", finalize, partial(openapi.sync, resource, "Finalize"))

    def _add_admission(self, kind: AnyKind) -> None:
        resource, admit = kind.resource, partial(review.answer_with_facts, kind, settings=self.settings)
        report, lane = reviewed(resource.kind), worker.Lane.REVIEW
        endpoint = HookEndpoint(admit, MAX_REVIEW_BYTES, RETRY_ADMISSION, self.load, report, lane)
        self._add(resource.admission_path, endpoint, partial(openapi.admit, resource))

    def _add_hook(self, path: str, handle: Handle[bytes], describe: Callable[[], Json]) -> None:
        self._add(path, HookEndpoint(handle, self.settings.max_sync_bytes, RETRY_SYNC, self.load), describe)

    def _add(self, path: str, endpoint: HookEndpoint[Any], describe: Callable[[], Json]) -> None:
        """Add a route, with its description if the OpenAPI document is served."""
        description = describe() if self.settings.openapi else {}
        self.add_api_route(path, endpoint.answer, methods=["POST"], **description)

    def _add_operations(self) -> None:
        self.add_api_route("/healthz", self._healthz, include_in_schema=False)
        self.add_api_route("/readyz", self._readyz, include_in_schema=False)
        self.add_api_route("/metrics", self._metrics, include_in_schema=False)
        instrumentator = Instrumentator(
            should_group_status_codes=False, excluded_handlers=["^/healthz$", "^/readyz$", "^/metrics$"]
        )
        instrumentator.add(*HTTP, logged(self.log)).instrument(self)

    async def test_itself(self) -> bool:
        """Return True if every kind answers. Other requests are served in between."""
        for kind in KINDS:
            try:
                self_test(kind, self.settings, self._clock())
            except Exception as fault:  # noqa: BLE001 - whatever it is, others should serve instead
                self.log.fault(kind.resource.hook_path, "self-test", fault, {}, with_message=True)
                return False
            await asyncio.sleep(0)
        return True

    async def _healthz(self, _request: Request) -> Response:
        """Answer whether the event loop turned within the last seconds, and the worker is not stuck in one request."""
        stalled = time.monotonic() - self.beat > STALLED_SECONDS or self.load.worker.stuck
        return JSONResponse({"status": "stalled" if stalled else "ok"}, 503 if stalled else 200)

    async def _readyz(self, _request: Request) -> Response:
        """Answer whether the process serves on, its certificate is valid for a while, and its self-test passed."""
        if self.load.draining:
            return JSONResponse({"status": "stopping"}, 503, {"connection": "close"})
        if self.certificate is not None and (problem := self.certificate.problem):
            return JSONResponse({"status": problem}, 503)
        if self.sound is None:  # started by the first /readyz, so startup does not wait for it
            self.sound = asyncio.create_task(self.test_itself())
        if not await asyncio.shield(self.sound):
            return JSONResponse({"status": "self-test failed"}, 503)
        return JSONResponse({"status": "ok"})

    async def _metrics(self, request: Request) -> Response:
        """Answer in the worker's turn: a scrape costs as much as a request."""
        text = await self.load.worker.answer(lambda _: generate_latest(), b"", worker.caller_of(request.scope))
        return Answer(self.load, text, media_type=CONTENT_TYPE_LATEST.encode())


def self_test(kind: AnyKind, settings: Settings, now: datetime) -> None:
    """Review, customize and sync an object of the kind with an empty spec. Raises if an answer is not valid.

    An image that lacks a dependency, or has wheels of another Python, may start and fail at the first request. This
    finds that while other replicas serve, and builds what is built lazily.
    """
    resource, uid = kind.resource, "self-test"
    metadata = {"name": uid, "uid": uid, "generation": 1} | ({"namespace": uid} if resource.namespaced else {})
    parent = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": {}}
    answer = orjson.loads(review.answer(kind, protocol.creation(resource, parent), settings))
    if answer["response"]["uid"] != uid:
        raise ValueError("a review was not answered by its uid")
    request = {"parent": parent, "children": {}, "related": {}, "finalizing": False}
    if kind.hooks.customize is not None:
        answer_customize(kind, orjson.dumps(request), settings)
    if orjson.loads(answer_sync(kind, orjson.dumps(request), settings, now))["children"] is None:
        raise ValueError("a sync has no children")


@contextlib.asynccontextmanager
async def _lifespan(service: FastAPI) -> AsyncIterator[None]:
    assert isinstance(service, Application)
    tasks = [asyncio.create_task(_heartbeat(service))]
    if service.certificate is not None:
        tasks.append(asyncio.create_task(service.certificate.follow()))
    yield
    for task in tasks:
        task.cancel()


async def _heartbeat(service: Application) -> None:
    while True:
        service.beat = time.monotonic()
        await asyncio.sleep(HEARTBEAT_SECONDS)
