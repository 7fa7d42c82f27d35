"""Run the real service and drive the examples through it, without a cluster.

Starts `modelhooks serve` on a free port, sends every manifest of DIR through admission, and plays Metacontroller and
the workload controllers in memory until nothing changes. Files below a directory named `rejected` hold examples that
admission must refuse.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from app.cli import catalogue, options
from app.cli.files import read
from app.cli.manifests import Manifest, ManifestError, parse
from app.cli.simulate import Cluster, Send
from app.kube.base import Json

NAMESPACE = "demo"
DIRECTORIES = ("examples", "manifests/llmaz-runtimes")
"""The examples, and the engines that llmaz's examples name."""
REJECTED = "rejected"
START_SECONDS = 30.0


@click.command(help=options.doc(__doc__))
@click.argument("directories", nargs=-1, metavar="[DIR]...", type=click.Path())
def command(directories: tuple[str, ...]) -> int:
    """0 when everything became ready and every rejected example was refused."""
    try:
        manifests = [m for m in _manifests(directories) if m.kind != "Kustomization"]  # says what to apply
    except ManifestError as error:
        return options.fail("demo", error)
    wrong = [m for m in manifests if REJECTED in Path(m.file).parts]
    with serving() as send:
        cluster = Cluster(send)
        problems = _apply(cluster, [m for m in manifests if m not in wrong])
        started = time.perf_counter()
        rounds = cluster.settle()
        seconds = time.perf_counter() - started
        print(f"\nNothing changes any more after {rounds} rounds, {cluster.syncs} sync calls, {seconds:.2f} s.\n")
        problems += _show(cluster)
        problems += _refuse(cluster, wrong)
    for problem in problems:
        print(f"modelhooks demo: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _manifests(directories: tuple[str, ...]) -> list[Manifest]:
    """Those of the directories; by default those of the source tree, or their copies in the package."""
    if directories or all(map(os.path.isdir, DIRECTORIES)):
        return read(directories or DIRECTORIES)
    described = [m for row in catalogue.examples() for m in parse(row["text"], f"{row['name']}.yaml")]
    return [*catalogue.installed(described), *described]


@contextlib.contextmanager
def serving() -> Iterator[Send]:
    """The service as a separate process on a free port of the loopback interface, and a client for it."""
    command = [sys.executable, "-m", "app.cli", "serve", "--host", "127.0.0.1", "--port", "0"]
    environment = {"MODELHOOKS_LLMKUBE_ALLOWED_HOST_PATHS": "/", **os.environ, "MODELHOOKS_LAMEDUCK_SECONDS": "0"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)  # noqa: S603 - our own program
    try:
        address = _address(process)
        print(f"The service listens on http://{address} (process {process.pid}).")
        connection = http.client.HTTPConnection(address, timeout=30)

        def send(path: str, body: bytes) -> bytes:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
            if response.status != 200:
                raise RuntimeError(f"POST {path}: {response.status} {answer.decode()}")
            return answer

        yield send
        connection.close()
    finally:
        process.terminate()
        process.wait(15)
        if process.stdout is not None:
            process.stdout.close()


def _address(process: subprocess.Popen[bytes]) -> str:
    """Read the log up to the address on which the service listens."""
    deadline = time.monotonic() + START_SECONDS
    assert process.stdout is not None
    while time.monotonic() < deadline and process.poll() is None:
        match = re.search(rb"http://([0-9.]+:[0-9]+)", process.stdout.readline())
        if match:
            return match[1].decode()
    raise RuntimeError("the service did not start")


def _apply(cluster: Cluster, manifests: list[Manifest]) -> list[str]:
    problems = []
    for manifest in manifests:
        verdict = cluster.apply(manifest.document, NAMESPACE)
        mark = "created" if verdict.allowed else "REFUSED"
        print(f"  {mark}  {manifest.kind:28} {manifest.name:28} {manifest.file}")
        for text in verdict.warnings:
            print(f"           Warning: {text}")
        if not verdict.allowed:
            problems.append(f"{manifest.file}: refused: {verdict.causes}")
    return problems


def _show(cluster: Cluster) -> list[str]:
    """The table of parents with their children; a problem for each that is not ready."""
    problems = []
    print(f"{'KIND':26} {'NAME':28} {'READY':6} {'REASON':20} CHILDREN")
    for kind, parent in cluster.parents():
        ready = _ready(parent)
        children = ", ".join(f"{c['kind']}/{c['metadata']['name']}" for c in cluster.children(parent)) or "-"
        name = parent["metadata"]["name"]
        print(f"{kind.resource.kind:26} {name:28} {ready['status']:6} {ready['reason']:20} {children}")
        if ready["status"] != "True" and not _may_be_unready(parent):
            problems.append(f"{kind.resource.kind}/{name} is not ready: {ready['reason']}: {ready['message']}")
    return problems


def _ready(parent: Json) -> Json:
    conditions = parent.get("status", {}).get("conditions", [])
    condition = next((c for c in conditions if c["type"] == "Ready"), {"status": "-"})
    return {"reason": "-", "message": "", **condition}


def _may_be_unready(parent: Json) -> bool:
    """Examples can say of themselves that they do not start (stopped on purpose, served by an agent outside)."""
    return bool(parent["metadata"].get("annotations", {}).get("modelhooks.dev/example-ready") == "false")


def _refuse(cluster: Cluster, manifests: list[Manifest]) -> list[str]:
    problems = []
    for manifest in manifests:
        verdict = cluster.apply(manifest.document, NAMESPACE)
        print(f"\n{manifest.file}: {'ADMITTED' if verdict.allowed else 'refused'}")
        for cause in [] if verdict.allowed else verdict.causes:
            print(f"  * {cause}")
        if verdict.allowed:
            problems.append(f"{manifest.file}: admitted, but it is an example of what is refused")
    return problems
