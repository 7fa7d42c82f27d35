"""Which hosts a Model may come from: never the ones that hand out a node's credentials, else what the operator lists.

Source: llmkube spec V-M09 and T-23. A name is judged by what stands in the URL; nothing is resolved.
"""

from __future__ import annotations

import re
import unicodedata
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import unquote

_FORBIDDEN_NETWORKS = (
    ip_network("169.254.0.0/16"),
    ip_network("fe80::/10"),
    ip_network("fd00:ec2::254/128"),  # AWS over IPv6
    ip_network("fd20:ce::254/128"),  # Google Cloud over IPv6
    ip_network("100.100.100.200/32"),  # Alibaba Cloud
    ip_network("168.63.129.16/32"),  # Azure's host services
    ip_network("192.0.0.192/32"),  # Oracle Cloud
)
_CARRIERS = (ip_network("64:ff9b::/96"), ip_network("::/96"))
_FORBIDDEN_NAMES = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}
)


def is_metadata_host(host: str) -> bool:
    """Whether the host is link-local or a cloud's metadata service, in any spelling that a downloader understands."""
    name = unicodedata.normalize("NFKC", unquote(host)).lower().rstrip(".")
    if name in _FORBIDDEN_NAMES:
        return True
    address = _address(name)
    return address is not None and any(
        address in network for network in _FORBIDDEN_NETWORKS if network.version == address.version
    )


def _address(name: str) -> IPv4Address | IPv6Address | None:
    """The address that a host is, also as one number, in octal or hexadecimal, or as IPv4 inside IPv6."""
    try:
        address = ip_address(name.partition("%")[0])
    except ValueError:
        return _short_form(name)
    if isinstance(address, IPv6Address):
        return address.ipv4_mapped or address.sixtofour or _translated(address)
    return address


_PART = re.compile(r"0x[0-9a-f]*|[0-9]+")


def _short_form(name: str) -> IPv4Address | None:
    """One to four numbers, the last of which fills what remains: ``169.254.43518``, ``0xa9fea9fe``."""
    parts = name.split(".")
    if len(parts) > 4 or not all(_PART.fullmatch(part) for part in parts):
        return None
    try:
        *heads, last = (_number(part) for part in parts)
    except ValueError:
        return None
    if any(head > 255 for head in heads) or last >= 1 << 8 * (4 - len(heads)):
        return None
    value = last
    for position, head in enumerate(heads):
        value |= head << 8 * (3 - position)
    return IPv4Address(value)


def _number(part: str) -> int:
    if part.startswith("0x"):
        return int(part[2:] or "0", 16)
    return int(part, 8) if part.startswith("0") else int(part)


def _translated(address: IPv6Address) -> IPv4Address | IPv6Address:
    """NAT64's well-known prefix, and the old form without any, carry an IPv4 address in their last 32 bits."""
    carries = any(address in network for network in _CARRIERS)
    return IPv4Address(int(address) & 0xFFFFFFFF) if carries else address


def allowed(host: str, entries: tuple[str, ...] | None) -> bool:
    """Whether an allow-list lets the host pass. ``*.example.com`` stands for all hosts below; ``None`` allows all."""
    if entries is None:
        return True
    return any(
        host.endswith(entry[1:].lower()) if entry.startswith("*.") else host == entry.lower() for entry in entries
    )
