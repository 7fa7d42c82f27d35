"""Configuration of the service, read once from the environment.

The variable of a setting is ``MODELHOOKS_`` and its field name in capitals. An empty string is a value
(``MODELHOOKS_LLMKUBE_MODEL_CACHE_PATH=`` switches the model cache off); to get the default, leave the variable out.
``make generate`` writes the settings table in ``docs/operations/settings.md`` from the docstrings below.
"""

import difflib
import hashlib
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from app import images

PREFIX = "MODELHOOKS_"
INTEL_GPU_RESOURCE_VARIABLE = "LLMKUBE_INTEL_GPU_RESOURCE"


def _split(value: object) -> object:
    """Split ``a, b`` into ``("a", "b")``; an empty string is an allow-list that allows nothing."""
    if isinstance(value, str):
        return tuple(item.strip() for item in value.split(",") if item.strip())
    return value


def _labels(value: object) -> object:
    """Parse ``key=value,key=value``."""
    if not isinstance(value, str):
        return value
    pairs = [item.strip().partition("=") for item in value.split(",") if item.strip()]
    if not all(key and equals for key, equals, _ in pairs):
        raise ValueError(f"{value!r} is not of the form key=value,key=value")
    return tuple((key, text) for key, _, text in pairs)


def _not_a_service_link(value: object) -> object:
    """Drop the address that the kubelet puts into MODELHOOKS_PORT when a Service is called ``modelhooks``.

    Our own Deployment switches those variables off; a hand-written one may not.
    """
    if isinstance(value, str) and value.startswith(("tcp://", "udp://")):
        return DEFAULT_PORT
    return value


def _absolute(paths: tuple[str, ...]) -> tuple[str, ...]:
    for path in paths:
        if not path.startswith("/"):
            raise ValueError(f"{path!r} must be an absolute path")
    return paths


DEFAULT_PORT = 8443
NO_INPUT = object()
"""Marks a setting whose change restarts nothing: no pod template is made from it, or pods keep the one they have."""


def minor_release(release: str) -> str:
    """Return ``1.34`` of ``v1.34.2``. Raises ValueError for anything but a release of Kubernetes."""
    match = re.fullmatch(r"v?(1\.[0-9]{1,3})([.+-].*)?", release)
    if release and match is None:
        raise ValueError(f"{release!r} is no release of Kubernetes such as 1.34")
    return match[1] if match else ""


def _namespaced(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9-]{1,63}/[a-z0-9.-]{1,253}", name):
        raise ValueError(f"{name!r} must have the form namespace/name")
    return name


AllowedPaths = Annotated[tuple[str, ...], AfterValidator(_absolute), BeforeValidator(_split)]
Names = Annotated[tuple[str, ...], BeforeValidator(_split)]
AllowList = Annotated[tuple[str, ...] | None, BeforeValidator(_split)]
Port = Annotated[int, BeforeValidator(_not_a_service_link), Field(ge=0, le=65535)]
NamespacedName = Annotated[str, AfterValidator(_namespaced)]
Labels = Annotated[tuple[tuple[str, str], ...], BeforeValidator(_labels)]
Release = Annotated[str, AfterValidator(minor_release)]
Trimmed = Annotated[str, StringConstraints(strip_whitespace=True)]


class Settings(BaseModel):
    """The settings of the service. Immutable, so a hook's answer depends on nothing that changes.

    Those that are not arguments are read from the environment. pydantic-settings would do the same, but takes a third
    of the CPU time of a short command, since it imports asyncio and readers of files that are not used here.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())

    def __init__(self, **arguments: object) -> None:
        super().__init__(**{**_from_environment(os.environ), **arguments})

    # The server.

    host: Annotated[str, NO_INPUT] = "0.0.0.0"  # noqa: S104 - a pod has to be reached from outside itself; NetworkPolicy says by whom
    """Address to listen on."""
    port: Annotated[Port, NO_INPUT] = DEFAULT_PORT
    """Port to listen on."""
    tls_cert_file: Annotated[str, NO_INPUT] = ""
    """PEM file with the serving certificate, read again when it changes; empty: plain HTTP."""
    tls_key_file: Annotated[str, NO_INPUT] = ""
    """PEM file with its private key."""
    log_format: Annotated[Literal["json", "text"], NO_INPUT] = "json"
    """`json` or `text`."""
    log_level: Annotated[Literal["debug", "info", "warning", "error"], NO_INPUT] = "info"
    """`debug`, `info`, `warning` or `error`."""
    lameduck_seconds: Annotated[float, NO_INPUT] = Field(default=0, ge=0)
    """Time that a stopping pod goes on serving, in seconds; the shipped Deployment sets 15."""
    graceful_shutdown_seconds: Annotated[int, NO_INPUT] = Field(default=20, ge=0)
    """Time that running requests may take after that, in seconds."""
    max_sync_bytes: Annotated[int, NO_INPUT] = Field(default=8 * 1024 * 1024, ge=1024)
    """The largest hook request, and conversion review; a resource above it keeps its children and is not updated."""
    openapi: Annotated[bool, NO_INPUT] = False
    """Serve `/openapi.json` and `/docs`, whose page loads Swagger UI from cdn.jsdelivr.net."""

    # All families.

    keep_pod_templates: Annotated[bool, NO_INPUT] = True
    """A new release leaves pods as they are until a change reaches them; see *Upgrades*."""
    cluster_domain: str = "cluster.local"
    """The cluster's DNS domain."""
    kubernetes_release: Annotated[Release, NO_INPUT] = ""
    """Release of the cluster, such as `1.34`; empty: 1.37. Admission warns of fields that its API server drops and of
    values that it refuses; a field that it newly requires is an error only where the release is set."""
    watch_pods: Annotated[bool, NO_INPUT] = True
    """Ask for the Pods of a workload, to say why it is not ready; see *Watching*."""

    # LLMKube.

    llmkube_model_cache_path: str = "/models"
    """Not empty: models are kept on a claim; empty: each pod downloads for itself."""
    llmkube_model_cache_size: Annotated[str, NO_INPUT] = "100Gi"
    """Size of a cache claim."""
    llmkube_model_cache_storage_class: Annotated[str, NO_INPUT] = ""
    """Its storage class; empty: the cluster's default."""
    llmkube_model_cache_access_mode: Annotated[str, NO_INPUT] = "ReadWriteOnce"
    """`ReadWriteMany`, where pods of one model run on several nodes."""
    llmkube_model_cache_claim: str = ""
    """An existing claim to use, in the namespaces that have it."""
    llmkube_keep_old_files: Annotated[bool, NO_INPUT] = False
    """Keep the files of a Model's earlier sources on its claim; see *Files of earlier sources*."""
    llmkube_ca_cert_configmap: str = ""
    """ConfigMap in the workload's namespace with CAs that downloads trust."""
    llmkube_init_container_image: str = images.DOWNLOADER
    """Image of the downloader."""
    llmkube_download_pull_secrets: Annotated[Names, NO_INPUT] = ()
    """Secrets of each Model's namespace, by commas, with which its Job pulls that image; pods that serve have those of
    their InferenceService."""
    llmkube_default_fsgroup: int = 102
    """`fsGroup` of pods without a security context; 0: none."""
    llmkube_intel_gpu_resource: Trimmed = "gpu.intel.com/i915"
    """Resource name of Intel GPUs; `LLMKUBE_INTEL_GPU_RESOURCE` is read too."""
    llmkube_dri_render_gid: int = 0
    """Group of `/dev/dri/renderD128` on the nodes, for pods that reach a GPU through Vulkan and have no security
    context; 0: none."""
    llmkube_allowed_source_hosts: Annotated[AllowList, NO_INPUT] = None
    """Hosts that files may come from, by commas; `s3://` is then refused, and repositories, which the server downloads,
    are not checked. Not set: any host, except link-local and metadata addresses."""
    llmkube_allowed_host_paths: AllowedPaths = ()
    """Node directories that local sources may name, by commas; empty: none."""
    llmkube_gpu_sharing_pool: Labels = ()
    """Labels of the nodes whose GPUs pods share, as `key=value` separated by commas. Empty: there is no such pool."""
    llmkube_queue_position: Annotated[bool, NO_INPUT] = True
    """Services waiting for a GPU ask for all others, to know their place; see *Watching*."""
    llmkube_watch_nodes: Annotated[bool, NO_INPUT] = True
    """GPU Models ask for Nodes, to say whether one has the GPU; see *Watching*."""
    llmkube_watch_endpoint_slices: Annotated[bool, NO_INPUT] = True
    """InferenceServices of LLMKube ask for EndpointSlices, where a metal agent writes its address; see *Watching*."""

    # llmaz.

    llmaz_system_namespace: str = "llmaz-system"
    """Namespace of `llmaz-global-config`."""
    llmaz_flavor_affinity: bool = True
    """Pods run on the nodes that their flavors' `nodeSelector` names; `false`: a scheduler or Karpenter that reads
    OpenModels sees to it."""
    llmaz_object_loader_image: str = images.STORAGE_INITIALIZER
    """Image that fetches `s3://`, `gs://` and `gcs://`; a change replaces the pods of such models; empty: only engines
    that load by themselves can serve them."""
    llmaz_image_volumes: bool = False
    """`oci://` models are mounted, where every node can: Kubernetes 1.35 (1.33 with the feature gate `ImageVolume`),
    containerd 2.1 or CRI-O 1.33; `false`: an init container copies them."""
    llmaz_gateway: Annotated[NamespacedName, NO_INPUT] = "ai-gateway/models"
    """The Gateway that models are served behind, with the component `envoy-ai-gateway`."""
    llmaz_gateway_timeout: Annotated[str, NO_INPUT] = Field(default="180s", pattern=r"^([0-9]{1,5}(h|m|s|ms)){1,4}$")
    """Maximum duration of a request there, a streamed answer included."""

    # KServe.

    kserve_system_namespace: str = "kserve"
    """Namespace of presets and of `inferenceservice-config`."""
    kserve_config_prefix: str = "kserve-"
    """First part of the well-known presets' names."""
    kserve_presets: Annotated[Literal["v0.20", "v0.17"], NO_INPUT] = "v0.20"
    """Edition of the built-in presets: the values of that release of KServe. After a change from `v0.17` to `v0.20`
    pods keep theirs until their user changes them; the way back restarts them."""
    kserve_versioned_config: bool = True
    """A service keeps the preset versions that it started with."""
    kserve_wildcard_hostname: Annotated[str, NO_INPUT] = "inference"
    """Stands for the `*` of a wildcard listener in a URL."""
    kserve_priority_critical: Annotated[int, NO_INPUT] = 100
    """Priority of requests for a model or adapter of criticality `Critical`."""
    kserve_priority_standard: Annotated[int, NO_INPUT] = 0
    """The same for `Standard`; what has no criticality has priority 0."""
    kserve_priority_sheddable: Annotated[int, NO_INPUT] = -1
    """The same for `Sheddable`; requests below 0 may be refused while the pods are busy."""

    @property
    def digest(self) -> str:
        """Return the SHA-256 of all settings, the key under which results are cached."""
        return _digest(self)

    def chosen(self, family: str) -> dict[str, object]:
        """Return the settings that were set and whose change may restart pods of a family, by name."""
        others = tuple(f"{other}_" for other in ("llmkube", "llmaz", "kserve") if other != family)
        return {name: getattr(self, name) for name in self.model_fields_set & _INPUTS if not name.startswith(others)}


@lru_cache(maxsize=16)
def _digest(settings: Settings) -> str:
    """Return the digest by value: a copy with other values would keep what an object had cached."""
    return hashlib.sha256(settings.model_dump_json().encode()).hexdigest()


_INPUTS = {name for name, field in Settings.model_fields.items() if NO_INPUT not in field.metadata}


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that have a variable, by field. The Go operator's variable counts if ours is not set."""
    fields = {variable_name(name): name for name in Settings.model_fields}
    settings = {fields[name]: value for name, value in environ.items() if name in fields}
    if INTEL_GPU_RESOURCE_VARIABLE in environ:
        settings.setdefault("llmkube_intel_gpu_resource", environ[INTEL_GPU_RESOURCE_VARIABLE])
    return settings


def variable_name(field: str) -> str:
    return PREFIX + field.upper()


def unknown_variables(environ: Mapping[str, str] | None = None) -> list[str]:
    """Return a warning for each ``MODELHOOKS_*`` variable that is not a setting, such as a misspelt one."""
    names = os.environ if environ is None else environ
    ours = sorted(name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX))
    settings = [name.upper() for name in Settings.model_fields]
    return [_unknown(name, settings) for name in ours if name not in settings and not name.startswith(_NOT_SETTINGS)]


_NOT_SETTINGS = ("SERVICE_", "PORT_", "E2E", "BROWSER")
"""Service links of the kubelet, and variables of the test suite, which runs the service in its own environment."""


def _unknown(name: str, settings: list[str]) -> str:
    close = difflib.get_close_matches(name, settings, n=1)
    return f"{PREFIX}{name} is not a setting" + (f", did you mean {PREFIX}{close[0]}?" if close else "")
