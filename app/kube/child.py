"""Children as plain JSON, as Metacontroller gets them: what has no value is left out, never null."""

from app.kube.base import Json


def child(api_version: str, kind: str, metadata: Json, **content: object) -> Json:
    """Build an object; ``content`` is ``spec``, or what a kind has in its place."""
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def metadata(
    name: str, namespace: str, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None
) -> Json:
    """Build a child's metadata. Metacontroller adds the owner and the label ``controller-uid`` (MC-3.5)."""
    return {"name": name, "namespace": namespace, **template_metadata(labels, annotations)}


def template_metadata(labels: dict[str, str] | None, annotations: dict[str, str] | None = None) -> Json:
    """Build the metadata of a pod template, which has no name."""
    return without_none(labels=labels or None, annotations=annotations or None)


def without_none(**fields: object) -> Json:
    """Return the fields that are not ``None``.

    Lists and maps without entries must be ``None``: the API server drops them, so each sync would write them again.
    """
    return {name: value for name, value in fields.items() if value is not None}
