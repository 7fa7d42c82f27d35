"""The presets that every installation has, built once, in the editions of KServe's releases. Source: KS-2.3 and KS-2.7.

A config of the same name, in the service's namespace or the system namespace, replaces its preset. The setting
``kserve_presets`` chooses the edition.
"""

from collections.abc import Mapping
from typing import Any

from app.kserve.constants import OPEN
from app.kserve.spec.merge import Layer
from app.kserve.spec.presets import v017, v020
from app.kserve.spec.presets.edition import LATENCY_PREDICTOR, PIPELINE, TRACING
from app.kserve.spec.template.language import Template
from app.kube.base import Json

SUFFIXES = tuple(v020.PRESETS)
"""The names of the presets without the configured prefix (``kserve-``), the same in every edition."""
PINNED = tuple(s for s in SUFFIXES if s not in (TRACING, LATENCY_PREDICTOR) and not s.endswith(PIPELINE))
"""Names that ``status.annotations`` keeps: the eight that KServe keeps there, too."""


class PresetText(str):
    """A template of a preset, read once. The same string of a user is a plain ``str``, and counts against bounds."""

    __slots__ = ("template",)

    template: Template


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _read(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_read(item) for item in value]
    if not isinstance(value, str) or OPEN not in value:
        return value
    text = PresetText(value)
    text.template = Template(value)
    return text


EDITIONS: Mapping[str, Mapping[str, Json]] = {"v0.20": _read(v020.PRESETS), "v0.17": _read(v017.PRESETS)}
"""Presets by suffix, by edition."""
LATEST = EDITIONS["v0.20"]
ENCRYPTED: Mapping[str, Json] = _read(v020.ENCRYPTED)
"""The latest presets, with TLS."""


def pipelines(chosen: Mapping[str, Layer]) -> set[str]:
    """Return the workloads, ``""`` and ``prefill``, whose pods a built-in preset starts as a pipeline.

    ``chosen``: presets by suffix. A config of a preset's name counts if it has the preset's values.
    """
    editions = (*EDITIONS.values(), ENCRYPTED)
    return {
        "prefill" if "prefill" in suffix else ""
        for suffix, layer in chosen.items()
        if suffix.endswith(PIPELINE) and any(layer.spec == edition[suffix] for edition in editions)
    }
