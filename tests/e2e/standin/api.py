"""A client for the API server: one kubeconfig, plain JSON, errors with the server's messages."""

from __future__ import annotations

import asyncio
import base64
import random
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson
import yaml

from app.desk.cluster.apply import encode
from app.kube.base import Json

from .objects import group_of, name_of, namespace_of, uid_of

CONFLICT_PAUSES = (0.01, 0.05, 0.25)
"""Pauses before the second, third and fourth attempt of a read-modify-write (MC-10.3, step 2)."""

BUSY_RETRIES = 10
"""Number of retries while the API server responds that it is too busy, as in client-go."""


class ApiError(Exception):
    """An unsuccessful response of the API server; the message is the server's."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason

    @property
    def not_found(self) -> bool:
        """404: the object or the kind does not exist."""
        return self.code == 404

    @property
    def conflict(self) -> bool:
        """409 because of an outdated resourceVersion or UID, not because a name is taken."""
        return self.code == 409 and self.reason != "AlreadyExists"

    @property
    def already_exists(self) -> bool:
        """409 because the name is taken."""
        return self.code == 409 and self.reason == "AlreadyExists"


@dataclass(frozen=True)
class Resource:
    """A kind as discovery describes it."""

    api_version: str
    name: str
    kind: str
    namespaced: bool
    subresources: frozenset[str] = frozenset()

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return group_of(self.api_version)

    @property
    def base(self) -> str:
        """The path of the group version."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of a collection, an object or its subresource; cluster-scoped kinds ignore the namespace."""
        parts = [self.base]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        parts += [part for part in (self.name, name, subresource) if part]
        return "/".join(parts)


class Api:
    """Requests to one API server."""

    def __init__(self, kubeconfig: Path) -> None:
        server, context, headers = _connection(kubeconfig)
        self._client = httpx.AsyncClient(
            base_url=server,
            verify=context,
            headers={"User-Agent": "metacontroller-standin", **headers},
            timeout=httpx.Timeout(30.0, pool=None),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=50, keepalive_expiry=60),
            trust_env=False,
        )

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        params: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Any:
        """Return the decoded response; raise `ApiError` on failure."""
        headers = {"Accept": accept}
        content = None
        if body is not None:
            headers["Content-Type"] = content_type
            content = encode(body)
        response = await self._client.request(method, path, content=content, params=params, headers=headers)
        for _ in range(BUSY_RETRIES):
            if response.status_code != 429 or "Retry-After" not in response.headers:
                break
            await asyncio.sleep(float(response.headers["Retry-After"]))
            response = await self._client.request(method, path, content=content, params=params, headers=headers)
        if response.status_code >= 400:
            raise _error(response.status_code, response.content)
        return orjson.loads(response.content) if response.content else None

    async def get(self, resource: Resource, namespace: str, name: str) -> Json:
        """Return the live object."""
        return dict(await self.request("GET", resource.path(namespace, name)))

    async def create(self, resource: Resource, obj: Json) -> Json:
        """POST in the object's namespace."""
        return dict(await self.request("POST", resource.path(namespace_of(obj)), obj))

    async def update(self, resource: Resource, obj: Json, subresource: str = "") -> Json:
        """PUT the whole object with its resourceVersion."""
        path = resource.path(namespace_of(obj), name_of(obj), subresource)
        return dict(await self.request("PUT", path, obj))

    async def delete(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        """DELETE in the background, only if the object still has this UID (MC-10.3, step 11)."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
        await self.request("DELETE", resource.path(namespace, name), options)

    async def change(
        self, resource: Resource, obj: Json, edit: Callable[[Json], Json | None], subresource: str = ""
    ) -> Json:
        """Read the live object, edit and write it.

        Conflicts are retried; an object of another UID counts as not found. `edit` returns the new form, or None if
        nothing is to be written.
        """
        for pause in (*CONFLICT_PAUSES, None):
            live = await self.get(resource, namespace_of(obj), name_of(obj))
            if uid_of(live) != uid_of(obj):
                qualified = f"{resource.name}.{resource.group}" if resource.group else resource.name
                raise ApiError(404, "NotFound", f'{qualified} "{name_of(obj)}" not found')
            wanted = edit(live)
            if wanted is None:
                return live
            try:
                return await self.update(resource, wanted, subresource)
            except ApiError as error:
                if pause is None or not error.conflict:
                    raise
            await asyncio.sleep(pause * random.uniform(1.0, 1.1))
        raise AssertionError("the last attempt returns or raises")

    async def watch(self, path: str, version: str) -> AsyncIterator[Json]:
        """Yield events after `version` until the server ends the stream."""
        params = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(random.randint(300, 600)),
        }
        timeout = httpx.Timeout(30.0, read=None, pool=None)
        async with self._client.stream("GET", path, params=params, timeout=timeout) as response:
            if response.status_code >= 400:
                raise _error(response.status_code, await response.aread())
            rest = b""
            async for chunk in response.aiter_raw():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line:
                        yield orjson.loads(line)


def _error(code: int, content: bytes) -> ApiError:
    try:
        status = orjson.loads(content)
        return ApiError(code, str(status.get("reason") or ""), str(status["message"]))
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
        messages = {404: "the server could not find the requested resource"}
        return ApiError(code, "", messages.get(code, content.decode(errors="replace").strip()))


def _connection(kubeconfig: Path) -> tuple[str, ssl.SSLContext, dict[str, str]]:
    config = yaml.safe_load(kubeconfig.read_text())
    wanted = config.get("current-context") or config["contexts"][0]["name"]
    context = next(entry["context"] for entry in config["contexts"] if entry["name"] == wanted)
    cluster = next(entry["cluster"] for entry in config["clusters"] if entry["name"] == context["cluster"])
    user = next(entry["user"] for entry in config["users"] if entry["name"] == context["user"])
    tls = ssl.create_default_context()
    if cluster.get("insecure-skip-tls-verify"):
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    elif "certificate-authority-data" in cluster:
        tls.load_verify_locations(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    elif "certificate-authority" in cluster:
        tls.load_verify_locations(cafile=str(kubeconfig.parent / cluster["certificate-authority"]))
    if "client-certificate-data" in user:
        with tempfile.TemporaryDirectory() as folder:
            pair = Path(folder) / "pair.pem"
            pair.touch(mode=0o600)
            pair.write_bytes(
                base64.b64decode(user["client-certificate-data"]) + b"\n" + base64.b64decode(user["client-key-data"])
            )
            tls.load_cert_chain(pair)
    elif "client-certificate" in user:
        tls.load_cert_chain(user["client-certificate"], user["client-key"])
    headers = {}
    if token := user.get("token"):
        headers["Authorization"] = f"Bearer {token}"
    elif token_file := user.get("tokenFile"):
        headers["Authorization"] = f"Bearer {Path(token_file).read_text().strip()}"
    return str(cluster["server"]), tls, headers
