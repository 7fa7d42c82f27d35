"""What a pod template is made from is in the digest beside it: no change of a user's is taken for a release's.

Requests about the recorded resources are changed in one place at a time, and answered as by one that keeps nothing.
Where a template comes out otherwise, the digest has to be another one.
"""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from app.errors import ProtocolError
from app.families import KINDS
from app.hooks.kind import Kind, answer_sync
from app.hooks.template import INPUTS
from app.settings import Settings
from tests.contract import recordings
from tests.contract.recordings import FAMILIES, Json
from tests.contract.test_goldens import settings
from tests.contract.world import World
from tests.widgets import NOW

PARENTS = {"llmkube": ("InferenceService",), "llmaz": ("Service", "Playground"), "kserve": ("LLMInferenceService",)}
CHANGES = 5
"""Of each request."""
TEMPLATES = ("template", "leaderWorkerTemplate", "workloadTemplate")

Made = dict[str, tuple[str, Any]]
"""The digest and the template of each workload."""


@pytest.mark.parametrize("family", FAMILIES)
def test_what_changes_a_template_changes_its_digest(family: str) -> None:
    chance, changed = random.Random(family), 0
    for case in _cases(family):
        world = World(case, settings(case))
        world.run()
        for kind, body in _requests(family, world):
            before = _made(kind, body, settings(case))
            for where, mutated in _mutations(body, chance):
                after = _made(kind, mutated, settings(case))
                changed += _compared(before, after, f"{case['name']}: {where}")
    assert changed > _CHANGED[family]


_CHANGED = {"llmkube": 25, "llmaz": 100, "kserve": 25}


@pytest.mark.parametrize("family", FAMILIES)
def test_settings_that_reach_pods_are_inputs(family: str) -> None:
    """In KServe none reaches them: what its pods are made from stands in configs."""
    reaches = any(_settings_changed(case) for case in _cases(family) if case["class"] == "a")
    assert reaches == (family != "kserve")


def _settings_changed(case: Json) -> int:
    """How many templates of the case differ with one setting or another."""
    world, changed = World(case, settings(case)), 0
    world.run()
    for kind, body in _requests(case["family"], world):
        before = _made(kind, body, settings(case))
        for name in Settings.model_fields.keys() - {"keep_pod_templates"}:
            after = _made(kind, body, _with_another(name, settings(case)))
            changed += _compared(before, after, f"{case['name']}: {name}")
    return changed


def _cases(family: str) -> list[Json]:
    return [case for case in recordings.replayed(family) if "status" in case["expect"]]


def _requests(family: str, world: World) -> Iterator[tuple[Kind[Any, Any], Json]]:
    for name in PARENTS[family]:
        if world.has(name):
            kind = next(k for k in KINDS if (k.resource.family, k.resource.kind) == (family, name))
            yield kind, orjson.loads(world.request(name))


def _made(kind: Kind[Any, Any], body: Json, chosen: Settings) -> Made:
    try:
        answer = orjson.loads(answer_sync(kind, orjson.dumps(body), chosen, NOW))
    except ProtocolError:
        return {}
    found = {}
    for child in answer["children"]:
        template = next((child["spec"][key] for key in TEMPLATES if key in child.get("spec", {})), None)
        digest = (child["metadata"].get("annotations") or {}).get(INPUTS)
        if template is not None and digest is not None:
            found[f"{child['kind']} {child['metadata']['name']}"] = (digest, template)
    return found


def _compared(before: Made, after: Made, where: str) -> int:
    """How many templates differ; each has to have another digest."""
    differing = [name for name in before.keys() & after.keys() if before[name][1] != after[name][1]]
    for name in differing:
        assert before[name][0] != after[name][0], f"{where} changes the template of {name}, and not its digest"
    return len(differing)


def _with_another(name: str, chosen: Settings) -> Settings:
    """The settings with another value of one."""
    given = {key: getattr(chosen, key) for key in chosen.model_fields_set}
    for value in _others(getattr(chosen, name)):
        with contextlib.suppress(ValidationError):
            return Settings(**{**given, name: value})
    raise AssertionError(f"no other value of {name} is known here")


def _others(value: object) -> tuple[object, ...]:
    """Values of the same form, of which a setting may refuse some."""
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int | float):
        return value + 1, value - 1
    text = value if isinstance(value, str) else ""
    return f"{text}x", f"1{text}", f"/x{text}", "text", "debug"


# One change at a time.


def _mutations(body: Json, chance: random.Random) -> Iterator[tuple[str, Json]]:
    places = [place for place in _places(body, ()) if not _is_settled_by_others(place)]
    own = [place for place in places if place[:2] == ("parent", "metadata")]
    for place in {*own, *chance.sample(places, min(CHANGES, len(places)))}:
        mutated = copy.deepcopy(body)
        holder: Any = mutated
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = _other(holder[place[-1]])
        yield ".".join(map(str, place)), mutated


def _is_settled_by_others(place: tuple[Any, ...]) -> bool:
    """Names, uids, and what Metacontroller, the API server or the hook itself writes: nobody changes these."""
    return (
        place[0] not in ("parent", "related")
        or place[:2] == ("parent", "status")
        or ("metadata" in place and not {"labels", "annotations"} & set(place))
        or {"apiVersion", "kind"} & set(place[-1:]) != set()
    )


def _places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if path and not items:
        yield path
    for key, item in items:
        yield from _places(item, (*path, key))


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return f"{value}x" if value else "x"
    return value
