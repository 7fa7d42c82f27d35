"""Times as Kubernetes writes them. The clock itself is always an argument."""

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=16)
def rfc3339(moment: datetime) -> str:
    """``metav1.Time``: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_rfc3339(text: str) -> datetime | None:
    """The moment, or ``None`` when the text is no RFC 3339 time with a zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def seconds_since(text: str | None, now: datetime) -> float | None:
    """Age in seconds of a time written by Kubernetes, or ``None`` when there is none."""
    moment = parse_rfc3339(text) if text else None
    return None if moment is None else (now - moment).total_seconds()
