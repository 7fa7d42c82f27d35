"""The rules of a Service that its types cannot say. Source: LZ-SV01 to LZ-SV04, LZ-N01 to LZ-N08, LZ-N26 to LZ-N29."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from app.hooks import sendable
from app.hooks.sendable import merge_key
from app.kube import field
from app.kube.decode import SPEC
from app.kube.names import validate_annotation_keys, validate_labels
from app.kube.resource import Resource
from app.kube.stored import without_nulls
from app.llmaz import claims, naming
from app.llmaz.names import LOADER, MODEL_VOLUME, MODELS_DIR, RUNNER
from app.llmaz.service.types import RolloutStrategy, ServiceSpec, ServiceStatus, WorkloadTemplate
from app.llmaz.skip import skips_loader
from app.settings import Settings
from app.workload import podrules, wholepod

Service = Resource[ServiceSpec, ServiceStatus]

TEMPLATE = SPEC.child("workloadTemplate")
WORKER = TEMPLATE.child("workerTemplate")
LEADER = TEMPLATE.child("leaderTemplate")
ROLLOUT = SPEC.child("rolloutStrategy", "rollingUpdateConfiguration")


def validate(service: Service, old: Service | None, settings: Settings) -> list[field.Error]:
    """Every rule; name and worker container are judged on creation only, as upstream does, the size on updates too."""
    spec = service.spec
    errors = [] if old is not None else list(naming.workload_name(service.metadata))
    if spec.model_claims is None:
        errors.append(field.required(SPEC.child("modelClaims"), "name the models to serve"))
    else:
        errors += claims.check(spec.model_claims, SPEC.child("modelClaims"))
    if spec.replicas < 0:
        errors.append(field.invalid(SPEC.child("replicas"), spec.replicas, "must be 0 or more"))
    errors += _workload(spec.workload_template, created=old is None, loads=not skips_loader(service.metadata))
    if old is not None and old.spec.workload_template.size != spec.workload_template.size:
        errors.append(field.immutable(TEMPLATE.child("size"), spec.workload_template.size))
    grouped = not is_single(spec.workload_template)
    return [*errors, *_rollout(spec.rollout_strategy, spec.replicas, grouped=grouped)]


def is_single(template: WorkloadTemplate) -> bool:
    """Whether each replica is one pod, so that a Deployment can run them (LZ-9)."""
    return template.leader_template is None and template.size == 1


def _workload(template: WorkloadTemplate, *, created: bool, loads: bool) -> Iterator[field.Error]:
    if template.size < 1:
        yield field.invalid(TEMPLATE.child("size"), template.size, "must be 1 or more")
    if created and not has_runner(template.worker_template):
        yield _no_runner(WORKER)
    yield from _pods(template.worker_template, WORKER, loads=loads)
    if template.leader_template is not None:
        if not has_runner(template.leader_template):
            yield _no_runner(LEADER)
        yield from _pods(template.leader_template, LEADER, loads=loads)


def _no_runner(path: field.Path) -> field.Error:
    where = path.child("spec", "containers")
    return field.forbidden(
        where, f"one container must be called {RUNNER}: it gets the model and the flavor's resources"
    )


def items(template: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """A list of the pod's; the types were checked before."""
    found: list[dict[str, Any]] = (template.get("spec") or {}).get(name) or []
    return [item for item in found if item]


def has_runner(template: dict[str, Any]) -> bool:
    return any(container.get("name") == RUNNER for container in items(template, "containers"))


_LOADER = re.compile(rf"{LOADER}(-[0-9]+)?")
_VOLUME = re.compile(rf"{MODEL_VOLUME}(-[0-9]+)?")


def _pods(template: dict[str, Any], path: field.Path, *, loads: bool) -> Iterator[field.Error]:
    """What the API server, or Metacontroller, would refuse when it is too late to tell the user."""
    yield from (_at_item(error, template, path) for error in sendable.check(template, path))
    spec = path.child("spec")
    yield from _pod_rules(template, path)
    if not loads:
        return
    for position, volume in enumerate(items(template, "volumes")):
        if _VOLUME.fullmatch(str(volume.get("name"))):
            yield _taken(spec.child("volumes").index(position).child("name"), volume["name"])
    for position, container in enumerate(items(template, "initContainers")):
        if _LOADER.fullmatch(str(container.get("name"))):
            yield _taken(spec.child("initContainers").index(position).child("name"), container["name"])
    for position, container in enumerate(items(template, "containers")):
        if container.get("name") == RUNNER:
            yield from _mounts(container, spec.child("containers").index(position).child("volumeMounts"))


def _at_item(error: field.Error, template: dict[str, Any], root: field.Path) -> field.Error:
    """An item that is in its list twice, at the second of the two, where the API server reports it too."""
    if error.type is not field.ErrorType.DUPLICATE:
        return error
    found: Any = without_nulls(template, in_lists=True)
    for segment in error.path.segments[len(root.segments) :]:
        found = found[segment]
    key, seen = merge_key(found), set()
    for position, item in enumerate(found if key else ()):
        if str(item[key]) in seen:
            return replace(error, path=error.path.index(position))
        seen.add(str(item[key]))
    return error


def _pod_rules(template: dict[str, Any], path: field.Path) -> Iterator[field.Error]:
    """What Kubernetes itself would say about the pods when they are made."""
    pod, metadata, spec = template.get("spec") or {}, template.get("metadata") or {}, path.child("spec")
    yield from validate_labels(metadata.get("labels") or {}, path.child("metadata", "labels"))
    yield from validate_annotation_keys(metadata.get("annotations") or {}, path.child("metadata", "annotations"))
    yield from wholepod.check(pod, spec)
    yield from podrules.tolerations(items(template, "tolerations"), spec.child("tolerations"))
    yield from podrules.node_selector(pod.get("nodeSelector") or {}, spec.child("nodeSelector"))
    yield from podrules.pod_security_context(pod.get("securityContext") or {}, spec.child("securityContext"))
    for name in ("initContainers", "containers"):
        for position, container in enumerate(items(template, name)):
            yield from _container(container, spec.child(name).index(position))


def _container(container: dict[str, Any], path: field.Path) -> Iterator[field.Error]:
    yield from podrules.env(container.get("env") or [], path.child("env"))
    yield from podrules.container_security_context(
        container.get("securityContext") or {}, path.child("securityContext")
    )
    yield from podrules.lifecycle(container.get("lifecycle") or {}, path.child("lifecycle"))
    for purpose in ("startup", "liveness", "readiness"):
        probe = container.get(f"{purpose}Probe")
        if probe is not None:
            yield from podrules.probe(probe, path.child(f"{purpose}Probe"), purpose)


def _mounts(container: dict[str, Any], path: field.Path) -> Iterator[field.Error]:
    for position, mount in enumerate(container.get("volumeMounts") or ()):
        if mount and str(mount.get("mountPath")).rstrip("/") == MODELS_DIR.rstrip("/"):
            yield _taken(path.index(position).child("mountPath"), mount["mountPath"])


def _taken(path: field.Path, value: str) -> field.Error:
    return field.invalid(path, value, "taken by the model, which is put into the pod; choose another")


_PERCENT = re.compile(r"[0-9]{1,5}%")


def _rollout(strategy: RolloutStrategy, replicas: int, *, grouped: bool) -> Iterator[field.Error]:
    """Numbers or percentages, not both nothing: such a rollout would never move (LZ-N29).

    Of a group LeaderWorkerSet surges no more than all replicas; a Deployment may.
    """
    config = strategy.rolling_update_configuration
    if config is None:
        return
    nothing = 0
    for name, value in (("maxUnavailable", config.max_unavailable), ("maxSurge", config.max_surge)):
        path = ROLLOUT.child(name)
        if isinstance(value, str) and not _PERCENT.fullmatch(value):
            yield field.invalid(path, value, 'must be a number or a percentage, such as 1 or "25%"')
        elif isinstance(value, int) and not 0 <= value < 2**31:
            yield field.invalid(path, value, "must be 0 or more, and fit into a 32-bit integer")
        elif isinstance(value, str) and (grouped or name == "maxUnavailable") and percent(value) > 100:
            yield field.invalid(path, value, "must be 100% or less")
        nothing += is_nothing(value)
    if nothing == 2 and replicas != 0:
        yield field.invalid(
            ROLLOUT.child("maxUnavailable"), config.max_unavailable, "may not be 0 when maxSurge is 0 too"
        )


def is_nothing(value: int | str) -> bool:
    """0, or 0 percent."""
    return value == 0 or (isinstance(value, str) and value.rstrip("%").strip("0") == "")


def percent(value: str) -> int:
    """The number of a percentage that is one."""
    return int(value[:-1])
