"""The upper limit with Metacontroller: a hook that returns the same bytes for every sync of a path, except the name.

The file that ``CONSTANT_ANSWERS`` names holds its responses as JSON: a response about :data:`ORIGINAL` for each path.
``/metrics`` counts requests as the service does.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from tests.bench.fleet import ORIGINAL
from tests.bench.transport import Receive, Send, body_of

_ANSWERS = {
    path: json.dumps(answer).encode().split(ORIGINAL.encode())
    for path, answer in json.loads(Path(os.environ["CONSTANT_ANSWERS"]).read_text()).items()
}
_COUNTS: Counter[str] = Counter()


class _Metadata(msgspec.Struct):
    name: str


class _Parent(msgspec.Struct):
    metadata: _Metadata


class _Request(msgspec.Struct):
    parent: _Parent


_DECODER = msgspec.json.Decoder(_Request)


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Read the whole body and decode only the parent's name."""
    if scope["type"] != "http":
        return
    answer = _answer(scope["path"], await body_of(receive))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


def _answer(path: str, body: bytes) -> bytes:
    if path not in _ANSWERS:
        lines = (f'http_requests_total{{handler="{path}"}} {count}\n' for path, count in _COUNTS.items())
        return "".join(["# TYPE http_requests_total counter\n", *lines]).encode()
    _COUNTS[path] += 1
    return _DECODER.decode(body).parent.metadata.name.encode().join(_ANSWERS[path])
