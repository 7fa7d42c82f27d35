"""Bounds of YAML, checked before its nodes are built.

libyaml builds nested nodes recursively in C, without a limit.
"""

from typing import Any

import yaml

from app.limits import MAX_DOCUMENT_DEPTH, MAX_DOCUMENT_VALUES

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
TOO_DEEP = f"nested too deeply; must have at most {MAX_DOCUMENT_DEPTH} levels"
TOO_MANY = f"too many values (aliases that multiply?); must have at most {MAX_DOCUMENT_VALUES}"


class ExcessError(yaml.YAMLError):
    def __init__(self, reason: str, event: yaml.Event) -> None:
        super().__init__(reason)
        self.reason, self.event = reason, event


def check_bounds(text: str) -> None:
    """Raise :class:`ExcessError` at the first event that exceeds a bound of its document."""
    depth = values = 0
    for event in yaml.parse(text, LOADER):
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentStartEvent):
            values = 0
        elif isinstance(event, yaml.NodeEvent):
            values += 1
            depth += isinstance(event, yaml.CollectionStartEvent)
            if depth > MAX_DOCUMENT_DEPTH + 1:
                raise ExcessError(TOO_DEEP, event)
            if values > MAX_DOCUMENT_VALUES:
                raise ExcessError(TOO_MANY, event)
