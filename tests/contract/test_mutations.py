"""Random changes of values in recorded requests cause no error, lose no child and change no permissions.

All optional kinds are installed, so KServe's syncs have Roles, RoleBindings and ServiceAccounts as children.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from app import conversion
from app.desk.cluster.store import outer_key
from app.errors import ProtocolError
from app.families import CONVERT, KINDS
from app.hooks.answer import answer_sync
from app.hooks.kind import Kind
from app.kube.base import Json
from tests.changed import copied
from tests.contract.recordings import FAMILIES, records, replayed
from tests.contract.test_goldens import settings
from tests.contract.world import World
from tests.corpus.test_mutations import mutated as mutated_bytes
from tests.hookcalls import NOW

pytestmark = pytest.mark.no_cover

MUTATIONS = 6
"""Changes per request."""
RBAC = ("Role", "RoleBinding", "ServiceAccount")
VALUES: list[Any] = [
    *(None, True, 0, -1, 2**63 - 1, 1.5, "", "x" * 300, "\x00", "../..", "{{ .Name }}", "*", [], {}, [None], [[]]),
    *([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}], {"name": "a"}, [{"name": "a"}, {"name": "a"}]),
]

Place = tuple[Any, ...]


@pytest.mark.parametrize("family", FAMILIES)
def test_no_sync_fails_or_loses_a_child(family: str) -> None:
    """The parent, its children and related objects are changed."""
    chance, answered = random.Random(family), 0
    kinds: set[str] = set()
    refusals: list[int] = []
    for case, kind, request in requests(family):
        kinds |= {child["kind"] for child in observed(request)}
        for _ in range(MUTATIONS):
            mutated = mutate(request, chance.choice(["parent", "children", "children", "related"]), chance)
            try:
                answer = orjson.loads(answer_sync(kind, orjson.dumps(mutated), settings(case), NOW))
            except ProtocolError as refusal:
                refusals.append(refusal.status)
                continue
            answered += 1
            if reason(answer) == "InvalidSpec" and mutated["children"] == request["children"]:
                assert names(observed(request)) <= names(answer["children"]), case["name"]
    assert answered > len(refusals)
    assert set(refusals) <= {400, 413}
    assert kinds >= (set(RBAC) if family == "kserve" else {"Deployment"})


def test_observed_permissions_decide_nothing() -> None:
    """Observed Roles, RoleBindings and ServiceAccounts do not affect the children."""
    chance, compared = random.Random(1), 0
    for case, kind, request in requests("kserve"):
        before = orjson.loads(answer_sync(kind, orjson.dumps(request), settings(case), NOW))["children"]
        groups = [key for key in request["children"] if key.partition(".")[0] in RBAC and request["children"][key]]
        for group in groups * MUTATIONS:
            mutated = copied(request)
            change(mutated["children"][group], chance)
            try:
                answer = orjson.loads(answer_sync(kind, orjson.dumps(mutated), settings(case), NOW))
            except ProtocolError:
                continue
            compared += 1
            assert permissions(answer["children"]) == permissions(before), case["name"]
            assert names(answer["children"]) == names(before), case["name"]
    assert compared > 100


def test_no_conversion_fails_or_loses_an_object() -> None:
    """Every answer has the uid, and either all objects or none."""
    chance, converted = random.Random(2), 0
    for case in records("conversions"):
        body = review([case["from"], case["to"]], case["to"]["apiVersion"])
        for _ in range(MUTATIONS):
            mutated = copied(body)
            change(mutated["request"]["objects"], chance)
            response = orjson.loads(conversion.answer(CONVERT, orjson.dumps(mutated)))["response"]
            assert response["uid"] == "u"
            if response["result"]["status"] == "Success":
                objects = mutated["request"]["objects"]
                assert [item["kind"] for item in response["convertedObjects"]] == [item["kind"] for item in objects]
                assert {item["apiVersion"] for item in response["convertedObjects"]} == {case["to"]["apiVersion"]}
                converted += 1
            else:
                assert "convertedObjects" not in response
                assert response["result"]["message"]
    assert converted > 500


def test_no_bytes_of_a_conversion_are_a_fault() -> None:
    chance, answered = random.Random(3), 0
    refusals: set[int] = set()
    for case in records("conversions"):
        body = orjson.dumps(review([case["from"]], case["to"]["apiVersion"]))
        for _ in range(MUTATIONS):
            try:
                assert orjson.loads(conversion.answer(CONVERT, mutated_bytes(body, chance)))["response"]["uid"]
                answered += 1
            except ProtocolError as refusal:
                refusals.add(refusal.status)
    assert answered > 300
    assert refusals == {400}


def review(objects: list[Json], api_version: str) -> Json:
    request = {"uid": "u", "desiredAPIVersion": api_version, "objects": objects}
    return {"apiVersion": conversion.API_VERSION, "kind": "ConversionReview", "request": request}


def requests(family: str) -> Iterator[tuple[Json, Kind[Any, Any], Json]]:
    """Yield every third recorded case, with the sync requests of its parents when nothing changes any more."""
    for case in [case for case in replayed(family) if "objects" in case][::3]:
        world = World(case, settings(case), complete=True)
        world.run()
        for kind in KINDS:
            if kind.resource.family == family and kind.resource.children and world.has(kind.resource.kind):
                yield case, kind, orjson.loads(world.request(kind.resource.kind))


def observed(request: Json) -> list[Json]:
    return [child for group in request["children"].values() for child in group.values()]


def names(children: list[Json]) -> set[tuple[str, str]]:
    return {(outer_key(child), child["metadata"]["name"]) for child in children}


def permissions(children: list[Json]) -> list[Json]:
    return [child for child in children if child["kind"] in RBAC]


def reason(answer: Json) -> str:
    conditions = (answer.get("status") or {}).get("conditions") or []
    return next((condition.get("reason", "") for condition in conditions if condition["type"] == "Ready"), "")


def mutate(request: Json, part: str, chance: random.Random) -> Json:
    mutated = copied(request)
    for _ in range(chance.choice([1, 1, 2, 3])):
        change(mutated[part], chance)
    return mutated


def change(part: Any, chance: random.Random) -> None:
    """Replace, remove or repeat one value, but not identities, which Metacontroller and the API server write."""
    places = [
        place for place in _places(part, ()) if not {"name", "namespace", "uid", "kind", "apiVersion"} & {place[-1]}
    ]
    if not places:
        return
    *above, last = chance.choice(places)
    holder = part
    for step in above:
        holder = holder[step]
    action = chance.random()
    if action < 0.15:
        del holder[last]
    elif action < 0.25 and isinstance(holder, list):
        holder.append(copied(holder[last]))
    else:
        holder[last] = copied(chance.choice(VALUES))


def _places(value: Any, above: Place) -> Iterator[Place]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if len(above) >= 2 or not isinstance(item, dict):
            yield (*above, key)
        yield from _places(item, (*above, key))
