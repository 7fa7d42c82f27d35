"""A model's flavors: their order, the values of their params, and the nodes they select. Source: LZ-2.9, LZ-3.3."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from app.kube import field, quantity
from app.kube.base import Json
from app.kube.names import is_label_value
from app.llmaz.arguments import PIPELINE_PARALLEL, TENSOR_PARALLEL
from app.llmaz.openmodel.types import Flavor, OpenModelSpec
from app.workload.devices import Counts, counts
from app.workload.rules import podrules

FLAVORS = field.SPEC.child("inferenceConfig", "flavors")
INSTANCE_TYPE = "INSTANCE-TYPE"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_DEGREE = re.compile(r"[1-9][0-9]{0,3}")


def of(spec: OpenModelSpec) -> tuple[Flavor, ...]:
    return tuple((spec.inference_config.flavors if spec.inference_config else None) or ())


def unusable(flavors: Iterable[Flavor]) -> Iterator[field.Error]:
    for path, flavor in FLAVORS.each(flavors):
        yield from podrules.check("PodSpec.nodeSelector", flavor.node_selector, path.child("nodeSelector"))


def eligible(flavors: Iterable[Flavor], claimed: Sequence[str]) -> list[Flavor]:
    """Return the claimed flavors, best first; all flavors of the model if none is claimed."""
    by_name: dict[str, Flavor] = {}
    for flavor in flavors:
        by_name.setdefault(flavor.name, flavor)
    return [by_name[name] for name in dict.fromkeys(claimed or by_name) if name in by_name]


def chosen(flavors: Iterable[Flavor], claimed: Sequence[str]) -> Flavor | None:
    """Return the flavor that sets resources and params; ``None`` if the model lacks the first claimed flavor."""
    first = next(iter(eligible(flavors, claimed)), None)
    return first if first is not None and (not claimed or first.name == claimed[0]) else None


def node_selector(flavor: Flavor) -> Mapping[str, str]:
    """Return the node labels of a flavor: its nodeSelector, or the instance type in its params (LZ-2.9)."""
    instance_type = (flavor.params or {}).get(INSTANCE_TYPE, "")
    implied = {"node.kubernetes.io/instance-type": instance_type} if is_instance_type(instance_type) else {}
    return flavor.node_selector or implied


def is_instance_type(value: str) -> bool:
    return bool(value) and is_label_value(value)


def devices(flavor: Flavor) -> int:
    """Return the number of whole GPUs, or similar devices, per pod."""
    amounts = (flavor.limits or {}).items()
    return sum(int(quantity.parse(amount)) for name, amount in amounts if counts(name) is Counts.DEVICES)


def words(flavor: Flavor | None) -> dict[str, str]:
    """Return the values of the placeholders that flavors set: the flavor's params, and both degrees of parallelism.

    PP defaults to 1, and TP to the number of devices per pipeline stage. A degree that is not a number is empty.
    """
    params = dict((flavor.params if flavor is not None else None) or {})
    pipeline = degree(params.get(PIPELINE_PARALLEL, "1"))
    per_stage = devices(flavor) // int(pipeline or 1) if flavor is not None else 1
    tensor = degree(params.get(TENSOR_PARALLEL, str(max(per_stage, 1))))
    return {**params, TENSOR_PARALLEL: tensor, PIPELINE_PARALLEL: pipeline}


def degree(text: str) -> str:
    return text if _DEGREE.fullmatch(text) else ""


def add_affinity(pod: Json, flavors: Sequence[Flavor]) -> None:
    """Restrict a pod to the flavors' nodes and prefer those of the first, in addition to the pod's own affinity."""
    selecting = list(takewhile(node_selector, flavors))  # the first that does not runs on every node
    selectors: list[Mapping[str, str]] = []
    for flavor in selecting:
        if (selector := node_selector(flavor)) not in selectors:
            selectors.append(selector)
    others = len(selecting) < len(flavors)
    if not selectors:
        return
    affinity = pod.get("affinity", {})
    node = dict(affinity.get("nodeAffinity", {}))
    if not others:
        required = node.get(_REQUIRED, {})
        node[_REQUIRED] = {**required, "nodeSelectorTerms": _both(required.get("nodeSelectorTerms"), selectors)}
    ranked = selectors if others else selectors[:-1]
    if ranked:
        # Each weight outweighs all later ones together.
        preferred = ({"weight": 64 >> rank, "preference": _term(selector)} for rank, selector in enumerate(ranked))
        node[_PREFERRED] = [*node.get(_PREFERRED, ()), *preferred]
    pod["affinity"] = {**affinity, "nodeAffinity": node}


def _both(terms: Sequence[Json] | None, selectors: Sequence[Mapping[str, str]]) -> list[Json]:
    """Return terms that match the nodes which match a term and a selector."""
    if not terms:
        return [_term(selector) for selector in selectors]
    fitting = [term for term in terms if term.get("matchExpressions") or term.get("matchFields")]
    each = [
        {**term, "matchExpressions": [*term.get("matchExpressions", ()), *_term(selector)["matchExpressions"]]}
        for term in fitting
        for selector in selectors
    ]
    return each or list(terms)  # empty terms match no node


def _term(selector: Mapping[str, str]) -> Json:
    return {
        "matchExpressions": [
            {"key": key, "operator": "In", "values": [value]} for key, value in sorted(selector.items())
        ]
    }


def notes(model: str, flavors: Sequence[Flavor], claimed: Sequence[str]) -> Iterator[str]:
    """Warn of claimed flavors that are missing (LZ-T16, LZ-N14) or have other limits than the pods (LZ-N36)."""
    names = [flavor.name for flavor in flavors]
    for position, name in enumerate(claimed):
        if name not in names:
            effect = ", so the pods get no accelerators" if position == 0 else ""
            yield f"OpenModel {model} has no flavor {name}{effect}; its flavors are: {', '.join(names) or 'none'}"
    first = chosen(flavors, claimed)
    for other in eligible(flavors, claimed):
        if first is not None and (other.limits or {}) != (first.limits or {}):
            yield (
                f"OpenModel {model}: pods always have the limits of flavor {first.name}, those of flavor {other.name} "
                "have no effect; claim one flavor, or flavors with the same limits"
            )
