"""Rules of an LLMInferenceServiceConfig, by their ids in KS-7.4."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from app.admission.review import answer
from app.kserve.llminferenceserviceconfig.checks import Config, delete_warnings, update_warnings
from app.kserve.llminferenceserviceconfig.types import LLMInferenceServiceConfigSpec, LLMInferenceServiceConfigStatus
from app.kserve.spec.presets import EDITIONS
from app.kube.base import Json
from app.kube.objects import ObservedMeta
from app.kube.reading.decode import decode_document
from app.kube.resource import Resource
from app.settings import Settings
from tests.kserve.objects import CONFIG_KIND, admit, config, fields

WELL_KNOWN = "kserve-config-llm-template"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def test_configs_do_not_nest() -> None:
    """A config must not have baseRefs (KS-C01)."""
    assert fields(config(baseRefs=[{"name": "other"}])) == [("spec.baseRefs", "Forbidden")]


def test_scheduler_replicas() -> None:
    """The scheduler's replicas must be at least 1 (KS-C02)."""
    assert fields(config(router={"scheduler": {"replicas": 0}})) == [("spec.router.scheduler.replicas", "Invalid")]


def test_mistakes_of_both_rules_are_reported_together() -> None:
    """KS-C01 and KS-C02 are reported together; templates are only rendered if both hold."""
    document = config(
        baseRefs=[{"name": "other"}], router={"scheduler": {"replicas": -1}}, annotations={"a": "{{ .Nope }}"}
    )
    assert fields(document) == [("spec.baseRefs", "Forbidden"), ("spec.router.scheduler.replicas", "Invalid")]


@pytest.mark.parametrize(
    "text",
    [
        "{{ .Spec.Prefill.Worker.NodeName }}",
        "{{ .GlobalConfig.CredentialConfig }}",
        "{{ .GlobalConfig.StorageConfig }}",
        "{{ .NonExistent }}",
        "{{ .Spec.Model.Name",
    ],
)
def test_a_template_that_the_sample_cannot_fill(text: str) -> None:
    """The error is about the whole object, as upstream reports it; its message names the field (KS-C03)."""
    errors = admit(config(template={"containers": [{"name": "main", "args": ["ok", text]}]})).errors
    assert [(str(error.path), error.type.value) for error in errors] == [("", "FieldValueForbidden")]
    assert "spec.template.containers[0].args[1]" in str(errors[0])


@pytest.mark.parametrize(
    "text",
    [
        "{{ .Spec.Model.Name }}",
        "{{ ChildName .ObjectMeta.Name `-inference-pool` }}",
        "{{ if .Spec.Model.Name }}a{{ else }}b{{ end }}",
        "{{ .GlobalConfig.IngressGatewayName }}",
        "{{ or .Spec.Prefill.Parallelism.Data 1 }}",
        "{{ .Spec.Parallelism.Expert }}",
        "{{ .Spec.Worker.NodeName }}{{ .Spec.Template.HostNetwork }}",
    ],
)
def test_templates_that_the_sample_fills(text: str) -> None:
    """A template may use every field of the sample service."""
    assert fields(config(template={"containers": [{"name": "main", "args": [text]}]})) == []


LAX: dict[str, Json] = {
    "nothing": {},
    "a model without an address": {"model": {"name": "llama"}},
    "worker without parallelism": {"worker": {"containers": [{"name": "main"}]}},
    "two kinds of parallelism": {"parallelism": {"pipeline": 2, "data": 4, "dataLocal": 2}},
    "routes of one's own beside a managed one": {"router": {"route": {"http": {"refs": [{"name": "r"}], "spec": {}}}}},
    "a path that is a template": {
        "router": {
            "route": {"http": {"spec": {"rules": [{"matches": [{"path": {"value": "{{ .ObjectMeta.Name }}//x"}}]}]}}}
        }
    },
    "a pool in the form of v1": {
        "router": {"scheduler": {"pool": {"spec": {"selector": {"matchLabels": {"app": "{{ .ObjectMeta.Name }}"}}}}}}
    },
}


@pytest.mark.parametrize("case", LAX)
def test_rules_of_services_do_not_apply(case: str) -> None:
    """These rules apply to the merged spec of a service, not to a config."""
    assert fields(config(**LAX[case])) == []


def test_rules_of_the_schema_do_apply() -> None:
    """Both kinds share the schema's rules, such as those for scaling in CEL."""
    assert fields(config(scaling={"maxReplicas": 2})) == [("spec.scaling.wva", "Required")]
    assert fields(config(parallelism={"tensor": 0})) == [("spec.parallelism.tensor", "Invalid")]


def test_rejects_an_invalid_url() -> None:
    """A config's URI must be a valid URL, as KServe's Go types parse it."""
    assert fields(config(model={"uri": "hf://{{ .Name }}/x"})) == [("spec.model.uri", "Invalid")]


def test_warns_of_pods_without_the_server() -> None:
    """A container of another name, such as that of KServe's other kinds, runs beside the preset's server."""
    verdict = admit(config(template={"containers": [{"name": "kserve-container", "image": "a"}]}))
    assert verdict.errors == []
    assert [text for text in verdict.warnings if "no container is named main" in text]


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        ({"containers": [{"name": "main", "imagePullPolicy": "always"}]}, "containers[0].imagePullPolicy"),
        ({"containers": [{"name": "main", "command": ["vllm serve"]}]}, "containers[0].command[0]"),
        ({"nodeSelector": {"kubernetes.io/arch": "x64"}}, "nodeSelector[kubernetes.io/arch]"),
    ],
)
def test_warns_of_pods_that_cannot_run(pod: Json, path: str) -> None:
    """A service may replace what its config has, so that it is only a warning."""
    verdict = admit(config(template=pod))
    assert verdict.errors == []
    assert [text.partition(": ")[0] for text in verdict.warnings] == [f"spec.template.{path}"]


def test_accepts_what_a_service_or_a_template_completes() -> None:
    pod = {
        "containers": [{"name": "main", "env": [{"name": "A", "value": "$(B)"}]}],
        "volumes": [{"name": "a", "configMap": {"name": "{{ .ObjectMeta.Name }}-a"}}],
        "affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "zone"}]}},
    }
    assert admit(config(template=pod)).warnings == []


def test_a_list_that_cannot_be_applied_is_a_warning() -> None:
    """Duplicate items are only a warning, as a service that uses the config may replace the list."""
    verdict = admit(config(template={"containers": [{"name": "main"}, {"name": "main"}]}))
    assert verdict.errors == []
    assert len(verdict.warnings) == 1


@pytest.mark.parametrize("edition", EDITIONS.values(), ids=EDITIONS)
def test_every_preset_is_a_valid_config(edition: Mapping[str, Json]) -> None:
    """A preset can be exported, changed and stored as a config."""
    for suffix, preset in edition.items():
        assert fields(config(f"kserve-{suffix}", **json.loads(json.dumps(preset)))) == []


# Warnings about presets.


def _config(name: str, **spec: Any) -> Config:
    decoded, errors = decode_document(spec, LLMInferenceServiceConfigSpec)
    assert decoded is not None, errors
    return Resource(msgspec.convert({"name": name}, ObservedMeta), decoded, LLMInferenceServiceConfigStatus())


@pytest.mark.parametrize(
    ("name", "before", "after", "warned"),
    [
        (WELL_KNOWN, {"replicas": 1}, {"replicas": 2}, True),
        (WELL_KNOWN, {"replicas": 1}, {}, True),
        (WELL_KNOWN, {"replicas": 1}, {"replicas": 1, "labels": {"a": "b"}}, False),
        (WELL_KNOWN, {"labels": {"a": "b"}}, {"labels": {"a": "b", "c": "d"}}, False),
        ("mine", {"replicas": 1}, {"replicas": 2}, False),
    ],
)
def test_changing_a_well_known_config(name: str, before: Json, after: Json, warned: bool) -> None:
    """A changed or removed field causes a warning, an added one does not (KS-C04)."""
    assert bool(update_warnings(_config(name, **after), _config(name, **before), Settings())) is warned


def test_an_update_says_so() -> None:
    """The review of an update includes the warning."""
    before, after = config(WELL_KNOWN, replicas=1), config(WELL_KNOWN, replicas=2)
    assert any("well-known" in warning for warning in admit(after, before).warnings)
    assert not admit(before, before).warnings


@pytest.mark.parametrize(("name", "warned"), [(WELL_KNOWN, True), ("mine", False)])
def test_a_deletion_is_allowed(name: str, warned: bool) -> None:
    """Deletion only warns: refusing it would block the deletion of whole namespaces."""
    request = {
        "uid": "u",
        "operation": "DELETE",
        "name": name,
        "namespace": "kserve",
        "kind": {"group": "serving.kserve.io", "version": "v1alpha1", "kind": "LLMInferenceServiceConfig"},
    }
    body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    response = json.loads(answer(CONFIG_KIND, body.encode(), Settings()))["response"]
    assert response["allowed"] is True
    assert bool(response.get("warnings")) is warned


def test_deleting_a_well_known_config() -> None:
    """Deleting a preset's config causes a warning (KS-C05)."""
    assert delete_warnings(WELL_KNOWN, Settings())
    assert not delete_warnings("mine", Settings())
    assert not delete_warnings(WELL_KNOWN, Settings(kserve_config_prefix="other-"))
