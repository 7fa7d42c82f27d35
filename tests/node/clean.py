"""`python tests/node/clean.py FOLDER`: end what runs of the node's tests left below a folder, and remove it.

Only processes and cgroups that a run noted are touched: its first process (whose end ends all of its namespaces), if
that still is the one it was, and its cgroup. Needs nothing but Python, as `make clean` may come without a `.venv`.
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
    """The roots of the machine's cgroup hierarchies: one of version 2, or several of version 1."""
    if (_HIERARCHIES / "cgroup.controllers").exists():
        return [_HIERARCHIES]
    return sorted(path for path in _HIERARCHIES.iterdir() if (path / "cgroup.procs").exists() and not path.is_symlink())


def started(pid: int) -> str | None:
    """When a process began, in the kernel's ticks; None when there is no such process."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None


def clean(folder: Path) -> None:
    """End and remove one run."""
    with contextlib.suppress(FileNotFoundError):
        noted = json.loads((folder / "run.json").read_text())
        if noted["started"] is not None and started(noted["pid"]) == noted["started"]:
            os.kill(noted["pid"], signal.SIGKILL)
        remove_cgroup(noted["cgroup"])
    shutil.rmtree(folder, ignore_errors=True)


def remove_cgroup(name: str) -> None:
    """Remove a cgroup with all below it, of every hierarchy; what still runs in it is ended first."""
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
