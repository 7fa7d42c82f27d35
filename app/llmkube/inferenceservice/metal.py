"""A service that an agent on a Mac runs: how many answer, from the EndpointSlices the agent writes.

Source: llmkube spec 5.5 and appendix C. Nothing is made in the cluster for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.kube.conditions import seconds_since
from app.llmkube import names
from app.llmkube.inferenceservice.observed import ObservedSlice
from app.llmkube.inferenceservice.scheduling import Scheduling
from app.llmkube.inferenceservice.types import SchedulingStatus

HEARTBEAT_TIMEOUT = 180.0
"""Seconds after which an agent that was not heard of counts as gone. It writes every 30 s."""
RESYNC = 90.0
"""When to look again: no event tells that a heartbeat grows old."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What the slices say."""

    ready: int
    """Addresses that answer."""
    scheduling: Scheduling
    """Why none does, when none does."""
    resync: float | None


def heartbeat(slices: Sequence[ObservedSlice], now: datetime) -> Heartbeat:
    """Reads the slices: the freshest heartbeat counts; without any, as older agents write them, they are trusted."""
    texts = [text for slice_ in slices if (text := (slice_.metadata.annotations or {}).get(names.METAL_HEARTBEAT))]
    ages = {text: age for text in texts if (age := seconds_since(text, now)) is not None}
    if texts and not ages:
        return Heartbeat(0, _stale(f"the metal agent's heartbeat {texts[0]!r} is no time"), None)
    if ages:
        freshest = min(ages, key=lambda text: ages[text])
        if ages[freshest] > HEARTBEAT_TIMEOUT:
            return Heartbeat(0, _stale(f"the metal agent was last heard of at {freshest}; its host may be off"), RESYNC)
    return Heartbeat(sum(map(_answering, slices)), _WAITING, RESYNC if ages else None)


_WAITING = Scheduling(
    status=SchedulingStatus.WAITING_FOR_METAL_AGENT,
    message="waiting for a metal agent to fetch the model and register its address",
)


def _stale(message: str) -> Scheduling:
    return Scheduling(status=SchedulingStatus.AGENT_HEARTBEAT_STALE, message=message)


def _answering(slice_: ObservedSlice) -> int:
    return sum(
        len(endpoint.addresses or ()) for endpoint in slice_.endpoints or () if endpoint.conditions.ready is not False
    )
