"""The ``admission.k8s.io/v1`` protocol: requests and the two kinds of answers.

Source: HTTP-1. Every review is answered with HTTP 200 and its own uid; a denial carries a ``Status``
with one cause per mistake *and* all of them in its message: kubectl prints the causes only for a single object.
"""

from collections.abc import Sequence

import msgspec
import orjson
from msgspec import Raw

from app.kube import review
from app.kube.base import Json
from app.kube.field import Error, ErrorType, aggregate, and_more, go_quote, one_line
from app.kube.resource import CustomResource
from app.limits import MAX_SHOWN_ERRORS, MAX_WARNING_CHARACTERS, MAX_WARNINGS

API_VERSION = "admission.k8s.io/v1"


class GroupVersionKind(msgspec.Struct):
    """The kind of a rule of the webhook configuration; the user may have sent another version."""

    group: str = ""
    version: str = ""
    kind: str = ""


class ReviewedObject(msgspec.Struct, rename="camel"):
    """The object under review, before its parts are validated."""

    api_version: str = ""
    kind: str = ""
    metadata: Raw = Raw(b"null")
    spec: Raw = Raw(b"null")
    status: Raw = Raw(b"null")


class AdmissionRequest(msgspec.Struct, rename="camel"):
    """The request of a review. ``old_object`` is set on updates; ``name`` may be empty beside ``generateName``."""

    uid: str
    operation: str = ""
    kind: GroupVersionKind = msgspec.field(default_factory=GroupVersionKind)
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    object: ReviewedObject | None = None
    old_object: ReviewedObject | None = None


_REVIEWS = review.Envelope(API_VERSION, "AdmissionReview", AdmissionRequest)


def creation(resource: CustomResource, document: Json) -> bytes:
    """Encode the review that an API server sends before it stores a new object."""
    metadata = document["metadata"]
    request = {
        "uid": metadata["uid"],
        "operation": "CREATE",
        "kind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "name": metadata["name"],
        "namespace": metadata.get("namespace", ""),
        "object": document,
    }
    return orjson.dumps({"apiVersion": API_VERSION, "kind": "AdmissionReview", "request": request})


def decode(body: bytes) -> AdmissionRequest:
    """Decode the request of a review. Raises :class:`ProtocolError` if it cannot be answered by its uid."""
    return _REVIEWS.decode(body)


class ReviewAnswer(msgspec.Struct, frozen=True):
    """The encoded answer of a review, and the facts for metrics and the log."""

    body: bytes
    uid: str
    warnings: int = 0
    reasons: frozenset[str] = frozenset()
    """Of a denial: the types of its errors, or the reason why the whole review was refused."""

    @property
    def allowed(self) -> bool:
        return not self.reasons


def allow(uid: str, warnings: Sequence[str] = ()) -> ReviewAnswer:
    return _answer(uid, {"allowed": True}, warnings)


def deny(request: AdmissionRequest, name: str, errors: Sequence[Error], warnings: Sequence[str] = ()) -> ReviewAnswer:
    """Build the denial 422 ``Invalid`` with up to :data:`MAX_SHOWN_ERRORS` errors and the number of the others."""
    unique = list(dict.fromkeys(errors))
    shown = unique[:MAX_SHOWN_ERRORS]
    causes = [
        {"reason": error.type.value, "message": one_line(error.body), "field": one_line(str(error.path))}
        for error in shown
    ]
    if len(unique) > len(shown):
        more = and_more(len(unique) - len(shown))
        causes.append({"reason": ErrorType.INVALID.value, "message": more, "field": ""})
    kind = request.kind
    message = f"{kind.kind}.{kind.group} {go_quote(name)} is invalid: {aggregate(unique)}"
    status = {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": one_line(message),
        "details": {"group": kind.group, "kind": kind.kind, "name": one_line(name), "causes": causes},
    }
    reasons = frozenset(str(cause["reason"]) for cause in causes)
    return _answer(request.uid, {"allowed": False, "status": status}, warnings, reasons)


def refuse(uid: str, message: str) -> ReviewAnswer:
    """Build the denial 400 ``BadRequest``: the review contradicts itself or is about a kind that is not served."""
    status = {"status": "Failure", "code": 400, "reason": "BadRequest", "message": message}
    return _answer(uid, {"allowed": False, "status": status}, (), frozenset({"BadRequest"}))


def _answer(uid: str, response: Json, warnings: Sequence[str], reasons: frozenset[str] = frozenset()) -> ReviewAnswer:
    body, shown = {"uid": uid, **response}, [_bounded_line(text) for text in warnings[:MAX_WARNINGS]]
    if shown:
        body["warnings"] = shown
    return ReviewAnswer(_REVIEWS.encode(body), uid, len(shown), reasons)


def _bounded_line(text: str) -> str:
    """Make a warning one line of limited length, because it is sent in an HTTP header."""
    line = one_line(str(text))
    return line if len(line) <= MAX_WARNING_CHARACTERS else line[: MAX_WARNING_CHARACTERS - 1] + "…"
