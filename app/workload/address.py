"""Addresses of models, and the checks of which each family's table of forms is made.

A family has one :class:`Form` for each kind of address that it takes. Source: KS-3.7, LK-2.1 and LZ-2.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from app.kube.hosts import refusal, without_port
from app.kube.names import is_dns1123_subdomain


@dataclass(frozen=True, slots=True)
class Address:
    """``<scheme>://<user>@<host>:<port>/<path>?<query>#<fragment>``, of which most parts may be absent."""

    text: str
    scheme: str
    """In lower case; empty when there is none."""

    @property
    def rest(self) -> str:
        """What follows ``://``."""
        return self.text.partition("://")[2]

    @property
    def has_authority(self) -> bool:
        """Whether there is a ``://``."""
        return "://" in self.text

    @property
    def head(self) -> str:
        """What stands before the first slash: a bucket, a claim, or a host with user and port."""
        return self.rest.partition("/")[0]

    @property
    def authority(self) -> str:
        """Host and port, without a user."""
        return _until(r"[/?#]", self.rest).rpartition("@")[2]

    @property
    def host(self) -> str:
        """The host in lower case, without user and port."""
        return without_port(self.authority).lower()

    @property
    def path(self) -> str:
        """What follows the first slash, without query and fragment."""
        return _until(r"[?#]", self.rest).partition("/")[2]


def _until(pattern: str, text: str) -> str:
    return re.split(pattern, text, maxsplit=1)[0]


def split(text: str) -> Address:
    """The address as it is written."""
    scheme, separator, _ = text.partition("://")
    return Address(text, scheme.lower() if separator else "")


Check = Callable[[Address], str]
"""Why an address cannot be used, or an empty string."""


@dataclass(frozen=True, slots=True)
class Form:
    """One form of address: how it is written, and the checks in their order."""

    example: str
    checks: tuple[Check, ...] = ()

    def problem(self, address: Address) -> str:
        """The first check that fails, and the form to write instead; empty where all pass."""
        found = next(filter(None, (check(address) for check in self.checks)), "")
        return f"{found}; write {self.example}" if found else ""


def head(name: str, rule: str = "", is_valid: Callable[[str], object] = bool) -> Check:
    """Return a check of the part before the first slash: ``rule`` says what it must be."""

    def check(address: Address) -> str:
        if not address.head:
            return f"the {name} is required"
        return "" if is_valid(address.head) else f"the {name} must be {rule}"

    return check


claim = head(
    "claim", "a valid PersistentVolumeClaim name: lower-case letters, digits, '-' and '.'", is_dns1123_subdomain
)


def anything(address: Address) -> str:
    """There is something behind ``://``."""
    return "" if address.rest else "what follows :// is required"


def path(address: Address) -> str:
    """There is something behind the first slash."""
    return "" if address.rest.partition("/")[2] else "the path is required"


def relative_path(address: Address) -> str:
    """One slash stands before the path."""
    return "the path must not start with '/'" if address.rest.partition("/")[2].startswith("/") else ""


def absolute_path(address: Address) -> str:
    """The path follows ``://`` at once."""
    return "" if address.rest.startswith("/") else "the path must be absolute"


def no_parent_directory(address: Address) -> str:
    """No segment of the path is ``..``; in the query of a URL it may be."""
    rest = _until(r"[?#]", address.rest) if address.scheme in ("http", "https") else address.rest
    return "the path must not contain '..'" if ".." in re.split(r"[/?#]", rest) else ""


def no_user(address: Address) -> str:
    """A password in an address would stand in the pod, in its status and in logs."""
    if "@" in _until(r"[/?#]", address.rest):
        return "the address must not contain a user or password; put credentials in a Secret of the ServiceAccount"
    return ""


def safe_host(address: Address) -> str:
    """The host is not link-local, and no metadata service of a cloud (:mod:`app.kube.hosts`)."""
    name = without_port(address.authority)
    found = refusal(name) if name else ""
    return f"host {name} {found}" if found else ""


HUB_HOSTS = ("huggingface.co", "www.huggingface.co", "hf.co")
_HUB_AREAS = frozenset(
    {"datasets", "spaces", "docs", "models", "api", "collections", "papers", "blog", "organizations"}
)
"""First segments of the Hub's own pages: what follows them is not the name of a model repository."""
_HUB_REPOSITORY = re.compile(r"([\w.-]+/[\w.-]+)(?:@([^/\s@]+))?(?:/(\S.*))?", re.ASCII)
_HUB_PAGE = re.compile(r"([\w.-]+/[\w.-]+?)/?(?:/(?:(?:resolve|blob)/([^/]+)|tree/([^/]+)(?:/.*)?)/?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class HubRepository:
    """A model repository on the Hugging Face Hub, or one file of it."""

    name: str
    """``owner/name``."""
    revision: str = ""
    """Branch, tag or commit; empty for the main branch."""
    file: str = ""


def hub_repository(address: Address) -> HubRepository | None:
    """The repository of ``hf://owner/name[@revision][/file]``, or of the address of its page in a browser.

    A page is that of the repository, a revision (``/resolve/``, ``/blob/``) or a folder (``/tree/``), not of a file.
    """
    if address.scheme == "hf":
        found = _HUB_REPOSITORY.fullmatch(address.rest)
        return HubRepository(found[1], found[2] or "", found[3] or "") if found else None
    page = _HUB_PAGE.fullmatch(address.path) if address.host in HUB_HOSTS else None
    if page is None or page[1].partition("/")[0] in _HUB_AREAS:
        return None
    revision = page[2] or page[3] or "main"
    return HubRepository(page[1], "" if revision == "main" else revision)
