"""Conditions: apimachinery's rules, without mutation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from app.kube.time import rfc3339

MESSAGE_MAX = 32768
"""Longest message the condition schema accepts, in characters."""

ConditionStatus = Literal["True", "False", "Unknown"]


class Condition(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """``metav1.Condition``; ``last_transition_time`` is RFC 3339 and moves only with ``status``.

    The limits are the schema's. Decoding does not enforce them: what others wrote is read as it is.
    """

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
        int | None,
        Meta(description="Generation of the object this was judged on.", extra_json_schema={"format": "int64"}),
    ] = None


def find(conditions: Iterable[Condition] | None, type_: str) -> Condition | None:
    """The condition of that type, if there is one."""
    return next((c for c in conditions or () if c.type == type_), None)


def is_true(conditions: Iterable[Condition] | None, type_: str) -> bool:
    found = find(conditions, type_)
    return found is not None and found.status == "True"


class Conditions:
    """The conditions of one status while it is judged anew.

    Starts from what was last written, so that foreign types survive, order stays, and a transition time moves only when
    ``status`` does.
    """

    def __init__(self, previous: Sequence[Condition] | None, generation: int | None, now: datetime) -> None:
        self._items = {c.type: c for c in previous or () if c.type and c.status}
        self._generation = generation
        self._now = rfc3339(now)

    def set(self, type_: str, status: ConditionStatus | bool, reason: str, message: str = "") -> None:
        """Write one condition."""
        text: ConditionStatus = status if isinstance(status, str) else ("True" if status else "False")
        old = self._items.get(type_)
        kept = old is not None and old.status == text and old.last_transition_time
        self._items[type_] = Condition(
            type=type_,
            status=text,
            reason=reason,
            message=message if len(message) <= MESSAGE_MAX else message[: MESSAGE_MAX - 1] + "…",
            last_transition_time=old.last_transition_time if old is not None and kept else self._now,
            observed_generation=self._generation,
        )

    def remove(self, *types: str) -> None:
        for type_ in types:
            self._items.pop(type_, None)

    def get(self, type_: str) -> Condition | None:
        return self._items.get(type_)

    def is_true(self, type_: str) -> bool:
        found = self._items.get(type_)
        return found is not None and found.status == "True"

    def list(self) -> list[Condition]:
        """All conditions; those without a time (written by hand) get the present one, which the schema demands."""
        return [
            c if c.last_transition_time else msgspec.structs.replace(c, last_transition_time=self._now)
            for c in self._items.values()
        ]
