"""The manifests of ``examples/``, as the package has them, and the objects of a cluster that they refer to."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import orjson

from app.desk.cluster.kinds import find
from app.desk.cluster.store import outer_key, related_keys
from app.desk.files.manifests import Manifest, parse
from app.kube.base import Json

_DATA = Path(__file__).with_name("catalogue.json")
"""Written by ``make generate`` (``tools/catalogue.py``)."""


def examples() -> list[dict[str, str]]:
    """Return ``name``, ``family``, ``title`` and ``text`` of each example, sorted by family and name."""
    rows: list[dict[str, str]] = _data()["examples"]
    return rows


def installed(manifests: Sequence[Manifest]) -> list[Manifest]:
    """Return the objects of an installation that manifests may read: llmaz' BackendRuntimes, KServe's Gateway.

    Objects that the manifests describe themselves are left out, and so are those of families without a manifest.
    """
    described = {(manifest.kind, manifest.name) for manifest in manifests}
    kinds = {find(manifest.api_version, manifest.kind) for manifest in manifests}
    readable = {key for kind in kinds if kind is not None for key in related_keys(kind).values()}
    return [
        manifest
        for entry in _data()["installed"]
        if not readable.isdisjoint(entry["kinds"])
        for manifest in _parsed(entry["text"])
        if (manifest.kind, manifest.name) not in described and outer_key(manifest.document) in readable
    ]


@cache
def _parsed(text: str) -> list[Manifest]:
    return parse(text, "installed")


@cache
def _data() -> Json:
    data: Json = orjson.loads(_DATA.read_bytes())
    return data
