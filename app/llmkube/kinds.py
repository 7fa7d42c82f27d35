"""The family's kinds: their resources and their hooks. Source: LK-1.1."""

from functools import partial

from app.hooks.kind import Admission, Hooks, Kind, Offline
from app.kube import resource
from app.kube.resource import ChildKind, Column, CustomResource, RelatedKind, Selection
from app.llmkube.inferenceservice import checks as inferenceservice_checks
from app.llmkube.inferenceservice import observed as inferenceservice_observed
from app.llmkube.inferenceservice import sync as inferenceservice
from app.llmkube.inferenceservice.fitting import fit
from app.llmkube.inferenceservice.status import invalid
from app.llmkube.inferenceservice.types import InferenceServiceSpec, InferenceServiceStatus
from app.llmkube.model import checks as model_checks
from app.llmkube.model import observed as model_observed
from app.llmkube.model import status as model_status
from app.llmkube.model import sync as model
from app.llmkube.model.types import QUANTIZATIONS, ModelSpec, ModelStatus
from app.llmkube.names import API_VERSION, FAMILY, GROUP, POD_MONITOR_API, VERSION

_resource = partial(CustomResource, family=FAMILY, group=GROUP, version=VERSION)
_AGE = Column("Age", ".metadata.creationTimestamp", "date")

MODEL = _resource(
    kind="Model",
    short_names=("mdl",),
    description="A set of weights: their source, and the hardware they need.",
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
        RelatedKind("v1", "persistentvolumeclaims", use="where the files go, and whether they can be there"),
        resource.PODS,
        RelatedKind(
            "v1", "nodes", Selection.CLUSTER, "whether a node has the accelerator; not with `LLMKUBE_WATCH_NODES=false`"
        ),
        RelatedKind(
            "storage.k8s.io/v1",
            "storageclasses",
            Selection.CLUSTER,
            "whether a claim without a volume waits for its pod",
        ),
    ),
    related_elsewhere=False,
)

INFERENCE_SERVICE = _resource(
    kind="InferenceService",
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
    scale=resource.Scale(".spec.replicas", ".status.replicas", ".status.selector"),
    children=(
        resource.DEPLOYMENTS,
        resource.SERVICES,
        resource.AUTOSCALERS,
        ChildKind(POD_MONITOR_API, "PodMonitor", "podmonitors", component="podmonitor"),
    ),
    related=(
        RelatedKind(API_VERSION, "models", use="the pods"),
        resource.PODS,
        RelatedKind("v1", "persistentvolumeclaims", use="the volumes of the pods; services with a claim"),
        RelatedKind(
            "discovery.k8s.io/v1",
            "endpointslices",
            use="replicas on metal; not with `LLMKUBE_WATCH_ENDPOINT_SLICES=false`",
        ),
        RelatedKind(
            API_VERSION,
            "inferenceservices",
            Selection.CLUSTER,
            "`queuePosition`; services with a GPU, not with `LLMKUBE_QUEUE_POSITION=false`",
        ),
        RelatedKind("scheduling.k8s.io/v1", "priorityclasses", use="`effectivePriority`; services that name one"),
        RelatedKind("node.k8s.io/v1", "runtimeclasses", use="whether it exists; services that name one"),
    ),
)

KINDS = (
    Kind(
        resource=MODEL,
        hooks=Hooks(
            children=model_observed.ModelChildren,
            related=model_observed.ModelRelated,
            sync=model.sync,
            invalid=model_status.invalid,
            customize=model_observed.customize,
        ),
        admission=Admission(
            validate=model_checks.validate,
            warnings=model_checks.warnings,
            admit=model_checks.admit,
            changed=model_checks.update_warnings,
        ),
        offline=Offline(assumes=model.assumes),
    ),
    Kind(
        resource=INFERENCE_SERVICE,
        hooks=Hooks(
            children=inferenceservice_observed.InferenceChildren,
            related=inferenceservice_observed.InferenceRelated,
            sync=inferenceservice.sync,
            invalid=invalid,
            invalid_children=inferenceservice.invalid_children,
            counts=inferenceservice.counts,
            customize=inferenceservice_observed.customize,
        ),
        admission=Admission(
            validate=inferenceservice_checks.validate, warnings=inferenceservice_checks.warnings, judges_changes=False
        ),
        offline=Offline(
            cross_object_warnings=inferenceservice_checks.warnings_with_related,
            assumes=inferenceservice_checks.assumes,
            fit=fit,
        ),
    ),
)
