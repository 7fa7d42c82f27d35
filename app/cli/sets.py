"""Divide manifests into sets, each for one cluster.

Two versions of one object, such as those of overlays dev and prod, belong to different clusters.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from app.cli.apply import canonical
from app.cli.findings import Finding
from app.cli.manifests import Manifest
from app.cli.offline import identity
from app.kube.field import Path

Key = tuple[str, str]


@dataclass(frozen=True)
class Split:
    """The sets, each a separate cluster, and the findings about duplicates within one."""

    sets: list[list[Manifest]]
    findings: list[Finding]


def split(manifests: list[Manifest], namespace: str) -> Split:
    """Return one set for each folder with its own version of an object, plus all objects that exist once.

    Within a folder two files that differ are two sets, and a warning: applying the folder gives one of them.
    Twice in one file is an error. Copies that are the same are one object.
    """
    versions: dict[Key, list[Manifest]] = defaultdict(list)
    identities = {manifest: identity(manifest, namespace) for manifest in manifests}
    for manifest, key in identities.items():
        if key is not None and not any(_same(manifest, other) for other in versions[key]):
            versions[key].append(manifest)
    several = {key: several_versions for key, several_versions in versions.items() if len(several_versions) > 1}
    if not several:
        return Split([manifests], [])
    findings = [finding for several_versions in several.values() for finding in _findings(several_versions)]
    ours = {m: _name(m, several_versions) for several_versions in several.values() for m in several_versions}
    shared = [manifest for manifest, key in identities.items() if key not in several]
    names = dict.fromkeys(ours.values())
    return Split([[*shared, *_of(name, several, ours)] for name in names], findings)


def _of(name: str, several: dict[Key, list[Manifest]], ours: dict[Manifest, str]) -> Iterator[Manifest]:
    """Yield the set's own version of each object, or the one from an enclosing folder."""
    for several_versions in several.values():
        members = [m for m in several_versions if ours[m] == name]
        enclosing = [m for m in several_versions if PurePath(m.file).parent in PurePath(name).parents]
        yield from (members or enclosing)[:1]


def _name(manifest: Manifest, versions: list[Manifest]) -> str:
    """The folder, where that tells the versions apart, else the file, else the place in it."""
    folder = PurePath(manifest.file).parent
    if sum(PurePath(other.file).parent == folder for other in versions) == 1:
        return str(folder / "*")
    if sum(other.file == manifest.file for other in versions) == 1:
        return manifest.file
    return f"{manifest.file}:{manifest.position(Path())[0]}"


def _same(one: Manifest, other: Manifest) -> bool:
    return canonical(one.document) == canonical(other.document)


def _findings(versions: list[Manifest]) -> Iterator[Finding]:
    path = Path("metadata").child("name")
    for position, manifest in enumerate(versions):
        for earlier in versions[:position]:
            if PurePath(earlier.file).parent != PurePath(manifest.file).parent:
                continue
            level = "error" if earlier.file == manifest.file else "warning"
            line = earlier.position(path)[0]
            words = f"{manifest.kind} {manifest.name} is described by {earlier.file}:{line} too; one replaces the other"
            yield manifest.finding(level, path, words, "duplicate-object")
            break
