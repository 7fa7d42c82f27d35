"""Every object name, label and annotation key, path and port of the family. Source: LZ-1.5, LZ-4.6, LZ-9."""

from app import images
from app.kube.names import LABEL_MAX
from app.kube.objects import ObservedMeta
from app.kube.resource import LEADER_WORKER_SETS
from app.workload.readiness.pods import LWS_NAME, LWS_WORKER_INDEX

FAMILY = "llmaz"
MODEL_GROUP = "llmaz.io"
INFERENCE_GROUP = "inference.llmaz.io"
VERSION = "v1alpha1"
MODEL_API = f"{MODEL_GROUP}/{VERSION}"
INFERENCE_API = f"{INFERENCE_GROUP}/{VERSION}"
LWS_API = LEADER_WORKER_SETS.api_version
GATEWAY_GROUP = "gateway.networking.k8s.io"
ENVOY_GROUP = "gateway.envoyproxy.io"
ENVOY_API = f"{ENVOY_GROUP}/v1alpha1"
AI_GATEWAY_API = "aigateway.envoyproxy.io/v1beta1"

# Labels and annotations.

MODEL_NAME = "llmaz.io/model-name"
MODEL_FAMILY = "llmaz.io/model-family-name"
FLAVORS = "llmaz.io/inference-service-flavors"
SKIP_LOADER = "llmaz.io/skip-model-loader"
"""Annotation: the engine fetches the weights itself. Only the value ``true`` does it."""
ACTIVATOR_MODEL = "activator.llmaz.io/model-name"
INFERENCE_SERVICE = "llmaz.io/inference-service"
"""Our own key: on the pods of a Deployment, and nowhere upstream. LeaderWorkerSet's keys would make its pod webhook
refuse such pods (LZ-T29)."""

# Parts of a pod.

RUNNER = "model-runner"
LOADER = "model-loader"
MODEL_VOLUME = "model-volume"
SHM_VOLUME = "dshm"
SHM_PATH = "/dev/shm"  # noqa: S108 - the pod's shared memory, not a directory of ours
MODELS_DIR = "/workspace/models/"
PORT = 8080
PORT_NAME = "http"
GRACE_SECONDS = 130
"""Grace period in which a pod of a Playground finishes its requests."""

# Objects that are neither ours nor the user's parents.

CONFIG_MAP = "llmaz-global-config"
CONFIG_KEY = "config.data"
LOADER_IMAGE = images.MODEL_LOADER
"""The loader's default image (LZ-4.7)."""
DEFAULT_BACKEND = "vllm"

NAME_MAX = LABEL_MAX - len("-lb")
"""Longest name of a Playground or Service: with ``-lb`` it is a Service's, which is a DNS label (rule LZ-N05)."""
NAME_ADVISED = 50
"""Longer names leave no room for the number of a group and the hash in a label of its pods."""


def skips_loader(metadata: ObservedMeta) -> bool:
    """Return whether pods have no loader, for the value ``true`` only (LZ-1.3, LZ-2.6, LZ-N32)."""
    return (metadata.annotations or {}).get(SKIP_LOADER) == "true"


def load_balancer(service: str) -> str:
    return f"{service}-lb"


def gateway_objects(service: str) -> str:
    """Name the gateway's objects by no name that users choose: the gateway overwrites HTTPRoutes of that name."""
    return f"{service}-llmaz"


def loader_container(position: int) -> str:
    return LOADER if position == 0 else f"{LOADER}-{position}"


def mounted_volume(position: int, *, alone: bool) -> str:
    """Name the volume of a directory of the node or of an image; ``alone`` if no loader needs a volume."""
    return MODEL_VOLUME if alone and position == 0 else f"{MODEL_VOLUME}-{position}"


VOLUMES = (MODEL_VOLUME, *(mounted_volume(position, alone=False) for position in range(2)))
"""The volumes that pods may get: speculative decoding has two models."""


def deployment_selector(service: str) -> dict[str, str]:
    """Return the label selector of the pods of a single-node service, which is immutable."""
    return {INFERENCE_SERVICE: service}


def leader_selector(service: str) -> dict[str, str]:
    """Return the label selector of the leader pods of a LeaderWorkerSet, which serve the requests."""
    return {LWS_NAME: service, LWS_WORKER_INDEX: "0"}
