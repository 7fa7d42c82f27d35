"""Objects of a cluster, read with the rights of the user. Nothing here writes.

The client is lightkube, an extra of the package (``modelhooks[cluster]``): neither the service nor the offline commands
need it.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterable
from functools import cache
from typing import Any, Protocol

from app.cli import CommandError
from app.cli.kinds import all_kinds, find
from app.cli.offline import direct
from app.cli.simulate import Cluster
from app.cli.store import owner
from app.cli.world import is_namespaced, plural, related_keys
from app.kube.base import Json
from app.kube.resource import CustomResource
from app.settings import Settings


class Unreadable(CommandError):
    """The cluster cannot be read; the message has the reason and a remedy."""


class ObjectSource(Protocol):
    def objects(
        self, api_version: str, kind: str, plural: str, namespace: str | None, *, namespaced: bool = True
    ) -> list[Json] | None:
        """Every object of a kind, of one namespace or of all; ``None`` if it is not installed or may not be read."""


class LiveCluster:
    """The cluster of the kubeconfig's context, or the one that this pod runs in."""

    def __init__(self, context: str | None = None) -> None:
        """Raise :class:`Unreadable` without a client or a usable kubeconfig."""
        try:
            from lightkube import Client, KubeConfig
            from lightkube.core.exceptions import ConfigError
        except ImportError:
            raise Unreadable("this command needs lightkube: pip install 'modelhooks[cluster]'") from None
        try:
            config = KubeConfig.from_env().get(context_name=context)
            if config is None:
                raise Unreadable("the kubeconfig has no current context; --context names one")
            self._config, self.context = config, config.context_name or ""
            self._client = Client(config)
        except (ConfigError, OSError) as error:
            raise Unreadable(str(error)) from None

    def objects(
        self, api_version: str, kind: str, plural: str, namespace: str | None, *, namespaced: bool = True
    ) -> list[Json] | None:
        import httpx2
        from lightkube.core.exceptions import ApiError

        where = {"namespace": namespace or "*"} if namespaced else {}
        client: Any = self._client
        try:
            listed = client.list(_class(api_version, kind, plural, namespaced=namespaced), **where)
            return [{"apiVersion": api_version, "kind": kind, **item.to_dict()} for item in listed]
        except ApiError as error:
            if error.status.code in (403, 404):
                return None
            raise Unreadable(f"{plural}: {error}") from None
        except httpx2.HTTPStatusError as error:  # a group that is not served at all is answered in plain text
            if error.response.status_code == 404:
                return None
            raise Unreadable(f"{plural}: {error}") from None
        except httpx2.HTTPError as error:
            raise Unreadable(f"the API server does not answer: {error}") from None

    async def changes(
        self, api_version: str, kind: str, plural: str, *, label: str = "", namespaced: bool = True
    ) -> AsyncIterator[tuple[str, Json]]:
        """The objects of a kind that have the label, in all namespaces, and what happens to them, without an end.

        ``ADDED``, ``MODIFIED`` or ``DELETED``, and the object. A cluster that does not answer is asked again, as is
        one that does not have the kind.
        """
        import httpx2
        from lightkube import AsyncClient, operators
        from lightkube.core.exceptions import ApiError, LoadResourceError

        resource = _class(api_version, kind, plural, namespaced=namespaced)
        where: dict[str, object] = {"namespace": "*"} if namespaced else {}
        if label:
            where["labels"] = {label: operators.exists()}
        client: Any = AsyncClient(self._config)
        try:
            while True:
                with contextlib.suppress(ApiError, LoadResourceError, httpx2.HTTPError):
                    async for action, item in client.watch(resource, **where):
                        yield action, {"apiVersion": api_version, "kind": kind, **item.to_dict()}
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            await client.aclose()


def _class(api_version: str, kind: str, plural: str, *, namespaced: bool) -> object:
    """Return lightkube's class of a kind. It refuses to make a second class of one kind, so each is made once."""
    with _MAKING:
        return _create_class(api_version, kind, plural, namespaced)


@cache
def _create_class(api_version: str, kind: str, plural: str, namespaced: bool) -> Any:
    from lightkube.generic_resource import create_global_resource, create_namespaced_resource

    group, _, version = api_version.rpartition("/")
    create: Any = create_namespaced_resource if namespaced else create_global_resource
    return create(group, version, kind, plural)


_MAKING = threading.Lock()
RETRY_SECONDS = 2.0
"""After which a cluster is asked again that did not answer a watch, or does not have the kind."""


def served() -> list[CustomResource]:
    """The eight kinds, in the order of the registry."""
    return [kind.resource for kind in all_kinds()]


def of_kind(source: ObjectSource, resource: CustomResource, namespace: str | None) -> list[Json] | None:
    """The objects of one of our kinds; ``None`` where the kind is not installed or may not be read."""
    return source.objects(
        resource.api_version, resource.kind, resource.plural, namespace, namespaced=resource.namespaced
    )


def readable_objects(source: ObjectSource, resource: CustomResource, document: Json, namespace: str) -> list[Json]:
    """Return the pods and all objects that an object's hooks may read: the input of ``explain``.

    An object may lead to another of its family, so all kinds of the family and their children are read too: of the
    namespace, and of each other one that the customize hook names.
    """
    family = [item for item in served() if item.family == resource.family]
    documents = [document for item in family for document in of_kind(source, item, namespace) or ()]
    kinds = {child.key: (child.api_version, child.kind, child.plural) for item in family for child in item.children}
    for item in family:
        kind = find(item.api_version, item.kind)
        for key in related_keys(kind) if kind else ():
            name, _, api_version = key.partition(".")
            kinds.setdefault(key, (api_version, name, plural(name)))
    ours = {f"{item.kind}.{item.api_version}" for item in family}
    for key, (api_version, name, resources) in {**kinds, "Pod.v1": ("v1", "Pod", "pods")}.items():
        if key not in ours:
            namespaced = is_namespaced(api_version, name)
            documents += source.objects(api_version, name, resources, namespace, namespaced=namespaced) or ()
    for api_version, resources, other in _selected_elsewhere(document, documents, namespace):
        for name in {name for version, name, listed in kinds.values() if (version, listed) == (api_version, resources)}:
            documents += source.objects(api_version, name, resources, other) or ()
    return documents


def _selected_elsewhere(document: Json, documents: Iterable[Json], namespace: str) -> set[tuple[str, str, str]]:
    """Return version, plural and namespace of the rules that name another namespace.

    The rules are those of the customize hooks of an object and of those among ``documents`` that it owns.
    """
    cluster, uid = Cluster(direct(Settings())), document["metadata"]["uid"]
    parents = [document, *(one for one in documents if owner(one) == uid)]
    kinds = [(kind, one) for one in parents if (kind := find(one["apiVersion"], one["kind"])) is not None]
    rules = [rule for kind, one in kinds for rule in cluster.rules(kind, one)]
    selected = {(rule["apiVersion"], rule["resource"], rule.get("namespace") or namespace) for rule in rules}
    return {rule for rule in selected if rule[2] != namespace}


def ready(document: Json) -> Json:
    """Return the object's Ready condition; empty if it has none."""
    conditions: Iterable[Json] = (document.get("status") or {}).get("conditions") or ()
    return next((c for c in conditions if c.get("type") == "Ready"), {})
