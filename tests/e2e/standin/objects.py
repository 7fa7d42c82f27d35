"""Small helpers on Kubernetes objects kept as plain JSON dictionaries.

Objects in caches are shared and never changed in place: whoever wants another form builds a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.cli.apply import meta
from app.kube.base import Json


def name_of(obj: Mapping[str, Any]) -> str:
    """`metadata.name`, empty when absent."""
    return str(meta(obj).get("name") or "")


def namespace_of(obj: Mapping[str, Any]) -> str:
    """`metadata.namespace`, empty for cluster-scoped objects."""
    return str(meta(obj).get("namespace") or "")


def key_of(obj: Mapping[str, Any]) -> str:
    """`namespace/name`, or the name alone: the inner key of v2 requests and the key of caches and queues."""
    namespace = namespace_of(obj)
    return f"{namespace}/{name_of(obj)}" if namespace else name_of(obj)


def split_key(key: str) -> tuple[str, str]:
    """Namespace (may be empty) and name of a key."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


def uid_of(obj: Mapping[str, Any]) -> str:
    """`metadata.uid`."""
    return str(meta(obj).get("uid") or "")


def generation_of(obj: Mapping[str, Any]) -> int:
    """`metadata.generation`, 0 when the kind has none."""
    return int(meta(obj).get("generation") or 0)


def labels_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """`metadata.labels` of an object that the API server has checked."""
    return meta(obj).get("labels") or {}


def finalizers_of(obj: Mapping[str, Any]) -> list[str]:
    """`metadata.finalizers`."""
    return list(meta(obj).get("finalizers") or [])


def terminating(obj: Mapping[str, Any]) -> bool:
    """Whether the object is marked for deletion."""
    return bool(meta(obj).get("deletionTimestamp"))


def controller_ref(obj: Mapping[str, Any]) -> Json | None:
    """The owner reference that says `controller: true`, if any."""
    for ref in meta(obj).get("ownerReferences") or []:
        if ref.get("controller"):
            return dict(ref)
    return None


def group_of(api_version: str) -> str:
    """`apps` of `apps/v1`, empty for the core group."""
    return api_version.partition("/")[0] if "/" in api_version else ""


def version_of(api_version: str) -> str:
    """`v1` of `apps/v1`."""
    return api_version.rpartition("/")[2]


def gvk_key(api_version: str, kind: str) -> str:
    """The outer key of `children` and `related`: `Kind.version` or `Kind.group/version` (MC-1.1)."""
    return f"{kind}.{api_version}"


def gvk_order(api_version: str, kind: str) -> tuple[str, str, str]:
    """Sort key in which kinds are written (MC-3.1)."""
    return group_of(api_version), version_of(api_version), kind
