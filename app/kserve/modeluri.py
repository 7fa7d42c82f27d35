"""``model.uri``: what Go's URL parser refuses or rewrites, and what cannot be fetched from.

The API stores a parsed URL, so a scheme arrives in lower case, a blank in the path as ``%20``, and a text that does not
parse cannot be decoded in the first place. Source: KS-3.7 and KS-7.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from urllib.parse import quote, unquote_to_bytes

from app.kube.hosts import refusal, without_port
from app.kube.names import is_dns1123_subdomain

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_HOST_REFUSES = re.compile(r"[\x00-\x20#/?@\\^`{|}\x7f]")
_PATH_AS_WRITTEN = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/\[\]]|%[0-9A-Fa-f]{2})*")
_PATH_PLAIN = "-._~$&+,/:;=@"
"""What Go leaves unescaped in a path, beside letters and digits."""


class InvalidURL(ValueError):
    """The text is no URL; the argument says why, in words that stand after a field path."""


@dataclass(frozen=True, slots=True)
class ModelURI:
    """A model's address, as the API server's Go types would write it back."""

    text: str
    scheme: str
    """In lower case; empty when there is none."""

    @property
    def rest(self) -> str:
        """What follows ``scheme://``."""
        return self.text.partition("://")[2]

    @property
    def has_authority(self) -> bool:
        """Whether the text has a ``://``, without which no storage is chosen."""
        return "://" in self.text


def parse(text: str) -> ModelURI:
    """The address in ``text``. Raises :class:`InvalidURL`."""
    if _CONTROL.search(text):
        raise InvalidURL("a URL must not contain control characters")
    before, hash_, fragment = text.partition("#")
    scheme, rest = _split_scheme(before)
    rest, question, query = rest.partition("?")
    tail = question + query + (hash_ + _escape(fragment, fragment=True) if fragment else "")
    if not rest.startswith("/"):
        if scheme:
            return ModelURI(f"{scheme}:{rest}{tail}", scheme)
        if ":" in rest.partition("/")[0]:
            raise InvalidURL("the part before the first slash must not contain a colon")
        return ModelURI(_escape(rest) + tail, "")
    authority = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        host, slash, path = rest[2:].partition("/")
        rest = slash + path
        authority = "//" + _authority(host) if host or rest else ""
    start = f"{scheme}:" if scheme else ""
    return ModelURI(f"{start}{authority}{_escape(rest)}{tail}", scheme)


def _split_scheme(text: str) -> tuple[str, str]:
    found = _SCHEME.match(text)
    if found:
        return found[1].lower(), text[found.end() :]
    if text.startswith(":"):
        raise InvalidURL("the scheme before the colon is missing")
    return "", text


def _authority(text: str) -> str:
    """User and host, checked and written back."""
    user, at, host = text.rpartition("@")
    if at and not _USER.fullmatch(user):
        raise InvalidURL("the user before the @ has characters that are not allowed there")
    _check_escapes(user)
    return user + at + _host(host)


def _host(host: str) -> str:
    if host.startswith("["):
        _, bracket, port = host.rpartition("]")
        if not bracket:
            raise InvalidURL("the bracket of the host is not closed")
        _check_port(port)
        return host
    _check_port(host[host.rfind(":") :] if ":" in host else "")
    _check_escapes(host)
    if any(int(code, 16) < 0x80 and code != "25" for code in _ESCAPE.findall(host)):
        raise InvalidURL("the host has an escaped character that is not allowed there")
    refused = _HOST_REFUSES.search(host)
    if refused:
        raise InvalidURL(f"the host must not contain {refused[0]!r}")
    return quote(unquote_to_bytes(host), safe="-._~!$&'()*+,;=:[]<>\"")


def _check_port(text: str) -> None:
    """``text`` is empty or begins with the colon."""
    if text and not re.fullmatch(r":[0-9]*", text):
        raise InvalidURL(
            f"what follows the last colon of the host, {text!r}, is not a port number; an image needs a registry or a "
            "path before its tag: oci://registry/image:tag"
        )


def _check_escapes(text: str) -> None:
    bad = _BAD_ESCAPE.search(text)
    if bad:
        raise InvalidURL(
            f"{text[bad.start() : bad.start() + 3]!r} is not a percent escape; write a percent sign as %25"
        )


def _escape(text: str, fragment: bool = False) -> str:
    """A path (or fragment) as it is written back: as it came where that is well formed, else escaped anew."""
    _check_escapes(text)
    if _PATH_AS_WRITTEN.fullmatch(text):
        return text
    return quote(unquote_to_bytes(text), safe=_PATH_PLAIN + ("?!()*" if fragment else ""))


# What follows the scheme: mistakes that would only show when Kubernetes refuses the pod, or when the download does not
# find a bucket (HTTP-X02, HTTP-X35 and HTTP-X36).


def url_problem(text: str) -> str:
    """Why the text is no URL, or an empty text."""
    try:
        parse(text)
    except InvalidURL as error:
        return str(error)
    return ""


def storage_problem(text: str, *, fetched: bool) -> str:
    """Why nothing can be had from the address, or an empty text; one that is no URL is :func:`url_problem`'s to tell.

    ``fetched``: whether the storage initializer has to know its scheme.
    """
    if url_problem(text):
        return ""
    uri = parse(text)
    if not uri.has_authority:
        return "the address needs a scheme, as in hf://organisation/model"
    if fetched and uri.scheme not in SCHEMES:
        return (
            f"{uri.scheme}:// is not supported, use {', '.join(f'{scheme}://' for scheme in SCHEMES)}; or set "
            "storageInitializer.enabled to false, if the container fetches the model itself"
        )
    return fetch_problem(uri) if fetched else host_problem(uri)


def fetch_problem(uri: ModelURI) -> str:
    """Why nothing can be fetched from an address of a known scheme, and what to write; empty where something may be."""
    check = _CHECKS.get(uri.scheme)
    found = host_problem(uri) or (check(uri.rest) if check is not None else "")
    if not found and ".." in uri.rest.split("/"):
        found = "the path must not contain '..'"
    return f"{found}; write {_FORMS[uri.scheme]}" if found else ""


def host_problem(uri: ModelURI) -> str:
    """Why nothing may be fetched from the address, whoever fetches, by its host; empty for schemes without one."""
    if uri.scheme not in ("http", "https", "oci"):
        return ""
    host = without_port(re.split(r"[/?#]", uri.rest, maxsplit=1)[0].rpartition("@")[2])
    problem = refusal(host)
    return f"host {host} {problem}" if host and problem else ""


def _claim(rest: str) -> str:
    claim, _, path = rest.partition("/")
    if not is_dns1123_subdomain(claim):
        return "pvc:// must be followed by the name of a PersistentVolumeClaim: lower case letters, digits, '-' and '.'"
    return "the path inside the claim must not begin with '/'" if path.startswith("/") else ""


def _bucket(rest: str) -> str:
    """Upper case letters pass: buckets from before 2018 have them, and so has a sample of upstream's."""
    bucket = rest.partition("/")[0]
    if not bucket:
        return "the bucket is missing"
    if "@" in bucket or ":" in bucket:
        return "an S3 address has no user and no port; put credentials in a Secret of the ServiceAccount"
    try:
        IPv4Address(bucket)
    except AddressValueError:
        return ""
    return "the name of a bucket cannot be an IP address"


_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}")


def _image(rest: str) -> str:
    if rest.startswith("/"):
        return "the registry is missing"
    _, at, digest = rest.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        return "the digest after the @ must be sha256: and 64 hexadecimal digits"
    return ""


_CHECKS: dict[str, Callable[[str], str]] = {"pvc": _claim, "s3": _bucket, "oci": _image}
_FORMS = {
    "hf": "hf://<organisation>/<model>",
    "s3": "s3://<bucket>/<path>",
    "pvc": "pvc://<claim>/<path in the volume>",
    "oci": "oci://<registry>/<image>:<tag>, or @sha256:<digest> in the tag's place",
}
SCHEMES = tuple(_FORMS)
"""Those that the storage initializer, or a mount, understands."""
