"""Run the real service and drive the examples through it, without a cluster.

Starts `modelhooks serve` on a free port, sends every manifest of DIR through admission, and plays Metacontroller and
the workload controllers in memory until nothing changes. Files below a directory named `rejected` hold examples that
admission must refuse.
"""

import contextlib
import http.client
import os
import re
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from app.cli import options
from app.desk.cluster import catalogue
from app.desk.cluster.live import ready
from app.desk.cluster.simulate import MAX_ROUNDS, Cluster, Send
from app.desk.files import folders
from app.desk.files.manifests import Manifest, parse
from app.kube.base import Json

NAMESPACE = "demo"
DIRECTORIES = ("examples", "manifests/llmaz-runtimes")
"""The examples, and the engines that llmaz's examples name."""
REJECTED = "rejected"
START_SECONDS = 30.0
WIDTH = 100
"""Columns of the output."""


@click.command(help=options.doc(__doc__))
@click.argument("directories", nargs=-1, metavar="[DIR]...", type=click.Path())
def command(directories: tuple[str, ...]) -> int:
    manifests = [m for m in _manifests(directories) if m.kind != "Kustomization"]  # says what to apply
    wrong = [m for m in manifests if REJECTED in Path(m.file).parts]
    with serving() as send:
        cluster = Cluster(send)
        problems = _refuse(cluster, wrong)
        answers = [(m.file, cluster.apply(m.document, NAMESPACE)) for m in manifests if m not in wrong]
        problems += [f"{name}: refused: {causes}" for name, causes in answers if causes]
        _follow(cluster)
        problems += _show(cluster)
    for problem in problems:
        print(f"modelhooks demo: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _manifests(directories: tuple[str, ...]) -> list[Manifest]:
    """Return the manifests of the directories; by default the source tree's, or their copies in the package."""
    if directories or all(map(os.path.isdir, DIRECTORIES)):
        return folders.read(directories or DIRECTORIES)
    described = [m for row in catalogue.examples() for m in parse(row["text"], f"{row['name']}.yaml")]
    return [*catalogue.installed(described), *described]


@contextlib.contextmanager
def serving() -> Iterator[Send]:
    """Run the service as a separate process on a free port of the loopback interface, and yield a client."""
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


def _refuse(cluster: Cluster, manifests: list[Manifest]) -> list[str]:
    """Print why each manifest is refused; a problem for each that is admitted."""
    print("\nRefused at apply, with every mistake at once:" if manifests else "")
    problems = []
    for manifest in manifests:
        causes = cluster.apply(manifest.document, NAMESPACE)
        print(f"\n{manifest.file}: {'refused' if causes else 'ADMITTED'}")
        for cause in causes:
            print(textwrap.fill(cause, WIDTH, initial_indent="  * ", subsequent_indent="    "))
        if not causes:
            problems.append(f"{manifest.file}: admitted, but it is an example of what is refused")
    return problems


def _follow(cluster: Cluster) -> None:
    """Sync until nothing changes, and print how the first service becomes Ready."""
    services = [parent for kind, parent in cluster.parents() if kind.resource.children and not _may_be_unready(parent)]
    service = next((parent for parent in services if parent["kind"] != "Model"), next(iter(services), None))
    reported, started = ("", ""), time.perf_counter()
    print(f"\nThe way of {service['kind']}/{service['metadata']['name']} to Ready:" if service else "")
    for number in range(1, MAX_ROUNDS + 1):
        changed = cluster.round(number)
        ready = _ready(service) if service else {"reason": "", "message": ""}
        if reported != (reported := (ready["reason"], ready["message"])):
            words = f"{ready['reason']}: {ready['message']}"
            print(textwrap.fill(words, WIDTH, initial_indent=f"  round {number}  ", subsequent_indent=" " * 11))
        if not changed:
            break
    seconds = time.perf_counter() - started
    print(f"\nNothing changes any more after {number} rounds, {cluster.syncs} sync calls, {seconds:.2f} s:\n")


def _show(cluster: Cluster) -> list[str]:
    """Print each parent with its children; a problem for each that is not ready."""
    problems = []
    print(f"{'OBJECT':40} {'READY':6} {'REASON':20} CHILDREN")
    for kind, parent in cluster.parents():
        ready, name = _ready(parent), f"{kind.resource.kind}/{parent['metadata']['name']}"
        counts = Counter(child["kind"] for child in cluster.children(parent))
        children = ", ".join(f"{count} {child}" if count > 1 else child for child, count in counts.items())
        head = f"{name:40} {ready['status']:6} {ready['reason']:20} "
        print(textwrap.fill(children or "-", WIDTH, initial_indent=head, subsequent_indent=" " * len(head)))
        if ready["status"] != "True" and not _may_be_unready(parent):
            problems.append(f"{name} is not ready: {ready['reason']}: {ready['message']}")
    return problems


def _ready(parent: Json) -> Json:
    return {"status": "-", "reason": "-", "message": "", **ready(parent)}


def _may_be_unready(parent: Json) -> bool:
    """Report whether an annotation marks an example that does not start: stopped, or served by an external agent."""
    return bool(parent["metadata"].get("annotations", {}).get("modelhooks.dev/example-ready") == "false")
