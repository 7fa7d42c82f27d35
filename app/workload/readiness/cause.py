"""A cause of *not ready*: its stage of a pod's life, its message and its reason."""

import re
from enum import IntEnum
from functools import lru_cache

import msgspec

from app.kube.regex import regex
from app.limits import MAX_CAUSE_CHARACTERS

_REASON = regex(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_BLANKS = regex(r"\s+")
_PASSING = regex(
    r"""
    (?:(?<=["/])|(?<=layer\ sha256:)|(?<=/sha256:))[0-9a-f]{64}             # containers, layers of images
    | (?<![0-9a-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])  # uids
    | (?<=-)[4-9bcdf]{8,10}-[2-9b-z]{5}(?![0-9a-z])                         # pods of a Deployment
    | (?:\d{4}-)?(?:\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?Z?              # times
    | (?<=\d):\d{1,5}(?=->) | (?<=\?)X-Amz-[^\s"']+                         # ports of clients, signatures
    | (?<=snapshots/)\d+ | (?<=containerd-mount)\d+ | (?<=pid=)\d+ | (?<![0-9a-z])0x[0-9a-f]+
    """,
    re.VERBOSE,
)
"""Parts of a message that are others each time, and in each pod."""


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
    LATE = 10
    """Pods take longer than they may; they themselves say more."""


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


def steady(text: str) -> str:
    """Return a message of others as one line, without what would change it each time the problem is reported."""
    if len(text) > 4 * MAX_CAUSE_CHARACTERS:
        text = f"{text[: 2 * MAX_CAUSE_CHARACTERS]}{text[-2 * MAX_CAUSE_CHARACTERS :]}"
    return _PASSING.sub("…", shortened(one_line(text), MAX_CAUSE_CHARACTERS))


def shortened(text: str, limit: int) -> str:
    """Truncate the middle of a longer text with an ellipsis: it begins with what it is about, and ends with why."""
    if len(text) <= limit:
        return text
    start = limit // 3
    return f"{text[:start].rstrip()}…{text[start + 1 - limit :].lstrip()}"


_TELLING = (
    *("401", "403", "404", "407", "410", "429", "502", "503", "504", "denied", "unauthorized", "forbidden", "gated"),
    *(
        "not found",
        "no such",
        "no space left",
        "out of memory",
        "insufficient",
        "unrecognized",
        "unsupported",
        "invalid",
    ),
    *("could not resolve", "refused", "timed out", "certificate", "error", "exception", "fatal", "failed", "unable"),
)
"""Words of lines that have a cause, the most telling ones first."""


@lru_cache(maxsize=256)
def telling(output: str, limit: int) -> str:
    """Return the output of a program as one line: if it is longer, its last line, and before it those with a cause."""
    text = one_line(output)
    if len(text) <= limit:
        return text
    lines = [*dict.fromkeys(line for raw in output.splitlines() if (line := one_line(raw)))]
    chosen = {len(lines) - 1: shortened(lines[-1], limit // 2)}
    lower, lower_output = [line.lower() for line in lines[:-1]], output.lower()
    clues = [word for word in _TELLING if word in lower_output]
    ranked = (place for word in clues for place, line in enumerate(lower) if word in line)
    left = limit - len(chosen[len(lines) - 1])
    for place in dict.fromkeys([*ranked, *range(len(lower) - 1, -1, -1)]):
        left -= len(_GAP)
        if left < _MIN_LINE:
            break
        chosen[place] = shortened(lines[place], left)
        left -= len(chosen[place])
    return _GAP.join(chosen[place] for place in sorted(chosen))


_GAP = " … "
_MIN_LINE = 40
"""Fewer characters of a line tell nothing."""


def bounded(text: str, limit: int) -> str:
    """Truncate ``text`` with an ellipsis if it is longer than ``limit``."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
