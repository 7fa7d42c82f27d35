"""Documents with one value changed, for tests that change every field."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any


def changed(document: Any, path: Sequence[str | int], value: Any) -> Any:
    """Return the document with the value at that path; ``...`` removes it. Whatever is beside the path is shared."""
    step, *below = path
    new = copy.copy(document)
    if below:
        new[step] = changed(document[step], below, value)
    elif value is not ...:
        new[step] = value
    elif isinstance(step, int) or step in new:
        del new[step]
    return new
