"""References to objects that are not among the files, although others of their kind are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from app.cli.kinds import SERVED, find
from app.cli.simulate import Cluster
from app.hooks.kind import Kind
from app.kube.base import Json
from app.kube.correction import closest_name
from app.kube.field import Path, go_quote
from app.kube.names import is_dns1123_subdomain


def dangling(kind: Kind[Any, Any], document: Json, cluster: Cluster) -> Iterator[tuple[Path, str]]:
    """Where an object names another one of our kinds that is not there, and what was probably meant.

    What it names is what its customize hook asks for by name; a name that does not stand in its spec is a default, and
    nobody's slip. Neither is what no object can be called, such as a repository's id.
    """
    wanted: dict[tuple[str, str], list[str]] = defaultdict(list)
    for rule in cluster.rules(kind, document):
        for name in rule.get("names") or ():
            wanted[f"{rule['resource']}.{rule['apiVersion']}", name].append(rule.get("namespace") or "")
    made = {"", *(child.key for child in kind.resource.children)}
    for (resource, name), places in wanted.items():
        target = _kind_of(resource)
        held = {} if target in made else cluster.objects.of_kind(target)
        if not held or any((f"{place}/{name}" if place else name) in held for place in places):
            continue
        if not is_dns1123_subdomain(name):
            continue
        path = place(document.get("spec"), name, Path("spec"))
        if path is not None:
            yield path, _words(target.partition(".")[0], name, places, list(held))


def _kind_of(resource: str) -> str:
    """``Model.inference.llmkube.dev/v1alpha1`` for the plural; empty where it is not one of ours."""
    plural, _, api_version = resource.partition(".")
    group, _, version = api_version.rpartition("/")
    for name in SERVED.get(group, {}):
        kind = find(api_version, name)
        if kind is not None and kind.resource.plural == plural:
            return f"{name}.{group}/{version}"
    return ""


def _words(kind: str, name: str, places: list[str], held: list[str]) -> str:
    """``held`` are the names that there are, with their namespaces."""
    here = tuple(key.rpartition("/")[2] for key in held if key.rpartition("/")[0] in places)
    elsewhere = [key.rpartition("/")[0] for key in held if key.rpartition("/")[2] == name]
    words = f"{kind} {go_quote(name)} is not among the files"
    if elsewhere:
        return f"{words} in namespace {places[0]}; there is one in {elsewhere[0]}"
    near = closest_name(name, here)
    return f"{words}; did you mean {go_quote(near)}?" if near else f"{words}, which have {', '.join(sorted(here)[:5])}"


def place(value: Any, name: str, path: Path) -> Path | None:
    """Where a name stands as a value."""
    if isinstance(value, dict):
        inner = [place(item, name, path.child(key)) for key, item in value.items()]
    elif isinstance(value, list):
        inner = [place(item, name, path.index(position)) for position, item in enumerate(value)]
    else:
        return path if value == name else None
    return next((found for found in inner if found is not None), None)
