"""Names of every object of a service, and every label, annotation and header. Source: KS-3.1 to KS-3.3."""

import hashlib
import re
from dataclasses import dataclass
from typing import Literal

from app.kube.names import LABEL_MAX
from app.kube.resource import AUTOSCALERS, LEADER_WORKER_SETS

GROUP = "serving.kserve.io"
VERSION = "v1alpha2"
API_VERSION = f"{GROUP}/{VERSION}"

POOL_GROUP = "inference.networking.k8s.io"
"""Group of the InferencePool that is made; :data:`POOL_GROUP_ALPHA` is its predecessor, only ever read."""
POOL_GROUP_ALPHA = "inference.networking.x-k8s.io"
GATEWAY_GROUP = "gateway.networking.k8s.io"
POOL_API = f"{POOL_GROUP}/v1"
GATEWAY_API = f"{GATEWAY_GROUP}/v1"
LEADER_WORKER_SET_API = LEADER_WORKER_SETS.api_version
OBJECTIVE_API = f"{POOL_GROUP_ALPHA}/v1alpha2"
AUTOSCALER_API = AUTOSCALERS.api_version
SCALED_OBJECT_API = "keda.sh/v1alpha1"
VARIANT_API = "llmd.ai/v1alpha1"
CLAIM_TEMPLATE_API = "resource.k8s.io/v1"

# Labels.

NAME = "app.kubernetes.io/name"
PART_OF = "app.kubernetes.io/part-of"
COMPONENT = "app.kubernetes.io/component"
KSERVE_COMPONENT = "kserve.io/component"
ROLE = "llm-d.ai/role"
RESERVED_LABELS = (NAME, PART_OF, COMPONENT, KSERVE_COMPONENT, ROLE)
"""Keys that selectors are made of; a user's value for one of them takes the pods out of the defaults."""

PART_OF_VALUE = "llminferenceservice"
KSERVE_COMPONENT_VALUE = "workload"

COMPONENT_WORKLOAD = "llminferenceservice-workload"
COMPONENT_PREFILL = "llminferenceservice-workload-prefill"
COMPONENT_WORKER = "llminferenceservice-workload-worker"
COMPONENT_LEADER = "llminferenceservice-workload-leader"
COMPONENT_WORKER_PREFILL = "llminferenceservice-workload-worker-prefill"
COMPONENT_LEADER_PREFILL = "llminferenceservice-workload-leader-prefill"
COMPONENT_ROUTER = "llminferenceservice-router"
COMPONENT_SCHEDULER = "llminferenceservice-router-scheduler"

ROLE_BOTH, ROLE_DECODE, ROLE_PREFILL = "both", "decode", "prefill"

GATEWAY_NAME_LABEL = "gateway.networking.k8s.io/gateway-name"
"""Label of the Service in front of a Gateway; its value is the Gateway's name."""

# Annotations.

PICKER_VERSION = "app.kubernetes.io/version"
"""On the endpoint picker's pods."""
STOP = "serving.kserve.io/stop"
MODEL_ROUTING = "serving.kserve.io/model-based-routing-enabled"
ROUTING_GROUP = "serving.kserve.io/routing-group"
"""Label of a managed route: the group whose requests it divides."""
"""Under ``spec.annotations``: whether the route has rules about a header with the model's name."""
POOL_MIGRATED = "serving.kserve.io/inference-pool-migrated"
MODEL_URI = "serving.kserve.io/model-uri"
PIN_PREFIX = "serving.kserve.io/"
"""Before a preset's suffix: the key under which ``status.annotations`` keeps the preset's name."""
S3_PREFIX = "serving.kserve.io/"
"""Before ``s3-endpoint`` and its like, on a ServiceAccount."""
EKS_ROLE = "eks.amazonaws.com/role-arn"

PROPAGATED_ANNOTATIONS = ("k8s.v1.cni.cncf.io", "kueue.x-k8s.io", "prometheus.io")
"""Beginnings of the annotation keys that go from a service to its workloads and their pods (KS-3.4)."""
PROPAGATED_LWS_ANNOTATIONS = ("leaderworkerset.sigs.k8s.io",)
"""In addition, on LeaderWorkerSet objects only."""
PROPAGATED_LABELS = ("kueue.x-k8s.io",)

# Headers of requests.

OBJECTIVE_HEADER = "x-gateway-inference-objective"
"""Of a request: the name of its InferenceObjective. Without it the priority is 0."""
MODEL_HEADER = "X-Gateway-Model-Name"
"""Of a request: the model in its body, put there by a gateway's body-based router."""

# Containers, volumes, paths.

MAIN = "main"
TOKENIZER = "tokenizer"
"""Container of the endpoint picker's pods that tokenizes prompts."""
ROUTING_SIDECAR = "llm-d-routing-sidecar"
STORAGE_INITIALIZER = "storage-initializer"
MODELCAR = "modelcar"
MODELCAR_INIT = "modelcar-init"
POOL_NAME_VARIABLE = "INFERENCE_POOL_NAME"
PROVISION_VOLUME = "kserve-provision-location"
CLAIM_VOLUME = "kserve-pvc-source"
IMAGE_VOLUME = "mnt-models"
ADAPTER_VOLUME = "lora-adapters"
"""Adapters have a separate volume, so that their mounts are never within a read-only volume or an image."""
CA_BUNDLE_VOLUME = "cabundle-cert"
MODEL_VOLUMES = (PROVISION_VOLUME, CLAIM_VOLUME, IMAGE_VOLUME, ADAPTER_VOLUME, CA_BUNDLE_VOLUME)
"""Volumes that are added to a pod to bring the model in."""
MODEL_PATH = "/mnt/models"

PUBLIC_PORT = 8000
"""Port of the server for the workload Service, the pool, the routes and the routing sidecar."""

# Objects of the system namespace.

OPERATOR_CONFIG = "inferenceservice-config"
SYSTEM_SCHEDULER_CONFIG_PREFIX = "config-scheduler-"
"""A scheduler config of a name like this may stand in the system namespace."""

GLOBAL_CA_BUNDLE = "global-ca-bundle"
"""KServe's name of the CA bundle's ConfigMap in every namespace but the system one."""

AutoscalerKind = Literal["va", "hpa", "keda"]
"""End of the name of a VariantAutoscaling, a HorizontalPodAutoscaler, a ScaledObject."""

_HASH = 32
_GROUP_MAX = 50
"""Longest name of a LeaderWorkerSet with pods: one of their labels has it, the group's number and a hash of 10."""


def child_name(parent: str, suffix: str, longest: int = LABEL_MAX) -> str:
    """``parent`` and ``suffix`` in at most 63 characters: KServe's ``ChildName`` (KS-3.1)."""
    if len(parent) + len(suffix) <= longest:
        return parent + suffix
    room = longest - _HASH
    if len(suffix) < room:
        return parent[: room - len(suffix)] + _md5(parent) + suffix
    name = parent[:room] + _md5(parent + suffix)
    return (name + suffix)[:longest].rstrip("-._")


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class Names:
    """Names of the objects of one service (KS-3.2)."""

    service: str

    def _child(self, suffix: str) -> str:
        return child_name(self.service, suffix)

    def _group(self, suffix: str) -> str:
        """The name of a LeaderWorkerSet: KServe's, or where that has no pods one with room for 1,000 groups."""
        name = self._child(suffix)
        return name if len(name) <= _GROUP_MAX else child_name(self.service, suffix, _GROUP_MAX - 2)

    @property
    def main(self) -> str:
        """The main or decode Deployment, and its ServiceAccount."""
        return self._child("-kserve")

    @property
    def prefill(self) -> str:
        return self._child("-kserve-prefill")

    @property
    def multi_node(self) -> str:
        """The main or decode LeaderWorkerSet, and its ServiceAccount."""
        return self._group("-kserve-mn")

    @property
    def multi_node_prefill(self) -> str:
        return self._group("-kserve-mn-prefill")

    def autoscaler(self, kind: AutoscalerKind, *, prefill: bool) -> str:
        """Return the name of the autoscaler of the main or the prefill workload."""
        return self._child(f"-kserve-{'prefill-' if prefill else ''}{kind}")

    @property
    def workload_service(self) -> str:
        return self._child("-kserve-workload-svc")

    @property
    def certificates(self) -> str:
        return self._child("-kserve-self-signed-certs")

    @property
    def ca_bundle(self) -> str:
        """The service's own copy of the operator's CA bundle."""
        return self._child("-kserve-ca-bundle")

    @property
    def claim_template(self) -> str:
        """The ResourceClaimTemplate of the devices that annotations ask for."""
        return self._child("-managed-dra")

    @property
    def role(self) -> str:
        return self._child("-kserve-role")

    @property
    def role_binding(self) -> str:
        return self._child("-kserve-rb")

    @property
    def multi_node_role(self) -> str:
        return self._child("-kserve-mn-role")

    @property
    def multi_node_role_binding(self) -> str:
        return self._child("-kserve-mn-rb")

    @property
    def scheduler(self) -> str:
        return self._child("-kserve-router-scheduler")

    @property
    def scheduler_service(self) -> str:
        return self._child("-epp-service")

    @property
    def scheduler_account(self) -> str:
        return self._child("-epp-sa")

    @property
    def scheduler_role(self) -> str:
        return self._child("-epp-role")

    @property
    def scheduler_role_binding(self) -> str:
        return self._child("-epp-rb")

    @property
    def pool(self) -> str:
        return self._child("-inference-pool")

    def objective(self, adapter: str = "") -> str:
        return self._child(f"-inference-objective{'-' if adapter else ''}{adapter}")

    @property
    def route(self) -> str:
        return self._child("-kserve-route")


def adapter_volume(adapter: str) -> str:
    """Return the volume name of a claim with an adapter; an invalid name gets a hash."""
    if _LABEL.fullmatch(adapter):
        return child_name("lora-pvc-", adapter)
    return child_name("lora-pvc-", f"{_NO_LABEL.sub('-', adapter.lower()).strip('-')}-{_md5(adapter)[:8]}".lstrip("-"))


_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_NO_LABEL = re.compile(r"[^a-z0-9-]")


def base_labels(service: str) -> dict[str, str]:
    return {NAME: service, PART_OF: PART_OF_VALUE}


def component_labels(service: str, component: str) -> dict[str, str]:
    return {NAME: service, PART_OF: PART_OF_VALUE, COMPONENT: component}


def workload_labels(service: str, component: str, role: str) -> dict[str, str]:
    """Of a model server's pods: what the workload selector looks for, and the role the scheduler filters by."""
    return {
        NAME: service,
        PART_OF: PART_OF_VALUE,
        COMPONENT: component,
        KSERVE_COMPONENT: KSERVE_COMPONENT_VALUE,
        ROLE: role,
    }


def workload_selector(service: str) -> dict[str, str]:
    """Selects all model-server pods of a service, decode and prefill alike (KS-3.3)."""
    return {NAME: service, PART_OF: PART_OF_VALUE, KSERVE_COMPONENT: KSERVE_COMPONENT_VALUE}
