"""The examples of the package, and the objects of a cluster that they refer to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import orjson

from app.cli.manifests import Manifest, parse
from app.kube.base import Json

_DATA = Path(__file__).with_name("catalogue.json")
"""Written by ``make generate`` (``tools/catalogue.py``)."""


def examples() -> list[dict[str, str]]:
    """Those of the repository, by family and name: ``name``, ``family``, ``title`` and ``text``."""
    rows: list[dict[str, str]] = _data()["examples"]
    return rows


def installed(manifests: Sequence[Manifest]) -> list[Manifest]:
    """Return the objects of a cluster that the examples need: llmaz' BackendRuntimes, KServe's Gateway and settings.

    Objects that the manifests describe themselves are left out.
    """
    described = {(manifest.kind, manifest.name) for manifest in manifests}
    return [manifest for manifest in _installed() if (manifest.kind, manifest.name) not in described]


@cache
def _installed() -> list[Manifest]:
    return parse(_data()["installed"], "installed")


@cache
def _data() -> Json:
    data: Json = orjson.loads(_DATA.read_bytes())
    return data
