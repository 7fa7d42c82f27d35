"""Small helpers on Kubernetes objects represented as plain JSON dictionaries.

Objects in caches are shared and must not be changed in place; build a new object instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.desk.cluster.apply import meta
from app.kube.base import Json


def name_of(obj: Mapping[str, Any]) -> str:
    """Return `metadata.name`, empty if absent."""
    return str(meta(obj).get("name") or "")


def namespace_of(obj: Mapping[str, Any]) -> str:
    """Return `metadata.namespace`, empty for cluster-scoped objects."""
    return str(meta(obj).get("namespace") or "")


def key_of(obj: Mapping[str, Any]) -> str:
    """Return `namespace/name`, or the name alone: the inner key of v2 requests, and the key of caches and queues."""
    namespace = namespace_of(obj)
    return f"{namespace}/{name_of(obj)}" if namespace else name_of(obj)


def split_key(key: str) -> tuple[str, str]:
    """Split a key into namespace (may be empty) and name."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


def uid_of(obj: Mapping[str, Any]) -> str:
    """Return `metadata.uid`."""
    return str(meta(obj).get("uid") or "")


def generation_of(obj: Mapping[str, Any]) -> int:
    """Return `metadata.generation`, 0 if the kind has none."""
    return int(meta(obj).get("generation") or 0)


def labels_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return `metadata.labels` of an object that the API server has validated."""
    return meta(obj).get("labels") or {}


def finalizers_of(obj: Mapping[str, Any]) -> list[str]:
    """Return `metadata.finalizers`."""
    return list(meta(obj).get("finalizers") or [])


def terminating(obj: Mapping[str, Any]) -> bool:
    """Report whether the object is marked for deletion."""
    return bool(meta(obj).get("deletionTimestamp"))


def controller_ref(obj: Mapping[str, Any]) -> Json | None:
    """Return the owner reference with `controller: true`, if any."""
    for ref in meta(obj).get("ownerReferences") or []:
        if ref.get("controller"):
            return dict(ref)
    return None


def group_of(api_version: str) -> str:
    """Return `apps` for `apps/v1`, and an empty string for the core group."""
    return api_version.partition("/")[0] if "/" in api_version else ""


def version_of(api_version: str) -> str:
    """Return `v1` for `apps/v1`."""
    return api_version.rpartition("/")[2]


def gvk_key(api_version: str, kind: str) -> str:
    """Return the outer key of `children` and `related`: `Kind.version` or `Kind.group/version` (MC-1.1)."""
    return f"{kind}.{api_version}"


def gvk_order(api_version: str, kind: str) -> tuple[str, str, str]:
    """Return the sort key for the order in which kinds are written (MC-3.1)."""
    return group_of(api_version), version_of(api_version), kind
