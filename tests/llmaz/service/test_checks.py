"""Admission of Services (LZ-SV01 to LZ-SV05, LZ-6.4)."""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.base import Json
from tests.llmaz.world import RUNNER, SERVICE, admit, paths, pods, service

WORKER = "spec.workloadTemplate.workerTemplate"
LEADER = "spec.workloadTemplate.leaderTemplate"
ROLLOUT = "spec.rolloutStrategy.rollingUpdateConfiguration"
FLAVORS = "llmaz.io/inference-service-flavors"
OTHER: Json = {"name": "model-runner-fake", "image": "x"}


def claims(*roles: str | None) -> Json:
    models = [{"name": f"m{n}", **({"role": role} if role else {})} for n, role in enumerate(roles)]
    return service(modelClaims={"models": models})


def rollout(**config: Any) -> Json:
    return service(rolloutStrategy={"rollingUpdateConfiguration": config})


ACCEPTED: dict[str, Json] = {
    "one pod": service(),
    "the main role left out": claims(None, "draft"),
    "two pods": service(workload={"size": 2, "leaderTemplate": pods()}),
    "more pods in addition than there are": rollout(maxSurge="150%"),
    "labels without a value": service(
        worker={**pods(nodeSelector={"a": None}), "metadata": {"labels": {"b": None}, "annotations": {"c": None}}}
    ),
    "the policy that all pods have": service(worker=pods(restartPolicy="Always")),
    "as many pods in addition as a group has": service(
        workload={"size": 2}, rolloutStrategy={"rollingUpdateConfiguration": {"maxSurge": "100%"}}
    ),
    "all pods at once": rollout(maxUnavailable="100%"),
    "percentages": rollout(maxUnavailable="25%", maxSurge="10%"),
    "no movement for no replicas": service(
        replicas=0, rolloutStrategy={"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 0}}
    ),
    "a volume of the model's name where no model is put": service(
        worker=pods(volumes=[{"name": "model-volume", "emptyDir": {}}]),
        annotations={"llmaz.io/skip-model-loader": "true"},
    ),
    "an init container with a longer name": service(
        worker=pods(initContainers=[{"name": "model-loader-cache", "image": "x"}])
    ),
}


@pytest.mark.parametrize("item", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_works_upstream_is_accepted(item: Json) -> None:
    """Upstream accepts these objects, and they can work."""
    assert paths(admit(SERVICE, item)) == []


def mounting(path: str) -> Json:
    return service(worker=pods({**RUNNER, "volumeMounts": [{"name": "x", "mountPath": path}]}))


REFUSED: dict[str, tuple[Json, list[str]]] = {
    "LZ-SV01 a dot in the name": (service("service-0.5b"), ["metadata.name"]),
    "LZ-SV02 no engine": (service(worker=pods(OTHER)), [f"{WORKER}.spec.containers"]),
    "LZ-SV03 three models": (claims("main", "draft", "draft"), ["spec.modelClaims.models"]),
    "LZ-SV04 a draft alone": (claims("draft"), ["spec.modelClaims.models", "spec.modelClaims.models"]),
    "LZ-SV05 no template": (service(workloadTemplate=None), ["spec.workloadTemplate"]),
    "LZ-SV05 no worker": (service(workloadTemplate={"size": 2}), [WORKER]),
    "LZ-SV05 an unknown policy": (
        service(workload={"restartPolicy": "Always"}),
        ["spec.workloadTemplate.restartPolicy"],
    ),
    "LZ-SV05 a container without a name": (service(worker=pods({"image": "x"})), [f"{WORKER}.spec.containers[0].name"]),
    "LZ-N01 two mains": (claims("main", "main"), ["spec.modelClaims.models"]),
    "LZ-N02 no models": (service(modelClaims={}), ["spec.modelClaims.models"]),
    "LZ-N02 no claim": (service(modelClaims=None), ["spec.modelClaims"]),
    "LZ-N04 a digit first": (service("1chat"), ["metadata.name"]),
    "LZ-N05 sixty-three characters": (service("a" * 63), ["metadata.name"]),
    "LZ-N08 negative replicas": (service(replicas=-1), ["spec.replicas"]),
    "LZ-N26 a leader without an engine": (
        service(workload={"size": 2, "leaderTemplate": pods(OTHER)}),
        [f"{LEADER}.spec.containers"],
    ),
    "LZ-N27 the model's volume": (
        service(worker=pods(volumes=[{"name": "model-volume", "emptyDir": {}}])),
        [f"{WORKER}.spec.volumes[0].name"],
    ),
    "LZ-N27 the loader's name": (
        service(worker=pods(initContainers=[{"name": "model-loader-1", "image": "x"}])),
        [f"{WORKER}.spec.initContainers[0].name"],
    ),
    "LZ-N27 the model's place": (
        mounting("/workspace/models"),
        [f"{WORKER}.spec.containers[0].volumeMounts[0].mountPath"],
    ),
    "LZ-N29 no movement": (rollout(maxUnavailable="0%", maxSurge=0), [f"{ROLLOUT}.maxUnavailable"]),
    "more than any number of replicas": (rollout(maxSurge=2**70), [f"{ROLLOUT}.maxSurge"]),
    "an annotation that is none": (
        service(worker={**pods(), "metadata": {"annotations": {"a b": "c"}}}),
        [f"{WORKER}.metadata.annotations"],
    ),
    "more than all groups in addition": (
        service(workload={"size": 2}, rolloutStrategy={"rollingUpdateConfiguration": {"maxSurge": "101%"}}),
        [f"{ROLLOUT}.maxSurge"],
    ),
    "pods that end": (
        service(worker=pods(restartPolicy="Never", activeDeadlineSeconds=60)),
        [f"{WORKER}.spec.activeDeadlineSeconds", f"{WORKER}.spec.restartPolicy"],
    ),
    "no percentage": (rollout(maxUnavailable="half"), [f"{ROLLOUT}.maxUnavailable"]),
    "no pods per replica": (service(workload={"size": 0}), ["spec.workloadTemplate.size"]),
    "a variable twice": (
        service(worker=pods({**RUNNER, "env": [{"name": "A"}, {"name": "A"}]})),
        [f"{WORKER}.spec.containers[0].env[1]"],
    ),
    "a port for two protocols": (
        service(worker=pods({**RUNNER, "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}]})),
        [f"{WORKER}.spec.containers[0].ports[1]"],
    ),
    "an unknown list with something twice, after a null": (
        service(worker=pods(future=[None, {"name": "q", "x": [{"name": "a"}, {"name": "a"}]}])),
        [f"{WORKER}.spec.future[0].x[1]"],
    ),
    "a label that is none": (
        service(worker={**pods(), "metadata": {"labels": {"a": "b c"}}}),
        [f"{WORKER}.metadata.labels[a]"],
    ),
}


@pytest.mark.parametrize(("item", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_all_mistakes_are_refused_at_once(item: Json, want: list[str]) -> None:
    """All errors of an object are reported at once, each at the field to change."""
    assert paths(admit(SERVICE, item)) == want


def test_an_update_keeps_the_size_of_groups() -> None:
    """The size is immutable (LZ-N28); name and engine container are checked only at creation."""
    old = service("service-0.5b", worker=pods(OTHER))
    assert paths(admit(SERVICE, service("service-0.5b", worker=pods(OTHER, OTHER | {"name": "b"})), old)) == []
    changed = admit(SERVICE, service(workload={"size": 3}), service(workload={"size": 2}))
    assert paths(changed) == ["spec.workloadTemplate.size"]
    assert "immutable" in str(changed.errors[0])


SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "x"}},
}
WARNED = {
    "a policy that a Deployment lacks": (service(workload={"restartPolicy": "None"}), "restartPolicy"),
    "subgroups of one": (service(workload={"subGroupPolicy": {"subGroupSize": 1}}), "subGroupPolicy"),
    "subgroups that do not fit": (
        service(workload={"size": 4, "subGroupPolicy": {"subGroupSize": 5}}),
        "subGroupSize does not divide",
    ),
    "LZ-T29 a label of LeaderWorkerSet's": (
        service(worker={**pods(), "metadata": {"labels": {"leaderworkerset.sigs.k8s.io/name": "x"}}}),
        "leaderworkerset.sigs.k8s.io/name",
    ),
    "a leader alone": (service(workload={"leaderTemplate": pods()}), "workerTemplate: ignored"),
    "a label of the model's": (
        service(worker={**pods(), "metadata": {"labels": {"llmaz.io/model-family-name": "x"}}}),
        "metadata.labels[llmaz.io/model-family-name]: overwritten",
    ),
    "an annotation of the model's": (
        service(
            workload={"size": 2, "leaderTemplate": {**pods(), "metadata": {"annotations": {FLAVORS: "x"}}}},
            modelClaims={"models": [{"name": "opt"}], "inferenceFlavors": ["a"]},
        ),
        f"{LEADER}.metadata.annotations[{FLAVORS}]: overwritten",
    ),
    "a leader of another port": (
        service(
            workload={"size": 2, "leaderTemplate": pods({**RUNNER, "ports": [{"containerPort": 40000}]})},
        ),
        f"{LEADER}.spec.containers[0].ports: must include 8080, the only port to which the Service chat-lb",
    ),
    "a limit below its request": (
        service(worker=pods({**RUNNER, "resources": {"limits": {"cpu": 1}, "requests": {"cpu": "1500m"}}})),
        f"{WORKER}.spec.containers[0].resources.limits[cpu]: the limit 1 is below the request 1500m",
    ),
    "thousandths of a byte": (
        service(worker=pods({**RUNNER, "resources": {"limits": {"memory": "16m"}}})),
        f"{WORKER}.spec.containers[0].resources.limits.memory: 16m is 0.016 bytes; did you mean 16M or 16Mi?",
    ),
    "a claim that the pod does not have": (
        service(worker=pods({**RUNNER, "resources": {"claims": [{"name": "gpu"}]}})),
        f"{WORKER}.spec.containers[0].resources.claims[0].name: Invalid value",
    ),
    "a program with its arguments": (
        service(worker=pods({**RUNNER, "command": ["serve --port 8080"]})),
        f"{WORKER}.spec.containers[0].command[0]: no program has this name",
    ),
    "a shell's variable": (
        service(worker=pods({**RUNNER, "image": "vllm/vllm-openai:v0.20.0", "args": ["--api-key", "$KEY"]})),
        f"{WORKER}.spec.containers[0].args[1]: no shell reads it",
    ),
    "pods that are not spread": (
        service(worker=pods(topologySpreadConstraints=[SPREAD])),
        f"{WORKER}.spec.topologySpreadConstraints[0].labelSelector.matchLabels[app]: no pod of this workload",
    ),
    "a mount without a volume": (
        service(worker=pods({**RUNNER, "volumeMounts": [{"name": "cache", "mountPath": "/c"}]})),
        f'{WORKER}.spec.containers[0].volumeMounts[0].name: Invalid value: "cache": no volume of the pod has this name',
    ),
    "no image": (
        service(worker=pods({"name": "model-runner"})),
        f"{WORKER}.spec.containers[0].image: Required value: name the image that the container runs",
    ),
    "a model that cannot exist": (
        service(modelClaims={"models": [{"name": "facebook/opt"}]}),
        'spec.modelClaims.models[0].name: no OpenModel can be named "facebook/opt"',
    ),
    "an unknown field of Kubernetes": (service(worker=pods(hostNetwrk=True)), 'did you mean "hostNetwork"?'),
}


@pytest.mark.parametrize(("item", "part"), WARNED.values(), ids=WARNED.keys())
def test_what_is_accepted_with_a_bad_effect_is_warned_of(item: Json, part: str) -> None:
    """The object is accepted with a warning."""
    verdict = admit(SERVICE, item)
    assert verdict.errors == []
    assert any(part in warning for warning in verdict.warnings), verdict.warnings


def test_what_is_added_to_pods_is_not_missing() -> None:
    """The volume of the model may be mounted by others, and a flavor sets the limits of devices."""
    sidecar = {"name": "sidecar", "image": "x", "volumeMounts": [{"name": "model-volume", "mountPath": "/m"}]}
    device = {**RUNNER, "resources": {"requests": {"nvidia.com/gpu": 1}}}
    assert admit(SERVICE, service(worker=pods(device, sidecar))).warnings == []


def test_updates_that_come_to_nothing_or_end_all_pods() -> None:
    """Upstream accepts these updates; the warning reports at once what the status would report later."""
    grouped = service(workload={"size": 4, "subGroupPolicy": {"subGroupSize": 2}})
    nameless, added = service(worker=pods(OTHER)), service(workload={"size": 4})
    for new, old, part in (
        (nameless, service(), "one container must be named model-runner; until then"),
        (added, grouped, "keeps the subgroups"),
        (grouped, added, "keeps the subgroups"),
        (service(workload={"leaderTemplate": pods()}), service(), "its pods end before new ones are ready"),
    ):
        verdict = admit(SERVICE, new, old)
        assert verdict.errors == []
        assert any(part in warning for warning in verdict.warnings), verdict.warnings
    assert admit(SERVICE, grouped, grouped).warnings == []
    alone = service(workload={"leaderTemplate": pods()})
    for new, old in ((alone, service(replicas=0)), (alone, alone), (service(), alone)):
        assert not [text for text in admit(SERVICE, new, old).warnings if "its pods end" in text]


def test_ports_beside_the_right_one_are_fine() -> None:
    """The port may be one of several or absent; ports of workers are not checked."""
    right = {**RUNNER, "ports": [{"containerPort": 9000}, {"containerPort": 8080}]}
    workers = pods({**RUNNER, "ports": [{"containerPort": 5000}]})
    for item in (
        service(),
        service(worker=pods(right)),
        service(worker=workers, workload={"size": 2, "leaderTemplate": pods(right)}),
    ):
        assert admit(SERVICE, item).warnings == []
