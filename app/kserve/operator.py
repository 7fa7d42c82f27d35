"""The operator's settings: ConfigMap ``inferenceservice-config`` of the system namespace. Source: KS-1.9.

Each key holds a JSON document. A missing ConfigMap, key or field means the default; a document that cannot be read
means that nothing may be changed.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from app import images
from app.kserve.constants import MODEL_HEADER
from app.kube.quantity import QuantityError, canonical
from app.kube.reading.stored import Decoder

AUTOSCALING_KEY = "autoscaling-wva-controller-config"

CA_BUNDLE_PATH = "/etc/ssl/custom-certs"
_TLS_SETTING = "enableLLMInferenceServiceTLS"
NO_TLS = (
    f"{_TLS_SETTING} of the operator's settings has no effect with the presets of v0.17: requests inside the cluster "
    "are not encrypted"
)


class OperatorConfigError(Exception):
    """A document of the ConfigMap cannot be read. The message names the key."""


class _Document(msgspec.Struct, rename="camel"):
    """One key's document; unknown fields are somebody else's."""

    def check(self) -> None:
        """Raises ``ValueError`` for what the types cannot say."""


class Ingress(_Document):
    """``ingress``: the Gateway that managed routes attach to."""

    kserve_ingress_gateway: str = "kserve/kserve-ingress-gateway"
    """``namespace/name``; a bare name is one of the system namespace."""
    url_scheme: str = "http"
    """Which of a Gateway's listeners comes first in URLs."""
    model_based_routing_header_name: str = MODEL_HEADER
    model_based_routing_mode: str = "enabled"
    """``disabled`` takes the routes' matches by that header away; ``forced`` ignores annotations of Gateways."""
    disable_http_route_timeout: bool = msgspec.field(default=False, name="disableHTTPRouteTimeout")
    """Leave the timeouts of presets and configs out of routes, for gateways that refuse them."""
    tls: bool = msgspec.field(default=False, name=_TLS_SETTING)
    """Encrypt traffic inside the cluster, with certificates that somebody else writes."""

    def check(self) -> None:
        namespace, slash, name = self.kserve_ingress_gateway.partition("/")
        if "/" in name or (slash and not (namespace and name)):
            raise ValueError("kserveIngressGateway must be namespace/name")


class StorageInitializer(_Document):
    """``storageInitializer``: the container that downloads models, and the one that is a model (modelcar)."""

    image: str = images.STORAGE_INITIALIZER
    memory_request: str = "100Mi"
    memory_limit: str = "1Gi"
    cpu_request: str = "100m"
    cpu_limit: str = "1"
    ca_bundle_config_map_name: str = ""
    ca_bundle_volume_mount_path: str = CA_BUNDLE_PATH
    enable_modelcar: bool = True
    oci_model_mode: str = ""
    """``native``: images of oci:// are mounted, too, instead of run as a container."""
    cpu_modelcar: str = "10m"
    memory_modelcar: str = "15Mi"
    uid_modelcar: int | None = None
    """User that the model and the server run as; no default within a document that exists."""

    def check(self) -> None:
        download = (self.memory_request, self.memory_limit, self.cpu_request, self.cpu_limit)
        for amount in (*download, self.cpu_modelcar, self.memory_modelcar):
            canonical(amount)

    @property
    def resources(self) -> dict[str, object]:
        return {
            "requests": {"cpu": canonical(self.cpu_request), "memory": canonical(self.memory_request)},
            "limits": {"cpu": canonical(self.cpu_limit), "memory": canonical(self.memory_limit)},
        }

    @property
    def modelcar_resources(self) -> dict[str, object]:
        amounts = {"cpu": canonical(self.cpu_modelcar), "memory": canonical(self.memory_modelcar)}
        return {"requests": amounts, "limits": dict(amounts)}


class S3(_Document):
    """Names of the keys in a Secret, and defaults of the S3 variables."""

    access_key_id_name: str = msgspec.field(default="AWS_ACCESS_KEY_ID", name="s3AccessKeyIDName")
    secret_access_key_name: str = msgspec.field(default="AWS_SECRET_ACCESS_KEY", name="s3SecretAccessKeyName")
    endpoint: str = msgspec.field(default="", name="s3Endpoint")
    use_https: str = msgspec.field(default="", name="s3UseHttps")
    region: str = msgspec.field(default="", name="s3Region")
    verify_ssl: str = msgspec.field(default="", name="s3VerifySSL")
    use_virtual_bucket: str = msgspec.field(default="", name="s3UseVirtualBucket")
    use_accelerate: str = msgspec.field(default="", name="s3UseAccelerate")
    use_anonymous_credential: str = msgspec.field(default="", name="s3UseAnonymousCredential")
    ca_bundle_config_map: str = msgspec.field(default="", name="s3CABundleConfigMap")
    ca_bundle: str = msgspec.field(default="", name="s3CABundle")


class GCS(_Document):
    """Name of the key of a Google service account in a Secret."""

    credential_file_name: str = msgspec.field(
        default="gcloud-application-credentials.json", name="gcsCredentialFileName"
    )


class Credentials(_Document):
    """``credentials``: where download credentials are looked for."""

    storage_secret_name_annotation: str = "serving.kserve.io/storageSecretName"  # noqa: S105 - the name of an annotation
    s3: S3 = msgspec.field(default_factory=S3)
    gcs: GCS = msgspec.field(default_factory=GCS)


class Scheduler(_Document):
    """``scheduler``: how certificates are renewed. Nothing here acts on it, but it has to be readable like the rest."""


class Prometheus(_Document):
    """Address and credentials with which KEDA reads the metric of the workload variant autoscaler."""

    url: str = ""
    tls_insecure_skip_verify: bool = False
    auth_modes: str = ""
    trigger_auth_name: str = ""
    """A TriggerAuthentication of the service's namespace, or an object of ``trigger_auth_kind``."""
    trigger_auth_kind: str = ""


class AutoscalingConfig(_Document):
    """``autoscaling-wva-controller-config``: what ScaledObjects need (KS-5.3)."""

    prometheus: Prometheus = msgspec.field(default_factory=Prometheus)

    @property
    def problem(self) -> str:
        """Why no ScaledObject can be made; empty where one can."""
        prometheus = self.prometheus
        if not prometheus.url:
            return "prometheus.url is not set"
        if bool(prometheus.auth_modes) != bool(prometheus.trigger_auth_name):
            return "prometheus.authModes and prometheus.triggerAuthName need each other: set both or neither"
        return ""


class OperatorConfig(msgspec.Struct, frozen=True, rename="camel"):
    system_namespace: str
    ingress: Ingress = msgspec.field(default_factory=Ingress)
    storage_initializer: StorageInitializer = msgspec.field(
        default_factory=lambda: StorageInitializer(uid_modelcar=1010)
    )
    credentials: Credentials = msgspec.field(default_factory=Credentials)
    autoscaling: AutoscalingConfig = msgspec.field(default_factory=AutoscalingConfig, name=AUTOSCALING_KEY)
    scheduler: Scheduler = msgspec.field(default_factory=Scheduler)

    @property
    def gateway(self) -> tuple[str, str]:
        """Namespace and name of the default Gateway."""
        namespace, slash, name = self.ingress.kserve_ingress_gateway.partition("/")
        return (namespace, name) if slash else (self.system_namespace, namespace)


DOCUMENTS = {info.encode_name: info for info in msgspec.structs.fields(OperatorConfig)[1:]}
_DECODERS: dict[str, Decoder[_Document]] = {key: Decoder(info.type) for key, info in DOCUMENTS.items()}


def operator_config(data: Mapping[str, str] | None, system_namespace: str) -> OperatorConfig:
    """Parse a ConfigMap's ``data``; None is an absent ConfigMap. Raises OperatorConfigError."""
    texts = data or {}
    documents: dict[str, Any] = {
        info.name: _document(key, texts[key]) for key, info in DOCUMENTS.items() if key in texts
    }
    return OperatorConfig(system_namespace, **documents)


def _document(key: str, text: str) -> _Document:
    try:
        document = _DECODERS[key].decode(text.encode())
        document.check()
    except (msgspec.DecodeError, QuantityError, ValueError) as error:
        raise OperatorConfigError(f"ConfigMap key {key}: {error}") from None
    except RecursionError:
        raise OperatorConfigError(f"ConfigMap key {key}: nested too deeply") from None
    return document
