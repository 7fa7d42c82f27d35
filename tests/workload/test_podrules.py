"""The table of Kubernetes' rules for pods, and the traversal that applies it."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import yaml

from app.kube.embedded.types import TYPES
from app.kube.field import Error, Path
from app.workload.rules import podrules, wholepod

REFUSALS = yaml.load((pathlib.Path(__file__).parent / "refusals.yaml").read_text(), yaml.CSafeLoader)
JUDGES: dict[str, Callable[[Any, Any], Iterable[Error]]] = {
    "fields": lambda pod, _: podrules.check(podrules.POD, pod, Path("spec")),
    "complete": lambda pod, base: wholepod.missing(pod, Path("spec"), base),
    "resources": lambda pod, _: wholepod.amounts(pod, Path("spec")),
}


def errors(place: str, value: Any) -> list[str]:
    return [str(error) for error in podrules.check(place, value, Path("spec"))]


def reachable(type_name: str) -> set[str]:
    """Return the types and fields below a type that the traversal visits."""
    found = {type_name}
    for name, part in TYPES[type_name].items():
        place = f"{type_name}.{name}"
        found.add(place)
        if part.type in TYPES and podrules._rules(place):
            found |= reachable(part.type)
    return found


def test_every_rule_is_reached_from_a_pod() -> None:
    assert podrules.RULES.keys() <= reachable("PodSpec")


@pytest.mark.parametrize(
    ("place", "value", "error"),
    [
        (
            "EnvVarSource.secretKeyRef",
            {"name": "a"},
            "spec.key: Required value: write the key of the object that is meant",
        ),
        (
            "PodSpec.topologySpreadConstraints",
            [{"topologyKey": "a"}],
            "spec[0].maxSkew: Invalid value: 0: must be at least 1",
        ),
        (
            "Container.lifecycle",
            {"preStop": {"sleep": {"seconds": -1}}},
            "spec.preStop.sleep.seconds: Invalid value: -1: must be at least 0",
        ),
    ],
)
def test_an_absent_required_field_has_the_zero_value(place: str, value: Any, error: str) -> None:
    assert error in errors(place, value)


@pytest.mark.parametrize(
    ("judge", "row"),
    [pytest.param(judge, row, id=f"{judge}, {case}") for judge, rows in REFUSALS.items() for case, row in rows.items()],
)
def test_a_mistake_is_refused_with_its_place_and_what_is_allowed(judge: str, row: Any) -> None:
    """A row without errors is accepted; ``against`` is the other field of a contradiction."""
    refused = list(JUDGES[judge](row["pod"], row.get("base", {})))
    assert [str(error) for error in refused] == row.get("errors", [])
    assert [str(error.against) for error in refused if error.against] == ([row["against"]] if "against" in row else [])


def test_null_counts_as_absent() -> None:
    assert errors("PodSpec.tolerations", None) == []
    assert errors("Container.env", [None, {"name": "A", "value": None, "valueFrom": None}]) == []


def test_checks_selectors_of_volume_claim_templates() -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Ti"}}}
    template = {"spec": {**claim, "selector": {"matchLabels": {"zone": "a b"}}}}
    volume = {"name": "cache", "ephemeral": {"volumeClaimTemplate": template}}
    [error] = errors("PodSpec.volumes", [volume])
    assert error.startswith("spec[0].ephemeral.volumeClaimTemplate.spec.selector.matchLabels[zone]: Invalid value")


def test_requires_the_size_and_the_access_modes_of_volume_claim_templates() -> None:
    volume = {"name": "cache", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "nvme"}}}}
    assert [
        error.partition(": Required")[0].rpartition("spec.")[2] for error in errors("PodSpec.volumes", [volume])
    ] == [
        "accessModes",
        "resources.requests.storage",
    ]


def test_a_volume_accepts_fields_that_a_variable_does_not() -> None:
    reference = {"fieldPath": "metadata.labels"}
    volume = {"name": "info", "downwardAPI": {"items": [{"path": "labels", "fieldRef": reference}]}}
    assert errors("PodSpec.volumes", [volume]) == []
    assert len(errors("Container.env", [{"name": "A", "valueFrom": {"fieldRef": reference}}])) == 1


@pytest.mark.parametrize(
    ("place", "value", "path"),
    [
        ("Container.envFrom", [{"prefix": "A_"}], "[0]"),
        ("Container.envFrom", [{"configMapRef": {"name": "a"}, "secretRef": {"name": "b"}}], "[0].secretRef"),
        ("Container.envFrom", [{"secretRef": {"name": "Team_Token"}}], "[0].secretRef.name"),
        ("Container.envFrom", [{"configMapRef": {"optional": True}}], "[0].configMapRef.name"),
        ("PodSpec.hostAliases", [{"ip": "gateway", "hostnames": ["a"]}], "[0].ip"),
        ("PodSpec.hostAliases", [{"ip": "10.0.0.7", "hostnames": ["Files"]}], "[0].hostnames[0]"),
        ("PodSpec.nodeName", "Node_7", ""),
        ("PodSpec.os", {"name": "Linux"}, ".name"),
        ("PodSpec.preemptionPolicy", "never", ""),
        ("PodSpec.readinessGates", [{"conditionType": "is ready"}], "[0].conditionType"),
        ("PodSpec.schedulingGates", [{"name": "-wait"}], "[0].name"),
        ("PodSpec.resourceClaims", [{"name": "gpu"}], "[0]"),
        ("PodSpec.resourceClaims", [{"name": "GPU", "resourceClaimName": "a"}], "[0].name"),
        (
            "PodSpec.resourceClaims",
            [{"name": "gpu", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}],
            "[0].resourceClaimTemplateName",
        ),
        ("PodSpec.volumes", [{"name": "a", "configMap": {"name": "Settings"}}], "[0].configMap.name"),
        ("PodSpec.volumes", [{"name": "a", "secret": {"secretName": "a/b"}}], "[0].secret.secretName"),
        ("PodSpec.volumes", [{"name": "a", "nfs": {"server": "s", "path": "data"}}], "[0].nfs.path"),
        ("PodSpec.volumes", [{"name": "a", "emptyDir": {"sizeLimit": "-1Gi"}}], "[0].emptyDir.sizeLimit"),
        ("PodSpec.volumes", [{"name": "a", "image": {"pullPolicy": "always"}}], "[0].image.pullPolicy"),
        (
            "PodSpec.volumes",
            [
                {
                    "name": "a",
                    "projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 60}}]},
                }
            ],
            "[0].projected.sources[0].serviceAccountToken.expirationSeconds",
        ),
        (
            "Container.volumeMounts",
            [{"name": "a", "mountPath": "/a", "mountPropagation": "Both"}],
            "[0].mountPropagation",
        ),
        (
            "PodSpec.affinity",
            {
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a", "namespaces": ["Team_A"]}]
                }
            },
            ".podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaces[0]",
        ),
    ],
)
def test_rejects_what_the_api_server_or_the_kubelet_rejects(place: str, value: Any, path: str) -> None:
    [error] = podrules.check(place, value, Path("spec"))
    assert str(error.path) == f"spec{path}"


@pytest.mark.parametrize(
    ("claim", "names"),
    [
        ({"accessModes": ["RWO"]}, ["accessModes[0]"]),
        ({"storageClassName": "Fast_SSD"}, ["storageClassName"]),
        ({"storageClassName": ""}, []),
        ({"volumeMode": "block"}, ["volumeMode"]),
    ],
)
def test_checks_what_a_volume_claim_template_asks_for(claim: Any, names: list[str]) -> None:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Ti"}}, **claim}
    volume = {"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
    paths = [str(error.path) for error in podrules.check("PodSpec.volumes", [volume], Path("spec"))]
    assert [path.rpartition("spec.")[2] for path in paths] == names


def test_a_hook_sleeps_no_longer_than_the_pod_has_to_end() -> None:
    def pod(seconds: int, **spec: Any) -> Any:
        return {"containers": [{"name": "a", "lifecycle": {"preStop": {"sleep": {"seconds": seconds}}}}], **spec}

    [error] = podrules.check(podrules.POD, pod(90, terminationGracePeriodSeconds=60), Path("spec"))
    assert error.body.endswith("must be at most terminationGracePeriodSeconds, which is 60")
    for right in (pod(60, terminationGracePeriodSeconds=60), pod(90)):  # a base may set the grace period
        assert list(podrules.check(podrules.POD, right, Path("spec"))) == []


@pytest.mark.parametrize(
    ("name", "amount", "word"),
    [
        ("example.com/-gpu", "1", "must be the name of a resource"),
        ("example.com/gpu", "1", ""),
        ("hugepages-2Mi", "4Mi", ""),
    ],
)
def test_checks_names_of_resources(name: str, amount: str, word: str) -> None:
    pod = {"containers": [{"name": "a", "resources": {"limits": {name: amount}}}]}
    assert [word in error.body for error in wholepod.amounts(pod, Path("spec"))] == [True] * bool(word)


def test_a_container_uses_claims_of_its_pod() -> None:
    container = {"name": "a", "image": "a/b", "resources": {"claims": [{"name": "gpu"}]}}
    [error] = wholepod.missing({"containers": [container]}, Path("spec"), {})
    assert str(error.path) == "spec.containers[0].resources.claims[0].name"
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "a"}]}
    assert not list(wholepod.missing({"containers": [container], **claims}, Path("spec"), {}))
    assert not list(wholepod.missing({"containers": [container]}, Path("spec"), claims))
