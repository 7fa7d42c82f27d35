"""The ``apiextensions.k8s.io/v1`` conversion protocol: objects in, the same objects in the version asked for out.

The API server calls it for every read and write of an object in another version than the stored one, with whole lists.
Every review is answered with HTTP 200 and its own uid: with all of its objects, or with none and the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import orjson
from msgspec import Raw

from app.errors import ProtocolError
from app.kube.limits import check_text

Json = dict[str, Any]

API_VERSION = "apiextensions.k8s.io/v1"
MAX_UID = 256


class ConversionError(Exception):
    """An object that cannot be converted; the text says what is in the way."""


Convert = Callable[[Json, str], Json]
"""An object and an API version to the object in that version. Raises :class:`ConversionError`."""


class ConversionRequest(msgspec.Struct):
    """Objects may be of any version, the one that is asked for too."""

    uid: str
    desired: str = msgspec.field(name="desiredAPIVersion")
    objects: list[Raw]


class ConversionReview(msgspec.Struct, rename="camel"):
    """The envelope."""

    api_version: str
    kind: str
    request: ConversionRequest


_DECODER = msgspec.json.Decoder(ConversionReview)
_ENCODER = msgspec.json.Encoder()


def answer(convert: Convert, body: bytes) -> bytes:
    """The review's answer. Raises :class:`ProtocolError` when it cannot be answered by its uid."""
    request = _decode(body)
    try:
        converted = [_converted(convert, raw, request.desired, n) for n, raw in enumerate(request.objects)]
    except ConversionError as error:
        return _encode({"uid": request.uid, "result": {"status": "Failed", "message": str(error)}})
    return _encode({"uid": request.uid, "convertedObjects": converted, "result": {"status": "Success"}})


def _decode(body: bytes) -> ConversionRequest:
    try:
        check_text(body)
        review = _DECODER.decode(body)
    except RecursionError:
        raise ProtocolError("the review is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(f"not a ConversionReview: {str(error)[:200]}") from None
    if review.api_version != API_VERSION or review.kind != "ConversionReview":
        raise ProtocolError(f"only {API_VERSION} ConversionReview is supported")
    uid = review.request.uid
    if not 0 < len(uid) <= MAX_UID or not uid.isprintable():
        raise ProtocolError("request.uid is missing or unusable")
    return review.request


def _converted(convert: Convert, raw: Raw, api_version: str, position: int) -> Raw:
    """One object; one that is of the version already goes back byte for byte."""
    where = f"objects[{position}]"
    try:
        document = orjson.loads(memoryview(raw))
    except orjson.JSONDecodeError as error:
        raise ConversionError(f"{where}: not valid JSON: {error.msg}") from None
    if not isinstance(document, dict):
        raise ConversionError(f"{where}: not an object")
    where = f"{where} ({_name(document)})"
    try:
        converted = convert(document, api_version)
        return raw if converted is document else Raw(orjson.dumps(converted))
    except ConversionError as error:
        raise ConversionError(f"{where}: {error}") from None
    except (TypeError, RecursionError):  # orjson has a type error of its own for it
        raise ConversionError(f"{where}: nested too deeply") from None


def _name(document: Json) -> str:
    """Kind, namespace and name, as far as they are texts."""
    metadata = document.get("metadata")
    parts = [metadata.get(key) for key in ("namespace", "name")] if isinstance(metadata, dict) else []
    name = "/".join(part for part in parts if isinstance(part, str) and part)
    return f"{document.get('kind')} {name}"[:400]


def _encode(response: Json) -> bytes:
    return _ENCODER.encode({"apiVersion": API_VERSION, "kind": "ConversionReview", "response": response})
