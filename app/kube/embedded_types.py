"""The fields of Kubernetes' own types: ``embedded_types.json``, written by ``python -m tools.embedded_types``."""

from pathlib import Path

import msgspec


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
    """Whether the items of a list are its own keys."""
    atomic: bool = False
    """Whether an object is one value to a server-side apply."""
    default: str | int | bool | None = None


TYPES = msgspec.json.decode(
    Path(__file__).with_name("embedded_types.json").read_bytes(), type=dict[str, dict[str, EmbeddedField]]
)
