"""Limits of templates: their length, the work of evaluating them, and the size of their output.

Every limit is checked before the work that it limits, so the cost of any spec has a ceiling.
"""

from app.kube.field import Segments
from app.limits import MAX_RENDERED_SPEC_BYTES, MAX_SPEC_ACTIONS, MAX_STEPS, MAX_TEMPLATE_MESSAGE_CHARACTERS

STEP = 16
"""Bytes that are printed, compared or searched in one step."""


class TemplateError(Exception):
    """A template cannot be read or evaluated; ``line`` counts from 1 within its string."""

    text: str
    path: Segments
    """The string, and its place in the spec that is rendered."""

    def __init__(self, message: str, line: int = 0) -> None:
        limit = MAX_TEMPLATE_MESSAGE_CHARACTERS
        super().__init__(message if len(message) <= limit else f"{message[:limit]}…")
        self.line = line


class ReadError(TemplateError):
    """A string that is not a valid template."""


class RefusedError(TemplateError):
    """A template that no other data would make good: it costs too much, or renders to what nothing may contain."""


class SpentError(RefusedError):
    """A bound of the whole spec is passed: nothing more of it may be rendered."""


class Meter:
    """Counts what the templates of one spec cost. Raises :class:`SpentError` as soon as a bound is passed."""

    __slots__ = ("actions", "rendered", "steps")

    def __init__(self) -> None:
        self.actions = 0
        self.rendered = 0
        self.steps = 0

    def read(self, actions: int) -> None:
        self.actions += actions
        if self.actions > MAX_SPEC_ACTIONS:
            limit = f"{MAX_SPEC_ACTIONS} actions"
            raise SpentError(f"the spec has more than {limit}; write out values that are always the same")

    def spend(self, amount: int) -> None:
        """Count bytes that are about to be printed, compared or searched."""
        self.steps += 1 + amount // STEP
        if self.steps > MAX_STEPS:
            limit = f"{MAX_STEPS} steps"
            raise SpentError(f"the templates of the spec take more than {limit}; print single fields, not whole maps")

    def render(self, amount: int) -> None:
        """Count bytes to which a string was rendered."""
        self.rendered += amount
        if self.rendered > MAX_RENDERED_SPEC_BYTES:
            limit = f"{MAX_RENDERED_SPEC_BYTES} bytes"
            raise SpentError(f"the strings of the spec render to more than {limit}; print fewer or shorter fields")


def size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
