#!/usr/bin/env python3
"""Run ``modelhooks validate`` for pre-commit, in an environment that is installed from the hashed lists of this tree.

pre-commit itself would install what the package index has at that moment.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
ENVIRONMENT = TREE / "build" / "pre-commit"


def python(environment: Path) -> Path:
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def run(environment: Path, *arguments: str | Path) -> int:
    """Run Python with arguments that come from this file and, as names of files, from pre-commit."""
    return subprocess.call([python(environment), *arguments])  # noqa: S603 - no shell reads them


def install() -> int:
    """Make the environment beside its place, and move it there once it is complete."""
    ENVIRONMENT.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ENVIRONMENT.parent) as parent:
        environment = Path(parent) / "environment"
        venv.create(environment, with_pip=True)
        pip = ("-m", "pip", "install", "--quiet", "--no-deps")
        lists = [TREE / "requirements" / f"{name}.txt" for name in ("build", "runtime")]
        steps = [("--require-hashes", "--requirement", path) for path in lists]
        failed = any(run(environment, *pip, *step) for step in (*steps, ("--no-build-isolation", TREE)))
        if not failed and not ENVIRONMENT.exists():  # another process may have been quicker
            environment.rename(ENVIRONMENT)
    return int(failed)


def main() -> int:
    if not ENVIRONMENT.exists() and install():
        return 1
    # -I: the directory of the user's repository may have modules of the same names.
    return run(ENVIRONMENT, "-I", "-m", "app.cli", "validate", "--allow-empty", *sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
