"""Generated objects taken through admission and sync, in process, until nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from app.admission import review
from app.cli.offline import direct
from app.cli.simulate import MAX_ROUNDS, Cluster
from app.families import KINDS
from app.hooks.kind import Kind
from app.settings import Settings
from tests.e2e.generated.draw import Json

Documents = Callable[[int, str], list[Json]]
"""The objects of one number, in a namespace."""

SETTINGS = Settings()
_HOOKS = direct(SETTINGS)
_ADMISSION = {kind.resource.admission_path: kind for kind in KINDS}


def _send(path: str, body: bytes) -> bytes:
    kind = _ADMISSION.get(path)
    return _HOOKS(path, body) if kind is None else review.answer(kind, body, SETTINGS)


@dataclass
class Synced:
    """One parent at rest, and the last answer of its hook."""

    kind: Kind[Any, Any]
    parent: Json
    children: list[Json]
    status: Json


@dataclass
class World:
    """The objects of one number, admitted and settled."""

    number: int
    documents: list[Json]
    cluster: Cluster

    def synced(self) -> Iterator[Synced]:
        """Every parent of ours, with what its hook answers now."""
        for kind, parent in self.cluster.parents():
            answer = self.cluster.ask(kind, parent)
            yield Synced(kind, parent, answer["children"], answer["status"])


def admitted(documents: Documents, count: int, namespace: str, refused: list[str]) -> list[World]:
    """The first ``count`` worlds that admission lets in as a whole; why not goes to ``refused``."""
    found: list[World] = []
    number = 0
    while len(found) < count:
        world = admit(number, documents(number, namespace), namespace, refused)
        if world is not None:
            found.append(world)
        number += 1
        assert number < 3 * count, f"admission refuses most of what is generated: {refused[:20]}"
    return found


def admit(number: int, documents: list[Json], namespace: str, refused: list[str]) -> World | None:
    """The world of these objects, or nothing where admission refuses one of them."""
    cluster = Cluster(_send)
    for document in documents:
        verdict = cluster.apply(orjson.loads(orjson.dumps(document)), namespace)
        if not verdict.allowed:
            refused += [f"{number} {document['kind']}: {cause}" for cause in verdict.causes]
            return None
    assert cluster.settle() < MAX_ROUNDS, f"{number} does not come to rest"
    return World(number, documents, cluster)
