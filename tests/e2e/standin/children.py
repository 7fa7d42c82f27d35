"""Children of a parent: claim the existing ones, then delete, create and update (MC-10.3, steps 4, 10 and 11)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from app.desk.cluster.apply import canonical, meta, updated, with_record
from app.kube.base import Json

from .api import Api, ApiError, Resource
from .discovery import Discovery, UnknownKind
from .objects import controller_ref, gvk_order, key_of, labels_of, name_of, namespace_of, terminating, uid_of
from .selectors import Match

Kind = tuple[str, str]
"""apiVersion and kind."""

ObjectMap = dict[Kind, dict[str, Json]]
"""Objects by kind and by `namespace/name`."""


class SyncError(Exception):
    """A failed run; the message goes into the parent's Event."""


def aggregate(errors: Iterable[str]) -> str:
    """Join messages without duplicates: a single one as it is, several in brackets."""
    texts = list(dict.fromkeys(errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def owner_reference(parent: Json) -> Json:
    """Return the owner reference of a parent's children (MC-3.5)."""
    return {
        "apiVersion": parent["apiVersion"],
        "kind": parent["kind"],
        "name": name_of(parent),
        "uid": uid_of(parent),
        "controller": True,
        "blockOwnerDeletion": True,
    }


class Claimer:
    """Decides for one parent in one run which of the cached objects are its children; adopts and releases."""

    def __init__(self, api: Api, parent: Json, parent_resource: Resource, selector: Match) -> None:
        self._api = api
        self._parent = parent
        self._parent_resource = parent_resource
        self._selector = selector
        self._may_adopt: str | None = None

    async def claim(self, resource: Resource, candidates: Iterable[Json]) -> list[Json]:
        """Return the observed children among the candidates; an adopted one as it was before the adoption."""
        claimed, errors = [], []
        for child in candidates:
            try:
                if await self._claim(resource, child):
                    claimed.append(child)
            except (ApiError, SyncError) as error:
                errors.append(str(error))
        if errors:
            raise SyncError(f"can't claim {resource.kind} children: {aggregate(errors)}")
        return claimed

    async def _claim(self, resource: Resource, child: Json) -> bool:
        ref = controller_ref(child)
        matches = self._selector(labels_of(child))
        if ref is not None:
            if ref["uid"] != uid_of(self._parent):
                return False
            if not matches and not terminating(self._parent):
                await self._unless_gone(self._api.change(resource, child, self._released))
            return matches
        if not matches or terminating(self._parent) or terminating(child):
            return False
        return await self._adopt(resource, child)

    async def _adopt(self, resource: Resource, child: Json) -> bool:
        try:
            await self._check_parent()
            await self._api.change(resource, child, self._adopted)
        except ApiError as error:
            if error.not_found:
                return False
            raise
        except SyncError as error:
            raise SyncError(f"can't adopt {resource.kind} {key_of(child)} ({uid_of(child)}): {error}") from error
        return True

    async def _check_parent(self) -> None:
        """Check, once in a run, that the live parent is the same object and not being deleted."""
        if self._may_adopt is None:
            live = await self._api.get(self._parent_resource, namespace_of(self._parent), name_of(self._parent))
            self._may_adopt = ""
            if uid_of(live) != uid_of(self._parent):
                self._may_adopt = f"original {live['kind']} {key_of(live)} is gone: got uid {uid_of(live)}"
            elif terminating(live):
                self._may_adopt = f"{key_of(live)} has just been deleted at {meta(live)['deletionTimestamp']}"
        if self._may_adopt:
            raise SyncError(f"can't recheck DeletionTimestamp: {self._may_adopt}")

    def _adopted(self, child: Json) -> Json:
        other_owners = [
            ref for ref in meta(child).get("ownerReferences") or [] if ref.get("uid") != uid_of(self._parent)
        ]
        return {**child, "metadata": {**meta(child), "ownerReferences": [*other_owners, owner_reference(self._parent)]}}

    def _released(self, child: Json) -> Json:
        other_owners = [
            ref for ref in meta(child).get("ownerReferences") or [] if ref.get("uid") != uid_of(self._parent)
        ]
        return {**child, "metadata": {**meta(child), "ownerReferences": other_owners}}

    @staticmethod
    async def _unless_gone(change: Awaitable[Json]) -> None:
        try:
            await change
        except ApiError as error:
            if not error.not_found:
                raise


def check_labels(children: ObjectMap, generated_uid: str | None, selector: Match) -> None:
    """Check every desired child's labels: strings only, matching the selector; fill in `controller-uid` (step 10)."""
    for group in children.values():
        for key, child in group.items():
            where = f"{child['kind']} {namespace_of(child)}/{name_of(child)}"
            labels = _string_map(child, where)
            if generated_uid is not None and "controller-uid" not in labels:
                labels = {**labels, "controller-uid": generated_uid}
                group[key] = {**child, "metadata": {**meta(child), "labels": labels}}
            if not selector(labels):
                raise SyncError(f"labels on desired child {where} don't match parent selector")


def _string_map(child: Json, where: str) -> dict[str, str]:
    metadata = meta(child)
    if "labels" not in metadata:
        return {}
    labels = metadata["labels"]
    if not isinstance(labels, dict):
        raise SyncError(
            f"invalid labels on desired child {where}: .metadata.labels accessor error: "
            f"{_go_value(labels)} is of the type {_go_type(labels)}, expected map[string]interface{{}}"
        )
    for key, value in labels.items():
        if not isinstance(value, str):
            raise SyncError(
                f"invalid labels on desired child {where}: .metadata.labels accessor error: contains non-string value "
                f'in the map under key "{key}": {_go_value(value)} is of the type {_go_type(value)}, expected string'
            )
    return labels


def _go_type(value: Any) -> str:
    names: dict[type, str] = {
        bool: "bool",
        int: "int64",
        float: "float64",
        str: "string",
        list: "[]interface {}",
        dict: "map[string]interface {}",
    }
    return names.get(type(value), "<nil>")


def _go_value(value: Any) -> str:
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


class ChildWriter:
    """Brings the children of one parent to the desired state; collects errors instead of stopping (step 11)."""

    def __init__(self, api: Api, discovery: Discovery, parent: Json, method: Callable[[Resource], str]) -> None:
        self._api = api
        self._discovery = discovery
        self._parent = parent
        self._method = method

    async def write(self, observed: ObjectMap, desired: ObjectMap) -> list[str]:
        """Do all deletes, then all creates and updates, kind by kind in order; return the errors."""
        errors: list[str] = []
        for kind in _ordered(observed):
            errors += await self._each(kind, observed[kind].items(), self._delete, desired.get(kind, {}))
        for kind in _ordered(desired):
            errors += await self._each(kind, desired[kind].items(), self._apply, observed.get(kind, {}))
        return errors

    async def _each(
        self,
        kind: Kind,
        items: Iterable[tuple[str, Json]],
        action: Callable[[Resource, Json, Json | None], Awaitable[None]],
        others: Mapping[str, Json],
    ) -> list[str]:
        items = list(items)
        if not items:
            return []
        try:
            resource = self._discovery.kind(*kind)
        except UnknownKind as error:
            return [str(error)]
        errors = []
        for key, obj in items:
            try:
                await action(resource, obj, others.get(key))
            except (ApiError, SyncError) as error:
                errors.append(str(error))
        return errors

    async def _delete(self, resource: Resource, child: Json, desired: Json | None) -> None:
        if desired is not None or terminating(child):
            return
        try:
            await self._api.delete(resource, namespace_of(child), name_of(child), uid_of(child))
        except ApiError as error:
            if not error.not_found:
                raise SyncError(f"can't delete {resource.kind} {key_of(child)}: {error}") from error

    async def _apply(self, resource: Resource, child: Json, observed: Json | None) -> None:
        if observed is None:
            await self._create(resource, child)
            return
        merged = updated(observed, child)
        if canonical(merged) == canonical(observed) or terminating(observed):
            return
        match self._method(resource):
            case "OnDelete" | "":
                return
            case "Recreate":
                try:
                    await self._api.delete(resource, namespace_of(child), name_of(child), uid_of(observed))
                except ApiError as error:
                    if not error.not_found:
                        raise
            case "InPlace":
                try:
                    await self._api.update(resource, merged)
                except ApiError as error:
                    # A later event causes the next run.
                    if not (error.not_found or error.conflict):
                        raise
            case method:
                raise SyncError(f'invalid update strategy for {resource.kind}: unknown method "{method}"')

    async def _create(self, resource: Resource, child: Json) -> None:
        recorded = with_record(child, child)
        references = list(meta(recorded).get("ownerReferences") or [])
        if all(ref.get("uid") != uid_of(self._parent) for ref in references):
            references.append(owner_reference(self._parent))
        try:
            await self._api.create(
                resource, {**recorded, "metadata": {**meta(recorded), "ownerReferences": references}}
            )
        except ApiError as error:
            # Another object has the name; the user is not informed (MC-3.1).
            if not error.already_exists:
                raise


def _ordered(objects: ObjectMap) -> list[Kind]:
    return sorted(objects, key=lambda kind: gvk_order(*kind))
