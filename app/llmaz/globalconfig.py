"""The family's ConfigMap: which scheduler and which loader image. Source: LZ-4.7."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import yaml

from app.hooks.protocol import one
from app.kube.objects import ObservedConfigMap
from app.llmaz.names import CONFIG_KEY, CONFIG_MAP, LOADER_IMAGE
from app.llmaz.references import Obstacle
from app.settings import Settings
from app.workload.cause import Cause, Stage

MAX_TEXT = 64 * 1024
"""A longer text is no configuration, and would take seconds to parse."""


@dataclass(frozen=True, slots=True)
class GlobalConfig:
    """What an operator set for all services."""

    scheduler: str = ""
    """Scheduler of pods that name none; empty for the cluster's own."""
    loader_image: str = LOADER_IMAGE


def read(group: Mapping[str, ObservedConfigMap] | None, settings: Settings) -> GlobalConfig | Cause:
    """The configuration; our defaults where there is none; a cause where there is one that cannot be read."""
    found = one(group, CONFIG_MAP, settings.llmaz_system_namespace)
    text = (found.data or {}).get(CONFIG_KEY) if found is not None else None
    if text is None:
        return GlobalConfig()
    parsed = _parse(text) if len(text) <= MAX_TEXT else f"is longer than {MAX_TEXT} characters"
    if isinstance(parsed, str):
        where = f"ConfigMap {settings.llmaz_system_namespace}/{CONFIG_MAP}, key {CONFIG_KEY}"
        return Cause(Stage.SPEC, f"{where}: {parsed}", Obstacle.GLOBAL_CONFIG_INVALID)
    return parsed


class _Loader(yaml.SafeLoader):
    """YAML without merge keys (``<<``): ten lines with them can stand for more values than memory holds."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Leaves such a key for what it is, and nothing can be made of it."""


@lru_cache(maxsize=16)
def _parse(text: str) -> GlobalConfig | str:
    try:
        document = _Loader(text).get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError):
        return "is not valid YAML, or has merge keys (<<)"
    if document is None:
        document = {}
    if not isinstance(document, dict):
        return "is not a mapping"
    values = [document.get(key) for key in ("scheduler-name", "init-container-image")]
    if not all(value is None or isinstance(value, str) for value in values):
        return "scheduler-name and init-container-image must be strings"
    scheduler, image = (str(value or "") for value in values)
    return GlobalConfig(scheduler, image or LOADER_IMAGE)
