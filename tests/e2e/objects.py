"""`kubectl get -o json` without kubectl, whose start costs a tenth of a second of a core.

Like kubectl, it keeps what discovery answered. It asks each time whether that has changed, by the answer's tag.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from app.kube.base import Json

_DISCOVERY = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
_DISCOVERED: dict[str, tuple[str, dict[str, _Kind]]] = {}
"""What discovery last answered, by its address: the answer's tag, and the kinds by each of their names."""
_ARGUMENTS = argparse.ArgumentParser(exit_on_error=False)
_ARGUMENTS.add_argument("kinds")
_ARGUMENTS.add_argument("name", nargs="?")
_ARGUMENTS.add_argument("-n", "--namespace", default="default")
_ARGUMENTS.add_argument("-A", "--all-namespaces", action="store_true")
_ARGUMENTS.add_argument("-l", "--selector")
_ARGUMENTS.add_argument("--field-selector")
_ARGUMENTS.add_argument("--chunk-size", default="500")


@dataclass(frozen=True)
class _Kind:
    api_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, namespace: str | None) -> str:
        """Return the path of the collection in a namespace; of all namespaces without one."""
        base = f"/{'apis' if '/' in self.api_version else 'api'}/{self.api_version}"
        return (
            f"{base}/namespaces/{namespace}/{self.plural}" if self.namespaced and namespace else f"{base}/{self.plural}"
        )


def get(client: httpx.Client, *arguments: str) -> Any:
    """Return an object, or a list of the objects of one or more kinds, for the arguments of `kubectl get`."""
    parsed = _ARGUMENTS.parse_args(arguments)
    kinds, _, name = parsed.kinds.partition("/")
    name = name or parsed.name
    resources = _discovered(client, "/apis") | _discovered(client, "/api")
    asked = [resources[kind] for kind in kinds.split(",")]
    namespace = None if parsed.all_namespaces else parsed.namespace
    if name:
        return _printed(client.get(f"{asked[0].path(namespace)}/{name}").raise_for_status().json())
    selectors = {"labelSelector": parsed.selector, "fieldSelector": parsed.field_selector, "limit": parsed.chunk_size}
    query = {key: value for key, value in selectors.items() if value}
    return {"items": [item for kind in asked for item in _items(client, kind, namespace, query)]}


def refusal(client: httpx.Client, namespace: str, document: Json) -> str:
    """Return the API server's errors about a new object, which is not stored; empty if it is accepted."""
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    return _error(client.post(_kind_of(client, document).path(namespace), json=document, params=query))


def apply(client: httpx.Client, namespace: str, document: Json) -> str:
    """Create or change an object as ``kubectl apply --server-side --force-conflicts --validate=false`` does.

    Return the API server's errors; empty if it is accepted.
    """
    path = f"{_kind_of(client, document).path(namespace)}/{document['metadata']['name']}"
    query = {"fieldManager": "e2e", "force": "true", "fieldValidation": "Ignore"}
    headers = {"Content-Type": "application/apply-patch+yaml"}
    return _error(client.patch(path, json=document, params=query, headers=headers))


def delete(client: httpx.Client, namespace: str, document: Json) -> None:
    """Delete an object, without waiting."""
    path = f"{_kind_of(client, document).path(namespace)}/{document['metadata']['name']}"
    client.delete(path).raise_for_status()


def _kind_of(client: httpx.Client, document: Json) -> _Kind:
    group, _, version = document["apiVersion"].rpartition("/")
    name = document["kind"].lower()
    return _discovered(client, "/apis")[f"{name}.{version}.{group}"] if group else _discovered(client, "/api")[name]


def _error(answer: httpx.Response) -> str:
    return "" if answer.is_success else str(answer.json()["message"])


def _items(client: httpx.Client, kind: _Kind, namespace: str | None, query: dict[str, str]) -> Iterator[Json]:
    """Yield the objects of a kind, chunk by chunk; lists leave out what all their items have."""
    chunk = client.get(kind.path(namespace), params=query).raise_for_status().json()
    for item in chunk["items"]:
        yield {"apiVersion": kind.api_version, "kind": kind.kind, **_printed(item)}
    if further := chunk["metadata"].get("continue"):
        yield from _items(client, kind, namespace, {**query, "continue": further})


def _printed(item: Json) -> Json:
    """Return what kubectl prints of an object: all but the managed fields."""
    return {**item, "metadata": {key: value for key, value in item["metadata"].items() if key != "managedFields"}}


def _discovered(client: httpx.Client, path: str) -> dict[str, _Kind]:
    """Return the kinds below a path by each of their names; of two kinds with one name, the preferred one."""
    url = str(client.base_url.join(path))
    tag, names = _DISCOVERED.get(url, ("", {}))
    answer = client.get(path, headers={**_DISCOVERY, "If-None-Match": tag})
    if answer.status_code != httpx.codes.NOT_MODIFIED:
        names = dict(_names(answer.raise_for_status().json()["items"]))
        _DISCOVERED[url] = answer.headers.get("ETag", ""), names
    return names


def _names(groups: list[Json]) -> Iterator[tuple[str, _Kind]]:
    """Yield each kind with each of its names; of two kinds with one name, the preferred one comes last."""
    for group in reversed(groups):
        group_name = group["metadata"].get("name")
        for version in reversed(group["versions"]):
            api_version = f"{group_name}/{version['version']}" if group_name else version["version"]
            suffixes = ("", f".{group_name}", f".{version['version']}.{group_name}")
            for resource in version.get("resources", []):
                plural, name = resource["resource"], resource["responseKind"]["kind"]
                kind = _Kind(api_version, name, plural, resource["scope"] == "Namespaced")
                for word in (plural, name.lower(), *resource.get("shortNames", [])):
                    yield from ((word + suffix, kind) for suffix in suffixes)
