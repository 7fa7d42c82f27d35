"""The ``Service`` kind: models served by pods of the user's own making. Source: LZ-1.4 and LZ-5.3."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from pydantic import Field

from app.kube.base import Int32, IntOrString, KubeModel, PodTemplateSpec
from app.kube.conditions import Condition
from app.kube.fieldclass import DEFAULTED, defaulted, honoured, passed_through
from app.kube.resource import Resource
from app.llmaz.claims import ModelClaims
from app.llmaz.status import ABORT_PROCESSING, INVALID_SPEC, PROGRESSING, READY, Status, no_replicas

RestartPolicy = Literal["Default", "RecreateGroupOnPodRestart", "None"]
DEFAULT_RESTART_POLICY: RestartPolicy = "RecreateGroupOnPodRestart"


class SubGroupPolicy(KubeModel):
    """How the pods of one replica are put into subgroups, as LeaderWorkerSet does it."""

    sub_group_policy_type: Annotated[
        Literal["LeaderWorker", "LeaderExcluded"],
        defaulted("to a LeaderWorkerSet; a Deployment has no such thing, and admission warns"),
    ] = Field(default="LeaderWorker", description="Whether the leader belongs to the first subgroup or to none.")
    sub_group_size: Annotated[
        Int32 | None, honoured("to a LeaderWorkerSet; a Deployment has no such thing, and admission warns")
    ] = Field(
        default=None, description="Pods per subgroup; it divides the size of the replica, or that without the leader."
    )


class WorkloadTemplate(KubeModel):
    """The pods of one replica."""

    worker_template: Annotated[
        PodTemplateSpec, passed_through("with the model, the flavor's resources, labels and the scheduler put in")
    ] = Field(
        description="The worker pods, and the leader's too where leaderTemplate is absent. The engine's container is "
        "called model-runner."
    )
    leader_template: Annotated[
        PodTemplateSpec | None,
        passed_through("with the model, the flavor's resources, labels and the scheduler put in"),
    ] = Field(default=None, description="The leader's pod. Where it is set, the service needs LeaderWorkerSet.")
    size: Annotated[Int32, defaulted("cannot be changed; above 1 it needs LeaderWorkerSet")] = Field(
        default=1, description="Pods per replica, the leader included. More than 1 needs LeaderWorkerSet."
    )
    restart_policy: Annotated[
        RestartPolicy, defaulted("to a LeaderWorkerSet; a Deployment has no such thing, and admission warns")
    ] = Field(
        default=DEFAULT_RESTART_POLICY,
        description="What a restart of one pod does to the others of its replica. No effect on a Deployment, where the "
        "kubelet restarts the container in its place.",
    )
    sub_group_policy: SubGroupPolicy | None = Field(
        default=None,
        description="Subgroups of the pods of one replica. Cannot be added later; no effect on a Deployment.",
    )

    @property
    def is_single(self) -> bool:
        """Whether each replica is one pod, so that a Deployment can run them (LZ-9)."""
        return self.leader_template is None and self.size == 1


class RollingUpdateConfiguration(KubeModel):
    """How many replicas a rollout takes at once."""

    max_unavailable: Annotated[IntOrString, DEFAULTED] = Field(
        default=1, description="How many replicas, or which percentage of them, may be missing during a rollout."
    )
    max_surge: Annotated[IntOrString, DEFAULTED] = Field(
        default=0, description="How many replicas, or which percentage of them, may be there in addition."
    )


class RolloutStrategy(KubeModel):
    """How a changed template reaches the pods."""

    type: Annotated[Literal["RollingUpdate"], DEFAULTED] = Field(
        default="RollingUpdate", description="Always a rolling update."
    )
    rolling_update_configuration: RollingUpdateConfiguration | None = Field(
        default=None, description="How many replicas at once. Absent means one missing and none in addition."
    )


class ServiceSpec(KubeModel):
    """Models, and the pods that serve them."""

    model_claims: ModelClaims | None = Field(default=None, description="The models to serve.")
    replicas: Annotated[Int32, defaulted("an autoscaler writes it")] = Field(
        default=1, description="How many copies serve the models. An autoscaler writes it too."
    )
    workload_template: WorkloadTemplate = Field(description="The pods that serve the models.")
    rollout_strategy: RolloutStrategy = Field(
        default_factory=lambda: RolloutStrategy(rolling_update_configuration=RollingUpdateConfiguration()),
        description="How a change of the template is rolled out.",
    )


class ConditionType(StrEnum):
    """What a Service's conditions are about."""

    AVAILABLE = "Available"
    """All replicas answer requests, with the present template."""
    PROGRESSING = PROGRESSING
    """Replicas are being made or changed. Upstream never takes it back, only an abort does."""
    READY = READY
    """The one condition all families have; while not True its message lists why."""


class Reason(StrEnum):
    """Why a Service's condition is as it is, beside :class:`app.llmaz.references.Obstacle` and what pods report."""

    SERVICE_READY = "ServiceReady"
    """The workload is available."""
    SERVICE_IN_PROGRESS = "ServiceInProgress"
    """The workload is waited for."""
    SERVICE_NOT_READY = "ServiceNotReady"
    """The workload was available before and is not now."""
    ABORT_PROCESSING = ABORT_PROCESSING
    """Something is missing or wrong; what runs is left alone."""
    INVALID_SPEC = INVALID_SPEC
    """A rule is broken; what runs is left alone."""
    LEADER_WORKER_SET_REQUIRED = "LeaderWorkerSetRequired"
    """The service has several pods per replica, and this installation has no LeaderWorkerSet."""
    TEMPLATE_CONFLICT = "TemplateConflict"
    """The template and what is put into it cannot stand together."""
    ROLLING_OUT = "RollingOut"
    """Replicas are being started or replaced, and nothing is known to be wrong."""


class ServiceStatus(Status):
    """What is known of a Service."""

    conditions: Annotated[list[Condition], Meta(description="How far the workload is.")] = msgspec.field(
        default_factory=list
    )
    replicas: Annotated[Int32, Meta(description="How many copies exist, ready or not.")] = msgspec.field(
        default_factory=no_replicas
    )
    selector: Annotated[str, Meta(description="What finds the pods that take requests, for an autoscaler.")] = ""


Service = Resource[ServiceSpec, ServiceStatus]


def is_nothing(value: int | str) -> bool:
    """0, or 0 percent."""
    return value == 0 or (isinstance(value, str) and value.rstrip("%").strip("0") == "")


def percent(value: str) -> int:
    return int(value[:-1])
