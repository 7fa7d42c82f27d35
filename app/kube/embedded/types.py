"""The fields of Kubernetes' own types, and the releases that keep them and take their values.

Written by ``python -m tools.embedded_types`` and ``python -m tools.field_releases``.
"""

from pathlib import Path

import msgspec

RELEASE = "1.37"
"""The release whose API server described the fields."""
NEVER = "never"


class EmbeddedField(msgspec.Struct, frozen=True):
    type: str
    container: str = ""
    """``[]`` for a list and ``{}`` for a map of the type."""
    required: bool = False
    merge_key: str = ""
    """The field by which a strategic merge tells the items of a list apart."""
    keys: tuple[str, ...] = ()
    """The fields by which a server-side apply does so; a list without them is one value there."""
    set: bool = False
    """True if the items of a list are their own keys (``listType: set``)."""
    atomic: bool = False
    """True if a server-side apply replaces the object as a whole."""
    default: str | int | bool | None = None
    since: str = ""
    """The first release that keeps the field, where 1.30 drops it; ``never`` where each needs a feature gate for it."""

    newer: str = ""
    """A pattern of the values that not every API server takes."""
    newer_since: str = ""
    """The first release that takes them, as in ``since``."""

    @property
    def release(self) -> str:
        if not self.since:
            return ""
        return "Kubernetes has it behind a feature gate" if self.since == NEVER else f"Kubernetes {self.since} has it"

    def is_dropped_by(self, release: str = "") -> bool:
        """Report whether an API server drops the field without an error; without a release, one of :data:`RELEASE`."""
        return bool(self.since) and is_before(release, self.since)


def is_before(release: str, first: str) -> bool:
    """Report whether a release lacks what ``first`` is the first to have; without a release, :data:`RELEASE`."""
    return first == NEVER or not is_since(release or RELEASE, first)


def is_since(release: str, first: str) -> bool:
    """Report whether a release such as ``1.34`` is the first one or newer."""
    return _numbers(release) >= _numbers(first)


def _numbers(release: str) -> list[int]:
    return [int(part) for part in release.split(".")]


_Table = dict[str, dict[str, dict[str, object]]]


def _tables() -> dict[str, dict[str, EmbeddedField]]:
    described, releases = (
        msgspec.json.decode(Path(__file__).with_name(name).read_bytes(), type=_Table)
        for name in ("types.json", "field_releases.json")
    )
    for type_, fields in releases.items():
        entries = described.setdefault(type_, {})
        entries.update({name: {**entries.get(name, {}), **form} for name, form in fields.items()})
    return msgspec.convert(described, dict[str, dict[str, EmbeddedField]])


TYPES = _tables()
