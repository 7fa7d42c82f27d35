"""The ``apiextensions.k8s.io/v1`` conversion protocol: objects in, the same objects in the version asked for out.

The API server calls it for every read and write of an object in another version than the stored one, with whole lists.
Every review is answered with HTTP 200 and its own uid: with all of its objects, or with none and the reason.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import orjson
from msgspec import Raw

from app.kube.base import Json
from app.kube.review import Envelope

API_VERSION = "apiextensions.k8s.io/v1"


class ConversionError(Exception):
    """An object that cannot be converted; the text says what is in the way."""


Convert = Callable[[Json, str], Json]
"""An object and an API version to the object in that version. Raises :class:`ConversionError`."""


class ConversionRequest(msgspec.Struct):
    """Objects may be of any version, the one that is asked for too."""

    uid: str
    desired: str = msgspec.field(name="desiredAPIVersion")
    objects: list[Raw]


_REVIEWS = Envelope(API_VERSION, "ConversionReview", ConversionRequest)


def answer(convert: Convert, body: bytes) -> bytes:
    """The review's answer. Raises :class:`ProtocolError` when it cannot be answered by its uid."""
    request = _REVIEWS.decode(body)
    try:
        converted = [_converted(convert, raw, request.desired, n) for n, raw in enumerate(request.objects)]
    except ConversionError as error:
        return _REVIEWS.encode({"uid": request.uid, "result": {"status": "Failed", "message": str(error)}})
    return _REVIEWS.encode({"uid": request.uid, "convertedObjects": converted, "result": {"status": "Success"}})


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
