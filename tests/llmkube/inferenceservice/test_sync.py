"""Sync with observed children: children are kept, other writers' changes respected, and answers converge."""

from __future__ import annotations

from datetime import timedelta

import orjson
import pytest

from app.desk.cluster.kinds import find
from app.errors import ProtocolError
from app.hooks.answer import answer_sync
from app.kube import objects
from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from app.settings import Settings
from tests.bench.payloads import inference_service_sync
from tests.llmkube.inferenceservice.world import (
    HTTP_SOURCE,
    NOW,
    POD_LABELS,
    applied,
    child,
    condition,
    customize,
    kinds,
    model,
    observed,
    service,
    sync,
)

COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
RUNNING: Json = {**dict.fromkeys(COUNTS, 1), "observedGeneration": 1}
GPU: Json = {"accelerator": "cuda", "gpu": {"count": 1}}


def running(*related: Json, parent: Json | None = None) -> tuple[Json, ...]:
    """Return the children of a running service."""
    return applied(sync(parent or service(), *(related or (model(),))), Deployment=RUNNING)


GATES: dict[str, tuple[tuple[Json, ...], str, str]] = {
    "missing": ((), "Failed", "ModelNotFound"),
    "of another namespace": (
        ({**model(), "metadata": {"name": "m", "namespace": "ns2"}},),
        "Failed",
        "ModelNotFound",
    ),
    "downloading": ((model(phase="Downloading"),), "Pending", "ModelNotReady"),
    "new": ((model(phase=""),), "Pending", "ModelNotReady"),
    "failed": ((model(phase="Failed"),), "Pending", "ModelNotReady"),
    "being deleted": (
        ({**model(), "metadata": {**model()["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}},),
        "Pending",
        "ModelTerminating",
    ),
    "invalid": (({**model(), "spec": {"source": 5}},), "Pending", "ModelInvalid"),
}


def test_a_malformed_pod_is_refused_where_it_is_read() -> None:
    """The statuses of pods are only read while the service is not ready."""
    pod: Json = {"metadata": {"name": "p", "namespace": "ns1", "labels": POD_LABELS}, "status": {"conditions": 5}}
    related = (model(), {"apiVersion": "v1", "kind": "Pod", **pod})
    children = running()
    assert sync(service(), *related, children=children)["status"]["phase"] == "Ready"
    with pytest.raises(ProtocolError, match="not a v2 hook request"):
        sync(service(), *related)


@pytest.mark.parametrize(("related", "phase", "reason"), GATES.values(), ids=GATES.keys())
def test_children_outlive_a_model_that_cannot_be_used(related: tuple[Json, ...], phase: str, reason: str) -> None:
    """If the Model cannot be used, every child is sent as it was last applied."""
    before = running()
    answer = sync(service(), *related, children=before)
    assert applied(answer, before, Deployment=RUNNING) == before
    assert answer["status"]["phase"] == phase
    assert condition(answer, "Ready")["reason"] == reason
    assert "endpoint" not in answer["status"]
    assert answer["status"]["replicas"] == 1


@pytest.mark.parametrize(("related", "phase", "reason"), GATES.values(), ids=GATES.keys())
def test_nothing_is_made_before_the_model_is_ready(related: tuple[Json, ...], phase: str, reason: str) -> None:
    """A new service waits for its Model, and Ready has the reason."""
    answer = sync(service(), *related)
    assert answer["children"] == []
    assert (answer["status"]["phase"], condition(answer, "Ready")["reason"]) == (phase, reason)


def test_the_models_own_words() -> None:
    """The message of the Model's Ready is part of the service's."""
    why = {"type": "Ready", "status": "False", "reason": "DownloadFailed", "message": "curl: (22) 404"}
    answer = sync(service(), model(phase="Failed", status={"conditions": [why]}))
    assert condition(answer, "Ready")["message"] == "Model m is Failed: curl: (22) 404"


def test_impossible_settings_fail_the_service_too() -> None:
    """An invalid cache size fails the service, because waiting does not help (LK-0.3); children are kept."""
    why = {"type": "Ready", "status": "False", "reason": "InvalidSettings", "message": "no quantity"}
    before = running()
    answer = sync(service(), model(phase="Failed", status={"conditions": [why]}), children=before)
    assert answer["status"]["phase"] == "Failed"
    assert condition(answer, "Degraded")["reason"] == "Failed"
    assert condition(answer, "Ready")["message"] == "Model m is Failed: no quantity"
    assert applied(answer, before, Deployment=RUNNING) == before


def test_a_new_source_is_waited_for() -> None:
    """A status of an earlier generation with another cache key does not count (LK-T-18)."""
    judged = {"type": "Ready", "status": "True", "reason": "ModelReady", "observedGeneration": 1}
    changed = model(source="https://example.com/new.gguf", status={"cacheKey": "old", "conditions": [judged]})
    changed["metadata"]["generation"] = 2
    assert sync(service(), changed)["status"]["phase"] == "Pending"
    changed["metadata"]["generation"] = 1
    assert sync(service(), changed)["status"]["phase"] == "Creating"


@pytest.mark.parametrize(
    ("old", "wanted", "phase"),
    [
        ("a" * 64, "b" * 64, "Pending"),
        ("a" * 64, "A" * 64, "Creating"),
        ("a" * 64, "", "Creating"),
        ("", "b" * 64, "Creating"),
    ],
)
def test_a_new_checksum_is_waited_for(old: str, wanted: str, phase: str) -> None:
    """The service waits for the Job to verify the new file; otherwise each pod would download it."""
    judged = {"type": "Ready", "status": "True", "reason": "ModelReady", "observedGeneration": 1}
    changed = model(**({"sha256": wanted} if wanted else {}), status={"sha256": old, "conditions": [judged]})
    changed["metadata"]["generation"] = 2
    assert sync(service(), changed)["status"]["phase"] == phase


def test_an_edited_model_on_metal_stays_usable() -> None:
    """On metal the agent reads the file, so no cache key shows a new source."""
    judged = {"type": "Ready", "status": "True", "reason": "MetalAgentManaged", "observedGeneration": 1}
    status = {"cacheKey": "", "conditions": [judged]}
    changed = model(source="/m.gguf", hardware={"accelerator": "metal"}, status=status)
    changed["metadata"]["generation"] = 2
    assert sync(service(), changed)["status"]["modelReady"] is True


def test_a_switch_to_metal_removes_the_children() -> None:
    """The agent takes over the service, so its children are removed (LK-3.1)."""
    answer = sync(service(), model(hardware={"accelerator": "metal"}), children=running())
    assert answer["children"] == []


def test_an_invalid_service_keeps_its_children() -> None:
    """An invalid spec changes no child, and Ready names the field."""
    before = running()
    answer = sync(service(resources={"memory": "lots"}), model(), children=before)
    assert applied(answer, before, Deployment=RUNNING) == before
    assert condition(answer, "Ready")["reason"] == "InvalidSpec"
    assert "spec.resources.memory" in condition(answer, "Ready")["message"]
    assert condition(answer, "Degraded")["status"] == "True"


@pytest.mark.parametrize(("reason", "left"), [("InsufficientGPU", None), ("InsufficientMemory", "InsufficientMemory")])
def test_an_invalid_service_waits_for_no_node(reason: str, left: str | None) -> None:
    """The hook's scheduling fields are removed (LK-5.2); those of a metal agent are kept (LK-T-02)."""
    status = {"schedulingStatus": reason, "schedulingMessage": "words", "waitingFor": "nvidia.com/gpu: 1"}
    shown = sync(service(resources={"memory": "lots"}, status=status), model())["status"]
    assert (shown.get("schedulingStatus"), shown.get("schedulingMessage")) == (left, "words" if left else None)
    assert "waitingFor" not in shown


def scaled(before: tuple[Json, ...], replicas: int) -> tuple[Json, ...]:
    """Return the same children after another writer changed the Deployment's replicas."""
    return tuple(
        {**item, "spec": {**item["spec"], "replicas": replicas}} if item["kind"] == "Deployment" else item
        for item in before
    )


def replicas(answer: Json) -> int | None:
    count: int | None = child(answer, "Deployment")["spec"].get("replicas")
    return count


AUTOSCALED = service(replicas=3, autoscaling={"maxReplicas": 5})


def test_replicas_are_the_users_without_an_autoscaler() -> None:
    """A number that another writer set is reset."""
    parent = service(replicas=3)
    before = running(parent=parent)
    assert replicas(sync(parent, model(), children=scaled(before, 5))) == 3


def test_created_with_an_autoscaler_replicas_are_where_it_starts() -> None:
    """Later the autoscaler's number is kept (MC-3.6)."""
    first = sync(AUTOSCALED, model())
    assert replicas(first) == 3
    later = scaled(applied(first), 5)
    assert replicas(sync(AUTOSCALED, model(), children=later)) == 5


@pytest.mark.parametrize(("wanted", "start"), [(1, 2), (3, 3), (9, 5)])
def test_an_autoscaler_starts_within_its_range(wanted: int, start: int) -> None:
    parent = service(replicas=wanted, autoscaling={"minReplicas": 2, "maxReplicas": 5})
    first = sync(parent, model())
    assert replicas(first) == start
    at_zero = scaled(applied(first), 0)
    assert replicas(sync(parent, model(), children=at_zero)) == start


def test_a_deployment_that_was_taken_over_keeps_the_autoscalers_number() -> None:
    """The Deployment has no record, and the autoscaler's number becomes part of the first one."""
    before = tuple(map(observed, scaled(running(parent=AUTOSCALED), 4)))
    answer = sync(AUTOSCALED, model(), children=before)
    assert replicas(answer) == 4
    again = scaled(applied(answer, before), 2)
    assert replicas(sync(AUTOSCALED, model(), children=again)) == 2


@pytest.mark.parametrize(("chosen", "start"), [(4, 4), (9, 5), (0, 3)])
def test_a_deployment_that_is_made_again_goes_on_where_the_autoscaler_was(chosen: int, start: int) -> None:
    """After a user deleted the Deployment, it starts with the autoscaler's desiredReplicas, if set."""
    before = applied(sync(AUTOSCALED, model()), HorizontalPodAutoscaler={"desiredReplicas": chosen})
    rest = tuple(item for item in before if item["kind"] != "Deployment")
    answer = sync(AUTOSCALED, model(), children=rest)
    assert replicas(answer) == start
    later = scaled(applied(answer, rest), 2)
    assert replicas(sync(AUTOSCALED, model(), children=later)) == 2


def test_switched_to_an_autoscaler_replicas_are_echoed() -> None:
    """Once sent, the observed number is sent again, because the API server would reset an omitted one to 1."""
    before = scaled(running(parent=service(replicas=3)), 4)
    answer = sync(AUTOSCALED, model(), children=before)
    assert replicas(answer) == 4
    again = scaled(applied(answer, before), 5)
    assert replicas(sync(AUTOSCALED, model(), children=again)) == 5


def test_switched_back_replicas_are_the_users_again() -> None:
    """The user's number is set, and the autoscaler is removed in the same answer."""
    before = scaled(running(parent=AUTOSCALED), 5)
    answer = sync(service(replicas=2), model(), children=before)
    assert replicas(answer) == 2
    assert "HorizontalPodAutoscaler" not in kinds(answer)


def test_stopping_beside_an_autoscaler() -> None:
    """0 is sent, because the default would start a pod; so is the way back, because autoscalers ignore 0 replicas."""
    stopped = service(replicas=0, autoscaling={"maxReplicas": 5})
    first = sync(stopped, model(), children=scaled(running(parent=AUTOSCALED), 4))
    assert replicas(first) == 0
    at_zero = scaled(applied(first), 0)
    assert replicas(sync(AUTOSCALED, model(), children=at_zero)) == 3


def test_a_gpu_added_to_a_recorded_service_switches_at_once() -> None:
    """``rollingUpdate`` is in the record, so omitting it removes it together with the change of type (D.8)."""
    before = running()
    answer = sync(service(), model(hardware=GPU), children=before)
    after = applied(answer, before)
    assert after[0]["spec"]["strategy"] == {"type": "Recreate"}


def test_a_gpu_added_to_a_service_taken_over_switches_in_two_steps() -> None:
    """Without a record, one answer sends ``rollingUpdate`` unchanged, and only the next one can remove it (D.8).

    The pods stay unchanged until the user changes the spec after that.
    """
    taken = tuple(map(observed, running()))
    first = sync(service(), model(hardware=GPU), children=taken)
    deployment = child(first, "Deployment")
    assert set(deployment["spec"]) == {"strategy"}
    assert deployment["spec"]["strategy"] == taken[0]["spec"]["strategy"]
    between = applied(first, taken)
    assert between[0]["spec"] == taken[0]["spec"]
    second = applied(sync(service(), model(hardware=GPU), children=between), between)
    assert second[0]["spec"]["strategy"] == {"type": "Recreate"}
    assert second[0]["spec"]["template"] == taken[0]["spec"]["template"]
    third = applied(sync(service(image="mine"), model(hardware=GPU), children=second), second)
    assert third[0]["spec"]["template"]["spec"]["tolerations"]


def test_an_old_selector_is_kept() -> None:
    """Selectors are immutable: an old one is kept if the pods' labels match it (D.9)."""
    (deployment, svc) = running()
    old = {"app": "s", "inference.llmkube.dev/model": "m", "inference.llmkube.dev/service": "s"}
    deployment["spec"]["selector"]["matchLabels"] = old
    answer = sync(service(), model(), children=(deployment, svc))
    assert child(answer, "Deployment")["spec"]["selector"] == {"matchLabels": old}


def test_a_selector_that_no_pod_can_satisfy_is_replaced() -> None:
    """One answer omits the Deployment, and the next creates it again; other children stay (D.9)."""
    (deployment, svc) = running()
    deployment["spec"]["selector"]["matchLabels"] = {"app": "other"}
    first = sync(service(), model(), children=(deployment, svc))
    assert kinds(first) == ["Service"]
    assert first["status"]["phase"] == "Creating"
    assert kinds(sync(service(), model(), children=(svc,))) == ["Deployment", "Service"]


def test_edits_are_applied() -> None:
    """Changes of Model, runtime and endpoint reach labels, pods and Service (LK-T-01, LK-T-08)."""
    before = running()
    parent = service(modelRef="m2", runtime="vllm", endpoint={"port": 9000, "type": "NodePort"})
    after = applied(sync(parent, model("m2"), children=before), before)
    assert after[0]["metadata"]["labels"]["inference.llmkube.dev/model"] == "m2"
    assert after[0]["spec"]["selector"] == before[0]["spec"]["selector"]
    assert [c["name"] for c in after[0]["spec"]["template"]["spec"]["containers"]] == ["vllm"]
    assert [port["port"] for port in after[1]["spec"]["ports"]] == [9000]
    assert after[1]["spec"]["type"] == "NodePort"


def test_foreign_additions_survive() -> None:
    """A restart annotation and an injected sidecar are kept (LK-T-09)."""
    before = running()
    template = before[0]["spec"]["template"]
    template["metadata"]["annotations"] = {"kubectl.kubernetes.io/restartedAt": "2030-01-01T00:00:00Z"}
    template["spec"]["containers"].append({"name": "istio-proxy", "image": "proxy"})
    after = applied(sync(service(image="new"), model(), children=before), before)
    kept = after[0]["spec"]["template"]
    assert kept["metadata"]["annotations"] == {"kubectl.kubernetes.io/restartedAt": "2030-01-01T00:00:00Z"}
    assert [c["name"] for c in kept["spec"]["containers"]] == ["llama-server", "istio-proxy"]
    assert kept["spec"]["containers"][0]["image"] == "new"


def test_a_child_that_never_comes_is_reported() -> None:
    """A name conflict causes no event: it is reported after a minute, with a resync (MC-8.3), and stays reported."""
    first = sync(service(), model())
    assert condition(first, "Ready")["reason"] == "Creating"
    assert first["resyncAfterSeconds"] == 65
    (deployment, _) = applied(first, Deployment=RUNNING)
    soon = sync(service(status=first["status"]), model(), children=(deployment,), now=NOW + timedelta(seconds=30))
    assert condition(soon, "Ready")["reason"] == "Creating"
    later = sync(service(status=soon["status"]), model(), children=(deployment,), now=NOW + timedelta(seconds=95))
    assert condition(later, "Ready") == {**condition(later, "Ready"), "status": "False", "reason": "CreateRefused"}
    assert "Service s cannot be created" in condition(later, "Ready")["message"]
    again = sync(service(status=later["status"]), model(), children=(deployment,), now=NOW + timedelta(seconds=100))
    assert again["status"] == later["status"]
    children = applied(later, Deployment=RUNNING)
    gone = sync(service(status=later["status"]), model(), children=children, now=NOW + timedelta(seconds=120))
    assert condition(gone, "Ready")["status"] == "True"
    assert "resyncAfterSeconds" not in gone


def test_recreates_a_deleted_child() -> None:
    """A deleted Service is created again, and Ready reports it, even for an old InferenceService."""
    (deployment, svc) = running()
    ready = sync(service(), model(), children=(deployment, svc))
    answer = sync(service(status=ready["status"]), model(), children=(deployment,), now=NOW + timedelta(hours=1))
    assert condition(answer, "Ready")["reason"] == "Creating"


def test_an_unchanged_world_changes_nothing() -> None:
    """The same request an hour later gives the same answer."""
    before = running()
    first = sync(service(), model(), children=before)
    second = sync(service(status=first["status"]), model(), children=before, now=NOW + timedelta(hours=1))
    assert second == first


def test_customize_asks_for_what_a_sync_reads() -> None:
    """Rules depend only on the spec, name only the parent's namespace, and match no Secrets (D.2)."""
    rules = {rule["resource"]: rule for rule in customize(service())}
    assert list(rules) == ["models", "pods", "endpointslices"]
    assert rules["models"]["names"] == ["m"]
    assert rules["pods"]["labelSelector"] == {"matchLabels": {"app": "s"}}
    assert rules["endpointslices"]["names"] == ["s"]
    assert {rule.get("namespace", "ns1") for rule in rules.values()} == {"ns1"}


def test_customize_follows_spec_and_settings() -> None:
    """Kinds with many events are matched only if needed, and settings can disable them."""
    config = {"speculative": {"enabled": True, "model": "draft"}}
    parent = service(
        runtime="vllm",
        vllmConfig=config,
        resources={"gpu": 1},
        runtimeClassName="nvidia",
        priorityClassName="gold",
    )
    asked = {rule["resource"]: rule for rule in customize(parent, Settings(llmkube_model_cache_claim="shared"))}
    assert asked["models"]["names"] == ["m", "draft"]
    assert asked["runtimeclasses"]["names"] == ["nvidia"]
    assert asked["priorityclasses"]["names"] == ["gold"]
    assert asked["persistentvolumeclaims"]["names"] == ["shared"]
    assert asked["inferenceservices"]["labelSelector"] == {}
    assert "namespace" not in asked["inferenceservices"]
    fewer = {rule["resource"] for rule in customize(parent, Settings(watch_pods=False, llmkube_queue_position=False))}
    assert fewer.isdisjoint({"pods", "inferenceservices"})


def test_customize_never_names_another_namespace() -> None:
    """An empty name matches nothing, rather than everything."""
    assert [rule["resource"] for rule in customize(service(modelRef=""))] == [
        "pods",
        "endpointslices",
    ]


@pytest.mark.parametrize(
    ("spec", "settings", "wanted"),
    [
        ({"replicas": 0}, Settings(), ["models", "endpointslices"]),
        ({"suspend": True}, Settings(), ["models", "endpointslices"]),
        ({}, Settings(llmkube_watch_endpoint_slices=False), ["models", "pods"]),
        ({"priority": "high"}, Settings(), ["models", "pods", "endpointslices"]),
        ({"priorityClassName": "gold"}, Settings(), ["models", "pods", "endpointslices", "priorityclasses"]),
    ],
)
def test_nothing_is_asked_for_that_a_spec_cannot_need(spec: Json, settings: Settings, wanted: list[str]) -> None:
    """Metacontroller evaluates each rule of each service at every event of a related object."""
    assert [rule["resource"] for rule in customize(service(**spec), settings)] == wanted


def test_quotes_the_source_in_scripts() -> None:
    """The init container's script does not depend on the source, which is passed in a variable."""
    evil = f"{HTTP_SOURCE}?`id`;reboot"
    plain = child(sync(service(), model()), "Deployment")["spec"]["template"]["spec"]["initContainers"][0]
    other = child(sync(service(), model(source=evil)), "Deployment")["spec"]["template"]["spec"]["initContainers"][0]
    assert plain["command"] == other["command"]
    assert {"name": "MODEL_SOURCE", "value": evil} in other["env"]


def test_reports_a_change_that_is_not_applied() -> None:
    """The ready pods are the old ones: Ready is RollingOut at first, and ChangeRefused after a minute."""
    children = running()
    parent = service(generation=2, image="example.com/other:1")
    first = sync(parent, model(), children=children)
    assert condition(first, "Ready")["reason"] == "RollingOut"
    assert first["resyncAfterSeconds"] > 60
    again = {**parent, "status": first["status"]}
    later = sync(again, model(), children=children, now=NOW + timedelta(seconds=61))
    assert (condition(later, "Ready")["status"], condition(later, "Ready")["reason"]) == ("False", "ChangeRefused")
    before = applied(later, children, Deployment=RUNNING)
    done = sync({**again, "status": later["status"]}, model(), children=before)
    assert condition(done, "Ready")["status"] == "True"
    assert "resyncAfterSeconds" not in done


def test_any_child_that_stays_as_it_was_is_named() -> None:
    """This includes an autoscaler that is unchanged while the pods are ready."""
    first = sync(service(autoscaling={"maxReplicas": 3}), model())
    children = applied(first, Deployment=RUNNING, HorizontalPodAutoscaler={})
    parent = service(generation=2, autoscaling={"maxReplicas": 9})
    asked = sync(parent, model(), children=children)
    assert condition(asked, "Ready")["reason"] == "RollingOut"
    later = sync({**parent, "status": asked["status"]}, model(), children=children, now=NOW + timedelta(seconds=61))
    assert condition(later, "Ready")["reason"] == "ChangeRefused"
    assert "HorizontalPodAutoscaler" in condition(later, "Ready")["message"]
    assert "Deployment" not in condition(later, "Ready")["message"]


def test_a_settled_sync_decodes_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children that equal their records are found by bytes."""
    body = inference_service_sync()
    kind = find("inference.llmkube.dev/v1alpha1", "InferenceService")
    assert kind is not None
    monkeypatch.setattr(objects, "parsed", lambda _: pytest.fail("a record was decoded"))
    assert len(orjson.loads(answer_sync(kind, body, Settings(), NOW))["children"]) == 2


@pytest.mark.parametrize(
    "record", ['{"kind":' * 5000, '{"spec":' + "[" * 5000 + "]" * 5000 + "}", "5", '{"kind":"\\ud800"}']
)
def test_a_record_that_cannot_be_read_changes_no_child(record: str) -> None:
    """A user who may edit a child may edit its record."""
    request = orjson.loads(inference_service_sync())
    kind = find("inference.llmkube.dev/v1alpha1", "InferenceService")
    assert kind is not None
    expected = orjson.loads(answer_sync(kind, orjson.dumps(request), Settings(), NOW))["children"]
    for group in request["children"].values():
        for item in group.values():
            item["metadata"]["annotations"][LAST_APPLIED] = record
    assert orjson.loads(answer_sync(kind, orjson.dumps(request), Settings(), NOW))["children"] == expected
