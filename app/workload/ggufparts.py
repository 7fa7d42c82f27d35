"""Models in several GGUF files, ``chat-00001-of-00003.gguf``, which llama.cpp finds by the name of the first one."""

import re
from collections.abc import Sequence

from app.kube.regex import regex

_PART = regex(r"(.*-)([0-9]{5})(-of-([0-9]{5})\.gguf)", re.DOTALL)


def problem(files: Sequence[str]) -> str:
    """Return why llama.cpp cannot load the files, of which it gets the first; empty if it can, or for one file."""
    first = _PART.fullmatch(files[0]) if files else None
    if first is None:
        return ""
    if int(first[2]) != 1:
        return f"llama.cpp begins with part 1 of {int(first[4])}, which must be the first file"
    names = set(files)
    parts = (f"{first[1]}{number:05d}{first[3]}" for number in range(1, int(first[4]) + 1))
    missing = next((part for part in parts if part not in names), "")
    return f"the model has {int(first[4])} parts, and {missing.rpartition('/')[2]} is not fetched" if missing else ""


def parts_of(name: str) -> list[str]:
    """Return the names of all parts of the model that a part's name tells; none for a whole file."""
    part = _PART.fullmatch(name)
    count = int(part[4]) if part is not None else 0
    return (
        [f"{part[1]}{number:05d}{part[3]}" for number in range(1, count + 1)] if part and count <= _MOST_PARTS else []
    )


_MOST_PARTS = 999
