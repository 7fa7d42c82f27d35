"""Pods are validated as in Kubernetes, before and after merging (KS-7.8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from app.kserve.spec import presets
from app.kserve.spec.presets.edition import LATENCY_PREDICTOR
from app.kube.base import Json
from app.kube.field import Path
from app.limits import MAX_ERRORS, MAX_SHOWN_ERRORS
from app.workload.rules import podrules, wholepod
from tests.kserve.objects import Cluster, admit, config, fields, service

GPU = "nvidia.com/gpu"


def main(**fields_: Any) -> Json:
    return {"containers": [{"name": "main", **fields_}]}


PLACES: dict[str, Any] = {
    "spec.template": lambda pod: {"template": pod},
    "spec.worker": lambda pod: {"worker": pod, "parallelism": {"data": 2, "dataLocal": 1}},
    "spec.prefill.template": lambda pod: {"prefill": {"template": pod}},
    "spec.prefill.worker": lambda pod: {"prefill": {"worker": pod, "parallelism": {"pipeline": 2}}},
    "spec.router.scheduler.template": lambda pod: {"router": {"route": {}, "scheduler": {"template": pod}}},
}

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
EXPRESSION: Json = {"key": "zone", "operator": "In"}
MISTAKES: dict[str, tuple[Json, str]] = {
    "a variable's name": (main(env=[{"name": "A=B"}]), "containers[0].env[0].name"),
    "two sources": (
        main(env=[{"name": "A", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        "containers[0].env[0].valueFrom",
    ),
    "a toleration": ({"tolerations": [{"operator": "Equals", "key": "a"}]}, "tolerations[0].operator"),
    "a selector": ({"nodeSelector": {"zone": "a b"}}, "nodeSelector[zone]"),
    "an affinity": (
        {
            "affinity": {
                "nodeAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [{"matchExpressions": [{**EXPRESSION, "operator": "Is", "values": ["a"]}]}]
                    }
                }
            }
        },
        f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].operator",
    ),
    "an anti-affinity": (
        {
            "affinity": {
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 101, "podAffinityTerm": {"topologyKey": "zone"}}
                    ]
                }
            }
        },
        "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
    ),
    "a spread": (
        {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "Wait"}]},
        "topologySpreadConstraints[0].whenUnsatisfiable",
    ),
    "a port": (main(ports=[{"containerPort": 70000}]), "containers[0].ports[0].containerPort"),
    "a port's name": (main(ports=[{"containerPort": 1, "name": "HTTP"}]), "containers[0].ports[0].name"),
    "a port's name twice": (
        main(ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]),
        "containers[0].ports[1].name",
    ),
    "a host's port twice": (
        main(ports=[{"containerPort": 1, "hostPort": 80}, {"containerPort": 2, "hostPort": 80}]),
        "containers[0].ports[1].hostPort",
    ),
    "a protocol": (main(ports=[{"containerPort": 1, "protocol": "tcp"}]), "containers[0].ports[0].protocol"),
    "a DNS policy": ({"dnsPolicy": "Cluster"}, "dnsPolicy"),
    "a name server": ({"dnsConfig": {"nameservers": ["dns.example"]}}, "dnsConfig.nameservers[0]"),
    "a request over its limit": (
        main(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        "containers[0].resources.requests[cpu]",
    ),
    "unequal GPUs": (
        main(resources={"requests": {GPU: "1"}, "limits": {GPU: "2"}}),
        f"containers[0].resources.requests[{GPU}]",
    ),
    "a resource without a domain": (main(resources={"limits": {"gpu": "1"}}), "containers[0].resources.limits[gpu]"),
    "two items of one key": (main(env=[{"name": "A"}, {"name": "A"}]), "containers[0].env"),
    "a volume of two sources": (
        {"volumes": [{"name": "a", "emptyDir": {}, "configMap": {"name": "b"}}]},
        "volumes[0].configMap",
    ),
    "a way out of a volume": (
        main(volumeMounts=[{"name": "home", "mountPath": "/x", "subPath": "../y"}]),
        "containers[0].volumeMounts[0].subPath",
    ),
    "a container's name": ({"containers": [{"name": "Main", "image": "x"}]}, "containers[0].name"),
    "a message policy": (main(terminationMessagePolicy="Logs"), "containers[0].terminationMessagePolicy"),
    "a user": ({"securityContext": {"runAsUser": -1}}, "securityContext.runAsUser"),
    "a probe": (main(livenessProbe={"httpGet": {"port": 0}}), "containers[0].livenessProbe.httpGet.port"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("place", PLACES)
def test_a_mistake_is_refused_in_every_template(place: str, mistake: str) -> None:
    pod, path = MISTAKES[mistake]
    assert [refused for refused, _ in fields(service(**PLACES[place](pod)))] == [f"{place}.{path}"]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_a_base_is_named_with_the_base(mistake: str) -> None:
    """Merging resolves duplicate items, so these are accepted."""
    pod, path = MISTAKES[mistake]
    cluster = Cluster(service(baseRefs=[{"name": "base"}]), config(template=pod))
    cluster.sync()
    if mistake == "two items of one key":
        assert cluster.says("PresetsCombined") == "True"
        return
    condition = cluster.condition("PresetsCombined")
    assert condition is not None
    assert f"spec.template.{path.partition('[')[0]}" in condition["message"]
    assert "(set by LLMInferenceServiceConfig default/base)" in condition["message"]
    assert cluster.answer["children"] == []


BASE, OWN = "LLMInferenceServiceConfig default/base", "the service"
TOGETHER: dict[str, tuple[Json, Json, str, str]] = {
    "GPUs": (
        main(resources={"requests": {GPU: "4"}}),
        main(resources={"limits": {GPU: "8"}}),
        f'spec.template.containers[0].resources.requests[{GPU}]: Invalid value: "4": must be the same as the limit',
        f"{BASE} and {OWN}",
    ),
    "memory": (
        main(resources={"requests": {"memory": "64Gi"}}),
        main(resources={"limits": {"memory": "32Gi"}}),
        "resources.requests[memory]",
        f"{BASE} and {OWN}",
    ),
    "names of containers": (
        {"initContainers": [{"name": "fetch", "image": "x"}]},
        {"containers": [{"name": "fetch", "image": "y"}]},
        "spec.template.initContainers[0].name: Duplicate value",
        f"{BASE} and {OWN}",
    ),
    "names of ports": (
        main(ports=[{"containerPort": 9000, "name": "metrics"}]),
        main(ports=[{"containerPort": 9001, "name": "metrics"}]),
        "ports",
        f"{BASE} and {OWN}",
    ),
    "ports of the host": (
        {"hostNetwork": True},
        main(ports=[{"containerPort": 9001, "hostPort": 80}]),
        "hostPort",
        f"{OWN} and {BASE}",
    ),
    "a preset": (
        {},
        main(securityContext={"privileged": True}),
        "allowPrivilegeEscalation",
        f"preset kserve-config-llm-template and {OWN}",
    ),
}


@pytest.mark.parametrize("case", TOGETHER)
def test_who_only_contradict_each_other_together_are_named_together(case: str) -> None:
    """Each layer is valid alone, so admission accepts it."""
    base, pod, said, who = TOGETHER[case]
    service_, base_ = service(baseRefs=[{"name": "base"}], template=pod), config(template=base)
    assert admit(service_).errors == admit(base_).errors == []
    cluster = Cluster(service_, base_)
    cluster.sync()
    condition = cluster.condition("PresetsCombined")
    assert condition is not None
    assert said in condition["message"]
    assert f"(set by {who})" in condition["message"]
    assert cluster.answer["children"] == []


def test_the_layers_are_searched_for_the_errors_that_are_shown() -> None:
    """Each search goes through the lists of a pod: for thousands of containers, all of them would take seconds."""
    containers = [{"name": f"a{number}"} for number in range(MAX_ERRORS + 100)]
    parent = service(baseRefs=[{"name": "base"}])
    cluster = Cluster(parent, config(template={"containers": [{"name": "main"}], "initContainers": containers}))
    cluster.sync()
    condition = cluster.condition("PresetsCombined")
    assert condition is not None
    assert condition["message"].count("(set by LLMInferenceServiceConfig default/base)") == MAX_SHOWN_ERRORS
    assert condition["message"].endswith(f"and {MAX_ERRORS - MAX_SHOWN_ERRORS} more errors")


MISSING: dict[str, tuple[Json, str]] = {
    "a volume": (main(volumeMounts=[{"name": "scratch", "mountPath": "/s"}]), "containers[0].volumeMounts[0].name"),
    "an image": ({"containers": [{"name": "side"}, {"name": "main"}]}, "containers[0].image"),
    "a limit of GPUs": (main(resources={"requests": {GPU: "1"}}), f"containers[0].resources.limits[{GPU}]"),
}


@pytest.mark.parametrize("case", MISSING)
@pytest.mark.parametrize("place", PLACES)
def test_rejects_missing_required_fields_of_pods(place: str, case: str) -> None:
    """Admission only warns, as a config that replaces a preset may have the field."""
    pod, path = MISSING[case]
    document = service(**PLACES[place](pod))
    verdict = admit(document)
    assert verdict.errors == []
    assert [said for said in verdict.warnings if said.startswith(f"{place}.{path}: ")]
    cluster = Cluster(document)
    cluster.sync()
    condition = cluster.condition("PresetsCombined")
    assert condition is not None
    assert path.rpartition(".")[2] in condition["message"]
    preset = {"spec.template": "template", "spec.worker": "worker-data-parallel"}.get(place)
    if preset is not None:
        key = place.removeprefix("spec.")
        rest: Json = {"volumes": [{"name": "scratch", "emptyDir": {}}], "containers": [{"name": "side", "image": "x"}]}
        rest["containers"] += [{"name": "main", "image": "y", "resources": {"limits": {GPU: "1"}}}]
        shadow: Json = {key: rest}
        cluster = Cluster(document, config(f"kserve-config-llm-{preset}", **shadow))
        cluster.sync()
        assert cluster.says("PresetsCombined") == "True"


def test_with_a_base_nothing_is_missed_at_apply() -> None:
    for pod, _ in MISSING.values():
        warnings = admit(service(baseRefs=[{"name": "base"}], template=pod)).warnings
        assert not [said for said in warnings if "are refused" in said]


TAKEN: list[Json] = [
    main(volumeMounts=[{"name": "dshm", "mountPath": "/x"}, {"name": "kserve-provision-location", "mountPath": "/y"}]),
    main(livenessProbe={"periodSeconds": 30}, readinessProbe={"initialDelaySeconds": 0, "periodSeconds": 0}),
    main(securityContext={"seccompProfile": {"type": ""}}),
    main(env=[{"name": "API_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}]),
    main(ports=[{"containerPort": 9000, "name": "metrics", "protocol": "TCP", "hostPort": 0}]),
    {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.0.0.10", "fd00::1"]}},
    {"tolerations": [{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoSchedule"}]},
    {"nodeSelector": {"zone": "{{ .Namespace }}"}},
    {"volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}]},
    {"containers": [{"name": "main", "$patch": "replace", "image": "x"}]},
    main(lifecycle={"$patch": "delete"}, env=[{"name": "HOME", "$patch": "delete"}]),
    {
        "initContainers": [
            {"name": "s", "image": "x", "restartPolicy": "Always", "startupProbe": {"tcpSocket": {"port": 1}}}
        ]
    },
]


def test_a_directive_that_no_merge_knows_is_an_unknown_field() -> None:
    verdict = admit(service(template={"containers": [{"name": "main", "lifecycle": {"$patch": "drop"}}]}))
    assert any('unknown field "spec.template.containers[0].lifecycle.$patch"' in said for said in verdict.warnings)


@pytest.mark.parametrize("pod", TAKEN)
def test_what_kubernetes_takes_is_taken(pod: Json) -> None:
    document = service(template=pod)
    verdict = admit(document)
    warnings = [said for said in verdict.warnings if "needs an NVIDIA GPU" not in said]
    assert (verdict.errors, warnings) == ([], [])
    cluster = Cluster(document)
    cluster.sync()
    assert cluster.says("PresetsCombined") == "True"


@pytest.mark.parametrize("edition", presets.EDITIONS.values(), ids=presets.EDITIONS)
def test_the_presets_obey_every_rule(edition: Mapping[str, Json]) -> None:
    errors = []
    for suffix, preset in edition.items():
        for side in (preset, preset.get("prefill") or {}, (preset.get("router") or {}).get("scheduler") or {}):
            for key in ("template", "worker"):
                pod, path = side.get(key) or {}, Path(suffix).child(key)
                if suffix == LATENCY_PREDICTOR and pod:
                    pod = {**pod, "containers": pod["containers"][1:]}  # the first container is the scheduler preset's
                errors += [*podrules.check(podrules.POD, pod, path), *wholepod.amounts(pod, path)]
                errors += wholepod.missing(pod, path, {})
    assert [error for error in errors if "{{" not in error.body] == []
