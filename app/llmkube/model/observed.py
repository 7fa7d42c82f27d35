"""What a sync of a Model is given, what it has to ask for, and what its Jobs, pods and claims tell.

The downloader writes one JSON object as its termination message when it succeeds; when it fails, the message is the end
of its log (LK-2.9.2). A claim goes only when no pod uses it any more (pvc-protection): a Model that is deleted and made
again while services run would wait for them, and they for the Model, so that it takes a claim of another name, see
docs/decisions/0013-claims-of-a-deleted-model.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from app.hooks.protocol import ByName, RelatedRule
from app.kube.conditions import find, is_true
from app.kube.objects import (
    ContainerStateTerminated,
    ObjectMeta,
    Observed,
    ObservedClaim,
    ObservedJob,
    ObservedPod,
    PodSpec,
)
from app.llmkube import names
from app.llmkube.download import EXIT_WRONG_SHA256
from app.llmkube.model.plan import accelerator_resource, operator_claim, plan, source_claim
from app.llmkube.model.types import GGUF, QUANTIZATIONS, Model
from app.settings import Settings
from app.workload.pods import JOB_NAMES


class ClaimVolume(Observed):
    claim_name: str = ""


class PodVolume(Observed):
    persistent_volume_claim: ClaimVolume | None = None


class Variable(Observed):
    name: str = ""
    value: str = ""


class Downloader(Observed):
    """A container, as far as it fetches a file."""

    name: str = ""
    env: list[Variable] | None = None


class MountingSpec(PodSpec):
    volumes: list[PodVolume] | None = None
    init_containers: list[Downloader] | None = None


class ModelPod(ObservedPod):
    """A pod of the Model's: of its Jobs, or of a service."""

    spec: MountingSpec = msgspec.field(default_factory=MountingSpec)


class _PodSpec(Observed):
    containers: list[Downloader] | None = None


class _Template(Observed):
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _JobSpec(Observed):
    template: _Template = msgspec.field(default_factory=_Template)


class DownloadJob(ObservedJob):
    """A Model's Job, as far as it says which files stay."""

    spec: _JobSpec = msgspec.field(default_factory=_JobSpec)


class NodeStatus(msgspec.Struct):
    capacity: dict[str, str | int] | None = None


class ObservedNode(msgspec.Struct):
    """A node, as far as its hardware goes."""

    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class ObservedStorageClass(msgspec.Struct):
    binding_mode: str = msgspec.field(name="volumeBindingMode", default="")


class Children(msgspec.Struct):
    jobs: ByName[DownloadJob] = msgspec.field(name="Job.batch/v1", default=None)
    claims: ByName[ObservedClaim] = msgspec.field(name="PersistentVolumeClaim.v1", default=None)


class Related(msgspec.Struct):
    claims: ByName[ObservedClaim] = msgspec.field(name="PersistentVolumeClaim.v1", default=None)
    pods: ByName[ModelPod] = msgspec.field(name="Pod.v1", default=None)
    nodes: ByName[ObservedNode] = msgspec.field(name="Node.v1", default=None)
    classes: ByName[ObservedStorageClass] = msgspec.field(name="StorageClass.storage.k8s.io/v1", default=None)


def customize(model: Model, _: frozenset[str], settings: Settings) -> list[RelatedRule]:
    """What a Model's answer depends on besides its children. From the spec only: Metacontroller keeps the rules."""
    namespace, rules = model.metadata.namespace, []
    usual = plan(model.metadata, model.spec, operator_claim=False, settings=settings)
    asked = (source_claim(model.spec), operator_claim(model.spec, settings), usual.claim)
    claims = [name for name in asked if name]
    if claims:
        rules.append(RelatedRule("v1", "persistentvolumeclaims", namespace, names=tuple(claims)))
    if source_claim(model.spec):
        rules.append(RelatedRule("storage.k8s.io/v1", "storageclasses", label_selector={}))
    elif settings.watch_pods and usual.job:
        selector = {"matchLabels": names.model_pod_labels(model.metadata.name)}
        rules.append(RelatedRule("v1", "pods", namespace, label_selector=selector))
    if settings.llmkube_watch_nodes and accelerator_resource(model.spec, settings):
        rules.append(RelatedRule("v1", "nodes", label_selector={}))
    return rules


# Claims, and who uses them.


def is_earlier_models(claim: ObservedClaim, metadata: ObjectMeta) -> bool:
    """Whether the claim belongs to another Model, which had this one's name."""
    owners = claim.metadata.owner_references or ()
    return any(
        owner.controller
        and owner.kind == "Model"
        and owner.api_version.partition("/")[0] == names.GROUP
        and owner.uid != metadata.uid
        for owner in owners
    )


def users(claim: str, pods: Iterable[ModelPod]) -> list[ModelPod]:
    """The pods that keep a claim from going: those that have not ended."""
    return [pod for pod in pods if not _has_ended(pod) and _mounts(pod, claim)]


def _has_ended(pod: ModelPod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def _mounts(pod: ModelPod, claim: str) -> bool:
    mounted = (volume.persistent_volume_claim for volume in pod.spec.volumes or ())
    return any(source is not None and source.claim_name == claim for source in mounted)


def fetching(path: str, pods: Iterable[ModelPod]) -> list[ModelPod]:
    """The serving pods whose init container looks after the file at ``path``, which says of which source it is."""
    return [pod for pod in pods if any(_fetches(container, path) for container in pod.spec.init_containers or ())]


def _fetches(container: Downloader, path: str) -> bool:
    return container.name == names.DOWNLOADER and variable(container, "MODEL_PATH") == path


def variable(container: Downloader, name: str) -> str | None:
    """An environment variable as it is written; ``None`` where the container has none of that name."""
    return next((found.value for found in container.env or () if found.name == name), None)


def going(name: str, pods: Iterable[ModelPod]) -> str:
    """``PersistentVolumeClaim m-cache is being deleted, still used by pod chat-0``."""
    found = sorted(pod.metadata.name for pod in users(name, pods))
    by = f", still used by pod{'s' if found[1:] else ''} {', '.join(found)}" if found else ""
    return f"PersistentVolumeClaim {name} is being deleted{by}"


# Jobs: the attempts at one file, and what they tell.


def attempts(jobs: Iterable[DownloadJob], first: str) -> list[tuple[int, DownloadJob]]:
    """The Jobs for one file with their numbers, the latest first. ``first``: the name of the first one."""
    numbered = [(_number(job), job) for job in jobs]
    mine = [(number, job) for number, job in numbered if job.metadata.name == names.attempt_name(first, number)]
    return sorted(mine, key=lambda item: item[0], reverse=True)


def _number(job: DownloadJob) -> int:
    text = job.annotations.get(names.ATTEMPT, "")
    return int(text) if re.fullmatch("[1-9][0-9]{0,5}", text) else 1


def told(job: DownloadJob) -> str | None:
    """What an observed Job was told to keep, as it is written; ``None`` where it keeps all."""
    containers = job.spec.template.spec.containers or ()
    return next(
        (variable(container, names.KEEP_KEYS) for container in containers if container.name == names.DOWNLOADER), None
    )


class Header(GGUF, rename="camel"):
    """What a Job's downloader read in the file's header, with the quantization as the number that stands there."""

    file_type: int | None = None

    def described(self) -> GGUF:
        """The same as the status has it."""
        known = msgspec.structs.asdict(self)
        known["quantization"] = QUANTIZATIONS.get(known.pop("file_type"), "")
        return GGUF(**known)


class Report(msgspec.Struct):
    """What the downloader says of the file."""

    size: int = 0
    sha256: str = ""
    etag: str = ""
    gguf: Header | None = None


_DECODER = msgspec.json.Decoder(Report)


def pods_of(job: str, pods: Iterable[ObservedPod]) -> list[ObservedPod]:
    """The pods of the Job of that name: a Model's earlier Jobs may still have some."""
    return [pod for pod in pods if any((pod.metadata.labels or {}).get(label) == job for label in JOB_NAMES)]


def report(pods: Iterable[ObservedPod]) -> Report | None:
    """The report of a pod that succeeded, if one is there and readable."""
    ended = (_read(end.message) for end in _endings(pods) if end.exit_code == 0)
    return next((found for found in ended if found is not None), None)


def refreshed(pods: Iterable[ObservedPod]) -> Report | None:
    """The latest report of serving pods' init containers: with ``OnChange`` they may have fetched another file."""
    ended = [
        status.state.terminated
        for pod in pods
        for status in pod.status.init_container_statuses or ()
        if status.name == names.DOWNLOADER and status.state.terminated and status.state.terminated.exit_code == 0
    ]
    latest = sorted(ended, key=lambda end: (end.finished_at or "", end.message), reverse=True)
    return next((found for end in latest if (found := _read(end.message)) is not None), None)


def _read(message: str) -> Report | None:
    try:
        return _DECODER.decode(message)
    except msgspec.DecodeError:
        return None


def complete(job: ObservedJob) -> bool:
    return is_true(job.status.conditions, "Complete")


def failed_at(job: ObservedJob) -> str | None:
    """When the Job gave up, ``None`` while it has not."""
    condition = find(job.status.conditions, "Failed")
    return condition.last_transition_time if condition is not None and condition.status == "True" else None


def wrong_sha256(job: ObservedJob, pods: Iterable[ObservedPod]) -> bool:
    """Whether the Job gave up because the file is not the one that the Model demands.

    The pods say so by their exit code. Where pods are not watched, the Job's own message names the code.
    """
    if any(ended.exit_code == EXIT_WRONG_SHA256 for ended in _endings(pods)):
        return True
    condition = find(job.status.conditions, "Failed")
    return condition is not None and f"exit code {EXIT_WRONG_SHA256}" in condition.message


def _endings(pods: Iterable[ObservedPod]) -> Iterable[ContainerStateTerminated]:
    for pod in sorted(pods, key=lambda pod: pod.metadata.name):
        for status in pod.status.container_statuses or ():
            ended = status.state.terminated or status.last_state.terminated
            if ended is not None:
                yield ended
