"""Events as client-go's recorder writes them: counted, and limited for each object."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime
from typing import Any

import httpx

from app.kube.base import Json

from .api import Api, ApiError
from .objects import name_of, namespace_of, uid_of

log = logging.getLogger(__name__)

BURST, REFILL = 25.0, 1 / 300
"""An object may have 25 events at once, then one every five minutes (MC-7.1)."""

SIMILAR = 10
"""The number of different messages of one reason after which they are combined into one event (MC-7.3)."""


class Recorder:
    """Writes events in the background, in order; a failed write is dropped."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._queue: asyncio.Queue[tuple[Json, str, str, str]] = asyncio.Queue()
        self._buckets: dict[str, tuple[float, float]] = {}
        self._written: dict[tuple[str, ...], tuple[str, int]] = {}
        self._messages: dict[tuple[str, ...], set[str]] = {}

    def event(self, obj: Json, kind: str, reason: str, message: str) -> None:
        """Record an event of type `kind` on `obj`."""
        self._queue.put_nowait((obj, kind, reason, message))

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            obj, kind, reason, message = await self._queue.get()
            if not self._allowed(obj):
                continue
            try:
                await self._write(obj, kind, reason, message)
            except (ApiError, httpx.HTTPError) as error:
                log.info("event %s on %s dropped: %s", reason, name_of(obj), error)

    def _allowed(self, obj: Json) -> bool:
        tokens, then = self._buckets.get(uid_of(obj), (BURST, time.monotonic()))
        now = time.monotonic()
        tokens = min(BURST, tokens + (now - then) * REFILL)
        self._buckets[uid_of(obj)] = (tokens - 1 if tokens >= 1 else tokens, now)
        return tokens >= 1

    async def _write(self, obj: Json, kind: str, reason: str, message: str) -> None:
        group = (uid_of(obj), kind, reason)
        messages = self._messages.setdefault(group, set())
        messages.add(message)
        shown, key = message, (*group, message)
        if len(messages) >= SIMILAR:
            shown, key = f"(combined from similar events): {message}", (*group, "")
        namespace = namespace_of(obj) or "default"
        path = f"/api/v1/namespaces/{namespace}/events"
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        written = self._written.get(key)
        if written is not None:
            name, count = written[0], written[1] + 1
            patch = {"count": count, "lastTimestamp": now, "message": shown}
            try:
                await self._api.request("PATCH", f"{path}/{name}", patch, content_type="application/merge-patch+json")
            except ApiError as error:
                if not error.not_found:
                    raise
            else:
                self._written[key] = (name, count)
                return
        name = f"{name_of(obj)}.{time.time_ns():x}"
        event = _event(obj, kind, reason, shown) | {"firstTimestamp": now, "lastTimestamp": now}
        await self._api.request("POST", path, event | {"metadata": {"name": name, "namespace": namespace}})
        self._written[key] = (name, 1)


def _event(obj: Json, kind: str, reason: str, message: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {
            "apiVersion": obj["apiVersion"],
            "kind": obj["kind"],
            "name": name_of(obj),
            "namespace": namespace_of(obj) or None,
            "uid": uid_of(obj),
            "resourceVersion": obj["metadata"].get("resourceVersion"),
        },
        "type": kind,
        "reason": reason,
        "message": message[:1024],
        "count": 1,
        "source": {"component": "metacontroller"},
        "reportingComponent": "metacontroller",
    }
