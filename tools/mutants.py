"""See which changes of the code no test notices: ``python -m tools.mutants FOLDER [--sample N] [--seed N]``.

In a copy of this tree in the folder, mutmut makes thousands of variants of the functions in ``app/admission``,
``app/hooks`` and ``app/workload`` (mutants), each with one small change. Of a random sample of them, each is tried with
the tests that reach its function (:mod:`tools.mutantplugin`). The ones that no test notices are printed with their
changes, and then the numbers. ``[tool.mutants]`` in ``pyproject.toml`` has the tests, and what makes no difference.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_NAME = re.compile(r"^ +(\S+): ", re.MULTILINE)
_MAKE = """
from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants, setup_source_paths
copy_src_dir()
copy_also_copy_files()
setup_source_paths()
create_mutants(2)
"""
NOTICED = ("noticed", "time limit")
ANEW = ("no tests", "used in imports")
"""Statuses of mutants that may show when the program is imported: a process for each runs the tests of their module."""
EQUIVALENT = "equivalent"
_FAILED = (1, 2)
"""Exit codes of pytest when tests fail, or their imports."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=int, default=100, help="how many mutants are tried")
    parser.add_argument("--seed", type=int, default=1, help="another number tries others")
    parser.add_argument("--only", default="*", help="a pattern of the names of mutants, such as app.hooks.*")
    options = parser.parse_args(arguments)
    copy = Copy(options.folder.resolve())
    names = fnmatch.filter(copy.make(), options.only)
    sample = random.Random(options.seed).sample(names, min(options.sample, len(names)))  # noqa: S311 - not a secret
    print(f"{len(sample)} of {len(names)} mutants, seed {options.seed}", flush=True)
    tried = copy.run(sample)
    changes = {name: copy.change(name) for name, status in tried.items() if status not in NOTICED}
    for name, change in changes.items():
        if any(re.search(pattern, change, re.MULTILINE) for pattern in copy.settings["equivalent"]):
            tried[name] = EQUIVALENT
        else:
            print(f"\n{change}")
    print(f"\n{summary(tried)}")
    return 0


def summary(tried: Mapping[str, str]) -> str:
    """Return how many mutants of each folder of ``app`` the tests notice, and of all."""
    total, noticed, equivalent = Counter[str](), Counter[str](), Counter[str]()
    for name, status in tried.items():
        for row in (name.split(".")[1], "all"):
            total[row] += status != EQUIVALENT
            equivalent[row] += status == EQUIVALENT
            noticed[row] += status in NOTICED
    rows = [
        f"{row}: {noticed[row]} of {total[row]} noticed, {equivalent[row]} make no difference"
        for row in sorted(total, key=lambda row: (row == "all", row))
    ]
    return "\n".join([*rows, f"{100 * noticed['all'] / total['all']:.0f} %"])


class Copy:
    """A copy of this tree with its mutants, and mutmut in a separate environment beside it."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "tree"
        shutil.rmtree(self.tree, ignore_errors=True)
        listed = subprocess.check_output(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, text=True)  # noqa: S607
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).exists():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.tree / name, follow_symlinks=False)
        self.settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutants"]
        self.packages = _installed(folder / "environment")

    def make(self) -> list[str]:
        """Write the mutants, and return their names."""
        self._python("-c", _MAKE, folder=self.tree)
        return sorted(_NAME.findall(self._output("-m", "mutmut", "results", "--all", "true")))

    def change(self, name: str) -> str:
        return self._output("-m", "mutmut", "show", name).strip().replace(": not checked", "", 1)

    def run(self, names: Sequence[str]) -> dict[str, str]:
        """Return what the tests notice of each mutant."""
        place = self.tree / "mutants.json"
        place.write_text(json.dumps(names))
        self._tests("-p", "tools.mutantplugin", *self.settings["tests"], MUTANTS=str(place))
        failing, *results = map(json.loads, place.with_suffix(".results").read_text().splitlines())
        if failing:
            print("left out, as they fail without any change:", *failing, sep="\n  ")
        left_out = [f"--deselect={name}" for name in failing]
        tried = {name: status for name, status, _ in results}
        anew = {name: self._anew(name, [*files, *left_out]) for name, status, files in results if status in ANEW}
        return {**tried, **{name: status for name, status in anew.items() if status}}

    def _anew(self, name: str, words: Sequence[str]) -> str:
        """Return what the tests of the module notice in a process that imports the mutant; empty if they do not."""
        try:
            code = self._tests("-x", *words, MUTANT_UNDER_TEST=name).returncode
        except subprocess.TimeoutExpired:
            return NOTICED[1]
        return NOTICED[0] if code in _FAILED else ""

    def _tests(self, *words: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
        command, limit = ["-m", "pytest", *self.settings["options"], *words], None if "MUTANTS" in variables else 600
        return self._python(*command, folder=self.tree / "mutants", limit=limit, **variables)

    def _python(
        self, *words: str, folder: Path, limit: float | None = None, **variables: str
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(  # noqa: S603 - our own words
            [sys.executable, *words],
            cwd=folder,
            env={**self._environment(folder), **variables},
            stdout=subprocess.DEVNULL,
            timeout=limit,
            check=False,
        )

    def _output(self, *words: str) -> str:
        command = [sys.executable, *words]
        return subprocess.check_output(command, cwd=self.tree, env=self._environment(self.tree), text=True)  # noqa: S603

    def _environment(self, folder: Path) -> dict[str, str]:
        """Return the variables; ``CI`` is for Hypothesis, whose examples are the same in every run then."""
        return {**os.environ, "CI": "true", "PYTHONPATH": os.pathsep.join((str(folder), str(self.packages)))}


def _installed(environment: Path) -> Path:
    """Return the folder with mutmut and what it needs, installed if it is not there."""
    if not list(environment.glob("lib/python*/site-packages/mutmut")):
        venv.create(environment, with_pip=True)
        install = ("-m", "pip", "install", "--quiet", "--require-hashes", "-r", ROOT / "requirements" / "mutants.txt")
        subprocess.run([environment / "bin" / "python", *install], check=True)  # noqa: S603 - a fixed command
    (packages,) = environment.glob("lib/python*/site-packages")
    return packages


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
