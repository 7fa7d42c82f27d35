"""Rules for one value of a pod, single and combined; the table in :mod:`app.workload.rules.podrules` applies them."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from app.kube import field, hosts
from app.kube.names import is_dns1123_label, is_dns1123_subdomain, is_label_value, key_problem, respelled
from app.kube.regex import regex

Json = Mapping[str, Any]
Errors = Iterable[field.Error]
Rule = Callable[[Any, field.Path], Errors]
_SERVICE_NAME = regex(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")


def all_of(*rules: Rule) -> Rule:
    return lambda value, path: (error for rule in rules for error in rule(value, path))


def each(rule: Rule) -> Rule:

    def check(items: Iterable[object], path: field.Path) -> Errors:
        for position, item in enumerate(items):
            if item is not None:
                yield from rule(item, path.index(position))

    return check


def members(**rules: Rule) -> Rule:
    """Check the members of an object, in this order."""

    def check(value: Json, path: field.Path) -> Errors:
        for name, rule in rules.items():
            if value.get(name) is not None:
                yield from rule(value[name], path.child(name))

    return check


def not_empty(detail: str = "", rule: Rule | None = None) -> Rule:

    def check(value: object, path: field.Path) -> Errors:
        if not value:
            return [field.required(path, detail)]
        return rule(value, path) if rule else []

    return check


def has(name: str, detail: str = "") -> Rule:
    """Require a member of an object that Kubernetes' schema has as optional."""
    return lambda value, path: [] if value.get(name) else [field.required(path.child(name), detail)]


def one_of(*supported: str, empty: bool = True) -> Rule:
    """Accept these strings and, as Kubernetes does for most fields, an empty one for the default."""
    accepted = (*supported, "") if empty else supported
    return lambda value, path: [] if value in accepted else [field.not_supported(path, value, supported)]


def between(lowest: int, highest: int) -> Rule:
    return matching(lambda value: lowest <= value <= highest, f"must be between {lowest} and {highest}, inclusive")


def at_least(lowest: int) -> Rule:
    return matching(lambda value: value >= lowest, f"must be at least {lowest}")


def at_most_items(limit: int) -> Rule:
    return lambda items, path: [field.too_many(path, len(items), limit)] if len(items) > limit else []


def forbidden(detail: str) -> Rule:
    return lambda value, path: [field.forbidden(path, detail)] if value else []


def matching(accepts: Callable[[Any], object], detail: str) -> Rule:
    return lambda value, path: [] if accepts(value) else [field.invalid(path, value, detail)]


def is_port_name(name: str) -> bool:
    """Return whether a port can have that name (``IANA_SVC_NAME``)."""
    return len(name) <= 15 and _SERVICE_NAME.fullmatch(name) is not None


def leaves_its_root(path: str) -> bool:
    return path.startswith("/") or ".." in path.split("/")


def object_name(name: str | None, path: field.Path) -> Errors:
    """Check the name of another object, or an empty string."""
    if name and not is_dns1123_subdomain(name):
        detail = "must be the name of an object: lower case letters, digits, '-' and '.'"
        yield field.invalid(path, name, field.with_hint(detail, field.name_meant(respelled(name.rpartition("/")[2]))))


dns_label = matching(
    lambda name: not name or is_dns1123_label(name), "must be at most 63 lower case letters, digits and '-'"
)
port_name = matching(
    lambda name: not name or is_port_name(name),
    "must be at most 15 lower case letters, digits and single '-' between them, with at least one letter",
)
label_value = matching(is_label_value, "must be a label value")
relative_path = matching(lambda path: not leaves_its_root(path), "must be a relative path without '..'")
ip = matching(hosts.address_of, "must be an IP address")
port_number = between(1, 65535)
user_id = between(0, 2**31 - 1)
key_name = matching(
    lambda key: len(key) <= 253 and re.fullmatch(r"[-._a-zA-Z0-9]+", key) and key != "." and not key.startswith(".."),
    "must be a key: letters, digits, '-', '_' and '.'",
)
"""A key of a Secret's or ConfigMap's data."""


def label_key(key: str, path: field.Path) -> Errors:
    problem = key_problem(key)
    return [field.invalid(path, key, problem)] if problem else []


def labels(values: Mapping[str, str | None], path: field.Path) -> Errors:
    detail = "must be at most 63 letters, digits, '-', '_' and '.', starting and ending with a letter or digit"
    for key, value in values.items():
        yield from label_key(key, path)
        if not is_label_value(value or ""):
            yield field.invalid(path.key(key), value, detail)
