"""``make soak``: ordinary and heavy loads over TLS, with every response checked.

The last load goes to two replicas that restart in turn while their certificate is replaced.

Each load reports the number of wrong responses, the latency and the process' memory. Wrong responses fail the run.
Times are informational, because the generator shares the machine with the service.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import itertools
import os
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from app.certs import authority
from app.families import KINDS
from app.installation import CONVERSION_PATH
from app.kube.base import Json
from tests.bench import payloads
from tests.bench.conversions import conversion_review
from tests.bench.rotation import Replicas, rotating
from tests.contract.recordings import records
from tests.corpus import kinds
from tests.corpus.kinds import VALID, cluster_of_all, name_of
from tests.corpus.requests import REVIEW, SYNC, observed, review, service, spec_with, sync
from tests.service import JSON, Service, running


@dataclass(frozen=True)
class Call:
    """One request; ``verdict`` checks the decoded response."""

    path: str
    body: bytes
    verdict: Callable[[Any], bool]


@dataclass
class Tally:
    """The results of a load's calls; latencies in seconds."""

    latencies: list[float] = field(default_factory=list)
    shed: int = 0
    wrong: list[str] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        """Return a latency quantile in milliseconds."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 if ordered else 0.0


def reviewed(number: int, *, valid: bool) -> Call:
    """Return a review with a known verdict; the uid must be returned."""
    uid = f"soak-{number}"
    document = service(spec_with() if valid else spec_with(replicas=-1, image=" bad"))

    def verdict(answer: Any) -> bool:
        response = answer["response"]
        return response["uid"] == uid and response["allowed"] is valid and (valid or _causes(response) == 2)

    return Call(REVIEW, orjson.dumps(review(document, uid=uid)), verdict)


def _causes(response: Json) -> int:
    return len(response["status"]["details"]["causes"])


def synced() -> Call:
    """Return the bench's sync request, with its observed pods."""
    return Call(SYNC, payloads.inference_service_sync(), lambda answer: len(answer["children"]) >= 2)


def ordinary() -> Iterator[Call]:
    """Yield 300 reviews, of which 30 % are refused, to every 20 syncs."""
    call = synced()
    for number in itertools.count():
        yield call if number % 16 == 0 else reviewed(number, valid=number % 10 < 7)


def all_protocols() -> Iterator[Call]:
    """Yield conversions, reviews and syncs in turn."""
    conversions = itertools.cycle(_conversions())
    call = synced()
    for number in itertools.count():
        yield next(conversions)
        yield reviewed(number, valid=number % 10 < 7)
        yield call


def _conversions() -> Iterator[Call]:
    """Yield the recorded conversions; tests/contract compares their responses."""
    for case in records("conversions"):
        version = case["to"]["apiVersion"]
        yield Call(CONVERSION_PATH, conversion_review([case["from"]], version), partial(_is_converted, version))


def _is_converted(version: str, answer: Any) -> bool:
    response = answer["response"]
    versions = [document["apiVersion"] for document in response.get("convertedObjects", ())]
    return response["result"]["status"] == "Success" and versions == [version]


def large_reviews() -> Iterator[Call]:
    """Yield reviews with two objects of 1.4 MiB each, mainly field ownership, between ordinary ones."""
    document = service(spec_with(env=[{"name": f"V{n}", "value": "x" * 1000} for n in range(100)]))
    document["metadata"]["managedFields"] = payloads.managed_fields(11_000)
    body = orjson.dumps(review(document, document))
    for number in itertools.count():
        yield Call(REVIEW, body, _is_allowed) if number % 30 == 0 else reviewed(number, valid=True)


def _is_allowed(answer: Any) -> bool:
    return answer["response"]["allowed"] is True


def large_syncs() -> Iterator[Call]:
    """Yield syncs with a thousand children in 7 MiB; the spec is invalid, so all children are returned."""
    record = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "ns"}, "spec": {"x": "y" * 3500}}
    group = {}
    for number in range(1000):
        named = {**record, "metadata": {"name": f"c-{number}", "namespace": "ns"}}
        group[f"ns/c-{number}"] = observed(named)
    body = orjson.dumps(sync(service(spec_with(image=" bad")), children={"Deployment.apps/v1": group}))
    while True:
        yield Call(SYNC, body, lambda answer: len(answer["children"]) == 1000)


MARK = "soak-mark"


def varied(number: int) -> Iterator[Call]:
    """Yield ``number`` requests of all kinds, no two with the same object, spec or related specs."""
    cluster, bodies = cluster_of_all(), []
    for kind in KINDS:
        spec = {**VALID[name_of(kind)], "soakMark": MARK}
        document = kinds.parent(kind, spec)
        document["metadata"] |= {"name": MARK, "uid": MARK, "labels": {"soak": MARK}}
        asked = orjson.loads(cluster.request(kind, document))
        for group in asked["related"].values():
            for related in group.values():
                if isinstance(related.get("spec"), dict):
                    related["spec"] = {**related["spec"], "soakMark": MARK}
        bodies.append((f"{kind.resource.hook_path}/sync", orjson.dumps(asked), _is_synced))
        bodies.append((kind.resource.admission_path, orjson.dumps(kinds.reviewed(kind, document)), _is_allowed))
    for turn in range(number):
        path, body, verdict = bodies[turn % len(bodies)]
        yield Call(path, body.replace(MARK.encode(), f"soak-{turn}".encode()), verdict)


def _is_synced(answer: Any) -> bool:
    reasons = {condition.get("reason") for condition in answer["status"].get("conditions", ())}
    return isinstance(answer["children"], list) and "InvalidSpec" not in reasons


LIMIT_MIB = 256
"""The memory limit of the shipped Deployment."""


def largest() -> Iterator[Call]:
    """Yield a sync of about the maximum size: a service with seven hundred pods."""
    yield Call(SYNC, payloads.inference_service_sync(700), lambda answer: len(answer["children"]) >= 2)


def drive(
    target: Service | Replicas,
    calls: Iterator[Call],
    connections: int,
    rate: float,
    seconds: float,
    *,
    reuse: bool = True,
) -> Tally:
    """Send ``rate`` calls per second (0: as fast as they are answered), each on one of the connections."""
    tally, lock = Tally(), threading.Lock()
    begin = time.perf_counter()

    def client() -> None:
        connection = target.connect()
        while (now := time.perf_counter()) < begin + seconds:
            with lock:
                call = next(calls, None)
                client_number = next(turns)
            if call is None:
                break
            due = begin + client_number / rate if rate else now
            if due > begin + seconds:
                break
            time.sleep(max(0.0, due - now))
            if not reuse:
                connection.close()
                connection = target.connect()
            started = time.perf_counter()
            found = _ask(connection, call)
            with lock:
                tally.latencies.append(time.perf_counter() - started)
                tally.shed += found == "shed"
                if found not in ("", "shed"):
                    tally.wrong.append(found)
            if found:
                connection.close()
        connection.close()

    turns = itertools.count()
    threads = [threading.Thread(target=client) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally


def _ask(connection: http.client.HTTPConnection, call: Call) -> str:
    """Return an empty string for a correct response, ``shed`` for a proper 429, and otherwise the problem."""
    try:
        connection.request("POST", call.path, call.body, JSON)
        response = connection.getresponse()
        body = response.read()
    except OSError as fault:
        return f"{call.path}: {fault!r}"
    if response.status == 429 and (response.headers.get("retry-after") or "").isdigit():
        return "shed"
    if response.status != 200 or not call.verdict(orjson.loads(body)):
        return f"{call.path}: {response.status} {body[:200]!r}"
    return ""


@contextlib.contextmanager
def encrypted() -> Iterator[Service]:
    """Run the service with its own certificate, on one core if there are several."""
    with tempfile.TemporaryDirectory() as name:
        bundle = authority.ensure(None, ["127.0.0.1"], datetime.now(UTC))
        files = Path(name, "tls.crt"), Path(name, "tls.key")
        files[0].write_text(bundle.leaf.certificate)
        files[1].write_text(bundle.leaf.key)
        with running("--tls-cert-file", str(files[0]), "--tls-key-file", str(files[1])) as found:
            found.tls = ssl.create_default_context(cadata=bundle.trusted)
            cores = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(found.process.pid, cores[:1])
            os.sched_setaffinity(0, cores[1:] or cores)
            threading.Thread(target=_read_away, args=(found,), daemon=True).start()
            try:
                yield found
            finally:
                os.sched_setaffinity(0, cores)


def _read_away(found: Service) -> None:
    """Read and discard the service's log: an unread log would fill its queue, which looks like a leak."""
    assert found.process.stdout is not None
    with contextlib.suppress(OSError, ValueError):
        while os.read(found.process.stdout.fileno(), 65536):
            pass


PARENTS, WORKERS = 1000, 5


def resync(target: Service) -> int:
    """Sync every parent once with five workers, as after a new release or a flush of Metacontroller's cache.

    The first pass writes the statuses; after that, every response must have the same bytes. Return the number that
    differ.
    """
    parents = [service(metadata=_metadata(number)) for number in range(PARENTS)]
    answers: list[list[bytes]] = []
    for round_number in range(3):
        begin = time.perf_counter()
        with ThreadPoolExecutor(WORKERS) as pool:
            shares = list(pool.map(lambda share: _pass(target, share), [parents[n::WORKERS] for n in range(WORKERS)]))
        print(f"pass {round_number + 1} over {PARENTS} resources: {time.perf_counter() - begin:.1f} s", flush=True)
        answers.append([answer for share in shares for answer in share])
        for share, number in zip(shares, range(WORKERS), strict=True):
            for parent, answer in zip(parents[number::WORKERS], share, strict=True):
                parent["status"] = orjson.loads(answer)["status"]
    return sum(a != b for a, b in zip(answers[1], answers[2], strict=True))


def _metadata(number: int) -> Json:
    return {"name": f"s-{number}", "namespace": "ns", "uid": f"u-{number}", "generation": 1}


def _pass(target: Service, parents: list[Json]) -> list[bytes]:
    found = []
    with contextlib.closing(target.connect()) as connection:
        for parent in parents:
            connection.request("POST", SYNC, orjson.dumps(sync(parent, children=_CHILDREN)), JSON)
            found.append(connection.getresponse().read())
    return found


_CHILDREN: Json = {"Deployment.apps/v1": {}, "Service.v1": {}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300, help="of the steady load; the others take a tenth each")
    parser.add_argument("--distinct", type=int, default=100_000, help="requests about ever new objects")
    args = parser.parse_args()
    seconds = args.seconds
    short = max(2.0, seconds / 10)
    with encrypted() as target:
        drive(target, ordinary(), 8, 0, 2)  # warm up: every request has been sent once
        wrong = [
            _report(target, "steady", drive(target, ordinary(), 25, 320, seconds)),
            _report(target, "peak, 16 connections", drive(target, ordinary(), 16, 0, short)),
            _report(target, "a new connection each, 50/s", drive(target, ordinary(), 10, 50, short, reuse=False)),
            _report(target, "overload, 200 connections", drive(target, ordinary(), 200, 0, short)),
            _report(target, "steady again", drive(target, ordinary(), 25, 320, short)),
            _report(target, "reviews of 2.8 MiB among others", drive(target, large_reviews(), 25, 150, short)),
            _report(target, "syncs of 7 MiB, 1,000 children", drive(target, large_syncs(), 2, 2, short)),
            _report(target, "steady at the end", drive(target, ordinary(), 25, 320, short)),
            resync(target),
            _report(target, "ever new objects of all kinds", drive(target, varied(args.distinct), 8, 0, 3600)),
            _report(target, "the largest sync", drive(target, largest(), 1, 0, 60)),
            _within_limit(target),
        ]
    with tempfile.TemporaryDirectory() as directory, rotating(Path(directory)) as replicas:
        tally = drive(replicas, all_protocols(), 16, 10_000 / 60, seconds / 5, reuse=False)
    print(f"{_described(f'{replicas.restarts} restarts and certificates', tally)}", flush=True)
    wrong.append(_shown_wrong(tally))
    return 1 if any(wrong) else 0


def _within_limit(target: Service) -> int:
    """Return 1 if the process ever exceeded its memory limit, else 0."""
    text = Path(f"/proc/{target.process.pid}/status").read_text()
    peak = int(next(line for line in text.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024
    print(f"{'most memory ever':34} {peak:.0f} MiB of {LIMIT_MIB}", flush=True)
    return int(peak > LIMIT_MIB)


def _report(target: Service, name: str, tally: Tally) -> int:
    descriptors = len(list(Path(f"/proc/{target.process.pid}/fd").iterdir()))
    print(f"{_described(name, tally)}  {target.rss() / 1024:.0f} MiB  {descriptors} descriptors", flush=True)
    return _shown_wrong(tally)


def _described(name: str, tally: Tally) -> str:
    times = " / ".join(f"{tally.quantile(share):.1f}" for share in (0.5, 0.99, 0.999))
    return (
        f"{name:34} {len(tally.latencies):7} calls  {len(tally.wrong)} wrong  {tally.shed} shed  "
        f"p50 / p99 / p99.9 {times} ms"
    )


def _shown_wrong(tally: Tally) -> int:
    """Print the first wrong responses, and return their total number."""
    for line in tally.wrong[:5]:
        print("   ", line, flush=True)
    return len(tally.wrong)


if __name__ == "__main__":
    sys.exit(main())
