"""Every decision about the pods of a service and the objects in front of them. Source: LK-3 and LK-4."""

from __future__ import annotations

import posixpath

import msgspec

from app.kube import objects
from app.kube.base import Json
from app.kube.child import without_none
from app.kube.names import is_dns1123_subdomain
from app.kube.podspec import each_name_once, normalised
from app.kube.quantity import canonical, canonical_value, is_quantity
from app.kube.reading.stored import clean
from app.llmkube import download, names
from app.llmkube.inferenceservice.types import (
    Endpoint,
    GPUSharing,
    InferenceService,
    InferenceServiceSpec,
    ModelCache,
    ProbeOverrides,
)
from app.llmkube.model.plan import gpu_resource
from app.llmkube.model.types import Model, ModelResources, ModelSpec
from app.llmkube.runtimes.registry import runtime as runtime_of
from app.llmkube.runtimes.registry import server_port
from app.llmkube.runtimes.runtime import Runtime, Serving, host_memory, read_extra, service_engine
from app.llmkube.source import Source, SourceClass, source_of
from app.settings import Settings, variable_name
from app.workload import autoscaler, parts
from app.workload.parts import GPURequest

PORT_NAME = "http"
"""The Service and the PodMonitor find the container's port by this name (LK-T-44)."""

DEFAULT_ENDPOINT = Endpoint()
_DEFAULT_CACHE = ModelCache()
_NO_OVERRIDES = ProbeOverrides()
_NO_RESOURCES = ModelResources()
_WHOLE_GPUS = GPUSharing()


_RECREATE: Json = {"type": "Recreate"}
"""With a GPU the old pod is deleted first: the new one might wait for its GPU forever (LK-T-07)."""
_ROLLING_UPDATE: Json = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
"""The API's defaults, written out so that they are recorded as ours and a switch to ``Recreate`` can remove them."""


class InferencePlan(msgspec.Struct, frozen=True):
    """The decisions about a service. Empty maps and lists of its pods are ``None``, and left out of the objects."""

    name: str
    namespace: str
    spec: InferenceServiceSpec
    labels: dict[str, str]
    selector: dict[str, str]
    pod_labels: dict[str, str]
    pod_annotations: dict[str, str]
    replicas: int
    """Replicas of the spec; an autoscaler may change them."""
    scaling: Json | None
    """The autoscaler's spec; ``None`` for a service that does not autoscale, or is suspended."""
    runtime: Runtime
    gpus: GPURequest
    pod: Json

    @property
    def has_gpus(self) -> bool:
        """Return whether pods have GPUs, counted or claimed, for which a new pod may wait."""
        return bool(self.gpus.count or self.claims_gpus)

    @property
    def strategy(self) -> Json:
        return _RECREATE if self.has_gpus else _ROLLING_UPDATE

    @property
    def claims_gpus(self) -> bool:
        """Return whether pods have GPUs of ResourceClaims, which alone know their number."""
        return not self.gpus.count and bool(self.pod.get("resourceClaims"))


def plan(
    service: InferenceService,
    model: Model,
    draft_model: Model | None,
    settings: Settings,
    operator_claim: str = "",
    *,
    autoscaled: bool = False,
) -> InferencePlan:
    """Return the decisions for a Model that is Ready. ``operator_claim`` is empty unless the namespace has it."""
    metadata, spec, runtime = service.metadata, service.spec, runtime_of(service.spec.runtime)
    gpus, source = gpu_request(model.spec, spec, settings), source_of(model.spec)
    mounts_model = runtime.mounts_model and not spec.skip_model_init
    main = _storage(model, source, spec, operator_claim, settings) if mounts_model else _FETCHED_BY_SERVER
    draft = _draft(spec, draft_model, main, operator_claim, settings)
    serving = Serving(
        runtime=runtime.name,
        spec=spec,
        model=model.spec,
        source=source,
        path=_served(main, runtime, model.spec),
        mounts_model=mounts_model,
        port=server_port(spec),
        gpus=gpus.count or int(bool(model.spec.gpu.resource_claims)),
        draft=draft.path,
        directory=main.directory,
        engine=service_engine(spec, runtime.image),
        extra=read_extra(spec, runtime),
    )
    labels = names.pod_labels(metadata.name, spec.model_ref, runtime.name)
    # Only by the spec: an annotation that depended on the status would restart pods.
    protected = spec.disruption is not None and spec.disruption.protect_always
    protection = {names.DO_NOT_DISRUPT: "true"} if protected else {}
    return InferencePlan(
        name=metadata.name,
        namespace=metadata.namespace,
        spec=spec,
        labels=labels,
        selector=names.service_labels(metadata.name),
        pod_labels={**spec.pod_labels, **labels},
        pod_annotations={**protection, **spec.pod_annotations},
        replicas=replicas_of(spec),
        scaling=_scaling(metadata.name, spec, runtime, autoscaled=autoscaled),
        runtime=runtime,
        gpus=gpus,
        pod=_pod(serving, runtime, main, draft, gpus, settings),
    )


def _pod_security(gpus: GPURequest, settings: Settings) -> Json:
    """Return the default security context, with the group of the device file through which Vulkan reaches a GPU."""
    context, group = download.default_pod_security(settings), settings.llmkube_dri_render_gid
    needs_group = gpus.count and gpus.resource == names.DRI_RENDER and group > 0
    return {**context, "supplementalGroups": [group]} if needs_group else context


def _pod(
    serving: Serving, runtime: Runtime, main: Storage, draft: Storage, gpus: GPURequest, settings: Settings
) -> Json:
    spec, model, claims = serving.spec, serving.model, serving.model.gpu.resource_claims
    shared = _shared_memory(serving, runtime)
    return without_none(
        containers=[_server(serving, runtime, gpus, [*main.mounts, *draft.mounts, *shared.mounts])],
        initContainers=[step for step in (main.init, draft.init) if step] or None,
        volumes=[*main.volumes, *draft.volumes, *shared.volumes, *_embedded(spec.extra_volumes)] or None,
        securityContext=_replaced(_pod_security(gpus, settings), spec.pod_security_context),
        priorityClassName=priority_class(spec),
        runtimeClassName=spec.runtime_class_name or None,
        imagePullSecrets=[clean(secret) for secret in each_name_once(spec.image_pull_secrets)] or None,
        enableServiceLinks=runtime.service_links,
        tolerations=_tolerations(spec, gpus, model) or None,
        nodeSelector={**pool_selector(model, spec, settings), **spec.node_selector} or None,
        affinity=normalised(clean(spec.affinity or {})) or None,
        topologySpreadConstraints=_embedded(spec.topology_spread_constraints) or None,
        resourceClaims=[claim.model_dump(by_alias=True, exclude_none=True) for claim in claims] or None,
    )


def _server(serving: Serving, runtime: Runtime, gpus: GPURequest, mounts: list[Json]) -> Json:
    spec, probes = serving.spec, serving.spec.probe_overrides or _NO_OVERRIDES
    alive = _handler(runtime.health, serving.port)
    loaded = _handler(runtime.generates or runtime.health, serving.port)
    variables = each_name_once([*runtime.environment(spec), *spec.env], moved=True)
    return without_none(
        name=runtime.container,
        image=spec.image or _image(runtime, serving.model, gpus),
        command=spec.command or list(runtime.command) or None,
        args=runtime.arguments(serving) or None,
        ports=[{"name": PORT_NAME, "containerPort": serving.port, "protocol": "TCP"}],
        env=[_stored(clean(variable)) for variable in variables] or None,
        resources=_resources(spec, serving.model, gpus) or None,
        volumeMounts=[*mounts, *_embedded(spec.extra_volume_mounts)] or None,
        startupProbe=_replaced({**loaded, **_STARTUP}, probes.startup),
        livenessProbe=_replaced({**alive, **_LIVENESS}, probes.liveness),
        readinessProbe=_replaced({**loaded, **_READINESS}, probes.readiness),
        securityContext=_replaced(_CONTAINER_SECURITY, spec.security_context),
        terminationMessagePolicy=parts.TERMINATION_MESSAGE_POLICY,
    )


def _served(storage: Storage, runtime: Runtime, model: ModelSpec) -> str:
    """Return the path on the command line: a directory if the runtime loads all its files (LK-3.6.1)."""
    is_directory = runtime.loads_directories and model.format != "gguf"
    return storage.directory if is_directory and storage.directory else storage.path


def replicas_of(spec: InferenceServiceSpec) -> int:
    if spec.suspend:
        return 0
    return 1 if spec.replicas is None else spec.replicas


def endpoint(metadata: objects.ObservedMeta, spec: InferenceServiceSpec, settings: Settings) -> str:
    host = f"{names.service_name(metadata.name)}.{metadata.namespace}.svc.{settings.cluster_domain}"
    service = spec.endpoint or DEFAULT_ENDPOINT
    return f"http://{host}:{service.port}{service.path or DEFAULT_ENDPOINT.path}"


def priority_class(spec: InferenceServiceSpec) -> str:
    return spec.priority_class_name or names.PRIORITY_CLASS_PREFIX + spec.priority


def _image(runtime: Runtime, model: ModelSpec, gpus: GPURequest) -> str:
    makers = {"nvidia.com": "cuda", "amd.com": "amd"}
    maker = makers.get(gpus.resource.partition("/")[0], "") if gpus.count else ""
    return runtime.device_images.get(model.gpu.amd_device or maker, runtime.image)


def missing_metric(spec: InferenceServiceSpec) -> str:
    """Return which metric the user has to name before an autoscaler is made; empty if none."""
    runtime = runtime_of(spec.runtime)
    if spec.autoscaling is None or spec.autoscaling.metrics or runtime.scraped:
        return ""
    instead = "name a metric that the server exports, or cpu or memory"
    return f"runtime {runtime.name} has no default metric, so no autoscaler is made: {instead}"


DEFAULT_TARGET = "2"
"""Requests in process per pod, of an autoscaler without metrics."""


def _scaling(name: str, spec: InferenceServiceSpec, runtime: Runtime, *, autoscaled: bool) -> Json | None:
    """Return the spec of the autoscaler. One that exists keeps its default metric, which the image may export."""
    autoscaling = spec.autoscaling
    if autoscaling is None or spec.suspend or (missing_metric(spec) and not autoscaled):
        return None
    metrics = [
        autoscaler.pods_metric(metric.name, metric.target_average_value)
        if metric.type == "Pods"
        else autoscaler.resource_metric(metric.name, metric.target_average_utilization or 0)
        for metric in autoscaling.metrics
    ]
    if not metrics and not runtime.metric:
        return None
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": autoscaling.min_replicas or 1,
        "maxReplicas": autoscaling.max_replicas,
        "metrics": metrics or [autoscaler.pods_metric(runtime.metric, DEFAULT_TARGET)],
    }


# The model in a pod: volumes, mounts, init container, and the path or name on the command line (LK-3.6).


class Storage(msgspec.Struct, frozen=True):
    """A model inside the pod. Empty if the server downloads the model itself."""

    path: str = ""
    volumes: tuple[Json, ...] = ()
    mounts: tuple[Json, ...] = ()
    init: Json | None = None
    directory: str = ""
    """Root of the paths of several files."""


_FETCHED_BY_SERVER = Storage()


def _storage(
    model: Model, source: Source, spec: InferenceServiceSpec, operator_claim: str, settings: Settings
) -> Storage:
    if source.kind is SourceClass.PVC:
        return _on_claim(source.claim, names.SOURCE_VOLUME, names.SOURCE_DIR, source.path)
    if not source.is_file:
        return _FETCHED_BY_SERVER
    fetched = _download(model, model.status.cache_key, source, spec.model_cache or _DEFAULT_CACHE, settings)
    claim = spec.cache_claim or _claim_of(model, operator_claim)
    return Storage(
        path=fetched.path,
        directory=fetched.directory if source.files else "",
        volumes=tuple(_sized(volume, spec) for volume in download.volumes(fetched, claim, settings)),
        mounts=(download.serving_mount(fetched),),
        init=download.container(fetched, settings, spec.pod_security_context),
    )


def _sized(volume: Json, spec: InferenceServiceSpec) -> Json:
    limit = _disk(spec).get(EPHEMERAL_STORAGE)
    return {**volume, "emptyDir": {"sizeLimit": limit}} if limit and volume["name"] == names.STORAGE_VOLUME else volume


def _download(model: Model, key: str, source: Source, own: ModelCache, settings: Settings) -> download.Download:
    """Return the download of a pod, into the directory of the Model's Job where the pod has its claim."""
    metadata = model.metadata
    without_claim = download.is_by_pods(metadata, source) and not own.claim_name
    cached = settings.llmkube_model_cache_path and own.persistence != "Ephemeral" and not without_claim
    return download.download(model.spec, source, metadata.namespace, metadata.name, key if cached else "")


def _claim_of(model: Model, operator_claim: str) -> str:
    return operator_claim or model.status.cache_claim or names.claim_name(model.metadata.name)


def _draft(
    spec: InferenceServiceSpec, model: Model | None, main: Storage, operator_claim: str, settings: Settings
) -> Storage:
    """Return the draft model, if it can be used (LK-B-08): a Model of the namespace, else the user's value."""
    runtime = runtime_of(spec.runtime)
    text = runtime.draft(spec)
    if not text or model is None or model.spec.on_metal:
        return _FETCHED_BY_SERVER if runtime.draft_is_model or is_dns1123_subdomain(text) else Storage(text)
    source = source_of(model.spec)
    if source.kind is SourceClass.REPOSITORY:
        return _FETCHED_BY_SERVER if runtime.draft_is_model else Storage(source.repository)
    if source.kind is SourceClass.PVC:
        return _mounted(source.claim, source.path, main)
    key = model.status.cache_key or source.cache_key
    cache = spec.model_cache or _DEFAULT_CACHE
    fetched = _download(model, key, source, ModelCache(persistence=cache.persistence), settings)
    if not fetched.cached:
        return _downloaded(fetched, main, spec, settings)
    return _mounted(_claim_of(model, operator_claim), fetched.path.removeprefix(f"{names.MODELS_DIR}/"), main)


def _downloaded(fetched: download.Download, main: Storage, spec: InferenceServiceSpec, settings: Settings) -> Storage:
    existing = {volume["name"] for volume in main.volumes}
    added = tuple(_sized(v, spec) for v in download.volumes(fetched, "", settings) if v["name"] not in existing)
    mount = download.serving_mount(fetched)
    downloader = download.container(fetched, settings, spec.pod_security_context)
    init = {**downloader, "name": names.DRAFT_DOWNLOADER}
    return Storage(fetched.path, added, () if mount["name"] in existing else (mount,), init)


def _mounted(claim: str, inside: str, main: Storage) -> Storage:
    """Return a draft model on a claim: below the main model's mount if it is the same claim, else on another mount."""
    shared = {v["name"] for v in main.volumes if v.get("persistentVolumeClaim", {}).get("claimName") == claim}
    for mount in main.mounts:
        if mount["name"] in shared:
            return Storage(posixpath.join(mount["mountPath"], inside))
    return _on_claim(claim, names.DRAFT_VOLUME, names.DRAFT_DIR, inside)


def _on_claim(claim: str, name: str, directory: str, inside: str) -> Storage:
    volume = {"name": name, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}
    return Storage(posixpath.join(directory, inside), (volume,), (parts.read_only_mount(name, directory),))


def _shared_memory(serving: Serving, runtime: Runtime) -> Storage:
    """Return memory for the engine's processes, one per GPU, which need more than the 64 MiB of container runtimes.

    It has no size limit: pages count as memory of the container when they are written.
    """
    volumes = {volume.get("name") for volume in serving.spec.extra_volumes}
    mounts = {posixpath.normpath(mount.get("mountPath") or "") for mount in serving.spec.extra_volume_mounts}
    users = names.SHM_VOLUME in volumes or mounts & {names.SHM_DIR, posixpath.dirname(names.SHM_DIR)}
    if not runtime.divides_layers or serving.gpus < 2 or users:
        return Storage()
    volume = {"name": names.SHM_VOLUME, "emptyDir": {"medium": "Memory"}}
    return Storage(volumes=(volume,), mounts=({"name": names.SHM_VOLUME, "mountPath": names.SHM_DIR},))


# Single fields of the pod (LK-3). What users embed is cleaned before it is sent: what the API server would not store
# would look like a change to Metacontroller at every sync.

_CONTAINER_SECURITY: Json = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def _resources(spec: InferenceServiceSpec, model: ModelSpec, gpus: GPURequest) -> Json:
    """Return GPUs as limits, which extended resources require, and requests, which default to the Model's (LK-B-03)."""
    stated, fallback = spec.requests, model.resources or _NO_RESOURCES
    cpu, memory = stated.cpu or fallback.cpu, host_memory(spec, model)
    # The Model's hook, which may not have run yet, reports invalid quantities.
    requests = {name: canonical(text) for name, text in (("cpu", cpu), ("memory", memory)) if is_quantity(text)}
    requests |= _disk(spec)
    limits = {**({gpus.resource: str(gpus.count)} if gpus.count else {}), **_disk(spec)}
    claims = [{"name": claim.name} for claim in model.gpu.resource_claims]
    return without_none(limits=limits or None, requests=requests or None, claims=claims or None)


EPHEMERAL_STORAGE = "ephemeral-storage"


def _disk(spec: InferenceServiceSpec) -> dict[str, str]:
    """Return the request and limit of ephemeral storage. They are equal, so that a pod within it is not evicted."""
    text = spec.requests.ephemeral_storage
    return {EPHEMERAL_STORAGE: canonical(text)} if text else {}


def _embedded(items: list[Json]) -> list[Json]:
    return [normalised(clean(item)) for item in items]


def _stored(variable: Json) -> Json:
    """Return a variable as the API server stores it: with a canonical divisor, without an empty value."""
    reference = (variable.get("valueFrom") or {}).get("resourceFieldRef")
    if reference and "divisor" in reference:
        reference["divisor"] = canonical_value(reference["divisor"])
    return {key: value for key, value in variable.items() if value != ""}


def _tolerations(spec: InferenceServiceSpec, gpus: GPURequest, model: ModelSpec) -> list[Json]:
    key = model.gpu.toleration_key or gpus.resource
    of_gpus: Json = {"key": key, "operator": "Equal", "value": "present", "effect": "NoSchedule"}
    return [*([of_gpus] if gpus.count else []), *_embedded(spec.tolerations)]


_STARTUP: Json = {
    "periodSeconds": parts.STARTUP_PERIOD,
    "timeoutSeconds": parts.STARTUP_PERIOD,  # longer, and a server that hangs would be given more than half an hour
    "failureThreshold": parts.LOAD_ATTEMPTS,
}
_LIVENESS: Json = {"periodSeconds": 15, "timeoutSeconds": 5, "failureThreshold": 3}
_READINESS: Json = {"periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 3}


def _handler(path: str, port: int) -> Json:
    return {"httpGet": {"path": path, "port": port}} if path else {"tcpSocket": {"port": port}}


def _replaced(default: Json, own: Json | None) -> Json:
    return default if own is None else normalised(clean(own))


# GPUs of a service's pods: their number, resource and nodes, and why they cannot be requested (LK-3.4, LK-3.4.1).


def gpu_request(model: ModelSpec, spec: InferenceServiceSpec, settings: Settings) -> GPURequest:
    """Return the GPUs of one pod. A service cannot request fewer than its Model does, not even none."""
    shares = sharing(spec)
    resource = gpu_resource(model, (model.accelerator, model.gpu.vendor), settings) or names.NVIDIA_GPU
    if shares.mode == "partitioned":
        resource = f"{names.MIG_PARTITION}{shares.profile}"
    return GPURequest(model.gpu.count or spec.requests.gpu or 0, resource)


def sharing(spec: InferenceServiceSpec) -> GPUSharing:
    return spec.requests.gpu_sharing or _WHOLE_GPUS


def pool_selector(model: ModelSpec, spec: InferenceServiceSpec, settings: Settings) -> dict[str, str]:
    """Return the node labels of the shared pool; empty for pods that use none. AMD GPUs need no pool."""
    shared = sharing(spec).mode == "shared" and model.gpu.vendor != "amd"
    return dict(settings.llmkube_gpu_sharing_pool) if shared else {}


def sharing_problem(model: ModelSpec, spec: InferenceServiceSpec, settings: Settings) -> str:
    mode, gpu = sharing(spec).mode, model.gpu
    if mode == "exclusive":
        return ""
    count = gpu_request(model, spec, settings).count
    if count != 1:
        return f"mode {mode} requires exactly one GPU, and a pod requests {count}"
    if gpu.resource_claims:
        return f"mode {mode} cannot be combined with hardware.gpu.resourceClaims of the Model"
    if mode == "shared":
        pool = settings.llmkube_gpu_sharing_pool or gpu.vendor == "amd"
        return "" if pool else f"mode shared requires a pool of nodes ({variable_name('llmkube_gpu_sharing_pool')})"
    if gpu.vendor != "nvidia":
        return f"mode partitioned requires NVIDIA GPUs, and the Model has vendor {gpu.vendor}"
    if gpu.resource_name:
        return f"mode partitioned cannot be combined with hardware.gpu.resourceName {gpu.resource_name} of the Model"
    return ""


def gpu_resources(settings: Settings) -> tuple[str, ...]:
    """Return every resource that counts as a GPU in the scheduler's message (LK-5.4)."""
    fixed = (names.NVIDIA_GPU, names.AMD_GPU, names.INTEL_GPU, names.INTEL_XE_GPU, names.DRI_RENDER)
    return tuple(dict.fromkeys((*fixed, settings.llmkube_intel_gpu_resource or names.INTEL_GPU)))
