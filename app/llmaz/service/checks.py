"""Rules and warnings of a Service.

Source: LZ-4.3, LZ-4.4, LZ-SV01 to LZ-SV04, LZ-N01 to LZ-N08, LZ-N14, LZ-N26 to LZ-N29, LZ-T29.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from app.hooks import protocol, sendable
from app.kube import field, quantity
from app.kube.base import Json
from app.kube.field import SPEC, Advice, advice
from app.kube.names import validate_annotation_keys, validate_labels
from app.kube.reading import stored
from app.llmaz import checks, claims, names, references
from app.llmaz.quantities import Resources, low_limits
from app.llmaz.service import observed, types
from app.llmaz.service.plan import ServicePlan, divides, plan
from app.llmaz.service.pods import loaders
from app.settings import Settings
from app.workload.advice.advise import advise, advise_further
from app.workload.advice.podview import (
    ContainerView,
    Devices,
    PodView,
    RequestPort,
    Sizes,
    containers_of,
    whole_container,
)
from app.workload.devices import Counts, counts
from app.workload.readiness import cause
from app.workload.readiness.pods import LWS_NAME, LWS_WORKER_INDEX
from app.workload.rules import podrules

TEMPLATE = SPEC.child("workloadTemplate")
WORKER = TEMPLATE.child("workerTemplate")
LEADER = TEMPLATE.child("leaderTemplate")
ROLLOUT = SPEC.child("rolloutStrategy", "rollingUpdateConfiguration")
_LOADER = re.compile(rf"{names.LOADER}(-[0-9]+)?")
_VOLUME = re.compile(rf"{names.MODEL_VOLUME}(-[0-9]+)?")
_PERCENT = re.compile(r"[0-9]{1,5}%")


def validate(service: types.Service, old: types.Service | None, settings: Settings) -> Iterator[field.Error]:
    """Reject a negative number of replicas, and changes of the group's size (LZ-N08, LZ-N28)."""
    spec = service.spec
    yield from () if old is not None else checks.workload_name(service.metadata)
    if spec.model_claims is None:
        yield field.required(SPEC.child("modelClaims"), "name the models to serve")
    else:
        yield from claims.check(spec.model_claims, SPEC.child("modelClaims"))
    if spec.replicas < 0:
        yield field.invalid(SPEC.child("replicas"), spec.replicas, "must be 0 or more")
    loads = not names.skips_loader(service.metadata)
    yield from _workload(spec.workload_template, created=old is None, loads=loads)
    if old is not None and old.spec.workload_template.size != spec.workload_template.size:
        yield field.immutable(TEMPLATE.child("size"), spec.workload_template.size)
    yield from _rollout(spec.rollout_strategy, spec.replicas, grouped=not spec.workload_template.is_single)


def _workload(template: types.WorkloadTemplate, *, created: bool, loads: bool) -> Iterator[field.Error]:
    """Require a group of at least one, the engine's container, and names free for the loader (LZ-N26, LZ-N27)."""
    if template.size < 1:
        yield field.invalid(TEMPLATE.child("size"), template.size, "must be 1 or more")
    for pods, path in _templates(template):
        if (created or path is LEADER) and not has_runner(pods):
            message = f"one container must be named {names.RUNNER}: it gets the model and the flavor's resources"
            yield field.forbidden(path.child("spec", "containers"), message)
        yield from _pods(pods, path)
        for place, value in _reserved(pods, path.child("spec")) if loads else ():
            yield field.invalid(place, value, "reserved for the model that is added to the pod; choose another")


def _templates(template: types.WorkloadTemplate) -> list[tuple[Json, field.Path]]:
    """Return the pod templates; the pods of the last one serve requests."""
    workers = [(template.worker_template, WORKER)]
    return workers if template.leader_template is None else [*workers, (template.leader_template, LEADER)]


def items(template: Json, name: str) -> list[Json]:
    """Return a list of a pod spec without nulls; other types were refused before."""
    values: list[Json] = (template.get("spec") or {}).get(name) or []
    return [item for item in values if item]


def has_runner(template: Json) -> bool:
    return any(container.get("name") == names.RUNNER for container in items(template, "containers"))


def _pods(template: Json, path: field.Path) -> Iterator[field.Error]:
    """Validate what the API server or Metacontroller would only refuse when the pods are created."""
    yield from (_at_item(error, template, path) for error in sendable.check(template, path))
    metadata = template.get("metadata") or {}
    yield from validate_labels(metadata.get("labels") or {}, path.child("metadata", "labels"))
    yield from validate_annotation_keys(metadata.get("annotations") or {}, path.child("metadata", "annotations"))
    yield from podrules.check(podrules.POD, template.get("spec") or {}, path.child("spec"))


def _reserved(template: Json, spec: field.Path) -> Iterator[tuple[field.Path, str]]:
    for kind, reserved in (("volumes", _VOLUME), ("initContainers", _LOADER)):
        for item_path, item in spec.child(kind).each(items(template, kind)):
            if reserved.fullmatch(str(item.get("name"))):
                yield item_path.child("name"), item["name"]
    for container_path, container in spec.child("containers").each(items(template, "containers")):
        mounts = container.get("volumeMounts") if container.get("name") == names.RUNNER else None
        for mount_path, mount in container_path.child("volumeMounts").each(mounts or ()):
            if mount and str(mount.get("mountPath")).rstrip("/") == names.MODELS_DIR.rstrip("/"):
                yield mount_path.child("mountPath"), mount["mountPath"]


def _at_item(error: field.Error, template: Json, root: field.Path) -> field.Error:
    """Move the error about a duplicate to the second of the two items, as the API server does."""
    if error.type is not field.ErrorType.DUPLICATE:
        return error
    value: Any = stored.without_nulls(template, in_lists=True)
    for segment in error.path.segments[len(root.segments) :]:
        value = value[segment]
    key, values = sendable.merge_key(value), set()
    for path, item in error.path.each(value if key else ()):
        if str(item[key]) in values:
            return replace(error, path=path)
        values.add(str(item[key]))
    return error


def _rollout(strategy: types.RolloutStrategy, replicas: int, *, grouped: bool) -> Iterator[field.Error]:
    """Require numbers or percentages with which a rollout can proceed, so not both 0 (LZ-N29).

    A LeaderWorkerSet surges by at most 100 %, a Deployment by any number.
    """
    config = strategy.rolling_update_configuration
    if config is None:
        return
    zeros = 0
    for name, value in (("maxUnavailable", config.max_unavailable), ("maxSurge", config.max_surge)):
        path = ROLLOUT.child(name)
        if isinstance(value, str) and not _PERCENT.fullmatch(value):
            yield field.invalid(path, value, 'must be a number or a percentage, such as 1 or "25%"')
        elif isinstance(value, int) and not 0 <= value < 2**31:
            yield field.invalid(path, value, "must be 0 or more, and fit into a 32-bit integer")
        elif isinstance(value, str) and (grouped or name == "maxUnavailable") and types.percent(value) > 100:
            yield field.invalid(path, value, "must be 100% or less")
        zeros += types.is_nothing(value)
    if zeros == 2 and replicas != 0:
        yield field.invalid(ROLLOUT.child("maxUnavailable"), config.max_unavailable, "may not be 0 when maxSurge is 0")


def warnings(service: types.Service) -> Iterator[Advice]:
    spec, template = service.spec, service.spec.workload_template
    yield from checks.workload_warnings(service.metadata)
    if spec.model_claims is not None:
        yield from claims.warnings(spec.model_claims, SPEC.child("modelClaims"))
    yield from _alone(template) if template.is_single else _grouped(template)
    yield from _overwritten(spec)
    yield from _unreachable(service)
    yield from advise(pod_views(service))
    for pods, path in _templates(template):
        yield from _amount_warnings(pods, path)


def update_warnings(service: types.Service, old: types.Service, settings: Settings) -> list[Advice]:
    """Warn of updates that have no effect, or by which the workload is deleted (LZ-N47, LZ-SV02)."""
    before, after = old.spec.workload_template, service.spec.workload_template
    advices: list[Advice] = []
    if not has_runner(after.worker_template):
        message = f"one container must be named {names.RUNNER}; until then running pods are left unchanged"
        advices.append(advice(WORKER.child("spec", "containers"), message))
    if not before.is_single and not after.is_single and _each(before) != _each(after):
        message = "a LeaderWorkerSet keeps the subgroups it was created with; delete it to change them"
        advices.append(advice(TEMPLATE.child("subGroupPolicy"), message))
    if before.is_single and not after.is_single and old.spec.replicas:
        message = (
            "where LeaderWorkerSet is installed, one replaces the Deployment: its pods end before new ones are ready"
        )
        advices.append(advice(LEADER, message))
    return advices


def _each(template: types.WorkloadTemplate) -> int | None:
    """Return the number of pods per subgroup, which a LeaderWorkerSet never changes."""
    return template.sub_group_policy.sub_group_size if template.sub_group_policy is not None else None


def _alone(template: types.WorkloadTemplate) -> Iterator[Advice]:
    """Warn of fields of a group, and of labels of a LeaderWorkerSet, where a replica is one pod (LZ-T29)."""
    if template.restart_policy != types.DEFAULT_RESTART_POLICY:
        message = "no effect on a Deployment, where a container restarts in place"
        yield advice(TEMPLATE.child("restartPolicy"), message, "no-effect")
    if template.sub_group_policy is not None:
        yield advice(TEMPLATE.child("subGroupPolicy"), "no effect with one pod per replica", "no-effect")
    labels, path = _metadata(template.worker_template, "labels"), WORKER.child("metadata", "labels")
    for key in (LWS_NAME, LWS_WORKER_INDEX):
        if key in labels:
            message = "where LeaderWorkerSet is installed, its webhook rejects other pods with this label"
            yield advice(path.key(key), message)
    if names.INFERENCE_SERVICE in labels:
        yield advice(path.key(names.INFERENCE_SERVICE), "overwritten: the Deployment finds its pods by this label")


def _grouped(template: types.WorkloadTemplate) -> Iterator[Advice]:
    """Warn of workers in a group of one, and of subgroups that do not divide the group."""
    if template.size == 1:
        yield advice(WORKER, "ignored, because size 1 is the leader alone; raise size to get workers")
    if template.sub_group_policy is not None and not divides(template.sub_group_policy, template.size):
        yield advice(TEMPLATE.child("subGroupPolicy"), "ignored, because subGroupSize does not divide the group")


def _overwritten(spec: types.ServiceSpec) -> Iterator[Advice]:
    """Warn of labels and annotations that describe the model and are overwritten (LZ-4.3)."""
    pods, path = _templates(spec.workload_template)[-1]
    keys = [("labels", names.MODEL_NAME), ("labels", names.MODEL_FAMILY)]
    if spec.claims.inference_flavors:
        keys.append(("annotations", names.FLAVORS))
    for kind, key in keys:
        if key in _metadata(pods, kind):
            yield advice(path.child("metadata", kind).key(key), "overwritten with the value from the model claim")


def _unreachable(service: types.Service) -> Iterator[Advice]:
    """Warn of an engine without the only port of the Service in front of the pods (LZ-4.8)."""
    pods, path = _templates(service.spec.workload_template)[-1]
    for container_path, container in path.child("spec", "containers").each(items(pods, "containers")):
        ports = [port.get("containerPort") for port in container.get("ports") or () if port]
        name = names.load_balancer(service.metadata.name or "<name>")
        if container["name"] == names.RUNNER and ports and names.PORT not in ports:
            message = f"must include {names.PORT}, the only port to which the Service {name} sends requests"
            yield advice(container_path.child("ports"), message)


def _metadata(pods: Json, kind: str) -> dict[str, str]:
    values: dict[str, str] = (pods.get("metadata") or {}).get(kind) or {}
    return values


def pod_views(service: types.Service, decided: ServicePlan | None = None) -> Iterator[PodView]:
    """Yield the views of the pod templates; the plan tells what the model and its flavor add to them."""
    balancer = names.load_balancer(service.metadata.name or "<name>")
    message = f"the Service {balancer} sends requests to port {names.PORT} only; write {names.PORT}"
    templates = list(_templates(service.spec.workload_template))
    base = {"initContainers": loaders(decided, [])} if decided is not None else {}

    def container(written: Json, path: field.Path) -> ContainerView:
        view = whole_container(written, path)
        if written.get("name") != names.RUNNER:
            return view
        if takes_requests:
            view = msgspec.structs.replace(view, requests=RequestPort(names.PORT, message))
        if service.spec.workload_template.is_single:
            view = msgspec.structs.replace(view, alone=f"set {TEMPLATE.child('size')}")
        if decided is None or decided.grouped or view.line.engine is None or pod.get("runtimeClassName"):
            return view  # what it gets is not known
        return _planned(view, service, decided)

    for template, path in templates:
        pod, where, takes_requests = template.get("spec") or {}, path.child("spec"), path is templates[-1][1]
        yield PodView(
            pod,
            where,
            base=base,
            containers=containers_of(pod, where, container),
            labels=_metadata(template, "labels"),
            labels_field="metadata.labels of the template",
            added=names.VOLUMES,
            open_fields=["limits"],
        )


def _planned(view: ContainerView, service: types.Service, decided: ServicePlan) -> ContainerView:
    """Return the view of the engine's container with what the model and its flavor add."""
    main, resources = decided.models[0], view.part("resources")
    amounts = {**(resources.get("limits") or {}), **decided.accelerators}
    numbers = [number for name, amount in amounts.items() if (number := _whole_devices(name, amount))]
    remedy = f"request one in a flavor of OpenModel {main.name}, or in its limits"
    share = f"add --tensor-parallel-size {sum(numbers)} to its args, or request 1"
    return msgspec.structs.replace(
        view,
        devices=None if resources.get("claims") else Devices(amounts, view.at("image"), remedy),
        sizes=None if resources.get("claims") else Sizes(sum(numbers), path=view.path, remedy=share),
        weights=checks.weights(main.source, service.metadata, view.line, SPEC.child("modelClaims")),
        fetches=checks.fetches(main.source),
    )


def _whole_devices(name: str, amount: object) -> int:
    is_counted = counts(name) is Counts.DEVICES and quantity.is_quantity(str(amount))
    return int(quantity.parse(str(amount))) if is_counted else 0


def _amount_warnings(pods: Json, path: field.Path) -> Iterator[Advice]:
    """Warn of wrong units, and of limits below their requests, which are invalid in a pod unless a flavor sets both."""
    for kind in ("initContainers", "containers"):
        for container_path, container in path.child("spec", kind).each(items(pods, kind)):
            for low, detail in low_limits(_resources(container), container_path.child("resources")):
                yield advice(low, f"{detail}; pods are rejected unless the model's flavor sets both")


def _resources(container: Json) -> Resources:
    resources = container.get("resources") or {}
    return Resources(limits=_amounts(resources.get("limits")), requests=_amounts(resources.get("requests")))


def _amounts(amounts: Json | None) -> dict[str, str]:
    """Return the quantities; another rule refuses numbers out of range."""
    canonical = ((name, quantity.canonical_value(amount)) for name, amount in (amounts or {}).items())
    return {name: amount for name, amount in canonical if isinstance(amount, str)}


def against_related(service: types.Service, request: observed.Request, settings: Settings) -> list[Advice]:
    """Warn of everything for which the Service would have no children with its models."""
    related, claimed = request.related, service.spec.claims.names
    if not claimed or any(protocol.get(related.models, name) is None for name in claimed):
        return []
    decided = plan(service, request.children, related, settings)
    path = SPEC.child("modelClaims")
    if not isinstance(decided, cause.Cause):
        further = advise_further(pod_views(service, decided), pod_views(service))
        return [*(advice(path, note) for note in decided.notes), *further]
    of_the_cluster = (types.ServiceReason.LEADER_WORKER_SET_REQUIRED, references.Obstacle.GLOBAL_CONFIG_INVALID)
    return [] if decided.reason in of_the_cluster else [advice(path, decided.text)]
