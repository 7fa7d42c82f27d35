"""Rules for the parts of a pod that users write: what Kubernetes would only refuse when the pod is made.

No family is named here. Types and required fields were checked before (:mod:`app.kube.embedded`), so the values have
their types; ``null`` counts as absent. A field that Kubernetes has added since is never a mistake. Rule numbers are
those of LK-6.4.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.kube import field
from app.kube.field import Advice, advice
from app.kube.names import is_dns1123_subdomain, is_label_value, key_problem

Json = Mapping[str, Any]
Errors = list[field.Error]

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


def is_integer(text: str) -> bool:
    """Whether ``Gt`` and ``Lt`` can compare with it: a whole number that fits 64 bits."""
    return _INTEGER.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63


HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")


def object_name(name: str, path: field.Path) -> Errors:
    """A name of another object; an empty one is for the caller to judge."""
    if not name or is_dns1123_subdomain(name):
        return []
    return [field.invalid(path, name, "must be the name of an object: lower case letters, digits, '-' and '.'")]


def node_selector(labels: Mapping[str, str | None], path: field.Path) -> Errors:
    """Keys and values of node labels."""
    errors = [field.invalid(path, key, problem) for key in labels if (problem := key_problem(key))]
    detail = "must be at most 63 letters, digits, '-', '_' and '.', starting and ending with a letter or digit"
    errors += [field.invalid(path.key(k), v, detail) for k, v in labels.items() if not is_label_value(v or "")]
    return errors


def pull_secrets(references: Sequence[Json], path: field.Path) -> Errors:
    """LK-V-K27."""
    errors: Errors = []
    for position, reference in enumerate(references):
        here = path.index(position).child("name")
        name = reference.get("name") or ""
        errors += object_name(name, here) if name else [field.required(here, "name the Secret")]
    return errors


# Environment.


def env(variables: Sequence[Json], path: field.Path) -> Errors:
    """LK-V-K01 to LK-V-K06."""
    errors: Errors = []
    for position, variable in enumerate(variables):
        here = path.index(position)
        errors += _env_name(variable.get("name"), here.child("name"))
        source = variable.get("valueFrom")
        if source is None:
            continue
        if variable.get("value"):
            detail = "may not be set beside a value; remove one of them"
            errors.append(field.invalid(here.child("valueFrom"), "", detail))
        errors += _env_source(source, here.child("valueFrom"))
    return errors


_ENV_NAME = re.compile(r"[ -<>-~]+")


def _env_name(name: Any, path: field.Path) -> Errors:
    if not name:
        return [field.required(path)]
    if _ENV_NAME.fullmatch(name):
        return []
    return [field.invalid(path, name, "must consist of printable ASCII characters other than '='")]


_KEY_REFERENCES = ("configMapKeyRef", "secretKeyRef")


def _env_source(source: Json, path: field.Path) -> Errors:
    given = [key for key, value in source.items() if value is not None]
    if len(given) != 1:
        detail = "give exactly one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef and fileKeyRef"
        return [field.invalid(path, "", detail)]
    reference, here = source[given[0]], path.child(given[0])
    if given[0] == "fieldRef":
        return _field_reference(reference, here)
    if given[0] == "resourceFieldRef":
        return _resource_reference(reference, here)
    if given[0] == "fileKeyRef":
        return _file_reference(reference, here)
    return key_reference(reference, here) if given[0] in _KEY_REFERENCES else []


def _file_reference(reference: Json, path: field.Path) -> Errors:
    """LK-V-K35: a file of a volume, which must not leave it."""
    text = reference.get("path") or ""
    if not text.startswith("/") and ".." not in text.split("/"):
        return []
    return [field.invalid(path.child("path"), text, "must be a relative path without '..', for example app.env")]


def key_reference(reference: Json, path: field.Path) -> Errors:
    """LK-V-K04: a key of a Secret or ConfigMap; both names have to be there."""
    errors: Errors = []
    for part in ("name", "key"):
        if not reference.get(part):
            errors.append(field.required(path.child(part), f"write the {part} of the object that is meant"))
    key = reference.get("key") or ""
    if key and (len(key) > 253 or not _DATA_KEY.fullmatch(key) or key == "." or key.startswith("..")):
        errors.append(field.invalid(path.child("key"), key, "must be a key: letters, digits, '-', '_' and '.'"))
    return errors + object_name(reference.get("name") or "", path.child("name"))


_DATA_KEY = re.compile(r"[-._a-zA-Z0-9]+")
"""Keys that a Secret or ConfigMap may have."""


_FIELD_PATHS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")


def _field_reference(reference: Json, path: field.Path) -> Errors:
    """LK-V-K05."""
    errors: Errors = []
    if reference.get("apiVersion") not in (None, "", "v1"):
        errors.append(field.not_supported(path.child("apiVersion"), reference["apiVersion"], ["v1"]))
    text, here = reference.get("fieldPath") or "", path.child("fieldPath")
    subscript = _SUBSCRIPT.fullmatch(text)
    if not text:
        errors.append(field.required(here))
    elif subscript:
        problem = key_problem(subscript[2])
        errors += [field.invalid(here, text, problem)] if problem else []
    elif text not in _FIELD_PATHS:
        supported = (*_FIELD_PATHS, "metadata.labels['<key>']", "metadata.annotations['<key>']")
        errors.append(field.not_supported(here, text, supported))
    return errors


_RESOURCES = ("cpu", "memory", "ephemeral-storage")


def _resource_reference(reference: Json, path: field.Path) -> Errors:
    """LK-V-K06. The divisor's form was checked with its type."""
    text, here = reference.get("resource") or "", path.child("resource")
    if not text:
        return [field.required(here)]
    kind, _, name = text.partition(".")
    if kind in ("limits", "requests") and (name in _RESOURCES or name.startswith("hugepages-")):
        return []
    return [field.not_supported(here, text, [f"{k}.{n}" for k in ("limits", "requests") for n in _RESOURCES])]


def env_warnings(
    variables: Sequence[Json], path: field.Path, runtime: Collection[str] = (), volumes: Collection[str] = ()
) -> Iterator[Advice]:
    """LK-V-I61 and LK-V-K07: names given twice, or set by the runtime too, and files that no volume can hold.

    ``volumes`` are the names of the pod's volumes, as far as the user writes them.
    """
    seen = set()
    for position, variable in enumerate(variables):
        name, here = variable.get("name"), path.index(position)
        if name in seen:
            yield advice(here, f"{name} is set twice; the last one wins")
        elif name in runtime:
            yield advice(here, f"{name} replaces the value that the runtime's own options set")
        seen.add(name)
        file = (variable.get("valueFrom") or {}).get("fileKeyRef")
        if file is not None and file.get("volumeName") not in volumes:
            yield advice(here.child("valueFrom", "fileKeyRef"), "the pod has no volume that provides this file")


# Tolerations.

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS = ("Exists", "Equal", "Lt", "Gt")


def tolerations(items: Sequence[Json], path: field.Path) -> Errors:
    """LK-V-K08."""
    return [error for position, item in enumerate(items) for error in _toleration(item, path.index(position))]


def _toleration(item: Json, path: field.Path) -> Errors:
    errors: Errors = []
    key, operator, value = item.get("key") or "", item.get("operator") or "Equal", item.get("value") or ""
    effect = item.get("effect") or ""
    if key and (problem := key_problem(key)):
        errors.append(field.invalid(path.child("key"), key, problem))
    if operator not in _OPERATORS:
        errors.append(field.not_supported(path.child("operator"), operator, _OPERATORS))
    elif not key and operator != "Exists":
        errors.append(field.invalid(path.child("operator"), operator, "must be Exists when key is empty"))
    if operator == "Exists" and value:
        errors.append(field.invalid(path.child("value"), value, "must be left out with operator Exists"))
    if operator == "Equal" and not is_label_value(value):
        errors.append(field.invalid(path.child("value"), value, "must be a label value"))
    if operator in ("Gt", "Lt") and not is_integer(value):
        errors.append(
            field.invalid(path.child("value"), value, f"must be an integer in quotes with operator {operator}")
        )
    if effect and effect not in _EFFECTS:
        errors.append(field.not_supported(path.child("effect"), effect, _EFFECTS))
    elif item.get("tolerationSeconds") is not None and effect != "NoExecute":
        errors.append(field.invalid(path.child("effect"), effect, "must be NoExecute when tolerationSeconds is set"))
    return errors


# Probes.


def probe(value: Json, path: field.Path, purpose: str) -> Errors:
    """LK-V-K09 to LK-V-K15. ``purpose`` is ``startup``, ``liveness`` or ``readiness``."""
    given = [key for key in HANDLERS if value.get(key) is not None]
    errors: Errors = []
    if len(given) > 1:
        errors.append(field.forbidden(path.child(given[1]), f"{given[0]} is set as well; set exactly one of them"))
    elif not given and not _unknown_handler(value):
        errors.append(field.required(path, f"give one of {', '.join(HANDLERS)}; the whole probe is replaced"))
    errors += _timings(value, path, purpose)
    for key in given:
        errors += handler(key, value[key], path.child(key))
    return errors


_TIMINGS = ("periodSeconds", "timeoutSeconds", "failureThreshold", "successThreshold")
_PROBE_FIELDS = {*HANDLERS, *_TIMINGS, "initialDelaySeconds", "terminationGracePeriodSeconds"}


def _unknown_handler(value: Json) -> bool:
    """A field that this table lacks may be a handler of a newer Kubernetes."""
    return any(key not in _PROBE_FIELDS and isinstance(item, Mapping) for key, item in value.items())


def _timings(value: Json, path: field.Path, purpose: str) -> Errors:
    errors = [
        field.invalid(path.child(name), value[name], "must be at least 1")
        for name in _TIMINGS
        if value.get(name) is not None and value[name] < 1
    ]
    if (value.get("initialDelaySeconds") or 0) < 0:
        errors.append(
            field.invalid(path.child("initialDelaySeconds"), value["initialDelaySeconds"], "must be at least 0")
        )
    if purpose != "readiness" and (value.get("successThreshold") or 1) > 1:
        errors.append(field.invalid(path.child("successThreshold"), value["successThreshold"], "must be 1"))
    grace, here = value.get("terminationGracePeriodSeconds"), path.child("terminationGracePeriodSeconds")
    if grace is not None and purpose == "readiness":
        errors.append(field.invalid(here, grace, "must not be set for readiness probes"))
    elif grace is not None and grace < 1:
        errors.append(field.invalid(here, grace, "must be at least 1"))
    return errors


_SERVICE_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_HEADER_NAME = re.compile(r"[-A-Za-z0-9!#$%&'*+.^_`|~]+")


def handler(key: str, value: Json, path: field.Path) -> Errors:
    """What a probe or a hook does: an action of the kind ``key``."""
    if key == "exec":
        return [] if value.get("command") else [field.required(path.child("command"))]
    if key == "sleep":
        return (
            []
            if value["seconds"] >= 0
            else [field.invalid(path.child("seconds"), value["seconds"], "must be at least 0")]
        )
    errors = _port(value.get("port"), path.child("port"), named=key != "grpc")
    if key != "httpGet":
        return errors
    scheme = value.get("scheme")
    if scheme not in (None, "", "HTTP", "HTTPS"):
        errors.append(field.not_supported(path.child("scheme"), scheme, ["HTTP", "HTTPS"]))
    for position, header in enumerate(value.get("httpHeaders") or ()):
        name = header.get("name") or ""
        if not _HEADER_NAME.fullmatch(name):
            here = path.child("httpHeaders").index(position).child("name")
            errors.append(field.invalid(here, name, "must be the name of an HTTP header"))
    return errors


def _port(port: Any, path: field.Path, *, named: bool) -> Errors:
    """LK-V-K14."""
    if isinstance(port, str):
        if named and not port_name_problem(port):
            return []
        return [field.invalid(path, port, "must be a number from 1 to 65535, or the name of a port of the container")]
    if port is not None and 1 <= port <= 65535:
        return []
    return [field.invalid(path, port, "must be between 1 and 65535, inclusive")]


def port_name_problem(name: str) -> str:
    """Why a port cannot have that name (``IANA_SVC_NAME``); empty where it can."""
    if len(name) <= 15 and _SERVICE_NAME.fullmatch(name):
        return ""
    return "must be at most 15 lower case letters, digits and single '-' between them, with at least one letter"


def probe_warnings(value: Json, path: field.Path, ports: Collection[str]) -> Iterator[Advice]:
    """LK-V-K14: a name that no port of the container has never answers."""
    for key in ("httpGet", "tcpSocket"):
        port = (value.get(key) or {}).get("port")
        if isinstance(port, str) and port not in ports:
            message = f"the container's port is called {', '.join(sorted(ports))}, not {port}"
            yield advice(path.child(key, "port"), message)


# Security contexts.

_MAX_ID = 2**31 - 1


def pod_security_context(value: Json, path: field.Path) -> Errors:
    """LK-V-K16 to LK-V-K21 and LK-V-K26."""
    errors = _shared_security(value, path)
    for name, values in _POD_ENUMS.items():
        if value.get(name) is not None and value[name] not in values:
            errors.append(field.not_supported(path.child(name), value[name], values))
    errors += _id(value.get("fsGroup"), path.child("fsGroup"))
    for position, group in enumerate(value.get("supplementalGroups") or ()):
        errors += _id(group, path.child("supplementalGroups").index(position))
    return errors + _sysctls(value.get("sysctls") or (), path.child("sysctls"))


_POD_ENUMS = {
    "fsGroupChangePolicy": ("OnRootMismatch", "Always"),
    "seLinuxChangePolicy": ("MountOption", "Recursive"),
    "supplementalGroupsPolicy": ("Merge", "Strict"),
}


def container_security_context(value: Json, path: field.Path) -> Errors:
    """LK-V-K16, LK-V-K17 and LK-V-K21 to LK-V-K23."""
    errors = _shared_security(value, path)
    if value.get("procMount") not in (None, "Default", "Unmasked"):
        errors.append(field.not_supported(path.child("procMount"), value["procMount"], ["Default", "Unmasked"]))
    if value.get("allowPrivilegeEscalation") is False:
        here, added = path.child("allowPrivilegeEscalation"), (value.get("capabilities") or {}).get("add") or ()
        if value.get("privileged"):
            error = field.invalid(here, value=False, detail="must not be false when privileged is true")
            errors.append(replace(error, against=path.child("privileged")))
        if "CAP_SYS_ADMIN" in added:
            error = field.invalid(here, value=False, detail="must not be false when CAP_SYS_ADMIN is added")
            errors.append(replace(error, against=path.child("capabilities", "add")))
    return errors


def _shared_security(value: Json, path: field.Path) -> Errors:
    errors = [
        *_id(value.get("runAsUser"), path.child("runAsUser")),
        *_id(value.get("runAsGroup"), path.child("runAsGroup")),
    ]
    for name in ("seccompProfile", "appArmorProfile"):
        if value.get(name) is not None:
            errors += _profile(value[name], path.child(name), is_path=name == "seccompProfile")
    return errors


_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")


def _profile(profile: Json, path: field.Path, *, is_path: bool) -> Errors:
    """LK-V-K16 and LK-V-K17."""
    kind, local, here = profile.get("type"), profile.get("localhostProfile"), path.child("localhostProfile")
    if not kind:
        return [field.required(path.child("type"), f"one of {', '.join(_PROFILES)}")]
    if kind not in _PROFILES:
        return [field.not_supported(path.child("type"), kind, _PROFILES)]
    if kind == "Localhost" and not local:
        return [field.required(here, "must be set when type is Localhost")]
    if kind != "Localhost" and local is not None:
        return [field.invalid(here, local, "may only be set when type is Localhost")]
    if is_path and local and (local.startswith("/") or ".." in local.split("/")):
        return [field.invalid(here, local, "must be a relative path without '..'")]
    return []


def _id(value: Any, path: field.Path) -> Errors:
    if value is None or 0 <= value <= _MAX_ID:
        return []
    return [field.invalid(path, value, f"must be between 0 and {_MAX_ID}, inclusive")]


_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")


def _sysctls(sysctls: Sequence[Json], path: field.Path) -> Errors:
    """LK-V-K26. Twice the same name is found by :mod:`app.hooks.sendable`."""
    errors: Errors = []
    for position, sysctl in enumerate(sysctls):
        name, here = sysctl.get("name") or "", path.index(position).child("name")
        if not name:
            errors.append(field.required(here))
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            errors.append(field.invalid(here, name, "must be the name of a sysctl, such as net.core.somaxconn"))
    return errors


def security_warnings(pod: Json, container: Json, pod_path: field.Path, container_path: field.Path) -> Iterator[Advice]:
    """LK-V-K24 and LK-V-K25: what Kubernetes takes and the kubelet then refuses."""
    user = container.get("runAsUser") if container.get("runAsUser") is not None else pod.get("runAsUser")
    strict = container.get("runAsNonRoot") if container.get("runAsNonRoot") is not None else pod.get("runAsNonRoot")
    if strict and user == 0:
        where = container_path if container.get("runAsUser") is not None else pod_path
        yield advice(where.child("runAsUser"), "0 contradicts runAsNonRoot: the container will not start")
    for value, path in ((pod, pod_path), (container, container_path)):
        if (value.get("windowsOptions") or {}).get("hostProcess"):
            message = "needs the node's network, which the pod does not have"
            yield advice(path.child("windowsOptions", "hostProcess"), message)


_LIFECYCLE_HANDLERS = ("exec", "httpGet", "sleep", "tcpSocket")


def lifecycle(value: Json, path: field.Path) -> Errors:
    """Each hook has exactly one handler, and a whole one; one that is not known here may be of a newer Kubernetes."""
    errors: Errors = []
    for name in ("postStart", "preStop"):
        hook, here = value.get(name), path.child(name)
        if hook is None:
            continue
        given = [key for key in _LIFECYCLE_HANDLERS if hook.get(key) is not None]
        if len(given) > 1:
            detail = f"{given[0]} is set as well; set exactly one of them"
            errors.append(field.forbidden(here.child(given[1]), detail))
        elif not given and not any(isinstance(item, Mapping) for item in hook.values()):
            errors.append(field.required(here, f"give one of {', '.join(_LIFECYCLE_HANDLERS)}"))
        for key in given:
            errors += handler(key, hook[key], here.child(key))
    return errors
