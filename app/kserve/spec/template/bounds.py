"""What templates may cost: bounds on their texts, on the work of evaluating them and on what they render to.

They hold wherever a text comes from: a service, a config that it names, or annotations that an action prints. Every
bound is checked before the work that it bounds is done, so the cost of a spec has a ceiling whatever is in it.
"""

from __future__ import annotations

MAX_TEXT = 64 * 1024
"""Characters of one text with actions: twenty times the longest of the presets, and room for a chat template."""
MAX_ACTIONS = 256
"""Actions of one text: twenty times those of the longest preset."""
MAX_SPEC_ACTIONS = 500
"""Actions that are read in all texts of one spec: one for each of five hundred variables, and read in 0.06 s."""
MAX_NESTING = 16
"""``if`` within ``if``: nobody can read more, and an interpreter has only so many frames."""
MAX_TOKENS = 32
"""Words, literals, parentheses and pipes of one action. They bound how deep parentheses and pipes can nest, too."""
MAX_NUMBER = 20
"""Characters of a number: those of the smallest 64-bit integer, the largest that Go can read here."""
MAX_RENDERED_TEXT = 128 * 1024
"""Bytes that one text may render to: the longest argument or variable that Linux starts a process with."""
MAX_RENDERED_SPEC = 192 * 1024
"""Bytes that all texts of one spec may render to: what a spec without templates may have
(:data:`app.kube.limits.MAX_SPEC_BYTES`)."""
MAX_STEPS = 50_000
"""Steps on the way to that, intermediate results included: one for each value that is printed and for each
:data:`STEP` bytes that are printed, compared or searched. Four times what may come out, and done in 0.06 s."""
STEP = 16


MAX_MESSAGE = 300
"""Characters of what is said of one text, which may quote it."""


class TemplateError(Exception):
    """A template cannot be read or evaluated; ``line`` counts from 1 within its string."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]}…")
        self.line = line


class ReadError(TemplateError):
    """A text that is no template."""


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
        """A text with so many actions was read."""
        self.actions += actions
        if self.actions > MAX_SPEC_ACTIONS:
            raise SpentError(
                f"the spec has more than {MAX_SPEC_ACTIONS} actions; write out values that are always the same"
            )

    def spend(self, amount: int) -> None:
        """So many bytes are about to be printed, compared or searched."""
        self.steps += 1 + amount // STEP
        if self.steps > MAX_STEPS:
            raise SpentError(
                f"the templates of the spec take more than {MAX_STEPS} steps; print single fields, not whole maps"
            )

    def render(self, amount: int) -> None:
        """A text was rendered to so many bytes."""
        self.rendered += amount
        if self.rendered > MAX_RENDERED_SPEC:
            raise SpentError(
                f"the texts of the spec render to more than {MAX_RENDERED_SPEC} bytes; print fewer or shorter fields"
            )


def size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
