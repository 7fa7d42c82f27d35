"""Starts, restarts and stops a controller for each CompositeController object (MC-2.6, MC-7.7)."""

from __future__ import annotations

import asyncio
import logging

import httpx

from app.cli.apply import Obj, canonical

from .api import Api, ApiError
from .cache import Handler
from .controller import Controller, Machinery
from .discovery import UnknownKind
from .hooks import ConfigError, StartupPanic
from .objects import group_of, key_of, labels_of, version_of
from .queue import WorkQueue
from .selectors import Match

log = logging.getLogger(__name__)


class Manager:
    """The loop over CompositeControllers, one at a time."""

    def __init__(self, api: Api, workers: int, discovery_interval: float, selects: Match) -> None:
        self._api = api
        self._interval = discovery_interval
        self._selects = selects
        self._machinery = Machinery(api, workers)
        self._running: dict[str, tuple[Controller, Obj]] = {}
        self._queue = WorkQueue()

    async def run(self) -> None:
        """Work until cancelled."""
        machinery = self._machinery
        await self._first_discovery()
        resource = machinery.discovery.resource("metacontroller.k8s.io/v1alpha1", "compositecontrollers")
        informer = machinery.informers.use(resource)
        informer.add_handler(Handler(self._changed, lambda _old, new: self._changed(new), self._changed))
        async with asyncio.TaskGroup() as group:
            group.create_task(machinery.discovery.run(self._interval))
            group.create_task(machinery.recorder.run())
            while True:
                name = await self._queue.get()
                try:
                    await self._reconcile(name, informer.get(name))
                except (ConfigError, UnknownKind, StartupPanic, ApiError, httpx.HTTPError) as error:
                    log.info("controller %s: %s", name, error)
                    self._queue.add_rate_limited(name)
                else:
                    self._queue.forget(name)
                finally:
                    self._queue.done(name)

    async def _first_discovery(self) -> None:
        """Wait until the API server has the CompositeController kind."""
        while True:
            try:
                await self._machinery.discovery.refresh()
                if self._machinery.discovery.find("metacontroller.k8s.io/v1alpha1", "compositecontrollers"):
                    return
            except (ApiError, httpx.HTTPError) as error:
                log.info("discovery failed: %s", error)
            await asyncio.sleep(0.5)

    def _changed(self, obj: Obj) -> None:
        if self._selects(labels_of(obj)):
            self._queue.add(key_of(obj))

    async def _reconcile(self, name: str, obj: Obj | None) -> None:
        if obj is None:
            await self._stop(name)
            return
        if not await self._parent_has_status(obj):
            self._event(obj, "Warning", "SyncError", f"[{name}] Sync error - ignoring, CRD has no status subresource")
            return
        if name in self._running and canonical(self._running[name][1]["spec"]) == canonical(obj["spec"]):
            return
        await self._stop(name)
        try:
            controller = await Controller.create(self._machinery, obj)
        except (ConfigError, UnknownKind) as error:
            self._event(obj, "Warning", "CreateError", f"Cannot create new controller: {error}")
            raise
        controller.start()
        self._running[name] = (controller, obj)
        self._event(obj, "Normal", "Started", f"Started controller: {name}")

    async def _stop(self, name: str) -> None:
        if name in self._running:
            controller, obj = self._running.pop(name)
            await controller.stop()
            self._event(obj, "Normal", "Stopped", f"Stopped controller: {name}")

    async def _parent_has_status(self, obj: Obj) -> bool:
        """Whether the parent's CRD has a status subresource; a missing CRD is an error without an Event (MC-2.6)."""
        parent = obj["spec"]["parentResource"]
        crd = f"{parent['resource']}.{group_of(parent['apiVersion'])}"
        found = await self._api.request("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd}")
        return any(
            version["name"] == version_of(parent["apiVersion"]) and "status" in (version.get("subresources") or {})
            for version in found["spec"]["versions"]
        )

    def _event(self, obj: Obj, kind: str, reason: str, message: str) -> None:
        self._machinery.recorder.event(obj, kind, reason, message)
