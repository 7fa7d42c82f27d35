"""`python -m tests.node`: prepare a node, and run the tests of marker `node` on it in namespaces of their own.

Arguments go to pytest. Where no node can run, says why and succeeds, unless `MODELHOOKS_NODE=required`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.e2e.binaries import BinariesMissingError
from tests.e2e.processes import dies_with_us
from tests.node import machine
from tests.node.clean import clean
from tests.node.debian import PackagesMissingError
from tests.node.images import ROOT
from tests.node.prepare import prepare, write
from tests.node.report import STEPS, say, table

RUNS = ROOT / "build" / "node"


def main(arguments: list[str]) -> int:
    """The exit code of the tests, or of not being able to run them."""
    if (reason := machine.missing()) is not None:
        return _skipped(reason)
    RUNS.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=RUNS, prefix="modelhooks-node-"))
    steps = folder / "steps"
    os.environ[STEPS] = str(steps)
    try:
        rehearsal = folder / f"{folder.name}-rehearsal"
        rehearsal.mkdir()
        if (reason := machine.unusable(rehearsal)) is not None:
            return _skipped(reason)
        write(prepare(folder), folder / "prepared.json")
        code = _run(folder, arguments)
    except (BinariesMissingError, PackagesMissingError) as error:
        return _skipped(str(error))
    finally:
        say(table(steps))
        if not os.environ.get("MODELHOOKS_NODE_KEEP"):
            clean(folder)
    return code


def _run(folder: Path, arguments: list[str]) -> int:
    """Run pytest inside new namespaces, with a cgroup for its pods."""
    # Uncaptured, so that a wait is seen while it lasts.
    options = ["-m", "node", "-p", "no:cacheprovider", "--verbose", "--capture=no"]
    pytest = [sys.executable, "-m", "pytest", *options, "tests/node", *arguments]
    environment = os.environ | {machine.RUN: str(folder)}
    # The first process dies with us, and with it all of its namespaces.
    first = subprocess.Popen(dies_with_us(machine.command(pytest)), cwd=ROOT, env=environment)
    machine.note(folder, first.pid)
    machine.make_cgroup(folder.name)  # after the note: what is made is known, whenever we are killed
    try:
        return first.wait()
    except KeyboardInterrupt:
        return first.wait(60)  # pytest was interrupted too, and stops what it started


def _skipped(reason: str) -> int:
    say(f"no node: {reason}")
    return 1 if os.environ.get("MODELHOOKS_NODE") == "required" else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
