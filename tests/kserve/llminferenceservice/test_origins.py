"""The source of each value of a pod: the layer that set it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from app.hooks.protocol import SyncRequest
from app.kserve.llminferenceservice.origins import MODEL, explain
from app.kube.base import Json
from app.settings import Settings
from tests.kserve.objects import SERVICE_KIND, config, service


def sources(
    parent: Json, *configs: Json, accounts: Sequence[Json] = (), declared: Sequence[str] = ()
) -> dict[str, str]:
    """Return the source of each path; ``declared`` lists optional child kinds."""
    key = "LLMInferenceServiceConfig.serving.kserve.io/v1alpha2"
    related = {key: _by_name(configs), "ServiceAccount.v1": _by_name(accounts)}
    body = {"parent": parent, "children": {kind: {} for kind in declared}, "related": related}
    request: SyncRequest[Any, Any] = SERVICE_KIND.request(json.dumps(body).encode())
    resource, errors = SERVICE_KIND.decode(request.parent)
    assert resource is not None
    assert not errors
    return {origin.path: origin.source for origin in explain(resource, request, Settings())}


def _by_name(objects: Sequence[Json]) -> Json:
    return {f"{item['metadata']['namespace']}/{item['metadata']['name']}": item for item in objects}


def test_presets_bases_and_the_spec() -> None:
    """Each value is attributed to the layer that set it last; the model download belongs to no layer."""
    base = config(template={"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}]})
    pod = {"containers": [{"name": "main", "image": "mine", "args": ["--x"]}]}
    source_of = sources(service(baseRefs=[{"name": "base"}], template=pod), base)
    main = "Deployment/demo-kserve spec.template.spec.containers[main]"
    assert source_of[f"{main}.image"] == "spec"
    assert source_of[f"{main}.args[0]"] == "spec"
    assert source_of[f"{main}.env[A].value"] == "LLMInferenceServiceConfig default/base"
    assert source_of[f"{main}.env[HOME].value"] == "preset kserve-config-llm-template"
    assert source_of[f"{main}.command[0]"] == "preset kserve-config-llm-template"
    init = "Deployment/demo-kserve spec.template.spec.initContainers[storage-initializer]"
    assert source_of[f"{init}.image"] == MODEL


def test_groups_and_the_endpoint_picker() -> None:
    """Values of leader, worker and scheduler are attributed to different presets."""
    source_of = sources(
        service(worker={}, parallelism={"data": 2, "dataLocal": 1}, router={"scheduler": {}}, prefill={})
    )
    group = "LeaderWorkerSet/demo-kserve-mn spec.leaderWorkerTemplate"
    decode = "preset kserve-config-llm-decode-worker-data-parallel"
    assert source_of[f"{group}.leaderTemplate.spec.containers[main].image"] == decode
    assert source_of[f"{group}.workerTemplate.spec.containers[main].image"] == decode
    prefill = "Deployment/demo-kserve-prefill spec.template.spec.containers[main].image"
    assert source_of[prefill] == "preset kserve-config-llm-prefill-template"
    picker = "Deployment/demo-kserve-router-scheduler spec.template.spec.containers[main].image"
    assert source_of[picker] == "preset kserve-config-llm-scheduler"


def test_claims_of_devices() -> None:
    key = "serving.kserve.io/exp-dra-device-class"
    parent = service(notes={key: "gpu.example.com"})
    source_of = sources(parent, declared=["ResourceClaimTemplate.resource.k8s.io/v1"])
    pod = "Deployment/demo-kserve spec.template.spec"
    for path in ("resourceClaims[managed-device].name", "containers[main].resources.claims[managed-device].name"):
        assert source_of[f"{pod}.{path}"] == f"metadata.annotations[{key}]"


def test_no_warning_without_children() -> None:
    assert sources(service(baseRefs=[{"name": "gone"}])) == {}


def test_adapters_credentials_and_traces_name_their_fields() -> None:
    """Added values name the field that requested them, also if they are mixed with the user's arguments."""
    parent = service(
        notes={"serving.kserve.io/storageSecretName": "reader"},
        model={"uri": "gs://bucket/base", "lora": {"adapters": [{"name": "a", "uri": "s3://bucket/a"}]}},
        template={"containers": [{"name": "main", "args": ["--max-model-len=8"]}]},
        tracing={},
    )
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}}
    source_of = sources(parent, accounts=[account])
    pod = "Deployment/demo-kserve spec.template.spec"
    main, init = f"{pod}.containers[main]", f"{pod}.initContainers[storage-initializer]"
    arguments = [source_of[f"{main}.args[{position}]"] for position in range(9)]
    assert arguments == [*["spec.model.lora"] * 4, "spec", *["spec.tracing"] * 4]
    assert source_of[f"{main}.env[OTEL_SERVICE_NAME].value"] == "spec.tracing"
    assert [source_of[f"{init}.args[{position}]"] for position in range(4)] == [MODEL, MODEL, *["spec.model.lora"] * 2]
    assert source_of[f"{pod}.volumes[lora-adapters].emptyDir"] == "spec.model.lora"
    named = "Secret reader, named by metadata.annotations[serving.kserve.io/storageSecretName]"
    assert source_of[f"{init}.env[AWS_ACCESS_KEY_ID].valueFrom.secretKeyRef.name"] == named
    assert source_of[f"{init}.env[GOOGLE_APPLICATION_CREDENTIALS].value"] == named
    assert source_of[f"{pod}.volumes[user-gcp-sa].secret.secretName"] == named
    assert source_of[f"{main}.volumeMounts[kserve-provision-location].mountPath"] == MODEL
