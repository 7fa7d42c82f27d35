"""The envelope of admission and conversion reviews, which are answered with HTTP 200 and their uid."""

from typing import Any, Generic, Protocol, TypeVar, cast

import msgspec

from app.errors import ProtocolError
from app.kube.base import Json
from app.kube.reading.rawchecks import check_text
from app.limits import MAX_UID_CHARACTERS


class ReviewRequest(Protocol):
    uid: str


RequestT = TypeVar("RequestT", bound=ReviewRequest)


class _Review(msgspec.Struct, Generic[RequestT], rename="camel"):
    """A review. Its other fields, such as the user, have no effect."""

    api_version: str
    kind: str
    request: RequestT


class Envelope(Generic[RequestT]):
    def __init__(self, api_version: str, kind: str, request: type[RequestT]) -> None:
        self._type = {"apiVersion": api_version, "kind": kind}
        self._decoder = msgspec.json.Decoder(cast("Any", _Review)[request])

    def decode(self, body: bytes) -> RequestT:
        """Return the request of a review. Raises :class:`ProtocolError` if it cannot be answered by its uid."""
        api_version, kind = self._type.values()
        try:
            check_text(body)
            review: _Review[RequestT] = self._decoder.decode(body)
        except RecursionError:
            raise ProtocolError("the review is nested too deeply") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            article = "an" if kind.startswith("A") else "a"
            raise ProtocolError(f"not {article} {kind}: {str(error)[:200]}") from None
        if review.api_version != api_version or review.kind != kind:
            raise ProtocolError(f"only {api_version} {kind} is supported")
        uid = review.request.uid
        if not 0 < len(uid) <= MAX_UID_CHARACTERS or not uid.isprintable():
            raise ProtocolError("request.uid is missing or unusable")
        return review.request

    def encode(self, response: Json) -> bytes:
        return msgspec.json.encode({**self._type, "response": response})
