"""A randomized search for expensive requests: requests of every kind, mutated to cause more work than they should.

After them, each kind answers about its longest lists.

Each request's CPU seconds and additional memory are recorded, and the maxima are printed with the request and the
budget. A request is identified by its kind, seed and number.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import random
import string
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from app.admission import review
from app.desk.cluster import store
from app.desk.cluster.simulate import Cluster
from app.errors import ProtocolError
from app.families import KINDS
from app.hooks.answer import answer_customize, answer_sync
from app.hooks.kind import Kind
from app.limits import MAX_REVIEW_BYTES
from app.settings import Settings
from tests.bench.longlists import LONG_LISTS
from tests.corpus.kinds import VALID, cluster_of_all, name_of, parent, reviewed
from tests.hookcalls import NOW

CPU_SECONDS = 0.5
MEBIBYTES = 64
SETTINGS = Settings()

Answer = Callable[[bytes], bytes]
Json = Any


@dataclass
class Worst:
    """The most expensive request in one respect."""

    cost: float = 0.0
    what: str = ""

    def see(self, cost: float, what: str) -> None:
        if cost > self.cost:
            self.cost, self.what = cost, what


@dataclass
class Found:
    """The result of a search through one kind."""

    requests: int = 0
    refused: int = 0
    cpu: Worst = field(default_factory=Worst)
    memory: Worst = field(default_factory=Worst)
    faults: list[str] = field(default_factory=list)

    @property
    def within_budget(self) -> bool:
        return not self.faults and self.cpu.cost <= CPU_SECONDS and self.memory.cost <= MEBIBYTES


# Values that are more expensive than they look.

TEXTS = [
    *(
        "x",
        "ü",
        "\\",
        '"',
        "{{0}}",
        "{{.Spec}}",
        "{{.Annotations}}",
        "{{if .Name}}",
        "(",
        "{{print ",
        "a.",
        "../",
        "%00",
    ),
    *("hf://", "https://h/", "[", "-", "0", "1e", "\x01", "{{ `", "}}", " | ", "{", "/", "@", ":", "🙂", "A=B,"),
    *("9", ".", "TP ", " ", "\n", "", "²", "a=float:", "--tp=", "x:v0.", "/*", "$(A)"),
]
NUMBERS = [0, -1, 2**31, 2**63, 2**64, 10**30, 1e300, 0.1, 5.0, -0.0]
KEYS = ["name", "containerPort", "mountPath", "port", "path", "key", "a", "$patch", "x" * 300, "app.kubernetes.io/name"]


def _text(chance: random.Random, room: int) -> str:
    """Return one piece many times, between two others: what a pattern may divide in many ways, and does not match."""
    begin, piece, end = chance.choice(["", *TEXTS]), chance.choice(TEXTS), chance.choice(["", *TEXTS])
    return begin + piece * chance.randrange(1, max(2, room // max(1, len(piece.encode())))) + end


def _value(chance: random.Random, room: int, near: Json) -> Json:
    """Return a list, map, string or number of up to about ``room`` bytes, often derived from the value ``near``."""
    kind = chance.random()
    if kind < 0.25:
        return _text(chance, room)
    if kind < 0.4:
        item = chance.choice([near, {}, [], "", None, {"name": "a"}, {"name": "b", "value": "c"}, 0, {"a": {}}])
        return [item] * (room // (len(orjson.dumps(item, default=str)) + 1))
    if kind < 0.5:
        key, item = chance.choice(KEYS), chance.choice([near, "v", {}, None])
        return {f"{key}{n}": item for n in range(room // (len(key) + len(orjson.dumps(item, default=str)) + 8))}
    if kind < 0.6:
        begin, same = chance.choice(["", "-", "--", "nvidia.com/"]), random.Random(chance.randrange(2))
        words = [_word(same) for _ in range(room // 24)]  # the same as in another list, or other ones
        names = [begin + word for word in words]
        return names if chance.random() < 0.5 else dict.fromkeys(names, chance.choice([near, "v", 1]))
    if kind < 0.7:
        return _nested(chance, chance.choice([10, 63, 64, 300, 900]))
    if kind < 0.8:
        key, base = chance.choice(KEYS), near if isinstance(near, dict) else {}
        same = random.Random(chance.randrange(2))
        return [{**base, key: _word(same)} for _ in range(room // (len(orjson.dumps(base, default=str)) + 40))]
    return chance.choice(NUMBERS)


def _word(chance: random.Random) -> str:
    """Return a name like those that a similar one is searched for: no two share their letters, and all their length."""
    return "".join(chance.choices(string.ascii_lowercase + "-", k=22))


def _nested(chance: random.Random, depth: int) -> Json:
    value: Json = chance.choice([None, 1, "x", {}, []])
    for _ in range(min(depth, 200)):
        value = [value] if chance.random() < 0.5 else {chance.choice(KEYS): value}
    return value


def _places(document: Json) -> Iterator[tuple[Json, Any]]:
    """Yield the place of every value: its container, and its key or index there."""
    stack = [document]
    while stack:
        holder = stack.pop()
        members = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, item in list(members):
            yield holder, key
            if isinstance(item, (dict, list)):
                stack.append(item)


def mutated(body: bytes, chance: random.Random, limit: int) -> bytes:
    """Return the request with one to three values replaced or repeated, of at most ``limit`` bytes.

    Sizes are distributed logarithmically; every fiftieth mutation is up to the limit of the transport.
    """
    room = int(10 ** chance.uniform(1, 6.5)) if chance.random() < 0.98 else chance.randrange(limit)
    text = body
    for _ in range(chance.choice([1, 1, 2, 3])):
        document = orjson.loads(text)  # parsed anew, so that no object occurs twice in it
        holder, key = chance.choice(list(itertools.islice(_places(document), 20_000)))
        now = holder[key]
        if isinstance(holder, dict) and isinstance(now, dict) and chance.random() < 0.3:
            size = len(orjson.dumps(now, default=str)) + 20
            holder.update({f"{key}-{n}": now for n in range(min(20_000, room // size))})  # objects, containers, labels
        else:
            holder[key] = _value(chance, room, now)
        try:
            text = orjson.dumps(document)
        except TypeError:  # too deep for the encoder, or a number that JSON does not have
            return body
    if chance.random() < 0.1:
        text = text.replace(b'"v"', chance.choice([b"9" * 5000, b"1e400", b'"\\ud800"', b"1" + b"0" * 300]))
    return text if len(text) <= limit else body


def seeds(cluster: Cluster, kind: Kind[Any, Any]) -> list[tuple[str, Answer, bytes, int]]:
    """Return the requests to mutate: a review, an update, a customize call, and syncs of all objects of the kind."""
    document = parent(kind, VALID[name_of(kind)])
    held = [document, *(held for own, held in cluster.parents() if own is kind)]
    found: list[tuple[str, Answer, bytes, int]] = [
        (
            "review",
            lambda body: review.answer(kind, body, SETTINGS),
            orjson.dumps(reviewed(kind, d, o)),
            MAX_REVIEW_BYTES,
        )
        for d, o in ((document, None), (document, document), (held[-1], held[-1]))
    ]
    limit = SETTINGS.max_sync_bytes
    asked = store.customize_request(kind, document)
    found.append(("customize", lambda body: answer_customize(kind, body, SETTINGS), asked, limit))
    for known in held:
        body = cluster.request(kind, known)
        found.append(("sync", lambda body: answer_sync(kind, body, SETTINGS, NOW), body, limit))
    return found


def search(kind: Kind[Any, Any], number: int, seed: int = 1, cluster: Cluster | None = None) -> Found:
    """Answer ``number`` mutated requests of one kind."""
    found, valid = Found(), seeds(cluster or cluster_of_all(), kind)
    for turn in range(number):
        chance = random.Random(f"{name_of(kind)} {seed} {turn}")
        what, answer, body, limit = chance.choice(valid)
        body = mutated(body, chance, limit)
        _measure(found, f"{what} {turn}, {len(body) / 1024:.0f} KiB", answer, body)
    return found


def long_lists(kind: Kind[Any, Any]) -> Found:
    """Answer an update and a sync for each of the longest lists of one kind."""
    found = Found()
    for name, spec in LONG_LISTS.get(name_of(kind), {}).items():
        document = parent(kind, spec)
        update = orjson.dumps(reviewed(kind, document, document))
        body = orjson.dumps({"parent": document, "children": {}, "related": {}, "finalizing": False})
        _measure(found, f"update, {name}", lambda body: review.answer(kind, body, SETTINGS), update)
        _measure(found, f"sync, {name}", lambda body: answer_sync(kind, body, SETTINGS, NOW), body)
    return found


def _measure(found: Found, label: str, answer: Answer, body: bytes) -> None:
    peak = Peak() if len(body) > 64 * 1024 else None
    started = time.process_time()
    try:
        answer(body)
    except ProtocolError:
        found.refused += 1
    except Exception as fault:  # noqa: BLE001 - what is searched for
        found.faults.append(f"{label}: {type(fault).__name__} {str(fault)[:80]}")
    found.cpu.see(time.process_time() - started, label)
    if peak is not None:
        found.memory.see(peak.grown(), label)
    found.requests += 1


class Peak:
    """The increase of the process' peak memory since construction, in MiB; on Linux only."""

    def __init__(self) -> None:
        gc.collect()
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        self._before = _status("VmRSS")

    def grown(self) -> float:
        return max(0.0, _status("VmHWM") - self._before)


def _status(key: str) -> float:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return int(next(line for line in lines if line.startswith(key)).split()[1]) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.bench.search", description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000, help="per kind (default: 20000)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    return 0 if all(found.within_budget for found in run(args.requests, args.seed)) else 1


def run(number: int, seed: int = 1) -> list[Found]:
    """Search every kind, then answer about its longest lists; print the maxima of both."""
    results = []
    for kind in KINDS:
        for found in (search(kind, number, seed), long_lists(kind)):
            if found.requests:
                _tell(kind, found)
            results.append(found)
    return results


def _tell(kind: Kind[Any, Any], found: Found) -> None:
    print(
        f"search {name_of(kind):42} {found.requests} requests, {found.refused} refused  "
        f"CPU {found.cpu.cost:.2f} s of {CPU_SECONDS} ({found.cpu.what})  "
        f"memory {found.memory.cost:.0f} MiB of {MEBIBYTES} ({found.memory.what})  {len(found.faults)} faults",
        flush=True,
    )
    for line in found.faults[:5]:
        print("   ", line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
