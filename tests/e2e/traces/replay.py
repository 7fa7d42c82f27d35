"""Replays the steps of a scenario and compares them with the recording."""

from __future__ import annotations

import time
from typing import Any, Protocol

import httpx

from app.kube.base import Json
from tests.e2e.traces.compare import RESTART, EventKey, Memory, ReplayedStep, blurred, differences
from tests.e2e.traces.hookserver import Call, Script
from tests.e2e.traces.observe import BUILT_IN, Audit, Observer
from tests.e2e.traces.scenario import Scenario

QUIET = 0.5
"""A step is over after this many seconds without a request or a write."""

NEVER_QUIET = 20.0
"""A step that does not settle is compared after this many seconds, and will differ."""

PATIENCE = 60.0
"""Additional seconds for a busy machine to show the recorded result."""

PARENTS = ("Widget", "Gadget", "Catalog")
"""The kinds that have a controller."""

DISCOVERY = 2.0
"""Seconds until Metacontroller has discovered a kind that exists from the beginning."""

RACES = {
    # From the recording's notes: Metacontroller races with the garbage collector in this step; there are one or two
    # calls of finalize, and the status may be written or not. The loser reports in an Event that the parent is gone.
    ("t44", "deleted in the foreground: hook called, its children are not applied, the collector works"),
}
"""Steps in which only the parent of the first call, the objects at the end and the other Events are compared."""

BLURRED = {
    # Four responses echo the observed state. If a call still sees the Deployment before the last write, its PUT gets
    # 409 and adds no generation, so there are three or four (the real one shows both).
    "t34": frozenset({"Deployment"}),
}
"""Kinds whose generation is not compared."""

_CONTROLLERS = "/apis/metacontroller.k8s.io/v1alpha1/compositecontrollers"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Restartable(Protocol):
    """The Metacontroller process of a scenario."""

    @property
    def alive(self) -> bool:
        """True until the process ends."""

    def restart_at_once(self) -> None:
        """Kill the process and start it again."""


class Replay:
    """One scenario on a running control plane."""

    def __init__(
        self,
        scenario: Scenario,
        client: httpx.Client,
        audit: Audit,
        script: Script,
        metacontroller: Restartable,
    ) -> None:
        self._scenario = scenario
        self._client = client
        self._script = script
        self._metacontroller = metacontroller
        self._observer = Observer(scenario, client, audit)
        self._memory = Memory()
        self._began = 0.0
        self._calls = self._writes = 0
        self._events: dict[EventKey, int] = {}

    def run(self) -> list[str]:
        """Return the differences of the first step that differs, each with the step; later steps are not run."""
        for obj in self._scenario.initial:
            self._observer.learn(self._create(obj))
            if obj["kind"] == "CustomResourceDefinition":
                time.sleep(DISCOVERY)
        for index, step in enumerate(self._scenario.steps):
            if differing := self._step(step, first=index == 0):
                return [f"step {index} ({step['name']}): {item}" for item in differing]
        return []

    def _step(self, step: Json, *, first: bool) -> list[str]:
        actions = [self._observer.actual_uids(self._scenario.here(action)) for action in step["do"]]
        self._began = time.monotonic()
        if "answers" in step:
            with self._script.turn(self._observer.actual_uids(self._scenario.here(_enough(step)))):
                changed = self._do(actions.pop(0)) if actions else {}
                if changed.get("kind") in PARENTS:
                    metadata = changed["metadata"]
                    self._script.changed(metadata["name"], int(metadata["resourceVersion"]))
        if first:
            self._create(self._scenario.controller)
        if step["name"] == RESTART:
            self._metacontroller.restart_at_once()
        for action in actions:
            self._do(action)
        self._rest(step)
        deadline = time.monotonic() + PATIENCE
        step = self._blurred(step)
        raced = (self._scenario.id, step["name"]) in RACES
        while differing := differences(step, seen := self._seen(), self._memory, raced=raced):
            if time.monotonic() > deadline:
                return differing
            time.sleep(0.25)
        self._memory.remember(step, seen)
        self._calls += len(seen.requests)
        self._writes += len(seen.writes)
        self._events = seen.event_counts
        return []

    def _rest(self, step: Json) -> None:
        if watched := step.get("watchedSeconds"):
            time.sleep(max(0.0, self._began + watched - time.monotonic()))
            return
        before, since = (-1, -1), time.monotonic()
        while time.monotonic() - since < QUIET and time.monotonic() - self._began < NEVER_QUIET:
            now = len(self._script.calls), self._observer.count_writes()
            if now != before:
                before, since = now, time.monotonic()
            time.sleep(0.1)

    def _seen(self) -> ReplayedStep:
        calls = [self._call(call) for call in self._script.calls[self._calls :]]
        writes = self._observer.writes(self._writes)
        objects = self._observer.objects()
        events = self._observer.events()
        return ReplayedStep(
            requests=self._blurred(calls),
            writes=self._blurred(writes),
            objects=self._blurred(objects),
            event_counts=events,
            former_events=self._events,
            died=not self._metacontroller.alive,
        )

    def _blurred(self, value: Any) -> Any:
        kinds = BLURRED.get(self._scenario.id)
        return blurred(value, kinds) if kinds else value

    def _call(self, call: Call) -> Json:
        request = call.request and {key: value for key, value in call.request.items() if key != "controller"}
        self._observer.learn(request)
        seen: Json = {"hook": call.hook, "at": call.at - self._began, "answered": call.answered}
        if request:
            seen["request"] = self._observer.recorded(request)
        if call.if_none_match:
            seen["ifNoneMatch"] = call.if_none_match
        if call.method != "POST":
            seen["method"] = call.method
        return seen

    # User actions

    def _do(self, action: Json) -> Json:
        """Do one action; return the API server's response, or an empty object."""
        match action["verb"]:
            case "sleep":
                time.sleep(action["seconds"])
                return {}
            case "create":
                created = self._create(action["object"])
                self._observer.learn(created)
                return created
            case "delete":
                options = {"propagationPolicy": action.get("propagation", "Background")}
                return self._send("DELETE", self._path(action["ref"]), options)
            case "patch" | "jsonpatch":
                path = self._path(action["ref"])
                if sub := action.get("subresource"):
                    path += f"/{sub}"
                kind = "merge-patch" if action["verb"] == "patch" else "json-patch"
                return self._send("PATCH", path, action["patch"], f"application/{kind}+json")
            case verb:
                raise ValueError(f"unknown action {verb}")

    def _create(self, obj: Json) -> Json:
        namespace = obj["metadata"].get("namespace")
        answer = self._send("POST", self._collection(obj["kind"], namespace), obj)
        if obj["kind"] == "CustomResourceDefinition":
            wait_established(self._client, [obj["metadata"]["name"]])
        return answer

    def _path(self, reference: str) -> str:
        kind, *rest = reference.split("/")
        namespace = rest[0] if len(rest) == 2 else None
        return f"{self._collection(kind, namespace)}/{rest[-1]}"

    def _collection(self, kind: str, namespace: str | None) -> str:
        if kind == "CompositeController":
            return _CONTROLLERS
        if kind == "CustomResourceDefinition":
            return _DEFINITIONS
        version, plural = BUILT_IN.get(kind) or (f"{self._scenario.group}/v1", self._plural(kind))
        base = f"/{'apis' if '/' in version else 'api'}/{version}"
        return f"{base}/namespaces/{namespace}/{plural}" if namespace else f"{base}/{plural}"

    def _plural(self, kind: str) -> str:
        names = (crd["spec"]["names"] for crd in self._scenario.crds.values())
        return str(next(entry["plural"] for entry in names if entry["kind"] == kind))

    def _send(self, method: str, path: str, body: Any, content_type: str = "application/json") -> Json:
        answer = self._client.request(method, path, json=body, headers={"Content-Type": content_type})
        if answer.is_error:
            raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text}")
        return dict(answer.json())


def _enough(step: Json) -> list[Json]:
    """Return the responses; the last one that was used may be used without limit.

    A create causes two or three calls. If the recording has two and the response was valid for two, a third call here
    must not get the next response.
    """
    used: dict[str, int] = {}
    for call in step["requests"]:
        used[call["hook"]] = used.get(call["hook"], 0) + call.get("repeats", 1)
    answers = []
    for answer in step["answers"]:
        left = used.get(answer["hook"], 0)
        endless = "times" in answer and 0 < left <= answer["times"]
        used[answer["hook"]] = left - answer.get("times", 0)
        answers.append({key: value for key, value in answer.items() if not (endless and key == "times")})
    return answers


def wait_established(client: httpx.Client, names: list[str]) -> None:
    """Wait until these CRDs are served."""
    deadline = time.monotonic() + 60
    for name in names:
        while not _established(client.get(f"{_DEFINITIONS}/{name}").json()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name} is not served")
            time.sleep(0.05)


def install(client: httpx.Client, definitions: list[Json]) -> None:
    """Create CRDs and wait until they are served."""
    for definition in definitions:
        client.post(_DEFINITIONS, json=definition).raise_for_status()
    wait_established(client, [definition["metadata"]["name"] for definition in definitions])


def _established(definition: Json) -> bool:
    conditions = {entry["type"]: entry["status"] for entry in definition.get("status", {}).get("conditions") or []}
    return conditions.get("Established") == "True"
