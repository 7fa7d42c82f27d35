"""The vocabulary of *why not ready*: one cause, its place in a pod's life, and the words it may use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum


class Stage(IntEnum):
    """What holds a pod up; the order of a message's causes, which is that of a pod's life but for the first."""

    QUOTA = 0
    """Pods are refused before they exist: quota, or another rule of the API server. Nothing else matters until then."""
    SPEC = 1
    """What the user wrote contradicts something else in the cluster."""
    MODEL = 2
    """The weights: missing, being downloaded, failed."""
    CLAIM = 3
    """A volume claim is missing or has no volume."""
    SCHEDULING = 4
    """No node takes the pod."""
    IMAGE = 5
    """An image cannot be pulled."""
    CONFIGURATION = 6
    """A container cannot be made: a Secret or ConfigMap is missing, or the command."""
    CRASH = 7
    """A container ends although it should not."""
    PROBE = 8
    """A container runs and does not answer its probe."""
    STARTING = 9
    """Nothing is wrong yet, it only takes its time."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that keeps a workload from being ready.

    ``text`` is for people and names the object; ``reason`` is one PascalCase word for programs, fit for a condition.
    """

    stage: Stage
    text: str
    reason: str


_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_BLANKS = re.compile(r"\s+")


def reason_word(text: str, default: str) -> str:
    """``text`` where a condition may have it as its reason (``OutOfnvidia.com/gpu`` is none), else ``default``."""
    return text if len(text) <= 1024 and _REASON.fullmatch(text) else default


def one_line(text: str) -> str:
    """``text`` with every run of blanks and line ends as one blank."""
    return _BLANKS.sub(" ", text).strip()


def bounded(text: str, limit: int) -> str:
    """``text``, cut with an ellipsis when it is longer."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
