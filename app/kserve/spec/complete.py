"""Steps between merging and use of a spec, except rendering. Source: KS-2.1, steps 6 to 12.

Nothing is written in place: documents share parts with presets.
"""

from app.hooks.sendable import is_sendable, merge_key
from app.kserve.constants import GATEWAY_GROUP, MODEL_SERVERS
from app.kserve.names import Names, workload_selector
from app.kube.base import Json
from app.kube.merge import find, replaced

ROUTE = ("router", "route", "http", "spec")
"""Path of the managed HTTPRoute's spec."""

_PODS = (*MODEL_SERVERS, ("router", "scheduler", "template"))


def completed(merged: Json, service: str) -> Json:
    """A pool without a selector selects the service's own pods (KS-2.1 step 6)."""
    pool = find(merged, ("router", "scheduler", "pool", "spec"))
    if pool is None or find(pool, ("selector", "matchLabels")):
        return merged
    return replaced(
        merged, ("router", "scheduler", "pool", "spec", "selector"), {"matchLabels": workload_selector(service)}
    )


def routed(document: Json, names: Names) -> Json:
    """The managed route's parents and backends as the rest of the spec wants them (KS-2.1 steps 9 to 11)."""
    route = find(document, ROUTE)
    if route is None:
        return document
    refs = find(document, ("router", "gateway", "refs"))
    if refs:
        route = {**route, "parentRefs": [_parent(ref) for ref in refs]}
    if find(document, ("router", "scheduler")) is None:
        service = {"group": "", "kind": "Service", "name": names.workload_service}
        route = with_backends(route, names.pool, service)
    elif pool := find(document, ("router", "scheduler", "pool", "ref", "name")):
        route = with_backends(route, names.pool, {"name": pool})
    return replaced(document, ROUTE, route)


def _parent(ref: Json) -> Json:
    parent = {"group": GATEWAY_GROUP, "kind": "Gateway", "name": ref.get("name", "")}
    return parent | {key: ref[key] for key in ("namespace", "sectionName") if ref.get(key)}


def with_backends(route: Json, pool: str, replacement: Json) -> Json:
    """``route`` with other backends wherever it has the default pool."""

    def backend(ref: Json) -> Json:
        default = ref.get("kind") == "InferencePool" and ref.get("name") == pool
        return {**ref, **replacement} if default else ref

    rules = [
        {**rule, "backendRefs": [backend(ref) for ref in rule["backendRefs"]]} if rule.get("backendRefs") else rule
        for rule in route.get("rules") or ()
    ]
    return {**route, "rules": rules} if rules else route


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


def without_certificates(document: Json, secret: str) -> Json:
    """Pods that start without the certificates that KServe's own operator would make (KS-9.3)."""
    for path in _PODS:
        volumes = find(document, (*path, "volumes"))
        if volumes and any((volume.get("secret") or {}).get("secretName") == secret for volume in volumes):
            document = replaced(document, (*path, "volumes"), [_optional(volume, secret) for volume in volumes])
    return document


def _optional(volume: Json, secret: str) -> Json:
    source = volume.get("secret")
    if not isinstance(source, dict) or source.get("secretName") != secret or "optional" in source:
        return volume
    return {**volume, "secret": {**source, "optional": True}}
