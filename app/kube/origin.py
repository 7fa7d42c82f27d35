"""The values of a child by readable paths, and the source of each: what ``modelhooks explain`` prints."""

from collections.abc import Iterator
from typing import NamedTuple

from app.kube.base import Json
from app.kube.field import Path, Segments

KEYS = ("name", "containerPort", "port", "mountPath", "key", "type")
"""Fields that can identify the items of a list; the first that all items have, with distinct values, does."""


def leaves(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    """Yield the scalars (and empty lists and maps) of a value with their paths."""
    return ((where, leaf) for where, _, leaf in located(value, path))


def located(value: object, path: Path) -> list[tuple[Path, Segments, object]]:
    """Return :func:`leaves` with their places, which unlike the paths have no names of items."""
    locations: list[tuple[Path, Segments, object]] = []
    _locate(value, path, (), locations)
    return locations


def _locate(value: object, path: Path, segments: Segments, found: list[tuple[Path, Segments, object]]) -> None:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            _locate(item, path.member(key), (*segments, key), found)
    elif isinstance(value, list) and value:
        key = item_key(value)
        for position, item in enumerate(value):
            where = path.key(str(item[key])) if key else path.index(position)
            _locate(item, where, (*segments, position), found)
    else:
        found.append((path, segments, value))


def item_key(*lists: list[Json]) -> str:
    """Return the field that names the items of all the lists, or an empty string."""
    items = [item for listed in lists for item in listed]
    if not all(isinstance(item, dict) for item in items):
        return ""
    for key in KEYS:
        if all(isinstance(item.get(key), (str, int)) for item in items) and all(
            len({str(item[key]) for item in listed}) == len(listed) for listed in lists
        ):
            return key
    return ""


class Origin(NamedTuple):
    """One value of a child, and who set it.

    ``path`` begins with the child: ``Deployment/chat spec.template.spec.containers[main].image``. ``source`` is
    readable: ``spec.image``, ``LLMInferenceServiceConfig/shared spec.template``, ``preset kserve-config-llm-template``.
    """

    path: str
    value: object
    source: str
