"""Related objects: the customize hook, its cache, and the objects that its rules select (spec 6)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from app.kube.base import Json

from .cache import Handler, Informer, Informers
from .children import ObjectMap, SyncError
from .discovery import Discovery, UnknownKind
from .hooks import HookError, ProcessDies, TooManyRequests, Webhook
from .objects import generation_of, key_of, labels_of, name_of, namespace_of, uid_of
from .request import customize_request
from .selectors import label_selector

log = logging.getLogger(__name__)

KEEP_SECONDS = 20 * 60.0


class NotSyncedYet(Exception):
    """The first request for a related kind: try again soon, without an Event."""


class Related:
    """The related objects of the parents of one controller."""

    def __init__(
        self,
        controller: Json,
        hook: Webhook | None,
        discovery: Discovery,
        informers: Informers,
        parents: Informer,
        enqueue: Callable[[Json], None],
    ) -> None:
        self._controller = controller
        self._hook = hook
        self._discovery = discovery
        self._informers = informers
        self._parents = parents
        self._enqueue = enqueue
        self._rules: dict[tuple[str, int], tuple[float, list[Json | None]]] = {}
        self._used: dict[tuple[str, str], tuple[Informer, Handler]] = {}
        self._namespaces = informers.use(discovery.resource("v1", "namespaces"))
        self._changes: asyncio.Queue[tuple[Json, ...]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[None]:
        """Start the task that enqueues parents when related objects change."""
        self._task = asyncio.create_task(self._wake(), name="related")
        return self._task

    def stop(self) -> None:
        """Release all caches."""
        if self._task is not None:
            self._task.cancel()
        for informer, handler in self._used.values():
            informer.remove_handler(handler)
            self._informers.release(informer)
        self._informers.release(self._namespaces)

    async def objects(self, parent: Json) -> ObjectMap:
        """Return all objects that the rules for this parent select."""
        related: ObjectMap = {}
        for rule in await self._rules_for(parent):
            if rule is None:
                raise ProcessDies("null in relatedResources")
            resource = self._discovery.resource(rule.get("apiVersion") or "", rule.get("resource") or "")
            informer = self._informer(resource.api_version, resource.name)
            if not informer.synced.is_set():
                raise NotSyncedYet
            check_rule(rule)
            namespace = rule.get("namespace") or namespace_of(parent)
            if resource.namespaced and self._in_own_namespace(parent) and namespace != namespace_of(parent):
                raise SyncError(
                    f"requested related object namespace {namespace} differs from parent object namespace "
                    f"{namespace_of(parent)}"
                )
            if rule.get("namespaceSelector") is not None and not resource.namespaced:
                raise SyncError("namespaceSelector is only supported for namespaced related resources")
            group = related.setdefault((resource.api_version, resource.kind), {})
            for obj in informer.list(rule.get("namespace") or "" if resource.namespaced else ""):
                if self._selects(rule, parent, obj, resource.namespaced):
                    group[key_of(obj)] = obj
        return related

    async def _rules_for(self, parent: Json) -> list[Json | None]:
        if self._hook is None:
            return []
        key = (uid_of(parent), generation_of(parent))
        cached = self._rules.get(key)
        if cached is not None and cached[0] > time.monotonic():
            return cached[1]
        rules = self._hook.decode_customize(await self._hook.call(parent, customize_request(self._controller, parent)))
        # Cached before validation: an invalid rule is not requested again (MC-1.3).
        self._rules = {kept: entry for kept, entry in self._rules.items() if entry[0] > time.monotonic()}
        self._rules[key] = (time.monotonic() + KEEP_SECONDS, rules)
        return rules

    def _informer(self, api_version: str, name: str) -> Informer:
        used = self._used.get((api_version, name))
        if used is None:
            informer = self._informers.use(self._discovery.resource(api_version, name))
            handler = Handler(self._changed, self._updated, self._changed)
            used = self._used[api_version, name] = (informer, handler)
            informer.add_handler(handler)
        return used[0]

    def _changed(self, obj: Json) -> None:
        self._changes.put_nowait((obj,))

    def _updated(self, old: Json, new: Json) -> None:
        self._changes.put_nowait((old, new))

    async def _wake(self) -> None:
        """Enqueue the parents whose rules match the old or the new form, for one change after the other."""
        while True:
            forms = await self._changes.get()
            for parent in self._parents.list():
                try:
                    rules = await self._rules_for(parent)
                except (HookError, TooManyRequests) as error:
                    log.info("customize for %s while a related object changed: %s", key_of(parent), error)
                    continue
                if any(self._matches(rule, parent, form) for rule in rules for form in forms):
                    self._enqueue(parent)

    def _matches(self, rule: Json | None, parent: Json, obj: Json) -> bool:
        if rule is None:
            raise ProcessDies("null in relatedResources")
        try:
            resource = self._discovery.resource(rule.get("apiVersion") or "", rule.get("resource") or "")
            check_rule(rule)
        except (UnknownKind, SyncError):
            return False
        if (obj["apiVersion"], obj["kind"]) != (resource.api_version, resource.kind):
            return False
        return self._selects(rule, parent, obj, resource.namespaced)

    def _in_own_namespace(self, parent: Json) -> bool:
        """Report whether the hook's version is v1: related objects are in the parent's namespace or cluster-scoped."""
        return self._hook is not None and self._hook.version == "v1" and bool(namespace_of(parent))

    def _selects(self, rule: Json, parent: Json, obj: Json, namespaced: bool) -> bool:
        namespace = rule.get("namespace")
        if namespaced and self._in_own_namespace(parent) and namespace_of(obj) != namespace_of(parent):
            return False
        if namespaced and namespace and namespace_of(obj) != namespace:
            return False
        if rule.get("names"):
            return name_of(obj) in rule["names"]
        if not label_selector(rule.get("labelSelector"))(labels_of(obj)):
            return False
        chosen = rule.get("namespaceSelector")
        if chosen is None:
            return True
        home = self._namespaces.get(namespace_of(obj))
        return home is not None and label_selector(chosen)(labels_of(home))


def check_rule(rule: Json) -> None:
    """Reject combinations without a meaning (spec 6)."""
    selectors = [name for name in ("labelSelector", "namespaceSelector") if rule.get(name) is not None]
    if rule.get("names") and selectors:
        raise SyncError(
            f"related rule cannot have both names and labelSelector/namespaceSelector specified: {_shown(rule)}"
        )
    if rule.get("namespace") and rule.get("namespaceSelector") is not None:
        raise SyncError(f"related rule cannot have both namespace and namespaceSelector specified: {_shown(rule)}")


def _shown(rule: Json) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in rule.items())
