"""Addresses of models, and the checks in each family's table of forms. Source: KS-3.7, LK-2.1 and LZ-2.2."""

import re
from collections.abc import Callable, Collection

import msgspec

from app.kube.field import Hint, did_you_mean
from app.kube.hosts import refusal
from app.kube.names import is_dns1123_subdomain
from app.kube.regex import regex
from app.kube.spelling import closest_name

HUB_HOSTS = ("huggingface.co", "www.huggingface.co", "hf.co")
_HUB_AREAS = frozenset(
    {"datasets", "spaces", "docs", "models", "api", "collections", "papers", "blog", "organizations"}
)
"""First segments of the Hub's own pages, which are not model repositories."""
_HUB_REPOSITORY = regex(r"([\w.-]+/[\w.-]+)(?:@([^/\s@]+))?(?:/(\S.*))?", re.ASCII)
_HUB_PAGE = regex(r"([\w.-]+/[\w.-]+?)/?(?:/(?:(?:resolve|blob)/([^/]+)|tree/([^/]+)(?:/.*)?)/?)?", re.ASCII)


class Address(msgspec.Struct, frozen=True):
    """``<scheme>://<user>@<host>:<port>/<path>?<query>#<fragment>``, of which most parts may be absent."""

    text: str

    @property
    def scheme(self) -> str:
        scheme, separator, _ = self.text.partition("://")
        return scheme.lower() if separator else ""

    @property
    def rest(self) -> str:
        return self.text.partition("://")[2]

    @property
    def head(self) -> str:
        """A bucket, a claim, or a host with user and port: everything before the first slash."""
        return self.rest.partition("/")[0]

    @property
    def key(self) -> str:
        """A key of a bucket, or a path in a claim: everything after the first slash."""
        return self.rest.partition("/")[2]

    @property
    def authority(self) -> str:
        """Host and port, without a user."""
        return _until(r"[/?#]", self.rest).rpartition("@")[2]

    @property
    def is_ambiguous(self) -> bool:
        """Return whether clients differ on the host: some read ``a#`` in ``a#@b`` as the user."""
        return "@" in self.head.removeprefix(_until(r"[/?#]", self.rest))

    @property
    def host(self) -> str:
        """The host in lower case, without user and port."""
        return without_port(self.authority).lower()

    @property
    def path(self) -> str:
        """The path of a URL, without the first slash, query and fragment."""
        return _until(r"[?#]", self.rest).partition("/")[2]


def without_port(authority: str) -> str:
    """Return the host of ``host:port`` or ``[address]:port``."""
    return authority[1:].partition("]")[0] if authority.startswith("[") else authority.partition(":")[0]


def _until(pattern: str, text: str) -> str:
    return re.split(pattern, text, maxsplit=1)[0]


Check = Callable[[Address], str]
"""Return why an address cannot be used; empty if it can."""


class Form(msgspec.Struct, frozen=True):
    example: str
    checks: tuple[Check, ...] = ()

    def problem(self, address: Address) -> str:
        """Return the first check that fails, with the form to write instead; empty if all pass."""
        problem = next(filter(None, (check(address) for check in self.checks)), "")
        return f"{problem}; write {self.example}" if problem else ""


def head(name: str, rule: str = "", is_valid: Callable[[str], object] = bool) -> Check:
    """Return a check of the part before the first slash: ``rule`` completes *must be*."""

    def check(address: Address) -> str:
        if not address.head:
            return f"the {name} is required"
        return "" if is_valid(address.head) else f"the {name} must be {rule}"

    return check


claim = head(
    "claim", "a valid PersistentVolumeClaim name: lower-case letters, digits, '-' and '.'", is_dns1123_subdomain
)


def matching(holds: Callable[[Address], object], problem: str) -> Check:
    return lambda address: "" if holds(address) else problem


anything = matching(lambda address: address.rest, "what follows :// is required")
path = matching(lambda address: address.key, "the path is required")
relative_path = matching(lambda address: not address.key.startswith("/"), "the path must not start with '/'")
absolute_path = matching(lambda address: address.rest.startswith("/"), "the path must be absolute")
no_user = matching(
    lambda address: "@" not in _until(r"[/?#]", address.rest),
    "the address must not contain a user or password; put credentials in a Secret of the ServiceAccount",
)
"""The pod, its status and logs would show the password."""


def no_parent_directory(address: Address) -> str:
    """Refuse ``..`` as a segment, except in the query of a URL."""
    rest = _until(r"[?#]", address.rest) if address.scheme in ("http", "https") else address.rest
    return "the path must not contain '..'" if ".." in re.split(r"[/?#]", rest) else ""


def safe_host(address: Address) -> str:
    """Refuse link-local hosts and the metadata services of clouds (:mod:`app.kube.hosts`)."""
    if address.is_ambiguous:
        return "the host is ambiguous"
    name = without_port(address.authority)
    problem = refusal(name) if name else ""
    return f"host {name} {problem}" if problem else ""


def spaces(text: str) -> str:
    """Return the warning about an address with spaces, which only names in a bucket may have; empty for others."""
    return "contains a space; remove it unless the name in the bucket has one" if " " in text else ""


def repository_and_tag(image: str) -> tuple[str, str]:
    """Return the repository of an image, without Docker Hub's name, and its tag; empty without one."""
    path, slash, name = image.partition("@")[0].removeprefix("docker.io/").rpartition("/")
    name, _, tag = name.partition(":")  # a colon before the last slash is that of a registry's port
    return f"{path}{slash}{name}", tag


_SNAPSHOT = regex(r"(?:.*/)?snapshots/[0-9a-f]{40}/?")


def linked(path: str) -> str:
    """Return why pods that mount only this directory find no files in it; empty if they may."""
    if not _SNAPSHOT.fullmatch(path):
        return ""
    reason = "a snapshot of the Hugging Face cache has links to the blobs beside it, which the pods do not mount"
    return f"{reason}; name a directory with the files themselves, as hf download --local-dir and cp -rL make one"


def untagged(image: str) -> str:
    """Return the warning about an image without tag and digest; empty for others."""
    name = image.rpartition("/")[2]
    return "" if {":", "@"} & set(name) else "no tag, so latest is pulled, which may change; add the tag or the digest"


def bucket_form(scheme: str, *checks: Check) -> Form:
    return Form(f"{scheme}://<bucket>/<path>", (*checks, no_parent_directory))


_OTHER_NAMES = {
    "docker": "oci",
    "file": "host",
    "gcs": "gs",
    "huggingface": "hf",
    "image": "oci",
    "s3a": "s3",
    "s3n": "s3",
}
"""Schemes by their names in other software."""
_LEAST_SCHEME = 3
"""Minimum length of schemes in which a slip is a typing error."""
_WRITTEN = regex(r"([A-Za-z][A-Za-z0-9+.-]*)(?::/*|//)([^/?\s][^?\s]*)")
"""An address with any number of slashes, or without the colon. A query is left out: messages do not repeat it."""


def scheme_hint(text: str, schemes: Collection[str], is_valid: Callable[[str], object]) -> Hint:
    """Return ``; did you mean s3://bucket/path?`` for ``s3:/bucket/path``, ``S3://…`` or ``s3a://…``.

    Empty unless that is a valid address.
    """
    match = _WRITTEN.fullmatch(text)
    scheme = scheme_meant(match[1].lower(), schemes) if match else ""
    if match is None or not scheme:
        return Hint()
    root = "/" if scheme in ("file", "host") else ""
    suggestion = f"{scheme}://{root}{match[2]}"
    return did_you_mean(suggestion) if suggestion != text and is_valid(suggestion) else Hint()


def scheme_meant(scheme: str, schemes: Collection[str]) -> str:
    """Return the scheme, or the one that another name or a typing error means; empty for an unknown scheme."""
    name = scheme if scheme in schemes else _OTHER_NAMES.get(scheme, "")
    if name not in schemes and len(scheme) >= _LEAST_SCHEME:
        name = closest_name(scheme, schemes)
    return name if name in schemes else ""


class HubRepository(msgspec.Struct, frozen=True):
    """A model repository on the Hugging Face Hub, or one file of it."""

    name: str
    """``owner/name``."""
    revision: str = ""
    """Branch, tag or commit; empty for the main branch."""
    file: str = ""


def hub_repository(address: Address) -> HubRepository | None:
    """Return the repository of ``hf://owner/name[@revision][/file]``, or of the address of its page in a browser.

    The page shows the repository, a revision (``/resolve/``, ``/blob/``) or a folder (``/tree/``), not a file.
    """
    if _OTHER_NAMES.get(address.scheme, address.scheme) == "hf":
        match = _HUB_REPOSITORY.fullmatch(address.rest)
        return HubRepository(match[1], match[2] or "", match[3] or "") if match else None
    page = _HUB_PAGE.fullmatch(address.path) if address.host in HUB_HOSTS else None
    if page is None or page[1].partition("/")[0] in _HUB_AREAS:
        return None
    revision = page[2] or page[3] or "main"
    return HubRepository(page[1], "" if revision == "main" else revision)
