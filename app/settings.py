"""Operator configuration: what a cluster's operator may set, read once from the environment.

The name of a setting is ``MODELHOOKS_`` and its field name in capitals. An empty text is a value, not an absence
(``MODELHOOKS_LLMKUBE_MODEL_CACHE_PATH=`` switches the model cache off); to get a default back, leave the variable out.
The docstrings below are also the text of the settings table in ``docs/operations.md``.
"""

import difflib
import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from app import images

PREFIX = "MODELHOOKS_"
INTEL_GPU_RESOURCE_VARIABLE = "LLMKUBE_INTEL_GPU_RESOURCE"


def _split(value: object) -> object:
    """``a, b`` as ``("a", "b")``; an empty text is an allow-list that allows nothing."""
    if isinstance(value, str):
        return tuple(item.strip() for item in value.split(",") if item.strip())
    return value


def _not_a_service_link(value: object) -> object:
    """Drop the address that the kubelet puts into MODELHOOKS_PORT when a Service is called ``modelhooks``.

    Our own Deployment switches those variables off; a hand-written one may not.
    """
    if isinstance(value, str) and value.startswith(("tcp://", "udp://")):
        return DEFAULT_PORT
    return value


def _stripped(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


def _absolute(paths: tuple[str, ...]) -> tuple[str, ...]:
    for path in paths:
        if not path.startswith("/"):
            raise ValueError(f"{path!r} is no absolute path")
    return paths


DEFAULT_PORT = 8443


def _namespaced(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9-]{1,63}/[a-z0-9.-]{1,253}", name):
        raise ValueError(f"{name!r} is not of the form namespace/name")
    return name


AllowedPaths = Annotated[tuple[str, ...], AfterValidator(_absolute), BeforeValidator(_split)]
AllowList = Annotated[tuple[str, ...] | None, BeforeValidator(_split)]
Port = Annotated[int, BeforeValidator(_not_a_service_link), Field(ge=0, le=65535)]
NamespacedName = Annotated[str, AfterValidator(_namespaced)]
Trimmed = Annotated[str, BeforeValidator(_stripped)]


class Settings(BaseModel):
    """Every knob of the service. Immutable, so a hook's answer depends on nothing that moves.

    What is not given is read from the environment. pydantic-settings does the same for a third of the CPU time of a
    short command, for it brings asyncio and readers of files that nobody has.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())

    def __init__(self, **given: Any) -> None:
        super().__init__(**{**_from_environment(os.environ), **given})

    # The server.

    host: str = "0.0.0.0"  # noqa: S104 - a pod has to be reached from outside itself; NetworkPolicy says by whom
    """Address to listen on."""

    port: Port = DEFAULT_PORT
    """Port to listen on; 0 lets the system choose one."""

    tls_cert_file: str = ""
    """PEM file with the serving certificate. It is read again when it changes. Empty: plain HTTP."""

    tls_key_file: str = ""
    """PEM file with the certificate's private key."""

    log_format: Literal["json", "text"] = "json"
    """One JSON object per line, or text for people."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe line that is written."""

    lameduck_seconds: float = Field(default=0, ge=0)
    """How long a stopping process goes on serving, with `Connection: close`, before it stops accepting connections.
    The shipped Deployment sets 15: longer than it takes until no endpoint names the pod any more."""

    graceful_shutdown_seconds: int = Field(default=20, ge=0)
    """After the lame-duck time: how long requests that are still running may take."""

    max_sync_bytes: int = Field(default=8 * 1024 * 1024, ge=1024)
    """The largest hook request that is read. A parent above it is answered 413 and keeps its children as they are."""

    openapi: bool = False
    """Whether `/openapi.json` and `/docs` are served. The page of `/docs` loads Swagger UI from cdn.jsdelivr.net."""

    # All families.

    keep_pod_templates: bool = True
    """Whether pods keep the template that they were started with when only a new release would write another one."""

    cluster_domain: str = "cluster.local"
    """The cluster's DNS domain, as it stands in the names of Services."""

    watch_pods: bool = True
    """Whether hooks ask for the Pods of a workload, to say why it is not ready."""

    # LLMKube.

    llmkube_model_cache_path: str = "/models"
    """Not empty: models are kept on a PersistentVolumeClaim. Empty: each pod downloads into an `emptyDir`."""

    llmkube_model_cache_size: str = "100Gi"
    """Size of a model cache claim. Empty means `100Gi`."""

    llmkube_model_cache_storage_class: str = ""
    """Storage class of a model cache claim. Empty: the cluster's default class."""

    llmkube_model_cache_access_mode: str = "ReadWriteOnce"
    """`ReadWriteMany` selects that mode; every other text means `ReadWriteOnce`, as with the Go operator."""

    llmkube_model_cache_claim: str = ""
    """Name of an existing claim to use, in the namespaces that have it, instead of one claim per Model."""

    llmkube_keep_old_files: bool = False
    """Whether the files of a Model's earlier sources stay on its claim when nothing is seen to use them."""

    llmkube_ca_cert_configmap: str = ""
    """ConfigMap in the workload's namespace with CA certificates that downloads shall trust."""

    llmkube_init_container_image: str = images.DOWNLOADER
    """Image of the downloader."""

    llmkube_default_fsgroup: int = 102
    """`fsGroup` of pods that set no security context of their own. 0 or less: none."""

    llmkube_intel_gpu_resource: Trimmed = "gpu.intel.com/i915"
    """Extended resource of Intel GPUs. Also read without our prefix, as the Go operator has it."""

    llmkube_allowed_source_hosts: AllowList = None
    """Hosts that models may come from, separated by commas. Not set: any but link-local and metadata addresses."""

    llmkube_allowed_host_paths: AllowedPaths = ()
    """Directories of the node that local sources may name, separated by commas. Empty: none."""

    llmkube_queue_position: bool = True
    """Whether services that wait for a GPU ask for all InferenceServices, to know their place in the queue."""

    llmkube_watch_nodes: bool = True
    """Whether Models with a GPU accelerator ask for Nodes, to say whether one has it."""

    llmkube_watch_endpoint_slices: bool = True
    """Whether InferenceServices ask for EndpointSlices, where a metal agent writes its address."""

    # llmaz.

    llmaz_system_namespace: str = "llmaz-system"
    """Namespace of the ConfigMap `llmaz-global-config`."""

    llmaz_flavor_affinity: bool = True
    """Whether a flavor's `nodeSelector` becomes node affinity of the pods. Off, as with llmaz' own operator: for
    clusters where a scheduler or Karpenter reads OpenModels and the annotation on the pods instead."""

    llmaz_object_loader_image: str = images.STORAGE_INITIALIZER
    """Image that fetches models from `s3://`, `gs://` and `gcs://`. Empty: only engines that load by themselves can."""

    llmaz_image_volumes: bool = False
    """Whether models of `oci://` are mounted as image volumes. Set it where every node can: Kubernetes 1.35 (or 1.33
    with the feature gate ImageVolume), containerd 2.1 or CRI-O 1.33. Off: an init container copies the model."""

    llmaz_gateway: NamespacedName = "ai-gateway/models"
    """`namespace/name` of the Gateway that models are served behind, with the component `envoy-ai-gateway`."""

    llmaz_gateway_timeout: str = Field(default="180s", pattern=r"^([0-9]{1,5}(h|m|s|ms)){1,4}$")
    """How long a request to a model may take at that Gateway, the end of a streamed answer included."""

    # KServe.

    kserve_system_namespace: str = "kserve"
    """Namespace of the presets and of the ConfigMap `inferenceservice-config`."""

    kserve_config_prefix: str = "kserve-"
    """What the names of the well-known presets begin with."""

    kserve_versioned_config: bool = True
    """Whether a service keeps, in its status, the versions of the presets that it started with."""

    kserve_wildcard_hostname: str = "inference"
    """What stands for the `*` of a wildcard listener's hostname in a service's URL."""

    kserve_priority_critical: int = 100
    """Priority of requests for a model or adapter of criticality `Critical`."""

    kserve_priority_standard: int = 0
    """The same for `Standard`. Requests without a criticality have priority 0."""

    kserve_priority_sheddable: int = -1
    """The same for `Sheddable`. Requests below 0 may be refused while the pods are busy."""

    def chosen(self, family: str) -> dict[str, object]:
        """The settings that were made and may reach pods of a family, by name."""
        others = tuple(f"{other}_" for other in ("llmkube", "llmaz", "kserve") if other != family)
        made = sorted(self.model_fields_set - _NOT_OF_PODS)
        return {name: getattr(self, name) for name in made if not name.startswith(others)}


_NOT_OF_PODS = frozenset(
    {
        "host",
        "port",
        "tls_cert_file",
        "tls_key_file",
        "log_format",
        "log_level",
        "lameduck_seconds",
        "graceful_shutdown_seconds",
        "max_sync_bytes",
        "openapi",
        "keep_pod_templates",
        "watch_pods",
        "llmkube_queue_position",
        "llmkube_watch_nodes",
        "llmkube_watch_endpoint_slices",
        "llmkube_keep_old_files",
        "llmkube_allowed_source_hosts",
        "llmkube_model_cache_size",
        "llmkube_model_cache_storage_class",
        "llmkube_model_cache_access_mode",
        "llmaz_gateway",
        "llmaz_gateway_timeout",
        "kserve_wildcard_hostname",
        "kserve_priority_critical",
        "kserve_priority_standard",
        "kserve_priority_sheddable",
    }
)
"""Settings that no pod template is made from: changing one together with the release restarts nothing."""


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings that have a variable, by field. One of the Go operator's counts where ours is not set."""
    known = {variable_name(name): name for name in Settings.model_fields}
    found = {known[name]: value for name, value in environ.items() if name in known}
    if INTEL_GPU_RESOURCE_VARIABLE in environ:
        found.setdefault("llmkube_intel_gpu_resource", environ[INTEL_GPU_RESOURCE_VARIABLE])
    return found


def variable_name(field: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + field.upper()


def unknown_variables(environ: Mapping[str, str] | None = None) -> list[str]:
    """A line for each ``MODELHOOKS_*`` variable that is no setting: a misspelt one would do nothing, silently."""
    known = [variable_name(name) for name in Settings.model_fields]
    names = os.environ if environ is None else environ
    return [_unknown(name, known) for name in sorted(names) if name.startswith(PREFIX) and _is_unknown(name, known)]


def _is_unknown(name: str, known: list[str]) -> bool:
    links = (f"{PREFIX}SERVICE_", f"{PREFIX}PORT_", *_OTHER_PURPOSES)
    return name not in known and not name.startswith(links)


_OTHER_PURPOSES = (f"{PREFIX}E2E", f"{PREFIX}BROWSER")
"""Of the test suite, which runs the service in its own environment."""


def _unknown(name: str, known: list[str]) -> str:
    meant = {candidate.removeprefix(PREFIX): candidate for candidate in known}
    close = [meant[match] for match in difflib.get_close_matches(name.removeprefix(PREFIX), meant, n=1)]
    return f"{name} is not a setting" + (f", did you mean {close[0]}?" if close else "")
