"""Times as Kubernetes writes them. The clock itself is always an argument."""

import re
from datetime import UTC, datetime
from functools import lru_cache

_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
)
"""Of the forms that Python reads, the one that Go reads too."""


@lru_cache(maxsize=16)
def rfc3339(moment: datetime) -> str:
    """``metav1.Time``: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_rfc3339(text: str) -> datetime | None:
    """The moment, or ``None`` when the text is no RFC 3339 time with a zone."""
    if not _RFC3339.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def seconds_since(text: str | None, now: datetime) -> float | None:
    """Age in seconds of a time written by Kubernetes, or ``None`` when there is none."""
    moment = parse_rfc3339(text) if text else None
    return None if moment is None else (now - moment).total_seconds()
