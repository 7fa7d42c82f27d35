"""The baseline of ``make bench-cluster``, and its comparison."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.kube.base import Json
from tests.bench.cluster import Row, compared, grown
from tests.bench.fleet import FLEETS, Fleet


@pytest.mark.parametrize("fleet", FLEETS.values(), ids=FLEETS)
def test_the_constant_hook_answers_what_ours_would(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It returns the same children under the name of the requested parent, and counts requests like the service."""
    answers = fleet.answers()
    file = tmp_path / "answers.json"
    file.write_bytes(orjson.dumps(answers))
    monkeypatch.setenv("CONSTANT_ANSWERS", str(file))
    app = importlib.reload(importlib.import_module("tests.bench.constant")).app
    for path, wanted in answers.items():
        body = orjson.dumps({"parent": {"metadata": {"name": "svc-00042"}}, "children": {}})
        said = orjson.loads(_ask(app, path, body))
        assert said == orjson.loads(orjson.dumps(wanted).replace(b"svc-00000", b"svc-00042"))
        assert any(child["metadata"]["name"].startswith("svc-00042") for child in said["children"])
    metrics = _ask(app, "/metrics", b"").decode()
    assert all(f'http_requests_total{{handler="{path}"}} 1\n' in metrics for path in answers)


def _ask(app: Any, path: str, body: bytes) -> bytes:
    sent: list[Json] = []

    async def receive() -> Json:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Json) -> None:
        sent.append(message)

    asyncio.run(app({"type": "http", "path": path}, receive, send))
    assert sent[0]["status"] == 200
    return bytes(sent[1]["body"])


def test_services_are_copies_of_the_example() -> None:
    first, second = FLEETS["llmkube"].services(2)
    assert (first["metadata"]["name"], second["metadata"]["name"]) == ("svc-00001", "svc-00002")
    assert first["spec"] == second["spec"] == FLEETS["llmkube"].service()["spec"]


def row(hook: Any, services: int, metacontroller_cpu: float) -> Row:
    numbers: Json = dict.fromkeys(Row.__annotations__, 1.0)
    identity = {"family": "llmaz", "hook": hook, "services": services}
    return Row(**{**numbers, **identity, "metacontroller_cpu": metacontroller_cpu})


def test_what_is_compared() -> None:
    """Each hook is compared with the first one at the same number, and each number with the previous one."""
    rows = [row("constant", 500, 4), row("ours", 500, 6), row("constant", 1000, 8), row("ours", 1000, 18)]
    ratios = [(entry["services"], entry["metacontroller_cpu"], entry["hook_cpu"]) for entry in compared(rows)]
    assert ratios == [(500, 1.5, 1.0), (1000, 2.25, 1.0)]
    growth = [(e["hook"], e["from"], e["to"], e["metacontroller_cpu"]) for e in grown(rows)]
    assert growth == [("constant", 500, 1000, 2.0), ("ours", 500, 1000, 3.0)]
