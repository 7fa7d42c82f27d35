"""Every rule of a config. Most rules of a service apply only to what configs are merged into. Source: KS-7.4."""

from itertools import chain, islice

from app.kserve import gatewayapi, kvcache
from app.kserve.constants import COMPONENT, MODEL_URI, NAME
from app.kserve.llminferenceservice import merged
from app.kserve.llminferenceservice.checks import NAME as METADATA_NAME
from app.kserve.llminferenceservice.checks import merge_clashes, model_urls, rule_timeouts, without_main
from app.kserve.llminferenceservice.podview import pod_views
from app.kserve.llminferenceserviceconfig.types import LLMInferenceServiceConfigSpec, LLMInferenceServiceConfigStatus
from app.kserve.operator import OperatorConfig
from app.kserve.spec import presets, render
from app.kserve.spec.template.data import ServiceData
from app.kube import field, objects, resource
from app.kube.base import Json
from app.kube.field import SPEC, Advice, advice
from app.kube.schema import rules
from app.kube.schema.fieldclass import without_effect
from app.limits import MAX_UNKNOWN_NAMES
from app.settings import Settings
from app.workload.advice.advise import advise

Config = resource.Resource[LLMInferenceServiceConfigSpec, LLMInferenceServiceConfigStatus]

# The fixed service that a config is rendered against when it is stored (KS-2.6): templates may rely on all of it.

_POD = {"containers": [{"name": "kserve-container"}]}
_PICKER = {"name": "scheduler", "ports": [{"containerPort": port} for port in (9002, 9003, 5557)]}
_SAMPLE_METADATA = objects.ObservedMeta(
    name="test-llm-preset",
    namespace="test-llm-preset-test",
    annotations={MODEL_URI: "llama"},
    labels={NAME: "llminferenceservice", "app.kubernetes.io/instance": "test-llm-preset", COMPONENT: "inference"},
)
_SAMPLE: Json = {
    "model": {"name": "llama", "uri": "llama"},
    "replicas": 2,
    "parallelism": {"data": 4, "dataLocal": 2, "tensor": 1, "expert": True},
    "template": _POD,
    "worker": _POD,
    "prefill": {"replicas": 1, "parallelism": {"tensor": 1, "pipeline": 1}, "template": _POD},
    "router": {
        "route": {"http": {"refs": [{"name": "custom-http-route"}]}},
        "gateway": {"refs": [{"namespace": "kserve", "name": "kserve-ingress-gateway"}]},
        "scheduler": {"pool": {"ref": {"name": "custom-inference-pool"}}, "template": {"containers": [_PICKER]}},
    },
}


def sample_data(settings: Settings) -> ServiceData:
    return ServiceData(_SAMPLE_METADATA, _SAMPLE, OperatorConfig(settings.kserve_system_namespace), sample=True)


def validate(config: Config, old: Config | None, settings: Settings) -> list[field.Error]:
    """Reject ``baseRefs``, and every mistake that no service can correct (KS-C01)."""
    spec, wrong = render.with_decided_templates(config.spec, lambda _: sample_data(settings))
    errors = list(model_urls(spec.model)) if spec.model is not None else []
    if spec.base_refs:
        names = ", ".join(ref.name for ref in spec.base_refs)
        detail = f"configs do not nest; let services refer to {names} themselves"
        errors.append(field.forbidden(SPEC.child("baseRefs"), detail))
    errors += merged.scheduler_replicas(spec.scheduler)
    if spec.pool is not None and spec.pool.spec is not None:
        errors += rules.violations(spec.pool.spec, merged.SCHEDULER.child("pool", "spec"))
    errors += merged.scaling(spec)
    errors += merged.caches(spec, is_part=True)
    errors += merged.reserved(spec)
    if spec.http is not None and spec.http.spec is not None:
        errors += rules.violations(spec.http.spec, merged.HTTP.child("spec"))
    return errors or _unrendered(config.spec, settings) or wrong


def _unrendered(spec: LLMInferenceServiceConfigSpec, settings: Settings) -> list[field.Error]:
    """Reject templates that do not render for the sample service (KS-C03, KS-2.6). As upstream, without a field."""
    place, problem = render.render_error(_dump(spec), sample_data(settings))
    return [field.Error(field.ErrorType.FORBIDDEN, field.Path(), f"Forbidden: {problem}", place)] if problem else []


def warnings(config: Config) -> list[field.Advice]:
    """Warn of fields without effect, and of mistakes that services would be refused for."""
    refused = (
        advice(error.path, f"{error.body}; a service has to replace the list") for error in merge_clashes(config.spec)
    )
    cached = chain.from_iterable(
        kvcache.advice(workload.kv_cache_offloading, path.child("kvCacheOffloading"))
        for workload, path in config.spec.workloads()
    )
    added = chain.from_iterable(without_main(pod, path) for pod, path in config.spec.templates())
    pods = advise(pod_views(config.spec, None))
    invalid = (advice(error.path, f"{error.body}; pods with it are refused") for error in merged.pods(config.spec))
    return [
        *without_effect(config.spec, SPEC),
        *gatewayapi.newer_fields(config.spec, SPEC),
        *rule_timeouts(config.spec),
        *(*cached, *added, *refused, *pods, *islice(invalid, MAX_UNKNOWN_NAMES)),
    ]


def update_warnings(config: Config, old: Config, settings: Settings) -> list[field.Advice]:
    """Warn of a changed config of a preset's name, which changes every service; not of additions (KS-C04)."""
    name = config.metadata.name
    if not is_well_known(name, settings) or _is_within(_dump(old.spec), _dump(config.spec)):
        return []
    return [Advice(f"{name} is a well-known config: every service that uses it changes with it", METADATA_NAME)]


def delete_warnings(name: str, settings: Settings) -> list[str]:
    """Warn of a deleted config of a preset's name: the service's own preset is in force again (KS-C05)."""
    text = f"{name} is a well-known config: services that use it go back to the preset of that name"
    return [Advice(text, METADATA_NAME)] if is_well_known(name, settings) else []


def is_well_known(name: str, settings: Settings) -> bool:
    prefix = settings.kserve_config_prefix
    return name.startswith(prefix) and name.removeprefix(prefix) in presets.SUFFIXES


def _dump(spec: LLMInferenceServiceConfigSpec) -> Json:
    return spec.model_dump(by_alias=True, exclude_none=True)


def _is_within(part: object, document: object) -> bool:
    """Report whether ``document`` contains everything in ``part``; lists count as one value."""
    if isinstance(part, dict) and isinstance(document, dict):
        return all(key in document and _is_within(item, document[key]) for key, item in part.items())
    return bool(part == document)
