"""Compare each step of a replayed scenario with its recording.

Differences that come from timing, such as the number of retries, are accepted.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import dropwhile
from typing import Any

from app.kube.base import Json

EventKey = tuple[str, str, str, str]

RESTART = "Metacontroller restarts"
"""The only step that is not a user's request."""

BURST = 25
"""Maximum number of Events of an object before the recorder drops some."""


@dataclass
class ReplayedStep:
    """The results of one replayed step, in the form of the recording; times are seconds since the start of the step."""

    requests: list[Json]
    writes: list[Json]
    objects: dict[str, Json]
    event_counts: dict[EventKey, int]
    former_events: dict[EventKey, int]
    died: bool

    @property
    def events(self) -> set[EventKey]:
        """The Events of this step."""
        return {_cut(key) for key, count in self.event_counts.items() if count > self.former_events.get(key, 0)}

    def events_on(self, name: str) -> int:
        """Return the number of Events of an object in all steps so far."""
        return sum(count for key, count in self.event_counts.items() if key[0] == name)


@dataclass
class Memory:
    """Results of the previous steps, which explain late calls and retries in the next one."""

    state: dict[str, Json] = field(default_factory=dict)
    last: dict[tuple[str, str], Json] = field(default_factory=dict)
    recorded: dict[tuple[str, str], Json] = field(default_factory=dict)
    versions: dict[str, list[Json]] = field(default_factory=lambda: defaultdict(list))
    events: set[EventKey] = field(default_factory=set)
    event_counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    refused: list[str] = field(default_factory=list)
    failing: bool = False

    def owed(self, key: tuple[str, str]) -> Json | None:
        """Return the last recorded call about a parent if it was not made by the end of its step: it may be late."""
        recorded, last = self.recorded.get(key), self.last.get(key)
        return None if recorded is None or last is None or _same_call(recorded, last) else recorded

    def after(self, step: Json) -> dict[str, Json]:
        """Return the objects that must exist after a step."""
        state = {name: obj for name, obj in self.state.items() if name not in step.get("gone", [])}
        return {**state, **{_name(obj): obj for obj in step["objects"]}}

    def remember(self, step: Json, seen: ReplayedStep) -> None:
        """Update the state after a step."""
        for name, obj in self.state.items():
            self.versions[name].append(obj)
        self.state = self.after(step)
        for call in seen.requests:
            self.last[_parent_key(call)] = call
        for call in step["requests"]:
            self.recorded[_parent_key(call)] = call
            self.last.setdefault(_parent_key(call), call)
        for event in step["events"]:
            self.event_counts[event["on"]] += event["count"]
        self.events = {_event_key(event) for event in step["events"]}
        self.refused = _refused([*step["writes"], *seen.writes])
        refused = any(write["code"] >= 400 for write in step["writes"])
        failed = any(call.get("repeats", 1) > 1 or call["answered"] != 200 for call in step["requests"])
        self.failing = refused or failed or any(event["type"] == "Warning" for event in step["events"])


def blurred(value: Any, kinds: frozenset[str]) -> Any:
    """Return a value in which objects of these kinds have no generation."""
    if isinstance(value, list):
        return [blurred(item, kinds) for item in value]
    if not isinstance(value, dict):
        return value
    value = {key: blurred(item, kinds) for key, item in value.items()}
    if value.get("kind") in kinds and isinstance(value.get("metadata"), dict):
        value["metadata"] = {key: item for key, item in value["metadata"].items() if key != "generation"}
    return value


def differences(step: Json, seen: ReplayedStep, memory: Memory, *, raced: bool = False) -> list[str]:
    """Return all differences between a step and its recording; with `raced`, only those that no race explains."""
    differing: list[str] = []
    seen = _without_deleted(step, seen, memory)
    if bool(step.get("processDied")) != seen.died:
        differing.append(f"process died: {seen.died}")
    if "callsPerParent" in step:
        return differing + _calls_per_parent(step, seen)
    differing += _objects(memory.after(step), seen.objects)
    differing += _requests(step, seen, memory, raced=raced)
    differing += [] if raced else _writes(step["writes"], seen.writes, memory)
    differing += _events(step["events"], seen, memory, raced=raced)
    return differing


def _without_deleted(step: Json, seen: ReplayedStep, memory: Memory) -> ReplayedStep:
    """Leave out calls about parents that the step deletes, and what is written for them, if none was recorded.

    The deletion of their children, by the garbage collector, may reach Metacontroller before their own.
    """
    references = [action["ref"] for action in step["do"] if action["verb"] == "delete"]
    deleted = {memory.state[name]["metadata"].get("uid", "") for name in references if name in memory.state}
    deleted -= {"", *(_parent_metadata(call).get("uid") for call in step["requests"])}

    def is_owned(write: Json) -> bool:
        owners = ((write.get("object") or {}).get("metadata") or {}).get("ownerReferences") or []
        return any(owner["uid"] in deleted for owner in owners)

    requests = [call for call in seen.requests if _parent_metadata(call).get("uid") not in deleted]
    return replace(seen, requests=requests, writes=[write for write in seen.writes if not is_owned(write)])


def _objects(expected: dict[str, Json], actual: dict[str, Json]) -> list[str]:
    return [
        f"object {name}:\n  recorded {_text(expected.get(name))}\n  here     {_text(actual.get(name))}"
        for name in sorted({*expected, *actual})
        if _text(expected.get(name)) != _text(actual.get(name))
    ]


def _calls_per_parent(step: Json, seen: ReplayedStep) -> list[str]:
    """Only the numbers were recorded. Two calls for each parent may be two or three here, as for any create."""
    calls: dict[str, int] = defaultdict(int)
    for call in seen.requests:
        calls[_parent_key(call)[1]] += 1
    parents = sum(step["callsPerParent"].values())
    if len(calls) != parents or not all(2 <= count <= 3 for count in calls.values()):
        return [f"calls per parent: recorded {step['callsPerParent']}, here {dict(calls)}"]
    return []


def _requests(step: Json, seen: ReplayedStep, memory: Memory, *, raced: bool) -> list[str]:
    late = [call for call in seen.requests if call["at"] < 0]
    differing = [difference for call in late for difference in _late(call, memory, step)]
    expected = _by_parent(step["requests"])
    actual = _by_parent(call for call in seen.requests if call["at"] >= 0)
    for key in sorted({*expected, *actual}):
        theirs, ours = expected.get(key, []), actual.get(key, [])
        former = memory.last.get(key)
        if (owed := memory.owed(key)) is not None and not (theirs and _same_call(theirs[0], owed)):
            ours = list(dropwhile(partial(_same_call, owed), ours))
        theirs, ours = (_without_former(calls, former) for calls in (theirs, ours))
        if not theirs or not ours:
            if (theirs or ours) and not (memory.failing and _all_former(theirs or ours, former)):
                differing.append(f"{key}: {len(theirs)} calls recorded, {len(ours)} here: {_text((ours or theirs)[0])}")
            continue
        if raced:
            differing += [] if _raced(theirs[0]) == _raced(ours[0]) else [f"{key} first call: {_raced(ours[0])}"]
            continue
        if not _same_first(theirs, ours[0], memory, step):
            differing.append(
                f"{key} first call:\n  recorded {_text(_call(theirs[0]))}\n  here     {_text(_call(ours[0]))}"
            )
        if not _same_but_older(theirs[-1], ours[-1], _versions(theirs, memory, step)):
            differing.append(
                f"{key} last call:\n  recorded {_text(_call(theirs[-1]))}\n  here     {_text(_call(ours[-1]))}"
            )
        # How far the back-off of the previous step has progressed is random, and how long a program takes to start.
        if not memory.failing and step["name"] != RESTART and (problem := _times(theirs, ours)):
            differing.append(f"{key}: {problem}")
    return differing


def _late(call: Json, memory: Memory, step: Json) -> list[str]:
    """Compare a call that came before this step began: a busy machine is late with the last call of a step.

    It must be the last call of that step again, with the objects as they were or have become since.
    """
    former = memory.last.get(_parent_key(call))
    if former is not None and _same_but_older(former, call, _versions([former], memory, step)):
        return []
    return [f"{_parent_key(call)} before the step:\n  last  {_text(former)}\n  here  {_text(_call(call))}"]


def _without_former(calls: list[Json], former: Json | None) -> list[Json]:
    """Return the calls without leading retries of the previous step."""
    rest = list(calls)
    while len(rest) > 1 and former is not None and _same_call(rest[0], former):
        rest.pop(0)
    return rest


def _all_former(calls: list[Json], former: Json | None) -> bool:
    return former is not None and all(_text(call.get("request")) == _text(former.get("request")) for call in calls)


def _raced(call: Json) -> str:
    """Return the parent, regardless of whether the garbage collector has already processed it."""
    parent = call["request"]["parent"]
    metadata = dict(parent["metadata"])
    metadata["finalizers"] = [name for name in metadata.get("finalizers", []) if name != "foregroundDeletion"]
    return _text({**parent, "metadata": metadata})


def _same_call(former: Json, latter: Json) -> bool:
    return _text(_call(former)) == _text(_call(latter))


def _call(call: Json) -> Json:
    return {
        "answered": call["answered"],
        "ifNoneMatch": call.get("ifNoneMatch"),
        "method": call.get("method", "POST"),
        "request": call.get("request") or {},
    }


def _same_first(theirs: list[Json], ours: Json, memory: Memory, step: Json) -> bool:
    """Report whether the first calls are equal.

    If a user does several things at once, the first call may come before or after the later ones.
    """
    verbs = [action["verb"] for action in step["do"]]
    if len(verbs) > 1 and "sleep" not in verbs:
        return _same_but_older(theirs[0], ours, _versions(theirs, memory, step))
    return _same_call(theirs[0], ours)


def _versions(calls: list[Json], memory: Memory, step: Json) -> dict[str, set[str]]:
    """Return every known form of every object in the recording so far."""
    texts: dict[str, set[str]] = defaultdict(set)
    for obj in [*memory.state.values(), *step["objects"], *(obj for objs in memory.versions.values() for obj in objs)]:
        texts[_name(obj)].add(_text(obj))
    for call in calls:
        for group in (call["request"] or {}).get("children", {}).values():
            for child in group.values():
                texts[_name(child)].add(_text(child))
    return texts


def _same_but_older(theirs: Json, ours: Json, versions: dict[str, set[str]]) -> bool:
    """Report whether calls are equal, except for a parent status one write older, and older children."""
    if _same_call(theirs, ours):
        return True
    recorded_call, seen_call = _call(theirs), _call(ours)
    if not (recorded_call["request"] and seen_call["request"]):
        return False
    for call in (recorded_call, seen_call):
        call["request"] = json.loads(json.dumps(call["request"]))
        call["request"]["parent"].pop("status", None)
    children = recorded_call["request"].get("children", {}), seen_call["request"].get("children", {})
    for outer in children[0]:
        for inner, child in children[0][outer].items():
            ours_child = children[1].get(outer, {}).get(inner)
            if _text(ours_child) in versions[_name(child)]:
                children[1][outer][inner] = child
    return _text(recorded_call) == _text(seen_call)


def _times(theirs: list[Json], ours: list[Json]) -> str:
    """Compare the order of magnitude of timers: the last call must be about as late as recorded."""
    late = max(_moments(theirs))
    here = [round(call["at"], 2) for call in ours]
    if late >= 0.4 and not any(late / 3 - 0.3 <= moment <= late * 2 + 1.5 for moment in here):
        return f"calls after {here} s, recorded the last after {late} s"
    return ""


def _moments(calls: Iterable[Json]) -> list[float]:
    return [
        moment
        for call in calls
        for moment in [*call.get("times", []), call.get("at")]
        if isinstance(moment, int | float)
    ] or [0.0]


def _by_parent(calls: Iterable[Json]) -> dict[tuple[str, str], list[Json]]:
    grouped: dict[tuple[str, str], list[Json]] = defaultdict(list)
    for call in calls:
        grouped[_parent_key(call)].append(call)
    return grouped


def _parent_key(call: Json) -> tuple[str, str]:
    return call["hook"], _parent_metadata(call).get("name", "")


def _parent_metadata(call: Json) -> Json:
    parent = (call.get("request") or {}).get("parent") or {}
    return dict(parent.get("metadata") or {})


def _writes(theirs: list[Json], ours: list[Json], memory: Memory) -> list[str]:
    """Compare writes. A write refused in the previous step may be retried in this one, depending on the back-off."""
    differing = []
    for label, pick in (("written", _accepted), ("no-op", _noops), ("refused", _refused)):
        expected, actual = pick(theirs), pick(ours)
        differing += [f"{label}, recorded only: {item}" for item in expected if item not in actual]
        retried = memory.refused if label == "refused" else []
        differing += [f"{label}, here only: {item}" for item in actual if item not in expected and item not in retried]
    if not differing and _one_parent(theirs) and (orders := (_order(theirs), _order(ours)))[0] != orders[1]:
        differing.append(f"order of writes:\n  recorded {orders[0]}\n  here     {orders[1]}")
    return differing


def _accepted(writes: list[Json]) -> list[str]:
    return _unique(
        f"{write['verb']} {write['resource']} {write['name']} "
        f"{_text(write.get('object'))} {_text(write.get('options'))}{' deletes' if write.get('deletes') else ''}"
        for write in writes
        if write["code"] < 300 and not write.get("noop")
    )


def _noops(writes: list[Json]) -> list[str]:
    return _unique(f"{write['resource']} {write['name']}" for write in writes if write.get("noop"))


def _refused(writes: list[Json]) -> list[str]:
    return _unique(
        f"{write['verb']} {write['resource']} {write['name']} {write['code']}"
        for write in writes
        if write["code"] in (403, 405, 422)
    )


def _order(writes: list[Json]) -> list[str]:
    """Return accepted writes in order of first occurrence.

    Writes of one kind may be in any order; deletes are separate.
    """
    runs: list[tuple[str, set[str]]] = []
    done: set[str] = set()
    for write in writes:
        key = f"{'delete' if write['verb'] == 'delete' else 'write'} {write['resource']}"
        for item in _accepted([write]):
            if item not in done:
                done.add(item)
                if not runs or runs[-1][0] != key:
                    runs.append((key, set()))
                runs[-1][1].add(str(write["name"]))
    return [f"{key} {sorted(items)}" for key, items in runs]


def _one_parent(writes: list[Json]) -> bool:
    return len({write["name"] for write in writes if write["resource"].endswith("/status")}) <= 1


def _events(expected: list[Json], seen: ReplayedStep, memory: Memory, *, raced: bool) -> list[str]:
    theirs = {_event_key(event) for event in expected}
    counts = dict(memory.event_counts)
    for event in expected:
        counts[event["on"]] = counts.get(event["on"], 0) + event["count"]
    # In a series that continues from the previous step, the back-off decides whether there is one more.
    series = {key for key in memory.events if key[1] == "Warning"}
    missing = [key for key in theirs - seen.events - series if max(counts[key[0]], seen.events_on(key[0])) < BURST]
    # A retry of the previous step may still be reported; if Events are rate-limited, the selection is random.
    extra = [key for key in seen.events - theirs - memory.events if counts.get(key[0], 0) < BURST]
    if raced:
        extra = [key for key in extra if not _LOST_RACE.match(key[3])]
    return [f"event recorded only: {key}" for key in missing] + [f"event here only: {key}" for key in extra]


def _event_key(event: Json) -> EventKey:
    return _cut((event["on"], event["type"], event["reason"], event["message"]))


_UP_TO = (
    # The rest is the API server's message, or several in any order; our own messages there are kept.
    re.compile(r"(can't reconcile children for \S+ \S+ ?\S*: )(?!discovery: ).*", re.DOTALL),
    re.compile(r"(can't update status for \S+ \S+: ).*", re.DOTALL),
    # Go prints the rule with addresses.
    re.compile(r"(related rule cannot have both .* specified: ).*", re.DOTALL),
)


# The parent was deleted while it was being finalized, so the late call cannot change anything.
_LOST_RACE = re.compile(r"Sync error: can't (remove finalizer for \S+ \S+: .* not found$|update status for )")

# Two timers of Go's client expire at the same time; either may be reported.
_TIMED_OUT = re.compile(r"(context deadline exceeded|net/http: request canceled)( \(Client\.Timeout [^)]*\))?")


def _cut(key: EventKey) -> EventKey:
    message = _TIMED_OUT.sub("timed out", key[3])
    for pattern in _UP_TO:
        message = pattern.sub(r"\1", message)
    return key[0], key[1], key[2], message


def _name(obj: Json) -> str:
    metadata = obj["metadata"]
    return "/".join(filter(None, (obj["kind"], metadata.get("namespace"), metadata["name"])))


def _unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
