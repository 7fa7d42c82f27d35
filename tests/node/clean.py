"""`python tests/node/clean.py FOLDER`: stop what node test runs left behind below a folder, and remove their files.

Only processes and cgroups recorded by a run are touched: its cgroup, and its first process if it is still the same one.
All namespaces of the run end with that process. Only the standard library is used, because `make clean` may run without
a `.venv`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

_HIERARCHIES = Path("/sys/fs/cgroup")


def hierarchies() -> list[Path]:
    """Return the roots of the cgroup hierarchies: a single one for version 2, or several for version 1."""
    if (_HIERARCHIES / "cgroup.controllers").exists():
        return [_HIERARCHIES]
    return sorted(path for path in _HIERARCHIES.iterdir() if (path / "cgroup.procs").exists() and not path.is_symlink())


def started(pid: int) -> str | None:
    """Return the start time of a process in the kernel's ticks; None if there is no such process."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None


def clean(folder: Path) -> None:
    """Stop and remove one run."""
    with contextlib.suppress(FileNotFoundError):
        noted = json.loads((folder / "run.json").read_text())
        if noted["started"] is not None and started(noted["pid"]) == noted["started"]:
            os.kill(noted["pid"], signal.SIGKILL)
        remove_cgroup(noted["cgroup"])
    shutil.rmtree(folder, ignore_errors=True)


def remove_cgroup(name: str) -> None:
    """Remove a cgroup and all cgroups below it from every hierarchy; kill the processes in it first."""
    for _ in range(50):
        groups = [hierarchy / name for hierarchy in hierarchies() if (hierarchy / name).is_dir()]
        for group in groups:
            for path, _, _ in os.walk(group, topdown=False):
                for pid in Path(path, "cgroup.procs").read_text().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                with contextlib.suppress(OSError):  # busy until its last process is gone
                    Path(path).rmdir()
        if not groups:
            return
        time.sleep(0.1)
    print(f"the cgroup {name} does not end", file=sys.stderr)


if __name__ == "__main__":
    for run in Path(sys.argv[1]).glob("*"):
        clean(run)
