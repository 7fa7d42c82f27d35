"""The family's kinds as the outside sees them: names, columns, children, related objects (LK-1.1)."""

from app.kube import kinds
from app.kube.resource import ChildKind, Column, CustomResource, RelatedKind, Scale
from app.llmkube.inferenceservice.types import InferenceServiceSpec, InferenceServiceStatus
from app.llmkube.model.types import QUANTIZATIONS, ModelSpec, ModelStatus
from app.llmkube.names import API_VERSION, GROUP, POD_MONITOR_API, VERSION

_AGE = Column("Age", ".metadata.creationTimestamp", "date")

MODEL = CustomResource(
    family="llmkube",
    group=GROUP,
    version=VERSION,
    kind="Model",
    plural="models",
    short_names=("mdl",),
    description="A set of weights: where they come from, and the hardware they want.",
    spec=ModelSpec,
    status=ModelStatus,
    counted=(("quantization", tuple(QUANTIZATIONS.values())),),
    columns=(
        Column("Phase", ".status.phase"),
        Column("Size", ".status.size"),
        Column("Accelerator", ".spec.hardware.accelerator"),
        Column("Arch", ".status.gguf.architecture", priority=1),
        Column("Quantization", ".status.quantization", priority=1),
        _AGE,
    ),
    children=(
        ChildKind("batch/v1", "Job", "jobs", update="OnDelete"),
        ChildKind("v1", "PersistentVolumeClaim", "persistentvolumeclaims", update="OnDelete"),
    ),
    related=(
        RelatedKind("v1", "persistentvolumeclaims"),
        kinds.PODS,
        RelatedKind("v1", "nodes"),
        RelatedKind("storage.k8s.io/v1", "storageclasses"),
    ),
)

INFERENCE_SERVICE = CustomResource(
    family="llmkube",
    group=GROUP,
    version=VERSION,
    kind="InferenceService",
    plural="inferenceservices",
    short_names=("isvc",),
    description="A Model served by one of several runtimes, on pods of this cluster or by an agent on a Mac.",
    spec=InferenceServiceSpec,
    status=InferenceServiceStatus,
    columns=(
        Column("Phase", ".status.phase"),
        Column("Model", ".spec.modelRef"),
        Column("Replicas", ".status.readyReplicas"),
        Column("Reason", ".status.schedulingStatus", priority=1),
        Column("Queue", ".status.queuePosition", "integer", priority=1),
        Column("Priority", ".spec.priority", priority=1),
        Column("Endpoint", ".status.endpoint"),
        _AGE,
    ),
    scale=Scale(".spec.replicas", ".status.replicas"),
    children=(
        kinds.DEPLOYMENTS,
        kinds.SERVICES,
        kinds.AUTOSCALERS,
        ChildKind(POD_MONITOR_API, "PodMonitor", "podmonitors", optional=True, component="podmonitor"),
    ),
    related=(
        RelatedKind(API_VERSION, "models"),
        kinds.PODS,
        RelatedKind("v1", "persistentvolumeclaims"),
        RelatedKind("discovery.k8s.io/v1", "endpointslices"),
        RelatedKind(API_VERSION, "inferenceservices"),
        RelatedKind("scheduling.k8s.io/v1", "priorityclasses"),
        RelatedKind("node.k8s.io/v1", "runtimeclasses"),
    ),
)

RESOURCES = (MODEL, INFERENCE_SERVICE)
