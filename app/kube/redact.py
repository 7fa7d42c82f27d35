"""What a message must not repeat."""

from __future__ import annotations

import re

_CREDENTIALS = re.compile(r"(?<=//)[^/]*@")


def without_user(address: str) -> str:
    """An address as a message may have it: its user and password are for nobody else to read (HTTP-X32)."""
    return _CREDENTIALS.sub("…@", address)
