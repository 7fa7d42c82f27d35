"""Every decision about the pods of a service and what stands before them. Source: LK-3 and LK-4.

The builders beside this module only give these values their shape.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from app.kube.base import Json
from app.kube.desired import Container, VolumeMount
from app.kube.names import is_dns1123_subdomain
from app.kube.objects import ObjectMeta
from app.kube.podspec import each_name_once, normalised
from app.kube.quantity import canonical, canonical_value, is_quantity
from app.kube.stored import clean
from app.llmkube import names
from app.llmkube.download import (
    Download,
    cache_claim,
    container,
    default_pod_security,
    download,
    serving_mount,
    volumes,
)
from app.llmkube.inferenceservice.gpus import gpu_of, gpu_request, pool_selector, toleration_key
from app.llmkube.inferenceservice.types import Autoscaling, InferenceServiceSpec, ModelCache
from app.llmkube.model.plan import accelerator, amd_device
from app.llmkube.model.types import Model, ModelSpec
from app.llmkube.runtimes.refused import service_engine
from app.llmkube.runtimes.registry import runtime as runtime_of
from app.llmkube.runtimes.runtime import Runtime, Serving
from app.llmkube.source import METAL, Source, SourceClass, ephemeral_path, source_of, stored_as
from app.settings import Settings
from app.workload.parts import (
    GPURequest,
    Probes,
    http_get,
    pods_metric,
    probes,
    resource_metric,
    tcp_socket,
    toleration,
)

DEFAULT_SERVICE_PORT = 8080
DEFAULT_ENDPOINT_PATH = "/v1/chat/completions"
PORT_NAME = "http"
"""Name of the container's port; the Service and the PodMonitor find it by this name (LK-T-44)."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """What the autoscaler gets."""

    minimum: int
    maximum: int
    metrics: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a service needs in the cluster. Maps and lists that are empty are left out of the objects."""

    name: str
    namespace: str
    service_name: str
    labels: dict[str, str]
    """Of the Deployment: the operator's four."""
    selector: dict[str, str]
    pod_labels: dict[str, str]
    pod_annotations: dict[str, str]
    replicas: int
    """What the user wants; an autoscaler may want something else."""
    scaling: Scaling | None
    runtime: Runtime
    image: str
    command: list[str]
    args: list[str]
    env: list[Json]
    port: int
    service_port: int
    service_type: str
    node_port: int | None
    history_limit: int | None
    gpus: GPURequest
    claims: list[Json]
    """Claims of dynamic resource allocation."""
    requests: dict[str, str]
    limits: dict[str, str]
    """Beside the GPUs'."""
    init: list[Container]
    volumes: list[Json]
    mounts: list[VolumeMount | Json]
    probes: Probes
    pod_security: Json
    container_security: Json
    priority_class: str
    runtime_class: str
    image_pull_secrets: list[Json]
    tolerations: list[Json]
    node_selector: dict[str, str]
    affinity: Json
    topology_spread: list[Json]

    @property
    def has_gpus(self) -> bool:
        """Whether pods hold GPUs, counted or claimed, which a new pod may have to wait for."""
        return bool(self.gpus.count or self.claims)


def plan(
    metadata: ObjectMeta,
    spec: InferenceServiceSpec,
    model: Model,
    drafting: Model | None,
    operator_claim: bool,
    settings: Settings,
) -> Plan:
    """The decisions for a Model that is Ready and served inside the cluster.

    ``drafting`` is the Model that ``speculative.model`` names, if there is one. ``operator_claim``: the claim that the
    operator names for all Models exists in the namespace.
    """
    runtime = runtime_of(spec.runtime)
    gpus = gpu_request(model.spec, spec, settings)
    claims = gpu_of(model.spec).resource_claims
    mounts_model = runtime.mounts_model and not spec.skip_model_init
    main = _storage(model, spec, operator_claim, settings) if mounts_model else _FETCHED_BY_SERVER
    draft = _draft(spec, drafting, main, operator_claim, settings)
    port = container_port(spec, runtime)
    labels = names.pod_labels(metadata.name, spec.model_ref, runtime.name)
    served = _served(main, runtime, model.spec)
    serving = Serving(
        runtime.name,
        spec,
        model.spec,
        served,
        mounts_model,
        port,
        gpus.count or bool(claims),
        draft.name,
        main.directory,
        service_engine(spec, runtime.image),
    )
    return Plan(
        name=metadata.name,
        namespace=metadata.namespace,
        service_name=names.service_name(metadata.name),
        labels=labels,
        selector=names.service_labels(metadata.name),
        pod_labels={**spec.pod_labels, **labels},
        pod_annotations=_annotations(spec),
        replicas=wanted_replicas(spec),
        scaling=None if spec.suspend else _scaling(spec.autoscaling, runtime),
        runtime=runtime,
        image=spec.image or _image(runtime, model.spec, gpus),
        command=spec.command or list(runtime.command),
        args=runtime.arguments(serving),
        env=_environment([*runtime.environment(spec), *spec.env]),
        port=port,
        service_port=service_port(spec),
        service_type=spec.endpoint.type if spec.endpoint else "ClusterIP",
        node_port=spec.endpoint.node_port if spec.endpoint and spec.endpoint.type == "NodePort" else None,
        history_limit=spec.revision_history_limit,
        gpus=gpus,
        claims=[claim.model_dump(by_alias=True, exclude_none=True) for claim in claims],
        requests={**_requests(spec, model.spec), **_disk(spec)},
        limits=_disk(spec),
        init=[step for step in (main.init, draft.init) if step],
        volumes=[*main.volumes, *draft.volumes, *_embedded(spec.extra_volumes)],
        mounts=[*main.mounts, *draft.mounts, *_embedded(spec.extra_volume_mounts)],
        probes=_probes(spec, runtime, port),
        pod_security=_security(spec, settings),
        container_security=_container_security(spec),
        priority_class=priority_class(spec),
        runtime_class=spec.runtime_class_name,
        image_pull_secrets=_by_name(spec.image_pull_secrets),
        tolerations=_tolerations(spec, gpus, model.spec),
        node_selector={**pool_selector(model.spec, spec, settings), **spec.node_selector},
        affinity=normalised(clean(spec.affinity or {})),
        topology_spread=_embedded(spec.topology_spread_constraints),
    )


def _served(storage: Storage, runtime: Runtime, model: ModelSpec) -> str:
    """The path on the command line: the directory of all files for what is loaded as a whole (LK-3.6.1)."""
    whole = runtime.loads_directories and model.format != "gguf"
    return storage.directory if whole and storage.directory else storage.path


def wanted_replicas(spec: InferenceServiceSpec) -> int:
    """The user's number; none while the service is suspended."""
    if spec.suspend:
        return 0
    return 1 if spec.replicas is None else spec.replicas


def container_port(spec: InferenceServiceSpec, runtime: Runtime) -> int:
    """The port the server listens on and its probes ask (LK-3.3)."""
    return spec.container_port or (spec.endpoint.port if spec.endpoint else runtime.port)


def service_port(spec: InferenceServiceSpec) -> int:
    """The Service's port: never the container's, never the runtime's (LK-3.9)."""
    return spec.endpoint.port if spec.endpoint else DEFAULT_SERVICE_PORT


def endpoint(metadata: ObjectMeta, spec: InferenceServiceSpec, settings: Settings) -> str:
    """The service's URL inside the cluster (LK-5.6)."""
    host = f"{names.service_name(metadata.name)}.{metadata.namespace}.svc.{settings.cluster_domain}"
    path = (spec.endpoint.path if spec.endpoint else "") or DEFAULT_ENDPOINT_PATH
    return f"http://{host}:{service_port(spec)}{path}"


def priority_class(spec: InferenceServiceSpec) -> str:
    """The pods' PriorityClass: the user's own, else that of the level."""
    return spec.priority_class_name or names.priority_class(spec.priority)


def _image(runtime: Runtime, model: ModelSpec, gpus: GPURequest) -> str:
    """The runtime's default image, which is built for the GPU of the pod."""
    makers = {"nvidia.com": "cuda", "amd.com": "amd"}
    maker = makers.get(gpus.resource.partition("/")[0], "") if gpus.count else ""
    return runtime.device_images.get(amd_device(gpu_of(model)) or maker, runtime.image)


def _scaling(autoscaling: Autoscaling | None, runtime: Runtime) -> Scaling | None:
    if autoscaling is None:
        return None
    metrics = [
        pods_metric(metric.name, metric.target_average_value)
        if metric.type == "Pods"
        else resource_metric(metric.name, metric.target_average_utilization or 0)
        for metric in autoscaling.metrics
    ]
    if not metrics and runtime.metric:
        metrics = [pods_metric(runtime.metric, "2")]
    if not metrics:
        return None
    return Scaling(
        minimum=autoscaling.min_replicas or 1,
        maximum=autoscaling.max_replicas,
        metrics=tuple(metrics),
    )


# Where a pod finds its model: volumes, mounts, the init container, the path or name on the command line (LK-3.6).


@dataclass(frozen=True, slots=True)
class Storage:
    """The model inside the pod. All empty when the server fetches the model itself."""

    path: str = ""
    directory: str = ""
    """Where the paths of several files begin."""
    volumes: tuple[Json, ...] = ()
    mounts: tuple[VolumeMount, ...] = ()
    init: Container | None = None


_FETCHED_BY_SERVER = Storage()


@dataclass(frozen=True, slots=True)
class Draft:
    """The draft model: its path or name on the command line, and what the pod needs for it besides the main model's."""

    name: str = ""
    volumes: tuple[Json, ...] = ()
    mounts: tuple[VolumeMount, ...] = ()
    init: Container | None = None


def _storage(model: Model, spec: InferenceServiceSpec, operator_claim: bool, settings: Settings) -> Storage:
    """The main model, for a runtime that reads it from a volume."""
    source = source_of(model.spec)
    if source.kind is SourceClass.PVC:
        mount = VolumeMount(name=names.SOURCE_VOLUME, mount_path=names.SOURCE_DIR, read_only=True)
        return Storage(source.mounted_path, "", (_claim_volume(names.SOURCE_VOLUME, source.claim),), (mount,))
    if not source.is_file:
        return _FETCHED_BY_SERVER
    own = spec.model_cache or ModelCache()
    fetched = _download(model, model.status.cache_key, source, own, settings)
    claim = own.claim_name or _claim_of(model, operator_claim, settings)
    return Storage(
        path=fetched.path,
        directory=fetched.directory if source.files else "",
        volumes=tuple(_sized(volume, spec) for volume in volumes(fetched, claim, settings)),
        mounts=(serving_mount(fetched),),
        init=container(fetched, settings, spec.pod_security_context),
    )


def _sized(volume: Json, spec: InferenceServiceSpec) -> Json:
    """The empty directory of a model takes no more than the pod may."""
    limit = _disk(spec).get(EPHEMERAL_STORAGE)
    return {**volume, "emptyDir": {"sizeLimit": limit}} if limit and volume["name"] == names.STORAGE_VOLUME else volume


def _download(model: Model, key: str, source: Source, own: ModelCache, settings: Settings) -> Download:
    """The download that finds what the Model's Job left: in the directory that the Model's status names.

    Onto a claim of the service's own, or into an empty directory, each pod fetches the file for itself.
    """
    namespace, name = model.metadata.namespace, model.metadata.name
    fetched = download(model.spec, source, namespace, name, settings)
    if not fetched.cached:
        return fetched
    if not key or own.persistence == "Ephemeral":
        return replace(fetched, cached=False, path=ephemeral_path(source, namespace, name))
    return replace(fetched, path=posixpath.join(names.MODELS_DIR, key, stored_as(source, name)))


def _claim_of(model: Model, operator_claim: bool, settings: Settings) -> str:
    """The claim that the Model fills: its status says which when it is not the one of the plain name."""
    return cache_claim(model.metadata.name, model.status.cache_claim, operator_claim, settings)


def _draft(
    spec: InferenceServiceSpec, model: Model | None, main: Storage, operator_claim: bool, settings: Settings
) -> Draft:
    """Return the draft model: a Model of the namespace where the name is one, else what the user wrote.

    The name of a Model that does not exist is no use to a server, so it is left out (LK-B-08).
    """
    runtime = runtime_of(spec.runtime)
    text = runtime.draft(spec)
    if not text or model is None or accelerator(model.spec) == METAL:
        return Draft() if runtime.draft_is_model or is_dns1123_subdomain(text) else Draft(text)
    source = source_of(model.spec)
    if source.kind is SourceClass.REPOSITORY:
        return Draft() if runtime.draft_is_model else Draft(source.repository)
    if source.kind is SourceClass.PVC:
        return _mounted(source.claim, source.path, main)
    key = model.status.cache_key or source.cache_key
    fetched = _download(model, key, source, spec.model_cache or ModelCache(), settings)
    if not fetched.cached:
        return _downloaded(fetched, main, spec, settings)
    return _mounted(_claim_of(model, operator_claim, settings), fetched.path.removeprefix(f"{names.MODELS_DIR}/"), main)


def _downloaded(fetched: Download, main: Storage, spec: InferenceServiceSpec, settings: Settings) -> Draft:
    """Return a draft model that the pod downloads beside its main model, into the same empty directory."""
    known = {volume["name"] for volume in main.volumes}
    added = tuple(_sized(v, spec) for v in volumes(fetched, "", settings) if v["name"] not in known)
    mount = serving_mount(fetched)
    own = container(fetched, settings, spec.pod_security_context)
    init = msgspec.structs.replace(own, name=names.DRAFT_DOWNLOADER)
    return Draft(fetched.path, added, () if mount.name in known else (mount,), init)


def _mounted(claim: str, inside: str, main: Storage) -> Draft:
    """A file on a claim: below the main model's mount when that is the same claim, else on a mount of its own."""
    shared = {v["name"] for v in main.volumes if v.get("persistentVolumeClaim", {}).get("claimName") == claim}
    for mount in main.mounts:
        if mount.name in shared:
            return Draft(posixpath.join(mount.mount_path, inside))
    own = VolumeMount(name=names.DRAFT_VOLUME, mount_path=names.DRAFT_DIR, read_only=True)
    return Draft(posixpath.join(names.DRAFT_DIR, inside), (_claim_volume(names.DRAFT_VOLUME, claim),), (own,))


def _claim_volume(name: str, claim: str) -> Json:
    return {"name": name, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}


# Single fields of the pod (LK-3). What users embed is cleaned before it is sent: what the API server would not store
# would look like a change to Metacontroller at every sync.

_CONTAINER_SECURITY: Json = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def _requests(spec: InferenceServiceSpec, model: ModelSpec) -> dict[str, str]:
    """CPU and memory; what the service does not say the Model may (LK-B-03)."""
    own, fallback = spec.resources, model.resources
    cpu = (own.cpu if own else "") or (fallback.cpu if fallback else "")
    memory = (own.host_memory or own.memory if own else "") or (fallback.memory if fallback else "")
    # A Model's text is checked by its own hook, which may not have been asked yet.
    return {name: canonical(text) for name, text in (("cpu", cpu), ("memory", memory)) if text and is_quantity(text)}


EPHEMERAL_STORAGE = "ephemeral-storage"


def _disk(spec: InferenceServiceSpec) -> dict[str, str]:
    """The node's disk: request and limit are the same, so that a pod is not evicted for what it asked for."""
    text = spec.resources.ephemeral_storage if spec.resources else ""
    return {EPHEMERAL_STORAGE: canonical(text)} if text else {}


def _annotations(spec: InferenceServiceSpec) -> dict[str, str]:
    """The user's win. Nothing here may depend on the status, or each change of it would replace the pods."""
    protected = spec.disruption is not None and spec.disruption.protect_always
    return {names.DO_NOT_DISRUPT: "true", **spec.pod_annotations} if protected else spec.pod_annotations


def _embedded(items: list[Json]) -> list[Json]:
    """Parts of a pod that the user writes, as the API server stores them."""
    return [normalised(clean(item)) for item in items]


def _environment(variables: list[Json]) -> list[Json]:
    """Each name once; an empty value is left out, because the API server does not store it either."""
    return [_stored(clean(variable)) for variable in each_name_once(variables, moved=True)]


def _stored(variable: Json) -> Json:
    """A variable as the API server writes it, its divisor in canonical text."""
    reference = (variable.get("valueFrom") or {}).get("resourceFieldRef")
    if reference and "divisor" in reference:
        reference["divisor"] = canonical_value(reference["divisor"])
    return _without_empty(variable)


def _without_empty(item: Json) -> Json:
    return {key: value for key, value in item.items() if value != ""}


def _by_name(references: list[Json]) -> list[Json]:
    return [clean(reference) for reference in each_name_once(references)]


def _tolerations(spec: InferenceServiceSpec, gpus: GPURequest, model: ModelSpec) -> list[Json]:
    """The GPU's first, then the user's, with or without a GPU (LK-T-03)."""
    own = [toleration(replace(gpus, resource=toleration_key(model, gpus)))] if gpus.count else []
    return own + [_without_empty(clean(item)) for item in spec.tolerations]


def _probes(spec: InferenceServiceSpec, runtime: Runtime, port: int) -> Probes:
    """The runtime's probes; those of the user replace them one by one, each as a whole."""
    generated = probes(http_get(runtime.health, port) if runtime.health else tcp_socket(port))
    if runtime.generates:
        thorough = probes(http_get(runtime.generates, port))
        generated = Probes(thorough.startup, generated.liveness, thorough.readiness)
    own = spec.probe_overrides
    if own is None:
        return generated
    return Probes(
        startup=_probe(own.startup) or generated.startup,
        liveness=_probe(own.liveness) or generated.liveness,
        readiness=_probe(own.readiness) or generated.readiness,
    )


def _probe(own: Json | None) -> Json | None:
    """A probe as it is stored: 0 means the API server's default, an empty host or path means none."""
    if own is None:
        return None
    fields = {key: value for key, value in clean(own).items() if value != 0}
    return {key: _handler(value) if key in ("httpGet", "tcpSocket") else value for key, value in fields.items()}


def _handler(value: Any) -> Any:
    return _without_empty(value) if isinstance(value, dict) else value


def _security(spec: InferenceServiceSpec, settings: Settings) -> Json:
    """Of the pod: what the user wrote, as a whole, so without our ``fsGroup``."""
    if spec.pod_security_context is None:
        return default_pod_security(settings)
    return normalised(clean(spec.pod_security_context))


def _container_security(spec: InferenceServiceSpec) -> Json:
    """Of the server's container: what the user wrote, as a whole, even when that is empty."""
    if spec.security_context is None:
        return _CONTAINER_SECURITY
    return normalised(clean(spec.security_context))
