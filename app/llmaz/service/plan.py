"""Every decision about a Service: its workload, and the model in its pods. Source: LZ-2.9, LZ-4, LZ-9."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from app.hooks.protocol import get
from app.hooks.reader import read_yaml
from app.kube.objects import ObservedConfigMap, ObservedLeaderWorkerSet
from app.llmaz import flavors, references
from app.llmaz.names import CONFIG_KEY, CONFIG_MAP, LOADER_IMAGE, deployment_selector, leader_selector, skips_loader
from app.llmaz.openmodel.types import Flavor
from app.llmaz.service.observed import ServiceChildren, ServiceRelated
from app.llmaz.service.types import Service, ServiceReason, ServiceSpec, SubGroupPolicy, WorkloadTemplate
from app.settings import Settings
from app.workload.readiness.cause import Cause, Stage

SubGroups = tuple[str, int]
"""``subGroupPolicyType``, which decides if the leader belongs to a subgroup, and the number of pods per subgroup."""


@dataclass(frozen=True, slots=True)
class GlobalConfig:
    """The family's ConfigMap: an operator's settings for all services (LZ-4.7)."""

    scheduler: str = ""
    loader_image: str = LOADER_IMAGE


class ServicePlan(msgspec.Struct, frozen=True):
    name: str
    namespace: str
    spec: ServiceSpec
    grouped: bool
    """A LeaderWorkerSet runs the pods; otherwise a Deployment."""
    size: int
    """Pods per replica; the observed number, because it cannot change."""
    sub_groups: SubGroups | None
    """The observed subgroups, where they cannot change."""
    models: list[references.ClaimedModel]
    accelerators: dict[str, str]
    """Requests and limits of the engine from the chosen flavor."""
    flavors: Sequence[Flavor]
    """The flavors on whose nodes the pods may run, best first; empty for all nodes."""
    skip: bool
    config: GlobalConfig
    object_loader: str
    """Image of the loader for buckets of S3 and Google Cloud; may be empty."""
    mounts_images: bool
    selector: dict[str, str]
    """Label selector of the pods that take requests."""
    notes: list[str]


def plan(
    service: Service, children: ServiceChildren, related: ServiceRelated, settings: Settings
) -> ServicePlan | Cause:
    """Build the plan, or return the cause that keeps everything unchanged."""
    spec, metadata = service.spec, service.metadata
    skip = skips_loader(metadata)
    models = references.loadable_models(related.models, spec.claims.names, settings, skip=skip)
    if isinstance(models, Cause):
        return models
    config = _global_config(related.configmaps, settings)
    if isinstance(config, Cause):
        return config
    observed = get(children.leaderworkersets, metadata.name, metadata.namespace)
    template = spec.workload_template
    grouped = not template.is_single or observed is not None  # an existing one stays, so that no pod restarts
    if grouped and children.leaderworkersets is None:
        return _required(metadata.name)
    claimed, offered = spec.claims.inference_flavors or [], models[0].flavors
    chosen, size = flavors.chosen(offered, claimed), template.size
    if observed is not None and observed.spec.leader_worker_template.size is not None:
        size = observed.spec.leader_worker_template.size  # LeaderWorkerSet refuses every change of it
    return ServicePlan(
        name=metadata.name,
        namespace=metadata.namespace,
        spec=spec,
        grouped=grouped,
        size=size,
        sub_groups=_sub_groups(template, size, observed),
        models=models,
        accelerators=dict((chosen.limits if chosen is not None else None) or {}),
        flavors=flavors.eligible(offered, claimed) if settings.llmaz_flavor_affinity else (),
        skip=skip,
        config=config,
        object_loader=settings.llmaz_object_loader_image,
        mounts_images=references.mounts_images(models, settings),
        selector=(leader_selector if grouped else deployment_selector)(metadata.name),
        notes=[
            *flavors.notes(models[0].name, offered, claimed),
            *references.notes(models, skip=skip),
            *_group_notes(template, size, observed, grouped=grouped),
        ],
    )


def _global_config(group: Mapping[str, ObservedConfigMap] | None, settings: Settings) -> GlobalConfig | Cause:
    """Return the configuration, the defaults without a ConfigMap, or a cause if it cannot be read."""
    configmap = get(group, CONFIG_MAP, settings.llmaz_system_namespace)
    text = (configmap.data or {}).get(CONFIG_KEY) if configmap is not None else None
    if text is None:
        return GlobalConfig()
    parsed = read_yaml(text, _config)
    if isinstance(parsed, str):
        where = f"ConfigMap {settings.llmaz_system_namespace}/{CONFIG_MAP}, key {CONFIG_KEY}"
        return Cause(Stage.SPEC, f"{where}: {parsed}", references.Obstacle.GLOBAL_CONFIG_INVALID)
    return parsed


def _config(document: object) -> GlobalConfig | str:
    if document is None:
        document = {}
    if not isinstance(document, dict):
        return "is not a mapping"
    values = [document.get(key) for key in ("scheduler-name", "init-container-image")]
    if not all(value is None or isinstance(value, str) for value in values):
        return "scheduler-name and init-container-image must be strings"
    scheduler, image = (str(value or "") for value in values)
    return GlobalConfig(scheduler, image or LOADER_IMAGE)


def _required(name: str) -> Cause:
    text = (
        f"Service {name} has several pods per replica and needs a LeaderWorkerSet; install LeaderWorkerSet and the "
        "component leaderworkerset, or use size 1 without a leaderTemplate"
    )
    return Cause(Stage.SPEC, text, ServiceReason.LEADER_WORKER_SET_REQUIRED)


def _sub_groups(template: WorkloadTemplate, size: int, observed: ObservedLeaderWorkerSet | None) -> SubGroups | None:
    """Return subgroups that LeaderWorkerSet accepts: they divide a new group evenly; later only the type changes."""
    policy = template.sub_group_policy
    if observed is None:
        return _even(policy.sub_group_policy_type, policy.sub_group_size, size) if policy is not None else None
    current = observed.spec.leader_worker_template.sub_group_policy
    if current is None or current.sub_group_size is None:
        return None
    changed = _even(policy.sub_group_policy_type, current.sub_group_size, size) if policy is not None else None
    return changed or (current.sub_group_policy_type, current.sub_group_size)


def _even(kind: str, each: int | None, size: int) -> SubGroups | None:
    """Return subgroups of ``each`` pods, or ``None`` if they do not divide a group of that size."""
    if each is None or not 1 <= each <= size:
        return None
    divides = (size - 1) % each == 0 or (kind == "LeaderWorker" and size % each == 0)
    return (kind, each) if divides else None


def divides(policy: SubGroupPolicy, size: int) -> bool:
    return _even(policy.sub_group_policy_type, policy.sub_group_size, size) is not None


def _group_notes(
    template: WorkloadTemplate, size: int, observed: ObservedLeaderWorkerSet | None, *, grouped: bool
) -> Iterator[str]:
    if size != template.size:
        yield f"the LeaderWorkerSet keeps its size of {size}, which cannot change; delete it to get {template.size}"
    if not grouped:
        return
    policy, actual = template.sub_group_policy, _sub_groups(template, size, observed)
    if actual is None and policy is not None:
        yield "subGroupPolicy is ignored: it does not divide the group, or the LeaderWorkerSet was created without one"
    elif actual is not None and (policy is None or actual != (policy.sub_group_policy_type, policy.sub_group_size)):
        yield (
            f"the LeaderWorkerSet keeps its subgroups ({actual[0]}, {actual[1]} pods each), which cannot change; "
            "delete it to apply subGroupPolicy"
        )
