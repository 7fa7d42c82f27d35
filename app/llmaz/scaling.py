"""Metrics that drive scaling: the body of a HorizontalPodAutoscaler, and its rules. Source: LZ-4.5, LZ-N23, LZ-N24."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated

from app.hooks import sendable
from app.kube import field, quantity
from app.kube.base import EmbeddedType, Json, KubeModel
from app.kube.field import Advice, advice
from app.kube.reading import stored
from app.limits import MAX_UNKNOWN_NAMES
from app.llmaz.names import RUNNER
from app.workload.autoscaler import check_behavior, metric_problem
from app.workload.engines.commandline import CommandLine
from app.workload.engines.metrics import without_metrics, without_page

MetricSpec = Annotated[Json, EmbeddedType("MetricSpec")]
Behavior = Annotated[Json, EmbeddedType("HorizontalPodAutoscalerBehavior")]


class HPATrigger(KubeModel):
    """Metrics and behavior of a HorizontalPodAutoscaler, as in ``autoscaling/v2``."""

    metrics: list[MetricSpec] | None = None
    """Metrics that drive scaling. Defaults to 80 percent of the requested CPU."""
    behavior: Behavior | None = None
    """Scaling policies and stabilization windows."""


class ScaleTrigger(KubeModel):
    hpa: HPATrigger | None = None
    """Settings of a HorizontalPodAutoscaler."""


_OF_RESOURCES, _OF_OBJECTS = ("Utilization", "AverageValue"), ("Value", "AverageValue")
_SOURCES = {
    "Resource": ("resource", _OF_RESOURCES),
    "Pods": ("pods", ("AverageValue",)),
    "Object": ("object", _OF_OBJECTS),
    "External": ("external", _OF_OBJECTS),
    "ContainerResource": ("containerResource", _OF_RESOURCES),
}
"""The member that each type of metric requires, and the types of its target."""
_TARGETS = {"Utilization": "averageUtilization", "Value": "value", "AverageValue": "averageValue"}
"""The member that each type of target requires."""


def check(trigger: ScaleTrigger | None, path: field.Path) -> Iterator[field.Error]:
    """Reject what the API server would reject when it creates the autoscaler."""
    hpa, hpa_path = _hpa(trigger), path.child("hpa")
    for metric_path, metric in hpa_path.child("metrics").each(hpa.metrics or ()):
        yield from _check_metric(metric, metric_path)
    yield from check_behavior(hpa.behavior or {}, hpa_path.child("behavior"))


def unsendable(trigger: ScaleTrigger | None, path: field.Path) -> Iterator[field.Error]:
    hpa, hpa_path = _hpa(trigger), path.child("hpa")
    yield from sendable.check(hpa.metrics, hpa_path.child("metrics"))
    yield from sendable.check(hpa.behavior, hpa_path.child("behavior"))


def _hpa(trigger: ScaleTrigger | None) -> HPATrigger:
    return (trigger.hpa if trigger is not None else None) or HPATrigger()


def _check_metric(metric: Json, path: field.Path) -> Iterator[field.Error]:
    """Require a metric to have the member of its type and no other (LZ-N23)."""
    kind = metric.get("type")
    member, kinds = _SOURCES.get(str(kind), ("", ()))
    yield from _check_member(metric, path, member, _SOURCES)
    target = (metric.get(member) or {}).get("target")
    if isinstance(target, dict):
        yield from _check_target(target, path.child(member, "target"), kinds)
    for other, _ in _SOURCES.values() if member else ():
        if other != member and metric.get(other) is not None:
            yield field.forbidden(path.child(other), f"not allowed when type is {kind}; remove it or change the type")


def _check_target(target: Json, path: field.Path, kinds: Sequence[str]) -> Iterator[field.Error]:
    """Require a target to have the value of its type, above 0 (LZ-N23)."""
    kind = str(target.get("type"))
    yield from _check_member(target, path, _TARGETS[kind] if kind in kinds else "", kinds)
    for name in _TARGETS.values():
        amount = str(target.get(name))
        if quantity.is_quantity(amount) and quantity.parse(amount) <= 0:
            yield field.invalid(path.child(name), target[name], "must be above 0")


def _check_member(value: Json, path: field.Path, member: str, kinds: Iterable[str]) -> Iterator[field.Error]:
    """Require the field of a type. ``member`` is empty if the type is not one of ``kinds``."""
    kind = value.get("type")
    if not member:
        yield field.not_supported(path.child("type"), kind, kinds)
    elif value.get(member) is None:
        yield field.required(path.child(member), f"required when type is {kind}")


def stored_metric(metric: Json) -> Json:
    result: Json = stored.clean(metric)
    for source in result.values():
        target = source.get("target") if isinstance(source, dict) else None
        if isinstance(target, dict):
            target |= {key: quantity.canonical_value(target[key]) for key in ("value", "averageValue") if key in target}
    return result


def metric_warnings(
    triggers: Iterable[tuple[field.Path, ScaleTrigger | None, CommandLine]], image: str, *, is_whole: bool = True
) -> Iterator[Advice]:
    """Warn of metrics of pods that the engine's pods do not export, each with what starts the server.

    ``is_whole``: the server has no other options than those of the line.
    """
    metrics = (
        (where, metric, line)
        for path, trigger, line in triggers
        for where, metric in path.child("hpa", "metrics").each(_hpa(trigger).metrics or ())
    )
    for path, metric, line in islice(metrics, MAX_UNKNOWN_NAMES):
        pods = metric.get("pods") or {}
        name, value = (pods.get("metric") or {}).get("name"), (pods.get("target") or {}).get("averageValue")
        is_complete = is_whole and line.passes and not line.is_read
        if isinstance(name, str) and (
            problem := _metric_problem(name, str(value or ""), image, line, known=is_complete)
        ):
            yield advice(path.child("pods", "metric", "name"), problem)


def _metric_problem(name: str, value: str, image: str, line: CommandLine, *, known: bool) -> str:
    none = without_page(image)
    if line.engine is not None and not none:
        none = without_metrics(line.engine, line.words, line.variables, are_all=known)
    return none or metric_problem(name, line.engine, value, line.words if known else None)


def warnings(trigger: ScaleTrigger | None, path: field.Path) -> Iterator[Advice]:
    """Warn of a trigger without metrics, and of containers and resources that are not measured (LZ-N24)."""
    hpa, hpa_path = _hpa(trigger), path.child("hpa")
    if trigger is not None and trigger.hpa is not None and not hpa.metrics:
        yield advice(hpa_path, "without metrics the autoscaler targets a CPU utilization of 80 percent")
    for metric_path, metric in hpa_path.child("metrics").each(hpa.metrics or ()):
        container = (metric.get("containerResource") or {}).get("container")
        if container not in (None, RUNNER):
            where = metric_path.child("containerResource", "container")
            yield advice(where, f"the engine's container is named {RUNNER}")
        for member in ("resource", "containerResource"):
            name = (metric.get(member) or {}).get("name")
            if name not in (None, "cpu", "memory"):
                yield advice(metric_path.child(member, "name"), "only cpu and memory are measured; use type Pods")
