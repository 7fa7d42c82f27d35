"""The work queue of a controller, with one timer for each key, and its back-off (MC-10.3)."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable

BACKOFF_FIRST, BACKOFF_LAST = 0.005, 1000.0
BUCKET_RATE, BUCKET_SIZE = 10.0, 100.0


class WorkQueue:
    """A queue of keys: a waiting key is added once; a key in progress is processed again afterwards."""

    def __init__(self) -> None:
        self._ready: asyncio.Queue[str] = asyncio.Queue()
        self._dirty: set[str] = set()
        self._working: set[str] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._failures: defaultdict[str, int] = defaultdict(int)
        self._tokens = BUCKET_SIZE
        self._filled = time.monotonic()

    def add(self, key: str) -> None:
        """Process this key as soon as a worker is free."""
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._working:
            self._ready.put_nowait(key)

    def add_after(self, key: str, delay: float) -> None:
        """Process this key after `delay` seconds, or earlier if its timer is already set to an earlier time."""
        if delay <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        pending = self._timers.get(key)
        if pending is not None:
            if pending.when() <= loop.time() + delay:
                return
            pending.cancel()
        self._timers[key] = loop.call_later(delay, self._due, key)

    def add_rate_limited(self, key: str) -> None:
        """Process this key after its back-off, or later if the rate limit of the whole queue requires it."""
        back_off = min(BACKOFF_FIRST * 2 ** min(self._failures[key], 60), BACKOFF_LAST)
        self._failures[key] += 1
        now = time.monotonic()
        self._tokens = min(BUCKET_SIZE, self._tokens + (now - self._filled) * BUCKET_RATE) - 1
        self._filled = now
        self.add_after(key, max(back_off, -self._tokens / BUCKET_RATE))

    def forget(self, key: str) -> None:
        """Reset the key's back-off after a success."""
        self._failures.pop(key, None)

    async def get(self) -> str:
        """Return the next key; call `done` with it afterwards."""
        key = await self._ready.get()
        self._dirty.discard(key)
        self._working.add(key)
        return key

    def done(self, key: str) -> None:
        """Mark the key as processed."""
        self._working.discard(key)
        if key in self._dirty:
            self._ready.put_nowait(key)

    async def serve(self, process: Callable[[str], Awaitable[None]]) -> None:
        """Process one key after the other, until cancelled."""
        while True:
            key = await self.get()
            try:
                await process(key)
            finally:
                self.done(key)

    def stop(self) -> None:
        """Cancel all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _due(self, key: str) -> None:
        self._timers.pop(key, None)
        self.add(key)
