"""The resources that the API server has, from discovery, which is read again every few seconds (MC-2.6)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import httpx

from .api import Api, ApiError, Resource

log = logging.getLogger(__name__)

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class UnknownKind(Exception):
    """The API server does not have the resource; users see the message."""


class Discovery:
    """The resources as of the last refresh, by plural name and by kind."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._resources: dict[tuple[str, str], Resource] = {}
        self._kinds: dict[tuple[str, str], Resource] = {}

    def find(self, api_version: str, name: str) -> Resource | None:
        """Return the resource with this plural name, or None."""
        return self._resources.get((api_version, name))

    def resource(self, api_version: str, name: str) -> Resource:
        """Return the resource with this plural name, or raise `UnknownKind`."""
        resource = self.find(api_version, name)
        if resource is None:
            raise UnknownKind(f"discovery: can't find resource {name} in apiVersion {api_version}")
        return resource

    def kind(self, api_version: str, kind: str) -> Resource:
        """Return the resource of this kind, or raise `UnknownKind`."""
        resource = self._kinds.get((api_version, kind))
        if resource is None:
            raise UnknownKind(f"discovery: can't find kind {kind} in apiVersion {api_version}")
        return resource

    async def refresh(self) -> None:
        """Read all groups; keep the previous result on failure."""
        resources: dict[tuple[str, str], Resource] = {}
        for path in ("/api", "/apis"):
            answer = await self._api.request("GET", path, accept=_AGGREGATED)
            for group in answer["items"]:
                for version in group["versions"]:
                    for resource in _resources(group.get("metadata", {}).get("name", ""), version):
                        resources[resource.api_version, resource.name] = resource
        self._resources = resources
        self._kinds = {(resource.api_version, resource.kind): resource for resource in resources.values()}

    async def run(self, interval: float) -> None:
        """Refresh until cancelled."""
        while True:
            await asyncio.sleep(interval)
            try:
                await self.refresh()
            except (ApiError, httpx.HTTPError, KeyError) as error:
                log.warning("discovery failed: %s", error)


def _resources(group: str, version: dict[str, Any]) -> list[Resource]:
    api_version = f"{group}/{version['version']}" if group else version["version"]
    return [
        Resource(
            api_version=api_version,
            name=entry["resource"],
            kind=entry["responseKind"]["kind"],
            namespaced=entry["scope"] == "Namespaced",
            subresources=frozenset(sub["subresource"] for sub in entry.get("subresources") or []),
        )
        for entry in version.get("resources") or []
        if entry.get("responseKind")
    ]
