"""The managed route of a merged spec: its parents, its backends, and routing by the model's name.

Presets of KServe from v0.19 on route by a header with the model's name, into which their gateways write
``publishers/<namespace>/models/<model>``; annotations of a service and of its Gateways turn these rules on and off
(KS-2.10). Nothing is written in place: documents share parts with presets.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from app.hooks.protocol import get
from app.hooks.sendable import is_sendable, merge_key
from app.kserve.constants import GATEWAY_GROUP, MODEL_ROUTING, PUBLIC_PORT
from app.kserve.gatewayapi import MAX_ALL_MATCHES, MAX_MATCHES, HTTPPathMatch, has_room
from app.kserve.llminferenceservice.observed import ReconcileContext
from app.kserve.lora import adapter_names
from app.kserve.references import references
from app.kube.base import Json
from app.kube.field import SPEC
from app.kube.merge import find, replaced
from app.kube.reading.decode import decode_document
from app.kube.schema.rules import violations

ROUTE = ("router", "route", "http", "spec")
"""Path of the managed HTTPRoute's spec."""
_RULES = (*ROUTE, "rules")


def routed(document: Json, spec: Json, context: ReconcileContext) -> Json:
    """The managed route's parents and backends as the rest of the spec wants them (KS-2.1 steps 9 to 11).

    Timeouts that the service's own ``spec`` does not write are left out where the operator's settings ask for that.
    """
    route, names = find(document, ROUTE), context.names
    if route is None:
        return document
    if context.operator.ingress.disable_http_route_timeout and find(spec, _RULES) is None:
        rules = [{key: value for key, value in rule.items() if key != "timeouts"} for rule in route.get("rules") or ()]
        route = {**route, "rules": rules} if rules else route
    refs = find(document, ("router", "gateway", "refs"))
    if refs:
        route = {**route, "parentRefs": [_parent(ref) for ref in refs]}
    if find(document, ("router", "scheduler")) is None:
        service = {"group": "", "kind": "Service", "name": names.workload_service}
        route = with_backends(route, names.pool, service, {"port": PUBLIC_PORT})
    elif pool := find(document, ("router", "scheduler", "pool", "ref", "name")):
        route = with_backends(route, names.pool, {"name": pool})
    return replaced(document, ROUTE, route)


def _parent(ref: Json) -> Json:
    parent = {"group": GATEWAY_GROUP, "kind": "Gateway", "name": ref.get("name", "")}
    return parent | {key: ref[key] for key in ("namespace", "sectionName") if ref.get(key)}


def with_backends(route: Json, pool: str, replacement: Json, missing: Json | None = None) -> Json:
    """``route`` with other backends wherever it has the default pool, with the fields of ``missing`` that they lack."""

    def backend(ref: Json) -> Json:
        default = ref.get("kind") == "InferencePool" and ref.get("name") == pool
        return {**(missing or {}), **ref, **replacement} if default else ref

    rules = [
        {**rule, "backendRefs": [backend(ref) for ref in rule["backendRefs"]]} if rule.get("backendRefs") else rule
        for rule in route.get("rules") or ()
    ]
    return {**route, "rules": rules} if rules else route


def unnamed(document: Json, spec: Json) -> Json:
    """The route without the names of its rules, unless the service's own ``spec`` writes them.

    Presets and configs give the rules of every service the same names, and gateways such as Istio tell the rules of all
    routes apart by them: one service would get the endpoint picker of another.
    """
    rules: list[Json] = find(document, _RULES) or []
    if not rules or find(spec, _RULES) is not None:
        return document
    return replaced(document, _RULES, [{key: value for key, value in rule.items() if key != "name"} for rule in rules])


def replaced_as_a_whole(route: Json) -> Json:
    """The route with one rule's name left out, if Metacontroller would lose items of lists in its rules otherwise.

    It merges rules by name if all have one, and then the lists in them, such as matches by path. One rule without a
    name makes it replace the rules as they are (MC-3.2).
    """
    rules: list[Json] = route.get("rules") or []
    if not rules or merge_key(rules) is None:
        return route
    clash = next((rule for rule in rules if not is_sendable(rule)), None)
    if clash is None:
        return route
    nameless = {key: value for key, value in clash.items() if key != "name"}
    return {**route, "rules": [nameless if rule is clash else rule for rule in rules]}


def routed_by_model(document: Json, spec: Json, context: ReconcileContext) -> Json:
    """The route without matches by model where they are not asked for, and with one for each adapter where they are.

    Rules that the service's own ``spec`` writes are asked for by standing there. Where a route has no room for all
    adapters it has none of them, and they are reached by the service's own path.
    """
    rules: list[Json] = find(document, _RULES) or []
    header = context.operator.ingress.model_based_routing_header_name.lower()
    names = _Names(header, f"publishers/{context.metadata.namespace}/models/")
    if not any(names.names(match) for rule in rules for match in rule.get("matches") or ()):
        return document
    enabled = (document.get("annotations") or {}).get(MODEL_ROUTING) == "true"
    active = enabled and _is_permitted(document, context)
    if not active and find(spec, _RULES) is not None:
        return document
    adapters = adapter_names(find(document, ("model", "lora", "adapters")))
    return replaced(document, _RULES, _with_adapters(rules, names, adapters, active))


def routable(document: Json, spec: Json, context: ReconcileContext) -> Json:
    """The route without matches by a path with the model's name where that name cannot stand in a path.

    The API server would refuse the whole route for them, and with it the service's own path.
    """
    rules: list[Json] = find(document, _RULES) or []
    prefix = model_path(context.metadata.namespace, str(find(document, ("model", "name")) or context.metadata.name))
    if find(spec, _RULES) is not None or not is_invalid_path(prefix):
        return document
    narrowed = [
        {**rule, "matches": _not_below(rule["matches"], prefix)} if rule.get("matches") else rule for rule in rules
    ]
    return replaced(document, _RULES, [rule for rule in narrowed if rule.get("matches") != []])


def _not_below(matches: Iterable[Json], prefix: str) -> list[Json]:
    return [match for match in matches if not str((match.get("path") or {}).get("value")).startswith(prefix)]


def model_path(namespace: str, model: str) -> str:
    return f"/publishers/{namespace}/models/{model}"


def is_invalid_path(prefix: str) -> bool:
    """Report whether the Gateway API refuses the paths below a prefix, of which a long one is tried."""
    match = {"type": "PathPrefix", "value": f"{prefix}/v1/chat/completions"}
    parsed, errors = decode_document(match, HTTPPathMatch)
    return parsed is None or bool(errors) or any(violations(parsed, SPEC))


def _is_permitted(document: Json, context: ReconcileContext) -> bool:
    """Report whether the operator's settings and the Gateways of the service permit routing by model."""
    mode, namespace = context.operator.ingress.model_based_routing_mode.lower(), context.metadata.namespace
    named = [get(context.related.gateways, name, place or namespace) for place, name in references(document).gateways]
    notes = [gateway.metadata.annotations or {} for gateway in named if gateway is not None]
    return mode == "forced" or (mode != "disabled" and not any(note.get(MODEL_ROUTING) == "false" for note in notes))


class _Names(msgspec.Struct, frozen=True):
    """Names of models in a header."""

    header: str
    """In lower case, as headers are compared."""
    prefix: str

    def names(self, match: Json) -> bool:
        """Report whether a match selects a model of the namespace."""
        return any(self._is_model(header) for header in match.get("headers") or ())

    def of(self, match: Json, model: str) -> Json:
        """The same match for another model."""
        headers = [{**h, "value": self.prefix + model} if self._is_model(h) else h for h in match["headers"]]
        return {**match, "headers": headers}

    def _is_model(self, header: Json) -> bool:
        return str(header.get("name")).lower() == self.header and str(header.get("value")).startswith(self.prefix)


def _with_adapters(rules: Sequence[Json], names: _Names, adapters: Sequence[str], active: bool) -> list[Json]:
    """The rules with matches for all adapters, or for none.

    Where those that the model has are too many, a path with a slash at its end has none for adapters.
    """
    models = adapters[:MAX_ALL_MATCHES]  # more have no room in any case
    for sparing in (False, True):
        changed = list(_by_model(rules, names, models, active, sparing))
        if has_room(changed):
            return changed
    return list(_by_model(rules, names, (), active, False))


def _by_model(
    rules: Iterable[Json], names: _Names, models: Sequence[str], active: bool, sparing: bool
) -> Iterator[Json]:
    for rule in rules:
        yield from (part for part in _divided(_rule(rule, names, models, active, sparing)) if part.get("matches") != [])


def most_adapters(rules: Sequence[Json], header: str, prefix: str) -> int:
    """Return the number of adapters for which a route with these rules has room; ``prefix``: before a model's name."""
    names = _Names(header.lower(), prefix)
    tried = ([str(n) for n in range(number)] for number in range(1, MAX_ALL_MATCHES))
    return sum(_has_more(_with_adapters(rules, names, adapters, True), rules) for adapters in tried)


def _has_more(rules: Iterable[Json], before: Iterable[Json]) -> bool:
    return sum(len(rule["matches"]) for rule in rules) > sum(len(rule["matches"]) for rule in before)


def _rule(rule: Json, names: _Names, adapters: Sequence[str], active: bool, sparing: bool) -> Json:
    matches: list[Json] = rule.get("matches") or []
    by_model = [match for match in matches if names.names(match)]
    if not by_model:
        return rule
    if not active:
        return {**rule, "matches": [match for match in matches if match not in by_model]}
    copied = [match for match in by_model if not (sparing and _is_double(match, by_model))]
    return {**rule, "matches": [*matches, *(names.of(match, adapter) for match in copied for adapter in adapters)]}


def _is_double(match: Json, others: Sequence[Json]) -> bool:
    """Report whether another match has the same path without the slash at the end."""
    path = match.get("path") or {}
    value = str(path.get("value"))
    bare = {**match, "path": {**path, "value": value.removesuffix("/")}}
    return value.endswith("/") and path.get("type") == "Exact" and bare in others


def _divided(rule: Json) -> Iterator[Json]:
    """Yield the rule, or several with as many matches as one may have, of which the first has its name."""
    matches: list[Json] = rule.get("matches") or []
    yield {**rule, "matches": matches[:MAX_MATCHES]} if len(matches) > MAX_MATCHES else rule
    for start in range(MAX_MATCHES, len(matches), MAX_MATCHES):
        nameless = {key: value for key, value in rule.items() if key != "name"}
        yield {**nameless, "matches": matches[start : start + MAX_MATCHES]}
