"""Hook calls: HTTP as in Go's client, ETags, and the strict decoding of v2 responses (MC-1.2, MC-1.4, MC-1.5)."""

from __future__ import annotations

import asyncio
import base64
import email.utils
import json
import math
import re
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn
from urllib.parse import urlsplit

import httpx
import orjson

from app.kube.base import Json

from .api import Api, ApiError
from .objects import name_of, namespace_of

DEFAULT_TIMEOUT = 10.0
IDLE_CONNECTIONS, IDLE_SECONDS = 2, 90.0
"""Go keeps two idle connections to a host, for 90 s."""


class HookError(Exception):
    """The hook gave no usable response; the message goes into the parent's Event."""


class TooManyRequests(Exception):
    """The hook responded 429; `after` is its Retry-After in seconds."""

    def __init__(self, after: int) -> None:
        super().__init__(f"Too many request, it will be resync after: {after}")
        self.after = after


class ProcessDies(BaseException):
    """Metacontroller's process would crash here; must not be caught."""


class ConfigError(Exception):
    """The hook's configuration is invalid: the controller does not start."""


@dataclass
class SyncAnswer:
    """A decoded response of `sync` or `finalize`."""

    status: Json = field(default_factory=dict)
    children: list[Json | None] = field(default_factory=list)
    resync_after: float = 0.0
    finalized: bool = False


@dataclass(frozen=True)
class Connection:
    """The connection settings of a hook, resolved once when its controller starts (MC-1.6)."""

    ca_bundle: str = ""
    authorization: str = ""


class Webhook:
    """A hook of a controller."""

    def __init__(self, kind: str, spec: Mapping[str, Any], connection: Connection) -> None:
        webhook = spec["webhook"]
        self.kind = kind
        self.version = str(spec.get("version") or "v1")
        if self.version != "v2" and kind != "customize":
            raise ConfigError(f"{kind} hook: the stand-in speaks hook version v2 only, not {self.version}")
        self._url = webhook_url(webhook)
        self._timeout = _seconds(webhook.get("timeout"))
        self._strict = (webhook.get("responseUnMarshallMode") or "strict") == "strict"
        etag = webhook.get("etag") or {}
        self._tags: dict[tuple[str, str, str], tuple[str, bytes, float]] | None = {} if etag.get("enabled") else None
        self._tag_seconds = float(etag.get("cacheTimeoutSeconds") or math.inf)
        if self._tags is not None and "cacheTimeoutSeconds" in etag and "cacheCleanupSeconds" not in etag:
            # The real one dereferences nil here: the controller never starts, and there is no Event (t16).
            raise StartupPanic("etag.cacheTimeoutSeconds without cacheCleanupSeconds")
        headers = {"Content-Type": "application/json", "User-Agent": "Go-http-client/1.1", "Accept-Encoding": "gzip"}
        if connection.authorization:
            headers["Authorization"] = connection.authorization
        self._client = httpx.AsyncClient(
            verify=_tls(self._url, connection.ca_bundle),
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=IDLE_CONNECTIONS, keepalive_expiry=IDLE_SECONDS
            ),
            follow_redirects=True,
            max_redirects=10,
            timeout=httpx.Timeout(self._timeout),
            trust_env=False,
            headers=headers,
        )
        del self._client.headers["Accept"]

    async def close(self) -> None:
        """Close idle connections."""
        await self._client.aclose()

    async def call(self, parent: Json, body: bytes) -> bytes:
        """Return the body of an accepted response."""
        key = (str(parent["kind"]), namespace_of(parent), name_of(parent))
        cached = self._cached(key)
        headers = {"If-None-Match": cached[0]} if cached else {}
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._client.post(self._url, content=body, headers=headers)
        except (TimeoutError, httpx.HTTPError) as error:
            raise HookError(f'http error: Post "{self._url}": {_cause(error)}') from error
        if response.status_code == 429:
            raise TooManyRequests(_retry_after(response.headers.get("Retry-After", "")))
        if cached and response.status_code in (304, 412):
            return cached[1]
        if response.status_code != 200:
            text = response.content.decode(errors="replace")
            raise HookError(f"unsupported status code: {response.status_code} body: {text}")
        tag = response.headers.get("ETag")
        if self._tags is not None and tag:
            # Cached before it is decoded: a broken body is used again, too (MC-1.5).
            self._tags[key] = (tag, response.content, time.monotonic() + self._tag_seconds)
        return response.content

    def decode_sync(self, body: bytes) -> SyncAnswer:
        """Decode a `sync` or `finalize` response, or raise `HookError`."""
        decoded, unknown = self._decode(body, "CompositeHookResponse", _SYNC_FIELDS)
        for child in decoded.get("children") or []:
            self._check_child(child)
        self._complain(unknown)
        return SyncAnswer(
            status=decoded.get("status") or {},
            children=decoded.get("children") or [],
            resync_after=float(decoded.get("resyncAfterSeconds") or 0),
            finalized=bool(decoded.get("finalized")),
        )

    def decode_decorator(self, body: bytes) -> tuple[dict[str, str | None], dict[str, str | None]]:
        """Return labels and annotations of a DecoratorController's response, or raise `HookError`."""
        decoded, unknown = self._decode(body, "DecoratorHookResponse", _DECORATOR_FIELDS)
        self._complain(unknown)
        if decoded.get("status") is not None or decoded.get("attachments") or decoded.get("finalized"):
            self._refuse("the stand-in writes labels and annotations only")
        return decoded.get("labels") or {}, decoded.get("annotations") or {}

    def decode_customize(self, body: bytes) -> list[Json | None]:
        """Return the rules of a `customize` response, or raise `HookError`."""
        decoded, unknown = self._decode(body, "CustomizeHookResponse", _CUSTOMIZE_FIELDS)
        rules = decoded.get("relatedResources") or []
        for index, rule in enumerate(rules):
            if isinstance(rule, dict):
                unknown += [
                    f'unknown field "relatedResources[{index}].{key}"' for key in rule if key not in _RULE_FIELDS
                ]
        self._complain(unknown)
        return list(rules)

    def _cached(self, key: tuple[str, str, str]) -> tuple[str, bytes] | None:
        entry = self._tags.get(key) if self._tags is not None else None
        if entry is None or entry[2] < time.monotonic():
            return None
        return entry[0], entry[1]

    def _decode(self, body: bytes, type_name: str, fields: Mapping[str, tuple[type, ...]]) -> tuple[Json, list[str]]:
        pairs: list[tuple[str, Any]] = []

        def remember(members: list[tuple[str, Any]]) -> Json:
            # The outermost object is closed last, so its keys, including duplicates, are what remains here.
            nonlocal pairs
            pairs = members
            return dict(members)

        try:
            decoded = json.loads(body, object_pairs_hook=remember, parse_constant=_no_constant)
        except ValueError as error:
            self._refuse(_syntax_error(body, error))
        if decoded is None:
            return {}, []
        if not isinstance(decoded, dict):
            self._refuse(f"json: cannot unmarshal {_json_type(decoded)} into Go value of type v2.{type_name}")
        problems = []
        seen = set()
        for key, value in pairs:
            if key not in fields:
                problems.append(f'unknown field "{key}"')
            elif key in seen:
                problems.append(f'duplicate field "{key}"')
            elif value is not None and (not isinstance(value, fields[key]) or _bool_for_number(value, fields[key])):
                self._refuse(
                    f"json: cannot unmarshal {_json_type(value)} into Go struct field "
                    f"{type_name}.{key} of type {_GO_TYPES[key]}"
                )
            seen.add(key)
        return decoded, list(dict.fromkeys(problems))

    def _check_child(self, child: Any) -> None:
        if child is None:
            return
        if not isinstance(child, dict):
            self._refuse(f"json: cannot unmarshal {_json_type(child)} into Go value of type map[string]interface {{}}")
        if not isinstance(child.get("kind"), str) or not child["kind"]:
            self._refuse(f"Object 'Kind' is missing in '{orjson.dumps(child).decode()}'")

    def _complain(self, problems: list[str]) -> None:
        if problems and self._strict:
            text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise HookError(
                f"strict validation failed for {self.version} webhookResponse (type: {self.kind}, mode: strict): {text}"
            )

    def _refuse(self, text: str) -> NoReturn:
        raise HookError(f"can't unmarshal webhookResponse (version: {self.version}, type: {self.kind}): {text}")


class StartupPanic(Exception):
    """Metacontroller panics while it builds the controller; the user is not informed."""


_SYNC_FIELDS: dict[str, tuple[type, ...]] = {
    "status": (dict,),
    "children": (list,),
    "resyncAfterSeconds": (int, float),
    "finalized": (bool,),
}
_CUSTOMIZE_FIELDS: dict[str, tuple[type, ...]] = {"relatedResources": (list,)}
_DECORATOR_FIELDS: dict[str, tuple[type, ...]] = {
    "labels": (dict,),
    "annotations": (dict,),
    "status": (dict,),
    "attachments": (list,),
    "resyncAfterSeconds": (int, float),
    "finalized": (bool,),
}
_RULE_FIELDS = frozenset({"apiVersion", "resource", "labelSelector", "namespaceSelector", "namespace", "names"})
_GO_TYPES = {
    "status": "map[string]interface {}",
    "children": "[]*unstructured.Unstructured",
    "attachments": "[]*unstructured.Unstructured",
    "labels": "map[string]*string",
    "annotations": "map[string]*string",
    "resyncAfterSeconds": "float64",
    "finalized": "bool",
    "relatedResources": "[]*v1alpha1.RelatedResourceRule",
}


def webhook_url(webhook: Mapping[str, Any]) -> str:
    """Return the URL of a hook: `url`, or composed of `service` and `path` (MC-1.4)."""
    if webhook.get("url") is not None:
        return str(webhook["url"])
    service, path = webhook.get("service"), webhook.get("path")
    if not service or path is None:
        raise ConfigError("invalid webhook config: must specify either a full 'url', or both 'service' and 'path'")
    if not service.get("name") or not service.get("namespace"):
        raise ConfigError("invalid webhook config: 'service' must specify both 'name' and 'namespace'")
    scheme = service.get("protocol") or "http"
    return f"{scheme}://{service['name']}.{service['namespace']}:{service.get('port') or 80}{path}"


async def resolve(api: Api, webhook: Mapping[str, Any], endpoints: list[Json]) -> Connection:
    """Return the CA bundle and credentials of a hook: its own, or those of the endpoint for its host (MC-1.6)."""
    fields = ("caBundle", "clientTLS", "authorization", "basicAuth")
    chosen: Mapping[str, Any] = webhook
    if not any(webhook.get(name) for name in fields):
        chosen = next((entry for entry in endpoints if _same_host(entry["host"], webhook_url(webhook))), {})
    if chosen.get("clientTLS"):
        raise ConfigError("clientTLS is not part of the stand-in")
    if chosen.get("authorization") and chosen.get("basicAuth"):
        raise ConfigError("authorization and basicAuth are mutually exclusive")
    bundle = ""
    if chosen.get("caBundle"):
        try:
            bundle = await _ca_bundle(api, chosen["caBundle"])
        except ConfigError as error:
            raise ConfigError(f"can't resolve caBundle: {error}") from error
    authorization = ""
    if spec := chosen.get("authorization"):
        secret = await _read(api, "Secret", spec["secretRef"], "authorization")
        authorization = f"{(spec.get('type') or 'Bearer').strip()} {_secret_value(secret, spec['secretRef']['key'])}"
    elif spec := chosen.get("basicAuth"):
        secret = await _read(api, "Secret", spec["secretRef"], "basicAuth")
        user = _secret_value(secret, spec.get("usernameKey") or "username")
        password = _secret_value(secret, spec.get("passwordKey") or "password")
        authorization = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    return Connection(bundle, authorization)


async def _ca_bundle(api: Api, spec: Mapping[str, Any]) -> str:
    sources = [name for name in ("inline", "secretRef", "configMapRef") if spec.get(name) is not None]
    if not sources:
        raise ConfigError("caBundle is set but none of inline, secretRef, or configMapRef is specified")
    if len(sources) > 1:
        raise ConfigError(
            "caBundle has more than one source set: exactly one of inline, secretRef, or configMapRef must be specified"
        )
    if sources[0] == "inline":
        return str(spec["inline"])
    kind = "Secret" if sources[0] == "secretRef" else "ConfigMap"
    ref = spec[sources[0]]
    key = ref.get("key") or "ca.crt"
    data = (await _read(api, kind, ref, "caBundle")).get("data") or {}
    if key not in data:
        raise ConfigError(f'caBundle: key "{key}" not found in {kind} {ref["namespace"]}/{ref["name"]}')
    if not data[key]:
        raise ConfigError(f'caBundle: key "{key}" in {kind} {ref["namespace"]}/{ref["name"]} is empty')
    return base64.b64decode(data[key]).decode() if kind == "Secret" else str(data[key])


async def _read(api: Api, kind: str, ref: Mapping[str, Any], what: str) -> Json:
    path = f"/api/v1/namespaces/{ref['namespace']}/{kind.lower()}s/{ref['name']}"
    try:
        return dict(await api.request("GET", path))
    except ApiError as error:
        # The real one's cached client does not name the resource as the API server does.
        text = f'{kind} "{ref["name"]}" not found' if error.not_found else str(error)
        raise ConfigError(f"{what}: failed to get {kind} {ref['namespace']}/{ref['name']}: {text}") from error


def _secret_value(secret: Json, key: str) -> str:
    data = secret.get("data") or {}
    if key not in data:
        raise ConfigError(f'secret {namespace_of(secret)}/{name_of(secret)} does not contain key "{key}"')
    return base64.b64decode(data[key]).decode().strip()


def _same_host(host: str, url: str) -> bool:
    parts = urlsplit(url)
    default = {"http": 80, "https": 443}.get(parts.scheme)
    names = {parts.netloc.lower()}
    if parts.port in (None, default):
        names |= {str(parts.hostname), f"{parts.hostname}:{default}"}
    return host.lower() in names


def _tls(url: str, bundle: str) -> ssl.SSLContext | bool:
    if not url.startswith("https:"):
        return False
    if not bundle:
        return True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cadata=bundle)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError("no valid PEM-encoded certificates found in caBundle") from error
    return context


_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|ns|h|m|s)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def _seconds(text: str | None) -> float:
    total = sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(text or ""))
    return total if total > 0 and not str(text).startswith("-") else DEFAULT_TIMEOUT


def _retry_after(text: str) -> int:
    """Return whole seconds; a date counts from now, rounded up; anything else is 0 (MC-1.4)."""
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    try:
        then = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return 0
    return math.ceil(then.timestamp() - time.time())


def _cause(error: BaseException) -> str:
    """Return how Go's client would describe this error."""
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return "context deadline exceeded"
    if isinstance(error, httpx.RemoteProtocolError):
        return "EOF"
    text = str(error)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        unknown = ("unable to get local issuer", "self-signed", "self signed")
        if any(word in text for word in unknown):
            return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        return f"tls: failed to verify certificate: x509: {text}"
    if isinstance(error, httpx.ConnectError):
        return "dial tcp: connect: connection refused" if "refused" in text or "attempts failed" in text else text
    if isinstance(error, httpx.ReadError | httpx.WriteError):
        return "read: connection reset by peer"
    return text or type(error).__name__


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"invalid character '{name[0]}' looking for beginning of value")


def _syntax_error(body: bytes, error: ValueError) -> str:
    text = body.decode(errors="replace").strip()
    if not text:
        return "unexpected end of JSON input"
    if str(error).startswith("invalid character"):
        return str(error)
    if text[0] not in '{["-0123456789tfn':
        return f"invalid character '{text[0]}' looking for beginning of value"
    if isinstance(error, json.JSONDecodeError) and error.pos >= len(error.doc.rstrip()):
        return "unexpected end of JSON input"
    return f"invalid JSON: {error}"


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    names: dict[type, str] = {list: "array", dict: "object", str: "string", int: "number", float: "number"}
    return names.get(type(value), "null")


def _bool_for_number(value: Any, types: tuple[type, ...]) -> bool:
    return isinstance(value, bool) and bool not in types
