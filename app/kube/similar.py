"""Which of the words that a place takes somebody meant by another one."""

from __future__ import annotations

import difflib
import re
from functools import lru_cache

MAX_WORD = 64
"""Words far longer than any of ours are not worth the search."""

_SYNONYMS = {
    "amd": "rocm",
    "apple": "metal",
    "ggml": "llamacpp",
    "gpu": "cuda",
    "llama": "llamacpp",
    "mps": "metal",
    "nvidia": "cuda",
}
"""Other words for values, by what is written; they count only where the value is among those that are supported."""


def nearest(word: str, known: tuple[str, ...]) -> str:
    """The word of ``known`` that is meant, or empty: by case and signs, by another name, by distance, in that order."""
    return _nearest(word, known) if 0 < len(word) <= MAX_WORD else ""


@lru_cache(maxsize=1024)
def _nearest(word: str, known: tuple[str, ...]) -> str:
    plain = {_plain(one): one for one in reversed(known)}
    if _plain(word) in plain:
        return plain[_plain(word)]
    if _SYNONYMS.get(word.lower()) in known:
        return _SYNONYMS[word.lower()]
    near = difflib.get_close_matches(_plain(word), list(plain), n=1, cutoff=0.6)
    return plain[near[0]] if near else ""


def _plain(word: str) -> str:
    """Letters and digits in lower case: ``model_ref`` and ``modelRef`` are one word to people."""
    return re.sub(r"[^a-z0-9]", "", word.lower()) or word
