"""The examples of the package, and the objects of a cluster that they refer to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from app.cli.manifests import Manifest, parse

_DATA = Path(__file__).with_name("catalogue.json")
"""Written by ``make generate`` (``tools/catalogue.py``)."""


def examples() -> list[dict[str, str]]:
    """Those of the repository, by family and name: ``name``, ``family``, ``title`` and ``text``."""
    found: list[dict[str, str]] = _data()["examples"]
    return found


def installed(manifests: Sequence[Manifest]) -> list[Manifest]:
    """Return the objects of a cluster that the examples need: llmaz' BackendRuntimes, KServe's Gateway and settings.

    Objects that the manifests describe themselves are left out.
    """
    own = {(one.kind, one.name) for one in manifests}
    return [one for one in _installed() if (one.kind, one.name) not in own]


@cache
def _installed() -> list[Manifest]:
    return parse(_data()["installed"], "installed")


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = orjson.loads(_DATA.read_bytes())
    return data
