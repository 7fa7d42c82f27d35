"""``model.uri`` as Go's ``net/url`` parses and writes it, which is how the API stores it. Source: KS-3.7 and KS-7.5."""

import re
from urllib.parse import quote, unquote_to_bytes

from app.workload.address import Address

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_HOST_REFUSES = re.compile(r"[\x00-\x20#/?@\\^`{|}\x7f]")
_HOST_AS_WRITTEN = re.compile(r"[A-Za-z0-9\-._~]*")
_PATH_AS_WRITTEN = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/\[\]]|%[0-9A-Fa-f]{2})*")
_PATH_PLAIN = "-._~$&+,/:;=@"
"""Characters that Go leaves unescaped in a path, beside letters and digits."""


class InvalidURL(ValueError):
    """Go cannot parse the URL; the message follows a field path."""


def parse(text: str) -> Address:
    """Parse an address. Raises :class:`InvalidURL`."""
    if _CONTROL.search(text):
        raise InvalidURL("must not contain control characters")
    before, hash_, fragment = text.partition("#")
    scheme, rest = _split_scheme(before)
    rest, question, query = rest.partition("?")
    tail = question + query + (hash_ + _escape(fragment, fragment=True) if fragment else "")
    if not rest.startswith("/"):
        if scheme:
            return Address(f"{scheme}:{rest}{tail}")
        if ":" in rest.partition("/")[0]:
            raise InvalidURL("the first segment of the path must not contain a colon")
        return Address(_escape(rest) + tail)
    authority = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        host, slash, path = rest[2:].partition("/")
        rest = slash + path
        authority = "//" + _authority(host) if host or rest else ""
    start = f"{scheme}:" if scheme else ""
    return Address(f"{start}{authority}{_escape(rest)}{tail}")


def url_problem(text: str) -> str:
    """Return why Go cannot parse the URL, or an empty string."""
    try:
        parse(text)
    except InvalidURL as error:
        return str(error)
    return ""


def _split_scheme(text: str) -> tuple[str, str]:
    match = _SCHEME.match(text)
    if match:
        return match[1].lower(), text[match.end() :]
    if text.startswith(":"):
        raise InvalidURL("the scheme is required")
    return "", text


def _authority(text: str) -> str:
    """Check user and host, and return them as Go writes them."""
    user, at, host = text.rpartition("@")
    if at and not _USER.fullmatch(user):
        raise InvalidURL("the user must not contain special characters")
    _check_escapes(user)
    return user + at + _host(host)


def _host(host: str) -> str:
    if _HOST_AS_WRITTEN.fullmatch(host):
        return host
    if host.startswith("["):
        _, bracket, port = host.rpartition("]")
        if not bracket:
            raise InvalidURL("the host must have a closing bracket")
        _check_port(port)
        return host
    _check_port(host[host.rfind(":") :] if ":" in host else "")
    _check_escapes(host)
    if any(int(code, 16) < 0x80 and code != "25" for code in _ESCAPE.findall(host)):
        raise InvalidURL("the host must not contain percent escapes")
    refused = _HOST_REFUSES.search(host)
    if refused:
        raise InvalidURL(f"the host must not contain {refused[0]!r}")
    return quote(unquote_to_bytes(host), safe="-._~!$&'()*+,;=:[]<>\"")


def _check_port(text: str) -> None:
    """``text`` is empty or starts with the colon."""
    if text and not re.fullmatch(r":[0-9]*", text):
        raise InvalidURL(
            f"port {text[1:]!r} must be a number; an image needs a registry or a path before its tag, as in "
            "oci://registry/image:tag"
        )


def _check_escapes(text: str) -> None:
    bad = _BAD_ESCAPE.search(text)
    if bad:
        raise InvalidURL(
            f"{text[bad.start() : bad.start() + 3]!r} is not a percent escape; write a percent sign as %25"
        )


def _escape(text: str, fragment: bool = False) -> str:
    """Return a path or fragment as Go writes it: unchanged if it is well formed, otherwise escaped again."""
    if _PATH_AS_WRITTEN.fullmatch(text):
        return text
    _check_escapes(text)
    return quote(unquote_to_bytes(text), safe=_PATH_PLAIN + ("?!()*" if fragment else ""))
