"""What was recorded of the Go operators, of KServe's conversion and of Metacontroller: see ``recorded/README.md``."""

from __future__ import annotations

import functools
import json
import lzma
from collections.abc import Iterator
from pathlib import Path

from app.kube.base import Json

RECORDED = Path(__file__).parent / "recorded"
FAMILIES = ("llmkube", "llmaz", "kserve")
RECORDINGS = ("llmkube", "llmkube-0.9", "llmaz", "kserve")
"""Files of recorded cases: one for each family, and further releases of one as ``<family>-<release>``."""


@functools.cache
def _lines(name: str) -> tuple[str, ...]:
    return tuple(lzma.decompress((RECORDED / f"{name}.jsonl.xz").read_bytes()).decode().splitlines())


def records(name: str) -> Iterator[Json]:
    """Each JSON document of ``recorded/<name>.jsonl.xz``, fresh: its reader may change it."""
    return (json.loads(line) for line in _lines(name))


def cases(recording: str) -> list[Json]:
    """The recorded cases in the order of the file. Each names its recording."""
    return [{**case, "recording": recording} for case in records(recording)]


def replayed(recording: str) -> list[Json]:
    """The cases as they are replayed: llmaz' one-node services without LeaderWorkerSet, and none that was set aside."""
    return [{**case, **case.get("asDeployment", {})} for case in cases(recording) if not case.get("designSkips")]


def samples(family: str) -> dict[str, list[Json]]:
    """Upstream's own sample manifests: the family's objects by sample, as their author would apply them."""
    own = {"llmkube": ("inference.llmkube.dev",), "llmaz": ("llmaz.io", "inference.llmaz.io")}
    groups = own.get(family, ("serving.kserve.io",))
    return {
        case["name"]: [_applied(o) for o in case["objects"] if o["apiVersion"].partition("/")[0] in groups]
        for case in records(family)
        if case["class"] == "a" and case["name"].startswith(("sample-", "a-"))
    }


def _applied(item: Json) -> Json:
    kept = ("name", "labels", "annotations")
    metadata = {name: value for name, value in item["metadata"].items() if name in kept}
    return {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": metadata, "spec": item["spec"]}
