"""The most expensive conversions: large reviews in expensive shapes, and randomly mutated recorded ones."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import orjson

from app import conversion
from app.errors import ProtocolError
from app.families import CONVERT
from app.kserve.conversion import LORA_CRITICALITIES, V1ALPHA1, V1ALPHA2
from app.kube.base import Json
from app.limits import MAX_CONVERTED_OBJECTS
from app.settings import Settings
from tests.bench.search import CPU_SECONDS, MEBIBYTES, Peak, Worst, mutated
from tests.contract.recordings import records

LIMIT = Settings().max_sync_bytes


def run(number: int) -> None:
    """Print the maximum CPU time and memory of a conversion and their budgets."""
    cpu, memory = Worst(), Worst()
    for name, body in (*_shapes(), *_mutations(number)):
        peak = Peak() if len(body) > 64 * 1024 else None
        started = time.process_time()
        try:
            conversion.answer(CONVERT, body)
        except ProtocolError:
            continue
        cpu.see(time.process_time() - started, name)
        if peak is not None:
            memory.see(peak.grown(), name)
    print(
        f"worst conversion: CPU {cpu.cost:.2f} s of {CPU_SECONDS} ({cpu.what}), "
        f"memory {memory.cost:.0f} MiB of {MEBIBYTES} ({memory.what})",
        flush=True,
    )


def _shapes() -> Iterator[tuple[str, bytes]]:
    """Yield reviews just below the limits on objects and values, up to the maximum body size."""
    plain = {"model": {"uri": "hf://a/b"}}
    rules: Json = {"router": {"route": {"http": {"spec": {"rules": [{"matches": [{}] * 4}] * 2000}}}}}
    adapters = {"model": {"uri": "a", "lora": {"adapters": [{"criticality": "a"}] * 12_000}}}
    bare = {"model": {"uri": "a", "lora": {"adapters": [{}] * 12_000}}}
    criticalities = {LORA_CRITICALITIES: orjson.dumps({str(n): "a" for n in range(12_000)}).decode()}
    pool = {"selector": {"a": "b"}, "targetPortNumber": 1, "extensionRef": {"name": "a", "portNumber": 3}}
    yield "small objects", conversion_review([_object(plain)] * MAX_CONVERTED_OBJECTS, V1ALPHA2)
    yield "pools", conversion_review([_object({"router": {"scheduler": {"pool": {"spec": pool}}}})] * 10_000, V1ALPHA2)
    yield "many objects with many values", conversion_review([_object({"baseRefs": [{}] * 23})] * 10_000, V1ALPHA2)
    yield "route rules", conversion_review([_object(rules)] * 20, V1ALPHA2)
    yield "adapters", conversion_review([_object(adapters)] * 20, V1ALPHA2)
    yield "adapters to v1alpha1", conversion_review([_object(bare, V1ALPHA2, criticalities)] * 20, V1ALPHA1)
    yield "large statuses", conversion_review([{**_object(plain), "status": {"a": "x" * 800}}] * 8000, V1ALPHA2)
    yield "large arguments", conversion_review([_object({"template": {"args": ["x" * 1000] * 180}})] * 44, V1ALPHA2)
    yield "empty objects", conversion_review([_object({"baseRefs": [{}] * 2_700_000})], V1ALPHA2)
    yield "no objects", conversion_review([0] * 4_000_000, V1ALPHA2)


def _mutations(number: int) -> Iterator[tuple[str, bytes]]:
    cases = [(case["from"], case["to"]["apiVersion"]) for case in records("conversions")]
    for turn in range(number):
        chance = random.Random(turn)
        document, version = chance.choice(cases)
        yield f"mutation {turn}", mutated(conversion_review([document], version), chance, LIMIT)


def _object(spec: Json, api_version: str = V1ALPHA1, annotations: Json | None = None) -> Json:
    metadata = {"name": "x", "namespace": "n", "annotations": annotations or {}}
    return {"apiVersion": api_version, "kind": "LLMInferenceService", "metadata": metadata, "spec": spec}


def conversion_review(objects: list[Json] | list[int], api_version: str) -> bytes:
    """Return the body of a request to convert objects to a version."""
    request = {"uid": "u", "desiredAPIVersion": api_version, "objects": objects}
    body = orjson.dumps({"apiVersion": conversion.API_VERSION, "kind": "ConversionReview", "request": request})
    assert len(body) <= LIMIT
    return body
