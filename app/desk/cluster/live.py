"""Objects of a cluster, read with the rights of the user. Nothing here writes.

The client is lightkube, an extra of the package (``modelhooks[cluster]``): neither the service nor the offline commands
need it.
"""

import contextlib
import threading
from collections.abc import AsyncIterator, Iterable
from typing import Any, Protocol

from app.desk.cluster import offline, simulate
from app.desk.cluster.kinds import all_kinds, kind_of
from app.desk.cluster.store import is_namespaced, owner, plural, related_keys, type_of
from app.errors import CommandError
from app.hooks.readystatus import ready_of
from app.kube.base import Json
from app.kube.resource import CustomResource
from app.settings import Settings, minor_release

_MAKING = threading.Lock()
RETRY_SECONDS = 2.0
"""Delay before a cluster is asked again that did not answer a watch, or lacks the kind."""


class Unreadable(CommandError):
    """The cluster cannot be read."""


class ObjectSource(Protocol):
    def objects(self, api_version: str, kind: str, namespace: str | None) -> list[Json] | None:
        """Every object of a kind, of one namespace or of all; ``None`` if it is not installed or may not be read."""


class LiveCluster:
    """The cluster of the kubeconfig's context, or the one that this pod runs in."""

    def __init__(self, context: str | None = None) -> None:
        """Raise :class:`Unreadable` without a client or a usable kubeconfig."""
        try:
            from lightkube import Client, KubeConfig
            from lightkube.core.exceptions import ConfigError
        except ImportError:
            raise Unreadable(
                "this command needs the extra cluster: pip install 'modelhooks[cluster]', or httpx2 and lightkube"
            ) from None
        try:
            config = KubeConfig.from_env().get(context_name=context)
            if config is None:
                raise Unreadable("the kubeconfig has no current context; --context names one")
            self._config, self.context = config, config.context_name or ""
            self._client = Client(config)
        except (ConfigError, OSError) as error:
            raise Unreadable(str(error)) from None

    def objects(self, api_version: str, kind: str, namespace: str | None) -> list[Json] | None:
        import httpx2

        where = {"namespace": namespace or "*"} if is_namespaced(api_version, kind) else {}
        client: Any = self._client
        try:
            listed = client.list(_class(api_version, kind), **where)
            return [{"apiVersion": api_version, "kind": kind, **item.to_dict()} for item in listed]
        except httpx2.HTTPStatusError as error:
            if error.response.status_code in (403, 404):
                return None
            raise Unreadable(f"{plural(kind)}: {error}") from None
        except httpx2.HTTPError as error:
            raise Unreadable(f"the API server does not answer: {error}") from None

    def release(self) -> str:
        """Return the release of the API server, such as ``1.37``."""
        import httpx2
        from lightkube.config import client_adapter

        try:
            with client_adapter.Client(self._config, client_adapter.ConnectionParams()) as client:
                return minor_release(client.get("version").raise_for_status().json()["gitVersion"])
        except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
            raise Unreadable(f"the release of the API server cannot be read: {error}") from None

    async def changes(self, api_version: str, kind: str, label: str = "") -> AsyncIterator[tuple[str, Json]]:
        """Yield the objects of a kind with the label, in all namespaces, and then every change of them.

        ``ADDED``, ``MODIFIED`` or ``DELETED``, and the object. A cluster that does not answer, or lacks the kind, is
        asked again.
        """
        import asyncio  # costs 20 ms, and only the studio watches

        import httpx2
        from lightkube import AsyncClient, operators
        from lightkube.core.exceptions import LoadResourceError

        resource = _class(api_version, kind)
        where: dict[str, object] = {"namespace": "*"} if is_namespaced(api_version, kind) else {}
        if label:
            where["labels"] = {label: operators.exists()}
        client: Any = AsyncClient(self._config)
        try:
            while True:
                with contextlib.suppress(LoadResourceError, httpx2.HTTPError):
                    async for action, item in client.watch(resource, **where):
                        yield action, {"apiVersion": api_version, "kind": kind, **item.to_dict()}
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            await client.aclose()


def _class(api_version: str, kind: str) -> Any:
    """Return lightkube's class of a kind. It refuses to make a second class of one kind, so each is made once."""
    from lightkube import generic_resource

    group, _, version = api_version.rpartition("/")
    library: Any = generic_resource
    create = library.create_namespaced_resource if is_namespaced(api_version, kind) else library.create_global_resource
    with _MAKING:
        return library.get_generic_resource(api_version, kind) or create(group, version, kind, plural(kind))


def served() -> list[CustomResource]:
    return [kind.resource for kind in all_kinds()]


def readable_objects(source: ObjectSource, resource: CustomResource, document: Json, namespace: str) -> list[Json]:
    """Return the pods and all objects that an object's hooks may read: the input of ``explain``.

    An object may lead to another of its family, so all kinds of the family and their children are read too: of the
    namespace, and of each other one that the customize hook names.
    """
    family = [kind for kind in all_kinds() if kind.resource.family == resource.family]
    keys = [
        *(f"{kind.resource.kind}.{kind.resource.api_version}" for kind in family),
        *(child.key for kind in family for child in kind.resource.children),
        *(key for kind in family for key in related_keys(kind).values()),
        "Pod.v1",
    ]
    kinds = dict.fromkeys(map(type_of, keys))
    documents = [item for kind in kinds for item in source.objects(*kind, namespace) or ()]
    for api_version, resources, other in _selected_elsewhere(document, documents, namespace):
        for kind in kinds:
            if (api_version, resources) == (kind[0], plural(kind[1])):
                documents += source.objects(*kind, other) or ()
    return documents


def _selected_elsewhere(document: Json, documents: Iterable[Json], namespace: str) -> set[tuple[str, str, str]]:
    """Return version, plural and namespace of the rules that name another namespace.

    The rules are those of the customize hooks of an object and of those among ``documents`` that it owns.
    """
    cluster, uid = simulate.Cluster(offline.direct(Settings())), document["metadata"]["uid"]
    parents = [document, *(other for other in documents if owner(other) == uid)]
    kinds = [(kind, parent) for parent in parents if (kind := kind_of(parent)) is not None]
    rules = [rule for kind, parent in kinds for rule in cluster.rules(kind, parent)]
    selected = {(rule["apiVersion"], rule["resource"], rule.get("namespace") or namespace) for rule in rules}
    return {rule for rule in selected if rule[2] != namespace}


def conditions(document: Json) -> list[Json]:
    """Return the conditions in the status of an object, if it has one."""
    reported: list[Json] = (document.get("status") or {}).get("conditions") or []
    return reported


def ready(document: Json) -> Json:
    return ready_of(conditions(document))
