"""The digest of inputs covers everything that a pod template is made from, so no user change counts as a release's.

Requests about the recorded resources are changed in one place at a time, and answered without keeping templates.
If the template changes, the digest must change too.
"""

from __future__ import annotations

import contextlib
import functools
import json
import operator
import random
import re
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from app.desk.cluster.store import outer_key
from app.errors import ProtocolError
from app.families import KINDS
from app.hooks.answer import answer_sync
from app.hooks.kind import Kind
from app.hooks.template import INPUTS
from app.kube.base import Json
from app.settings import Settings
from tests.changed import changed, copied
from tests.contract import recordings
from tests.contract.recordings import FAMILIES
from tests.contract.test_goldens import settings
from tests.contract.world import World
from tests.contract.world import key as key_of
from tests.hookcalls import NOW

pytestmark = pytest.mark.no_cover

PARENTS = {"llmkube": ("InferenceService",), "llmaz": ("Service", "Playground"), "kserve": ("LLMInferenceService",)}
CHANGES = 5
"""Changes per request."""
TEMPLATES = ("template", "leaderWorkerTemplate", "workloadTemplate")

Workloads = dict[str, tuple[str, Any]]
"""The digest and the template of each workload."""


@pytest.mark.parametrize("family", FAMILIES)
def test_what_changes_a_template_changes_its_digest(family: str) -> None:
    chance, differing = random.Random(family), 0
    for case in _cases(family):
        world = World(case, settings(case))
        world.run()
        for kind, body in _requests(family, world):
            before = _workloads(kind, body, settings(case))
            for where, mutated in _mutations(body, chance):
                after = _workloads(kind, mutated, settings(case))
                differing += _compared(before, after, f"{case['name']}: {where}")
    assert differing > _CHANGED[family]


_CHANGED = {"llmkube": 25, "llmaz": 100, "kserve": 25}


@pytest.mark.parametrize("family", FAMILIES)
def test_settings_that_reach_pods_are_inputs(family: str) -> None:
    """Those of KServe choose configs, and what reaches its pods is in these; pods keep the edition of its presets."""
    changed_templates = sum(_settings_changed(case) for case in _cases(family) if case["class"] == "a")
    assert (changed_templates > 0) is (family != "kserve")


def _settings_changed(case: Json) -> int:
    """Return how many templates of the case change with a setting."""
    world, differing = World(case, settings(case)), 0
    world.run()
    for kind, body in _requests(case["family"], world):
        before = _workloads(kind, body, settings(case))
        names = sorted(Settings.model_fields.keys() - {"keep_pod_templates", "kserve_presets"})
        differing += sum(
            _compared(before, after, f"{case['name']}: {name}")
            for name, after in _effective(kind, body, settings(case), before, names)
        )
    return differing


def _effective(
    kind: Kind[Any, Any], body: Json, chosen: Settings, before: Workloads, names: list[str]
) -> Iterator[tuple[str, Workloads]]:
    """Yield the settings that change a template, found by halves: most change none, also all of them together."""
    other = functools.reduce(lambda settings, name: _with_another(name, settings), names, chosen)
    after = _workloads(kind, body, other)
    if {name: template for name, (_, template) in after.items()} == {name: t for name, (_, t) in before.items()}:
        return
    if len(names) == 1:
        yield names[0], after
        return
    middle = len(names) // 2
    for half in (names[:middle], names[middle:]):
        yield from _effective(kind, body, chosen, before, half)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_edit_of_an_object_that_is_not_referenced_changes_no_child(family: str) -> None:
    """The objects have names that occur in the specs, but not in a field that refers to them."""
    edited = 0
    for case in _cases(family):
        world = World(case, settings(case))
        added = [item for item in _unreferenced(case) if key_of(item) not in world.objects]
        world.run()
        for item in added:
            world.put(item)
        for kind, body in _requests(family, world):
            mutated = copied(body)
            names = {(outer_key(item), item["metadata"]["name"]) for item in added}
            for group, objects in mutated["related"].items():
                for item in objects.values():
                    if (group, item["metadata"]["name"]) in names:
                        item.update(_edit(item))
                        edited += 1
            before, after = _children(kind, body, settings(case)), _children(kind, mutated, settings(case))
            assert before == after, case["name"]
    assert edited > 100 or family != "kserve", "the others ask for objects by name alone"


_OTHERS = {
    "kserve": (
        ("v1", "ServiceAccount"),
        ("v1", "ConfigMap"),
        ("serving.kserve.io/v1alpha2", "LLMInferenceServiceConfig"),
    ),
    "llmaz": (("llmaz.io/v1alpha1", "OpenModel"), ("inference.llmaz.io/v1alpha1", "BackendRuntime")),
    "llmkube": (("inference.llmkube.dev/v1alpha1", "Model"), ("v1", "PersistentVolumeClaim")),
}
"""Kinds of the related objects that pod templates may be made from."""
_REFERENCES = frozenset(
    {"serviceAccountName", "modelRef", "claimName", "modelName", "backendName", "draftModel", "model"}
)
_WORD = re.compile(r"[a-z][a-z0-9-]*[a-z0-9]")


def _unreferenced(case: Json) -> Iterator[Json]:
    texts = [item.get("spec", {}) for item in case["objects"]]
    words = set(_WORD.findall(json.dumps(texts))) | {"model"}
    referenced = {"default", "global-ca-bundle", "inferenceservice-config", "llmaz-global-config"}
    referenced |= {item["metadata"]["name"] for item in case["objects"]} | set(_referenced(texts))
    namespaces = {item["metadata"].get("namespace", "default") for item in case["objects"]}
    for name in sorted(words - referenced)[:30]:
        for api_version, kind in _OTHERS[case["family"]]:
            for namespace in namespaces:
                metadata = {"name": name, "namespace": namespace, "uid": f"{kind}-{namespace}-{name}", "generation": 1}
                item: Json = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
                yield item if kind in ("ServiceAccount", "ConfigMap") else {**item, "spec": {}}


def _referenced(value: Any) -> Iterator[str]:
    """Yield the names in fields that refer to an object by name."""
    if isinstance(value, dict):
        yield from (value[name] for name in _REFERENCES & value.keys() if isinstance(value[name], str))
        for name in ("baseRefs", "ref", "models"):
            references = value.get(name)
            for item in references if isinstance(references, list) else [references]:
                if isinstance(item, dict) and "name" in item:
                    yield item["name"]
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _referenced(item)


def _edit(item: Json) -> Json:
    annotations = {"serving.kserve.io/s3-endpoint": "edited", "eks.amazonaws.com/role-arn": "edited"}
    metadata = {**item["metadata"], "annotations": annotations}
    edits: dict[str, Json] = {
        "ServiceAccount": {"secrets": [{"name": "edited"}]},
        "ConfigMap": {"data": {"edited": "{}"}},
        "LLMInferenceServiceConfig": {"spec": {"labels": {"edited": "yes"}}},
    }
    return {"metadata": metadata, **edits.get(item["kind"], {})}


def _children(kind: Kind[Any, Any], body: Json, chosen: Settings) -> Json:
    children: Json = orjson.loads(answer_sync(kind, orjson.dumps(body), chosen, NOW))["children"]
    return children


def _cases(family: str) -> list[Json]:
    return [case for case in recordings.replayed(family) if "status" in case["expect"]]


def _requests(family: str, world: World) -> Iterator[tuple[Kind[Any, Any], Json]]:
    for name in PARENTS[family]:
        if world.has(name):
            kind = next(k for k in KINDS if (k.resource.family, k.resource.kind) == (family, name))
            yield kind, orjson.loads(world.request(name))


def _workloads(kind: Kind[Any, Any], body: Json, chosen: Settings) -> Workloads:
    try:
        answer = orjson.loads(answer_sync(kind, orjson.dumps(body), chosen, NOW))
    except ProtocolError:
        return {}
    workloads = {}
    for child in answer["children"]:
        template = next((child["spec"][key] for key in TEMPLATES if key in child.get("spec", {})), None)
        digest = (child["metadata"].get("annotations") or {}).get(INPUTS)
        if template is not None and digest is not None:
            workloads[f"{child['kind']} {child['metadata']['name']}"] = (digest, template)
    return workloads


def _compared(before: Workloads, after: Workloads, where: str) -> int:
    """Return how many templates differ; each must have another digest."""
    differing = [name for name in before.keys() & after.keys() if before[name][1] != after[name][1]]
    for name in differing:
        assert before[name][0] != after[name][0], f"{where} changes the template of {name}, and not its digest"
    return len(differing)


def _with_another(name: str, chosen: Settings) -> Settings:
    """Return the settings with another value for one of them."""
    given = {key: getattr(chosen, key) for key in chosen.model_fields_set}
    current = getattr(chosen, name)
    for value in (value for value in _candidates(current) if value != current):
        with contextlib.suppress(ValidationError):
            return Settings(**{**given, name: value})
    raise AssertionError(f"no other value of {name} is known here")


def _candidates(value: object) -> tuple[object, ...]:
    """Return values of the same type, some of which a setting may refuse."""
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int | float):
        return value + 1, value - 1
    text = value if isinstance(value, str) else ""
    return f"{text}x", f"1{text}", f"/x{text}", "text", "debug", "key=value", "v0.17", "v0.20", "1.34"


# One change at a time.


def _mutations(body: Json, chance: random.Random) -> Iterator[tuple[str, Json]]:
    places = [place for place in _places(body, ()) if not _is_settled_by_others(place)]
    of_metadata = [place for place in places if place[:2] == ("parent", "metadata")]
    for place in {*of_metadata, *chance.sample(places, min(CHANGES, len(places)))}:
        value = functools.reduce(operator.getitem, place, body)
        yield ".".join(map(str, place)), changed(body, place, _other(value))


def _is_settled_by_others(place: tuple[Any, ...]) -> bool:
    """Return whether a place holds names, uids, or fields that Metacontroller, the API server or the hook writes."""
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
