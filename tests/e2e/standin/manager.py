"""Starts, restarts and stops a controller for each CompositeController and DecoratorController (MC-2.6, MC-7.7)."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

import httpx

from app.desk.cluster.apply import canonical
from app.kube.base import Json

from .api import Api, ApiError
from .cache import Handler
from .controller import Controller, Machinery
from .decorator import Decorator
from .discovery import UnknownKind
from .hooks import ConfigError, StartupPanic
from .objects import group_of, key_of, labels_of, name_of, version_of
from .queue import WorkQueue
from .selectors import Match

log = logging.getLogger(__name__)

_API = "metacontroller.k8s.io/v1alpha1"
_KINDS: dict[str, type[Controller | Decorator]] = {
    "compositecontrollers": Controller,
    "decoratorcontrollers": Decorator,
}


class Manager:
    """The loop over the controller objects, one at a time. A key is the kind's plural, a space and the name."""

    def __init__(self, api: Api, workers: int, discovery_interval: float, selects: Match) -> None:
        self._api = api
        self._interval = discovery_interval
        self._selects = selects
        self._machinery = Machinery(api, workers)
        self._running: dict[str, tuple[Controller | Decorator, Json]] = {}
        self._queue = WorkQueue()

    async def run(self) -> None:
        """Run until cancelled."""
        machinery = self._machinery
        await self._first_discovery()
        informers = {plural: machinery.informers.use(machinery.discovery.resource(_API, plural)) for plural in _KINDS}
        for plural, informer in informers.items():
            changed = partial(self._changed, plural)
            informer.add_handler(Handler(changed, partial(self._updated, plural), changed))
        async with asyncio.TaskGroup() as group:
            group.create_task(machinery.discovery.run(self._interval))
            group.create_task(machinery.recorder.run())
            while True:
                key = await self._queue.get()
                plural, _, name = key.partition(" ")
                try:
                    await self._reconcile(key, informers[plural].get(name))
                except (ConfigError, UnknownKind, StartupPanic, ApiError, httpx.HTTPError) as error:
                    log.info("controller %s: %s", name, error)
                    self._queue.add_rate_limited(key)
                else:
                    self._queue.forget(key)
                finally:
                    self._queue.done(key)

    async def _first_discovery(self) -> None:
        """Wait until the API server has Metacontroller's kinds."""
        while True:
            try:
                await self._machinery.discovery.refresh()
                if all(self._machinery.discovery.find(_API, plural) for plural in _KINDS):
                    return
            except (ApiError, httpx.HTTPError) as error:
                log.info("discovery failed: %s", error)
            await asyncio.sleep(0.5)

    def _changed(self, plural: str, obj: Json) -> None:
        if self._selects(labels_of(obj)):
            self._queue.add(f"{plural} {key_of(obj)}")

    def _updated(self, plural: str, _old: Json, new: Json) -> None:
        self._changed(plural, new)

    async def _reconcile(self, key: str, obj: Json | None) -> None:
        if obj is None:
            await self._stop(key)
            return
        kind, name = _KINDS[key.partition(" ")[0]], name_of(obj)
        if kind is Controller and not await self._parent_has_status(obj):
            self._event(obj, "Warning", "SyncError", f"[{name}] Sync error - ignoring, CRD has no status subresource")
            return
        if key in self._running and canonical(self._running[key][1]["spec"]) == canonical(obj["spec"]):
            return
        await self._stop(key)
        try:
            controller = await kind.create(self._machinery, obj)
        except (ConfigError, UnknownKind) as error:
            self._event(obj, "Warning", "CreateError", f"Cannot create new controller: {error}")
            raise
        controller.start()
        self._running[key] = (controller, obj)
        self._event(obj, "Normal", "Started", f"Started controller: {name}")

    async def _stop(self, key: str) -> None:
        if key in self._running:
            controller, obj = self._running.pop(key)
            await controller.stop()
            self._event(obj, "Normal", "Stopped", f"Stopped controller: {controller.name}")

    async def _parent_has_status(self, obj: Json) -> bool:
        """Report whether the parent's CRD has a status subresource.

        A missing CRD is an error without an Event (MC-2.6).
        """
        parent = obj["spec"]["parentResource"]
        crd = f"{parent['resource']}.{group_of(parent['apiVersion'])}"
        definition = await self._api.request("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd}")
        return any(
            version["name"] == version_of(parent["apiVersion"]) and "status" in (version.get("subresources") or {})
            for version in definition["spec"]["versions"]
        )

    def _event(self, obj: Json, kind: str, reason: str, message: str) -> None:
        self._machinery.recorder.event(obj, kind, reason, message)
