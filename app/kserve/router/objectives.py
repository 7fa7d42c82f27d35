"""Criticality: one InferenceObjective for the model and for each adapter that has one. Source: KS-4.9.

The managed route names an objective in a header of the requests to the pool, by which the endpoint picker orders them:
the model's, or an adapter's for requests that name the adapter in the header of a body-based router.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from app.kserve import lora
from app.kserve.constants import COMPONENT_ROUTER, MODEL_HEADER, OBJECTIVE_HEADER, OBJECTIVES, POOL_GROUP, POOLS
from app.kserve.gatewayapi import MAX_HEADERS, has_room
from app.kserve.names import Names, component_labels
from app.kserve.spec.effective import EffectiveModel
from app.kube.base import Json
from app.kube.child import metadata
from app.settings import Settings

_MODIFIER = "RequestHeaderModifier"
_UNFIT = re.compile(r"[^a-z0-9.-]+")


class Objective(msgspec.Struct, frozen=True):
    name: str
    priority: int
    adapter: str = ""
    """Name of the LoRA adapter; empty for the model itself."""


def priorities(settings: Settings) -> dict[str, int]:
    return {
        "Critical": settings.kserve_priority_critical,
        "Standard": settings.kserve_priority_standard,
        "Sheddable": settings.kserve_priority_sheddable,
    }


def criticalities(model: EffectiveModel) -> dict[str, str]:
    """Return the criticalities in the spec by adapter; the model's key is the empty string."""
    by_adapter = {"": model.criticality or ""}
    for _, adapter in lora.entries(model):
        if isinstance(adapter.get("name"), str) and adapter["name"]:
            by_adapter[adapter["name"]] = str(adapter.get("criticality") or "")
    return {name: text for name, text in by_adapter.items() if text}


def objectives(model: EffectiveModel, names: Names, settings: Settings) -> list[Objective]:
    """The model's objective first, then the adapters' by name. Words that mean nothing have none."""
    defined = priorities(settings)
    return [
        Objective(names.objective(_segment(adapter)), defined[text], adapter)
        for adapter, text in sorted(criticalities(model).items())
        if text in defined
    ]


def _segment(adapter: str) -> str:
    """An adapter's name as part of an object's: itself, or what is left of it with a hash, so that no two are equal."""
    left = _UNFIT.sub("-", adapter.lower()).strip("-.")
    if left == adapter:
        return left
    digest = hashlib.sha256(adapter.encode()).hexdigest()[:8]
    return f"{left}-{digest}".lstrip("-")


def inference_objective(objective: Objective, names: Names, namespace: str, pool: str) -> Json:
    meta = metadata(objective.name, namespace, component_labels(names.service, COMPONENT_ROUTER))
    reference = {"group": POOL_GROUP, "kind": POOLS.kind, "name": pool}
    return OBJECTIVES.build(meta, spec={"priority": objective.priority, "poolRef": reference})


def with_objectives(route: Json, requested: Sequence[Objective], pool: str) -> Json:
    """The route that names the objectives of requests to the pool; those of adapters where there is room for all."""
    rules = list(_rules(route["spec"].get("rules") or (), requested, pool))
    if not has_room(rules):
        of_model = [objective for objective in requested if not objective.adapter]
        rules = list(_rules(route["spec"].get("rules") or (), of_model, pool))
    return {**route, "spec": {**route["spec"], "rules": rules}} if rules else route


def unnamed(route: Json, objectives: Iterable[Objective]) -> list[Objective]:
    """The objectives that the route gives to no request."""
    named = {
        header.get("value")
        for rule in route["spec"].get("rules") or ()
        for step in rule.get("filters") or ()
        for header in (step.get("requestHeaderModifier") or {}).get("set") or ()
    }
    return [objective for objective in objectives if objective.name not in named]


def _rules(rules: Iterable[Json], objectives: Sequence[Objective], pool: str) -> Iterator[Json]:
    """Each rule, after a copy of it for each adapter. More headers are a closer match than fewer."""
    adapters = [objective for objective in objectives if objective.adapter]
    base = next((objective.name for objective in objectives if not objective.adapter), "")
    for rule in rules:
        if not any((b.get("kind"), b.get("name")) == ("InferencePool", pool) for b in rule.get("backendRefs") or ()):
            yield rule
            continue
        rule_matches: list[Json] = rule.get("matches") or [{}]
        for objective in adapters:
            if matches := _of_adapter(rule_matches, objective.adapter):
                nameless = {key: value for key, value in rule.items() if key != "name"}  # no two rules may have one
                yield _with_header({**nameless, "matches": matches}, objective.name)
        rest = [
            match for match in rule_matches if not any(_is_about(match, objective.adapter) for objective in adapters)
        ]
        if rest:
            left = rule if rest == rule_matches else {**rule, "matches": rest}
            yield _with_header(left, base) if base else left


def _of_adapter(matches: Iterable[Json], adapter: str) -> list[Json]:
    """The matches for requests to an adapter: those that are about it, and the others that are about no model."""
    header = {"type": "Exact", "name": MODEL_HEADER, "value": adapter}
    return [
        match if _is_about(match, adapter) else {**match, "headers": [*(match.get("headers") or ()), header]}
        for match in matches
        if _is_about(match, adapter) or not _models(match)
    ]


def _is_about(match: Json, adapter: str) -> bool:
    return any(model == adapter or model.endswith(f"/models/{adapter}") for model in _models(match))


def _models(match: Json) -> list[str]:
    """The models that a match wants a request to be for: a name, or one below its publisher's."""
    headers: list[Json] = match.get("headers") or []
    return [str(h.get("value")) for h in headers if str(h.get("name")).lower() == MODEL_HEADER.lower()]


def _with_header(rule: Json, objective: str) -> Json:
    """The rule that sets the header, unless it does something to that header already."""
    steps = list(rule.get("filters") or ())
    present = next((step for step in steps if step.get("type") == _MODIFIER), None)
    modifier: Json = {} if present is None else present.get("requestHeaderModifier") or {}
    changed = [item.get("name") for key in ("set", "add") for item in modifier.get(key) or ()]
    changed += modifier.get("remove") or ()
    headers = list(modifier.get("set") or ())
    if any(str(name).lower() == OBJECTIVE_HEADER for name in changed) or len(headers) >= MAX_HEADERS:
        return rule
    header = {"name": OBJECTIVE_HEADER, "value": objective}
    step = {"type": _MODIFIER, "requestHeaderModifier": {**modifier, "set": [*headers, header]}}
    rest = [other for other in steps if other is not present]
    return {**rule, "filters": [*rest, step]}
