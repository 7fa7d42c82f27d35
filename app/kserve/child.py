"""The form of every child of KServe's services: plain JSON."""

from app.kube.base import Json


def child(api_version: str, kind: str, metadata: Json, **content: object) -> Json:
    """Build an object; ``content`` is ``spec``, or what a kind has in its place."""
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def metadata(name: str, namespace: str, labels: dict[str, str], annotations: dict[str, str] | None = None) -> Json:
    meta: Json = {"name": name, "namespace": namespace, "labels": labels}
    return {**meta, "annotations": annotations} if annotations else meta
