"""What the studio's page waits for: each endpoint for the example with the most objects, and the page's own size."""

from __future__ import annotations

import gzip
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.testclient import TestClient

from app.studio.catalogue import examples
from app.studio.models import Example
from app.studio.routes import STATIC, create_app
from app.studio.scenes import SCENES

TARGET = 150.0
"""Milliseconds of CPU time for the whole answer, which on a machine that does nothing else is the time it takes."""
ROUNDS = 15
BUNDLE = 600
"""KB of all files of the page, compressed."""


def run() -> None:
    """Print the median of every endpoint, and the bundle's size where it is built."""
    client = TestClient(create_app(), base_url="http://127.0.0.1", client=("127.0.0.1", 1))
    example = largest(client)
    documents = [{"name": "a.yaml", "text": example.text}]
    graph = client.post("/api/graph", json={"documents": documents}).json()
    node = next(one["id"] for one in graph["nodes"] if one["kind"] in ("Deployment", "LeaderWorkerSet"))
    asked: dict[str, dict[str, Any]] = {
        "check": {"documents": documents},
        "graph": {"documents": documents},
        "origins": {"documents": documents, "node": node},
        "simulate": {"documents": documents, "scenes": [next(iter(SCENES))]},
        "compare": {"before": documents, "after": documents, "settingsAfter": {"MODELHOOKS_CLUSTER_DOMAIN": "a.b"}},
    }
    print(f"studio, CPU time of an answer, {example.name} with {len(graph['nodes'])} objects", flush=True)
    calls: list[tuple[str, Callable[[], Any]]] = [
        *((path, partial(client.post, f"/api/{path}", json=body)) for path, body in asked.items()),
        *((path, partial(client.get, f"/api/{path}")) for path in ("examples", "schemas", "settings", "scenes")),
    ]
    for path, call in calls:
        print(f"  {path:10} {_median(call):6.0f} ms (target {TARGET:.0f})", flush=True)
    files = [file for file in STATIC.rglob("*") if file.is_file()]
    size = sum(len(gzip.compress(file.read_bytes())) for file in files) / 1000
    print(f"  bundle     {size:6.0f} KB compressed (target {BUNDLE})" if files else "  bundle not built", flush=True)


def largest(client: TestClient) -> Example:
    """The example with the largest graph."""

    def size(example: Example) -> int:
        asked = {"documents": [{"name": "a.yaml", "text": example.text}]}
        return len(client.post("/api/graph", json=asked).json()["nodes"])

    return max(examples(), key=size)


def _median(call: Callable[[], Any]) -> float:
    times = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        assert call().status_code == 200
        times.append(time.process_time() - begin)
    return statistics.median(times) * 1000


if __name__ == "__main__":
    run()
