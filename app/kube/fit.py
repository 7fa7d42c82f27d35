"""Whether something fits into the memory that it is given: an answer, with the arithmetic that led to it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Answer(StrEnum):
    """What can be said for certain."""

    FITS = "fits"
    """Even the most that it can need is there."""
    DOES_NOT_FIT = "does not fit"
    """Not even the least that it needs is there."""
    CANNOT_KNOW = "cannot know"
    """It lies between the two, or something that decides it is not known."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What is said of one object."""

    answer: Answer
    why: str
    """In one sentence, without the answer."""
    rows: tuple[tuple[str, str, str], ...]
    """The arithmetic: what takes or gives memory, how much, and how that is known."""
