"""The answer whether a model fits into its memory, with the arithmetic behind it."""

from enum import StrEnum

import msgspec


class FitAnswer(StrEnum):
    """The part of the answer that is certain."""

    FITS = "fits"
    """The memory is enough for the highest estimate."""
    DOES_NOT_FIT = "does not fit"
    """The memory is less than the lowest estimate."""
    CANNOT_KNOW = "cannot know"
    """The memory is between the two, or an input of the estimate is unknown."""


class Asked(msgspec.Struct, frozen=True):
    """What a user says beside the objects."""

    gpu_memory: str = ""
    """The memory of one GPU as a quantity, or its name, in place of what the objects have."""
    facts: object = None
    """What files of the model tell, a :class:`app.workload.fit.modelfacts.ModelFacts`; ``None`` without files."""


NOTHING = Asked()


class Fit(msgspec.Struct, frozen=True):
    answer: FitAnswer
    why: str
    """In one sentence, without the answer."""
    rows: tuple[tuple[str, str, str], ...]
    """The arithmetic: what uses or provides memory, the amount, and its source."""
    enough: tuple[str, ...] = ()
    """GPUs that would be enough, such as ``2 x H100 80 GB``, the smallest first; empty for a model that fits."""

    @property
    def warning(self) -> str:
        advice = f"; enough: {' or '.join(self.enough)}" if self.enough else ""
        return f"the model does not fit: {self.why}{advice} (modelhooks fit)"
