"""KServe: an LLMInferenceService, sometimes with a config that it uses, on a cluster with the default gateway."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from app.kserve.conversion import LORA_CRITICALITIES, MODEL_CRITICALITY
from app.kserve.gatewayapi import HTTPRouteSpec
from app.kserve.llminferenceservice.types import (
    ConfigMapKey,
    HTTPRouteConfig,
    KEDAAdvanced,
    KEDASpec,
    LLMInferenceServiceSpec,
    RouteSpec,
    ScalingModifiers,
    SchedulerSpec,
)
from app.kserve.llminferenceserviceconfig.types import LLMInferenceServiceConfigSpec
from app.kserve.operator import AUTOSCALING_KEY
from app.kube.base import Json
from tests.e2e.generated import pods, routes
from tests.e2e.generated.draw import ABSENT, Draw, Pool, Rule
from tests.e2e.generated.kubernetes import LABELS
from tests.e2e.generated.pods import pod

API_VERSION = "serving.kserve.io/v1alpha2"
_MAIN = "main"
_DEVICES = {
    "serving.kserve.io/exp-dra-device-class": "gpu.example.com",
    "serving.kserve.io/exp-dra-device-count": "2",
    "serving.kserve.io/exp-dra-cel-selector": 'device.driver == "gpu.example.com"',
}
_CRITICALITIES = ("Critical", "Standard", "Sheddable", "Urgent")
_SCHEDULER: Json = {
    "apiVersion": "inference.networking.x-k8s.io/v1alpha1",
    "kind": "EndpointPickerConfig",
    "plugins": [{"type": "prefix-cache-scorer"}, {"type": "max-score-picker"}],
    "schedulingProfiles": [{"name": "default", "plugins": [{"pluginRef": "prefix-cache-scorer", "weight": 2}]}],
}


def _template(d: Draw) -> Json:
    """Return a whole pod, or a user's additions to the preset's pod."""
    if d.chance(0.6):
        return pod(d, _MAIN, *d.some(("side",)))
    part: Json = {"containers": [{"name": _MAIN, "env": [{"name": "A", "value": d.choice(("", "x"))}]}]}
    if d.chance(0.5):
        part["containers"][0]["resources"] = d.embedded("ResourceRequirements")
    return part if d.chance(0.7) else {"nodeSelector": {"zone": "a"}}


POOLS: Mapping[str, Pool] = {
    **pods.POOLS,
    **routes.POOLS,
    "LLMModelSpec.uri": (
        "hf://facebook/opt-125m",
        "hf://Qwen/Qwen2.5-7B-Instruct:main",
        "s3://bucket/models/opt",
        "gs://bucket/models/opt",
        "https://acme.blob.core.windows.net/models/opt/",
        "https://acme.file.core.windows.net/share/models/opt",
        "https://models.example.com/opt.tar.gz",
        "hdfs://models/opt",
        "pvc://claim/dir/model",
        "oci://registry.example.com/models/opt:1",
    ),
    "LLMModelSpec.name": ("facebook/opt-125m", "chat"),
    "LoRASpec.adapters": (
        [{"name": "a", "uri": "hf://org/adapter"}],
        [{"name": "Org/B", "uri": "pvc://adapters/b"}, {"name": "a=$b", "uri": "s3://bucket/a"}],
        [{"name": "c", "uri": "pvc://adapters"}],
    ),
    "LoRASpec.maxRank": (8, 64),
    "TracingSpec.exporterEndpoint": ("http://collector:4317", ""),
    "TracingSpec.samplerArg": ("0.1",),
    "InferencePoolSpec.appProtocol": ABSENT,  # of newer pools
    "ConfidentialSpec.resourceId": ("kbs:///default/keys/opt", ""),
    "WorkloadSpec.kvCacheOffloading": ({"cpu": "10Gi"},),
    "RouteSpec.group": ("team",),
    "RouteSpec.weight": (0, 10),
    "TokenizerSpec.template": ({"containers": []},),
    "WorkloadSpec.replicas": (0, 1, 3),
    "WorkloadSpec.labels": LABELS,
    "WorkloadSpec.annotations": lambda d: {key: d.choice(("", "x")) for key in d.some(("a", "b.c/d"))},
    "WorkloadSpec.template": _template,
    "WorkloadSpec.worker": _template,
    "ScalingModifiers.formula": ("",),
    "ScalingModifiers.target": ("",),
    "ScalingModifiers.activationTarget": ("",),
    "ScalingModifiers.metricType": ABSENT,
    "HorizontalPodAutoscalerConfig.name": ("",),
    "WVASpec.variantCost": ("1", "10.5"),
    "ScalingSpec.minReplicas": (2, 3),
    "ScalingSpec.maxReplicas": (5, 9),
    "KEDASpec.idleReplicaCount": (1,),
    "ParallelismSpec.dataRPCPort": (5000, 65535),
    "HTTPRouteConfig.refs": ([{"name": "mine"}],),
    "GatewaySpec.refs": (
        [{"name": "kserve-ingress-gateway", "namespace": "kserve"}],
        [{"name": "kserve-ingress-gateway", "namespace": "kserve", "sectionName": "http"}],
    ),
    "NameReference.name": ("mine",),
    "ObjectReference.name": ("mine",),
    "ObjectReference.namespace": ("kserve", "other"),
    "ConfigMapKey.name": ("picker-config",),
    "ConfigMapKey.key": ("epp", "", "config.yaml"),
    "SchedulerConfig.inline": (_SCHEDULER, "kind: EndpointPickerConfig\nplugins: []\n"),
    "SchedulerSpec.replicas": (1, 3),
    "SchedulerSpec.labels": LABELS,
    "SchedulerSpec.annotations": lambda d: dict.fromkeys(d.some(("a", "b.c/d")), "x"),
    "SchedulerSpec.template": lambda d: pod(d, _MAIN) if d.chance(0.5) else {"terminationGracePeriodSeconds": 5},
    "PoolSelector.matchLabels": ({"tier": "a"}, {"team": "", "example.com/tier": "A.b_c-1"}),
    "EndpointPickerIdentity.group": ("",),
    "EndpointPickerIdentity.kind": ("Service",),
    "EndpointPickerIdentity.name": ("picker",),
    "LLMInferenceServiceSpec.baseRefs": ABSENT,  # set if there is a config
}


def _parallelism(d: Draw, value: Json) -> None:
    """Set data parallelism, pipeline parallelism, or neither."""
    data, pipeline = d.choice(((None, None), (None, None), ((2, 1), None), ((1, 1), None), (None, 2), (None, 1)))
    for key in ("data", "dataLocal", "pipeline"):
        value.pop(key, None)
    if data is not None:
        value["data"], value["dataLocal"] = data
    if pipeline is not None:
        value["pipeline"] = pipeline
    if "tensor" in value:
        value["tensor"] = d.choice((1, 2, 8))


def _workload(d: Draw, value: Json) -> None:
    """Make workers span several nodes; remove replicas beside scaling."""
    if "worker" in value:
        several: Any = d.choice(({"data": 4, "dataLocal": 2}, {"data": 2, "dataLocal": 1}, {"pipeline": 2}))
        kept = {k: v for k, v in value.get("parallelism", {}).items() if k not in ("data", "dataLocal", "pipeline")}
        value["parallelism"] = {**kept, **several}
    if "scaling" in value:
        value.pop("replicas", None)


def _scaling(d: Draw, value: Json) -> None:
    value.update(minReplicas=2, maxReplicas=5)
    value.setdefault("wva", {"hpa": {}})


def _wva(d: Draw, value: Json) -> None:
    """Choose KEDA's autoscaler with all its fields, or the plain one, with equal probability."""
    if d.chance(0.5):
        value.pop("hpa", None)
        value["keda"] = {
            **d.model(KEDASpec),
            "advanced": d.model(KEDAAdvanced, scalingModifiers=d.model(ScalingModifiers)),
        }
    else:
        value.pop("keda", None)
        value.setdefault("hpa", {})


def _scheduler_config(d: Draw, value: Json) -> None:
    if d.chance(0.6):
        value.pop("ref", None)
        value["inline"] = d.of(POOLS["SchedulerConfig.inline"])
    else:
        value.pop("inline", None)
        value["ref"] = d.model(ConfigMapKey, name="picker-config", key="epp")


def _pool(d: Draw, value: Json) -> None:
    if "ref" in value:
        value.pop("spec", None)


def _ports(d: Draw, value: Json) -> None:
    """Keep each port once."""
    if ports := value.get("targetPorts"):
        value["targetPorts"] = list({port["number"]: port for port in ports}.values())


def _selector(d: Draw, value: Json) -> None:
    """Give the selector labels."""
    value.setdefault("matchLabels", {"tier": "a"})


def _picker(d: Draw, value: Json) -> None:
    """Give the picker a port, because its Service needs one."""
    value.setdefault("port", {"number": 9002})


def _route(d: Draw, value: Json) -> None:
    if value.get("refs"):
        value.pop("spec", None)


def _router(d: Draw, value: Json) -> None:
    http = value.get("route", {}).get("http", {})
    if http.get("refs"):
        value.pop("gateway", None)
    if value.get("gateway", {}).get("refs"):
        http.get("spec", {}).pop("parentRefs", None)
    _share(d, value)


def _share(d: Draw, router: Json) -> None:
    """A group requires a weight and a managed route."""
    route = router.get("route", {})
    if "group" in route or "weight" in route:
        refs = route.get("http", {}).get("refs")
        given = (
            {}
            if refs or "ingress" in router or "scheduler" not in router
            else {"group": "team", "weight": d.choice((0, 10))}
        )
        router["route"] = {key: item for key, item in route.items() if key not in ("group", "weight")} | given


def _reference(d: Draw, value: Json) -> None:
    value.setdefault("name", d.of(POOLS["NameReference.name"]))


RULES: Mapping[str, Rule] = {
    "NameReference": _reference,
    "ObjectReference": _reference,
    **pods.RULES,
    **routes.RULES,
    "ParallelismSpec": _parallelism,
    "WorkloadSpec": _workload,
    "ScalingSpec": _scaling,
    "WVASpec": _wva,
    "SchedulerConfig": _scheduler_config,
    "PoolSpec": _pool,
    "EndpointPickerReference": _picker,
    "PoolSelector": _selector,
    "InferencePoolSpec": _ports,
    "HTTPRouteConfig": _route,
    "RouterSpec": _router,
}


def _size(d: Draw, workload: Json, several: bool) -> None:
    """Use the same number of pods per replica in all variants, because it is immutable."""
    kept = {k: v for k, v in workload.get("parallelism", {}).items() if k not in ("data", "dataLocal", "pipeline")}
    forms: tuple[Json, ...] = ({"data": 4, "dataLocal": 2}, {"data": 2, "dataLocal": 1}, {"pipeline": 2})
    if not several:
        forms = ({"data": 1, "dataLocal": 1}, {"pipeline": 1}, *(() if "worker" in workload else ({},)))
    if parallelism := kept | d.choice(forms):
        workload["parallelism"] = parallelism


def documents(number: int, namespace: str, variant: int) -> list[Json]:
    """Return the objects that the service refers to, then the service."""
    d = Draw(f"kserve-{number}-{variant}", POOLS, RULES)
    spec = d.model(LLMInferenceServiceSpec)
    spec.setdefault("model", {"uri": d.of(POOLS["LLMModelSpec.uri"])})
    for workload in (spec, *([spec["prefill"]] if "prefill" in spec else [])):
        _size(d, workload, several=number % 2 == 1)
    if d.chance(0.8):
        router = spec.setdefault("router", {})
        router.setdefault("scheduler", d.model(SchedulerSpec) if d.chance(0.5) else {})
        if d.chance(0.5):
            router["route"] = {
                "http": {"spec": d.model(HTTPRouteSpec, rules=d.of(routes.POOLS["HTTPRouteSpec.rules"]))}
            }
            router.pop("gateway", None)
        else:
            router.setdefault("route", d.model(RouteSpec, http=d.model(HTTPRouteConfig)))
        _share(d, router)
    objects = [_gateway(), _config_map(namespace), *(_account(name, namespace) for name in ("default", "runner"))]
    objects += _system(bundle=number % 3 == 0)
    if d.chance(0.3):
        base = d.model(LLMInferenceServiceConfigSpec, without=("scaling",) if "replicas" in spec else ("replicas",))
        spec["baseRefs"] = [{"name": f"base-{number}"}]
        objects.append(_object("LLMInferenceServiceConfig", f"base-{number}", namespace, base))
    annotations = {"serving.kserve.io/stop": "true"} if d.chance(0.05) else {}
    if d.chance(0.4):
        annotations |= {MODEL_CRITICALITY: d.choice(_CRITICALITIES), LORA_CRITICALITIES: '{"0": "Sheddable"}'}
    if number % 5 == 0:
        annotations |= _DEVICES  # the same in all variants: the claim template is immutable
    notes = {"annotations": annotations} if annotations else {}
    labels = {"labels": d.of(LABELS)} if d.chance(0.3) else {}
    service = _object("LLMInferenceService", f"llm-{number}", namespace, spec)
    service["metadata"] |= {**notes, **labels}
    return [*objects, service]


def _object(kind: str, name: str, namespace: str, spec: Json) -> Json:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def _gateway() -> Json:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": "kserve-ingress-gateway", "namespace": "kserve"},
        "spec": {"gatewayClassName": "any", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
    }


def _account(name: str, namespace: str) -> Json:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}


def _system(*, bundle: bool) -> list[Json]:
    """Return the operator's settings, which may name a CA bundle, and the bundle."""
    prometheus = {"url": "https://prometheus:9090", "authModes": "bearer", "triggerAuthName": "prometheus"}
    settings = {AUTOSCALING_KEY: json.dumps({"prometheus": prometheus})}
    texts = {"inferenceservice-config": settings}
    if bundle:
        settings["storageInitializer"] = json.dumps({"caBundleConfigMapName": "bundle"})
        texts["bundle"] = {"cabundle.crt": "-----BEGIN CERTIFICATE-----"}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kserve"}, "data": data}
        for name, data in texts.items()
    ]


def _config_map(namespace: str) -> Json:
    text = yaml.safe_dump(_SCHEDULER)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "picker-config", "namespace": namespace},
        "data": {"epp": text},
    }
