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


TYPES = msgspec.json.decode(
    Path(__file__).with_name("embedded_types.json").read_bytes(), type=dict[str, dict[str, EmbeddedField]]
)
