"""Upgrades from earlier releases change no pod template and make no parent unready.

Each workload is tested as sent, and with the API server's defaults.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
import yaml

from app.hooks.keptfields import RULES, differences
from app.hooks.template import FORMAT, INPUTS, KEPT, WAITS, template_of
from app.kube.base import Json
from tests.changed import copied
from tests.contract import recordings
from tests.contract.defaults import defaulted
from tests.contract.parity import facts
from tests.contract.recordings import FAMILIES
from tests.contract.releases import WORKLOADS, digests
from tests.contract.releases import left as left_by
from tests.contract.test_goldens import settings
from tests.contract.world import Key, World, key

pytestmark = pytest.mark.no_cover

CRDS = Path(__file__).parents[2] / "crds"
RELEASES = ("released", "released-with-digests")
"""Recordings of earlier releases: one without digests of inputs, and one with digests in another format."""
AT_LEAST = {"llmkube": 150, "llmaz": 200, "kserve": 200}
"""Minimum numbers of workloads."""
READY = {"llmkube": 100, "llmaz": 4, "kserve": 15}
"""Minimum numbers of parents that were ready."""
REPLACED_BY_A_ROLLBACK = {
    "llmkube": {
        *("spec.volumes", *(f"spec.containers[{name}].volumeMounts" for name in ("vllm", "tgi"))),  # /dev/shm
        "spec.initContainers[model-downloader].securityContext.runAsUser",  # without it no container starts
    },
    "llmaz": {"spec.affinity", *(f"{role}Template.spec.affinity" for role in ("leader", "worker"))},
    "kserve": {
        *(f"{role}Template.spec.serviceAccountName" for role in ("leader", "worker")),  # without scheduler-rbac
        *(
            f"spec.containers[main].securityContext.{name}"
            for name in ("allowPrivilegeEscalation", "capabilities", "readOnlyRootFilesystem", "seccompProfile")
        ),
    },
}
"""Fields in which the release before does not keep what this one writes, so that its pods are replaced."""


@pytest.mark.parametrize("form", [copied, defaulted], ids=["as sent", "as stored"])
@pytest.mark.parametrize("recording", RELEASES)
@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_restarts_and_nothing_becomes_unready(
    family: str, recording: str, form: Callable[[Json], Json]
) -> None:
    """Also before the Deployment controller has observed the change of annotations.

    Workloads get digests, and `Ready` of the parents of kept ones says that a change is pending.
    """
    counts: Counter[str] = Counter()
    for case, left in _cases(family, recording):
        world = _world(case, left, form)
        templates = _templates(world)
        ready = set() if facts(case).get("slicesOfOtherNames") else _ready(world)  # these are not watched any more
        world.run()
        assert _templates(world).items() >= templates.items(), case["name"]
        assert _ready(world) >= ready, case["name"]
        counts.update(workloads=len(templates), ready=len(ready), kept=_waiting_parents(world, case["name"]))
        counts["noted"] += sum(_noted(item, INPUTS) for item in _workloads(world))
        _unseen(world)
        world.run()
        assert _ready(world) >= ready, case["name"]
    assert counts["workloads"] > AT_LEAST[family]
    assert counts["ready"] > READY[family]
    assert counts["kept"] > AT_LEAST[family] // 2 or recording != RELEASES[0], "digests are known"
    assert counts["noted"] > AT_LEAST[family]


@pytest.fixture(scope="module", params=FAMILIES)
def present(request: pytest.FixtureRequest) -> tuple[str, list[Json]]:
    """A family, and what this release leaves in the cluster of each of its cases."""
    cases = [case for case in recordings.replayed(request.param) if "objects" in case]
    return request.param, [left_by(case) for case in cases]


def test_the_same_inputs_have_the_digest_of_the_release(present: tuple[str, list[Json]]) -> None:
    """Other digests of the same format look like changes by users, so that an upgrade or a rollback restarts pods."""
    (recorded,) = recordings.records("digests")
    present_digests = {f"{case['family']}/{case['name']}": digests(case) for case in present[1]}
    changed = [name for name, digest in present_digests.items() if recorded.get(name) != digest]
    assert changed == [], "write the next FORMAT, and record digests (tests/contract/releases.py)"


def test_a_rollback_replaces_few_pods(present: tuple[str, list[Json]]) -> None:
    """The release before keeps the templates of this one, except those that differ in these fields."""
    family, cases = present
    before = {case["name"]: case["workloads"] for case in recordings.records(RELEASES[-1]) if case["family"] == family}
    replaced = set()
    for case in cases:
        planned = {key(item): item for item in before[case["name"]]}
        for item in (item for item in case["workloads"] if template_of(item) and key(item) in planned):
            changes = differences(template_of(item), template_of(planned[key(item)]), RULES[item["kind"]])
            replaced |= {difference.path for difference in changes if not difference.allowed}
    assert replaced == REPLACED_BY_A_ROLLBACK[family], "a line of CHANGELOG.md names what is new here"


DEFAULTS = {"4-": "2838a9a1c5375afa"}
"""Digests of the CRDs' defaults, by the format of the digests of inputs."""


def test_digests_of_other_defaults_have_another_format() -> None:
    """The API server writes a new default into specs that it has stored, which is not a change of their users."""
    documents = [yaml.load(path.read_text(), yaml.CSafeLoader) for path in CRDS.glob("*.*.*.yaml")]
    defaults = sorted(str(default) for document in documents for default in _defaults(document, ()))
    assert len(defaults) > 50
    digest = hashlib.sha256(json.dumps(defaults).encode()).hexdigest()
    assert DEFAULTS.get(FORMAT) == digest[:16], "write the next FORMAT, and this digest for it"


def _defaults(schema: object, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], object]]:
    items: Iterable[tuple[str | int, object]] = ()
    if isinstance(schema, dict):
        items = schema.items()
        if "default" in schema and "type" in schema:
            yield path, schema["default"]
    elif isinstance(schema, list):
        items = enumerate(schema)
    for step, value in items:
        yield from _defaults(value, (*path, step))


def test_a_newer_edition_of_the_presets_restarts_nothing() -> None:
    cases = [case for case in recordings.replayed("kserve") if "objects" in case][::5]
    kept = 0
    for case in cases:
        world = World(case, settings(case, keep_pod_templates=True, kserve_presets="v0.17"))
        world.run()
        templates = _templates(world)
        objects = [*world.objects.values()]
        world = World({**case, "objects": objects}, settings(case, keep_pod_templates=True, kserve_presets="v0.20"))
        world.run()
        assert _templates(world).items() >= templates.items(), case["name"]
        kept += sum(_noted(item, KEPT) for item in _workloads(world))
    assert kept > len(cases) // 2


def _waiting_parents(world: World, name: str) -> int:
    """Return the number of parents with kept workloads. The message of `Ready`, or of `Stopped`, says so."""
    owners = {owner["uid"] for item in _workloads(world) if _noted(item, KEPT) for owner in _owners(item)}
    waiting = [parent for parent in world.objects.values() if parent["metadata"]["uid"] in owners]
    assert [parent for parent in waiting if WAITS not in _condition(parent).get("message", "")] == [], name
    return len(waiting)


# A case's cluster, as an earlier release left it.


def _cases(family: str, recording: str) -> Iterator[tuple[Json, Json]]:
    released = {left["name"]: left for left in recordings.records(recording) if left["family"] == family}
    for case in recordings.replayed(family):
        if "objects" in case:
            yield case, released[case["name"]]


def _world(case: Json, left: Json, form: Callable[[Json], Json]) -> World:
    begun = [item for item in case["objects"] if not (_owners(item) and key(item)[0] in WORKLOADS)]
    world = World({**case, "objects": begun}, settings(case, keep_pod_templates=True, kserve_presets=None))
    for item in left["workloads"]:
        world.put(form(item))
    for item in world.objects.values():
        status = left["statuses"].get(f"{item['kind']}/{item['metadata']['name']}")
        if status is not None:
            world.put({**item, "status": status})
    return world


def _unseen(world: World) -> None:
    """Raise the generation of each Deployment, as a change of annotations does before the controller observes it."""
    for item in _workloads(world):
        if item["kind"] == "Deployment":
            generation = item["metadata"].get("generation", 1)
            status = {"observedGeneration": generation, **(item.get("status") or {})}
            world.put({**item, "metadata": {**item["metadata"], "generation": generation + 1}, "status": status})


def _workloads(world: World) -> Iterator[Json]:
    return (item for (kind, _, _), item in world.objects.items() if kind in WORKLOADS and _owners(item))


def _owners(item: Json) -> list[Json]:
    return item["metadata"].get("ownerReferences") or []


def _templates(world: World) -> dict[Key, Json]:
    templates = {key(item): item["spec"].get(WORKLOADS[key(item)[0]]) for item in _workloads(world)}
    return {identity: copied(template) for identity, template in templates.items() if template}


def _ready(world: World) -> set[Key]:
    return {identity for identity, item in world.objects.items() if _condition(item).get("status") == "True"}


def _condition(item: Json) -> Json:
    conditions = (c for c in (item.get("status") or {}).get("conditions") or [] if c["type"] in ("Ready", "Stopped"))
    return next(conditions, {})


def _noted(item: Json, annotation: str) -> bool:
    return annotation in (item["metadata"].get("annotations") or {})
