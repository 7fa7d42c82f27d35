"""Divide manifests into sets, each for one cluster.

Two versions of one object, such as those of overlays dev and prod, belong to different clusters.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

import msgspec

from app.desk.cluster.apply import canonical
from app.desk.cluster.offline import World, identity
from app.desk.files.findings import Finding
from app.desk.files.folders import collect
from app.desk.files.manifests import Manifest
from app.kube.field import METADATA, Path

Key = tuple[str, str]


class Split(msgspec.Struct, frozen=True):
    """The sets, each a separate cluster, and the findings about duplicates within one."""

    sets: list[list[Manifest]]
    findings: list[Finding]


def related_to(manifests: Sequence[Manifest], world: World) -> list[Manifest]:
    """Return the objects of ``--with`` that the files do not contain."""
    related = collect(world.related, world.exclude).manifests
    described = {identity(manifest, world.namespace) for manifest in manifests if related} - {None}
    return [manifest for manifest in related if identity(manifest, world.namespace) not in described]


def split(manifests: list[Manifest], namespace: str) -> Split:
    """Return one set for each folder with its own version of an object, plus all objects that exist once.

    Within a folder two files that differ are two sets, and a warning: applying the folder gives one of them.
    Twice in one file is an error. Copies that are the same are one object.
    """
    versions: dict[Key, dict[bytes, Manifest]] = defaultdict(dict)
    identities = {manifest: identity(manifest, namespace) for manifest in manifests}
    for manifest, key in identities.items():
        if key is not None:
            versions[key].setdefault(canonical(manifest.document), manifest)
    several = {key: [*different.values()] for key, different in versions.items() if len(different) > 1}
    if not several:
        return Split([manifests], [])
    findings = [finding for group in several.values() for finding in _findings(group)]
    ours = {manifest: _name(manifest, group) for group in several.values() for manifest in group}
    shared = [manifest for manifest, key in identities.items() if key not in several]
    names = dict.fromkeys(ours.values())
    return Split([[*shared, *_of(name, several.values(), ours)] for name in names], findings)


def _of(name: str, several: Iterable[list[Manifest]], ours: dict[Manifest, str]) -> Iterator[Manifest]:
    """Yield the set's own version of each object, or the one from an enclosing folder."""
    for group in several:
        members = [m for m in group if ours[m] == name]
        enclosing = [m for m in group if PurePath(m.file).parent in PurePath(name).parents]
        yield from (members or enclosing)[:1]


def _name(manifest: Manifest, versions: list[Manifest]) -> str:
    """Return the folder if it distinguishes the versions, else the file, else the place in the file."""
    folder = PurePath(manifest.file).parent
    if sum(PurePath(other.file).parent == folder for other in versions) == 1:
        return str(folder / "*")
    if sum(other.file == manifest.file for other in versions) == 1:
        return manifest.file
    return f"{manifest.file}:{manifest.position(Path())[0]}"


def _findings(versions: list[Manifest]) -> Iterator[Finding]:
    path = METADATA.child("name")
    first: dict[PurePath, Manifest] = {}
    for manifest in versions:
        earlier = first.setdefault(PurePath(manifest.file).parent, manifest)
        if earlier is not manifest:
            level = "error" if earlier.file == manifest.file else "warning"
            line = earlier.position(path)[0]
            words = f"{manifest.kind} {manifest.name} is described by {earlier.file}:{line} too; one replaces the other"
            yield manifest.finding(level, path, words, "duplicate-object")
