"""The two calls that ``modelhooks certs --apply`` makes to an API server: read one object, patch one object.

The command runs in the service's image, which has no client package, so this uses the standard library. Commands on a
user's machine read a cluster through :mod:`app.desk.cluster.live`.
"""

import http.client
import json
import os
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from app.kube.base import Json
from app.limits import KUBE_API_SECONDS

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ApiError(Exception):
    """The API server refused a call."""


class ConflictError(ApiError):
    """The object has changed since it was read."""


def trusting(ca: str) -> ssl.SSLContext:
    """Verify by a cluster's CA, or by the system's where ``ca`` is empty, as kubectl and every Go client do.

    Python 3.13 began to insist on RFC 5280's form of a CA too. Those of EKS and MicroK8s, and many made by hand, have
    no keyUsage, and every other client accepts them.
    """
    context = ssl.create_default_context(cadata=ca or None)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


class Client:
    def __init__(self, url: str, ca: str, token: str) -> None:
        self._address = urlsplit(url)
        if self._address.scheme != "https":
            raise ApiError(f"{url} is not an https address, and a token must not travel in the clear")
        self._tls = trusting(ca)
        self._token = token

    @classmethod
    def in_cluster(cls) -> "Client":
        ca, token = SERVICE_ACCOUNT / "ca.crt", SERVICE_ACCOUNT / "token"
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host or not token.exists():
            raise ApiError("not in a pod with a service account; --kube-api names an API server elsewhere")
        bracketed = f"[{host}]" if ":" in host else host
        return cls(f"https://{bracketed}:{port}", ca.read_text(), token.read_text().strip())

    def get(self, path: str) -> Json | None:
        """Read one object; ``None`` if it does not exist."""
        return self._call("GET", path)

    def patch(self, path: str, patch: Json, merge: str = "merge") -> None:
        """Patch one object: ``merge`` replaces its lists, ``strategic-merge`` merges those of a built-in one."""
        self._call("PATCH", path, patch, f"application/{merge}-patch+json")

    def _call(self, method: str, path: str, body: Json | None = None, content_type: str = "") -> Json | None:
        host, port = self._address.hostname or "", self._address.port
        connection = http.client.HTTPSConnection(host, port, timeout=KUBE_API_SECONDS, context=self._tls)
        headers = {"Accept": "application/json", "Authorization": f"Bearer {self._token}"}
        payload, query = None, ""
        if body is not None:
            headers["Content-Type"] = content_type
            payload, query = json.dumps(body).encode(), "?fieldManager=modelhooks-certs"
        try:
            connection.request(method, self._address.path + path + query, payload, headers)
            response = connection.getresponse()
            return _answer(method, path, response.status, response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ApiError(f"{method} {path}: {error}") from error
        finally:
            connection.close()


def _answer(method: str, path: str, status: int, body: bytes) -> Json | None:
    if status == http.HTTPStatus.NOT_FOUND and method == "GET":
        return None
    if status >= http.HTTPStatus.BAD_REQUEST:
        refused = ConflictError if status == http.HTTPStatus.CONFLICT else ApiError
        raise refused(f"{method} {path}: {status}: {_reason(body)}")
    document = json.loads(body)
    if not isinstance(document, dict):
        raise ApiError(f"{method} {path}: the answer is not an object")
    return document


def _reason(body: bytes) -> object:
    """Return the server's message, never the whole body, which may be the Secret."""
    try:
        return json.loads(body)["message"]
    except (ValueError, KeyError, TypeError):
        return "no reason given"
