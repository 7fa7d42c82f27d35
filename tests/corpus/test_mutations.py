"""Random changes to the bytes of valid requests of every kind cause no internal error (HTTP-F08)."""

from __future__ import annotations

import random
from collections.abc import Callable

import orjson
import pytest

from app.admission import review
from app.desk.cluster import store
from app.desk.cluster.simulate import Cluster
from app.errors import ProtocolError
from app.families import KINDS
from app.hooks.answer import answer_customize, answer_sync
from tests.corpus.kinds import SETTINGS, VALID, name_of, parent, reviewed
from tests.hookcalls import NOW

pytestmark = pytest.mark.no_cover

MUTATIONS = 1500
"""Changes per kind. A run of 1.8 million when this was written found no further fault."""
TOKENS = [
    *(b"null", b"[]", b"{}", b'""', b"-1", b"1e400", b"0.5", b"true", b"9" * 30, b'"name"'),
    *(b"\\ud800", b"\\u0000", b"\x00", b"\xff", b'"', b",", b":", b"}", b"]", b"{", b"["),
]

Answer = Callable[[bytes], bytes]


def requests(cluster: Cluster, number: int) -> list[tuple[Answer, bytes]]:
    """Return a review, a customize request and syncs of one kind, each with the function that answers it."""
    kind = KINDS[number]
    document = parent(kind, VALID[name_of(kind)])
    existing = [stored for other, stored in cluster.parents() if other is kind]
    return [
        (lambda body: review.answer(kind, body, SETTINGS), orjson.dumps(reviewed(kind, document, document))),
        (lambda body: answer_customize(kind, body, SETTINGS), store.customize_request(kind, document)),
        *(
            (lambda body: answer_sync(kind, body, SETTINGS, NOW), cluster.request(kind, asked))
            for asked in (document, *existing)
        ),
    ]


def mutated(body: bytes, chance: random.Random) -> bytes:
    """Return the body with one to three changes: replaced, removed, inserted or repeated bytes."""
    changed = bytearray(body)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        place, what = chance.randrange(len(changed)), chance.random()
        if what < 0.3:
            changed[place] = chance.randrange(256)
        elif what < 0.5:
            del changed[place : place + chance.randrange(1, 8)]
        elif what < 0.9:
            token = chance.choice(TOKENS)
            changed[place : place + chance.choice([0, 1, len(token)])] = token
        else:
            start = chance.randrange(len(changed))
            changed[place:place] = changed[start : start + chance.randrange(1, 60)]
    return bytes(changed)


@pytest.mark.parametrize("number", range(len(KINDS)), ids=[name_of(kind) for kind in KINDS])
def test_no_bytes_are_a_fault_of_ours(cluster: Cluster, number: int) -> None:
    chance, valid = random.Random(number), requests(cluster, number)
    refusals = []
    for _ in range(MUTATIONS):
        answer, body = chance.choice(valid)
        try:
            assert orjson.loads(answer(mutated(body, chance)))
        except ProtocolError as refusal:
            refusals.append(refusal)
    assert len(refusals) < MUTATIONS * 0.95
    assert {refusal.status for refusal in refusals} == {400}
    assert not any("\n" in str(refusal) for refusal in refusals)
