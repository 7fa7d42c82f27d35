"""Names with Kubernetes' limits. Every object name of ours goes through :func:`fit`."""

import hashlib
import re

LABEL_MAX = 63
"""Length of a DNS label, a label value and (RFC 1035) a Service name."""
SUBDOMAIN_MAX = 253

_HASH_DIGITS = 8
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SUBDOMAIN = re.compile(SUBDOMAIN)


def fit(name: str, limit: int = LABEL_MAX) -> str:
    """``name``, or when it is too long its beginning and a hash of the whole, ``limit`` characters at most.

    Two different names never give the same result by being cut.
    """
    if len(name) <= limit:
        return name
    return f"{name[: limit - _HASH_DIGITS - 1].rstrip('-.')}-{short_hash(name)}"


def short_hash(text: str, digits: int = _HASH_DIGITS) -> str:
    """The first hexadecimal digits of the text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def is_dns1123_label(name: str) -> bool:
    return len(name) <= LABEL_MAX and _LABEL.fullmatch(name) is not None


def is_dns1035_label(name: str) -> bool:
    """What the name of a Service must be: it starts with a letter."""
    return len(name) <= LABEL_MAX and _LABEL_1035.fullmatch(name) is not None


def is_dns1123_subdomain(name: str) -> bool:
    """What most object names must be."""
    return len(name) <= SUBDOMAIN_MAX and _SUBDOMAIN.fullmatch(name) is not None
