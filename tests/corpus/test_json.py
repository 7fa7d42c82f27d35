"""HTTP-6.2: bodies that are not JSON, or JSON beyond the limits. Both protocols answer them in the same way.

If the mistake is in the object's own part of the body, admission denies the field and sync freezes the children.
Sync refuses two kinds of requests as a whole, which also keeps every child: those nested deeper than 64 levels, and
those that no JSON writer can have written.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from app.kube.base import Json
from tests.corpus.requests import (
    REVIEW,
    SYNC,
    UNREADABLE,
    is_allowed,
    is_denied,
    is_frozen,
    is_refused,
    review,
    spec_with,
    sync,
)
from tests.corpus.requests import service as inference_service
from tests.service import NEVER, Service

PLACEHOLDER = b'"@@"'


def bodies(part: bytes) -> tuple[bytes, bytes]:
    """Return a review and a sync request with ``part`` (raw JSON) as the value of an environment variable."""
    document = inference_service(spec_with(env=[{"name": "A", "value": "@@"}]))
    texts = [orjson.dumps(review(document)), orjson.dumps(sync(document))]
    return texts[0].replace(PLACEHOLDER, part), texts[1].replace(PLACEHOLDER, part)


def spec_bodies(spec: bytes) -> tuple[bytes, bytes]:
    """Return a review and a sync request with ``spec`` (raw JSON)."""
    document = {**inference_service(), "spec": "@@"}
    texts = [orjson.dumps(review(document)), orjson.dumps(sync(document))]
    return texts[0].replace(PLACEHOLDER, spec), texts[1].replace(PLACEHOLDER, spec)


NOT_JSON: dict[str, bytes] = {
    "J01 empty": b"",
    "J01 blanks": b" \r\n\t ",
    "J02 words": b"not json",
    "J02 single quotes": b"{'a': 1}",
    "J02 trailing comma": b'{"a": 1,}',
    "J02 comment": b'{"a": 1} // x',
    "J02 two documents": b"{}{}",
    "J04 null": b"null",
    "J04 list": b"[]",
    "J04 text": b'"x"',
    "J04 number": b"5",
    "J04 boolean": b"true",
    "J10 deep": b"[" * 10_000 + b"]" * 10_000,
    "J10 without end": b"[" * 5_000_000,
    "J14 UTF-16": '{"a": 1}'.encode("utf-16"),
    "J14 UTF-32": '{"a": 1}'.encode("utf-32"),
}


@pytest.mark.parametrize("path", [REVIEW, SYNC])
@pytest.mark.parametrize("body", NOT_JSON.values(), ids=list(NOT_JSON))
def test_bodies_that_say_nothing(service: Service, path: str, body: bytes) -> None:
    """The status is 400, and the reason says what the body is not."""
    assert is_refused(service.post(path, body)).startswith(UNREADABLE[path])


@pytest.mark.parametrize("path", [REVIEW, SYNC])
def test_rejects_truncated_bodies(service: Service, path: str) -> None:
    """The body is cut at any byte; a part of a request is never taken for the whole (HTTP-J03)."""
    body = orjson.dumps(review() if path == REVIEW else sync())
    connection = service.connect()
    for end in range(0, len(body), 1 if path == REVIEW else 3):
        connection.request("POST", path, body[:end], {"Content-Type": "application/json"})
        response = connection.getresponse()
        response.read()
        assert response.status == 400, end
    connection.close()


NO_VALUES: dict[str, tuple[bytes, str]] = {
    "J05 NaN": (b"NaN", "malformed"),
    "J05 Infinity": (b"Infinity", "malformed"),
    "J05 -Infinity": (b"-Infinity", "malformed"),
    "J06 1e400": (b"1e400", "is not valid JSON"),
    "J06 -1e400": (b"-1e400", "is not valid JSON"),
    "J07 5,000 digits": (b"9" * 5000, "is not valid JSON"),
    "J13 lone surrogate": (b'"\\ud800"', "malformed"),
    "J13 CESU-8": (b'"\xed\xa0\x80"', "byte 0xed"),
    "J13 no UTF-8": (b'"\xff\xfe"', "byte 0xff"),
    "J13 overlong": (b'"\xc0\xaf"', "byte 0xc0"),
}


@pytest.mark.parametrize(("part", "words"), NO_VALUES.values(), ids=list(NO_VALUES))
def test_values_that_json_does_not_have(service: Service, part: bytes, words: str) -> None:
    """The status is 400: no API server sends such values."""
    for path, body in zip((REVIEW, SYNC), bodies(part), strict=True):
        assert words in is_refused(service.post(path, body))


UNREAD = [(b"NaN", 400), (b"1e400", 200), (b"9" * 5000, 200), (b'"\\ud800"', 400), (b'"\xff"', 400)]


@pytest.mark.parametrize(
    ("part", "status"), UNREAD, ids=["NaN", "1e400", "5,000 digits", "half a surrogate", "no UTF-8"]
)
@pytest.mark.parametrize("place", [b'"unknown":', b'"status":'])
def test_invalid_values_in_unread_fields(service: Service, part: bytes, status: int, place: bytes) -> None:
    """Numbers are skipped, other values refused, and none is in the answer."""
    for path, document in ((REVIEW, review()), (SYNC, sync())):
        body = orjson.dumps(document).replace(b'"spec":{', b"%b%b,%b" % (place, part, b'"spec":{'), 1)
        answer = service.post(path, body)
        assert answer.status == status
        assert part not in answer.body


@pytest.mark.parametrize("path", [REVIEW, SYNC])
def test_rejects_a_byte_order_mark(service: Service, path: str) -> None:
    """JSON has no byte order mark (HTTP-J14)."""
    body = orjson.dumps(review() if path == REVIEW else sync())
    assert is_refused(service.post(path, b"\xef\xbb\xbf" + body)).startswith(UNREADABLE[path])


INTEGERS: dict[str, bytes] = {"2^31": b"2147483648", "2^63": b"9223372036854775808", "2^64": b"18446744073709551616"}


@pytest.mark.parametrize("number", INTEGERS.values(), ids=list(INTEGERS))
def test_rejects_integers_beyond_64_bits(service: Service, number: bytes) -> None:
    """The user's mistake is reported at its field (HTTP-J07)."""
    admission, hook = spec_bodies(b'{"modelRef":"m","replicas":%b}' % number)
    is_denied(service.post(REVIEW, admission), "spec.replicas", "Invalid", "TypeInvalid")
    is_frozen(service.post(SYNC, hook))


def test_accepts_integral_floats_as_integers(service: Service) -> None:
    """They are accepted as in the API server, and sent as integers (HTTP-J08)."""
    admission, hook = spec_bodies(b'{"modelRef":"m","replicas":2.0,"contextSize":4096.0}')
    assert is_allowed(service.post(REVIEW, admission)) == []
    answer = service.post(SYNC, hook)
    deployment = next(child for child in answer.json["children"] if child["kind"] == "Deployment")
    assert b'"replicas":2,' in answer.body
    assert "4096" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]


@pytest.mark.parametrize("depth", [65, 300, 1100], ids=["J09", "J11 more than is written", "J10 more than is read"])
def test_bounds_nesting(service: Service, depth: int) -> None:
    """Admission names the field. Sync keeps and reports the children if the request can be read (HTTP-J09)."""
    deep = b'{"modelRef":"m","tolerations":[' + b'{"a":' * depth + b"1" + b"}" * depth + b"]}"
    admission, hook = spec_bodies(deep)
    if depth < 1000:
        is_denied(service.post(REVIEW, admission), "spec.tolerations", "Invalid")
        is_frozen(service.post(SYNC, hook))
    else:
        assert is_refused(service.post(REVIEW, admission)) == "the review is nested too deeply"
        assert is_refused(service.post(SYNC, hook)) == "the request is nested too deeply"


def test_uses_the_last_of_duplicate_keys(service: Service) -> None:
    """The value that is checked is the value that is used (HTTP-J12)."""
    admission, hook = spec_bodies(b'{"modelRef":"m","image":" bad","image":"good:1"}')
    assert is_allowed(service.post(REVIEW, admission)) == []
    deployment = next(c for c in service.post(SYNC, hook).json["children"] if c["kind"] == "Deployment")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "good:1"
    admission, hook = spec_bodies(b'{"modelRef":"m","image":"good:1","image":" bad"}')
    is_denied(service.post(REVIEW, admission), "spec.image", "Invalid")
    is_frozen(service.post(SYNC, hook))


def test_uses_the_last_of_duplicate_specs(service: Service) -> None:
    """HTTP-J12 for the key ``spec``."""
    for path, document in ((REVIEW, review()), (SYNC, sync())):
        body = orjson.dumps(document)
        twice = body.replace(b'"spec":{"modelRef"', b'"spec":{"modelRef":"m","runtime":"bad"},"spec":{"modelRef"', 1)
        assert twice != body
        answer = service.post(path, twice)
        assert answer.status == 200
        assert answer.json["response"]["allowed"] if path == REVIEW else len(answer.json["children"]) == 2


@pytest.mark.parametrize("control", ["\x00", "\x1b[31m", "\x7f", "\x9b", "\x07"])
def test_rejects_control_characters(service: Service, control: str) -> None:
    """They could reach a terminal, or end a string in C (HTTP-J15)."""
    document = inference_service(spec_with(env=[{"name": "A", "value": f"a{control}b"}]))
    answer = service.post(REVIEW, review(document))
    is_denied(answer, "spec.env[0].value", "Invalid")
    assert control not in answer.json["response"]["status"]["message"]
    is_frozen(service.post(SYNC, sync(document)))


HEAVY: dict[str, Callable[[], bytes]] = {
    "J16 empty lists": lambda: b'{"modelRef":"m","args":[' + b"[]," * 2_200_000 + b"[]]}",
    "J16 empty lists in an unknown field": lambda: b'{"modelRef":"m","x":[' + b"[]," * 2_200_000 + b"[]]}",
    "J16 numbers": lambda: b'{"modelRef":"m","args":[' + b"1," * 3_300_000 + b"1]}",
    "J17 unknown keys": lambda: b'{"modelRef":"m",' + b",".join(b'"key%06d":1' % n for n in range(420_000)) + b"}",
    "J17 unknown keys, fewer": lambda: (
        b'{"modelRef":"m",' + b",".join(b'"key%06d":1' % n for n in range(20_000)) + b"}"
    ),
    "J17 map": lambda: (
        b'{"modelRef":"m","nodeSelector":{' + b",".join(b'"key%06d":1' % n for n in range(9_000)) + b"}}"
    ),
    "200,000 variables": lambda: b'{"modelRef":"m","env":[' + b",".join([b'{"name":"a","x":1}'] * 200_000) + b"]}",
    "22,000 wrong variables": lambda: b'{"modelRef":"m","env":[' + b",".join([b'{"x":1}'] * 22_000) + b"]}",
}


@pytest.mark.parametrize("made", HEAVY.values(), ids=list(HEAVY))
def test_bounds_the_cost_of_many_small_values(service: Service, made: Callable[[], bytes]) -> None:
    """Time, memory and the size of the answer are bounded; errors are not collected without end (HTTP-J16)."""
    for path, body in zip((REVIEW, SYNC), spec_bodies(made()), strict=True):
        begin = time.monotonic()
        answer = service.post(path, body)
        assert time.monotonic() - begin < NEVER
        assert answer.status == 200
        assert len(answer.body) < 64 * 1024
    assert service.rss() < 400_000


def test_rejects_a_string_of_six_megabytes(service: Service) -> None:
    """The value is too long and is not repeated (HTTP-J18)."""
    document = inference_service(spec_with(reasoningBudgetMessage="x" * 6 * 1024 * 1024))
    answer = service.post(REVIEW, review(document))
    is_denied(answer, "spec.reasoningBudgetMessage", "TooLong")
    assert b"xxxx" not in answer.body
    is_frozen(service.post(SYNC, sync(document)))


@pytest.mark.parametrize("key", ["__proto__", "__class__", "constructor", "model_fields", "model_config", ""])
def test_treats_special_keys_as_unknown(service: Service, key: str) -> None:
    """Keys with a meaning in other languages are plain unknown keys (HTTP-J19)."""
    document = inference_service(spec_with(**{key: {"a": 1}}))
    warnings = is_allowed(service.post(REVIEW, review(document)))
    assert any(text.startswith("unknown field") for text in warnings)
    answer = service.post(SYNC, sync(document))
    assert (answer.status, len(answer.json["children"])) == (200, 2)


@pytest.mark.parametrize("place", ["spec", "env", "nodeSelector", "podLabels"])
def test_truncates_a_key_of_one_megabyte(service: Service, place: str) -> None:
    """Only the beginning of the key is in the answer (HTTP-J20)."""
    key, value = "k" * 1_000_000, "v"
    spec: dict[str, Json] = {
        "spec": {key: value},
        "env": {"env": [{"name": "A", key: value}]},
        "nodeSelector": {"nodeSelector": {key: value}},
        "podLabels": {"podLabels": {key: value}},
    }
    document: Any = inference_service(spec_with(**spec[place]))
    answer = service.post(REVIEW, review(document))
    assert answer.status == 200
    assert len(answer.body) < 8 * 1024
    answer = service.post(SYNC, sync(document))
    assert answer.status == 200
    assert place == "env" or len(answer.body) < 64 * 1024  # an embedded object is passed on unchanged
