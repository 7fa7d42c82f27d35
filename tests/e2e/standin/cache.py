"""Caches of whole kinds, filled by list and watch and shared by all controllers of the process."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import httpx

from app.desk.cluster.apply import meta
from app.kube.base import Json

from .api import Api, ApiError, Resource
from .objects import controller_ref, key_of, namespace_of

log = logging.getLogger(__name__)

_RETRY_FIRST, _RETRY_LAST = 0.8, 5.0


class Handler:
    """A controller's callbacks for changes of one kind; `on_add` is also called for existing objects."""

    def __init__(
        self,
        on_add: Callable[[Json], None],
        on_update: Callable[[Json, Json], None],
        on_delete: Callable[[Json], None],
    ) -> None:
        self.on_add = on_add
        self.on_update = on_update
        self.on_delete = on_delete


class Informer:
    """All objects of one kind in the cluster, indexed by controlling owner."""

    def __init__(self, api: Api, resource: Resource) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self.users = 0
        self._api = api
        self._objects: dict[str, Json] = {}
        self._owned: defaultdict[str, dict[str, Json]] = defaultdict(dict)
        self._handlers: list[Handler] = []
        self._task = asyncio.create_task(self._run(), name=f"informer {resource.name}")

    def get(self, key: str) -> Json | None:
        """Return the cached object, or None."""
        return self._objects.get(key)

    def list(self, namespace: str = "") -> list[Json]:
        """Return all cached objects, or those of one namespace."""
        return [obj for obj in self._objects.values() if not namespace or namespace_of(obj) == namespace]

    def owned_by(self, uid: str, namespace: str = "") -> Iterable[Json]:
        """Return objects whose controller reference has this UID; an empty UID selects objects without one."""
        owned = list(self._owned[uid].values()) if uid in self._owned else []
        return [obj for obj in owned if not namespace or namespace_of(obj) == namespace]

    def add_handler(self, handler: Handler) -> None:
        """Call `handler` for the existing objects and for every later change."""
        self._handlers.append(handler)
        for obj in list(self._objects.values()):
            _tell(handler.on_add, obj)

    def remove_handler(self, handler: Handler) -> None:
        """Stop calling `handler`."""
        if handler in self._handlers:
            self._handlers.remove(handler)

    def stop(self) -> None:
        """Stop list and watch."""
        self._task.cancel()

    async def _run(self) -> None:
        pause = _RETRY_FIRST
        while True:
            try:
                version = await self._list()
                self.synced.set()
                pause = _RETRY_FIRST
                while True:
                    version = await self._watch(version)
            except _Expired:
                continue
            except (ApiError, httpx.HTTPError, OSError, ValueError) as error:
                log.info("list and watch of %s: %r", self.resource.name, error)
            await asyncio.sleep(pause * random.uniform(1.0, 1.5))
            pause = min(pause * 2, _RETRY_LAST)

    async def _list(self) -> str:
        answer = await self._api.request("GET", self.resource.path())
        kind = str(answer["kind"]).removesuffix("List")
        fresh = {}
        for item in answer.get("items") or []:
            # List items of built-in kinds have no apiVersion and kind.
            obj = {"apiVersion": answer["apiVersion"], "kind": kind, **item}
            fresh[key_of(obj)] = obj
        for key in [key for key in self._objects if key not in fresh]:
            self._remove(self._objects[key])
        for obj in fresh.values():
            self._put(obj)
        return str(answer["metadata"]["resourceVersion"])

    async def _watch(self, version: str) -> str:
        async for event in self._api.watch(self.resource.path(), version):
            kind, obj = event["type"], event["object"]
            if kind == "ERROR":
                if obj.get("code") == 410:
                    raise _Expired
                raise ApiError(int(obj.get("code") or 500), str(obj.get("reason")), str(obj.get("message")))
            version = str(obj["metadata"]["resourceVersion"])
            if kind in ("ADDED", "MODIFIED"):
                self._put(obj)
            elif kind == "DELETED":
                self._remove(obj)
        return version

    def _put(self, obj: Json) -> None:
        key = key_of(obj)
        former = self._objects.get(key)
        if former is not None and meta(former)["resourceVersion"] == meta(obj)["resourceVersion"]:
            return
        if former is not None:
            self._owned[_owner(former)].pop(key, None)
        self._objects[key] = obj
        self._owned[_owner(obj)][key] = obj
        for handler in list(self._handlers):
            if former is None:
                _tell(handler.on_add, obj)
            else:
                _tell(handler.on_update, former, obj)

    def _remove(self, obj: Json) -> None:
        key = key_of(obj)
        former = self._objects.pop(key, None)
        if former is None:
            return
        owner = _owner(former)
        self._owned[owner].pop(key, None)
        if not self._owned[owner]:
            del self._owned[owner]
        for handler in list(self._handlers):
            _tell(handler.on_delete, obj)


class Informers:
    """One informer for each kind while it is in use."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._running: dict[tuple[str, str], Informer] = {}

    def use(self, resource: Resource) -> Informer:
        """Return the informer of this kind; give it back with `release`."""
        key = (resource.api_version, resource.name)
        informer = self._running.get(key)
        if informer is None:
            informer = self._running[key] = Informer(self._api, resource)
        informer.users += 1
        return informer

    def release(self, informer: Informer) -> None:
        """Release an informer; it stops after its last use."""
        informer.users -= 1
        if informer.users == 0:
            informer.stop()
            del self._running[informer.resource.api_version, informer.resource.name]


class _Expired(Exception):
    """The watch is too old: list again."""


def _owner(obj: Json) -> str:
    ref = controller_ref(obj)
    return str(ref["uid"]) if ref else ""


def _tell(callback: Callable[..., None], *args: Any) -> None:
    try:
        callback(*args)
    except Exception:
        log.exception("a handler failed")
