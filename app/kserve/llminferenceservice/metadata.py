"""Labels and annotations: what goes from a service to its workloads, what only to their pods. Source: kserve spec 3.4.

Object metadata, pod labels and the selector are three maps. The selector has the base keys only, with the values that
the pods finally carry (3.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.kserve.names import PROPAGATED_ANNOTATIONS, PROPAGATED_LABELS, PROPAGATED_LWS_ANNOTATIONS

Labels = dict[str, str]


@dataclass(frozen=True, slots=True)
class Propagated:
    """What a service passes on."""

    labels: Labels
    annotations: Labels
    group_annotations: Labels
    """As ``annotations``, for LeaderWorkerSet objects and their pods."""


def propagated(labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None) -> Propagated:
    """From a service's own metadata."""
    notes = annotations or {}
    return Propagated(
        labels=_with_prefix(labels or {}, PROPAGATED_LABELS),
        annotations=_with_prefix(notes, PROPAGATED_ANNOTATIONS),
        group_annotations=_with_prefix(notes, (*PROPAGATED_ANNOTATIONS, *PROPAGATED_LWS_ANNOTATIONS)),
    )


def _with_prefix(values: Mapping[str, str], prefixes: Sequence[str]) -> Labels:
    return {key: value for key, value in values.items() if key.startswith(tuple(prefixes))}


def laid_over(*maps: Mapping[str, str] | None) -> Labels:
    """All the maps, later ones first."""
    return {key: value for values in maps for key, value in (values or {}).items()}


def selector(base: Mapping[str, str], pods: Mapping[str, str]) -> Labels:
    """The selector of a workload whose pods carry ``pods``."""
    return {key: pods[key] for key in base}
