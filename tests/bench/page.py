"""Response times of the studio's page: each endpoint with the largest example, and the page's size."""

from __future__ import annotations

import gzip
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.testclient import TestClient

from app.studio.models import Example
from app.studio.routes import STATIC, create_app, examples
from app.studio.scenes import SCENES

TARGET = 150.0
"""Milliseconds of CPU time for a response, which on an idle machine equals the wall-clock time."""
BUNDLE = 600
"""KB of all files of the page, compressed."""


def run(rounds: int = 15) -> None:
    """Print the median of every endpoint, and the bundle's size if it is built.

    Documents differ in each round, as if someone were typing; values are requested for the graph that is shown.
    """
    client = TestClient(create_app(), base_url="http://127.0.0.1")
    example = largest(client)
    nodes = client.post("/api/graph", json=_documents(example, 0)).json()["nodes"]
    node = next(one["id"] for one in nodes if one["kind"] in ("Deployment", "LeaderWorkerSet"))
    print(f"studio, CPU time of an answer, {example.name} with {len(nodes)} objects", flush=True)

    def asked(number: int) -> dict[str, dict[str, Any]]:
        given = _documents(example, number)
        both = {"before": given["documents"], "after": given["documents"]}
        return {
            "check": given,
            "graph": given,
            "origins": {**given, "node": node},
            "simulate": {**given, "scenes": [next(iter(SCENES))]},
            "compare": {**both, "settingsAfter": {"MODELHOOKS_CLUSTER_DOMAIN": f"domain-{number}"}},
        }

    times: dict[str, list[float]] = {}
    for number in range(1, rounds + 1):
        for path, body in asked(number).items():
            times.setdefault(path, []).append(_timed(partial(client.post, f"/api/{path}", json=body)))
        for path in ("examples", "schemas", "settings", "scenes"):
            times.setdefault(path, []).append(_timed(partial(client.get, f"/api/{path}")))
    for path, taken in times.items():
        print(f"  {path:10} {statistics.median(taken):6.0f} ms (target {TARGET:.0f})", flush=True)
    files = [file for file in STATIC.rglob("*") if file.is_file()]
    size = sum(len(gzip.compress(file.read_bytes())) for file in files) / 1000
    print(f"  bundle     {size:6.0f} KB compressed (target {BUNDLE})" if files else "  bundle not built", flush=True)


def largest(client: TestClient) -> Example:
    """Return the example with the largest graph."""
    return max(examples(), key=lambda one: len(client.post("/api/graph", json=_documents(one, 0)).json()["nodes"]))


def _documents(example: Example, number: int) -> dict[str, Any]:
    return {"documents": [{"name": "a.yaml", "text": f"{example.text}# {number}\n"}]}


def _timed(call: Callable[[], Any]) -> float:
    """Return the milliseconds of CPU time of a call, including the client's."""
    begin = time.process_time()
    assert call().status_code == 200
    return (time.process_time() - begin) * 1000


if __name__ == "__main__":
    run()
