"""Many objects are divided among processes, one for each core. The results and their order stay the same."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from app.desk.progress import counted

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

T = TypeVar("T")
R = TypeVar("R")
MANY = 200
"""Up to this number of objects no process is started."""
MOST = 8
"""The largest number of processes: each has its own copy of what it changes."""


def shares(items: Sequence[T]) -> list[Sequence[T]]:
    """Divide items into consecutive shares of about one size, one for each core; a few items are one share.

    Processes are copies of this one, which Linux makes well, and only of a process without other threads.
    """
    can_fork = sys.platform == "linux" and threading.active_count() == 1
    number = min(len(os.sched_getaffinity(0)), MOST, len(items)) if can_fork and len(items) > MANY else 1
    bounds = [len(items) * place // number for place in range(number + 1)]
    return [items[start:end] for start, end in pairwise(bounds)]


def results(divided: Sequence[Sequence[T]], work: Callable[[Sequence[T]], R]) -> list[R]:
    """Return the result for each share, in their order. The last is made here, the others by processes.

    What a process fails to make is made here, too, and so its error is raised here.
    """
    with _started(divided[:-1], work) as pipes:
        last = work(divided[-1])
        others = [_received(pipe) or (work(share),) for pipe, share in zip(pipes, divided, strict=False)]
    return [*(result for (result,) in others), last]


def each(items: Sequence[T], work: Callable[[T], R], done: str) -> list[R]:
    """Return the result for each item, and show how many are done: ``each(objects, judge, "objects checked")``."""
    divided = results(shares(items), lambda share: [work(item) for item in counted(share, done)])
    return [*chain.from_iterable(divided)]


@contextmanager
def _started(divided: Sequence[Sequence[T]], work: Callable[[Sequence[T]], R]) -> Iterator[list[Connection]]:
    """Start a process for each share, and yield the pipes of their results. None of them is left at the end."""
    if not divided:
        yield []
        return
    import multiprocessing  # few commands have so many objects

    context, pipes = multiprocessing.get_context("fork"), []
    try:
        for share in divided:
            pipe, end = context.Pipe(duplex=False)
            process = context.Process(target=_send, args=(end, work, share), daemon=True)
            process.start()
            end.close()
            pipes.append(pipe)
        yield pipes
    finally:
        for child in multiprocessing.active_children():
            child.terminate()
            child.join()


def _send(end: Connection, work: Callable[[Sequence[T]], R], share: Sequence[T]) -> None:
    """Send the result for a share, in a tuple; nothing if it fails. Only the parent shows progress."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the process runs
    try:
        result = work(share)
    except Exception:  # noqa: BLE001 - the parent makes it, and meets the error
        return
    end.send((result,))


def _received(pipe: Connection) -> tuple[R] | None:
    try:
        received: tuple[R] = pipe.recv()
    except (EOFError, OSError):  # it ended before it sent anything, or in the midst of it
        return None
    return received
