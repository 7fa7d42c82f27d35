"""Objects as the cluster reports them: only the fields that a decision needs.

Partial structs skip everything else, which makes a sync cheap. Every field has a default: a newly created object has no
status yet, and null counts as absent (:mod:`app.kube.reading.stored`).
"""

import math
from functools import cached_property
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from app.kube.base import Int64, Json
from app.kube.conditions import Condition
from app.kube.names import LAST_APPLIED, is_reserved
from app.kube.reading.rawchecks import depth_exceeds
from app.kube.reading.stored import Decoder, integral, without_nulls
from app.kube.regex import regex

PartT = TypeVar("PartT", bound=msgspec.Struct | Json)

ABSENT = Raw(b"null")
_ANNOTATIONS: Decoder[dict[str, str] | None] = Decoder(dict[str, str] | None)


class Observed(msgspec.Struct, rename="camel"):
    """Base of observed objects: camelCase, unknown fields skipped."""


def decoded(field: str, type_: type[PartT]) -> cached_property[PartT]:
    """Return the property for a field that stays encoded until it is needed."""
    decoder: Decoder[PartT | None] = Decoder(type_ | None)

    def read(item: Observed) -> PartT:
        try:
            return decoder.decode(getattr(item, field)) or type_()
        except msgspec.ValidationError as error:
            kind = getattr(item, "kind", "") or type(item).__name__.removeprefix("Observed")
            raise msgspec.ValidationError(f"{kind}: {error}") from None

    return cached_property(read)


class Named(Observed):
    """A reference by name, or an item of which only the name matters."""

    name: str = ""


class OwnerReference(Observed):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    api_version: str = ""


class _ObservedMeta(Observed):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: Int64 | None = None
    labels: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: list[OwnerReference] | None = None


class ObservedMeta(_ObservedMeta):
    """Metadata of a parent or a related object."""

    generate_name: str = ""
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None


class ChildMeta(_ObservedMeta):
    """Metadata of an observed child. Annotations stay undecoded until ``record`` asks for them."""

    annotations: Raw = ABSENT


class ObservedObject(Observed, dict=True):
    """A child or related object of which only the metadata matters. A kind that reads the spec decodes it."""

    api_version: str = ""
    kind: str = ""
    metadata: ChildMeta = msgspec.field(default_factory=ChildMeta)
    raw_spec: Raw = msgspec.field(default=ABSENT, name="spec")

    @cached_property
    def annotations(self) -> dict[str, str]:
        """Return its annotations, read-only; empty if absent or not a map of strings."""
        try:
            return _ANNOTATIONS.decode(self.metadata.annotations) or {}
        except msgspec.DecodeError:
            return {}

    @cached_property
    def record(self) -> Json | None:
        """Return the hook's last response for this child, from Metacontroller's record; ``None`` if unusable.

        A user who may edit the child may edit its record. So the result always names this child, has no null in a map,
        and of metadata only labels and annotations whose values are strings, without Metacontroller's keys, which it
        adds again. Owners, finalizers and all other metadata never come from a record.
        """
        if LAST_APPLIED.encode() not in bytes(self.metadata.annotations):
            return None
        record = parsed(self.annotations.get(LAST_APPLIED, "").encode())
        if not isinstance(record, dict) or record.get("kind") != self.kind:
            return None
        metadata = _recorded_metadata(record.get("metadata", {}), self.metadata)
        if metadata is None or not isinstance(record.get("spec", {}), dict):
            return None
        record.pop("status", None)
        return {**record, "apiVersion": self.api_version, "metadata": metadata}

    def as_recorded(self, desired: Json) -> dict[str, Raw] | None:
        """Return the content of the desired child as it is sent, without what names it; ``None`` if the record differs.

        They are compared by their bytes, so that the record need not be decoded.
        """
        try:
            recorded = _MEMBERS.decode(self.annotations.get(LAST_APPLIED, ""))
        except (msgspec.DecodeError, RecursionError):
            return None
        if recorded.keys() != desired.keys():
            return None
        encoded = {key: Raw(_SORTED.encode(value)) for key, value in desired.items() if key != "metadata"}
        if not all(_is_written(text, recorded[key]) for key, text in encoded.items()):
            return None
        return {key: text for key, text in encoded.items() if key not in ("apiVersion", "kind")}

    def resendable(self, record: Json) -> Json | None:
        """Return the part of the child's record that may be sent again, ``None`` to name the child only.

        A user who may edit a child may edit its record, and children are written with Metacontroller's rights. For most
        kinds the user gains nothing by that; kinds that grant rights override this.
        """
        return record


class ConditionsStatus(Observed):
    conditions: list[Condition] | None = None


class ObservedConditions(ObservedObject):
    """A child or related object of which only the metadata and the conditions matter."""

    status: ConditionsStatus = msgspec.field(default_factory=ConditionsStatus)


class ReplicasSpec(Observed):
    """The part of a scalable object's spec that other clients may write."""

    replicas: int | None = None


class ObservedWorkloadSpec(ReplicasSpec, dict=True):
    """The spec of an object that makes pods. Their template stays encoded: it may be sent again, or is not needed."""

    raw_template: Raw = ABSENT


class ObservedSelector(Observed):
    """Only ``matchLabels``: no selector made here has expressions."""

    match_labels: dict[str, str] | None = None


class ObservedTemplateMeta(Observed):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class ContainerPart(Observed):
    """The fields of a running container that a new release keeps."""

    name: str = ""
    image: str = ""
    args: list[str] | None = None
    security_context: Any = None
    raw_env: Raw = msgspec.field(default=ABSENT, name="env")


class PodPart(Observed):
    """The fields of a pod template's spec that cannot be removed or have to stay."""

    service_account_name: str = ""
    init_containers: list[ContainerPart] | None = None
    containers: list[ContainerPart] | None = None
    volumes: list[Named] | None = None


class ObservedTemplate(Observed):
    metadata: ObservedTemplateMeta = msgspec.field(default_factory=ObservedTemplateMeta)
    spec: PodPart = msgspec.field(default_factory=PodPart)

    def container(self, name: str) -> ContainerPart:
        """Return the container, or init container, of that name; an empty one if it does not exist."""
        parts = (*(self.spec.init_containers or ()), *(self.spec.containers or ()))
        return next((part for part in parts if part.name == name), ContainerPart())


class DeploymentStrategy(Observed):
    """The way pods are replaced; ``rolling_update`` has numbers and percentages as in the manifest."""

    type: str = ""
    rolling_update: dict[str, int | str] | None = None


class ObservedDeploymentSpec(ObservedWorkloadSpec):
    """The spec in the cluster, with the API server's defaults."""

    paused: bool = False
    selector: ObservedSelector = msgspec.field(default_factory=ObservedSelector)
    strategy: DeploymentStrategy = msgspec.field(default_factory=DeploymentStrategy)
    raw_template: Raw = msgspec.field(default=ABSENT, name="template")
    template = decoded("raw_template", ObservedTemplate)


class ObservedWorkload(ObservedObject):
    """A child that makes pods."""

    spec = decoded("raw_spec", ObservedWorkloadSpec)

    @cached_property
    def running_template(self) -> Json | None:
        """Return the template of its pods, read-only and without nulls; ``None`` if it is absent or cannot be decoded.

        Somebody may have written megabytes into it, so it is parsed once in a request.
        """
        template = parsed(self.spec.raw_template)
        return template if isinstance(template, dict) else None


class WorkloadStatus(ConditionsStatus):
    observed_generation: Int64 | None = None
    replicas: Int64 = 0
    updated_replicas: Int64 = 0
    ready_replicas: Int64 = 0


class DeploymentStatus(WorkloadStatus):
    available_replicas: Int64 = 0


class ObservedDeployment(ObservedWorkload):
    """A Deployment, made here or being taken over."""

    spec = decoded("raw_spec", ObservedDeploymentSpec)
    status: DeploymentStatus = msgspec.field(default_factory=DeploymentStatus)


class AutoscalerStatus(ConditionsStatus):
    """``desired_replicas`` is the autoscaler's last choice; 0 before the first."""

    desired_replicas: Int64 = 0


class ObservedAutoscaler(ObservedObject):
    """A HorizontalPodAutoscaler: the number that it keeps while its target is absent, and whether it works."""

    status: AutoscalerStatus = msgspec.field(default_factory=AutoscalerStatus)


class GroupStatus(WorkloadStatus):
    """Counts of groups; LeaderWorkerSet's version decides which of them exist."""

    hpa_pod_selector: str = ""


class ObservedSubGroupPolicy(Observed):
    sub_group_policy_type: str = "LeaderWorker"
    sub_group_size: int | None = None


class LeaderWorkerTemplate(Observed):
    """The pods of a group. Their number and their subgroups can never change."""

    size: int | None = None
    sub_group_policy: ObservedSubGroupPolicy | None = None
    leader_template: ObservedTemplate | None = None
    worker_template: ObservedTemplate | None = None


class LeaderWorkerSetSpec(ObservedWorkloadSpec):
    raw_template: Raw = msgspec.field(default=ABSENT, name="leaderWorkerTemplate")
    leader_worker_template = decoded("raw_template", LeaderWorkerTemplate)


class ObservedLeaderWorkerSet(ObservedWorkload):
    spec = decoded("raw_spec", LeaderWorkerSetSpec)
    status: GroupStatus = msgspec.field(default_factory=GroupStatus)


class JobStatus(ConditionsStatus):
    active: Int64 = 0
    ready: Int64 = 0
    succeeded: Int64 = 0
    failed: Int64 = 0


class ObservedJob(ObservedObject):
    status: JobStatus = msgspec.field(default_factory=JobStatus)


class ClaimSpec(Observed):
    """``storage_class_name`` is absent until a default class was filled in, and empty for none."""

    storage_class_name: str | None = None
    access_modes: list[str] | None = None


class ClaimStatus(ConditionsStatus):
    """``phase`` is ``Pending``, ``Bound`` or ``Lost``."""

    phase: str = ""


class ObservedClaim(ObservedObject):
    spec = decoded("raw_spec", ClaimSpec)
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)


class ContainerStateWaiting(Observed):
    """Why a container does not run yet; ``reason`` is the kubelet's word, such as ``ImagePullBackOff``."""

    reason: str = ""
    message: str = ""


class ContainerStateTerminated(Observed):
    """The end of a container; ``message`` is its termination message."""

    reason: str = ""
    message: str = ""
    exit_code: Int64 = 0
    finished_at: str | None = None


class ContainerState(Observed):
    """One of the three is set."""

    waiting: ContainerStateWaiting | None = None
    running: Observed | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Observed):
    """``state`` is now, ``last_state`` how it ended before the last restart. ``started`` is absent on old kubelets."""

    name: str = ""
    ready: bool = False
    started: bool | None = None
    state: ContainerState = msgspec.field(default_factory=ContainerState)
    last_state: ContainerState = msgspec.field(default_factory=ContainerState)


class ReadinessGate(Observed):
    """A condition that another client has to make true before the pod is ready."""

    condition_type: str = ""


class ContainerAmounts(Observed):
    """Limits of a container, by resource."""

    limits: dict[str, str | int | float] | None = None


class PodStep(Named):
    """An init container, or a container, of a pod."""

    resources: ContainerAmounts = msgspec.field(default_factory=ContainerAmounts)


class ObservedPodSpec(Observed, dict=True):
    """The fields of a pod's spec that can keep it from being ready while its containers are."""

    node_name: str = ""
    readiness_gates: list[ReadinessGate] | None = None
    raw_init_containers: Raw = msgspec.field(default=ABSENT, name="initContainers")

    @property
    def init_containers(self) -> list[PodStep] | None:
        """Return the init containers, which are decoded where they are needed."""
        return _STEPS.decode(self.raw_init_containers)


_STEPS: Decoder[list[PodStep] | None] = Decoder(list[PodStep] | None)


class PodStatus(ConditionsStatus):
    """``reason`` and ``message`` are about the pod as a whole, such as an eviction."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    init_container_statuses: list[ContainerStatus] | None = None
    container_statuses: list[ContainerStatus] | None = None
    host_ip: str = msgspec.field(default="", name="hostIP")


class PodMeta(Observed):
    """Metadata of a pod: a service may have hundreds, so little is decoded."""

    name: str = ""
    labels: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class ObservedPod(Observed, dict=True):
    """A related pod, which only affects the status. A service may have hundreds, and no status needs a ready one's."""

    metadata: PodMeta = msgspec.field(default_factory=PodMeta)
    spec: ObservedPodSpec = msgspec.field(default_factory=ObservedPodSpec)
    raw_status: Raw = msgspec.field(default=ABSENT, name="status")
    status = decoded("raw_status", PodStatus)


class RelatedMeta(Observed):
    """A related object of which only the existence and the metadata matter."""

    metadata: ObservedMeta = msgspec.field(default_factory=ObservedMeta)


class ObservedConfigMap(RelatedMeta):
    data: dict[str, str] | None = None


def _is_written(encoded: Raw, text: Raw) -> bool:
    """Report whether two sorted JSON texts are the same, of which Go's has escaped characters of HTML.

    A string with an escaped backslash before such an escape becomes invalid, and equals no other.
    """
    if encoded == text:
        return True
    return bytes(encoded) == bytes(text).replace(rb"\u0026", b"&").replace(rb"\u003c", b"<").replace(rb"\u003e", b">")


_SORTED = msgspec.json.Encoder(order="sorted")
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])


def parsed(document: bytes | Raw) -> object:
    """Parse a record or a part of a child, without nulls in maps, and with whole numbers as integers.

    ``None`` if it is invalid or too deep.
    """
    return None if depth_exceeds(document) else parsed_at_any_depth(document)


def parsed_at_any_depth(document: bytes | Raw) -> object:
    """As :func:`parsed`, for callers that expect a ``RecursionError``: to tell the depth takes longer than to parse."""
    text = bytes(document)
    try:
        value = _JSON.decode(text)
    except msgspec.DecodeError:
        return None
    return without_nulls(value) if b"null" in text and _NULL.search(text) else value


def _number(text: str) -> float | int:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large")
    return integral(value)


_JSON = msgspec.json.Decoder(float_hook=_number)
_NULL = regex(rb":\s*null")
"""A null in a map, or the same characters in a string."""


def _recorded_metadata(recorded: object, observed: ChildMeta) -> Json | None:
    if not isinstance(recorded, dict):
        return None
    metadata: dict[str, object] = {"name": observed.name}
    if "namespace" in recorded:
        metadata["namespace"] = observed.namespace
    for key in ("labels", "annotations"):
        texts = recorded.get(key)
        if texts is None:
            continue
        if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
            return None
        metadata[key] = {name: text for name, text in texts.items() if not is_reserved(name)}
    return metadata


def spec_replicas(child: ObservedObject) -> int | None:
    """Return the observed ``spec.replicas``, for kinds that have it."""
    spec = getattr(child, "spec", None)
    return spec.replicas if isinstance(spec, ReplicasSpec) else None
