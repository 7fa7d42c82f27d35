"""What a kept pod template may have otherwise than the present plan: the one list of the fields, and the walks over it.

A kept template comes from a record or from a running workload, so whoever may edit the workload may have written it,
and Metacontroller sends it with its own rights. Of containers that the plan has by name it may therefore have other
images, arguments, variables, probes and resources. Of some other fields it may lack what the plan has, which sends
less. Everything else is the plan's. Source: docs/decisions/0017 and docs/security.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from app.hooks.response import is_sendable
from app.hooks.sendable import merge_key
from app.kube.base import Json
from app.kube.objects import ObservedObject, ObservedWorkload
from app.kube.rawchecks import depth_exceeds
from app.kube.stored import without_nulls

Allowed = Callable[[Any, Any], bool]
"""Whether the kept value, the first, may stand in place of the planned one. ``None`` is no field."""


@dataclass(frozen=True, slots=True)
class Named:
    """A list of containers: the same names on both sides, or none that are kept; ``fields`` is what may differ."""

    fields: Mapping[str, Rule]


Rule = Allowed | Mapping[str, Any] | Named
"""A field without a rule is the plan's."""


def covers(value: Any, part: Any) -> bool:
    """Whether Metacontroller's merge of ``part`` into ``value`` would leave that as it is."""
    if isinstance(value, dict) and isinstance(part, dict):
        return all(key in value and covers(value[key], item) for key, item in part.items())
    if isinstance(value, list) and isinstance(part, list):
        key = merge_key([*value, *part]) if value and part else None
        if key is not None:
            named = {str(item[key]): item for item in value}
            return all(str(item[key]) in named and covers(named[str(item[key])], item) for item in part)
    return bool(value == part)


def _any(_kept: Any, _planned: Any) -> bool:
    return True


def _part(kept: Any, planned: Any) -> bool:
    """Nothing, or some of what the plan has: less is sent, and what runs besides is not written."""
    return kept is None or covers(planned, kept)


def _variables(kept: Any, planned: Any) -> bool:
    """Literal values and fields of the pod itself, and of Secrets and other objects only what the plan reads, too."""
    sources = [item["valueFrom"] for item in planned or () if "valueFrom" in item]
    return kept is None or (isinstance(kept, list) and all(_reads_no_more(item, sources) for item in kept))


def _reads_no_more(variable: Any, sources: Sequence[Json]) -> bool:
    if not isinstance(variable, dict):
        return False
    source = variable.get("valueFrom") or {}
    own = isinstance(source, dict) and source.keys() <= {"fieldRef", "resourceFieldRef"}
    return own or any(covers(known, source) for known in sources)


_PROBE: Mapping[str, Rule] = {
    **dict.fromkeys(("initialDelaySeconds", "periodSeconds", "timeoutSeconds"), _any),
    **dict.fromkeys(("successThreshold", "failureThreshold", "terminationGracePeriodSeconds"), _any),
    "exec": {"command": _any},
    "httpGet": {"path": _any, "port": _any, "scheme": _any},
    "tcpSocket": {"port": _any},
    "grpc": {"port": _any, "service": _any},
}
"""Without ``host``: the kubelet would ask any address, from the node's network."""
_CONTAINER: Mapping[str, Rule] = {
    **dict.fromkeys(("image", "command", "args", "terminationMessagePolicy"), _any),
    **dict.fromkeys(("startupProbe", "livenessProbe", "readinessProbe"), _PROBE),
    "env": _variables,
    "resources": {"limits": _any, "requests": _any},
    "volumeMounts": _part,
}
_POD: Mapping[str, Rule] = {
    **dict.fromkeys(("containers", "initContainers"), Named(_CONTAINER)),
    **dict.fromkeys(("volumes", "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints"), _part),
}
_TEMPLATE: Mapping[str, Rule] = {"metadata": _part, "spec": _POD}
_GROUP: Mapping[str, Rule] = {**dict.fromkeys(("leaderTemplate", "workerTemplate"), _TEMPLATE), "restartPolicy": _part}

TEMPLATES = {"Deployment": "template", "LeaderWorkerSet": "leaderWorkerTemplate", "Service": "workloadTemplate"}
"""The field of a kind's spec of which every change replaces pods. The core Service has none of that name."""


def template_of(workload: Mapping[str, Any]) -> Json | None:
    """The pod template of a workload; ``None`` where there is none."""
    spec = workload.get("spec")
    template = spec.get(TEMPLATES.get(workload.get("kind", ""), "")) if isinstance(spec, dict) else None
    return template if isinstance(template, dict) else None


def running_template(child: ObservedObject) -> Json | None:
    """The template as the cluster has it, without nulls; ``None`` where there is none, or none that can be read."""
    if not isinstance(child, ObservedWorkload) or depth_exceeds(child.raw_spec):
        return None
    try:
        spec = orjson.loads(bytes(child.raw_spec))
    except orjson.JSONDecodeError:  # such as 1e400, which is skipped over where nobody reads it
        return None
    return template_of({"kind": child.kind, "spec": without_nulls(spec)})


def as_it_runs(recorded: Any, running: Any) -> Any:
    """What is on record, with the values that run, which leaves the running one as it is; ``None`` for nothing."""
    if isinstance(recorded, dict) and isinstance(running, dict):
        parts = {key: as_it_runs(value, running.get(key)) for key, value in recorded.items()}
        return {key: part for key, part in parts.items() if part is not None}
    if isinstance(recorded, list) and isinstance(running, list) and recorded and running:
        key = merge_key([*recorded, *running])
        if key is not None:
            items = {str(item[key]): item for item in running}
            return [as_it_runs(item, items[str(item[key])]) for item in recorded if str(item[key]) in items]
    return running


FIELDS: Mapping[str, Mapping[str, Rule]] = {
    "template": _TEMPLATE,
    "leaderWorkerTemplate": _GROUP,
    "workloadTemplate": _GROUP,
}
"""By the field of a workload's spec that makes its pods (:mod:`app.hooks.template`)."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that a kept template has otherwise than the plan."""

    path: str
    allowed: bool


def differences(kept: Any, planned: Any, rule: Rule | None, path: str = "") -> Iterator[Difference]:
    """Every field in which the two differ, as in ``spec.containers[main].image``."""
    if kept == planned:
        return
    if isinstance(rule, Mapping) and _is_map(kept) and _is_map(planned):
        for key in sorted({**(kept or {}), **(planned or {})}):
            there = (kept or {}).get(key), (planned or {}).get(key)
            yield from differences(*there, rule.get(key), f"{path}.{key}" if path else key)
    elif isinstance(rule, Named) and kept is not None and planned is not None:
        containers, wanted = _by_name(kept), _by_name(planned)
        if containers.keys() != wanted.keys() or len(containers) != len(kept):
            yield Difference(path, allowed=False)
            return
        for name, item in containers.items():
            yield from differences(item, wanted[name], rule.fields, f"{path}[{name}]")
    else:
        yield Difference(path, kept is None if isinstance(rule, Named) else callable(rule) and rule(kept, planned))


def part_to_keep(running: Any, planned: Any, rule: Rule | None) -> Any:
    """Of a running template, what may be sent: what the plan has too, and what it may have otherwise.

    ``None`` for nothing. What is left out stays as it runs, since nobody's record has it.
    """
    if isinstance(rule, Mapping):
        wanted = planned if isinstance(planned, dict) else {}
        found = running.items() if isinstance(running, dict) else ()
        parts = {key: part_to_keep(value, wanted.get(key), rule.get(key)) for key, value in found}
        return {key: part for key, part in parts.items() if part is not None} or None
    if isinstance(rule, Named):
        containers, wanted = _by_name(running), _by_name(planned)
        fields = {"name": _part, **rule.fields}
        kept = [part_to_keep(item, wanted[name], fields) for name, item in containers.items() if name in wanted]
        return kept if containers and wanted else None
    if rule is None:
        return planned if planned is not None and covers(running, planned) else None
    return running if rule(running, planned) and is_sendable({"": running}) else _common(running, planned)


def _common(one: Any, other: Any) -> Any:
    """The part of the second value that the first has as well."""
    if isinstance(one, dict) and isinstance(other, dict):
        parts = {key: _common(one[key], value) for key, value in other.items() if key in one}
        return {key: part for key, part in parts.items() if part is not None} or None
    if isinstance(one, list) and isinstance(other, list) and one and other:
        key = merge_key([*one, *other])
        if key is not None:
            items = {str(item[key]): item for item in one}
            return [_common(items[str(item[key])], item) for item in other if str(item[key]) in items] or None
    return other if one == other else None


def claim(running: Any, planned: Any) -> Any:
    """What has to be on record so that the merge takes away what runs and the plan does not have; ``None`` for nothing.

    A list's item is claimed by its key and a map by being named: nothing of what is in them is sent. Only labels,
    annotations and the account, which an empty value would change at once, are sent as they run.
    """
    if isinstance(running, dict) and isinstance(planned, dict):
        claims = {key: _claim_of(key, value, planned.get(key)) for key, value in running.items()}
        return {key: value for key, value in claims.items() if value is not None} or None
    if not (isinstance(running, list) and isinstance(planned, list)):
        return None
    key = merge_key([*running, *planned]) if running else None
    wanted = {str(item[key]): item for item in planned} if key else {}
    claims = {}
    for item in running if key else ():
        claimed = claim(item, wanted[str(item[key])]) if str(item[key]) in wanted else {}
        if claimed is not None:
            claims[str(item[key])] = {**claims.get(str(item[key]), {}), **claimed, key: item[key]}
    return list(claims.values()) or None


def _claim_of(key: str, running: Any, planned: Any) -> Any:
    if key in _AS_THEY_RUN:
        return {name: text for name, text in running.items() if name not in (planned or {})} or None
    if key in _ACCOUNTS:
        return running if planned is None and running else None
    if planned is not None:
        return claim(running, planned)
    if isinstance(running, dict):
        return {}
    return [] if isinstance(running, list) and running and merge_key(running) else None


_AS_THEY_RUN = frozenset({"labels", "annotations"})
_ACCOUNTS = frozenset({"serviceAccountName", "serviceAccount"})


def union(value: Any, claimed: Any) -> Any:
    """A template together with a claim."""
    if isinstance(value, dict) and isinstance(claimed, dict):
        return {**value, **{key: union(value.get(key), item) for key, item in claimed.items()}}
    if isinstance(value, list) and isinstance(claimed, list) and value and claimed:
        key = merge_key([*value, *claimed])
        if key is not None:
            items = {str(item[key]): item for item in value}
            return list({**items, **{str(c[key]): union(items.get(str(c[key])), c) for c in claimed}}.values())
    return claimed if value is None else value


_NONE: Json = {
    **dict.fromkeys(("hostPID", "hostIPC", "hostNetwork"), False),
    **dict.fromkeys(("nodeName", "priorityClassName"), ""),
    "serviceAccountName": "default",
    "schedulerName": "default-scheduler",
}
"""What means the same as no such field, for fields of a pod that the merge leaves where nobody has them on record."""


def without_rights(template: Json, running: Json) -> Json:
    """The planned template with :data:`_NONE` in place of what the running one has besides."""
    groups = [name for name in ("leaderTemplate", "workerTemplate") if isinstance(template.get(name), dict)]
    if not groups:
        return _closed(template, running)
    return {**template, **{name: _closed(template[name], running.get(name) or {}) for name in groups}}


def _closed(pods: Json, running: Json) -> Json:
    found, spec = running.get("spec") or {}, pods.get("spec") or {}
    return {
        **pods,
        "spec": {**{key: none for key, none in _NONE.items() if found.get(key) and key not in spec}, **spec},
    }


def _is_map(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _by_name(containers: Any) -> dict[str, Json]:
    """Containers by their names, without what has none."""
    found = containers if isinstance(containers, list) else ()
    return {item["name"]: item for item in found if isinstance(item, dict) and isinstance(item.get("name"), str)}
