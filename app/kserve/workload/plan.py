"""Every decision about a service's model servers. Source: KS-3.5 to KS-3.7 and KS-3.12."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from app.hooks.kept import kept_selector
from app.hooks.protocol import get
from app.kserve import constants, lora, permissions, results
from app.kserve.llminferenceservice.observed import ReconcileContext
from app.kserve.llminferenceservice.types import LLMCondition, LLMReason, WorkloadSpec
from app.kserve.names import base_labels, component_labels, workload_labels
from app.kserve.references import named_account
from app.kserve.sources import Artifact, Provider, provider
from app.kserve.spec.effective import EffectiveSpec
from app.kserve.workload import artifacts
from app.kserve.workload.credentials import (
    CA_BUNDLE_CONFIG_MAP,
    HUB_DEFAULTS,
    SECRET_VOLUMES,
    Access,
    access,
    download_hints,
)
from app.kserve.workload.topology import Labels, Side, laid_over, propagated, replicas, topology, with_account
from app.kube.base import Json
from app.kube.merge import find
from app.kube.objects import LeaderWorkerTemplate, ObservedTemplate, parsed
from app.kube.podspec import each_name_once, with_container
from app.workload.parts import without_service_links
from app.workload.readiness.cause import Cause, Stage

_SENT_ACCOUNT = ("spec", "leaderWorkerTemplate", "workerTemplate", "spec", "serviceAccountName")
_OLDER_GROUP, _GROUP = f"--pool-group={constants.POOL_GROUP_ALPHA}", f"--pool-group={constants.POOL_GROUP}"


class MissingAccountError(results.PhaseError):
    """A pod names a ServiceAccount that does not exist."""


class PodPlan(msgspec.Struct, frozen=True):
    labels: Labels
    annotations: Labels
    spec: Json
    credentials: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Variables, volumes and mounts of credentials: who named the Secrets, for people."""
    adapters: frozenset[str] = frozenset()
    """Addresses and directories of LoRA adapters."""


class DeploymentPlan(msgspec.Struct, frozen=True):
    name: str
    labels: Labels
    annotations: Labels
    selector: Labels
    replicas: int | None
    """``None`` leaves the number to others."""
    pod: PodPlan


class GroupPlan(msgspec.Struct, frozen=True):
    """A workload whose replicas are groups: a leader with workers."""

    name: str
    labels: Labels
    annotations: Labels
    replicas: int | None
    size: int | None
    """Pods of one group, the leader included."""
    leader: PodPlan | None
    worker: PodPlan
    sub_group_size: int | None


class AccountPlan(msgspec.Struct, frozen=True):
    """The account of pods that have to ask the API server, and what it may do."""

    account: str
    managed: bool
    """True if the account is created here; its Role and RoleBinding always are."""
    labels: Labels
    role: str = ""
    """Empty when the pods ask for nothing."""
    binding: str = ""
    rules: tuple[Json, ...] = permissions.SIDECAR_RULES


class WorkloadPlan(msgspec.Struct, frozen=True):
    deployments: tuple[DeploymentPlan, ...]
    groups: tuple[GroupPlan, ...]
    accounts: tuple[AccountPlan, ...]
    ca_bundle: bool = False
    """True if some pod downloads with the operator's CA bundle."""
    hints: tuple[Cause, ...] = ()
    """Why downloads may fail, for pods that are not ready."""


def workload_plan(spec: EffectiveSpec, context: ReconcileContext) -> WorkloadPlan:
    """Plan the model servers of a service that is not stopped. Raises :class:`PhaseError`."""
    try:
        return _Planner(spec, context).plan()
    except artifacts.ArtifactError as error:
        raise results.PhaseError(*_blamed(spec), str(error), Stage.MODEL) from None


def _blamed(spec: EffectiveSpec) -> tuple[str, str]:
    """Condition and reason of what stops the workloads of that topology."""
    if spec.worker is not None:
        return LLMCondition.WORKER_WORKLOAD_READY, LLMReason.RECONCILE_MULTI_NODE_ERROR
    return LLMCondition.MAIN_WORKLOAD_READY, LLMReason.RECONCILE_SINGLE_NODE_ERROR


class _Planner:
    def __init__(self, spec: EffectiveSpec, context: ReconcileContext) -> None:
        self._spec = spec
        self._context = context
        notes = context.metadata.annotations
        self._labels = propagated(context.metadata.labels, constants.PROPAGATED_LABELS)
        self._annotations = propagated(notes, constants.PROPAGATED_ANNOTATIONS)
        self._group_annotations = self._annotations | propagated(notes, constants.PROPAGATED_LWS_ANNOTATIONS)
        self._hints: dict[str, Cause] = {}
        self._ca_bundle = False
        self._model = model_artifact(spec, context)
        self._adapters = lora.adapters(spec.model) if lora.is_loaded(spec) else []

    def plan(self) -> WorkloadPlan:
        accounts = self._accounts()
        self._check_accounts(accounts)
        sides = topology(self._spec, self._context.names)
        return WorkloadPlan(
            deployments=tuple(self._deployment(side) for side in sides if side.spec.worker is None),
            groups=tuple(self._group(side) for side in sides if side.spec.worker is not None),
            accounts=tuple(accounts),
            ca_bundle=self._ca_bundle,
            hints=tuple(self._hints.values()),
        )

    def _check_accounts(self, planned: Iterable[AccountPlan]) -> None:
        """Every account that pods run under must exist, unless it is one that we make."""
        ours = {plan.account for plan in planned if plan.managed}
        for workload, _ in self._spec.workloads():
            name = named_account(workload.template, workload.worker)
            if name and name not in ours and self._context.account(name) is None:
                text = f"ServiceAccount {name} does not exist in namespace {self._context.metadata.namespace}"
                raise MissingAccountError(*_blamed(self._spec), text, Stage.MODEL)

    def _accounts(self) -> list[AccountPlan]:
        """Only those of the topology at hand (KS-3.5)."""
        if not self._context.managed_accounts:
            return []
        spec, names, service = self._spec, self._context.names, self._context.metadata.name
        accounts, base = [], base_labels(service)
        routed = _has_sidecar(spec.template) or _has_sidecar(spec.worker)
        if spec.worker is not None:
            roles = (names.multi_node_role, names.multi_node_role_binding) if routed else ()
            accounts.append(_account(spec, names.multi_node, base, *roles))
        elif routed:
            labels = component_labels(service, constants.COMPONENT_WORKLOAD)
            accounts.append(_account(spec, names.main, labels, names.role, names.role_binding))
        if spec.prefill is not None and spec.prefill.worker is not None:
            accounts.append(_account(spec.prefill, names.multi_node_prefill, base))
        return [account for account in accounts if account.managed or account.role]

    def _deployment(self, side: Side) -> DeploymentPlan:
        base = workload_labels(self._context.metadata.name, side.component(), side.role)
        labels = laid_over(base, self._labels)
        observed = self._context.deployment(side.name)
        live = observed.spec.template if observed is not None else ObservedTemplate()
        pods = laid_over(labels, side.labels(live.metadata.labels))
        annotations = laid_over(self._annotations, side.annotations(live.metadata.annotations))
        template = self._routed(side.spec.template or {})
        account, managed_name = named_account(side.spec.template, side.spec.worker), self._context.names.main
        managed = self._context.managed_accounts and side.role != constants.ROLE_PREFILL and _has_sidecar(template)
        if managed and account in ("", managed_name):
            template, account = {**template, "serviceAccountName": managed_name}, ""
        template = with_account(template, observed, "" if self._context.managed_accounts else managed_name)
        observed_labels = observed.spec.selector.match_labels if observed is not None else None
        return DeploymentPlan(
            name=side.name,
            labels=labels,
            annotations=self._annotations,
            selector=kept_selector({key: pods[key] for key in base}, observed_labels, pods),
            replicas=replicas(side.spec.replicas, observed, side.spec.scaling),
            pod=self._pod(template, pods, annotations, account, live),
        )

    def _group(self, side: Side) -> GroupPlan:
        service, spec = self._context.metadata.name, side.spec
        observed = get(self._context.children.leader_worker_sets, side.group_name, self._context.metadata.namespace)
        live = observed.spec.leader_worker_template if observed is not None else LeaderWorkerTemplate()
        sent = find(observed.record, _SENT_ACCOUNT) if observed is not None else None
        managed = self._context.managed_accounts or sent == side.group_name  # without the component, it stays
        named_by_user = named_account(side.spec.template, side.spec.worker)
        account = named_by_user or (side.group_name if managed else "")  # (KS-3.6)

        def pod(template: Json, labels: Mapping[str, str], running: ObservedTemplate) -> PodPlan:
            shaped = self._routed(template) if side.role != constants.ROLE_PREFILL else template
            if account:
                shaped = {**shaped, "serviceAccountName": account}
            named = "" if account == side.group_name else account
            labels = laid_over(labels, self._labels, side.labels(running.metadata.labels))
            annotations = laid_over(self._group_annotations, side.annotations(running.metadata.annotations))
            return self._pod(shaped, labels, annotations, named, running)

        leader, group_labels = None, component_labels(service, side.component("-worker"))
        if spec.template is None:
            role = constants.ROLE_PREFILL if side.role == constants.ROLE_PREFILL else constants.ROLE_DECODE
            group_labels = workload_labels(service, side.component("-worker"), role)
        else:
            labels = workload_labels(service, side.component("-leader"), side.role)
            leader = pod(spec.template, labels, live.leader_template or ObservedTemplate())
        data_parallel = spec.parallelism is not None and spec.parallelism.is_data_parallel
        return GroupPlan(
            name=side.group_name,
            labels=laid_over(group_labels, self._labels),
            annotations=self._group_annotations,
            replicas=replicas(spec.replicas, observed, spec.scaling),
            size=spec.pods_per_replica,
            leader=leader,
            worker=pod(spec.worker or {}, group_labels, live.worker_template or ObservedTemplate()),
            sub_group_size=spec.pods_per_replica if side.role == constants.ROLE_PREFILL and data_parallel else None,
        )

    def _routed(self, pod: Json) -> Json:
        """The pod whose routing sidecar, if it has one, knows its pool (KS-3.5)."""
        if self._spec.router is None or not _has_sidecar(pod):
            return pod
        name = self._spec.pool_ref
        variable = {"name": constants.POOL_NAME_VARIABLE, "value": name or self._context.names.pool}

        def routed(container: Json) -> Json:
            if container.get("name") != constants.ROUTING_SIDECAR:
                return container
            env = each_name_once([*(container.get("env") or ()), variable], moved=True)
            return {**(container if name else _with_pool_group(container)), "env": env}

        return {**pod, "initContainers": [routed(container) for container in pod["initContainers"]]}

    def _pod(
        self, template: Json, labels: Labels, annotations: Labels, account: str, running: ObservedTemplate
    ) -> PodPlan:
        """The pod with the model and its adapters in it; ``account`` is the one that a user named."""
        context = self._context
        parts = (self._model, *self._adapters)
        uris = artifacts.downloaded(parts)
        credentials = download_access(self._spec, context, account, parts)
        for hint in download_hints(uris, credentials, template, context.operator.credentials):
            self._hints[hint.reason] = hint
        named = {variable["name"] for variable in credentials.env}
        self._ca_bundle |= artifacts.with_bundle(uris) and bool(context.ca_bundle) and CA_BUNDLE_CONFIG_MAP not in named
        extra = artifacts.Attachment(credentials, running, context.ca_bundle)
        pod = without_service_links(artifacts.attach(template, parts, context.operator, extra))
        if uris and not account and (text := missing_credentials(context, pod, running)):
            raise MissingAccountError(*_blamed(self._spec), text, Stage.MODEL)
        places = frozenset(place for adapter in self._adapters for place in (adapter.uri.text, adapter.path))
        return PodPlan(labels, annotations, self._with_adapters(pod), credentials.sources, places)

    def _with_adapters(self, pod: Json) -> Json:
        """Return the pod whose server loads the adapters, each under its name and the name in the route's rules."""
        limits = self._spec.model.lora
        if not self._adapters or limits is None:
            return pod
        publisher = f"publishers/{self._context.metadata.namespace}/models/"
        served = [
            (name, f"{adapter.path}/{artifacts.inside(adapter.uri)}".rstrip("/"))
            for adapter in self._adapters
            for name in (adapter.name, publisher + adapter.name)
        ]
        return with_container(pod, constants.MAIN, lambda main: lora.with_adapters(main, limits, served))


def model_artifact(spec: EffectiveSpec, context: ReconcileContext) -> Artifact:
    """Return where the model of a service comes from. Raises :class:`ArtifactError`."""
    settings = context.operator.storage_initializer
    return artifacts.artifact(spec.model.uri, settings, enabled=lora.is_loaded(spec))


def download_access(spec: EffectiveSpec, context: ReconcileContext, account: str, parts: Sequence[Artifact]) -> Access:
    """Return what the storage initializer gets for downloads in a pod; ``account`` is the one that a user named."""
    uris = artifacts.downloaded(parts)
    service_account = context.account(account or "default") if uris else None
    credentials = access(uris, context.metadata.annotations or {}, service_account, context.operator.credentials)
    if parts[0].downloads:
        credentials = credentials.with_variables(_confidential(spec), "spec.model.confidential")
    if any(provider(uri) is Provider.HF for uri in uris):
        credentials = credentials.with_variables(HUB_DEFAULTS, "preset of downloads from the Hugging Face Hub")
    return credentials


def missing_credentials(context: ReconcileContext, pod: Json, running: ObservedTemplate) -> str:
    """Return why the planned storage initializer lacks what the running one got from the default ServiceAccount.

    Every namespace has that account, and no pod starts without it, so it is about to be there again.
    """
    if context.account("default") is not None or not _loses_credentials(pod, running):
        return ""
    return f"ServiceAccount default does not exist in namespace {context.metadata.namespace}"


def _loses_credentials(pod: Json, running: ObservedTemplate) -> bool:
    """Report whether the running storage initializer has variables or volumes of Secrets that the planned one lacks."""
    volumes = {volume.get("name") for volume in pod.get("volumes") or ()}
    if any(volume.name in SECRET_VOLUMES and volume.name not in volumes for volume in running.spec.volumes or ()):
        return True
    steps = {step.get("name"): step for step in pod.get("initContainers") or ()}
    planned = {variable.get("name") for variable in steps.get(constants.STORAGE_INITIALIZER, {}).get("env") or ()}
    variables = parsed(running.container(constants.STORAGE_INITIALIZER).raw_env)
    items = [item for item in variables if isinstance(item, dict)] if isinstance(variables, list) else []
    return any(str(item.get("name")) not in planned for item in items)


def _confidential(spec: EffectiveSpec) -> dict[str, str]:
    """Return the variables by which the storage initializer decrypts the model (KS-1.2)."""
    requested = spec.model.confidential
    if requested is None or not requested.enabled:
        return {}
    key = {"CONFIDENTIAL_RESOURCE_ID": requested.resource_id} if requested.resource_id else {}
    return {"CONFIDENTIAL_ENABLED": "true", **key}


def _account(workload: WorkloadSpec, own: str, labels: Labels, role: str = "", binding: str = "") -> AccountPlan:
    account = named_account(workload.template, workload.worker) or own
    return AccountPlan(account, account == own, labels, role, binding)


def _has_sidecar(pod: Json | None) -> bool:
    return any(c.get("name") == constants.ROUTING_SIDECAR for c in (pod or {}).get("initContainers") or ())


def _with_pool_group(sidecar: Json) -> Json:
    """Return the routing sidecar that asks for a pool of the group of the managed one (KS-4.5)."""
    lines = {key: sidecar[key] for key in ("command", "args") if sidecar.get(key)}
    return {**sidecar, **{key: [_GROUP if word == _OLDER_GROUP else word for word in lines[key]] for key in lines}}
