"""Read the recordings of the Go operators, KServe's conversion and Metacontroller; see ``recorded/README.md``."""

from __future__ import annotations

import functools
import lzma
from collections.abc import Iterator
from pathlib import Path

import orjson

from app.kube.base import Json

RECORDED = Path(__file__).parent / "recorded"
FAMILIES = ("llmkube", "llmaz", "kserve")
RECORDINGS = ("llmkube", "llmkube-0.9", "llmaz", "kserve")
"""Files of recorded cases: one for each family, and ``<family>-<release>`` for further releases."""


@functools.cache
def _lines(name: str) -> tuple[bytes, ...]:
    return tuple(lzma.decompress((RECORDED / f"{name}.jsonl.xz").read_bytes()).splitlines())


def records(name: str) -> Iterator[Json]:
    """Read the JSON documents of ``recorded/<name>.jsonl.xz``; the caller may change them."""
    return (orjson.loads(line) for line in _lines(name))


def cases(recording: str) -> list[Json]:
    """Return the recorded cases in the order of the file, each with the name of its recording."""
    return [{**case, "recording": recording} for case in records(recording)]


def replayed(recording: str) -> list[Json]:
    """Return the cases to replay: without skipped ones, and in the form of ``asDeployment`` where a case has it."""
    return [{**case, **case.get("asDeployment", {})} for case in cases(recording) if not case.get("designSkips")]


def samples(family: str) -> dict[str, list[Json]]:
    """Return the family's objects of upstream's sample manifests, by sample, as a user would apply them."""
    groups_of = {"llmkube": ("inference.llmkube.dev",), "llmaz": ("llmaz.io", "inference.llmaz.io")}
    groups = groups_of.get(family, ("serving.kserve.io",))
    return {
        case["name"]: [_applied(o) for o in case["objects"] if o["apiVersion"].partition("/")[0] in groups]
        for case in records(family)
        if case["class"] == "a" and case["name"].startswith(("sample-", "a-"))
    }


def _applied(item: Json) -> Json:
    kept = ("name", "labels", "annotations")
    metadata = {name: value for name, value in item["metadata"].items() if name in kept}
    return {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": metadata, "spec": item["spec"]}
