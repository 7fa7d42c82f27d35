"""A cause of *not ready*: its stage of a pod's life, its message and its reason."""

import re
from enum import IntEnum

import msgspec

_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_BLANKS = re.compile(r"\s+")


class Stage(IntEnum):
    """The stage at which a pod is held up. Causes are sorted by it: the first is quota, then comes a pod's life."""

    QUOTA = 0
    """Pods cannot be created: quota, or another rule of the API server."""
    SPEC = 1
    MODEL = 2
    """The weights: missing, being downloaded, failed."""
    CLAIM = 3
    """A volume claim is missing or has no volume."""
    SCHEDULING = 4
    IMAGE = 5
    CONFIGURATION = 6
    """A container cannot be created: a Secret, a ConfigMap or the command is missing."""
    CRASH = 7
    PROBE = 8
    STARTING = 9
    """Nothing has failed."""


class Cause(msgspec.Struct, frozen=True):
    """A reason why a workload is not ready.

    ``text`` is a message that names the object; ``reason`` is a valid reason of a condition, in PascalCase.
    """

    stage: Stage
    text: str
    reason: str


def reason_word(text: str, default: str) -> str:
    """Return ``text`` if it is a valid reason of a condition (unlike ``OutOfnvidia.com/gpu``), else ``default``."""
    return text if len(text) <= 1024 and _REASON.fullmatch(text) else default


def one_line(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()


def bounded(text: str, limit: int) -> str:
    """Truncate ``text`` with an ellipsis if it is longer than ``limit``."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
