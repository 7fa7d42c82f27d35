"""The ConfigMap ``llmaz-global-config``, which sets the scheduler and the loader's image. Source: LZ-4.7."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.hooks.protocol import get
from app.hooks.reader import read_yaml
from app.kube.objects import ObservedConfigMap
from app.llmaz.names import CONFIG_KEY, CONFIG_MAP, LOADER_IMAGE
from app.llmaz.references import Obstacle
from app.settings import Settings
from app.workload.cause import Cause, Stage


@dataclass(frozen=True, slots=True)
class GlobalConfig:
    """Settings of an operator for all services."""

    scheduler: str = ""
    """Scheduler of pods that name none; empty for the cluster's own."""
    loader_image: str = LOADER_IMAGE


def read(group: Mapping[str, ObservedConfigMap] | None, settings: Settings) -> GlobalConfig | Cause:
    """Return the configuration, the defaults without a ConfigMap, or a cause if it cannot be read."""
    configmap = get(group, CONFIG_MAP, settings.llmaz_system_namespace)
    text = (configmap.data or {}).get(CONFIG_KEY) if configmap is not None else None
    if text is None:
        return GlobalConfig()
    parsed = read_yaml(text, _config)
    if isinstance(parsed, str):
        where = f"ConfigMap {settings.llmaz_system_namespace}/{CONFIG_MAP}, key {CONFIG_KEY}"
        return Cause(Stage.SPEC, f"{where}: {parsed}", Obstacle.GLOBAL_CONFIG_INVALID)
    return parsed


def _config(document: object) -> GlobalConfig | str:
    if document is None:
        document = {}
    if not isinstance(document, dict):
        return "is not a mapping"
    values = [document.get(key) for key in ("scheduler-name", "init-container-image")]
    if not all(value is None or isinstance(value, str) for value in values):
        return "scheduler-name and init-container-image must be strings"
    scheduler, image = (str(value or "") for value in values)
    return GlobalConfig(scheduler, image or LOADER_IMAGE)
