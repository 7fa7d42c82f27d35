"""Which presets a service gets, and under which names. Source: kserve spec 2.3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.kserve import presets
from app.kserve.names import PIN_PREFIX
from app.kube.base import Json
from app.kube.merge import find


def pinned(previous: Mapping[str, str], prefix: str) -> dict[str, str]:
    """``status.annotations``: the preset names that this service keeps, whatever a later release calls its own."""
    pins = dict(previous)
    for suffix in presets.PINNED:
        if not pins.get(PIN_PREFIX + suffix):
            pins[PIN_PREFIX + suffix] = prefix + suffix
    return pins


def choose_presets(specs: Sequence[Json]) -> list[str]:
    """Suffixes of the presets that a service of these specs gets, in merge order (2.3)."""
    chosen = []
    if _any(specs, "router", "scheduler") is not None and not _any(specs, "router", "scheduler", "pool", "ref", "name"):
        chosen.append(presets.SCHEDULER)
    if _any(specs, "router", "route") is not None and not _any(specs, "router", "route", "http", "refs"):
        chosen.append(presets.ROUTE)
    worker = _any(specs, "worker") is not None
    if _any(specs, "prefill") is None:
        return chosen + _workload_preset(
            specs, worker, (presets.TEMPLATE, presets.WORKER_DATA_PARALLEL, presets.WORKER_PIPELINE_PARALLEL)
        )
    chosen += _workload_preset(
        specs,
        _any(specs, "prefill", "worker") is not None,
        (
            presets.PREFILL_TEMPLATE,
            presets.PREFILL_WORKER_DATA_PARALLEL,
            presets.PREFILL_WORKER_PIPELINE_PARALLEL,
        ),
        "prefill",
    )
    return chosen + _workload_preset(
        specs,
        worker,
        (presets.DECODE_TEMPLATE, presets.DECODE_WORKER_DATA_PARALLEL, presets.DECODE_WORKER_PIPELINE_PARALLEL),
    )


def _workload_preset(specs: Sequence[Json], worker: bool, suffixes: tuple[str, str, str], *base: str) -> list[str]:
    if not worker:
        return [suffixes[0]]
    if _any(specs, *base, "parallelism", "data") or _any(specs, *base, "parallelism", "dataLocal"):
        return [suffixes[1]]
    return [suffixes[2]] if _any(specs, *base, "parallelism", "pipeline") else []


def _any(specs: Sequence[Json], *path: str) -> Any:
    """What stands at ``path`` in any of the specs: a true value, else an empty one, ``None`` where there is none."""
    found = None
    for spec in specs:
        value = find(spec, path)
        if value is not None:
            found = value
            if value:
                break
    return found
