"""A running DecoratorController, as far as ours need it: labels and annotations, no attachments (MC-9)."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

import httpx

from app.desk.cluster.apply import meta
from app.kube.base import Json

from .api import ApiError
from .cache import Handler, Informer
from .controller import Machinery, report
from .hooks import ConfigError, HookError, TooManyRequests, Webhook, resolve
from .objects import key_of, name_of
from .queue import WorkQueue
from .request import decorator_request

log = logging.getLogger(__name__)


class Decorator:
    """A DecoratorController, with its spec at the time of its start."""

    def __init__(self, machinery: Machinery, spec_object: Json, hook: Webhook) -> None:
        self.name = name_of(spec_object)
        self._machinery = machinery
        self._object = spec_object
        self._hook = hook
        self._queue = WorkQueue()
        self._tasks: list[asyncio.Task[None]] = []
        self._informers: dict[str, tuple[Informer, Handler]] = {}
        for rule in spec_object["spec"]["resources"]:
            resource = machinery.discovery.resource(rule["apiVersion"], rule["resource"])
            enqueue = partial(self._enqueue, resource.name)
            handler = Handler(enqueue, partial(self._updated, resource.name), enqueue)
            self._informers[resource.name] = machinery.informers.use(resource), handler

    @staticmethod
    async def create(machinery: Machinery, spec_object: Json) -> Decorator:
        """Look up what is looked up only once, and return the decorator.

        Raise `ConfigError` or `UnknownKind` if that fails.
        """
        spec = spec_object["spec"]
        hooks = spec.get("hooks") or {}
        if list(hooks) != ["sync"] or spec.get("attachments") or any(len(rule) > 2 for rule in spec["resources"]):
            raise ConfigError("the stand-in knows decorators of whole kinds with a sync hook, without attachments")
        connection = await resolve(machinery.api, hooks["sync"]["webhook"], spec.get("endpointConfigs") or [])
        return Decorator(machinery, spec_object, Webhook("sync", hooks["sync"], connection))

    def start(self) -> None:
        """Listen to the caches and start the workers."""
        for informer, handler in self._informers.values():
            informer.add_handler(handler)
        for _ in range(self._machinery.workers):
            task = asyncio.create_task(self._work())
            task.add_done_callback(report)
            self._tasks.append(task)

    async def stop(self) -> None:
        """Stop the workers and release the caches."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._queue.stop()
        for informer, handler in self._informers.values():
            informer.remove_handler(handler)
            self._machinery.informers.release(informer)
        await self._hook.close()

    def _enqueue(self, plural: str, obj: Json) -> None:
        self._queue.add(f"{plural} {key_of(obj)}")

    def _updated(self, plural: str, _old: Json, new: Json) -> None:
        self._enqueue(plural, new)

    async def _work(self) -> None:
        for informer, _ in self._informers.values():
            await informer.synced.wait()
        await self._queue.serve(self._process)

    async def _process(self, key: str) -> None:
        plural, _, name = key.partition(" ")
        informer, _ = self._informers[plural]
        obj = informer.get(name)
        if obj is None:
            return
        try:
            body = await self._hook.call(obj, decorator_request(self._object, obj))
            wanted = _decorated(obj, *self._hook.decode_decorator(body))
            if wanted is not None:
                await self._machinery.api.update(informer.resource, wanted)
        except TooManyRequests as answer:
            self._queue.add_after(key, answer.after)
        except (HookError, ApiError, httpx.HTTPError) as error:
            if isinstance(error, ApiError) and (error.not_found or error.conflict):
                self._queue.forget(key)  # the event of the other write triggers a new run
                return
            log.info("decorating %s failed: %s", key, error)
            self._machinery.recorder.event(obj, "Warning", "SyncError", f"Sync error: {error}")
            self._queue.add_rate_limited(key)
        else:
            self._queue.forget(key)


def _decorated(obj: Json, labels: dict[str, str | None], annotations: dict[str, str | None]) -> Json | None:
    """Return the object with these labels and annotations, or `None` if unchanged; null removes one."""
    metadata = dict(meta(obj))
    for field, wanted in (("labels", labels), ("annotations", annotations)):
        merged = {**(metadata.get(field) or {}), **wanted}
        metadata[field] = {key: value for key, value in merged.items() if value is not None}
    same = all(metadata[field] == (meta(obj).get(field) or {}) for field in ("labels", "annotations"))
    return None if same else {**obj, "metadata": metadata}
