"""Arranges the fields of a kind in tables of a readable size: one per large object, and repeated objects only once."""

from __future__ import annotations

from collections.abc import Mapping

Rows = Mapping[str, tuple[str, ...]]
"""The cells of each field by its path, for example ``scaling.wva.keda.fallback.replicas``."""

LARGE_OBJECT = 6
"""The number of fields from which an object has its own table."""


def without_repeats(rows: Rows) -> Rows:
    """Replace the fields of an object that an earlier object has too by one row that names the earlier one."""
    earlier: dict[tuple[tuple[str, tuple[str, ...]], ...], str] = {}
    repeats: dict[str, str] = {}
    for path in _objects(rows):
        fields = tuple((field, cells) for field, cells in _below(rows, path).items())
        if len(fields) > 1 and not _owner(repeats, path):
            original = earlier.setdefault(fields, path)
            if original != path:
                repeats[path] = original
    return {
        owner or field: ("object", "", f"The fields of `{repeats[owner]}`.") if owner else cells
        for field, cells in rows.items()
        for owner in [_owner(repeats, field)]
    }


def tables(rows: Rows) -> dict[str, Rows]:
    """Group fields by the object whose table they are in, with their paths below it; ``""`` is the spec."""
    owners: dict[str, str] = {}
    for path in sorted(_objects(rows), key=lambda path: path.count("."), reverse=True):
        fields = [field for field in rows if field.startswith(f"{path}.") and field not in owners]
        if len(fields) >= LARGE_OBJECT:
            owners.update(dict.fromkeys(fields, path))
    grouped: dict[str, dict[str, tuple[str, ...]]] = {"": {}}
    for field, cells in rows.items():
        path = owners.get(field, "")
        grouped.setdefault(path, {})[field.removeprefix(f"{path}.")] = cells
    return dict(grouped)


def _objects(rows: Rows) -> list[str]:
    """Return the paths of all objects with named fields, outer ones first."""
    names = [field.split(".") for field in rows]
    return list(dict.fromkeys(".".join(parts[:end]) for parts in names for end in range(1, len(parts))))


def _below(rows: Rows, path: str) -> Rows:
    return {field.removeprefix(path): cells for field, cells in rows.items() if field.startswith(f"{path}.")}


def _owner(objects: Mapping[str, str], field: str) -> str:
    """Return the object that has a field, or an empty string."""
    return next((path for path in objects if field.startswith(f"{path}.")), "")
