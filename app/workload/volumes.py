"""Rules for volumes and mounts that users write: what Kubernetes refuses when the pod is made.

As in :mod:`app.workload.podrules`, types were checked before, and ``null`` counts as absent. Two volumes of one name,
and two mounts of one path, are found by :mod:`app.hooks.sendable`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from app.kube import field
from app.kube.correction import misspelt
from app.kube.names import is_dns1123_label
from app.workload.podrules import Json

Errors = Iterator[field.Error]


def volumes(items: Sequence[Json], path: field.Path) -> Errors:
    """LK-V-K32 and LK-V-K33."""
    for position, item in enumerate(items):
        yield from volume(item, path.index(position))


def volume(given: Json, path: field.Path) -> Errors:
    """One of them. Whether it has a name was checked with its type."""
    sources = [key for key in given if key != "name" and given[key] is not None]
    if given.get("name") and not is_dns1123_label(given["name"]):
        detail = "must be at most 63 lower case letters, digits and '-'"
        yield field.invalid(path.child("name"), given["name"], detail)
    if len(sources) > 1:
        yield field.forbidden(path.child(sources[1]), f"{sources[0]} is set as well; a volume has exactly one source")
    yield from files(given, path)


def files(volume: Json, path: field.Path) -> Errors:
    """LK-V-K33: where a volume puts its files. A path that leaves the volume is refused when the pod is made."""
    for name in ("configMap", "secret", "downwardAPI"):
        yield from _items(volume.get(name) or {}, path.child(name))
    sources = (volume.get("projected") or {}).get("sources") or ()
    for position, source in enumerate(sources):
        here = path.child("projected", "sources").index(position)
        for name in ("configMap", "secret", "downwardAPI"):
            yield from _items((source or {}).get(name) or {}, here.child(name))
        for name in ("serviceAccountToken", "clusterTrustBundle"):
            inner = (source or {}).get(name)
            if inner is not None:
                yield from _path(inner.get("path") or "", here.child(name, "path"))


def _items(source: Json, path: field.Path) -> Errors:
    for position, item in enumerate(source.get("items") or ()):
        yield from _path((item or {}).get("path") or "", path.child("items").index(position).child("path"))


def _path(text: str, path: field.Path) -> Errors:
    if not text:
        yield field.required(path, "name the file inside the volume, for example config/app.yaml")
    elif text.startswith("/") or ".." in text.split("/"):
        yield field.invalid(path, text, "must be a relative path without '..', for example config/app.yaml")
    elif text.startswith(".."):
        yield field.invalid(path, text, "must not begin with '..'")


def mounts(items: Sequence[Json], path: field.Path, known: Collection[str]) -> Errors:
    """LK-V-K34. ``known`` are the names of the pod's volumes."""
    for position, mount in enumerate(items):
        here, name = path.index(position), mount.get("name") or ""
        if name not in known:
            meant = misspelt(name, known)
            yield field.not_supported(here.child("name"), name, sorted(known), "name a volume of the pod", meant)
        if not mount.get("mountPath"):
            yield field.required(here.child("mountPath"), "name a directory of the container, for example /data")
        elif ":" in mount["mountPath"]:
            yield field.invalid(here.child("mountPath"), mount["mountPath"], "must not contain ':'")
        for key in ("subPath", "subPathExpr"):
            text = mount.get(key) or ""
            if text.startswith("/") or ".." in text.split("/"):
                yield field.invalid(here.child(key), text, "must be a relative path without '..'")
        if mount.get("subPath") and mount.get("subPathExpr"):
            yield field.forbidden(here.child("subPathExpr"), "subPath is set as well; set one of them")
