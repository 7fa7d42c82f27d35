"""Hosts that must not be fetched from, because they serve a node's credentials, in any spelling.

A name is judged as the URL has it; nothing is resolved. Downloaders map other characters onto ASCII (IDNA makes a dot
of ``。``), each in a different way, so a host must be ASCII.
"""

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from app.kube.regex import regex

_FORBIDDEN_NETWORKS = (
    ip_network("169.254.0.0/16"),
    ip_network("fe80::/10"),
    ip_network("fd00:ec2::/32"),  # AWS: instance metadata, pod identities and others
    ip_network("fd20:ce::254/128"),  # Google Cloud
    ip_network("fd00:c1::a9fe:a9fe/128"),  # Oracle Cloud
    ip_network("fd00:42::42/128"),  # Scaleway
    ip_network("100.100.100.200/32"),  # Alibaba Cloud
    ip_network("168.63.129.16/32"),  # Azure's host services
    ip_network("192.0.0.192/32"),  # Oracle Cloud
)
_FORBIDDEN_NAMES = regex(
    r"""(?:metadata|instance-data)(?:\.(?:.+\.)?internal)?
    | (?:.+\.)?(?:
        metadata\.(?:goog|packet\.net|platformequinix\.com|tencentyun\.com|cloud\.ibm\.com)
        | opc\.oraclecloud\.com
    )""",
    re.VERBOSE,
)
"""Metadata services of Google, Azure, AWS, Equinix, Tencent, IBM and Oracle, with the names below them."""
_IN_THE_END = tuple(ip_network(prefix) for prefix in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96"))
"""Prefixes whose last 32 bits are an IPv4 address: compatible, mapped, translated (SIIT), NAT64's well-known one."""
_LOCAL_NAT64 = ip_network("64:ff9b:1::/48")
_ISATAP = (0x00005EFE, 0x02005EFE)

_NAME = regex(r"[A-Za-z0-9._-]{1,253}")
_ZONE = regex(r"%(?:25)?[A-Za-z0-9._~-]+\Z")
FORBIDDEN = "is link-local or serves a cloud's metadata; use another host"
_PART = regex(r"0x[0-9a-f]*|[0-9]+")


def address_of(text: str) -> IPv4Address | IPv6Address | None:
    """Parse an IP address; ``None`` for any other text."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def refusal(host: str) -> str:
    """Return why a host, as it is written, must not be fetched from, in words that follow it, or an empty string."""
    return spelling_problem(host) or (FORBIDDEN if is_metadata_host(host) else "")


def spelling_problem(host: str) -> str:
    """Return why downloaders may read a host differently, or an empty string."""
    if ":" in host:
        try:
            IPv6Address(_ZONE.sub("", host))
        except ValueError:
            return "is not a valid IPv6 address"
        return ""
    if not host.isascii():
        return "must be ASCII; write an international name in punycode (xn--…)"
    if not _NAME.fullmatch(host):
        return "must be at most 253 letters, digits, '-', '_' and '.'"
    last = host.rstrip(".").rpartition(".")[2].lower()
    if _PART.fullmatch(last) and _short_form(host.lower().rstrip(".")) is None:
        return "ends in a number but is not a valid IPv4 address"
    return ""


def is_metadata_host(host: str) -> bool:
    name = host.lower().rstrip(".")
    return bool(_FORBIDDEN_NAMES.fullmatch(name)) or any(
        address in network
        for address in _addresses(name)
        for network in _FORBIDDEN_NETWORKS
        if network.version == address.version
    )


def _addresses(name: str) -> Iterator[IPv4Address | IPv6Address]:
    """Yield the address of a host, and each IPv4 address that a gateway may extract from an IPv6 address."""
    address = address_of(_ZONE.sub("", name)) or _short_form(name)
    if address is not None:
        yield address
    if isinstance(address, IPv6Address):
        yield from _carried(address)


def _carried(address: IPv6Address) -> Iterator[IPv4Address]:
    """Yield IPv4 addresses inside: of transition mechanisms, and of NAT64 with a prefix of any length (RFC 6052)."""
    last = IPv4Address(int(address) & 0xFFFFFFFF)
    if any(address in network for network in _IN_THE_END) or int(address) >> 32 & 0xFFFFFFFF in _ISATAP:
        yield last
    if address.sixtofour is not None:
        yield address.sixtofour
    yield from address.teredo or ()
    if address in _LOCAL_NAT64:
        yield last
        raw = address.packed[:8] + address.packed[9:]  # the ninth byte is always zero
        yield from (IPv4Address(raw[start : start + 4]) for start in (6, 7, 8))


def _short_form(name: str) -> IPv4Address | None:
    """Parse one to four numbers, the last of which fills the rest: ``169.254.43518``, ``0xa9fea9fe``."""
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


def allowed(host: str, entries: tuple[str, ...] | None) -> bool:
    """Return whether an allow-list has the host. ``*.example.com`` matches all hosts below; ``None`` allows all."""
    return entries is None or any(
        host.endswith(entry[1:].lower()) if entry.startswith("*.") else host == entry.lower() for entry in entries
    )
