"""The cost of the command line: start-up, two objects, and many.

The many objects are the examples of every family under different names, as if many teams used the same patterns.
"""

from __future__ import annotations

import itertools
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import orjson

from app.desk.files import yaml
from app.desk.files.folders import read
from app.kube.base import Json

ROOT = Path(__file__).parents[2]
TWO = ROOT / "examples" / "llmkube" / "vllm.yaml"
"""A Model and an InferenceService."""
PATTERNS = (
    "examples/llmkube/quickstart.yaml",
    "examples/llmkube/vllm.yaml",
    "examples/llmaz/quickstart.yaml",
    "examples/llmaz/multi-node.yaml",
    "examples/kserve/quickstart.yaml",
    "examples/kserve/multi-node.yaml",
)
SHARED = "manifests/llmaz-runtimes"


def run(rounds: int, objects: int) -> None:
    """Print CPU seconds of start-up, of two objects, of the examples, and CPU and wall seconds of many objects."""
    examples = ["explain", str(ROOT / "examples"), str(ROOT / SHARED)]
    for name, arguments, target in (
        ("--help", ["--help"], 0.25),
        ("validate, two objects", ["validate", str(TWO)], 0.4),
        ("explain, all examples", examples, 2),
    ):
        cpu = min(_seconds(arguments)[0] for _ in range(rounds))
        print(f"modelhooks {name:22} {cpu:6.2f} CPU s (target {target})", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        old, new = Path(directory) / "old.yaml", Path(directory) / "new.yaml"
        documents = thousand(objects)
        old.write_text(yaml.dump_all(documents))
        new.write_text(yaml.dump_all(_changed(documents)))
        calls: list[tuple[list[str], float]] = [
            (["validate", str(old)], 3),
            (["render", str(old)], 5),
            (["diff", str(old), str(new)], 7),
            (["explain", str(old)], 6),
        ]
        for arguments, target in calls:
            cpu, wall = _seconds([*arguments, "--with", str(ROOT / SHARED)])
            print(f"{arguments[0]} of {objects} objects {cpu:6.1f} CPU s (target {target}), {wall:.1f} s", flush=True)


def thousand(count: int = 1000) -> list[Json]:
    """Return copies of the patterns' objects, each copy with different names."""
    patterns = [[manifest.document for manifest in read([str(ROOT / pattern)])] for pattern in PATTERNS]
    found: list[Json] = []
    for team in itertools.count():
        for pattern in patterns:
            found += _renamed(pattern, f"-{team}")
        if len(found) >= count:
            return found[:count]
    raise AssertionError("it counts for ever")


def _renamed(pattern: list[Json], suffix: str) -> list[Json]:
    """Return a pattern under other names, with its internal references adjusted."""
    text = orjson.dumps(pattern).decode()
    for name in {document["metadata"]["name"] for document in pattern}:
        text = text.replace(f'"{name}"', f'"{name}{suffix}"')
    renamed: list[Json] = orjson.loads(text)
    return renamed


def _changed(documents: list[Json]) -> list[Json]:
    """Return the objects with one more environment variable in every service of LLMKube."""
    return [
        {**one, "spec": {**one["spec"], "env": [{"name": "TEAM", "value": "b"}]}}
        if one["apiVersion"].startswith("inference.llmkube") and one["kind"] == "InferenceService"
        else one
        for one in documents
    ]


def _seconds(arguments: Sequence[str]) -> tuple[float, float]:
    """Return the CPU seconds (user and system) and the wall seconds of one run of the command and its children."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall
