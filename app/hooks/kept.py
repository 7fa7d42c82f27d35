"""Children that stay unchanged, because the desired state is not known (decisions/0002)."""

from collections.abc import Callable, Iterable, Mapping

import msgspec
import orjson
from msgspec import Raw

from app.hooks import response
from app.hooks.keptfields import as_it_runs
from app.hooks.protocol import NO_INPUTS, AnyRequest, Applied, Inputs, Kept, observed_children
from app.hooks.sendable import is_sendable
from app.hooks.template import TEMPLATES, keep_template, running_template, stamped, template_of
from app.kube.base import Json
from app.kube.objects import ObservedObject, ReplicasSpec, spec_replicas
from app.limits import MAX_RECORDED_BYTES, MAX_RECORDED_VALUES

Labels = dict[str, str]


_VALUES = (b",", b"{", b"[", b"\\u00")
"""Characters that separate values in a record, which is a JSON string; an escape may be any of them."""


def check_recorded(children: msgspec.Struct) -> None:
    """Raise :class:`app.hooks.response.TooLarge` for records, which users may edit, that are too large to read."""
    texts = [child.metadata.annotations for _, group in observed_children(children) for child in group.values()]
    size = sum(memoryview(text).nbytes for text in texts)
    if size > MAX_RECORDED_BYTES:
        raise response.TooLarge(f"the children have {size} bytes of annotations, at most {MAX_RECORDED_BYTES} are read")
    if size <= MAX_RECORDED_VALUES:
        return  # a value takes a byte at least
    values = sum(sum(map(bytes(text).count, _VALUES)) for text in texts)
    if values > MAX_RECORDED_VALUES:
        raise response.TooLarge(
            f"the annotations of the children have {values} values, at most {MAX_RECORDED_VALUES} are read"
        )


def with_kept_templates(children: Iterable[Json], request: AnyRequest, inputs: Inputs = NO_INPUTS) -> list[Json]:
    """Return built children with the pod templates that stay, :class:`Kept` ones as they are."""
    return [child if isinstance(child, Kept) else _with_kept_template(child, request, inputs) for child in children]


def _with_kept_template(built: Json, request: AnyRequest, inputs: Inputs) -> Json:
    """Return a built child. What was encoded to compare it with its record is not encoded again."""
    observed = request.observed.get((built["kind"], built["metadata"]["name"]))
    recorded = None if observed is None else observed.as_recorded(built)
    if recorded is None:
        return keep_template(msgspec.to_builtins(built), request, inputs)
    return Applied({**(built if template_of(built) is None else stamped(built, inputs)), **recorded})


def keep(children: msgspec.Struct, stopped: Callable[[ObservedObject], bool] | None = None) -> list[Kept]:
    """Return every observed child so that Metacontroller writes only ``replicas: 0`` of the stopped ones.

    ``stopped`` is called for children that have replicas. Stopping must work even if everything else is invalid.
    """
    observed = [group[key] for _, group in observed_children(children) for key in sorted(group)]
    return [
        keep_stopped(child) if stopped is not None and _has_replicas(child) and stopped(child) else keep_child(child)
        for child in observed
    ]


def keep_or_stop(children: msgspec.Struct, *, stop: bool) -> list[Kept]:
    return keep(children, (lambda _: True) if stop else None)


def keep_stopped(child: ObservedObject) -> Kept:
    """Return one observed child as it was last applied, without replicas."""
    last = keep_child(child)
    spec = last.get("spec")
    return Kept(last, spec={**(spec if isinstance(spec, dict) else {}), "replicas": 0})


def is_scaled_to_zero(spec: bytes | Raw | Json, *path: str) -> bool:
    """Report whether a spec has ``replicas: 0`` below that path, even if the rest is invalid."""
    value = _loaded(spec)
    for key in (*path, "replicas"):
        value = value.get(key) if isinstance(value, dict) else None
    return type(value) in (int, float) and value == 0


def is_true(spec: bytes | Raw | Json, name: str) -> bool:
    """Report whether a field of a spec is true, even if the rest is invalid."""
    value = _loaded(spec)
    return isinstance(value, dict) and value.get(name) is True


def _loaded(spec: bytes | Raw | Json) -> object:
    try:
        return spec if isinstance(spec, dict) else orjson.loads(bytes(spec))
    except orjson.JSONDecodeError:
        return None


def _has_replicas(child: ObservedObject) -> bool:
    return isinstance(getattr(child, "spec", None), ReplicasSpec)


def keep_child(child: ObservedObject) -> Kept:
    """Return one observed child as it was last applied.

    It has the running pod template, and the observed ``spec.replicas`` if the record has one: an old number would
    override an autoscaler. A child without a record (taken over from another operator), or with one that no answer can
    have written, is only named, which changes nothing.
    """
    record = child.record
    last = None if record is None else _with_running_template(child, child.resendable(record))
    if last is None or not is_sendable(last):
        return Kept(
            apiVersion=child.api_version,
            kind=child.kind,
            metadata={"name": child.metadata.name, "namespace": child.metadata.namespace},
        )
    replicas, spec = spec_replicas(child), last.get("spec")
    if replicas is not None and isinstance(spec, dict) and "replicas" in spec:
        return Kept(last, spec={**spec, "replicas": replicas})
    return Kept(last)


def _with_running_template(child: ObservedObject, kept: Json | None) -> Json | None:
    """Return the record with the running pod template, limited to the recorded fields, as it may be forged."""
    recorded = template_of(kept or {})
    if kept is None or recorded is None:
        return kept
    template = as_it_runs(recorded, running_template(child))
    rest = {key: value for key, value in kept["spec"].items() if key != TEMPLATES[child.kind]}
    return {**kept, "spec": rest if template is None else {**rest, TEMPLATES[child.kind]: template}}


def desired_replicas(wanted: int, start: int | None, child: ObservedObject | None) -> int | None:
    """Return the ``spec.replicas`` to send beside an autoscaler (MC-3.6).

    ``start`` is its initial number; ``None`` without autoscaling, and then ``wanted`` is sent. With autoscaling 0 is
    always sent, because the user stops the workload. A new workload, or one at 0, gets the start, because an autoscaler
    never starts one. Afterwards the observed number is sent.
    """
    if start is None or wanted == 0:
        return wanted
    return (child is not None and spec_replicas(child)) or start


def kept_replicas(child: ObservedObject | None) -> int | None:
    """Return the observed number if the field was sent before: omitting it would delete it, and 1 is the default."""
    spec = (child.record or {}).get("spec") if child is not None else None
    return spec_replicas(child) if child is not None and isinstance(spec, dict) and "replicas" in spec else None


def kept_selector(fresh: Labels, observed: Mapping[str, str] | None, pods: Mapping[str, str]) -> Labels:
    """Return the observed selector, which is immutable, if it matches the labels ``pods``; else ``fresh``."""
    return dict(observed) if observed and observed.items() <= pods.items() else fresh
