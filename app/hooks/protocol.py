"""Metacontroller's hook protocol, version v2: its requests and answers (MC-1). ``managedFields`` are never decoded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw

from app.errors import ProtocolError
from app.kube.base import Json
from app.kube.objects import ABSENT, Observed, ObservedMeta, ObservedObject

ChildrenT = TypeVar("ChildrenT", bound=msgspec.Struct)
RelatedT = TypeVar("RelatedT", bound=msgspec.Struct)
ObjectT = TypeVar("ObjectT")


class Parent(Observed):
    """The custom resource as it came: metadata decoded, spec and status still bytes."""

    api_version: str = ""
    kind: str = ""
    metadata: ObservedMeta = msgspec.field(default_factory=ObservedMeta)
    spec: Raw = ABSENT
    status: Raw = ABSENT


RelatedResource = Parent
"""A related object that is a custom resource of a family has the same form."""


class NoObjects(msgspec.Struct):
    pass


class Inputs(msgspec.Struct, frozen=True):
    """Inputs of a parent's pod templates, and whether templates may be kept (:mod:`.template`)."""

    digest: str = ""
    settled: bool = False
    """True if the status is about the parent's current generation: then a difference is not the user's."""
    latest: bool = True
    """Templates are never kept."""
    requested: bool = False
    """The parent's annotation requests that; children of our kinds get the annotation, too."""


NO_INPUTS = Inputs()


class SyncBody(msgspec.Struct, Generic[ChildrenT, RelatedT]):
    """The body of a sync request.

    ``children`` and ``related`` are structs with one field per kind, named on the wire by Metacontroller's outer key
    (``Deployment.apps/v1``): ``None`` when the key is absent, that is when the kind is not declared.
    """

    parent: Parent
    children: ChildrenT
    related: RelatedT | None = None
    finalizing: bool = False


class SyncRequest(msgspec.Struct, Generic[ChildrenT, RelatedT], dict=True):
    """The body of a call as the kinds get it."""

    parent: Parent
    children: ChildrenT
    related: RelatedT

    @cached_property
    def observed(self) -> Mapping[tuple[str, str], ObservedObject]:
        groups = [group for _, group in observed_children(self.children)]
        return {(child.kind, child.metadata.name): child for group in groups for child in group.values()}


AnyRequest = SyncRequest[Any, Any]
"""A request of some kind; its own types are in the kind's functions."""


class ControllerSpec(msgspec.Struct, rename={"child_resources": "childResources"}):
    """The child kinds that the CompositeController declares: a customize request has no ``children``."""

    child_resources: list[ChildResource] | None = None


class ChildResource(msgspec.Struct, rename="camel"):
    """One entry of ``childResources``; ``resource`` is the plural."""

    api_version: str = ""
    resource: str = ""


class Controller(msgspec.Struct):
    """The CompositeController that sent the request."""

    spec: ControllerSpec = msgspec.field(default_factory=ControllerSpec)


class CustomizeRequest(msgspec.Struct):
    parent: Parent
    controller: Controller | None = None

    @property
    def declared(self) -> frozenset[str]:
        """Declared child kinds as ``plural.group`` (``deployments.apps``; the core group's are just the plural)."""
        resources = (self.controller.spec.child_resources if self.controller else None) or []
        return frozenset(f"{r.resource}.{r.api_version.rpartition('/')[0]}".rstrip(".") for r in resources)


class RelatedRule(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True):
    """One rule of a customize answer: names, or a selector, never both."""

    api_version: str
    resource: str
    namespace: str = ""
    names: tuple[str, ...] = ()
    label_selector: Json | None = None

    @staticmethod
    def by_name(api_version: str, resource: str, *names: str, namespace: str = "") -> list[RelatedRule]:
        """Return the rule for objects by name; none if all names are empty, because such a rule selects everything."""
        distinct = tuple(dict.fromkeys(filter(None, names)))
        return [RelatedRule(api_version, resource, namespace, distinct)] if distinct else []


class Kept(Json):
    """A child of an answer as it was last applied, independent of the parent's present spec."""


class Applied(Json):
    """A built child whose record is the same but for metadata: it was compared and checked when it was applied."""


class KeptTemplate(Json):
    """A built child with an earlier pod template than the one that was built."""

    waiting: Sequence[str] = ()
    """The fields of the newer one, as in ``Deployment chat: spec.containers[main].image``."""


class InterimTemplate(Json):
    """A built child with a pod template that prepares for the one that was built, which the next answer has."""


class SyncResponse(msgspec.Struct):
    """A sync hook's answer. Built by the kinds; :func:`app.hooks.response.encode` is the only way out."""

    status: object
    children: Sequence[Json]
    resync_after_seconds: float | None = None
    finalized: bool = False
    """True in the answer to a finalize hook if the object may go."""


class SyncAnswer(msgspec.Struct, frozen=True):
    """The encoded answer of a sync hook, and the facts for metrics."""

    body: bytes
    status: Json
    waiting: Sequence[str] = ()
    """The fields of kept pod templates that wait for newer ones."""


ByName = dict[str, ObjectT] | None
"""The objects of one kind by namespace and name; ``None`` if it is not declared, or was not requested."""


def objects_of(kind: str) -> Any:
    """Declare the objects of a kind in a request, ``Service.v1``; ``None`` by default."""
    return msgspec.field(name=kind, default=None)


def get(group: Mapping[str, ObjectT] | None, name: str, namespace: str = "") -> ObjectT | None:
    """Return an object of one kind by name and namespace, which is empty for cluster-scoped objects."""
    return None if group is None else group.get(f"{namespace}/{name}" if namespace else name)


def sorted_values(group: Mapping[str, ObjectT] | None) -> list[ObjectT]:
    return [] if not group else [group[key] for key in sorted(group)]


def specs(group: Mapping[str, Parent] | None) -> dict[str, Raw]:
    return {key: item.spec for key, item in (group or {}).items()}


def observed_children(children: msgspec.Struct) -> Iterable[tuple[str, Mapping[str, ObservedObject]]]:
    for name, key in _keys(type(children)):
        group = getattr(children, name)
        if group is not None:
            yield key, group


def related_object(related: msgspec.Struct, kind: str, name: str, namespace: str) -> object | None:
    """Return the related object of a kind, ``Service.v1``, with that name, if there is one."""
    field = next((name for name, key in _keys(type(related)) if key == kind), "")
    return get(getattr(related, field), name, namespace) if field else None


@lru_cache(maxsize=64)
def _keys(children: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    return tuple((info.name, info.encode_name) for info in msgspec.structs.fields(children))


def check_envelope(request: SyncBody[Any, Any], kind: str, api_version: str, *, finalizing: bool = False) -> None:
    """Refuse what Metacontroller never sends to a v2 sync or finalize hook. Raises :class:`ProtocolError`."""
    parent = request.parent
    if parent.kind != kind or parent.api_version != api_version:
        raise ProtocolError(f"this hook serves {kind} {api_version}")
    if request.finalizing != finalizing:
        raise ProtocolError(f"finalizing must be {str(finalizing).lower()} for this hook")
    if not parent.metadata.uid or not parent.metadata.name:
        raise ProtocolError("parent.metadata needs a name and a uid")
    for key, group in observed_children(request.children):
        for inner, child in group.items():
            if "/" not in inner:
                raise ProtocolError(f"hook version mismatch: {key} has keys without a namespace, v2 is required")
            if f"{child.kind}.{child.api_version}" != key:
                raise ProtocolError(f"a child below {key} has another kind or API version")
            namespace = child.metadata.namespace
            if not inner.endswith(f"/{child.metadata.name}") or namespace not in ("", parent.metadata.namespace):
                raise ProtocolError(f"a child below {key} is not the one that its key names, or not the parent's")
