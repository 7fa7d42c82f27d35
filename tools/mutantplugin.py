"""A plugin of pytest that tries mutants, each in a separate process that is forked when all tests are collected.

:mod:`tools.mutants` runs pytest with it in the tree that mutmut wrote, with the names of the mutants in the file of the
variable ``MUTANTS``, and reads the results beside it. It takes longer to collect the tests than to run a function's.
"""

from __future__ import annotations

import functools
import gc
import itertools
import json
import os
import re
import resource
import select
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from mutmut.mutation.trampoline import set_mutant_under_test  # type: ignore[import-not-found]  # installed beside the mutants
from mutmut.state import state  # type: ignore[import-not-found]
from mutmut.utils.format_utils import mangled_name_from_mutant_name as function_of  # type: ignore[import-not-found]

from app.hooks.memo import MEMO

NOTICED, SURVIVED, TIMEOUT, UNREACHED, IMPORTED = "noticed", "survived", "time limit", "no tests", "used in imports"
MOST_SECONDS = 20
"""Seconds that the tests of a mutant compute without it: of more, the farthest and slowest are left out."""
MOST_SECONDS_ANEW = 60
"""The same for a mutant of what runs in imports, which any test of its module may show."""
WAIT = 10
"""Further seconds that they may wait, on a busy machine."""
PROCESSES = len(os.sched_getaffinity(0))
CALLS = state()._stats  # noqa: SLF001 - mutmut has no other name for the functions that were called
FORGET: list[Callable[[], object]] = [MEMO.__init__]  # type: ignore[misc]  # the same object, empty
"""Functions that empty caches, which have results of the unchanged code."""

set_mutant_under_test("stats")  # the functions record that they are called, from the imports of the tests on


class Tests:
    """All tests, and which of them reach a function."""

    def __init__(self, items: Sequence[pytest.Item]) -> None:
        self.imported = set(CALLS)
        self.items = {item.nodeid: item for item in items}
        self.seconds: dict[str, float] = {}
        self.reaching: dict[str, list[str]] = defaultdict(list)

    def record(self) -> list[str]:
        """Run all tests once, and return those that fail without any mutant."""
        forks = [in_fork(functools.partial(self._recorded, part)) for part in _parts(list(self.items))]
        recorded = [json.loads(fork.end()[1]) for fork in forks]
        calls = {name: call for part, _ in recorded for name, call in part.items()}
        for name, (seconds, functions) in sorted(calls.items(), key=lambda call: call[1][0]):
            self.seconds[name] = seconds
            for function in functions:
                self.reaching[function].append(name)
        return [name for _, failing in recorded for name in failing]

    def _recorded(self, names: Iterable[str]) -> str:
        calls, failing = {}, []
        for name in names:
            CALLS.clear()
            start = time.process_time()
            if fails([self.items[name]]):
                failing.append(name)
            else:
                calls[name] = (time.process_time() - start, sorted(CALLS))
        return json.dumps((calls, failing))

    def of(self, mutant: str) -> list[str]:
        """Return the tests that reach the function of a mutant: those of its folder or file first, then the fastest."""
        rooms, names = {*mutant.split(".")[1:-1]}, self.reaching.get(function_of(mutant), [])
        names = sorted(names, key=lambda name: rooms.isdisjoint(re.split(r"[/._]+", _file(name))))
        return _within(MOST_SECONDS, names, self.seconds)

    def beside(self, mutant: str) -> list[str]:
        """Return files of tests: first those that reach the module of a mutant, then those of its importers."""
        module = mutant.rpartition(".")[0]
        seconds: dict[str, float] = defaultdict(float)
        for name in self.seconds:
            seconds[_file(name)] += self.seconds[name]
        near = self._reaching({module}), self._reaching(_importing(module))
        files = sorted(seconds, key=lambda file: (*(file not in files for files in near), seconds[file]))
        return _within(MOST_SECONDS_ANEW, files, seconds)

    def _reaching(self, modules: Container[str]) -> set[str]:
        """Return the files of tests that reach a function of the modules."""
        reaching = (names for function, names in self.reaching.items() if function.rpartition(".")[0] in modules)
        return {_file(name) for names in reaching for name in names}

    def status(self, mutant: str) -> str:
        names = self.of(mutant)
        if not names:
            return UNREACHED
        limit = MOST_SECONDS + 2 * sum(self.seconds[name] for name in names)
        code, _ = in_fork(functools.partial(self._tried, mutant, names, int(limit))).end(WAIT * limit)
        if code == 0:
            return IMPORTED if function_of(mutant) in self.imported else SURVIVED
        return TIMEOUT if code in (None, -signal.SIGXCPU) else NOTICED

    def results(self, mutants: Iterable[str], place: Path) -> str:
        """Append what the tests notice of each mutant to the file, and where it may show in imports, those to try."""
        for mutant in mutants:
            status = self.status(mutant)
            beside = self.beside(mutant) if status in (UNREACHED, IMPORTED) else []
            with place.open("a") as results:
                print(json.dumps((mutant, status, beside)), file=results)
        return ""

    def _tried(self, mutant: str, names: Iterable[str], limit: int) -> str:
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + limit, resource.RLIM_INFINITY))
        set_mutant_under_test(mutant)
        if fails(self.items[name] for name in names):
            os._exit(1)
        return ""


def _file(test: str) -> str:
    return test.partition("::")[0]


def _importing(module: str) -> set[str]:
    """Return the modules of the program that import something of another."""
    files = {name: getattr(other, "__file__", None) for name, other in sys.modules.items() if name.startswith("app.")}
    return {name for name, file in files.items() if file and f"from {module} import" in Path(file).read_text()}


def _within(most: float, names: Sequence[str], seconds: Mapping[str, float]) -> list[str]:
    """Return the first names, until they take so many seconds, and at least one if there is any."""
    sums = itertools.accumulate(seconds[name] for name in names)
    return [name for name, total in zip(names, sums, strict=True) if total < most] or list(names[:1])


def fails(items: Iterable[pytest.Item]) -> bool:
    """Run tests until one fails."""
    for item in items:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        if item.session.testsfailed:
            item.session.testsfailed = 0
            return True
    return False


class Fork(NamedTuple):
    """A process that answers on a pipe."""

    child: int
    reading: int

    def end(self, limit: float | None = None) -> tuple[int | None, str]:
        """Wait for its end. Return its exit code, which is ``None`` after the seconds, and the answer."""
        with os.fdopen(self.reading, "rb", buffering=0) as answers:
            text, end = b"", None if limit is None else time.monotonic() + limit
            while select.select([answers], [], [], None if end is None else max(end - time.monotonic(), 0))[0]:
                if not (part := answers.read(1 << 16)):
                    return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1]), text.decode()
                text += part
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        return None, ""


def in_fork(function: Callable[[], str]) -> Fork:
    """Call a function in a fork, which answers what it returns."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _called(function, writing)
    os.close(writing)
    return Fork(child, reading)


def _parts(names: Sequence[str]) -> list[Sequence[str]]:
    """Divide names among as many processes as there are processors."""
    return [names[start::PROCESSES] for start in range(PROCESSES)]


def _called(function: Callable[[], str], writing: int) -> None:
    """Call the function with empty caches and a silent screen, and end the process."""
    code = 2
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        for forget in FORGET:
            forget()
        text = function().encode()
        while text:
            text = text[os.write(writing, text) :]
        code = 0
    finally:
        os._exit(code)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Try the mutants in place of running the tests."""
    if session.testsfailed:
        raise session.Failed("tests cannot be collected, so that every mutant would look noticed")
    gc.unfreeze()
    FORGET.extend(item.cache_clear for item in gc.get_objects() if isinstance(item, functools._lru_cache_wrapper))  # noqa: SLF001
    gc.freeze()
    place, tests = Path(os.environ["MUTANTS"]), Tests(session.items)
    results = place.with_suffix(".results")
    results.write_text(json.dumps(tests.record()) + "\n")
    parts = _parts(json.loads(place.read_text()))
    for fork in [in_fork(functools.partial(tests.results, part, results)) for part in parts]:
        fork.end()
    return True
