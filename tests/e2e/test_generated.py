"""A real API server accepts the children and statuses of generated objects, and a second sync changes nothing.

The objects of each family together have every field. No controllers run, so only the tests write. The last tests have
pods that the API server rejects although admission accepts them: after a minute Ready reports it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from app.desk.cluster.apply import updated
from app.desk.cluster.kinds import find
from app.families import RESOURCES
from app.hooks.readystatus import KEEPS_NO_NOTE, ready_of
from app.kube.base import Json
from app.limits import CHILD_TIMEOUT_SECONDS
from tests.e2e import binaries
from tests.e2e.controlplane import ControlPlane
from tests.e2e.generated import kserve, llmaz, llmkube
from tests.e2e.generated.apiserver import RefusedError, Server, as_created, difference, labelled
from tests.e2e.generated.coverage import reachable, written
from tests.e2e.generated.world import Answer, World, admitted, key, refusals
from tests.e2e.installation import ROOT

pytestmark = pytest.mark.e2e

FAMILIES = {"llmkube": llmkube, "llmaz": llmaz, "kserve": kserve}
COUNT = 100
"""Number of cases of each family; each has one to five of our custom resources."""
CANDIDATES = 1300
"""Number of admitted cases from which those are chosen; enough to have every field."""
SAMPLE = 40
"""Number of cases whose children are created, not only tried in a dry run, and then changed."""
THREADS = 8

CREATE_ONLY = frozenset(child.kind for r in RESOURCES for child in r.children if child.update == "OnDelete")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server with all our kinds and all kinds of our children."""
    workdir = tmp_path_factory.mktemp("generated")
    with ControlPlane(workdir, controllers=False, scheduler=False, kwok=False) as cluster:
        ours = [path for path in sorted((ROOT / "crds").glob("*.yaml")) if path.name != "kustomization.yaml"]
        cluster.install_crds(*ours, *binaries.optional_crds())
        yield cluster


@pytest.fixture(scope="module")
def server(cluster: ControlPlane) -> Server:
    return Server(cluster.client)


class Case:
    """The objects of one number as the API server stores them, and the faults of their children and statuses."""

    def __init__(self, number: int, server: Server, documents: Sequence[Json]) -> None:
        self.number = number
        self.faults: list[str] = []
        self.kinds: set[str] = set()
        self.changed = False
        self._server = server
        self.world = World([self.store(document) for document in documents])

    def store(self, document: Json) -> Json:
        """Create an object of one of our kinds.

        Other objects are only input of sync, so the API server does not need them.
        """
        return document if find_kind(document) is None else self._server.create(document, dry=False)

    def fault(self, what: str) -> None:
        self.faults.append(f"{self.number}: {what[:500]}")

    def create_children(self, *, dry: bool) -> None:
        """Create every child and store its form from the API server.

        A child that is also a parent must really exist, because it gets a status.
        """
        self.world.settle()
        for answer in self.world.answers():
            for child in answer.children:
                self.kinds.add(child["kind"])
                self._try(self._create, child, answer, dry)

    def _create(self, child: Json, answer: Answer, dry: bool) -> None:
        real = not dry or find_kind(child) is not None
        self.world.put(self._server.create(as_created(child, answer.parent), dry=not real))

    def _try(self, write: Callable[..., None], *arguments: Any) -> None:
        try:
            write(*arguments)
        except RefusedError as error:
            self.fault(str(error))

    def apply(self) -> None:
        """Do one run of Metacontroller over every parent: delete, create and update children."""
        for answer in self.world.answers():
            wanted = {key(labelled(child, answer.parent)) for child in answer.children}
            for child in self.world.children(answer.parent):
                if key(child) not in wanted:
                    self.world.remove(child)
                    self._server.delete(child)
            for child in answer.children:
                self._try(self._apply, child, answer)

    def _apply(self, child: Json, answer: Answer) -> None:
        observed = self.world.get(labelled(child, answer.parent))
        if observed is None:
            self._create(child, answer, False)
        elif difference(observed, child, answer.parent) and child["kind"] not in CREATE_ONLY:
            self.world.put(self._server.update(updated(observed, labelled(child, answer.parent))))

    def check_rest(self) -> None:
        """Check that repeated syncs settle, and that nothing counts as lost.

        A second sync with the stored forms writes no child, and a third changes neither children nor status.
        """
        for answer in self.world.answers():
            for child in answer.children:
                observed = self.world.get(labelled(child, answer.parent))
                change = "" if observed is None else difference(observed, child, answer.parent)
                if change and child["kind"] not in CREATE_ONLY:
                    self.fault(f"written again: {change}")
            if (note := ready_of(answer.status.get("conditions") or ()).get("message", "")).count(KEEPS_NO_NOTE):
                self.fault(note)
            again = self.world.ask(answer.kind, {**answer.parent, "status": answer.status})
            if (again.children, again.status) != (answer.children, answer.status):
                self.fault(f"{answer.kind.resource.kind}: the third answer is another one")

    def check_status(self) -> None:
        """Check that the API server accepts each status and stores all of it."""
        for answer in self.world.answers():
            self._try(self._write_status, answer)

    def _write_status(self, answer: Answer) -> None:
        stored = self._server.write_status(answer.parent, answer.status)
        if stored != answer.status:
            self.fault(f"status of {answer.kind.resource.kind} is stored as {stored}, not {answer.status}")

    def change(self, documents: Sequence[Json]) -> None:
        """Give the objects other specs, if admission accepts them."""
        old = {key(d): stored for d in documents if (stored := self.world.get(d)) is not None}
        edited = [{**old.get(key(d), d), **({"spec": d["spec"]} if "spec" in d else {})} for d in documents]
        if refusals(edited, old):
            return
        self.changed = True
        for document in edited:
            is_update = key(document) in old and find_kind(document) is not None
            self.world.put(self._server.update(document) if is_update else self.store(document))


def find_kind(document: Json) -> Any:
    """Return our kind of the object, or None."""
    return find(document["apiVersion"], document["kind"])


def fields(family: str, documents: Sequence[Json]) -> set[str]:
    """Return the fields of our types and of embedded types in the objects."""
    specs = {(r.api_version, r.kind): r.spec for r in RESOURCES if r.family == family}
    specified = ((specs.get((d["apiVersion"], d["kind"])), d) for d in documents)
    return {name for spec, d in specified if spec is not None for name in written(spec, d["spec"])}


@functools.cache
def every_field(family: str) -> set[str]:
    """Return all fields of a family, except those that the pools omit on purpose."""
    every: set[str] = set()
    for resource in RESOURCES:
        if resource.family == family:
            reachable(resource.spec, FAMILIES[family].POOLS, every)
    return every


@functools.cache
def numbers(family: str) -> list[int]:
    """Return the numbers of cases that admission accepts: first those with a field that none before has."""
    seen: set[str] = set()
    new: list[int] = []
    without_new: list[int] = []
    for number, documents in admitted(FAMILIES[family].documents, CANDIDATES, "any"):
        covered = fields(family, documents)
        (without_new if covered <= seen else new).append(number)
        seen |= covered
        if every_field(family) <= seen and len(new) + len(without_new) >= COUNT:
            break
    return [*new, *without_new][:COUNT]


def run(cluster: ControlPlane, family: str, count: int, namespace: str, check: Callable[[Case], None]) -> list[Case]:
    """Check the objects of ``count`` numbers concurrently; report all faults together."""
    cluster.create_namespace(namespace)
    server = Server(cluster.client)

    def case_of(number: int) -> Case:
        case = Case(number, server, FAMILIES[family].documents(number, namespace, 0))
        check(case)
        return case

    with ThreadPoolExecutor(THREADS) as pool:
        cases = list(pool.map(case_of, numbers(family)[:count]))
    faults = [fault for case in cases for fault in case.faults]
    assert not faults, f"{len(faults)} faults\n" + "\n".join(faults[:20])
    return cases


@pytest.mark.parametrize("family", FAMILIES)
def test_every_child_and_every_status_is_accepted(cluster: ControlPlane, family: str) -> None:
    """A strict server-side dry run accepts them, and the stored forms are not written again."""

    def check(case: Case) -> None:
        case.create_children(dry=True)
        case.check_rest()
        case.check_status()

    cases = run(cluster, family, COUNT, f"{family}-once", check)
    kinds = {kind for case in cases for kind in case.kinds}
    assert kinds == {child.kind for r in RESOURCES if r.family == family for child in r.children}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_change_is_accepted_too(cluster: ControlPlane, family: str) -> None:
    """Children that exist are updated to any other spec that admission accepts, and then nothing is written again."""
    namespace, module = f"{family}-changed", FAMILIES[family]

    def check(case: Case) -> None:
        case.create_children(dry=False)
        case.check_rest()
        case.change(module.documents(case.number, namespace, 1))
        for _ in range(3):  # a child may be a parent
            case.apply()
        case.check_rest()

    cases = run(cluster, family, SAMPLE, namespace, check)
    assert sum(case.changed for case in cases) >= SAMPLE // 2


@pytest.mark.parametrize("family", FAMILIES)
def test_every_field_is_among_them(family: str) -> None:
    seen = {name for number in numbers(family) for name in fields(family, FAMILIES[family].documents(number, "any", 0))}
    assert sorted(every_field(family) - seen) == []


_FORBIDDEN = {"privileged": True, "allowPrivilegeEscalation": True}
"""Security context that this API server is configured to forbid."""


def _privileged(namespace: str) -> list[Json]:
    model, service = llmkube.documents(0, namespace, 0)
    model["spec"] = {"source": "org/repo"}
    service["spec"] = {"modelRef": model["metadata"]["name"], "runtime": "vllm", "skipModelInit": True}
    service["spec"]["securityContext"] = _FORBIDDEN
    return [model, service]


def _uneven_request(namespace: str) -> list[Json]:
    """Return an accelerator with a request but without a limit."""
    documents = llmaz.documents(0, namespace, 0)[:-1]
    model, _, runtime, playground = documents
    model["spec"] = {"familyName": "opt", "source": {"modelHub": {"modelID": "facebook/opt-125m"}}}
    runtime["spec"] = {"image": "example.com/engine", "version": "v1"}
    runtime["spec"]["recommendedConfigs"] = [{"name": "default", "resources": {"requests": {"nvidia.com/gpu": 1}}}]
    playground["spec"] = {
        "modelClaim": {"modelName": model["metadata"]["name"]},
        "backendRuntimeConfig": {"backendName": runtime["metadata"]["name"]},
    }
    return documents


def _privileged_template(namespace: str) -> list[Json]:
    documents = kserve.documents(0, namespace, 0)
    service = documents[-1]
    container = {"name": "main", "securityContext": _FORBIDDEN}
    service["spec"] = {"model": {"uri": "hf://facebook/opt-125m"}, "template": {"containers": [container]}}
    return [service]


REJECTED_PODS = pytest.mark.parametrize(
    ("make", "kind"),
    [(_privileged, "InferenceService"), (_uneven_request, "Service"), (_privileged_template, "LLMInferenceService")],
)


@REJECTED_PODS
def test_what_only_the_api_server_can_judge(
    cluster: ControlPlane, make: Callable[[str], list[Json]], kind: str
) -> None:
    """The API server refuses one child and accepts the others; a minute later Ready names it and where to look."""
    documents = make(cluster.create_namespace())
    assert refusals(documents) == []
    case = Case(0, Server(cluster.client), documents)
    case.create_children(dry=False)
    assert len(case.faults) == 1
    assert "Deployment" in case.faults[0]
    answer = next(a for a in case.world.answers() if a.kind.resource.kind == kind)
    (refused,) = [child for child in answer.children if child["kind"] == "Deployment"]
    case.world.remove(labelled(refused, answer.parent))
    later = _a_minute_later(case.world, kind)
    ready = _ready(later)
    assert (ready["status"], ready["reason"]) == ("False", "CreateRefused")
    assert f"Deployment {refused['metadata']['name']}" in ready["message"]
    assert "the API server rejects it" in ready["message"]
    assert {key(child) for child in later.children} == {key(child) for child in answer.children}


@REJECTED_PODS
def test_a_change_that_only_the_api_server_can_judge(
    cluster: ControlPlane, make: Callable[[str], list[Json]], kind: str
) -> None:
    """The Deployment is not changed; after a minute Ready reports it, even if the old pods are healthy."""
    documents = make(cluster.create_namespace())
    case = Case(0, Server(cluster.client), [_harmless(document) for document in documents])
    case.create_children(dry=False)
    assert _ready(_a_minute_later(case.world, kind))["status"] == "True"
    case.change(documents)
    assert case.changed
    for _ in range(2):
        case.apply()
    assert {fault.split(":")[1].strip() for fault in case.faults} == {"Deployment"}
    ready = _ready(_a_minute_later(case.world, kind))
    assert (ready["status"], ready["reason"]) == ("False", "ChangeRefused")
    assert "the API server refuses the change" in ready["message"]


def _harmless(document: Json) -> Json:
    """Return the object without the part that the API server refuses."""
    spec = {name: value for name, value in document["spec"].items() if name not in ("securityContext", "template")}
    if "recommendedConfigs" in spec:
        spec["recommendedConfigs"] = [{"name": "default"}]
    return {**document, "spec": spec}


def _a_minute_later(world: World, kind: str) -> Answer:
    """Return the response to a second sync a minute later, with unchanged children and parents."""
    answer = next(a for a in world.answers() if a.kind.resource.kind == kind)
    return world.ask(answer.kind, {**answer.parent, "status": answer.status}, CHILD_TIMEOUT_SECONDS + 1)


def _ready(answer: Answer) -> Json:
    (ready,) = [c for c in answer.status["conditions"] if c["type"] == "Ready"]
    return dict(ready)
