"""A plugin of pytest that tries mutants, each in a process of its own that is forked when all tests are collected.

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
import select
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from mutmut.mutation.trampoline import set_mutant_under_test  # type: ignore[import-not-found]  # installed beside the mutants
from mutmut.state import state  # type: ignore[import-not-found]
from mutmut.utils.format_utils import mangled_name_from_mutant_name as function_of  # type: ignore[import-not-found]

from app.hooks.memo import MEMO

NOTICED, SURVIVED, TIMEOUT, UNREACHED, IMPORTED = "noticed", "survived", "time limit", "no tests", "used in imports"
MOST_SECONDS = 20
"""How long the tests of a mutant take without it: of more, the farthest and slowest are left out."""
CALLS = state()._stats  # noqa: SLF001 - mutmut has no other name for the functions that were called
FORGET: list[Callable[[], object]] = [MEMO.__init__]  # type: ignore[misc]  # the same object, empty
"""What empties caches, which have results of the code without changes."""

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
        calls, failing = json.loads(in_fork(self._recorded)[1])
        for name, (seconds, functions) in sorted(calls.items(), key=lambda call: call[1][0]):
            self.seconds[name] = seconds
            for function in functions:
                self.reaching[function].append(name)
        return list(failing)

    def _recorded(self) -> str:
        calls, failing = {}, []
        for name, item in self.items.items():
            CALLS.clear()
            start = time.monotonic()
            if fails([item]):
                failing.append(name)
            else:
                calls[name] = (time.monotonic() - start, sorted(CALLS))
        return json.dumps((calls, failing))

    def of(self, mutant: str) -> list[str]:
        """Return the tests that reach the function of a mutant: those of its folder or file first, then the fastest."""
        rooms, names = {*mutant.split(".")[1:-1]}, self.reaching.get(function_of(mutant), [])
        names = sorted(names, key=lambda name: rooms.isdisjoint(re.split(r"[/._]+", name.partition("::")[0])))
        sums = itertools.accumulate(self.seconds[name] for name in names)
        return [name for name, seconds in zip(names, sums, strict=True) if seconds < MOST_SECONDS] or names[:1]

    def status(self, mutant: str) -> str:
        names = self.of(mutant)
        if not names:
            return UNREACHED
        limit = MOST_SECONDS + 2 * sum(self.seconds[name] for name in names)
        code, _ = in_fork(functools.partial(self._tried, mutant, names), limit)
        if code == 0:
            return IMPORTED if function_of(mutant) in self.imported else SURVIVED
        return TIMEOUT if code is None else NOTICED

    def _tried(self, mutant: str, names: Iterable[str]) -> str:
        set_mutant_under_test(mutant)
        if fails(self.items[name] for name in names):
            os._exit(1)
        return ""


def fails(items: Iterable[pytest.Item]) -> bool:
    """Run tests until one fails."""
    for item in items:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        if item.session.testsfailed:
            item.session.testsfailed = 0
            return True
    return False


def in_fork(function: Callable[[], str], limit: float | None = None) -> tuple[int | None, str]:
    """Call a function in a fork. Return its exit code, which is ``None`` after the seconds, and what it returns."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _called(function, writing)
    os.close(writing)
    with os.fdopen(reading, "rb", buffering=0) as answers:
        text, end = b"", None if limit is None else time.monotonic() + limit
        while select.select([answers], [], [], None if end is None else max(end - time.monotonic(), 0))[0]:
            if not (part := answers.read(1 << 16)):
                return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text.decode()
            text += part
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None, ""


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
    gc.unfreeze()
    FORGET.extend(item.cache_clear for item in gc.get_objects() if isinstance(item, functools._lru_cache_wrapper))  # noqa: SLF001
    gc.freeze()
    place, tests = Path(os.environ["MUTANTS"]), Tests(session.items)
    with place.with_suffix(".results").open("w") as results:
        print(json.dumps(tests.record()), file=results, flush=True)
        for mutant in json.loads(place.read_text()):
            print(json.dumps((mutant, tests.status(mutant))), file=results, flush=True)
    return True
