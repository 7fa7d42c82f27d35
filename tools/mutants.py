"""See which changes of the code no test notices: ``python -m tools.mutants FOLDER [--sample N] [--seed N]``.

In a copy of this tree in the folder, mutmut makes thousands of variants of the functions in ``app/admission``,
``app/hooks`` and ``app/workload`` (mutants), each with one small change, and runs the tests that reach the function.
``[tool.mutmut]`` in ``pyproject.toml`` says which tests those may be. Random mutants are tried; the ones that no test
notices are printed with their changes, and then the numbers.
"""

from __future__ import annotations

import argparse
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
_SMALLEST = "app.hooks.memo.*"
"""The mutants of a small module. mutmut names the others only after it has made them all for a run of some."""
_RESULT = re.compile(r"^ +(\S+): (.+)$", re.MULTILINE)
NOTICED = ("killed", "timeout", "segfault")
UNREACHED = "no tests"
"""The status of a mutant whose function no test calls; its module may, when it is imported."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=int, default=100, help="how many mutants are tried")
    parser.add_argument("--seed", type=int, default=1, help="another number tries others")
    options = parser.parse_args(arguments)
    mutmut = Mutmut(options.folder.resolve())
    mutmut.run("run", _SMALLEST)
    names = sorted(mutmut.results())
    sample = random.Random(options.seed).sample(names, min(options.sample, len(names)))  # noqa: S311 - not a secret
    print(f"{len(sample)} of {len(names)} mutants, seed {options.seed}", flush=True)
    mutmut.run("run", *sample)
    results = mutmut.results()
    tried = {name: results[name] for name in sample}
    for name in (name for name, status in tried.items() if status == UNREACHED):
        tried[name] = mutmut.run_anew(name)
    for name, status in tried.items():
        if status not in NOTICED:
            print(f"\n{mutmut.output('show', name).strip()}")
    print(f"\n{summary(tried)}")
    return 0


def summary(tried: Mapping[str, str]) -> str:
    """Return how many mutants of each folder of ``app`` the tests notice, and of all."""
    total, noticed = Counter[str](), Counter[str]()
    for name, status in tried.items():
        for row in (name.split(".")[1], "all"):
            total[row] += 1
            noticed[row] += status in NOTICED
    rows = [
        f"{row}: {noticed[row]} of {total[row]} noticed" for row in sorted(total, key=lambda row: (row == "all", row))
    ]
    return "\n".join([*rows, f"{100 * noticed['all'] / total['all']:.0f} %"])


class Mutmut:
    """mutmut in a copy of this tree, and in an environment of its own beside it."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "tree"
        shutil.rmtree(self.tree, ignore_errors=True)
        listed = subprocess.check_output(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, text=True)  # noqa: S607
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).exists():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.tree / name, follow_symlinks=False)
        # CI is set for Hypothesis, whose examples are the same in every run then.
        self.environment = {**os.environ, "CI": "true", "PYTHONPATH": str(_installed(folder / "environment"))}

    def run(self, *words: str) -> None:
        subprocess.run(self._command(words), cwd=self.tree, env=self.environment, check=True)  # noqa: S603 - our own words

    def output(self, *words: str) -> str:
        return subprocess.check_output(self._command(words), cwd=self.tree, env=self.environment, text=True)  # noqa: S603

    def run_anew(self, name: str) -> str:
        """Return the status of a mutant by all tests in a process that imports it, which takes longer."""
        settings = tomllib.loads((self.tree / "pyproject.toml").read_text())["tool"]["mutmut"]
        options = [*settings["pytest_add_cli_args"], *settings["pytest_add_cli_args_test_selection"]]
        environment, mutants = {**self.environment, "MUTANT_UNDER_TEST": name}, self.tree / "mutants"
        environment["PYTHONPATH"] = f"{mutants}{os.pathsep}{environment['PYTHONPATH']}"
        command = [sys.executable, "-m", "pytest", "-x", "-q", *options]
        done = subprocess.run(command, cwd=mutants, env=environment, stdout=subprocess.DEVNULL, check=False)  # noqa: S603
        return "killed" if done.returncode else UNREACHED

    def results(self) -> dict[str, str]:
        """Return the status of each mutant by its name."""
        return dict(_RESULT.findall(self.output("results", "--all", "true")))

    def _command(self, words: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "mutmut", *words]


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
