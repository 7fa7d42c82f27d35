"""Pod specs as plain JSON: how they merge, and the form in which the API server would write them."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from app.kube.base import Json
from app.kube.embedded.types import TYPES
from app.kube.merge import OPEN, MergeRules
from app.kube.quantity import canonical_value

TEMPLATES = {
    "Deployment": "template",
    "StatefulSet": "template",
    "LeaderWorkerSet": "leaderWorkerTemplate",
    "Job": "template",
}
"""The field of a workload's spec that its pods are made from, by kind."""


def pod_templates(template: Json) -> Iterator[Json]:
    """Yield the templates of pods in the value of such a field: itself, or those of a group's leader and workers."""
    groups = (template, template.get("leaderTemplate"), template.get("workerTemplate"))
    yield from (group for group in groups if isinstance(group, dict) and isinstance(group.get("spec"), dict))


_HANDLERS = frozenset({"exec", "httpGet", "tcpSocket", "grpc", "sleep"})
_PROBE = MergeRules(one_of=_HANDLERS)
_LIFECYCLE = MergeRules(fields={"postStart": _PROBE, "preStop": _PROBE})
_ENV_SOURCE = MergeRules(
    one_of=frozenset({"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"})
)
_ENV = MergeRules(fields={"valueFrom": _ENV_SOURCE}, one_of=frozenset({"value", "valueFrom"}))


def _lists(type_name: str, shapes: Mapping[str, MergeRules]) -> dict[str, tuple[str, MergeRules]]:
    """Return the lists of a type that merge by a key, with the rules of their items."""
    declared = TYPES[type_name].items()
    return {name: (part.merge_key, shapes.get(name, OPEN)) for name, part in declared if part.merge_key}


CONTAINER = MergeRules(
    fields={"livenessProbe": _PROBE, "readinessProbe": _PROBE, "startupProbe": _PROBE, "lifecycle": _LIFECYCLE},
    lists=_lists("Container", {"env": _ENV}),
)

_VOLUME = MergeRules(one_of_all_but=frozenset({"name"}))
POD = MergeRules(
    lists=_lists(
        "PodSpec",
        {"volumes": _VOLUME, **dict.fromkeys(("containers", "initContainers", "ephemeralContainers"), CONTAINER)},
    )
)

MERGE_KEYS = {key: name for shape in (POD, CONTAINER) for key, (name, _) in shape.lists.items()}

_FALSE_IS_ABSENT = frozenset(
    {
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "stdin",
        "stdinOnce",
        "tty",
        "readOnly",
        "chapAuthDiscovery",
        "chapAuthSession",
    }
)
_ZERO_IS_ABSENT = frozenset(
    {
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
        "hostPort",
        "partition",
    }
)


def _pod_fields() -> dict[tuple[str, str], set[str]]:
    """Return the names of the fields of pods by type and container, as Kubernetes declares them."""
    names: dict[tuple[str, str], set[str]] = {}
    types = ["PodTemplateSpec"]
    for type_name in types:
        for name, part in TYPES[type_name].items():
            names.setdefault((part.type, part.container), set()).add(name)
            if part.type in TYPES and part.type not in types:
                types.append(part.type)
    return names


_FIELDS = _pod_fields()
_QUANTITY_MAPS = _FIELDS["quantity", "{}"]
_MAPS = _FIELDS["string", "{}"] | _QUANTITY_MAPS
"""Maps whose keys the user chooses: an empty value is kept."""
_QUANTITIES = _FIELDS["quantity", ""]
_EMPTY_STRING_COUNTS = frozenset({"storageClassName", "volumeAttributesClassName", "service"})
"""Strings that differ from absent when they are empty; ``service`` is a gRPC probe's, and empty by default."""
_WITH_VALUE = frozenset({"httpHeaders", "sysctls"})
"""Lists whose items have a ``value`` that is written even when it is empty; LeaderWorkerSet's schema requires it."""
_EMPTY_OBJECT_IS_ABSENT = {*_MAPS, "resources"}


def normalised(value: Json) -> Json:
    """Return a pod spec, or part of one, as the API server stores it. Values of the wrong JSON type stay."""
    result: Json = {}
    for key, item in value.items():
        kind = type(item)
        if kind is str:
            if item or key in _EMPTY_STRING_COUNTS:
                result[key] = canonical_value(item) if key in _QUANTITIES else item
        elif kind is dict:
            inner = _map(key, item) if key in _MAPS else normalised(item)
            if key == "resourceFieldRef":
                inner.setdefault("divisor", "0")
            if inner or key not in _EMPTY_OBJECT_IS_ABSENT:
                result[key] = inner
        elif kind is list:
            if items := _items(key, item):
                result[key] = items
        elif item is not None and not _is_zero(key, item):
            result[key] = canonical_value(item) if key in _QUANTITIES else _integral(item)
    return result


def _is_zero(key: str, value: object) -> bool:
    return not value and key in (_FALSE_IS_ABSENT if type(value) is bool else _ZERO_IS_ABSENT)


def _items(key: str, items: list[object]) -> list[object]:
    present = [item for item in items if item is not None]
    stored = [_part(item) for item in present]
    if key in _WITH_VALUE:
        for before, after in zip(present, stored, strict=True):
            if isinstance(before, dict) and isinstance(after, dict) and before.get("value") == "":
                after["value"] = ""
    elif key == "sources":
        for source in stored:
            _default_source(source)
    return stored


def _default_source(source: object) -> None:
    """Set the API server's defaults of a projected volume's source, which would be undone at every sync."""
    if type(source) is not dict:
        return
    token, downward = source.get("serviceAccountToken"), source.get("downwardAPI")
    if type(token) is dict:
        token.setdefault("expirationSeconds", 3600)
    files = downward.get("items") if type(downward) is dict else None
    for file in files if type(files) is list else ():
        reference = file.get("fieldRef") if type(file) is dict else None
        if type(reference) is dict:
            reference.setdefault("apiVersion", "v1")


def _map(key: str, item: Json) -> Json:
    present = {name: _part(value) for name, value in item.items() if value is not None}
    return {name: canonical_value(value) for name, value in present.items()} if key in _QUANTITY_MAPS else present


def _part(value: object) -> object:
    """Return an item of a list or map. Below an unknown field, even the values of labels may be lists and maps."""
    if type(value) is dict:
        return normalised(value)
    return _items("", value) if type(value) is list else _integral(value)


def _integral(number: object) -> object:
    return int(number) if isinstance(number, float) and number.is_integer() else number


def container_named(pod: Json | None, name: str) -> Json:
    containers: list[Json] = (pod or {}).get("containers") or []
    return next((container for container in containers if container.get("name") == name), {})


def with_container(pod: Json, name: str, change: Callable[[Json], Json]) -> Json:
    containers = pod.get("containers") or []
    return {**pod, "containers": [change(c) if c.get("name") == name else c for c in containers]}


def each_name_once(items: Iterable[Json], *, moved: bool = False) -> list[Json]:
    """Return variables, or references by name, without duplicates: the last counts, as in the kubelet.

    It takes the place of the first, or (``moved``) keeps its place. Metacontroller would merge the two.
    """
    by_name: dict[object, Json] = {}
    for item in items:
        if moved:
            by_name.pop(item.get("name"), None)
        by_name[item.get("name")] = item
    return list(by_name.values())
