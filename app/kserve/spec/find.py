"""Which configs and presets a service is combined from, and where they are found. Source: KS-2.2 and KS-2.3."""

from collections.abc import Sequence

from msgspec.structs import replace

from app.hooks.protocol import get
from app.hooks.reader import read_related
from app.kserve.constants import DEFAULT_CONFIG_KEY, PIN_PREFIX, SYSTEM_SCHEDULER_CONFIG_PREFIX
from app.kserve.conversion import with_criticality
from app.kserve.llminferenceservice.observed import LLMService, ReconcileContext
from app.kserve.llminferenceserviceconfig.types import LLMInferenceServiceConfigSpec
from app.kserve.spec.merge import CombineError, Layer, MissingConfigMapError, document
from app.kserve.spec.pickerconfig import PREDICTED_LATENCY, plugin_types
from app.kserve.spec.presets import EDITIONS, ENCRYPTED, PINNED, edition
from app.kube import field, objects
from app.kube.base import Json
from app.kube.merge import find, replaced
from app.settings import Settings


def find_config(context: ReconcileContext, name: str) -> Layer | None:
    """Return the config, or the preset, of that name. Raises :class:`CombineError` for an invalid one."""
    prefix = context.settings.kserve_config_prefix
    for namespace in (context.metadata.namespace, context.operator.system_namespace):
        config = get(context.related.configs, name, namespace)
        if config is not None:
            source = f"LLMInferenceServiceConfig {namespace}/{name}"
            reading = read_related(bytes(config.spec), LLMInferenceServiceConfigSpec)
            if reading.errors:  # the API server leaves pods in it open
                raise CombineError(f"{source}: {field.aggregate(reading.errors)}")
            config_layer = layer(source, reading.document, bytes(config.spec), config.metadata)
            return replace(config_layer, name=name, namespace=namespace)
    presets = ENCRYPTED if context.encrypts else EDITIONS[context.settings.kserve_presets]
    preset = presets.get(name.removeprefix(prefix)) if name.startswith(prefix) else None
    return Layer(f"preset {name}", preset, name=name) if preset is not None else None


def preset_names(settings: Settings) -> list[str]:
    return [settings.kserve_config_prefix + suffix for suffix in EDITIONS[settings.kserve_presets]]


def find_scheduler_config(context: ReconcileContext, name: str, key: str) -> str:
    """Return a scheduler configuration (KS-2.5). Raises :class:`CombineError`."""
    namespace, config_maps = context.metadata.namespace, context.related.config_maps
    config_map = get(config_maps, name, namespace)
    if config_map is None and name.startswith(SYSTEM_SCHEDULER_CONFIG_PREFIX):
        config_map = get(config_maps, name, context.operator.system_namespace)
    where = f'spec.router.scheduler.config.ref: ConfigMap "{namespace}/{name}"'
    if config_map is None:
        raise MissingConfigMapError(f"{where} not found")
    text = (config_map.data or {}).get(key)
    if text is None:
        raise CombineError(f"{where} has no key {key}")
    return text


def with_scheduler_config(document: Json, context: ReconcileContext) -> Json:
    """Replace a config by reference with the string it refers to. Raises :class:`CombineError`."""
    config = find(document, ("router", "scheduler", "config"))
    ref = config.get("ref") if config else None
    if not ref:
        return document
    text = find_scheduler_config(context, str(ref.get("name") or ""), str(ref.get("key") or DEFAULT_CONFIG_KEY))
    return replaced(document, ("router", "scheduler", "config"), {"inline": text})


def layer(source: str, spec: object, raw: bytes, metadata: objects.ObservedMeta) -> Layer:
    """A spec, and what v1alpha2 keeps in its object's annotations, as a layer of the merge; ``raw`` is its JSON."""
    written = document(spec) if isinstance(spec, dict) else {}
    return Layer(source, with_criticality(written, metadata.annotations), raw)


def pins_of(service: LLMService, settings: Settings) -> dict[str, str]:
    """Return ``status.annotations``: preset names that this service keeps when a release renames its presets."""
    if not settings.kserve_versioned_config:
        return {}
    previous, prefix = service.status.annotations, settings.kserve_config_prefix
    missing = (suffix for suffix in PINNED if not previous.get(PIN_PREFIX + suffix))
    return {**previous, **{PIN_PREFIX + suffix: prefix + suffix for suffix in missing}}


def choose_presets(specs: Sequence[Json]) -> list[str]:
    """Suffixes of the presets that a service of these specs gets, in merge order (KS-2.3)."""
    chosen = []
    if _any(specs, "router", "scheduler") is not None and not _any(specs, "router", "scheduler", "pool", "ref", "name"):
        chosen.append(edition.SCHEDULER)
    configs = [find(spec, ("router", "scheduler", "config", "inline")) for spec in specs]
    if any(PREDICTED_LATENCY in plugin_types(config) for config in configs):
        chosen.append(edition.LATENCY_PREDICTOR)
    if _any(specs, "router", "route") is not None and not _any(specs, "router", "route", "http", "refs"):
        chosen.append(edition.ROUTE)
    if _any(specs, "tracing") is not None:
        chosen.append(edition.TRACING)
    if _any(specs, "prefill") is None:
        return chosen + _workload_preset(specs, edition.ONLY)
    return chosen + _workload_preset(specs, edition.PREFILL, "prefill") + _workload_preset(specs, edition.DECODE)


def _workload_preset(specs: Sequence[Json], prefix: str, *base: str) -> list[str]:
    """Return the preset of one workload at ``base``; None if no parallelism is set for a worker."""
    if _any(specs, *base, "worker") is None:
        form = edition.SINGLE_NODE
    elif _any(specs, *base, "parallelism", "data") or _any(specs, *base, "parallelism", "dataLocal"):
        form = edition.DATA_PARALLEL
    elif _any(specs, *base, "parallelism", "pipeline"):
        form = edition.PIPELINE
    else:
        return []
    return [prefix + form]


def _any(specs: Sequence[Json], *path: str) -> object:
    """Return the value at ``path`` in any of the specs: a true value, else an empty one, else None."""
    values = [value for spec in specs if (value := find(spec, path)) is not None]
    return next(filter(None, values), values[-1] if values else None)
