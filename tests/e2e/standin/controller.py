"""A running CompositeController: its triggers, its workers, and the run for one parent (MC-2.1, MC-10.3)."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine
from copy import deepcopy
from typing import Any

import httpx

from app.desk.cluster.apply import canonical, meta
from app.kube.base import Json

from .api import Api, ApiError, Resource
from .cache import Handler, Informer, Informers
from .children import ChildWriter, Claimer, ObjectMap, SyncError, aggregate, check_labels
from .customize import NotSyncedYet, Related
from .discovery import Discovery, UnknownKind
from .events import Recorder
from .hooks import ConfigError, Connection, HookError, ProcessDies, SyncAnswer, TooManyRequests, Webhook, resolve
from .objects import (
    controller_ref,
    finalizers_of,
    generation_of,
    group_of,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    terminating,
    uid_of,
)
from .queue import WorkQueue
from .request import hook_request
from .selectors import Match, label_selector

log = logging.getLogger(__name__)

FLUSH_SECONDS = 30 * 60.0
"""Interval at which all parents are synced without any event (`--cache-flush-interval`)."""

COLLECTOR_FINALIZERS = ("foregroundDeletion", "orphan")
"""With one of these, the garbage collector handles the children, and Metacontroller does not (MC-5.4)."""


class Machinery:
    """Objects shared by all controllers of the process."""

    def __init__(self, api: Api, workers: int) -> None:
        self.api = api
        self.workers = workers
        self.discovery = Discovery(api)
        self.informers = Informers(api)
        self.recorder = Recorder(api)


class Controller:
    """A CompositeController, with its spec at the time of its start."""

    def __init__(self, machinery: Machinery, spec_object: Json, connections: dict[str, Connection]) -> None:
        self._api = machinery.api
        self._machinery = machinery
        self._discovery = machinery.discovery
        self._object = _as_sent_to_hooks(spec_object)
        self.name = name_of(spec_object)
        self.spec: Json = spec_object["spec"]
        parent = self.spec["parentResource"]
        self._parent_resource = self._discovery.resource(parent["apiVersion"], parent["resource"])
        self._methods = self._update_methods()
        self._child_resources = [
            self._discovery.resource(child["apiVersion"], child["resource"])
            for child in self.spec.get("childResources") or []
        ]
        hooks = self.spec.get("hooks") or {}
        self._hooks = {
            kind: Webhook(kind, hooks[kind], connections[kind])
            for kind in ("sync", "finalize", "customize")
            if hooks.get(kind)
        }
        self._finalizer = f"metacontroller.io/compositecontroller-{self.name}"
        self._selects_parent = label_selector(parent.get("labelSelector"))
        self._ignore_status = bool(parent.get("ignoreStatusChanges"))
        self._generate_selector = bool(self.spec.get("generateSelector"))
        self._queue = WorkQueue()
        self._tasks: list[asyncio.Task[None]] = []
        informers = machinery.informers
        self._parents = informers.use(self._parent_resource)
        self._children: list[Informer] = [informers.use(resource) for resource in self._child_resources]
        self._related = Related(
            self._object, self._hooks.get("customize"), self._discovery, informers, self._parents, self._enqueue
        )
        self._parent_handler = Handler(self._enqueue, self._parent_updated, self._enqueue)
        self._child_handler = Handler(self._child_added, lambda _old, new: self._child_added(new), self._child_deleted)

    @staticmethod
    async def create(machinery: Machinery, spec_object: Json) -> Controller:
        """Look up what is looked up only once, and return the controller.

        Raise `ConfigError` or `UnknownKind` if that fails.
        """
        spec = spec_object["spec"]
        if not spec.get("hooks"):
            raise ConfigError("no hooks defined")
        connections = {}
        for kind in ("sync", "finalize", "customize"):
            webhook = (spec["hooks"].get(kind) or {}).get("webhook")
            if webhook:
                try:
                    connections[kind] = await resolve(machinery.api, webhook, spec.get("endpointConfigs") or [])
                except ConfigError as error:
                    raise ConfigError(f"can't resolve endpoint config for {kind} hook: {error}") from error
        return Controller(machinery, spec_object, connections)

    def start(self) -> None:
        """Listen to the caches and start the workers."""
        self._event("Starting", f"Starting controller: {self.name}")
        self._spawn(self._related.start())
        self._parents.add_handler(self._parent_handler)
        for informer in self._children:
            informer.add_handler(self._child_handler)
        self._spawn(self._flush())
        for _ in range(self._machinery.workers):
            self._spawn(self._work())

    async def stop(self) -> None:
        """Stop the workers and release the caches."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._queue.stop()
        self._parents.remove_handler(self._parent_handler)
        for informer in self._children:
            informer.remove_handler(self._child_handler)
        self._related.stop()
        for informer in [*self._children, self._parents]:
            self._machinery.informers.release(informer)
        for hook in self._hooks.values():
            await hook.close()
        self._event("Stopping", f"Stopping controller: {self.name}")

    # Triggers

    def _enqueue(self, parent: Json) -> None:
        if self._concerns_us(parent):
            self._queue.add(key_of(parent))

    def _concerns_us(self, parent: Json) -> bool:
        return self._selects_parent(labels_of(parent)) or self._finalizer in finalizers_of(parent)

    def _parent_updated(self, old: Json, new: Json) -> None:
        same = (
            generation_of(old) == generation_of(new)
            and labels_of(old) == labels_of(new)
            and (meta(old).get("annotations") or {}) == (meta(new).get("annotations") or {})
        )
        if not (self._ignore_status and same and not terminating(new)):
            self._enqueue(new)

    def _child_added(self, child: Json) -> None:
        if terminating(child) or controller_ref(child) is not None:
            self._child_deleted(child)
            return
        namespace = namespace_of(child) if self._parent_resource.namespaced else ""
        if self._parent_resource.namespaced and not namespace:
            return
        for parent in self._parents.list(namespace):
            try:
                selector = self._selector(parent)
            except SyncError:
                continue
            if selector(labels_of(child)):
                self._enqueue(parent)

    def _child_deleted(self, child: Json) -> None:
        ref = controller_ref(child)
        resource = self._parent_resource
        if ref is None or (group_of(ref["apiVersion"]), ref["kind"]) != (resource.group, resource.kind):
            return
        parent = self._parents.get(f"{namespace_of(child)}/{ref['name']}" if resource.namespaced else ref["name"])
        if parent is not None and uid_of(parent) == ref["uid"]:
            self._enqueue(parent)

    async def _flush(self) -> None:
        period = self.spec.get("resyncPeriodSeconds")
        while True:
            await asyncio.sleep(FLUSH_SECONDS if period is None else min(max(float(period), 1.0), FLUSH_SECONDS))
            for parent in self._parents.list():
                self._enqueue(parent)

    # Workers

    def _spawn(self, work: asyncio.Task[None] | Coroutine[Any, Any, None]) -> None:
        task = work if isinstance(work, asyncio.Task) else asyncio.create_task(work)
        task.add_done_callback(report)
        self._tasks.append(task)

    async def _work(self) -> None:
        for informer in [self._parents, *self._children]:
            await informer.synced.wait()
        await self._queue.serve(self._process)

    async def _process(self, key: str) -> None:
        parent = self._parents.get(key)
        if parent is None:
            return
        try:
            await self._run(parent)
        except TooManyRequests as answer:
            self._queue.add_after(key, answer.after)
        except NotSyncedYet:
            self._queue.add_rate_limited(key)
        except (SyncError, UnknownKind, HookError, ApiError, httpx.HTTPError, ValueError) as error:
            log.info("run for %s failed: %s", key, error)
            self._machinery.recorder.event(parent, "Warning", "SyncError", f"Sync error: {error}")
            self._queue.add_rate_limited(key)
        else:
            self._queue.forget(key)

    # One run

    async def _run(self, parent: Json) -> None:
        """Do the steps of MC-10.3; an exception ends the run at the step that raised it."""
        if not self._concerns_us(parent):
            return
        parent = await self._sync_finalizer(parent)
        if not self._concerns_us(parent):
            return
        where = f"{self._parent_resource.kind} {namespace_of(parent)}/{name_of(parent)}"
        selector = self._selector(parent)
        observed = await self._claim(parent, selector)
        related = await self._related.objects(parent)
        try:
            answer = await self._call_hook(parent, observed, related)
        except HookError as error:
            raise SyncError(f"sync hook failed for {where}: {error}") from error
        desired = _desired(answer, namespace_of(parent))
        if answer.resync_after > 0:
            self._queue.add_after(key_of(parent), answer.resync_after)
        if answer.finalized:
            parent = await self._finalizer_removed(parent, where)
        check_labels(desired, uid_of(parent) if self._generate_selector else None, self._selector(parent))
        errors: list[str] = []
        if not terminating(parent) or self._may_finalize(parent):
            writer = ChildWriter(self._api, self._discovery, parent, self._method)
            errors = await writer.write(observed, desired)
        if not await self._write_status(parent, answer.status, where):
            return
        if errors:
            raise SyncError(f"can't reconcile children for {where}: {aggregate(errors)}")

    async def _sync_finalizer(self, parent: Json) -> Json:
        wanted = "finalize" in self._hooks
        if wanted == (self._finalizer in finalizers_of(parent)) or (wanted and terminating(parent)):
            return parent
        edit = self._with_finalizer if wanted else self._without_finalizer
        try:
            return await self._api.change(self._parent_resource, parent, edit)
        except ApiError as error:
            where = f"{parent['kind']} {namespace_of(parent)}/{name_of(parent)}"
            raise SyncError(f"can't sync finalizer for {where}: {error}") from error

    async def _finalizer_removed(self, parent: Json, where: str) -> Json:
        try:
            return await self._api.change(self._parent_resource, parent, self._without_finalizer)
        except ApiError as error:
            raise SyncError(f"can't remove finalizer for {where}: {error}") from error

    def _with_finalizer(self, parent: Json) -> Json | None:
        if self._finalizer in finalizers_of(parent):
            return None
        return {**parent, "metadata": {**meta(parent), "finalizers": [*finalizers_of(parent), self._finalizer]}}

    def _without_finalizer(self, parent: Json) -> Json | None:
        if self._finalizer not in finalizers_of(parent):
            return None
        other_finalizers = [name for name in finalizers_of(parent) if name != self._finalizer]
        return {**parent, "metadata": {**meta(parent), "finalizers": other_finalizers}}

    def _may_finalize(self, parent: Json) -> bool:
        names = finalizers_of(parent)
        return (
            "finalize" in self._hooks
            and self._finalizer in names
            and not any(name in names for name in COLLECTOR_FINALIZERS)
        )

    def _selector(self, parent: Json) -> Match:
        if self._generate_selector:
            return label_selector({"matchLabels": {"controller-uid": uid_of(parent)}})
        spec = (parent.get("spec") or {}).get("selector") or {}
        if not spec.get("matchLabels") and not spec.get("matchExpressions"):
            raise SyncError(".spec.selector must have either matchLabels, matchExpressions, or both")
        return label_selector(spec)

    async def _claim(self, parent: Json, selector: Match) -> ObjectMap:
        claimer = Claimer(self._api, parent, self._parent_resource, selector)
        namespace = namespace_of(parent) if self._parent_resource.namespaced else ""
        observed: ObjectMap = {}
        for wanted, informer in zip(self._child_resources, self._children, strict=True):
            resource = self._discovery.resource(wanted.api_version, wanted.name)
            candidates = [*informer.owned_by(uid_of(parent), namespace), *informer.owned_by("", namespace)]
            claimed = await claimer.claim(resource, candidates)
            group = observed.setdefault((resource.api_version, resource.kind), {})
            group.update({key_of(child): child for child in claimed})
        return observed

    async def _call_hook(self, parent: Json, observed: ObjectMap, related: ObjectMap) -> SyncAnswer:
        finalizing = "finalize" in self._hooks and (terminating(parent) or not self._selects_parent(labels_of(parent)))
        hook = self._hooks.get("finalize" if finalizing else "sync")
        if hook is None:
            where = f"{self._parent_resource.kind} {namespace_of(parent)}/{name_of(parent)}"
            raise SyncError(f"sync hook nil//not defined for {where}: %!w(<nil>)")
        try:
            body = await hook.call(parent, hook_request(self._object, parent, observed, related, finalizing))
            return hook.decode_sync(body)
        except HookError as error:
            raise HookError(f"{hook.kind} hook failed (version={hook.version}): {error}") from error

    def _method(self, resource: Resource) -> str:
        return self._methods.get((resource.group, resource.kind), "OnDelete")

    def _update_methods(self) -> dict[tuple[str, str], str]:
        methods = {}
        for child in self.spec.get("childResources") or []:
            method = (child.get("updateStrategy") or {}).get("method") or "OnDelete"
            if method == "OnDelete":
                continue
            if method.startswith("Rolling"):
                raise ConfigError(f"update strategy {method} is not part of the stand-in")
            resource = self._discovery.find(child["apiVersion"], child["resource"])
            if resource is None:
                raise ConfigError(f'can\'t find child resource "{child["resource"]}" in {child["apiVersion"]}')
            methods[resource.group, resource.kind] = method
        return methods

    async def _write_status(self, parent: Json, status: Json, where: str) -> bool:
        """Replace the status.

        Return False, which ends the run without an error, if the parent is gone or conflicts persist.
        """
        wanted = {**status, "observedGeneration": generation_of(parent)}

        def edit(live: Json) -> Json | None:
            if canonical(live.get("status")) == canonical(wanted):
                return None
            return {**live, "status": wanted}

        subresource = "status" if "status" in self._parent_resource.subresources else ""
        try:
            await self._api.change(self._parent_resource, parent, edit, subresource)
        except ApiError as error:
            if error.not_found or error.conflict:
                return False
            raise SyncError(f"can't update status for {where}: {error}") from error
        return True

    def _event(self, reason: str, message: str) -> None:
        self._machinery.recorder.event(self._object, "Normal", reason, message)


def _desired(answer: SyncAnswer, namespace: str) -> ObjectMap:
    """Return the children of a response by kind and key; the last of several with the same name wins (step 7)."""
    desired: ObjectMap = {}
    for answered in answer.children:
        if answered is None:
            raise ProcessDies("null in children")
        child = answered
        if not namespace_of(child) and namespace:
            child = {**child, "metadata": {**meta(child), "namespace": namespace}}
        desired.setdefault((str(child.get("apiVersion") or ""), child["kind"]), {})[key_of(child)] = child
    return desired


def _as_sent_to_hooks(spec_object: Json) -> Json:
    """Return the controller as hooks receive it.

    Decoding adds `statusChecks` to every `updateStrategy` (MC-1.1).
    """
    seen: Json = deepcopy(spec_object)
    for child in seen["spec"].get("childResources") or []:
        if child.get("updateStrategy") is not None:
            child["updateStrategy"].setdefault("statusChecks", {})
    return seen


def report(task: asyncio.Task[None]) -> None:
    """End the process if a worker fails, so that no test waits for it."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a worker ended", exc_info=error)
        os._exit(2)
