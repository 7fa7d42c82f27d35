"""The ``apiextensions.k8s.io/v1`` conversion protocol: convert custom resources between their API versions.

The API server posts a ConversionReview for every read and write of an object in a version that is not the stored one; a
list arrives in one review. The answer is always HTTP 200 with the uid of the review, and has all objects or an error.
"""

from collections.abc import Callable

import msgspec
import orjson
from msgspec import Raw

from app.kube.base import Json
from app.kube.reading.rawchecks import TOO_DEEP, MetadataParts, depth_exceeds
from app.kube.review import Envelope
from app.limits import MAX_ANNOTATIONS_BYTES, MAX_CONVERTED_OBJECTS, MAX_CONVERTED_VALUES, MAX_SPEC_VALUES

API_VERSION = "apiextensions.k8s.io/v1"
ABSENT = Raw(b"null")
Convert = Callable[[Json, str], Json]
"""Convert an object to an API version. Raises :class:`ConversionError`."""


class ConversionError(Exception):
    """An object that cannot be converted, with the reason for the user."""


class ConversionRequest(msgspec.Struct):
    """The request of a review. The objects may be of several versions, the desired one included."""

    uid: str
    desired: str = msgspec.field(name="desiredAPIVersion")
    objects: Raw


class Metadata(MetadataParts, omit_defaults=True):
    """The metadata of an object, not decoded. Conversion changes the annotations only."""

    annotations: Raw = ABSENT
    self_link: Raw = ABSENT
    resource_version: Raw = ABSENT
    deletion_grace_period_seconds: Raw = ABSENT
    managed_fields: Raw = ABSENT


class VersionedObject(msgspec.Struct, rename="camel", omit_defaults=True):
    """A custom resource, of which only the type is decoded."""

    api_version: str
    kind: str
    metadata: Raw
    spec: Raw = ABSENT
    status: Raw = ABSENT


class _Name(msgspec.Struct):
    name: str = ""
    namespace: str = ""


_REVIEWS = Envelope(API_VERSION, "ConversionReview", ConversionRequest)
_OBJECTS = msgspec.json.Decoder(list[VersionedObject])
_METADATA = msgspec.json.Decoder(Metadata)
_NAME = msgspec.json.Decoder(_Name)
_ANNOTATIONS = msgspec.json.Decoder(dict[str, str] | None)


def answer(convert: Convert, body: bytes) -> bytes:
    """Answer a review. Raises :class:`ProtocolError` if the request has no usable uid."""
    request = _REVIEWS.decode(body)
    try:
        converted = _convert_list(convert, request)
    except ConversionError as error:
        return _REVIEWS.encode({"uid": request.uid, "result": {"status": "Failed", "message": str(error)}})
    return _REVIEWS.encode({"uid": request.uid, "convertedObjects": converted, "result": {"status": "Success"}})


def _convert_list(convert: Convert, request: ConversionRequest) -> Raw:
    """Return the converted objects as JSON. Each is encoded at once: decoded, all of them take much more memory."""
    try:
        objects = _OBJECTS.decode(request.objects)
    except msgspec.DecodeError as error:
        raise ConversionError(f"objects: {error}") from None
    if len(objects) > MAX_CONVERTED_OBJECTS:
        raise ConversionError(f"objects: must have at most {MAX_CONVERTED_OBJECTS} items; list fewer objects at once")
    result, values = bytearray(b"["), 0
    for position, item in enumerate(objects):
        try:
            metadata = _METADATA.decode(item.metadata)
            values += _count_values(item.spec) + _count_values(metadata.annotations)
            converted = _convert_object(convert, item, metadata, request.desired)
            _check_total(values)
        except (ConversionError, msgspec.DecodeError, orjson.JSONDecodeError) as error:
            raise ConversionError(f"objects[{position}] ({_describe(item)}): {error}") from None
        result += b"," * (position > 0) + msgspec.json.encode(converted)
    return Raw(bytes(result + b"]"))


def _convert_object(convert: Convert, item: VersionedObject, metadata: Metadata, api_version: str) -> VersionedObject:
    if item.api_version == api_version:
        return item
    _check_size(item.spec, metadata.annotations)
    annotations = _ANNOTATIONS.decode(metadata.annotations)
    document: Json = {"apiVersion": item.api_version, "kind": item.kind, "metadata": {"annotations": annotations}}
    converted = convert({**document, "spec": orjson.loads(memoryview(item.spec))}, api_version)
    if converted["metadata"] != document["metadata"]:
        metadata.annotations = _encode(converted["metadata"].get("annotations"))
    spec = _encode(converted["spec"])
    return VersionedObject(api_version, item.kind, Raw(msgspec.json.encode(metadata)), spec, item.status)


def _encode(value: Json | None) -> Raw:
    return ABSENT if value is None else Raw(orjson.dumps(value))


def _check_size(spec: Raw, annotations: Raw) -> None:
    """Raise :class:`ConversionError` for an object that a sync would not read either, so that none takes long."""
    if _count_values(spec) > MAX_SPEC_VALUES:
        raise ConversionError(f"spec: must have at most {MAX_SPEC_VALUES} values")
    if depth_exceeds(spec):
        raise ConversionError(f"spec: {TOO_DEEP}")
    if memoryview(annotations).nbytes > MAX_ANNOTATIONS_BYTES:
        raise ConversionError(f"metadata.annotations: must have at most {MAX_ANNOTATIONS_BYTES} bytes")


def _check_total(values: int) -> None:
    if values > MAX_CONVERTED_VALUES:
        raise ConversionError(f"more than {MAX_CONVERTED_VALUES} values up to this object; list fewer at once")


def _count_values(raw: Raw) -> int:
    """Return an upper bound of the number of values: punctuation inside strings counts, too."""
    return sum(map(bytes(raw).count, (b",", b"{", b"[")))


def _describe(item: VersionedObject) -> str:
    try:
        metadata = _NAME.decode(item.metadata)
    except msgspec.DecodeError:
        return item.kind[:400]
    return f"{item.kind} {'/'.join(filter(None, (metadata.namespace, metadata.name)))}"[:400].rstrip()
