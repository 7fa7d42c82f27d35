"""Leaving children as they are: the answer whenever the desired state is not known (docs/decisions/0002)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import orjson
from msgspec import Raw

from app.hooks import response
from app.hooks.keptfields import TEMPLATES, as_it_runs, running_template, template_of
from app.hooks.protocol import observed_children
from app.kube.base import Json
from app.kube.objects import ObservedObject, ReplicasSpec, last_applied, spec_replicas

Labels = dict[str, str]

MAX_RECORDED = 6 * 1024 * 1024
"""Bytes of all annotations of the children that are kept: with the quotes in them, about as many as an answer takes."""


MAX_RECORDED_VALUES = 100_000
"""Values in them: twice those of the largest spec. Each is read, looked through and written again."""


_VALUES = (b",", b"{", b"[", b"\\u00")
"""What tells values in a record's JSON, which is a text: what is escaped there may be any of them, too."""


def check_recorded(children: msgspec.Struct) -> None:
    """Raise :class:`app.hooks.response.TooLarge` for children whose records are more than can be read in time.

    Whoever may edit a child may write anything into its record.
    """
    texts = [child.metadata.annotations for _, group in observed_children(children) for child in group.values()]
    size = sum(memoryview(text).nbytes for text in texts)
    if size > MAX_RECORDED:
        raise response.TooLarge(f"the children have {size} bytes of annotations, at most {MAX_RECORDED} are read")
    if size <= MAX_RECORDED_VALUES:
        return  # a value takes a byte at least
    values = sum(sum(map(bytes(text).count, _VALUES)) for text in texts)
    if values > MAX_RECORDED_VALUES:
        raise response.TooLarge(
            f"the annotations of the children have {values} values, at most {MAX_RECORDED_VALUES} are read"
        )


class Kept(dict[str, Any]):
    """A child of an answer as it was asked for last, whatever its parent says by now."""


def as_json(children: Iterable[Any]) -> list[Json]:
    """Return built children, structs of :mod:`app.kube.desired` or maps, as JSON; :class:`Kept` ones as they are."""
    return [child if isinstance(child, Kept) else msgspec.to_builtins(child) for child in children]


def keep(children: msgspec.Struct, stopped: Callable[[ObservedObject], bool] | None = None) -> list[Kept]:
    """Every observed child, re-emitted so that Metacontroller writes nothing but ``replicas: 0`` of the stopped ones.

    ``stopped`` is asked for children that have replicas. Stopping has to work whatever else is unknown or wrong.
    """
    kept = [group[key] for _, group in observed_children(children) for key in sorted(group)]
    return [
        keep_stopped(child) if stopped is not None and _has_replicas(child) and stopped(child) else keep_child(child)
        for child in kept
    ]


def keep_or_stop(children: msgspec.Struct, *, stop: bool) -> list[Kept]:
    """As :func:`keep`, with all that has replicas stopped when ``stop`` says so."""
    return keep(children, (lambda _: True) if stop else None)


def keep_stopped(child: ObservedObject) -> Kept:
    """One observed child as it was last applied, without replicas."""
    kept = keep_child(child)
    spec = kept.get("spec")
    return Kept(kept, spec={**(spec if isinstance(spec, dict) else {}), "replicas": 0})


def is_scaled_to_zero(spec: bytes | Raw | dict[str, Any], *path: str) -> bool:
    """Whether a spec has ``replicas: 0`` below that path, however wrong the rest of it is."""
    value: Any = spec if isinstance(spec, dict) else _loaded(bytes(spec))
    for key in (*path, "replicas"):
        value = value.get(key) if isinstance(value, dict) else None
    return type(value) in (int, float) and value == 0


def is_true(spec: bytes | Raw | dict[str, Any], name: str) -> bool:
    """Whether a field of a spec is true, however wrong the rest of it is."""
    value = spec if isinstance(spec, dict) else _loaded(bytes(spec))
    return isinstance(value, dict) and value.get(name) is True


def _loaded(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None


def _has_replicas(child: ObservedObject) -> bool:
    return isinstance(getattr(child, "spec", None), ReplicasSpec)


def keep_child(child: ObservedObject) -> Kept:
    """One observed child as it was last applied.

    With the pod template that runs, and the observed ``spec.replicas`` where the record holds one: an old number would
    undo an autoscaler. A child without a record (taken over from another operator), or with one that no answer can have
    left, is named only, which owns nothing and changes nothing.
    """
    record = last_applied(child)
    kept = None if record is None else _with_running_template(child, child.resendable(record))
    if kept is None or not response.is_sendable(kept):
        return Kept(
            apiVersion=child.api_version,
            kind=child.kind,
            metadata={"name": child.metadata.name, "namespace": child.metadata.namespace},
        )
    replicas, spec = spec_replicas(child), kept.get("spec")
    if replicas is not None and isinstance(spec, dict) and "replicas" in spec:
        return Kept(kept, spec={**spec, "replicas": replicas})
    return Kept(kept)


def _with_running_template(child: ObservedObject, kept: Json | None) -> Json | None:
    """The record with the pod template that runs, as far as it is on record.

    Nothing says what should be there, so a record that somebody wrote must not bring anything new.
    """
    recorded = template_of(kept or {})
    if kept is None or recorded is None:
        return kept
    template = as_it_runs(recorded, running_template(child))
    rest = {key: value for key, value in kept["spec"].items() if key != TEMPLATES[child.kind]}
    return {**kept, "spec": rest if template is None else {**rest, TEMPLATES[child.kind]: template}}


def desired_replicas(wanted: int, start: int | None, child: ObservedObject | None) -> int | None:
    """What to send as ``spec.replicas`` beside an autoscaler (MC-3.6).

    ``start`` is the number with which it begins, ``None`` without autoscaling: the wanted number then. Otherwise 0 is
    always sent, because the user stops the workload; a workload that is made, or is at 0, gets the start, because an
    autoscaler never starts one; and from then on the observed number is sent back, whoever made the workload.
    """
    if start is None or wanted == 0:
        return wanted
    return (child is not None and spec_replicas(child)) or start


def kept_replicas(child: ObservedObject | None) -> int | None:
    """The observed number once the field was sent, ``None`` when it never was.

    Leaving out what was sent deletes it, and the API server would fall back to 1.
    """
    spec = (last_applied(child) or {}).get("spec") if child is not None else None
    return spec_replicas(child) if child is not None and isinstance(spec, dict) and "replicas" in spec else None


def kept_selector(fresh: Labels, observed: Mapping[str, str] | None, pods: Mapping[str, str]) -> Labels:
    """The observed selector, which nobody can change, as long as it finds ``pods`` by their labels; else ``fresh``."""
    return dict(observed) if observed and observed.items() <= pods.items() else fresh
