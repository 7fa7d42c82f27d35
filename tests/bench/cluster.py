"""Many services on a real control plane, with our hook and with a constant hook that returns the same children.

    make bench-cluster N=500,1000,2000 M=100

Each run has a new control plane with kwok's nodes and Metacontroller (the real one if `METACONTROLLER` names it). The
services are created before Metacontroller starts, so only Metacontroller, the hook and the API server are measured. The
constant hook has no customize hook: it shows the cost of a CompositeController without related objects.

InferenceServices also run with the component ``llmkube-own-namespace`` (hook ``own-namespace``). Two families at once
run with one Metacontroller (``ours``) and with one for each family (``divided``, as in docs/howto/fleet.md).

CPU seconds are counted until all services are ready. They depend little on other load on the machine; wall-clock
seconds do.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import urlsplit

import httpx
import msgspec
import orjson
import yaml
from prometheus_client.parser import text_string_to_metric_families

from app.kube.base import Json
from tests.bench.fleet import FLEETS, ROOT, Fleet
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import Installation
from tests.e2e.metacontroller import Metacontroller
from tests.e2e.processes import Process, free_port, wait_until

Hook = Literal["constant", "ours", "own-namespace", "divided"]
GROUPS = {
    **{family: (fleet,) for family, fleet in FLEETS.items()},
    "llmkube+kserve": (FLEETS["llmkube"], FLEETS["kserve"]),
}
"""The families of a run; each gets the full number of services."""
HOOKS: dict[str, tuple[Hook, ...]] = {
    "llmkube": ("constant", "ours", "own-namespace"),
    "llmaz": ("constant", "ours"),
    "kserve": ("constant", "ours"),
    "llmkube+kserve": ("ours", "divided"),
}
"""The hooks of a group; the others are compared with the first."""
OWN_NAMESPACE = "llmkube-own-namespace"
SHARD = "example.com/shard"
METACONTROLLER_FLAGS = ("--workers=20",)
"""The flags that ``manifests/metacontroller`` sets, apart from the request rate."""
NODE = ROOT / "tests" / "e2e" / "cluster.yaml"
MORE_NODES = 9
"""Minimum number of nodes beside the suite's, enough for 2,000 services."""
SERVICES_PER_NODE = 200
"""Each has the processors for 250."""
PATIENCE = 600.0
"""Seconds that 1,000 services may take, or fewer."""
LISTED_PER_SECOND = 500
"""Maximum number of services that the benchmark itself reads per second: a list of all takes the API server long."""
_WRITES = ("create", "update", "patch", "delete")
_AUDIT: Json = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": ["metacontroller"], "verbs": list(_WRITES)}, {"level": "None"}],
}
"""Audit only Metacontroller's writes, without bodies: logging those would cost the API server more than the writes."""


@dataclass(frozen=True)
class Row:
    """The result of one run. Seconds are since the start of Metacontroller; memory is in MiB."""

    family: str
    hook: Hook
    services: int
    children_seconds: float
    ready_seconds: float
    hook_cpu: float
    metacontroller_cpu: float
    apiserver_cpu: float
    hook_mib: float
    metacontroller_mib: float
    apiserver_mib: float
    syncs: float
    """Per service, until the cluster is settled; the next three fields too."""
    customizes: float
    status_writes: float
    child_writes: float
    idle_syncs: float
    """Per minute, of all services; the next two fields too."""
    idle_writes: float
    idle_metacontroller_cpu: float


GROWING = (
    "children_seconds",
    "ready_seconds",
    "hook_cpu",
    "metacontroller_cpu",
    "apiserver_cpu",
    "hook_mib",
    "metacontroller_mib",
    "apiserver_mib",
)
"""The figures compared between hooks and between numbers of services."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.bench.cluster", description=__doc__)
    parser.add_argument("numbers", type=_numbers, help="numbers of services, by commas")
    parser.add_argument("--namespaces", type=int, default=1, help="number of namespaces (default: 1)")
    parser.add_argument("--component", action="append", default=[], help="a component to install (may be repeated)")
    parser.add_argument("--family", choices=GROUPS, action="append", help="only this group (may be repeated)")
    parser.add_argument("--hook", choices=get_args(Hook), action="append", help="only this hook (may be repeated)")
    parser.add_argument("--idle", type=float, default=60, help="seconds to watch when all is done (default: 60)")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "bench-cluster.json", help="where to write all")
    parser.add_argument("--profile", type=Path, help="directory for CPU profiles of the real Metacontroller")
    args = parser.parse_args()
    rows: list[Row] = []
    print(_line(["family", "n", "hook", *_HEADINGS]), flush=True)
    for group in args.family or GROUPS:
        for number in args.numbers:
            for hook in (hook for hook in HOOKS[group] if hook in (args.hook or HOOKS[group])):
                row = _run(group, hook, number, args)
                rows.append(row)
                print(_line([row.family, row.services, row.hook, *_cells(row)]), flush=True)
    growth = {"hooks": compared(rows), "numbers": grown(rows)}
    for title, found in (("compared", growth["hooks"]), ("growth", growth["numbers"])):
        for entry in found:
            print(f"{title}: {', '.join(f'{key} {value}' for key, value in entry.items())}")
    args.json.parent.mkdir(parents=True, exist_ok=True)
    document = {"rows": [asdict(row) for row in rows], **growth}
    args.json.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    print(f"all of it: {args.json}")
    return 0


def _numbers(text: str) -> list[int]:
    return sorted(int(part) for part in text.split(","))


# One run


def _run(group: str, hook: Hook, number: int, args: argparse.Namespace) -> Row:
    components = [*args.component, *([OWN_NAMESPACE] if hook == "own-namespace" else [])]
    with tempfile.TemporaryDirectory(prefix="bench-cluster-") as workdir, ExitStack() as stack:
        cluster = stack.enter_context(ControlPlane(Path(workdir, "cluster"), audit=_AUDIT))
        _add_nodes(cluster, number * len(GROUPS[group]))
        installation = stack.enter_context(Installation(cluster, Path(workdir, "installation"), components))
        for fleet in GROUPS[group]:
            for namespace in fleet.namespaces(args.namespaces):
                cluster.create_namespace(namespace)
            if hook == "constant":
                _replace(installation, fleet)
            for namespace in fleet.namespaces(args.namespaces):
                _share(cluster, fleet, namespace, used=hook != "constant")
        installation.metacontroller.stop()
        for fleet in GROUPS[group]:
            _create(cluster, fleet.services(number, args.namespaces), _path(fleet))
        return _measure(_Run(installation, group, hook, number), args.idle, args.profile)


def _add_nodes(cluster: ControlPlane, services: int) -> None:
    """Add nodes like the suite's: one node is too small for thousands of servers."""
    (node, *_) = yaml.safe_load_all(NODE.read_text())
    count = max(MORE_NODES, services // SERVICES_PER_NODE)
    nodes = [{**node, "metadata": {**node["metadata"], "name": f"bench-{n}"}} for n in range(count)]
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(nodes))


def _share(cluster: ControlPlane, fleet: Fleet, namespace: str, *, used: bool) -> None:
    """Create the objects that the services share; if they are used, wait until they are ready."""
    if fleet.shared:
        cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump_all(fleet.shared))
    for document in fleet.shared if used else ():
        if "." in document["apiVersion"]:  # a custom resource
            name = f"{document['kind']}.{document['apiVersion'].partition('/')[0]}/{document['metadata']['name']}"
            cluster.kubectl("wait", "--for=condition=Ready", "-n", namespace, name, "--timeout=60s")


def _replace(installation: Installation, fleet: Fleet) -> None:
    """Replace the service by the constant hook, and remove admission, customize and other controllers."""
    cluster, answers = installation.cluster, fleet.answers()
    cluster.kubectl("delete", "validatingwebhookconfigurations", "--all")
    for controller in cluster.get("compositecontrollers")["items"]:
        name = controller["metadata"]["name"]
        if urlsplit(controller["spec"]["hooks"]["sync"]["webhook"]["url"]).path not in answers:
            cluster.kubectl("delete", "compositecontroller", name)
        else:
            change = [{"op": "remove", "path": "/spec/hooks/customize"}]
            cluster.kubectl("patch", "compositecontroller", name, "--type=json", "-p", orjson.dumps(change).decode())
    installation.stop_service()
    file = installation.workdir / "answers.json"
    file.write_bytes(orjson.dumps(answers))
    argv = [sys.executable, "-m", "uvicorn", "tests.bench.constant:app", "--host", "127.0.0.1"]
    argv += ["--port", str(installation.port), "--timeout-keep-alive", "120", "--no-access-log", "--lifespan", "off"]
    argv += ["--ssl-certfile", str(installation.workdir / "tls.crt")]
    argv += ["--ssl-keyfile", str(installation.workdir / "tls.key")]
    environment = {**os.environ, "CONSTANT_ANSWERS": str(file), "PYTHONPATH": str(ROOT)}
    installation.service = Process("constant", argv, installation.workdir / "constant.log", environment)
    installation.service.wait_ready(lambda: _answers(installation))


def _answers(installation: Installation) -> bool:
    try:
        with installation.client() as client:
            return client.get("/metrics").status_code == 200
    except httpx.HTTPError:
        return False


def _create(cluster: ControlPlane, services: Iterable[Json], path: str) -> None:
    group, plural = path.rsplit("/", 1)

    def create(service: Json) -> None:
        namespace = service["metadata"]["namespace"]
        cluster.client.post(f"{group}/namespaces/{namespace}/{plural}", json=service).raise_for_status()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(create, services))


def _path(fleet: Fleet) -> str:
    return f"/apis/{fleet.resource.api_version}/{fleet.resource.plural}"


class _Run:
    """A started run: counts and states from its cluster and its processes."""

    def __init__(self, installation: Installation, group: str, hook: Hook, number: int) -> None:
        self.installation, self.group, self.hook, self.number = installation, group, hook, number
        self.fleets = GROUPS[group]
        self.metacontrollers: list[Process] = []
        self._deployments = "/apis/apps/v1/deployments"
        self._services = "/api/v1/services"
        self._others = {path: self._count(path) for path in (self._deployments, self._services)}

    @property
    def processes(self) -> dict[str, list[Process]]:
        """The measured processes by role."""
        return {
            "hook": [self.installation.service],
            "metacontroller": self.metacontrollers,
            "apiserver": [self.installation.cluster.process("kube-apiserver")],
        }

    @property
    def services(self) -> int:
        """The number of services of all families."""
        return self.number * len(self.fleets)

    def complete(self) -> bool:
        """Report whether every service has its Deployment and its Service."""
        return all(self._count(path) - others >= self.services for path, others in self._others.items())

    def ready(self) -> bool:
        """Report whether every service is ready.

        The constant hook reports ready at once, so its Deployments are checked instead.
        """
        return all(map(self._is_ready, self.fleets))

    def _is_ready(self, fleet: Fleet) -> bool:
        path = self._deployments if self.hook == "constant" else _path(fleet)
        condition = "Available" if self.hook == "constant" else "Ready"
        listed = _LIST.decode(self._get(path, resourceVersion="0").content).items
        found = [item for item in listed if item.metadata.namespace.startswith(fleet.namespace)]
        return len(found) == self.number and all(condition in item.true for item in found)

    def counts(self) -> Counter[str]:
        """Count hook requests by the last part of their path, and Metacontroller's writes of statuses and objects."""
        with self.installation.client() as client:
            text = client.get("/metrics").raise_for_status().text
        found: Counter[str] = Counter()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name == "http_requests_total":
                    found[sample.labels["handler"].rpartition("/")[2]] += int(sample.value)
        for event in self.installation.cluster.audit_events("metacontroller"):
            if (
                event.get("objectRef", {}).get("namespace", "").startswith(tuple(f.namespace for f in self.fleets))
                and event["objectRef"]["resource"] != "events"
            ):
                found["status" if event["objectRef"].get("subresource") == "status" else "object"] += 1
        return found

    def _count(self, path: str) -> int:
        answer = self._get(path, limit="1").json()
        return len(answer["items"]) + int(answer["metadata"].get("remainingItemCount", 0))

    def _get(self, path: str, **query: str) -> httpx.Response:
        self.installation.cluster.check()
        self.installation.service.check()
        return self.installation.cluster.client.get(path, params=query).raise_for_status()


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


class _Metadata(msgspec.Struct):
    namespace: str


class _Item(msgspec.Struct):
    metadata: _Metadata
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def true(self) -> set[str]:
        """The types of the conditions that are true."""
        return {condition.type for condition in self.status.conditions if condition.status == "True"}


class _List(msgspec.Struct):
    items: list[_Item]


_LIST = msgspec.json.Decoder(_List)


def _measure(run: _Run, idle: float, profile: Path | None) -> Row:
    before, cpu = run.counts(), {name: _cpu(processes) for name, processes in run.processes.items()}
    began = time.monotonic()
    with _metacontrollers(run, profile):
        patience = PATIENCE * max(1, run.services / 1000)
        wait_until(run.complete, "all children", patience, 0.25)
        children = time.monotonic() - began
        wait_until(run.ready, "all ready", patience, max(0.5, run.services / LISTED_PER_SECOND))
        ready = time.monotonic() - began
        used = {name: _cpu(processes) - cpu[name] for name, processes in run.processes.items()}
        resident = {name: _resident(processes) for name, processes in run.processes.items()}
        settled = _settled(run)
        at_rest = _cpu(run.metacontrollers)
        time.sleep(idle)
        later = run.counts()
        minutes = idle / 60
        done = settled - before
        return Row(
            family=run.group,
            hook=run.hook,
            services=run.number,
            children_seconds=children,
            ready_seconds=ready,
            **{f"{name}_cpu": value for name, value in used.items()},
            **{f"{name}_mib": value for name, value in resident.items()},
            syncs=done["sync"] / run.services,
            customizes=done["customize"] / run.services,
            status_writes=done["status"] / run.services,
            child_writes=done["object"] / run.services,
            idle_syncs=(later["sync"] - settled["sync"]) / minutes,
            idle_writes=sum(later[what] - settled[what] for what in ("status", "object")) / minutes,
            idle_metacontroller_cpu=(_cpu(run.metacontrollers) - at_rest) / minutes,
        )


@contextmanager
def _metacontrollers(run: _Run, profile: Path | None) -> Iterator[None]:
    """Run one Metacontroller, or one for each family.

    With `profile`, write a CPU profile of 30 seconds of a single one.
    """
    port = free_port()
    shards = {"all": [f"--pprof-address=127.0.0.1:{port}"] if profile else []}
    if run.hook == "divided":
        shards = {fleet.family: [f"--target-label-selector={SHARD}={fleet.family}"] for fleet in run.fleets}
        for family in shards:
            _label(run.installation.cluster, family)
    with ExitStack() as stack:
        for name, flags in shards.items():
            workdir = run.installation.workdir / "measured" / name
            started = Metacontroller(run.installation.cluster, workdir, flags=[*METACONTROLLER_FLAGS, *flags])
            run.metacontrollers.append(stack.enter_context(started).process)
        if profile and run.hook != "divided" and run.installation.metacontroller.kind == "metacontroller":
            profile.mkdir(parents=True, exist_ok=True)
            file = profile / f"{run.group}-{run.hook}-{run.number}.pprof"
            url = f"http://127.0.0.1:{port}/debug/pprof/profile?seconds=30"
            reader = threading.Thread(target=lambda: file.write_bytes(httpx.get(url, timeout=60).content))
            reader.start()
            stack.callback(reader.join)
        yield


def _label(cluster: ControlPlane, family: str) -> None:
    """Label the controllers of a family for its own Metacontroller."""
    names = [controller["metadata"]["name"] for controller in cluster.get("compositecontrollers")["items"]]
    own = [name for name in names if name.startswith(f"{family}-")]
    cluster.kubectl("label", "compositecontrollers", *own, f"{SHARD}={family}")


def _settled(run: _Run) -> Counter[str]:
    """Return the counts once they have not changed for five seconds, or after two minutes."""
    deadline = time.monotonic() + 120
    last = run.counts()
    while time.monotonic() < deadline:
        time.sleep(5)
        now = run.counts()
        if all(now[what] == last[what] for what in ("sync", "status", "object")):
            break
        last = now
    return last


def _cpu(processes: Iterable[Process]) -> float:
    """Return the CPU seconds of processes, with all threads."""
    fields = [Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split() for process in processes]
    return sum(int(values[11]) + int(values[12]) for values in fields) / os.sysconf("SC_CLK_TCK")


def _resident(processes: Iterable[Process]) -> float:
    """Return the sum of the processes' peak memory, in MiB."""
    lines = [line for process in processes for line in Path(f"/proc/{process.pid}/status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


# Output

_HEADINGS = (
    *("children s", "ready s", "cpu hook", "cpu mc", "cpu api", "MiB hook", "MiB mc", "MiB api"),
    *("syncs", "customizes", "status w", "child w", "idle syncs", "idle w", "idle mc"),
)


def _line(cells: Sequence[object]) -> str:
    widths = (14, 5, 13, *(10 for _ in _HEADINGS))
    return " ".join(str(cell).rjust(width) for cell, width in zip(cells, widths, strict=True))


def _cells(row: Row) -> list[str]:
    values = list(asdict(row).values())[3:]
    return [f"{value:.2f}" if value < 10 else f"{value:.1f}" for value in values]


def compared(rows: Sequence[Row]) -> list[Json]:
    """Return each hook's figures relative to the first hook of its group, for each number of services."""
    runs: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        runs.setdefault((row.family, row.services), []).append(row)
    return [
        {"family": row.family, "services": row.services, "hook": row.hook, "by": first.hook, **_ratios(row, first)}
        for first, *others in runs.values()
        for row in others
    ]


def grown(rows: Sequence[Row]) -> list[Json]:
    """Return the figures of each number of services relative to the next smaller number."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.family, row.hook), []).append(row)
    return [
        {"family": family, "hook": hook, "from": few.services, "to": many.services, **_ratios(many, few)}
        for (family, hook), group in groups.items()
        for few, many in pairwise(group)
    ]


def _ratios(row: Row, by: Row) -> dict[str, float]:
    get: Callable[[Row, str], float] = getattr
    return {name: round(get(row, name) / get(by, name), 2) for name in GROWING if get(by, name)}


if __name__ == "__main__":
    sys.exit(main())
