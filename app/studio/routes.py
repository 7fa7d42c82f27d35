"""The studio's FastAPI application: the API routes, the page, and the responses to errors."""

import ast
import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from app.desk.cluster import catalogue
from app.desk.cluster.live import Unreadable
from app.desk.files.findings import DOCS
from app.desk.schemas import json_schema
from app.errors import CommandError
from app.families import KINDS
from app.installation import version
from app.kube.schema.docstrings import documented
from app.settings import Settings, variable_name
from app.studio import models, scenes, simulation
from app.studio.check import assumptions, check
from app.studio.compare import compare
from app.studio.documents import Unknown
from app.studio.fit import fit
from app.studio.live import Live
from app.studio.origins import origins

STATIC = Path(__file__).with_name("static")
"""The directory of the page, which ``make studio`` builds."""
NOT_BUILT = "The page is not built: run `make studio`, then load this again. The API below api/ answers without it.\n"
_STATUSES: dict[type[Exception], int] = {
    CommandError: 422,
    Unknown: 404,
    Unreadable: 502,
}
"""Statuses of errors about user input, and about a cluster that does not answer; the message has the reason."""
_OF_THE_PROCESS = frozenset(
    {
        *("host", "port", "tls_cert_file", "tls_key_file", "log_format", "log_level"),
        *("lameduck_seconds", "graceful_shutdown_seconds", "max_sync_bytes", "openapi"),
    }
)
"""Settings that do not change what manifests become."""
Handler = Callable[[Request, Exception], Awaitable[Response]]


_INDEX = "index.html"
_NOT_IN_ANCHORS = re.compile(r"[^\w -]")


def has_page(static: Path = STATIC) -> bool:
    """Report whether the page was built; a wheel from a checkout without npm has none."""
    return (static / _INDEX).is_file()


def create_app(documents: Sequence[models.Document] = (), live: Live | None = None, static: Path = STATIC) -> FastAPI:
    """Return the application, to be wrapped in :class:`app.studio.guard.Guard`; ``live`` adds a cluster's routes."""

    def page() -> Response:
        return FileResponse(static / _INDEX) if has_page(static) else PlainTextResponse(NOT_BUILT, 503)

    app = FastAPI(
        title="modelhooks studio",
        version=version(),
        description="What manifests become, and why they are not ready.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.include_router(_offline(documents, live), prefix="/api")
    if live is not None:
        app.include_router(live.router(), prefix="/api/live")
    app.add_api_route("/", page, include_in_schema=False)
    app.mount("/", StaticFiles(directory=static, check_dir=False))
    for problem, status in _STATUSES.items():
        app.add_exception_handler(problem, _in_words(status))
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    return app


def _offline(documents: Sequence[models.Document], live: Live | None) -> APIRouter:
    router = APIRouter()
    context = live.context if live else ""
    session = models.Session(
        version=version(),
        live=live is not None,
        context=context,
        documents=[*documents],
        docs=DOCS,
        fields=field_pages(),
    )

    @router.get("/session")
    def _session() -> models.Session:
        return session

    @router.get("/schemas", response_model=dict[str, dict[str, Any]])
    def _schemas() -> Response:
        return Response(schemas(), media_type="application/json")

    router.add_api_route("/examples", examples, methods=["GET"])
    router.add_api_route("/settings", settings, methods=["GET"])
    router.add_api_route("/scenes", scenes.listed, methods=["GET"])
    turn = [Depends(Turn())]
    router.add_api_route("/check", check, methods=["POST"], dependencies=turn)
    router.add_api_route("/assumptions", assumptions, methods=["POST"], dependencies=turn)
    router.add_api_route("/graph", simulation.graph, methods=["POST"], dependencies=turn)
    router.add_api_route("/yaml", simulation.object_yaml, methods=["POST"], dependencies=turn)
    router.add_api_route("/origins", origins, methods=["POST"], dependencies=turn)
    router.add_api_route("/fit", fit, methods=["POST"], dependencies=turn)
    router.add_api_route("/simulate", simulation.simulate, methods=["POST"], dependencies=turn)
    router.add_api_route("/compare", compare, methods=["POST"], dependencies=turn)
    return router


class Turn:
    """Runs expensive requests one at a time, and skips those whose client has disconnected.

    Typing sends a request with each change. A thousand objects take seconds, and a started one cannot be stopped.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def __call__(self, request: Request) -> AsyncIterator[None]:
        """Wait for the turn, and hold it until the answer is complete."""
        await request.is_disconnected()  # after a large body, uvicorn notices a closed connection only when asked
        async with self._lock:
            if await request.is_disconnected():
                raise HTTPException(499, "The page has asked for something else since.")
            yield


@cache
def schemas() -> bytes:
    """The JSON schema of every kind in every version that is served, by ``apiVersion/kind``."""
    resources = [resource.resource for kind in KINDS for resource in (kind, *kind.older)]
    return orjson.dumps({f"{resource.api_version}/{resource.kind}": json_schema(resource) for resource in resources})


def field_pages() -> dict[str, str]:
    """Return the section of docs/fields about the stored version of each kind, with GitHub's anchor."""
    pages = {}
    for kind in KINDS:
        stored = kind.resource
        anchor = _NOT_IN_ANCHORS.sub("", f"{stored.kind} {stored.api_version}".lower()).replace(" ", "-")
        for version_ in (kind, *kind.older):
            served = version_.resource
            pages[f"{served.api_version}/{served.kind}"] = f"fields/{stored.family}.md#{anchor}"
    return pages


@cache
def examples() -> list[models.Example]:
    """The examples of the repository, by family and name."""
    return [models.Example(**example) for example in catalogue.examples()]


@cache
def settings() -> list[models.Setting]:
    """Return the settings that hooks depend on, with their documentation."""
    (body,) = [n.body for n in ast.parse(inspect.getsource(Settings)).body if isinstance(n, ast.ClassDef)]
    return [_setting(name, text) for name, text in documented(body) if name not in _OF_THE_PROCESS]


def _setting(name: str, text: str) -> models.Setting:
    default = Settings.model_fields[name].default
    shown = ", ".join(default) if isinstance(default, tuple) else "" if default is None else str(default)
    return models.Setting(name=variable_name(name), default=shown, description=inspect.cleandoc(text))


def _in_words(status: int) -> Handler:
    async def answer(_: Request, problem: Exception) -> Response:
        return PlainTextResponse(f"{problem}\n", status)

    return answer


async def _http(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    return PlainTextResponse(f"{problem.detail}\n", problem.status_code, problem.headers)


async def _invalid(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, RequestValidationError)
    lines = [f"{'.'.join(str(part) for part in error['loc'])}: {error['msg']}" for error in problem.errors()]
    return PlainTextResponse("".join(f"{line}\n" for line in lines), 422)
