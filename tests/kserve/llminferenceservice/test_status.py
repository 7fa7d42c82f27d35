"""The status is computed from the states of conditions (KS-6.1 to KS-6.7)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.kserve.llminferenceservice.status import refused, status
from app.kserve.llminferenceservice.types import (
    ROUTER_CONDITIONS,
    SCALING_CONDITIONS,
    TOP_LEVEL,
    WORKLOAD_CONDITIONS,
    KServeCondition,
    LLMCondition,
    LLMInferenceServiceStatus,
    LLMReason,
    ServiceAddress,
)
from app.kserve.results import CONDITION_TRUE, ConditionState, Outcome, PhaseResult, RouterResult, fails
from app.kube import field
from app.workload.readiness.cause import Cause, Stage
from app.workload.readiness.waiting import Outstanding
from tests.builders import NOW

EMPTY = LLMInferenceServiceStatus()
LATER = NOW + timedelta(minutes=5)


def no(reason: str, message: str = "m") -> ConditionState:
    return fails(reason, message)


def outcome(
    workloads: Mapping[str, ConditionState] | None,
    router: Mapping[str, ConditionState | None] | None,
    presets: ConditionState | None = CONDITION_TRUE,
) -> Outcome:
    return Outcome(
        {},
        presets,
        None
        if workloads is None
        else PhaseResult([], dict.fromkeys((*WORKLOAD_CONDITIONS, *SCALING_CONDITIONS)) | dict(workloads)),
        None if router is None else RouterResult([], dict(router)),
    )


def said(result: LLMInferenceServiceStatus) -> dict[str, str]:
    """Return ``True``, ``Unknown`` or the reason of each condition."""
    return {c.type: c.status if c.status != "False" else c.reason for c in result.conditions}


MAIN, WORKER = "MainWorkloadReady", "WorkerWorkloadReady"
PREFILL, PREFILL_WORKER = "PrefillWorkloadReady", "PrefillWorkerWorkloadReady"
GATEWAYS, ROUTES = "GatewaysReady", "HTTPRoutesReady"
POOL, SCHEDULER = "InferencePoolReady", "SchedulerWorkloadReady"

VECTORS: dict[str, tuple[dict[str, ConditionState], dict[str, ConditionState | None], tuple[str, str, str]]] = {
    "all well": ({MAIN: CONDITION_TRUE}, {}, ("True", "True", "True")),
    "everything well": (
        {WORKER: CONDITION_TRUE, PREFILL: CONDITION_TRUE},
        {GATEWAYS: CONDITION_TRUE, ROUTES: CONDITION_TRUE, POOL: CONDITION_TRUE, SCHEDULER: CONDITION_TRUE},
        ("True", "True", "True"),
    ),
    "main": (
        {MAIN: no("MinimumReplicasUnavailable")},
        {},
        ("MinimumReplicasUnavailable", "True", "MinimumReplicasUnavailable"),
    ),
    "the second workload": (
        {WORKER: CONDITION_TRUE, PREFILL_WORKER: no("Progressing")},
        {},
        ("Progressing", "True", "Progressing"),
    ),
    "two of the router": (
        {MAIN: CONDITION_TRUE},
        {ROUTES: no("HTTPRoutesNotReady"), SCHEDULER: no("Progressing")},
        ("True", "HTTPRoutesNotReady", "HTTPRoutesNotReady"),
    ),
    "workload and router": ({MAIN: no("A")}, {GATEWAYS: no("B")}, ("A", "B", "B")),
    "a reference": ({MAIN: CONDITION_TRUE}, {GATEWAYS: no("RefsInvalid")}, ("True", "RefsInvalid", "RefsInvalid")),
    "pool before scheduler": (
        {MAIN: CONDITION_TRUE},
        {SCHEDULER: no("Progressing"), POOL: no("WaitingForGateway")},
        ("True", "WaitingForGateway", "WaitingForGateway"),
    ),
}


@pytest.mark.parametrize("case", VECTORS)
def test_the_first_false_condition_decides_its_aggregate(case: str) -> None:
    """The first false condition decides its aggregate; the router's comes before the workloads' (KS-6.6)."""
    workloads, router, expected = VECTORS[case]
    words = said(status(EMPTY, 1, outcome(workloads, router), NOW))
    assert (words["WorkloadsReady"], words["RouterReady"], words["Ready"]) == expected


def test_conditions_are_sorted_and_all_but_the_aggregates_have_a_severity() -> None:
    """Conditions are sorted by type; all but the aggregates have a severity; true ones have no reason or message."""
    result = status(EMPTY, 7, outcome({MAIN: no("X")}, {ROUTES: CONDITION_TRUE}), NOW)
    assert [c.type for c in result.conditions] == sorted(c.type for c in result.conditions)
    assert {c.type for c in result.conditions if not c.severity} == set(TOP_LEVEL)
    assert all(not c.reason and not c.message for c in result.conditions if c.status == "True")
    assert result.observed_generation == 7


def test_a_condition_that_does_not_apply_is_removed() -> None:
    """After a change of topology, a condition that no longer applies is removed, not set to true."""
    before = status(EMPTY, 1, outcome({MAIN: CONDITION_TRUE}, {ROUTES: CONDITION_TRUE, SCHEDULER: CONDITION_TRUE}), NOW)
    after = said(status(before, 2, outcome({WORKER: CONDITION_TRUE}, {ROUTES: None, SCHEDULER: CONDITION_TRUE}), NOW))
    assert MAIN not in after
    assert ROUTES not in after
    assert after[WORKER] == after[SCHEDULER] == "True"


def test_times_move_only_with_the_status() -> None:
    """A new reason or message alone is not a transition."""
    first = status(EMPTY, 1, outcome({MAIN: no("A")}, {}), NOW)
    second = status(first, 2, outcome({MAIN: no("B", "other")}, {}), LATER)
    third = status(second, 2, outcome({MAIN: CONDITION_TRUE}, {}), LATER)
    times = [{c.type: c.last_transition_time for c in result.conditions} for result in (first, second, third)]
    assert times[0][MAIN] == times[1][MAIN] != times[2][MAIN]
    assert times[0]["RouterReady"] == times[2]["RouterReady"]


def test_the_same_again_is_the_same() -> None:
    """Equal states give an equal status, so nothing is written."""
    first = status(EMPTY, 1, outcome({MAIN: no("A")}, {ROUTES: no("B")}), NOW)
    assert status(first, 1, outcome({MAIN: no("A")}, {ROUTES: no("B")}), LATER) == first


def test_foreign_conditions_survive() -> None:
    """Conditions that other controllers wrote are kept."""
    foreign = KServeCondition(type="Backup", status="True", last_transition_time="2020-01-01T00:00:00Z")
    assert foreign in status(LLMInferenceServiceStatus(conditions=[foreign]), 1, outcome({}, {}), NOW).conditions


def test_a_percent_sign_is_not_garbled() -> None:
    """Messages are not format strings."""
    result = status(EMPTY, 1, outcome({MAIN: no("X", "100% of pods")}, {}), NOW)
    assert {c.message for c in result.conditions if c.status == "False"} == {"100% of pods"}


# Failures: KS-6.3.


def test_a_new_object_that_cannot_be_combined() -> None:
    """``Ready`` is false; what was not evaluated is ``Unknown``."""
    words = said(status(EMPTY, 1, outcome(None, None, no("CombineBaseError")), NOW))
    assert words == {
        "PresetsCombined": "CombineBaseError",
        "Ready": "CombineBaseError",
        "RouterReady": "Unknown",
        "WorkloadsReady": "Unknown",
    }


def test_a_running_service_that_cannot_be_combined_any_more() -> None:
    """Conditions and addresses of the running service stay, but ``Ready`` is false."""
    running = outcome({MAIN: CONDITION_TRUE}, {ROUTES: CONDITION_TRUE})
    running = Outcome(
        {},
        CONDITION_TRUE,
        running.workloads,
        RouterResult([], {ROUTES: CONDITION_TRUE}, url="http://a/", addresses=[ServiceAddress(url="http://a/")]),
    )
    before = status(EMPTY, 1, running, NOW)
    after = status(before, 2, outcome(None, None, no("CombineBaseError")), LATER)
    words = said(after)
    assert (words[MAIN], words[ROUTES], words["WorkloadsReady"], words["RouterReady"]) == ("True",) * 4
    assert words["Ready"] == "CombineBaseError"
    assert (after.url, after.addresses) == (before.url, before.addresses)


def test_a_workload_that_cannot_be_made() -> None:
    """The router was not evaluated: its condition stays as it was, ``Unknown`` on a new object."""
    failed = PhaseResult([], {MAIN: no("ReconcileSingleNodeWorkloadError")}, failed=True)
    words = said(status(EMPTY, 1, Outcome({}, CONDITION_TRUE, failed, None), NOW))
    assert words["Ready"] == words["WorkloadsReady"] == "ReconcileSingleNodeWorkloadError"
    assert words["RouterReady"] == "Unknown"


def test_settings_that_cannot_be_read() -> None:
    """``Ready`` has the reason; all other conditions stay."""
    before = status(EMPTY, 1, outcome({MAIN: CONDITION_TRUE}, {}), NOW)
    after = status(before, 1, Outcome({}, None, None, None, no("OperatorConfigInvalid")), NOW)
    assert said(after) == {**said(before), "Ready": "OperatorConfigInvalid"}


URI = field.Path("spec").child("model", "uri")


@pytest.mark.parametrize(
    ("path", "multi_node", "condition", "reason"),
    [
        (URI, False, MAIN, "ReconcileSingleNodeWorkloadError"),
        (URI, True, WORKER, "ReconcileMultiNodeWorkloadError"),
        (field.Path("spec").child("router"), False, "PresetsCombined", "CombineBaseError"),
    ],
)
def test_a_spec_that_breaks_a_rule(path: field.Path, multi_node: bool, condition: str, reason: str) -> None:
    """``Ready`` is ``InvalidSpec``; the condition that upstream uses for it is false too (KS-7.5)."""
    error = field.invalid(path, "v", "wrong")
    result = status(EMPTY, 1, refused({"a": "b"}, [error], multi_node=multi_node), NOW)
    words = said(result)
    assert (words["Ready"], words[condition]) == ("InvalidSpec", reason)
    assert result.annotations == {"a": "b"}
    assert {c.message for c in result.conditions if c.type in ("Ready", condition)} == {str(error)}


# Stopping: KS-6.7.


def test_every_condition_of_a_stopped_service_is_false() -> None:
    """Every sub-condition is present and false, and the status has no addresses."""
    before = LLMInferenceServiceStatus(url="http://a/", addresses=[ServiceAddress(url="http://a/")])
    result = status(before, 2, Outcome({"pin": "p"}, CONDITION_TRUE, None, None, stopped=True), NOW)
    words = said(result)
    assert {words[type_] for type_ in (*WORKLOAD_CONDITIONS, *ROUTER_CONDITIONS, *TOP_LEVEL)} == {"Stopped"}
    assert words["PresetsCombined"] == "True"
    assert (result.url, result.addresses) == ("", [])
    assert result.annotations == {"pin": "p"}


def test_the_conditions_of_the_topology_return_with_the_pods() -> None:
    """Conditions of the topology return, those of other topologies are removed."""
    stopped = status(EMPTY, 1, Outcome({}, CONDITION_TRUE, None, None, stopped=True), NOW)
    router: dict[str, ConditionState | None] = dict.fromkeys(ROUTER_CONDITIONS)
    words = said(status(stopped, 2, outcome({MAIN: CONDITION_TRUE}, router), NOW))
    assert words == {
        MAIN: "True", "PresetsCombined": "True", "Ready": "True", "RouterReady": "True", "WorkloadsReady": "True",
    }  # fmt: skip


# Ready's message.


def ready(result: LLMInferenceServiceStatus) -> KServeCondition:
    return next(c for c in result.conditions if c.type == "Ready")


def test_the_message_is_the_causes_in_order() -> None:
    """Causes in pods come first, in the order of a pod's life, then the other false conditions."""
    crash = Cause(Stage.CRASH, "pod a: crashed", "CrashLoopBackOff")
    unschedulable = Cause(Stage.SCHEDULING, "pod b: no node", "Unschedulable")
    workloads = PhaseResult([], {MAIN: no("MinimumReplicasUnavailable", "generic")}, [crash, unschedulable])
    router = RouterResult([], {ROUTES: no("HTTPRoutesNotReady", "route waits")})
    result = ready(status(EMPTY, 1, Outcome({}, CONDITION_TRUE, workloads, router), NOW))
    assert result.reason == "HTTPRoutesNotReady"
    assert result.message == "pod b: no node; pod a: crashed; route waits"


def test_the_first_cause_of_pods_is_the_reason_of_a_condition_of_its_own() -> None:
    """``Ready`` keeps KServe's reason. Mistakes of the spec are none of the pods'."""
    mistake = Cause(Stage.SPEC, "two numbers of GPUs", "ParallelismContradicted")
    crash = Cause(Stage.CRASH, "pod a: crashed", "CrashLoopBackOff")
    unschedulable = Cause(Stage.SCHEDULING, "pod b: no node", "Unschedulable")
    held_up = PhaseResult([], {MAIN: no("MinimumReplicasUnavailable")}, [mistake, crash])
    router = RouterResult([], {}, causes=[unschedulable])
    result = status(EMPTY, 1, Outcome({}, CONDITION_TRUE, held_up, router), NOW)
    (pods,) = (condition for condition in result.conditions if condition.type == "PodsReady")
    assert (pods.status, pods.severity, pods.reason) == ("False", "Info", "Unschedulable")
    assert pods.message == "pod b: no node; pod a: crashed"
    assert said(result)["Ready"] == "MinimumReplicasUnavailable"
    kept = status(result, 2, Outcome({}, no("ConfigNotFound"), None, None), NOW)
    assert said(kept)["PodsReady"] == "Unschedulable"
    for after in (outcome({MAIN: CONDITION_TRUE}, {}), replace(outcome({}, {}), stopped=True)):
        assert "PodsReady" not in said(status(result, 2, after, NOW))


def test_without_causes_the_deciding_condition_is_quoted() -> None:
    """Without causes, ``Ready`` has the message of the condition that decides."""
    result = ready(status(EMPTY, 1, outcome({MAIN: no("X", "generic")}, {}), NOW))
    assert (result.reason, result.message) == ("X", "generic")


# Reasons.

REASONS = frozenset(
    {
        "CombineBaseError",
        "ReconcileMultiNodeWorkloadError",
        "ReconcileSingleNodeWorkloadError",
        "SchedulerReconcileError",
        "HTTPRouteReconcileError",
        "RefsInvalid",
        "GatewaysNotReady",
        "GatewayFetchError",
        "HTTPRoutesNotReady",
        "WaitingForGateway",
        "InferencePoolNotReady",
        "InferencePoolFetchError",
        "Stopped",
        "Progressing",
        "ProgressDeadlineExceeded",
    }
)
NOT_HERE = {
    "ReconcileCertsError": "no certificates are made",
    "ReconcileWorkloadServiceError": "a Service whose name is taken is a NameConflict",
    "HTTPRouteFetchError": "routes come with the request; one that is missing is RefsInvalid",
    "NewObservedGenFailure": "Ready is false with the failure's own reason",
}


def test_reasons_are_upstreams() -> None:
    """Reasons are those of Appendix C that can occur here, and the listed additional ones."""
    reasons_here = {*LLMCondition, *LLMReason}
    assert reasons_here >= REASONS
    assert not reasons_here & NOT_HERE.keys()
    ours = {
        "InvalidSpec",
        "OperatorConfigInvalid",
        "NameConflict",
        "CreateRefused",
        "KindNotInstalled",
        "ParallelismContradicted",
    }
    ours |= {"CreateRefused", "NoScheduler", "NotRouted", "UnknownCriticality", "MemberDivergence", "NoWeight"}
    ours |= {
        "ConfigNotFound",
        "TLSNotSupported",
        "DevicesNotSupported",
        "PluginServerMissing",
        "OffloadingNotSupported",
    }
    later = {"ReconcileScalingError", "HPAProgressing", "ScaledObjectProgressing"}
    assert reasons_here - REASONS - set(LLMCondition) == ours | later


# Missing children.

SERVICE_MISSING = Outstanding(absent=["Service x"])


def test_a_child_that_is_on_its_way() -> None:
    """For a minute, a missing child is reported as being created: the service is not ready without it."""
    outcome = Outcome(
        {},
        CONDITION_TRUE,
        PhaseResult([], {MAIN: CONDITION_TRUE}),
        RouterResult([], {}),
        outstanding=SERVICE_MISSING,
    )
    result = status(EMPTY, 1, outcome, NOW)
    assert said(result)["ChildrenCreated"] == "Creating"
    assert said(result)["Ready"] == "Creating"


def test_a_child_that_does_not_come() -> None:
    """No event reports a conflict of names, so after a minute ``Ready`` does, until the child exists."""
    judged = Outcome(
        {},
        CONDITION_TRUE,
        PhaseResult([], {MAIN: CONDITION_TRUE}),
        RouterResult([], {}),
        outstanding=SERVICE_MISSING,
    )
    first = status(EMPTY, 1, judged, NOW)
    later = status(first, 1, judged, LATER)
    assert said(later)["Ready"] == said(later)["ChildrenCreated"] == "CreateRefused"
    assert "Service x" in ready(later).message
    there = said(status(later, 1, outcome({MAIN: CONDITION_TRUE}, {}), LATER))
    assert there["Ready"] == "True"
    assert "ChildrenCreated" not in there


# Every combination.

_STATES = st.sampled_from([None, CONDITION_TRUE, no("A"), no("B"), no("C")])
_WORKLOADS = st.fixed_dictionaries(dict.fromkeys(WORKLOAD_CONDITIONS, _STATES))
_ROUTER = st.fixed_dictionaries(dict.fromkeys(ROUTER_CONDITIONS, _STATES))


@given(_WORKLOADS, _ROUTER, _WORKLOADS, _ROUTER)
def test_aggregates_depend_on_the_present_states_alone(
    old_workloads: dict[str, ConditionState | None],
    old_router: dict[str, ConditionState | None],
    workloads: dict[str, ConditionState | None],
    router: dict[str, ConditionState | None],
) -> None:
    """Earlier conditions do not matter; the first false one decides, the router's before the workloads' (KS-6.3)."""

    def judged(
        before: LLMInferenceServiceStatus,
        some: dict[str, ConditionState | None],
        others: dict[str, ConditionState | None],
    ) -> LLMInferenceServiceStatus:
        return status(before, 1, outcome({t: f for t, f in some.items() if f is not None}, others), NOW)

    words = said(judged(judged(EMPTY, old_workloads, old_router), workloads, router))
    first = [
        next((f.reason for type_ in types if (f := states[type_]) is not None and not f.ok), "True")
        for types, states in ((WORKLOAD_CONDITIONS, workloads), (ROUTER_CONDITIONS, router))
    ]
    assert [words["WorkloadsReady"], words["RouterReady"]] == first
    assert words["Ready"] == (first[1] if first[1] != "True" else first[0])
    assert {type_ for type_ in (*workloads, *router) if type_ in words} == {
        type_ for type_, state in {**workloads, **router}.items() if state is not None
    }
