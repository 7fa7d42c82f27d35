"""Rules between the fields of a container: its environment, probes, ports and privileges."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.kube import field
from app.kube.names import key_problem
from app.kube.regex import regex
from app.workload.rules.fieldrules import Errors, Json, Rule, is_port_name, matching, members, not_empty, port_number

_RESOURCES = ("cpu", "memory", "ephemeral-storage")
header_name = matching(re.compile(r"[-A-Za-z0-9!#$%&'*+.^_`|~]+").fullmatch, "must be the name of an HTTP header")
"""Require the name of an HTTP header (LK-V-K15)."""


def variable(value: Json, path: field.Path) -> Errors:
    """Reject a variable with both a value and a source (LK-V-K02)."""
    if value.get("value") and value.get("valueFrom") is not None:
        yield field.invalid(path.child("valueFrom"), "", "may not be set beside a value; remove one of them")


def variable_source(source: Json, path: field.Path) -> Errors:
    """Require exactly one source of a variable (LK-V-K03)."""
    if sum(value is not None for value in source.values()) != 1:
        detail = "give exactly one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef and fileKeyRef"
        yield field.invalid(path, "", detail)


def either(first: str, second: str) -> Rule:
    """Require exactly one of two fields, as of the references in ``envFrom`` (LK-V-K36)."""

    def check(value: Json, path: field.Path) -> Errors:
        names = [name for name in (first, second) if value.get(name) is not None]
        if len(names) > 1:
            yield field.forbidden(path.child(second), f"{first} is set as well; set one of them")
        elif not names:
            yield field.required(path, f"give {first} or {second}")

    return check


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
_SUBSCRIPT = regex(r"metadata\.(labels|annotations)\['([^']*)'\]")


def field_reference(reference: Json, path: field.Path) -> Errors:
    """Require a field that a variable can refer to (LK-V-K05). A downward API volume accepts others."""
    if reference.get("apiVersion") not in (None, "", "v1"):
        yield field.not_supported(path.child("apiVersion"), reference["apiVersion"], ["v1"])
    name, name_path = reference.get("fieldPath") or "", path.child("fieldPath")
    subscript = _SUBSCRIPT.fullmatch(name)
    if not name:
        yield field.required(name_path)
    elif subscript:
        if problem := key_problem(subscript[2]):
            yield field.invalid(name_path, name, problem)
    elif name not in _FIELD_PATHS:
        supported = (*_FIELD_PATHS, "metadata.labels['<key>']", "metadata.annotations['<key>']")
        yield field.not_supported(name_path, name, supported)


def is_native(resource: str) -> bool:
    return resource in _RESOURCES or resource.startswith("hugepages-")


def resource_reference(reference: Json, path: field.Path) -> Errors:
    """Require a resource that a variable can refer to (LK-V-K06). The divisor is checked with its type."""
    resource, resource_path = reference.get("resource") or "", path.child("resource")
    kind, _, name = resource.partition(".")
    if not resource:
        yield field.required(resource_path)
    elif kind not in ("limits", "requests") or not is_native(name):
        supported = [f"{kind}.{name}" for kind in ("limits", "requests") for name in _RESOURCES]
        is_device = "/" in name or "gpu" in name.lower()
        detail = "no variable can refer to devices" if is_device else ""
        yield field.not_supported(resource_path, resource, supported, detail, "" if is_device else None)


def one_handler(handlers: Sequence[str], detail: str = "") -> Rule:
    """Require one handler of a probe or hook (LK-V-K09, LK-V-K10). An unknown one may be of a newer Kubernetes."""

    def check(value: Json, path: field.Path) -> Errors:
        names = [name for name in handlers if value.get(name) is not None]
        if len(names) > 1:
            yield field.forbidden(path.child(names[1]), f"{names[0]} is set as well; set exactly one of them")
        elif not names and not any(isinstance(item, Mapping) for item in value.values()):
            yield field.required(path, f"give one of {', '.join(handlers)}{detail}")

    return check


readiness = members(terminationGracePeriodSeconds=matching(lambda _: False, "must not be set for readiness probes"))
"""Reject a termination grace period of a readiness probe, which never ends a container (LK-V-K13)."""
liveness = members(successThreshold=matching(lambda threshold: threshold <= 1, "must be 1"))
"""Require a success threshold of 1 of liveness and startup probes (LK-V-K12)."""


def port(value: int | str, path: field.Path) -> Errors:
    """Require a number, or the name of a port (LK-V-K14)."""
    if not isinstance(value, str):
        yield from port_number(value, path)
    elif not is_port_name(value):
        detail = "must be a number from 1 to 65535, or the name of a port of the container"
        if value.isdecimal():
            detail = field.Hint(f"{detail}; write {value} without quotes", value)
        yield field.invalid(path, value, detail)


def port_names(ports: Sequence[Json], path: field.Path) -> Errors:
    """Reject two ports of one name in a container."""
    first: dict[str, field.Path] = {}
    for item_path, item in path.each(ports):
        name, name_path = (item or {}).get("name"), item_path.child("name")
        if name in first and is_port_name(name):
            error = field.duplicate(name_path, name, "another port of the container has this name")
            yield replace(error, against=first[name])
        if name:
            first.setdefault(name, name_path)


def privilege_escalation(context: Json, path: field.Path) -> Errors:
    """Reject ``allowPrivilegeEscalation: false`` for privileged containers, which can escalate anyway (LK-V-K23)."""
    if context.get("allowPrivilegeEscalation") is not False:
        return
    escalation, added = path.child("allowPrivilegeEscalation"), (context.get("capabilities") or {}).get("add") or ()
    if context.get("privileged"):
        error = field.invalid(escalation, value=False, detail="must not be false when privileged is true")
        yield replace(error, against=path.child("privileged"))
    if "CAP_SYS_ADMIN" in added:
        error = field.invalid(escalation, value=False, detail="must not be false when CAP_SYS_ADMIN is added")
        yield replace(error, against=path.child("capabilities", "add"))


def local_profile(profile: Json, path: field.Path) -> Errors:
    """Require a profile of the node for type Localhost only (LK-V-K16, LK-V-K17)."""
    type_, local, local_path = profile.get("type"), profile.get("localhostProfile"), path.child("localhostProfile")
    if type_ == "Localhost" and not local:
        yield field.required(local_path, "must be set when type is Localhost")
    if type_ != "Localhost" and local is not None:
        yield field.invalid(local_path, local, "may only be set when type is Localhost")


_SYSCTL = regex(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
sysctl_name = not_empty(
    rule=matching(
        lambda name: len(name) <= 253 and _SYSCTL.fullmatch(name),
        "must be the name of a sysctl, such as net.core.somaxconn",
    )
)
"""Require the name of a sysctl (LK-V-K26). :mod:`app.hooks.sendable` finds duplicates."""

_SIDECAR_FIELDS = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")


def sidecar(container: Json, path: field.Path) -> Errors:
    """Require a restart policy for an init container with probes or hooks."""
    name = next((key for key in _SIDECAR_FIELDS if container.get(key) is not None), "")
    if name and not container.get("restartPolicy"):
        detail = f"{name} is for init containers that go on: set Always"
        yield replace(field.required(path.child("restartPolicy"), detail), against=path.child(name))
