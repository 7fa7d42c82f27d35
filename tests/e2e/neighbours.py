"""What other programs say about the eight kinds: kstatus, by which Helm and Flux wait, and Argo CD's health script.

Here the script runs in Argo CD's Lua with the libraries that Argo CD opens, which is built in seconds. Argo CD's own
code, in `tests.world.argocd`, must say the same, and writes the answers into docs/howto/gitops.md.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from app.desk.cluster.offline import World, settle, settled
from app.desk.cluster.store import key_of, owner
from app.desk.files.folders import read
from app.hooks.kind import AnyKind
from app.kube.base import Json
from app.kube.schema.structural import UNANSWERED
from tests import hookcalls
from tests.e2e import binaries
from tests.e2e.pagetable import PageTable

ROOT = Path(__file__).parents[2]
TABLE = PageTable(ROOT / "docs" / "howto" / "gitops.md", "neighbours")
HEALTH = ROOT / "manifests" / "gitops" / "health.lua"
ARGO_CD = "github.com/argoproj/argo-cd/v3"
EXAMPLES = [
    *(f"examples/{family}/quickstart.yaml" for family in ("llmkube", "llmaz", "kserve")),
    *("examples/llmaz/service.yaml", "examples/kserve/shared-config.yaml", "manifests/llmaz-runtimes"),
]
STATES = {
    "created": "just created, not answered yet",
    "waits": "starting, or something that it names is missing",
    "ready": "`Ready` is True",
    "changed": "changed, and not answered yet",
    "broken": "`Stalled` is True: a person has to mend it",
    "stopped": "stopped on purpose",
    "deleted": "being deleted",
}
INVALID: dict[str, Json] = {
    "Model": {"source": "ftp://example.com/a"},
    "OpenModel": {"familyName": 5},
    "BackendRuntime": {"version": 5},
    "LLMInferenceServiceConfig": {"template": {"containers": [{"name": 5}]}},
}
"""Values of the spec that only a person can mend; of a service a wrong number of replicas."""
STOP: dict[str, Json] = {"LLMInferenceService": {"metadata": {"annotations": {"serving.kserve.io/stop": "true"}}}}
"""What stops a service; of most it is ``replicas: 0``."""


Judge: TypeAlias = Callable[[Iterable[Json]], list[dict[str, str]]]
"""What says of each object its ``kstatus`` and ``health``, the text of each, and an ``error`` in place of them."""


def verdicts(objects: Iterable[Json]) -> list[dict[str, str]]:
    """Return for each object what kstatus and Argo CD's script say."""
    lines = "\n".join(json.dumps(item) for item in objects)
    command = [binaries.health(), HEALTH]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def in_every_state() -> Iterator[tuple[str, str, Json]]:
    """Yield kind, state and object for all states that a kind has."""
    cluster = settled(read([str(ROOT / name) for name in EXAMPLES]), World())
    firsts = {parent["kind"]: (kind, parent) for kind, parent in cluster.parents() if not owner(parent)}
    for name, (kind, parent) in firsts.items():
        bare = {key: value for key, value in parent.items() if key != "status"}
        yield name, "created", {**bare, "status": UNANSWERED["default"]}
        yield name, "ready", parent
        yield name, "changed", _with(parent, {"metadata": {"generation": parent["metadata"]["generation"] + 1}})
        yield name, "deleted", _with(parent, {"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}})
        yield name, "broken", _answered(kind, _with(bare, {"spec": INVALID.get(name, {"replicas": -1})}))
        if kind.resource.children:
            yield name, "waits", _answered(kind, bare)
        if kind.resource.scale:
            copied = cluster.copy()
            copied.put(_with(parent, STOP.get(name, {"spec": {"replicas": 0}})))
            yield name, "stopped", settle(copied).objects[key_of(parent)]


def _answered(kind: AnyKind, parent: Json) -> Json:
    """Return an object with the answer that it gets while nothing else is there."""
    status = hookcalls.sync(kind, parent)["status"]
    return {**parent, "status": {**status, "observedGeneration": parent["metadata"]["generation"]}}


def _with(document: Json, changes: Json) -> Json:
    changed = {
        key: _with(document.get(key) or {}, new) if isinstance(new, dict) else new for key, new in changes.items()
    }
    return {**document, **changed}


def table(judge: Judge = verdicts) -> str:
    """Return the table of the page: a row per state, which is the same for all kinds that have it."""
    cases = list(in_every_state())
    answers: dict[str, set[tuple[str, str]]] = {}
    kinds: dict[str, set[str]] = {}
    for (kind, state, _), said in zip(cases, judge(item for _, _, item in cases), strict=True):
        answers.setdefault(state, set()).add((said["kstatus"], said["health"]))
        kinds.setdefault(state, set()).add(kind)
    rows = ["| State | Kinds | kstatus (Helm, Flux) | Argo CD |", "|---|---|---|---|"]
    for state, words in STATES.items():
        ((kstatus, health),) = answers[state]
        rows.append(f"| {words} | {len(kinds[state])} | {kstatus} | {health} |")
    return "\n".join(rows)


def seen() -> str:
    """Return the releases that were asked, from the pins of the Go modules."""
    kstatus = "sigs.k8s.io/cli-utils"
    argo_cd = _pin("argocd", ARGO_CD).removeprefix("v")
    return f"Seen with {kstatus} {_pin('health', kstatus)} and Argo CD {argo_cd}"


def _pin(tool: str, module: str) -> str:
    text = (binaries.TOOLS / tool / "go.mod").read_text()
    (version,) = re.findall(rf"^(?:require|\t)\s*{re.escape(module)} (v\S+)$", text, re.MULTILINE)
    return str(version)
