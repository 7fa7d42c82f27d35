"""`python -m tests.node`: prepare a node, and run the tests with the marker `node` on it in separate namespaces.

Arguments are passed to pytest. If no node can run here, print the reason and succeed, unless
`MODELHOOKS_NODE=required`.
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
    """Return the exit code of the tests, or of the reason why they cannot run."""
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
    # Output is not captured, so that waits are visible while they last.
    options = ["-m", "node", "-p", "no:cacheprovider", "--verbose", "--capture=no"]
    pytest = [sys.executable, "-m", "pytest", *options, "tests/node", *arguments]
    environment = os.environ | {machine.RUN: str(folder)}
    # The first process ends with this one, and all of its namespaces end with it.
    first = subprocess.Popen(dies_with_us(machine.command(pytest)), cwd=ROOT, env=environment)
    machine.note(folder, first.pid)
    machine.make_cgroup(folder.name)  # after the note, so that `clean` finds the cgroup even if this process is killed
    try:
        return first.wait()
    except KeyboardInterrupt:
        return first.wait(60)  # pytest was interrupted too, and stops what it started


def _skipped(reason: str) -> int:
    say(f"no node: {reason}")
    return 1 if os.environ.get("MODELHOOKS_NODE") == "required" else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
