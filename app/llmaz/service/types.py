"""The ``Service`` kind: models served by pods of a user-defined template. Source: LZ-1.4 and LZ-5.3."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from app.kube.base import Int32, IntOrString, KubeModel, PodTemplateSpec
from app.kube.resource import Resource
from app.kube.schema.fieldclass import DEFAULTED, defaulted, honoured, passed_through
from app.llmaz.claims import ModelClaims
from app.llmaz.status import ServiceStatus

RestartPolicy = Literal["Default", "RecreateGroupOnPodRestart", "None"]
DEFAULT_RESTART_POLICY: RestartPolicy = "RecreateGroupOnPodRestart"

_ONLY_OF_GROUPS = "to a LeaderWorkerSet; a Deployment has no such thing, and admission warns"
_COMPLETED = passed_through("with the model, the flavor's resources, labels and the scheduler put in")


class SubGroupPolicy(KubeModel):
    """Subgroups of the pods of one replica, as in LeaderWorkerSet."""

    sub_group_policy_type: Annotated[Literal["LeaderWorker", "LeaderExcluded"], defaulted(_ONLY_OF_GROUPS)] = (
        "LeaderWorker"
    )
    """Type of subgroups: whether the leader belongs to the first one."""
    sub_group_size: Annotated[Int32 | None, honoured(_ONLY_OF_GROUPS)] = None
    """Number of pods per subgroup. Must divide size, or size minus the leader."""


class WorkloadTemplate(KubeModel):
    """The pods of one replica."""

    worker_template: Annotated[PodTemplateSpec, _COMPLETED]
    """The worker pods, and the leader's too where leaderTemplate is absent. The engine's container is called
    model-runner."""
    leader_template: Annotated[PodTemplateSpec | None, _COMPLETED] = None
    """Pod template of the leader. Requires LeaderWorkerSet."""
    size: Annotated[Int32, defaulted("cannot be changed; above 1 it needs LeaderWorkerSet")] = 1
    """Number of pods per replica, including the leader. More than 1 requires LeaderWorkerSet."""
    restart_policy: Annotated[RestartPolicy, defaulted(_ONLY_OF_GROUPS)] = DEFAULT_RESTART_POLICY
    """Restart policy of the other pods of a replica when one restarts. No effect on a Deployment, where the kubelet
    restarts the container in place."""
    sub_group_policy: SubGroupPolicy | None = None
    """Subgroups of the pods of one replica. Cannot be added later; no effect on a Deployment."""

    @property
    def is_single(self) -> bool:
        """Return whether each replica is one pod, so that a Deployment can run it (LZ-9)."""
        return self.leader_template is None and self.size == 1


class RollingUpdateConfiguration(KubeModel):
    """Limits of a rolling update."""

    max_unavailable: Annotated[IntOrString, DEFAULTED] = 1
    """Maximum number or percentage of replicas that may be unavailable during a rollout."""
    max_surge: Annotated[IntOrString, DEFAULTED] = 0
    """Maximum number or percentage of replicas above the desired number during a rollout."""


class RolloutStrategy(KubeModel):
    """Strategy for rolling out a changed template."""

    type: Annotated[Literal["RollingUpdate"], DEFAULTED] = "RollingUpdate"
    """Always a rolling update."""
    rolling_update_configuration: RollingUpdateConfiguration | None = None
    """Limits of the rolling update. Defaults to one unavailable replica and no surge."""


class ServiceSpec(KubeModel):
    """Models, and the pods that serve them."""

    model_claims: ModelClaims | None = None
    """The models to serve."""
    replicas: Annotated[Int32, defaulted("an autoscaler writes it")] = 1
    """Number of replicas. An autoscaler writes it too."""
    workload_template: WorkloadTemplate
    """The pods that serve the models."""
    rollout_strategy: RolloutStrategy = Field(
        default_factory=lambda: RolloutStrategy(rolling_update_configuration=RollingUpdateConfiguration())
    )
    """Rollout strategy of the pods."""

    @property
    def claims(self) -> ModelClaims:
        return self.model_claims or ModelClaims()


class ServiceReason(StrEnum):
    """Why a Service's condition is as it is, beside :class:`app.llmaz.references.Obstacle` and what pods report."""

    SERVICE_READY = "ServiceReady"
    SERVICE_IN_PROGRESS = "ServiceInProgress"
    SERVICE_NOT_READY = "ServiceNotReady"
    """The workload was available before."""
    LEADER_WORKER_SET_REQUIRED = "LeaderWorkerSetRequired"
    TEMPLATE_CONFLICT = "TemplateConflict"
    """The template conflicts with what is added to it."""


Service = Resource[ServiceSpec, ServiceStatus]


def is_nothing(value: int | str) -> bool:
    return value == 0 or (isinstance(value, str) and value.rstrip("%").strip("0") == "")


def percent(value: str) -> int:
    return int(value[:-1])
