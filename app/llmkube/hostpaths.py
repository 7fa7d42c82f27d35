"""Which files of a node a Model may name: those below the directories that the operator lists, none by default.

A hostPath volume reads as the kubelet does, so that whoever may create a Model could read any file of any node.
"""

from __future__ import annotations

import posixpath

from app.llmkube.model.types import ModelSpec
from app.llmkube.source import METAL, SourceClass, parse
from app.settings import Settings, variable_name


def refusal(spec: ModelSpec, settings: Settings) -> str:
    """Why the Model's file must not be mounted, and what to do; empty where it may be, or nothing is mounted.

    A metal agent opens the file on its own disk.
    """
    source = parse(spec.source)
    if source.kind is not SourceClass.LOCAL or (spec.hardware and spec.hardware.accelerator == METAL):
        return ""
    path, listed = _normal(source.path), settings.llmkube_allowed_host_paths
    if any(_below(path, _normal(root)) for root in listed):
        return ""
    return (
        f"path {path} is not below a directory that the operator of this cluster allows "
        f"({', '.join(listed) or 'none'}); ask for it to be listed in {variable_name('llmkube_allowed_host_paths')}"
    )


def _normal(path: str) -> str:
    """Without ``.``, ``..`` and repeated slashes; POSIX lets exactly two leading ones mean something else."""
    return posixpath.normpath("/" + path.lstrip("/"))


def _below(path: str, root: str) -> bool:
    return path.startswith(root.rstrip("/") + "/") and path != "/"
