"""Conditions and the times in them: apimachinery's rules, without mutation. The clock itself is always an argument."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar

import msgspec
from msgspec import Meta

from app.kube.base import Int64
from app.kube.regex import regex

_RFC3339 = regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})")
ConditionStatus = Literal["True", "False", "Unknown"]
MESSAGE_MAX = 32768
"""Maximum length of a condition's message, in characters."""
_UNPRINTABLE = regex(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
"""Characters that move a terminal's cursor, turn the direction of text, end a line, or are invisible."""


def rfc3339(moment: datetime) -> str:
    """Return a time as ``metav1.Time``: UTC, whole seconds."""
    return f"{msgspec.to_builtins(moment.astimezone(UTC))[:19]}Z"


def parse_rfc3339(text: str) -> datetime | None:
    if not _RFC3339.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def seconds_since(text: str | None, now: datetime) -> float | None:
    moment = parse_rfc3339(text) if text else None
    return None if moment is None else (now - moment).total_seconds()


def printable(status: object) -> Any:
    """Return a status as JSON whose strings can be shown: escaped, and no longer than a message may be.

    Names and messages come from other objects of the cluster, which their owners may give any characters.
    """
    text = msgspec.json.encode(status)
    is_plain = text.isascii() and b"\\" not in text and b"\x7f" not in text  # which JSON does not escape
    return status if is_plain and len(text) <= MESSAGE_MAX else _printable(status)


def _printable(status: object) -> Any:
    if isinstance(status, str):
        if not status.isprintable():
            start = status[: MESSAGE_MAX + 1]  # what is cut anyway is not escaped before
            status = _UNPRINTABLE.sub(lambda match: match.group().encode("unicode_escape").decode(), start)
        return _bounded(status)
    if isinstance(status, dict):
        return {key: _printable(value) for key, value in status.items()}
    return [_printable(value) for value in status] if isinstance(status, list | tuple) else status


def _bounded(message: str) -> str:
    return message if len(message) <= MESSAGE_MAX else message[: MESSAGE_MAX - 1] + "…"


class Condition(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """``metav1.Condition``; ``last_transition_time`` is RFC 3339 and moves only with ``status``."""

    type: Annotated[
        str, Meta(description="What the condition is about, in PascalCase.", extra_json_schema={"maxLength": 316})
    ] = ""
    status: Annotated[
        str,
        Meta(description="Whether the condition holds.", extra_json_schema={"enum": ["True", "False", "Unknown"]}),
    ] = ""
    reason: Annotated[
        str,
        Meta(
            description="Why, as one PascalCase word for programs.",
            extra_json_schema={
                "minLength": 1,
                "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
        ),
    ] = ""
    message: Annotated[str, Meta(description="Why, for people.", extra_json_schema={"maxLength": MESSAGE_MAX})] = (
        msgspec.field(default_factory=lambda: "")  # a default that is sent: the schema demands the field
    )
    last_transition_time: Annotated[
        str, Meta(description="When status last changed.", extra_json_schema={"format": "date-time"})
    ] = ""
    observed_generation: Annotated[
        Int64 | None,
        Meta(description="Generation of the object this was judged on."),
    ] = None


class Transition(Protocol):
    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def last_transition_time(self) -> str: ...


ConditionT = TypeVar("ConditionT", bound=Transition)


def find(conditions: Iterable[ConditionT] | None, type_: str) -> ConditionT | None:
    return next((c for c in conditions or () if c.type == type_), None)


def is_true(conditions: Iterable[Transition] | None, type_: str) -> bool:
    condition = find(conditions, type_)
    return condition is not None and condition.status == "True"


def was_ready(conditions: Iterable[Condition] | None, generation: int | None) -> bool:
    """Return whether the last ``Ready`` was true, and of this generation where it has one."""
    ready = find(conditions, "Ready")
    return ready is not None and ready.status == "True" and ready.observed_generation in (None, generation)


def since(
    conditions: Iterable[Transition] | None, type_: str, status: ConditionStatus, reasons: Sequence[str] = ()
) -> str | None:
    """Return when the condition took that status; ``None`` for another status or reason than the given ones."""
    condition = find(conditions, type_)
    if condition is None or condition.status != status or (reasons and condition.reason not in reasons):
        return None
    return condition.last_transition_time


class Ledger(Generic[ConditionT]):
    """The conditions of one status by type, which start from the last ones, so that foreign types are kept in order."""

    def __init__(self, previous: Iterable[ConditionT] | None, now: datetime) -> None:
        self._items = {c.type: c for c in previous or () if c.type and c.status}
        self._now = rfc3339(now)

    def time_of(self, type_: str, status: str) -> str:
        """Return ``lastTransitionTime`` of a condition that takes ``status``: it only moves with the status."""
        old = self._items.get(type_)
        return (old.last_transition_time if old is not None and old.status == status else "") or self._now

    def remove(self, *types: str) -> None:
        for type_ in types:
            self._items.pop(type_, None)

    def get(self, type_: str) -> ConditionT | None:
        return self._items.get(type_)

    def is_true(self, type_: str) -> bool:
        return is_true(self._items.values(), type_)


class Conditions(Ledger[Condition]):
    """Kubernetes' own form: each condition has the generation that it was computed for."""

    def __init__(self, previous: Sequence[Condition] | None, generation: int | None, now: datetime) -> None:
        super().__init__(previous, now)
        self._generation = generation

    def set(self, type_: str, status: ConditionStatus | bool, reason: str, message: str = "") -> None:
        text: ConditionStatus = status if isinstance(status, str) else ("True" if status else "False")
        self._items[type_] = Condition(
            type=type_,
            status=text,
            reason=reason,
            message=_bounded(message),
            last_transition_time=self.time_of(type_, text),
            observed_generation=self._generation,
        )

    def update(self, type_: str, status: ConditionStatus | bool, reason: str, message: str) -> None:
        """Set a condition that exists."""
        if type_ in self._items:
            self.set(type_, status, reason, message)

    def set_while(self, holds: object, type_: str, status: bool, reason: str, message: str) -> None:
        if holds:
            self.set(type_, status, reason, message)
        else:
            self.remove(type_)

    def list(self) -> list[Condition]:
        """Return all conditions; those written by hand, without a time, get the present one, as the schema requires."""
        return [
            c if c.last_transition_time else msgspec.structs.replace(c, last_transition_time=self._now)
            for c in self._items.values()
        ]
