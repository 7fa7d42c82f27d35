"""Names, labels and annotation keys with Kubernetes' limits. Every object name goes through :func:`fit`."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from app.kube import field
from app.kube.regex import regex

LABEL_MAX = 63
"""Maximum length of a DNS label, a label value and (RFC 1035) a Service name."""
SUBDOMAIN_MAX = 253

_HASH_DIGITS = 8
_LABEL = regex(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SUBDOMAIN = regex(SUBDOMAIN)
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
IMAGE_REPOSITORY, IMAGE_TAG = rf"{_PART}(?:/{_PART})*", r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
IMAGE_DIGEST = r"(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})"
"""Parts of an image's name, behind the registry."""


def groups_with_workers(name: str) -> int:
    """Return how many groups a LeaderWorkerSet of this name can have, for whose workers there are StatefulSets.

    A label of their pods has the name, the number of the group and a hash of up to ten characters.
    """
    room = LABEL_MAX - len(f"{name}--0123456789")
    return 10**room if room > 0 else 0


def fit(name: str, limit: int = LABEL_MAX) -> str:
    """Return ``name``, or if it is too long its beginning and a hash, so that different names stay different."""
    if len(name) <= limit:
        return name
    return f"{name[: limit - _HASH_DIGITS - 1].rstrip('-.')}-{short_hash(name)}"


def short_hash(text: str, digits: int = _HASH_DIGITS) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def is_dns1123_label(name: str) -> bool:
    return len(name) <= LABEL_MAX and _LABEL.fullmatch(name) is not None


def is_dns1035_label(name: str) -> bool:
    """Return whether a Service can have the name: it starts with a letter."""
    return is_dns1123_label(name) and name[0].isalpha()


def is_dns1123_subdomain(name: str) -> bool:
    """Return whether most kinds of objects can have the name."""
    return len(name) <= SUBDOMAIN_MAX and _SUBDOMAIN.fullmatch(name) is not None


CONTROLLER_UID = "controller-uid"
"""Label that Metacontroller puts on every child (``generateSelector``); never set here."""
METACONTROLLER_PREFIX = "metacontroller.k8s.io/"
LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"
"""Annotation in which Metacontroller records the last answer of the hook (dynamic apply)."""

ANNOTATIONS_MAX = 256 * 1024
"""Maximum size of all annotations of an object together, in bytes."""

_QUALIFIED = regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LABEL_TOO_LONG = f"must be no more than {LABEL_MAX} characters"
_QUALIFIED_DETAIL = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)


def is_label_value(value: str) -> bool:
    return value == "" or (len(value) <= LABEL_MAX and _QUALIFIED.fullmatch(value) is not None)


def key_problem(key: str) -> str:
    """Return why ``key`` is not a qualified name (``prefix/name``), or an empty string."""
    prefix, slash, name = key.rpartition("/")
    if slash and not is_dns1123_subdomain(prefix):
        return "prefix part must be a lower case DNS subdomain of at most 253 characters"
    if len(name) > LABEL_MAX:
        return f"name part {_LABEL_TOO_LONG}"
    return "" if _QUALIFIED.fullmatch(name) else f"name part {_QUALIFIED_DETAIL}"


def validate_labels(labels: Mapping[str, str | None], path: field.Path) -> Iterator[field.Error]:
    """Yield the errors of keys and values, as on any object; ``null`` is not a value."""
    yield from _key_errors(labels, path, key_problem)
    for key, value in labels.items():
        if value and not is_label_value(value):
            detail = _LABEL_TOO_LONG if len(value) > LABEL_MAX else f"a valid label {_QUALIFIED_DETAIL}"
            yield field.invalid(path.key(key), value, detail)


def respelled(name: str) -> str:
    """Return a name in the characters that an object's may have; empty if that is not a name either."""
    plain = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")
    return plain if is_dns1123_subdomain(plain) else ""


def validate_annotation_keys(annotations: Iterable[str], path: field.Path) -> Iterator[field.Error]:
    """Yield the errors of keys, whose case Kubernetes ignores; an annotation's value is free text."""
    return _key_errors(annotations, path, lambda key: key_problem(key.lower()))


def _key_errors(keys: Iterable[str], path: field.Path, problem_of: Callable[[str], str]) -> Iterator[field.Error]:
    for key in keys:
        if problem := problem_of(key):
            yield field.invalid(path, key, problem)
    yield from reserved_keys(keys, path)


def reserved_keys(keys: Iterable[str], path: field.Path) -> Iterator[field.Error]:
    for key in keys:
        if is_reserved(key):
            yield field.forbidden(path.key(key), "the key is reserved for Metacontroller; remove it")


def is_reserved(key: str) -> bool:
    return key == CONTROLLER_UID or key.startswith(METACONTROLLER_PREFIX)
