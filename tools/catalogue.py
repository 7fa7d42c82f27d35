"""Generates the catalogue in the package: the examples, and the objects of a cluster that they refer to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from app.desk.cluster.store import outer_key
from app.desk.files.manifests import parse

FAMILIES = ("kserve", "llmaz", "llmkube")
CLUSTER = "cluster"
"""Folder of a family's examples with the objects that exist in the cluster."""


def text(root: Path) -> str:
    """Return the content of ``app/desk/cluster/catalogue.json``."""
    runtimes = [p for p in sorted((root / "manifests" / "llmaz-runtimes").glob("*.yaml")) if p.stem != "kustomization"]
    files = [path for family in FAMILIES for path in sorted((root / "examples" / family).rglob("*.yaml"))]
    present = [*runtimes, *(path for path in files if path.parent.name == CLUSTER)]
    shown = [_example(path, root / "examples") for path in files if path.parent.name != CLUSTER]
    shown.sort(key=lambda example: ("/rejected/" in example["name"], example["name"]))
    data = {"examples": shown, "installed": [_installed(path) for path in present]}
    return orjson.dumps(data, option=orjson.OPT_INDENT_2).decode() + "\n"


def _installed(path: Path) -> dict[str, Any]:
    """Return the content of a file with Metacontroller's keys of the kinds in it, by which commands choose files."""
    content = path.read_text(encoding="utf-8")
    kinds = {outer_key(manifest.document): None for manifest in parse(content, str(path))}
    return {"kinds": [*kinds], "text": content}


def _example(path: Path, root: Path) -> dict[str, Any]:
    content, name = path.read_text(encoding="utf-8"), path.relative_to(root).with_suffix("").as_posix()
    return {"name": name, "family": name.partition("/")[0], "title": _title(content), "text": content}


def _title(content: str) -> str:
    """Return the first sentence of the comment at the start of a file."""
    lines: list[str] = []
    for line in content.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return " ".join(lines).partition(". ")[0].removesuffix(".")
