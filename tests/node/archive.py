"""Images as a docker archive, made from directories; layers that images share are stored once."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_MADE_BY_THE_RUNTIME = ("dev", "proc", "sys")


@dataclass(frozen=True)
class Image:
    """An image of some layers (directories, lowest first) and a configuration as the image specification has it."""

    name: str
    layers: Sequence[Path]
    config: dict[str, Any]


def write(path: Path, images: Sequence[Image]) -> None:
    """Write images as one archive, complete or not at all. Everything in them belongs to root."""
    scratch = path.with_suffix(".part")
    digests: dict[Path, str] = {}
    manifest = []
    with tarfile.open(scratch, "w") as archive:
        for image in images:
            for layer in image.layers:
                if layer not in digests:
                    digests[layer] = _add_layer(archive, layer, path.with_suffix(".layer"))
            config = _config(image, [digests[layer] for layer in image.layers])
            name = f"{hashlib.sha256(config).hexdigest()}.json"
            _add_bytes(archive, name, config)
            layers = [f"{digests[layer]}/layer.tar" for layer in image.layers]
            manifest.append({"Config": name, "RepoTags": [image.name], "Layers": layers})
        _add_bytes(archive, "manifest.json", json.dumps(manifest).encode())
    scratch.rename(path)


def _config(image: Image, digests: Sequence[str]) -> bytes:
    """The image's configuration: how to run it, and its layers."""
    return json.dumps(
        {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": image.config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
            "history": [{"created_by": "tests.node.archive"} for _ in digests],
        }
    ).encode()


def _add_layer(archive: tarfile.TarFile, root: Path, scratch: Path) -> str:
    """Add a directory as a layer; its SHA-256."""
    with tarfile.open(scratch, "w", format=tarfile.PAX_FORMAT) as layer:
        for entry in sorted(root.iterdir()):
            layer.add(entry, entry.name, filter=_of_root, recursive=entry.name not in _MADE_BY_THE_RUNTIME)
    with scratch.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    archive.add(scratch, f"{digest}/layer.tar")
    scratch.unlink()
    return digest


def _of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))
