"""A model's flavors: which will do, what their params stand for, and the nodes they select. Source: LZ-2.9, LZ-3.3."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from app.kube import field, quantity
from app.kube.base import Json
from app.kube.decode import SPEC
from app.kube.names import is_label_value
from app.llmaz.arguments import PIPELINE_PARALLEL, TENSOR_PARALLEL
from app.llmaz.openmodel.types import Flavor, OpenModelSpec
from app.workload import podrules

FLAVORS = SPEC.child("inferenceConfig", "flavors")
INSTANCE_TYPE = "INSTANCE-TYPE"
_INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_GPU = re.compile(r"[^/]+/gpu|google\.com/tpu|habana\.ai/gaudi|gpu\.intel\.com/(i915|xe)")
"""Resources of which each one is a whole device that an engine can split a model over. Slices of one are not."""
_DEGREE = re.compile(r"[1-9][0-9]{0,3}")


def of(spec: OpenModelSpec) -> tuple[Flavor, ...]:
    """All flavors of a model, best first."""
    return tuple((spec.inference_config.flavors if spec.inference_config else None) or ())


def unusable(flavors: Iterable[Flavor]) -> Iterator[field.Error]:
    """Validate the node selectors."""
    for position, flavor in enumerate(flavors):
        yield from podrules.check(
            "PodSpec.nodeSelector", flavor.node_selector, FLAVORS.index(position).child("nodeSelector")
        )


def wanted(flavors: Iterable[Flavor], claimed: Sequence[str]) -> list[Flavor]:
    """The flavors that will do, the most wanted first: those that the claim names, else all of the model."""
    known: dict[str, Flavor] = {}
    for flavor in flavors:
        known.setdefault(flavor.name, flavor)
    return [known[name] for name in dict.fromkeys(claimed or known) if name in known]


def chosen(flavors: Iterable[Flavor], claimed: Sequence[str]) -> Flavor | None:
    """The flavor that sets resources and params; ``None`` if the model lacks the first that is claimed."""
    first = next(iter(wanted(flavors, claimed)), None)
    return first if first is not None and (not claimed or first.name == claimed[0]) else None


def node_selector(flavor: Flavor) -> Mapping[str, str]:
    """Labels of the nodes of a flavor: its nodeSelector, or the instance type that its params name (LZ-2.9)."""
    instance_type = (flavor.params or {}).get(INSTANCE_TYPE, "")
    return flavor.node_selector or ({_INSTANCE_TYPE_LABEL: instance_type} if is_instance_type(instance_type) else {})


def is_instance_type(value: str) -> bool:
    """True if a node can have this instance type: a label value that is not empty."""
    return bool(value) and is_label_value(value)


def devices(flavor: Flavor) -> int:
    """Number of GPUs, or similar devices, per pod."""
    amounts = (flavor.limits or {}).items()
    return sum(int(quantity.parse(amount)) for name, amount in amounts if _GPU.fullmatch(name))


def words(flavor: Flavor | None) -> dict[str, str]:
    """What params are to placeholders: all that the flavor has, and how many devices the model is split over.

    The degrees are always among them. One that the flavor does not say is 1 for the pipeline, and as many devices as
    there are for each of its stages for the tensors; one that is no number is empty.
    """
    given = dict((flavor.params if flavor is not None else None) or {})
    pipeline = degree(given.get(PIPELINE_PARALLEL, "1"))
    each = devices(flavor) // int(pipeline or 1) if flavor is not None else 1
    tensor = degree(given.get(TENSOR_PARALLEL, str(max(each, 1))))
    return {**given, TENSOR_PARALLEL: tensor, PIPELINE_PARALLEL: pipeline}


def degree(text: str) -> str:
    """The text if it is a number of devices, else nothing."""
    return text if _DEGREE.fullmatch(text) else ""


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes on which pods may run."""

    selectors: tuple[Mapping[str, str], ...] = ()
    """Labels of the nodes of each flavor, the most wanted first."""
    others: bool = False
    """True if pods may also run on all other nodes."""


def nodes(flavors: Sequence[Flavor]) -> Nodes:
    """The nodes of these flavors."""
    selecting = _selecting(flavors)
    selectors: list[Mapping[str, str]] = []
    for flavor in selecting:
        if (selector := node_selector(flavor)) not in selectors:
            selectors.append(selector)
    return Nodes(tuple(selectors), others=len(selecting) < len(flavors))


def _selecting(flavors: Iterable[Flavor]) -> list[Flavor]:
    """Those up to one that selects no nodes: it runs on every node, so that no later one is ever needed."""
    return list(takewhile(node_selector, flavors))


_FIRST_WEIGHT = 64
"""Halved from flavor to flavor: a node of an earlier one outweighs a node of all the later ones together."""


def add_affinity(pod: Json, wanted: Nodes) -> None:
    """Makes the pod run on these nodes, the first rather than the last, beside what it asks for itself."""
    if not wanted.selectors:
        return
    affinity = pod.get("affinity", {})
    node = dict(affinity.get("nodeAffinity", {}))
    if not wanted.others:
        required = node.get(_REQUIRED, {})
        node[_REQUIRED] = {**required, "nodeSelectorTerms": _both(required.get("nodeSelectorTerms"), wanted.selectors)}
    ranked = wanted.selectors if wanted.others else wanted.selectors[:-1]
    if ranked:
        preferred = ({"weight": _FIRST_WEIGHT >> rank, "preference": _term(s)} for rank, s in enumerate(ranked))
        node[_PREFERRED] = [*node.get(_PREFERRED, ()), *preferred]
    pod["affinity"] = {**affinity, "nodeAffinity": node}


def _both(terms: Sequence[Json] | None, selectors: Sequence[Mapping[str, str]]) -> list[Json]:
    """Terms of which a node fits one where it fits one of the terms and one of the selectors."""
    if not terms:
        return [_term(selector) for selector in selectors]
    fitting = [term for term in terms if term.get("matchExpressions") or term.get("matchFields")]
    each = [
        {**term, "matchExpressions": [*term.get("matchExpressions", ()), *_term(selector)["matchExpressions"]]}
        for term in fitting
        for selector in selectors
    ]
    return each or list(terms)  # a term of nothing fits no node, and neither do nothing but such terms


def _term(selector: Mapping[str, str]) -> Json:
    return {
        "matchExpressions": [
            {"key": key, "operator": "In", "values": [value]} for key, value in sorted(selector.items())
        ]
    }


def notes(model: str, flavors: Sequence[Flavor], claimed: Sequence[str]) -> Iterator[str]:
    """Flavors that the model does not have (LZ-T16, LZ-N14), and alternatives that the pods do not fit (LZ-N36)."""
    known = [flavor.name for flavor in flavors]
    for position, name in enumerate(claimed):
        if name not in known:
            effect = ", so the pods get no accelerators" if position == 0 else ""
            yield f"OpenModel {model} has no flavor {name}{effect}; its flavors are: {', '.join(known) or 'none'}"
    first = chosen(flavors, claimed)
    for other in wanted(flavors, claimed):
        if first is not None and (other.limits or {}) != (first.limits or {}):
            yield (
                f"OpenModel {model}: pods always have the limits of flavor {first.name}, those of flavor {other.name} "
                "have no effect; claim one flavor, or flavors with the same limits"
            )
