"""Inputs of a service's pods: exactly the objects that its merged spec refers to."""

from __future__ import annotations

import pytest

from app.hooks.template import INPUTS
from app.kube.base import Json
from tests import hookcalls
from tests.kserve.objects import SERVICE_KIND, config, service

SCHEDULED = {"router": {"scheduler": {"config": {"ref": {"name": "picker", "key": "config"}}}}}
PICKER = '{"kind":"EndpointPickerConfig"}'
NAMED = {"template": {"serviceAccountName": "model"}}
EDITED = {"serving.kserve.io/s3-endpoint": "edited"}


def account(name: str, **annotations: str) -> Json:
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def config_map(name: str, namespace: str = "default", **data: str) -> Json:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def digest(parent: Json, *related: Json) -> str:
    """Return the digest of the inputs, which every workload carries."""
    children = hookcalls.sync(SERVICE_KIND, parent, related)["children"]
    (annotation,) = {c["metadata"]["annotations"][INPUTS] for c in children if c["kind"] == "Deployment"}
    return str(annotation)


@pytest.mark.parametrize(
    ("spec", "name", "counts"),
    [
        ({}, "default", True),
        ({}, "model", False),
        ({}, "demo-kserve", False),
        (NAMED, "model", True),
        (NAMED, "default", False),
        ({"prefill": {}, **NAMED}, "default", True),
        ({"baseRefs": [{"name": "base"}]}, "based", True),
        ({"baseRefs": [{"name": "base"}]}, "default", False),
        ({"baseRefs": [{"name": "base"}], **NAMED}, "based", False),
        ({"template": {"serviceAccountName": "{{ .ObjectMeta.Name }}-sa"}}, "demo-sa", True),
        ({"template": {"serviceAccountName": "{{ .ObjectMeta.Name }}-sa"}}, "default", False),
    ],
)
def test_service_account(spec: Json, name: str, counts: bool) -> None:
    """An edited account changes the digest only if pods run under it."""
    base = config("base", template={"serviceAccountName": "based"})
    others = [base, *(account(other) for other in ("model", "based", "demo-sa", "default") if other != name)]
    before = digest(service(**spec), *others, account(name))
    assert (digest(service(**spec), *others, account(name, **EDITED)) != before) == counts


def test_annotation_of_a_service_account_that_no_download_reads() -> None:
    assert digest(service(), account("default", team="a")) == digest(service(), account("default", team="b"))


@pytest.mark.parametrize(
    ("spec", "name", "counts"),
    [
        ({"baseRefs": [{"name": "base"}]}, "default/base", True),
        ({"baseRefs": [{"name": "base"}]}, "default/other", False),
        ({"baseRefs": [{"name": "base"}, {"name": "both"}]}, "default/both", True),
        ({"baseRefs": [{"name": "base"}, {"name": "both"}]}, "kserve/both", False),
        ({}, "default/base", False),
        ({}, "kserve/kserve-config-llm-template", True),
        ({}, "kserve/kserve-config-llm-worker-data-parallel", False),
    ],
)
def test_a_config_that_is_used_is_an_input(spec: Json, name: str, counts: bool) -> None:
    """A config is an input if baseRefs name it or it replaces a preset, in the namespace where it is found."""
    namespace, _, last = name.partition("/")
    others = [config("base"), config("both"), config("both", "kserve")]
    others = [other for other in others if other["metadata"] != config(last, namespace)["metadata"]]
    before = digest(service(**spec), *others, config(last, namespace))
    after = digest(service(**spec), *others, config(last, namespace, labels={"edited": "yes"}))
    assert (after != before) == counts


@pytest.mark.parametrize(
    ("spec", "edited", "counts"),
    [
        ({}, config_map("model", a="b"), False),
        (SCHEDULED, config_map("picker", config=PICKER.replace("Config", "")), True),
        (SCHEDULED, config_map("picker", config=PICKER, other="b"), False),
        ({}, config_map("inferenceservice-config", "kserve", ingress='{"urlScheme":"https"}'), True),
        ({}, config_map("inferenceservice-config", "kserve", explainers="{}"), False),
        ({}, config_map("inferenceservice-other", "kserve", ingress="{}"), False),
    ],
)
def test_keys_of_a_config_map_that_are_read_are_inputs(spec: Json, edited: Json, counts: bool) -> None:
    """Only keys that are read are inputs."""
    present = [config_map("picker", config=PICKER)]
    others = [item for item in present if item["metadata"] != edited["metadata"]]
    assert (digest(service(**spec), *others, edited) != digest(service(**spec), *present)) == counts


def test_config_map_of_a_reference_without_a_key() -> None:
    spec: Json = {"router": {"scheduler": {"config": {"ref": {"name": "picker", "key": ""}}}}}
    before, after = (config_map("picker", epp=text) for text in (PICKER, PICKER.replace("Config", "")))
    assert digest(service(**spec), before) != digest(service(**spec), after)


@pytest.mark.parametrize(
    ("annotation", "counts"),
    [("prometheus.io/scrape", True), ("serving.kserve.io/storageSecretName", True), ("team", False)],
)
def test_annotation_of_the_service(annotation: str, counts: bool) -> None:
    assert (digest(service(notes={annotation: "edited"})) != digest(service())) == counts


def test_annotation_that_a_template_prints() -> None:
    spec: Json = {"labels": {"team": "{{ .ObjectMeta.Annotations.team }}"}}
    assert digest(service(notes={"team": "a"}, **spec)) != digest(service(notes={"team": "b"}, **spec))
