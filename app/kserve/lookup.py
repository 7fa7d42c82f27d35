"""Looking up configs among related objects: the service's namespace, the system namespace, the presets (2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from app.hooks.protocol import Parent, one
from app.hooks.reader import read_related
from app.kserve import presets
from app.kserve.document import document
from app.kserve.layers import CombineError, Layer, MissingConfigMapError
from app.kserve.llminferenceserviceconfig.types import LLMInferenceServiceConfigSpec
from app.kserve.names import SYSTEM_SCHEDULER_CONFIG_PREFIX
from app.kube import field
from app.kube.objects import ObservedConfigMap

Json = dict[str, Any]

DIRECTIVE = b'"$patch"'
"""Only a spec with this in it can have merge directives."""


class ConfigFinder:
    """Finds LLMInferenceServiceConfigs by name, and scheduler configurations in ConfigMaps."""

    def __init__(
        self,
        configs: Mapping[str, Parent] | None,
        config_maps: Mapping[str, ObservedConfigMap] | None,
        namespace: str,
        system_namespace: str,
        prefix: str,
    ) -> None:
        self._configs = configs
        self._config_maps = config_maps
        self._namespaces = (namespace, system_namespace)
        self._prefix = prefix

    def config(self, name: str) -> Layer | None:
        """The config of that name, as a layer of the merge."""
        for namespace in self._namespaces:
            found = one(self._configs, name, namespace)
            if found is not None:
                return _checked(f"LLMInferenceServiceConfig {namespace}/{name}", bytes(found.spec))
        preset = presets.PRESETS.get(name.removeprefix(self._prefix)) if name.startswith(self._prefix) else None
        return Layer(f"preset {name}", preset) if preset is not None else None

    def scheduler_config(self, name: str, key: str) -> str:
        """A scheduler configuration (2.5). Raises :class:`CombineError`."""
        own, system = self._namespaces
        config_map = one(self._config_maps, name, own)
        if config_map is None and name.startswith(SYSTEM_SCHEDULER_CONFIG_PREFIX):
            config_map = one(self._config_maps, name, system)
        where = f"spec.router.scheduler.config.ref: ObservedConfigMap {name}"
        if config_map is None:
            raise MissingConfigMapError(f"{where} does not exist in namespace {own}")
        text = (config_map.data or {}).get(key)
        if text is None:
            raise CombineError(f"{where} has no key {key}")
        return text


def _checked(source: str, raw: bytes) -> Layer:
    """A stored config as a layer. The API server leaves pods in it open, so their types are checked here.

    Raises :class:`CombineError`.
    """
    reading = read_related(raw, LLMInferenceServiceConfigSpec)
    if reading.errors:
        raise CombineError(f"{source}: {field.aggregate(reading.errors)}")
    return _layer(source, reading.document, raw)


def layer(source: str, raw: bytes) -> Layer:
    """A spec in JSON as a layer of the merge."""
    return _layer(source, orjson.loads(raw), raw)


def _layer(source: str, spec: Any, raw: bytes) -> Layer:
    return Layer(source, document(spec) if isinstance(spec, dict) else {}, DIRECTIVE in raw, len(raw))
