"""The fields in which a kept pod template may differ from the plan, and the functions that walk them.

A kept template comes from a record or from a running workload, so a user who may edit the workload may have forged it,
and Metacontroller sends it with its own permissions. So only images, arguments, variables, probes, resources and
``runAsNonRoot`` of the planned containers may differ, and the pod's ``terminationGracePeriodSeconds`` and
``enableServiceLinks``. Some other fields may lack values of the plan, such as the user of an init container.
Everything else must equal the plan.
Source: decisions/0017 and docs/security.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

import msgspec

from app.hooks.sendable import is_sendable, merge_key
from app.kube.base import Json

Allowed = Callable[[object, object], bool]
"""Report whether the kept value, the first argument, may replace the planned one. ``None`` means absent."""
_AS_THEY_RUN = frozenset({"labels", "annotations"})
_ACCOUNTS = frozenset({"serviceAccountName", "serviceAccount"})
_DEFAULTS: Json = {
    **dict.fromkeys(("hostPID", "hostIPC", "hostNetwork"), False),
    **dict.fromkeys(("nodeName", "priorityClassName"), ""),
    "serviceAccountName": "default",
    "schedulerName": "default-scheduler",
}
"""Values that equal an absent field, for fields of a pod that the merge leaves because no record has them."""


class NamedContainers(msgspec.Struct, frozen=True):
    """A list of planned containers, of which some or all may be absent; their ``fields`` may differ."""

    fields: dict[str, Rule]


Rule = Allowed | dict[str, "Rule"] | NamedContainers
"""A field without a rule must equal the plan."""


def covers(value: object, part: object) -> bool:
    """Report whether Metacontroller's merge of ``part`` into ``value`` changes nothing."""
    if value == part:
        return True
    if isinstance(value, dict) and isinstance(part, dict):
        return all(key in value and covers(value[key], item) for key, item in part.items())
    items, pairs = _keyed(value, part)
    return bool(pairs) and all(name in items and covers(items[name], item) for name, item in pairs)


def _keyed(items: object, others: object) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    """Return the items of two lists with their values of the merge key; none if the lists are not merged."""
    if isinstance(items, list) and isinstance(others, list) and items and others:
        key = merge_key([*items, *others])
        if key is not None:
            return {str(item[key]): item for item in items}, [(str(item[key]), item) for item in others]
    return {}, []


def _any(_kept: object, _planned: object) -> bool:
    return True


def _part(kept: object, planned: object) -> bool:
    """Allow a part of the plan, or nothing: less is sent, and other running values are not changed."""
    return kept is None or covers(planned, kept)


def _variables(kept: object, planned: object) -> bool:
    """Allow literal values and fields of the pod; other sources, such as Secrets, only if the plan has them."""
    if kept is None:
        return True
    if not isinstance(kept, list) or not all(isinstance(item, dict) for item in kept):
        return False
    variables = planned if isinstance(planned, list) else ()
    allowed = [item["valueFrom"] for item in variables if "valueFrom" in item]
    return all(_reads_no_more(item["valueFrom"], allowed) for item in kept if item.get("valueFrom"))


def _reads_no_more(source: object, allowed: Sequence[Json]) -> bool:
    is_pod_field = isinstance(source, dict) and source.keys() <= {"fieldRef", "resourceFieldRef"}
    return is_pod_field or any(covers(planned, source) for planned in allowed)


def _volumes(kept: object, planned: object) -> bool:
    """Allow a part of the plan, with other sizes of empty directories."""
    return kept is None or covers(_without_sizes(planned), _without_sizes(kept))


def _without_sizes(volumes: object) -> object:
    if not isinstance(volumes, list) or not all(isinstance(volume, dict) for volume in volumes):
        return volumes
    return [
        {**volume, "emptyDir": {key: value for key, value in volume["emptyDir"].items() if key != "sizeLimit"}}
        if isinstance(volume.get("emptyDir"), dict)
        else volume
        for volume in volumes
    ]


def _absent(kept: object, _planned: object) -> bool:
    return kept is None


def _true(kept: object, _planned: object) -> bool:
    return kept is True


def _hooks(kept: object, planned: object) -> bool:
    """Allow a part of the plan, with another command of the hook that waits for requests."""
    return kept is None or covers(_without_command(planned), _without_command(kept))


def _without_command(lifecycle: object) -> object:
    stop = lifecycle.get("preStop") if isinstance(lifecycle, dict) else None
    if not isinstance(lifecycle, dict) or not isinstance(stop, dict) or not isinstance(stop.get("exec"), dict):
        return lifecycle
    rest = {key: value for key, value in stop["exec"].items() if key != "command"}
    return {**lifecycle, "preStop": {**stop, "exec": rest}}


_PROBE: dict[str, Rule] = {
    **dict.fromkeys(("initialDelaySeconds", "periodSeconds", "timeoutSeconds"), _any),
    **dict.fromkeys(("successThreshold", "failureThreshold", "terminationGracePeriodSeconds"), _any),
    "exec": {"command": _any},
    "httpGet": {"path": _any, "port": _any, "scheme": _any},
    "tcpSocket": {"port": _any},
    "grpc": {"port": _any, "service": _any},
}
"""Without ``host``: the kubelet would connect to any address, from the node's network."""
_SECURITY: dict[str, Rule] = {"runAsNonRoot": _any, "readOnlyRootFilesystem": _true}
_CONTAINER: dict[str, Rule] = {
    **dict.fromkeys(("image", "command", "args", "terminationMessagePolicy"), _any),
    **dict.fromkeys(("startupProbe", "livenessProbe", "readinessProbe"), _PROBE),
    "env": _variables,
    "resources": {"limits": _any, "requests": _any},
    "volumeMounts": _part,
    "lifecycle": _hooks,
    "securityContext": _SECURITY,
}
_INIT_CONTAINER = {**_CONTAINER, "securityContext": {**_SECURITY, "runAsUser": _absent}}
"""The user of the pod counts where one of these has none, and that of the pod has to equal the plan's."""
_POD: dict[str, Rule] = {
    "containers": NamedContainers(_CONTAINER),
    "initContainers": NamedContainers(_INIT_CONTAINER),
    **dict.fromkeys(("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints"), _part),
    "volumes": _volumes,
    **dict.fromkeys(("terminationGracePeriodSeconds", "enableServiceLinks"), _any),
}
_TEMPLATE: dict[str, Rule] = {"metadata": _part, "spec": _POD}
_GROUP: dict[str, Rule] = {**dict.fromkeys(("leaderTemplate", "workerTemplate"), _TEMPLATE), "restartPolicy": _part}


def as_it_runs(recorded: object, running: object) -> object:
    """Return the recorded fields with their running values, which changes nothing; ``None`` for no field."""
    if isinstance(recorded, dict) and isinstance(running, dict):
        parts = {key: as_it_runs(value, running.get(key)) for key, value in recorded.items()}
        return {key: part for key, part in parts.items() if part is not None}
    items, pairs = _keyed(running, recorded)
    return [as_it_runs(item, items[name]) for name, item in pairs if name in items] if pairs else running


RULES: Mapping[str, dict[str, Rule]] = {"Deployment": _TEMPLATE, "LeaderWorkerSet": _GROUP, "Service": _GROUP}
"""The rules for the pod template of each kind of workload (:mod:`app.hooks.template`)."""


class Difference(NamedTuple):
    path: str
    allowed: bool


def differences(kept: object, planned: object, rule: Rule | None, path: str = "") -> list[Difference]:
    """Return every field that differs, as in ``spec.containers[main].image``, of two values that differ."""
    if isinstance(rule, dict) and _is_map(kept) and _is_map(planned):
        old, new, result = kept or {}, planned or {}, []
        for key in sorted({**old, **new}):
            value, plan = old.get(key), new.get(key)
            if value != plan:
                result += differences(value, plan, rule.get(key), f"{path}.{key}" if path else key)
        return result
    if isinstance(rule, NamedContainers) and kept is not None and planned is not None:
        return _container_differences(kept, planned, rule, path)
    allowed = kept is None if isinstance(rule, NamedContainers) else callable(rule) and rule(kept, planned)
    return [Difference(path, allowed)]


def _container_differences(kept: object, planned: object, rule: NamedContainers, path: str) -> list[Difference]:
    containers, plans, result = _by_name(kept), _by_name(planned), []
    if not isinstance(kept, list) or not containers.keys() <= plans.keys() or not 0 < len(kept) == len(containers):
        return [Difference(path, allowed=False)]
    for name, plan in plans.items():
        place = f"{path}[{name}]"
        if name not in containers:
            result.append(Difference(place, allowed=True))
        else:
            result += differences(containers[name], plan, rule.fields, place)
    return result


def part_to_keep(running: object, planned: object, rule: Rule | None) -> Any:
    """Return the part of a running template that may be sent: fields of the plan, and fields that may differ.

    ``None`` for nothing. Other fields stay unchanged, because no record has them.
    """
    if isinstance(rule, dict):
        plan = planned if isinstance(planned, dict) else {}
        items = running.items() if isinstance(running, dict) else ()
        parts = {key: part_to_keep(value, plan.get(key), rule.get(key)) for key, value in items}
        return {key: part for key, part in parts.items() if part is not None} or None
    if isinstance(rule, NamedContainers):
        containers, plans = _by_name(running), _by_name(planned)
        fields = {"name": _part, **rule.fields}
        same = [part_to_keep(containers[name], plans[name], fields) for name in containers if name in plans]
        return same if containers and plans else None
    if rule is None:
        return planned if planned is not None and covers(running, planned) else None
    return running if rule(running, planned) and is_sendable({"": running}) else _common(running, planned)


def lacks(running: object, planned: object, rule: Rule | None) -> bool:
    """Report whether a running template lacks a field of the plan that must equal it: then no part of it may stay."""
    if isinstance(rule, dict):
        values, plan = _map(running), _map(planned)
        return any(lacks(values.get(key), value, rule.get(key)) for key, value in plan.items())
    if isinstance(rule, NamedContainers):
        containers, plans = _by_name(running), _by_name(planned)
        return any(lacks(containers[name], plans[name], rule.fields) for name in containers if name in plans)
    return rule is None and not covers(running, planned)


def _common(running: object, planned: object) -> object:
    """Return the part of the second value that the first has, too."""
    if isinstance(running, dict) and isinstance(planned, dict):
        parts = {key: _common(running[key], value) for key, value in planned.items() if key in running}
        return {key: part for key, part in parts.items() if part is not None} or None
    items, pairs = _keyed(running, planned)
    if pairs:
        return [_common(items[name], item) for name, item in pairs if name in items] or None
    return planned if running == planned else None


def claim(running: object, planned: object) -> Any:
    """Return the record with which the merge removes running values that the plan lacks; ``None`` for nothing.

    An item of a list is claimed by its key and a map by its name, without their contents. Only labels, annotations and
    the account, which an empty value would change at once, are sent with their running values.
    """
    if isinstance(running, dict) and isinstance(planned, dict):
        claims = {key: _claim_of(key, value, planned.get(key)) for key, value in running.items()}
        return {key: value for key, value in claims.items() if value is not None} or None
    if not (isinstance(running, list) and isinstance(planned, list)):
        return None
    key = merge_key([*running, *planned]) if running else None
    if key is None:
        return None
    planned_items = {str(item[key]): item for item in planned}
    items: dict[str, Json] = {}
    for item in running:
        name = str(item[key])
        claimed = claim(item, planned_items[name]) if name in planned_items else {}
        if claimed is not None:
            items[name] = {**items.get(name, {}), **claimed, key: item[key]}
    return list(items.values()) or None


def _claim_of(key: str, running: object, planned: object) -> object:
    if key in _AS_THEY_RUN and isinstance(running, dict):
        names = planned if isinstance(planned, dict) else ()
        return {name: text for name, text in running.items() if name not in names} or None
    if key in _ACCOUNTS:
        return running if planned is None and running else None
    if planned is not None:
        return claim(running, planned)
    if isinstance(running, dict):
        return {}
    return [] if isinstance(running, list) and running and merge_key(running) else None


def union(value: object, claimed: object) -> Any:
    if isinstance(value, dict) and isinstance(claimed, dict):
        return {**value, **{key: union(value.get(key), item) for key, item in claimed.items()}}
    items, pairs = _keyed(value, claimed)
    if pairs:
        return list({**items, **{name: union(items.get(name), item) for name, item in pairs}}.values())
    return claimed if value is None else value


def without_rights(template: Json, running: Json) -> Json:
    """Return the planned template with :data:`_DEFAULTS` for fields that only the running one has."""
    groups = [name for name in ("leaderTemplate", "workerTemplate") if isinstance(template.get(name), dict)]
    if not groups:
        return _closed(template, running)
    return {**template, **{name: _closed(template[name], _map(running.get(name))) for name in groups}}


def _closed(pods: Json, running: Json) -> Json:
    observed, spec = _map(running.get("spec")), pods.get("spec") or {}
    defaults = {key: value for key, value in _DEFAULTS.items() if observed.get(key) and key not in spec}
    return {**pods, "spec": {**defaults, **spec}}


def _map(value: object) -> Json:
    """Return a value of a workload that others may have written, or an empty map."""
    return value if isinstance(value, dict) else {}


def _is_map(value: object) -> TypeGuard[Json | None]:
    return value is None or isinstance(value, dict)


def _by_name(containers: object) -> dict[str, Json]:
    """Return containers by name, without unnamed ones."""
    items = containers if isinstance(containers, list) else ()
    return {item["name"]: item for item in items if isinstance(item, dict) and isinstance(item.get("name"), str)}
