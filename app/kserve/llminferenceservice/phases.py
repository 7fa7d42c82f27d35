"""What the phases of a sync hand to each other: children, and one finding for each condition. Source: kserve spec 9.4.

A sync goes through settings, merge, workloads and router. A phase that fails keeps the observed children of its own and
of later phases, and leaves their conditions as they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.kserve.llminferenceservice.findings import Finding
from app.kserve.llminferenceservice.types import Address
from app.workload.cause import Cause
from app.workload.waiting import NOTHING, Outstanding


@dataclass(frozen=True, slots=True)
class WorkloadResult:
    """The workload phase: model servers and their Service."""

    children: Sequence[Any]
    findings: Mapping[str, Finding]
    """By condition type; a workload condition that is not among them does not apply and is removed."""
    causes: Sequence[Cause] = ()
    """Why pods are not ready, for ``Ready``'s message."""
    failed: bool = False
    """The phase stopped: observed workload and router children are kept, and conditions not in ``findings`` too."""


@dataclass(frozen=True, slots=True)
class RouterResult:
    """The router phase: endpoint picker, pool and route."""

    children: Sequence[Any]
    """With what is kept of the observed ones, where the phase stopped."""
    findings: Mapping[str, Finding | None]
    """By condition type; ``None`` removes a condition, and one that is not among them stays as it was."""
    url: str = ""
    addresses: Sequence[Address] | None = ()
    """``None``: they and ``url`` stay as they were."""
    causes: Sequence[Cause] = ()
    failed: bool = False
    """The phase stopped before its end."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that the status of one sync is made of (:func:`app.kserve.llminferenceservice.status.status`).

    ``None`` stands for a phase that was not reached: its conditions stay as they were, ``Unknown`` on a new object.
    """

    pins: Mapping[str, str]
    presets: Finding | None
    """``PresetsCombined``."""
    workloads: WorkloadResult | None
    router: RouterResult | None
    error: Finding | None = None
    """Why ``Ready`` is false before any phase: an invalid spec, or settings that cannot be read."""
    stopped: bool = False
    outstanding: Outstanding = NOTHING
    """Children that the answer asks for and that are not there, or not as it wants them."""
