"""Taking over from the Go operators: the hooks change no pod template.

The recordings have every workload as the Go operator wrote it. The children have the label of docs/migration.md, and no
record of a hook's answer. They are tested as sent, and with the API server's defaults.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from app.desk.cluster import apply
from app.hooks.sendable import merge_key
from app.hooks.template import KEPT
from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from tests.changed import copied
from tests.contract import recordings
from tests.contract.defaults import defaulted
from tests.contract.newergroup import newer_group
from tests.contract.recordings import RECORDINGS
from tests.contract.test_goldens import settings
from tests.contract.world import Key, World, expanded, key

pytestmark = pytest.mark.no_cover

TEMPLATE = {"Deployment": "template", "LeaderWorkerSet": "leaderWorkerTemplate"}
PARENTS = {"llmkube": "InferenceService", "llmaz": "Service", "kserve": "LLMInferenceService"}


@pytest.mark.parametrize("recording", [*RECORDINGS, "kserve-0.20"])
def test_no_pod_template_changes_before_the_user_changes_the_spec(
    recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither the first answer changes one, nor those that follow until nothing changes.

    After a change by the user, the new template has nothing of the other operator's.
    """
    rows: dict[str, list[tuple[str, int, list[str]]]] = defaultdict(list)
    rolled = 0
    for case in _cases(recording):
        for form in (_as_sent, defaulted):
            world = _world(case, form)
            before = _templates(world)
            world.run()
            changed = _changes(before, world)
            if before:
                rows[_topology(before)].append((f"{case['name']} ({form.__name__.strip('_')})", len(before), changed))
            if form is _as_sent:
                rolled += _rolled_out(world, case)
    with capsys.disabled():
        print("\n" + _table(recording, rows))
    lines = [f"{name}: {change}" for cases in rows.values() for name, _, changes in cases for change in changes]
    assert not lines, "\n".join(lines)
    assert sum(len(cases) for cases in rows.values()) > (100 if recording == "kserve-0.20" else 200)
    assert rolled > _ROLLED[recording]


def test_devices_certificates_and_caches_are_taken_over() -> None:
    """The claims' template, whose spec cannot change, stays, and the servers are asked with TLS as before."""
    world = _world(newer_group(), defaulted)
    before = _templates(world)
    world.run()
    assert len(before) == 1
    assert _changes(before, world) == []
    assert len(_kept(world)) == 1
    children = {identity[0]: child["spec"] for identity, child in world.children().items()}
    (request,) = children["ResourceClaimTemplate.resource.k8s.io/v1"]["spec"]["devices"]["requests"]
    assert request == {"name": "device", "exactly": {"count": 1, "deviceClassName": "gpu.example.com"}}
    (port,) = children["Service.v1"]["ports"]
    assert (port["name"], port["appProtocol"]) == ("https", "https")


def _rolled_out(world: World, case: Json) -> int:
    """Change the spec as a user does, and return the number of new templates, which equal ours in every field.

    The merge keeps duplicate entries with one name, but both are then the same.
    """
    kept, family = _kept(world), case["family"]
    for parent in list(world.objects.values()):
        if parent["kind"] == PARENTS[family] and parent["apiVersion"] != "v1":
            _CHANGES[family](parent["spec"])
            parent["metadata"]["generation"] = parent["metadata"].get("generation", 0) + 1
    world.run()
    templates = _templates(world)
    rolled = kept - _kept(world)
    for identity in rolled:
        sent = apply.last_applied(world.objects[identity])
        assert _once(templates[identity]) == _once(_template(sent)), f"{case['name']} {identity}"
    return len(rolled)


_ROLLED = {"llmkube": 50, "llmkube-0.9": 50, "llmaz": 0, "kserve": 100, "kserve-0.20": 50}


def _new_image(spec: Json) -> None:
    spec["image"] = "example.com/changed:1"


def _new_image_in_template(spec: Json) -> None:
    spec["workloadTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"] = "example.com/changed:1"


def _new_label(spec: Json) -> None:
    spec.setdefault("labels", {})["example.com/changed"] = "yes"


_CHANGES = {"llmkube": _new_image, "llmaz": _new_image_in_template, "kserve": _new_label}


# A case's cluster.


def _cases(recording: str) -> list[Json]:
    return [case for case in recordings.cases(recording) if "objects" in case]


def _as_sent(child: Json) -> Json:
    return child


def _world(case: Json, form: Callable[[Json], Json]) -> World:
    """Return what the operator left: its children without records, and the statuses that it wrote last."""
    objects = {key(item): item for item in case["objects"]}
    objects |= {key(item): form(item) for item in case["expect"].get("children") or []}
    keeping = settings(case, keep_pod_templates=True, kserve_presets=None)
    world = World({**case, "objects": list(objects.values())}, keeping)
    owners = {(item["kind"], item["metadata"]["name"]): item["metadata"]["uid"] for item in world.objects.values()}
    for item in copied(list(world.objects.values())):
        (item["metadata"].get("annotations") or {}).pop(LAST_APPLIED, None)
        status = (case["expect"].get("status") or {}).get(f"{item['kind']}/{item['metadata']['name']}")
        if status is not None:
            item["status"] = expanded(status)
        for owner in item["metadata"].get("ownerReferences") or []:
            owner["uid"] = owners.get((owner["kind"], owner["name"]), "")
        world.put(item)
    return world


def _templates(world: World) -> dict[Key, Json]:
    templates = {identity: copied(_template(item)) for identity, item in world.objects.items()}
    return {identity: template for identity, template in templates.items() if template}


def _template(workload: Json) -> Json:
    template: Json = (workload.get("spec") or {}).get(TEMPLATE.get(workload["kind"], ""), {})
    return template


def _kept(world: World) -> set[Key]:
    """Return the workloads whose template is still the other operator's."""
    return {identity for identity, item in world.objects.items() if KEPT in (item["metadata"].get("annotations") or {})}


def _once(value: Any) -> Any:
    """Return lists of objects without duplicates and sorted by key, because the merge keeps the observed order."""
    if isinstance(value, dict):
        return {key: _once(item) for key, item in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        once = [_once(item) for place, item in enumerate(value) if item not in value[:place]]
        key = merge_key(once)
        return once if key is None else sorted(once, key=lambda item: str(item[key]))
    return value


def _changes(before: Mapping[Key, Json], world: World) -> list[str]:
    """Return the workloads whose template changed; those that the spec no longer requires may be gone."""
    return [
        f"{identity[0]} {identity[2]}"
        for identity, template in before.items()
        if identity in world.objects and _template(world.objects[identity]) != template
    ]


# The table.


def _topology(before: Mapping[Key, Json]) -> str:
    """Return kinds and roles of a case's workloads, from the suffixes of their names."""
    return " + ".join(sorted({_role(identity) for identity in before}))


def _role(identity: Key) -> str:
    kind, _, name = identity
    ends = ("-kserve-mn-prefill", "-kserve-mn", "-kserve-prefill", "-kserve-router-scheduler", "-kserve")
    return kind.partition(".")[0] + next((f" …{end}" for end in ends if name.endswith(end)), "")


def _table(recording: str, rows: Mapping[str, list[tuple[str, int, list[str]]]]) -> str:
    lines = [f"{'recording':12} {'topology':75} {'cases':>6} {'workloads':>10} {'changed':>8}"]
    for topology, cases in sorted(rows.items()):
        workloads, changed = sum(count for _, count, _ in cases), sum(len(changes) for _, _, changes in cases)
        lines.append(f"{recording:12} {topology:75} {len(cases):6} {workloads:10} {changed:8}")
    return "\n".join(lines)
