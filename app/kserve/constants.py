"""Every label, annotation, header, container, volume and API group of KServe's objects. Source: KS-3.2 and KS-3.3."""

from app.kube.resource import ChildKind

FAMILY = "kserve"
GROUP = "serving.kserve.io"
VERSION = "v1alpha2"
API_VERSION = f"{GROUP}/{VERSION}"

POOL_GROUP = "inference.networking.k8s.io"
"""Group of the InferencePool that is made; :data:`POOL_GROUP_ALPHA` is its predecessor, only ever read."""
POOL_GROUP_ALPHA = "inference.networking.x-k8s.io"
GATEWAY_GROUP = "gateway.networking.k8s.io"
GATEWAY_API = f"{GATEWAY_GROUP}/v1"
RBAC_GROUP = "rbac.authorization.k8s.io"

# Kinds of children that only this family has.

ROUTES = ChildKind(GATEWAY_API, "HTTPRoute", "httproutes", component="gateway-api")
POOLS = ChildKind(f"{POOL_GROUP}/v1", "InferencePool", "inferencepools", component="inference-extension")
ACCOUNTS = ChildKind("v1", "ServiceAccount", "serviceaccounts", component="scheduler-rbac")
ROLES = ChildKind(f"{RBAC_GROUP}/v1", "Role", "roles", component=ACCOUNTS.component)
BINDINGS = ChildKind(ROLES.api_version, "RoleBinding", "rolebindings", component=ACCOUNTS.component)
CONFIG_MAPS = ChildKind("v1", "ConfigMap", "configmaps", component="ca-bundle")
SCALED_OBJECTS = ChildKind("keda.sh/v1alpha1", "ScaledObject", "scaledobjects", component="keda")
OBJECTIVES = ChildKind(
    f"{POOL_GROUP_ALPHA}/v1alpha2", "InferenceObjective", "inferenceobjectives", component="inference-objectives"
)
DESTINATION_RULES = ChildKind("networking.istio.io/v1", "DestinationRule", "destinationrules", component="istio")
VARIANTS = ChildKind(
    "llmd.ai/v1alpha1", "VariantAutoscaling", "variantautoscalings", component="workload-variant-autoscaler"
)
CLAIM_TEMPLATES = ChildKind(
    "resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates", component="resource-claims"
)

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
COMPONENT_ROUTER = "llminferenceservice-router"
COMPONENT_SCHEDULER = "llminferenceservice-router-scheduler"

ROLE_BOTH, ROLE_DECODE, ROLE_PREFILL = "both", "decode", "prefill"

GATEWAY_NAME_LABEL = "gateway.networking.k8s.io/gateway-name"
"""Label of the Service in front of a Gateway; its value is the Gateway's name."""

# Annotations.

PICKER_VERSION = "app.kubernetes.io/version"
"""On the endpoint picker's pods."""
ENABLE_AUTH = "security.opendatahub.io/enable-auth"
"""The annotation by which OpenShift AI and Open Data Hub ask clients for a token, unless it is ``false``."""
STOP = "serving.kserve.io/stop"
MODEL_ROUTING = "serving.kserve.io/model-based-routing-enabled"
"""Under ``spec.annotations``: whether the route has rules about a header with the model's name."""
ROUTING_GROUP = "serving.kserve.io/routing-group"
"""Label of a managed route: the group whose requests it divides."""
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

MODEL_SERVERS = (("template",), ("worker",), ("prefill", "template"), ("prefill", "worker"))
"""Paths of the model servers' pods in a spec."""
OPEN = "{{"
"""Beginning of an action in a string that is a template."""

PUBLIC_PORT = 8000
"""Port of the server for the workload Service, the pool, the routes and the routing sidecar."""

# Objects of the system namespace.

OPERATOR_CONFIG = "inferenceservice-config"
SYSTEM_SCHEDULER_CONFIG_PREFIX = "config-scheduler-"
"""A scheduler config of a name like this may stand in the system namespace."""
DEFAULT_CONFIG_KEY = "epp"
"""Key of a scheduler's ConfigMap, where the reference has none."""

GLOBAL_CA_BUNDLE = "global-ca-bundle"
"""KServe's name of the CA bundle's ConfigMap in every namespace but the system one."""
