"""Values in a spec of LLMKube's kinds (HTTP-6.4).

Admission denies an invalid value at its field, and sync keeps the children as they are. Odd values that LLMKube's own
API accepts are accepted, and passed on unchanged. Rules about durations and times are left out, because LLMKube has no
such fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from app.kube.base import Json
from app.kube.modelfields import FieldType, fields
from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.model.types import ModelSpec
from tests.corpus.requests import (
    MODEL_SPEC,
    REVIEW,
    REVIEW_MODEL,
    SPEC,
    SYNC,
    SYNC_MODEL,
    is_allowed,
    is_denied,
    is_frozen,
    model,
    ready,
    review,
    spec_with,
    sync,
    verdict,
)
from tests.corpus.requests import service as inference_service
from tests.service import Answer, Service


@dataclass(frozen=True)
class Case:
    """A valid spec with some fields replaced by those of ``spec``, and the field and error types of its denial."""

    id: str
    spec: Json
    field: str
    types: tuple[str, ...] = ("Invalid",)
    metadata: Json | None = None


TYPE = ("TypeInvalid",)
POD_METRIC = {"type": "Pods", "name": "queue", "targetAverageValue": "2"}


def scaled(**over: Any) -> Json:
    return {"autoscaling": {"maxReplicas": 2, **over}}


def probe(**over: Any) -> Json:
    return {"probeOverrides": {"liveness": {"httpGet": {"port": 8080}, **over}}}


DENIED = [
    *(Case(f"S05 runtime {v!r}", {"runtime": v}, "spec.runtime", ("NotSupported",)) for v in ("VLLM", "vllm ", "")),
    Case("S05 priority", {"priority": "urgent"}, "spec.priority", ("NotSupported",)),
    Case("S05 nested", {"endpoint": {"type": "clusterip"}}, "spec.endpoint.type", ("NotSupported",)),
    Case("S07 string for a number", {"replicas": "5"}, "spec.replicas", TYPE),
    Case("S07 number for a string", {"modelRef": 5}, "spec.modelRef", TYPE),
    Case("S07 string for a boolean", {"jinja": "true"}, "spec.jinja", TYPE),
    Case("S07 number for a boolean", {"jinja": 1}, "spec.jinja", TYPE),
    Case("S07 boolean for a number", {"replicas": True}, "spec.replicas", TYPE),
    Case("S07 fraction for a number", {"replicas": 1.5}, "spec.replicas", TYPE),
    Case("S08 emoji", {"modelRef": "😀" * 64}, "spec.modelRef", ("TooLong", "Invalid")),
    Case("S09 too many", {"args": ["a"] * 50_001}, "spec.args", ("TooMany",)),
    *(
        Case(f"S11 env {name!r}", {"env": [{"name": name}]}, "spec.env[0].name", ("Invalid", "Required"))
        for name in ("A=B", "")
    ),
    *(Case(f"S12 port {p}", {"containerPort": p}, "spec.containerPort") for p in (0, 65536, -1)),
    *(
        Case(f"S13 {text!r}", {"resources": {"memory": text}}, "spec.resources.memory")
        for text in ("1.5.2", "-1Gi", "1 Gi", "∞", "Gi", "1e", "0x10", "1Gi ", "NaN")
    ),
    Case("S13 a number", {"resources": {"cpu": 2}}, "spec.resources.cpu", TYPE),
    Case("S14 GPUs", {"resources": {"gpu": 9}}, "spec.resources.gpu"),
    Case("S14 half a GPU", {"resources": {"gpu": 0.5}}, "spec.resources.gpu", TYPE),
    Case("S15 254", {}, "metadata.name", ("TooLong", "Invalid"), {"name": "a" * 254}),
    Case("S15 64", {}, "metadata.name", ("TooLong", "Invalid"), {"name": "a" * 64}),
    Case("S16 digit", {}, "metadata.name", ("Invalid",), {"name": "1a"}),
    Case("S20 replicas", {"replicas": 2**31 - 1}, "spec.replicas"),
    Case("S21 min over max", scaled(minReplicas=5), "spec.autoscaling.maxReplicas"),
    *(
        Case(f"S22 {size}", {"vllmConfig": {"tensorParallelSize": size}}, "spec.vllmConfig.tensorParallelSize")
        for size in (0, -1)
    ),
    Case("S23 8 MiB of arguments", {"args": ["x" * 32 * 1024] * 210}, "spec.args", ("TooLong",)),
    Case("S25 negative period", probe(periodSeconds=-1), "spec.probeOverrides.liveness.periodSeconds"),
    Case("S25 overflow", probe(timeoutSeconds=2**31), "spec.probeOverrides.liveness.timeoutSeconds"),
    Case("S25 two actions", probe(exec={"command": ["x"]}), "spec.probeOverrides.liveness.httpGet", ("Forbidden",)),
    Case("S41 bidirectional", {"modelRef": "m\u202eodel"}, "spec.modelRef"),
    Case("S41 zero width", {"modelRef": "m\u200bodel"}, "spec.modelRef"),
    Case("S41 tag", {"modelRef": "m\U000e0041"}, "spec.modelRef"),
    Case("S43 not ASCII", {"modelRef": "caf\u00e9"}, "spec.modelRef"),
    Case("S43 not ASCII, decomposed", {"modelRef": "cafe\u0301"}, "spec.modelRef"),
    Case("S46 blank before", {"image": " nginx"}, "spec.image"),
    Case("S46 blank after", {"image": "nginx\n"}, "spec.image"),
    Case(
        "metric without value",
        scaled(metrics=[{**POD_METRIC, "targetAverageValue": ""}]),
        "spec.autoscaling.metrics[0].targetAverageValue",
        ("Required",),
    ),
    Case(
        "metric of zero",
        scaled(metrics=[{**POD_METRIC, "targetAverageValue": "0"}]),
        "spec.autoscaling.metrics[0].targetAverageValue",
    ),
]


def document_of(case: Case) -> Json:
    document = inference_service(spec_with(**case.spec))
    if case.metadata:
        document["metadata"] = {**document["metadata"], **case.metadata}
    return document


@pytest.mark.parametrize("case", DENIED, ids=[case.id for case in DENIED])
def test_denied_and_frozen(service: Service, case: Case) -> None:
    document = document_of(case)
    is_denied(service.post(REVIEW, review(document)), case.field, *case.types)
    is_frozen(service.post(SYNC, sync(document)))


@pytest.mark.parametrize("spec", [None, [], "x", 5, True], ids=["null", "list", "text", "number", "boolean"])
def test_rejects_a_spec_of_the_wrong_type(service: Service, spec: Any) -> None:
    """HTTP-S01: the spec is required, or has the wrong type."""
    document = {**inference_service(), "spec": spec}
    is_denied(service.post(REVIEW, review(document)), "spec", "Required", "TypeInvalid")
    is_frozen(service.post(SYNC, sync(document)))


def test_rejects_a_missing_spec(service: Service) -> None:
    """HTTP-S01: a missing spec is denied like null."""
    document = {key: value for key, value in inference_service().items() if key != "spec"}
    is_denied(service.post(REVIEW, review(document)), "spec", "Required")
    answer = service.post(SYNC, sync(document))
    assert answer.status == 200
    assert ready(answer)["reason"] == "InvalidSpec"


# Every field.

KINDS: list[tuple[Any, Json, str]] = [(InferenceServiceSpec, SPEC, REVIEW), (ModelSpec, MODEL_SPEC, REVIEW_MODEL)]


def every_field() -> list[tuple[str, Json, str, str, FieldType]]:
    """Return review path, valid spec, name, path and shape of each field of the two specs."""
    return [
        (path, valid, name, f"spec.{name}", shape)
        for spec_type, valid, path in KINDS
        for name, (_, shape) in fields(spec_type).items()
    ]


def ask(service: Service, path: str, spec: Json) -> Answer:
    document = inference_service(spec) if path == REVIEW else model(spec)
    return service.post(path, review(document))


@pytest.mark.parametrize("given", every_field(), ids=lambda given: str(given[2]))
def test_treats_null_as_absent(service: Service, given: tuple[str, Json, str, str, FieldType]) -> None:
    """The answer is the same as for an object without the field (HTTP-S02)."""
    path, valid, name, _, _ = given
    without = {key: value for key, value in valid.items() if key != name}
    assert ask(service, path, {**valid, name: None}).body == ask(service, path, without).body


@pytest.mark.parametrize("given", every_field(), ids=lambda given: str(given[2]))
def test_names_every_field_of_the_wrong_type(service: Service, given: tuple[str, Json, str, str, FieldType]) -> None:
    """Any JSON type is accepted, or denied at the field or below it, and never an internal error (HTTP-S03)."""
    path, valid, name, where, _ = given
    denied = 0
    values: list[Any] = [True, -7, 1.5, "ä x", [], {}, [[]], [{"a": {}}], {"a": []}]
    for value in values:
        response = verdict(ask(service, path, {**valid, name: value}))
        if not response["allowed"]:
            denied += 1
            places = [cause["field"] for cause in response["status"]["details"]["causes"]]
            assert all(place.startswith(where) or name in message(response) for place in places), places
    assert denied >= 3


def message(response: Json) -> str:
    return str(response["status"]["message"])


REQUIRED: dict[str, tuple[Json, str]] = {
    "modelRef": ({"replicas": 1}, "spec.modelRef"),
    "maxReplicas": (spec_with(autoscaling={}), "spec.autoscaling.maxReplicas"),
    "metric type": (spec_with(**scaled(metrics=[{"name": "a"}])), "spec.autoscaling.metrics[0].type"),
    "rope type": (spec_with(ropeScaling={"factor": "2.0"}), "spec.ropeScaling.type"),
    "env name": (spec_with(env=[{"value": "x"}]), "spec.env[0].name"),
    "token key": (spec_with(vllmConfig={"hfTokenSecretRef": {"name": "s"}}), "spec.vllmConfig.hfTokenSecretRef.key"),
    "image": (spec_with(runtime="generic", image=""), "spec.image"),
}


@pytest.mark.parametrize(("spec", "field"), REQUIRED.values(), ids=list(REQUIRED))
def test_names_missing_required_fields(service: Service, spec: Json, field: str) -> None:
    """HTTP-S04: they are denied at the field."""
    document = inference_service(spec)
    is_denied(service.post(REVIEW, review(document)), field, "Required")
    is_frozen(service.post(SYNC, sync(document)))


UNKNOWN: dict[str, tuple[Json, str]] = {
    "S06": ({"replcias": 2}, 'unknown field "spec.replcias", did you mean "replicas"?'),
    "S06 nested": ({"endpoint": {"prot": 1}}, 'unknown field "spec.endpoint.prot", did you mean "port"?'),
    "S06 embedded": ({"env": [{"name": "A", "vale": "x"}]}, 'unknown field "spec.env[0].vale", did you mean "value"?'),
}


@pytest.mark.parametrize(("spec", "warning"), UNKNOWN.values(), ids=list(UNKNOWN))
def test_warns_of_unknown_fields(service: Service, spec: Json, warning: str) -> None:
    """The warning has the most similar name, and the children are created (HTTP-S06)."""
    document = inference_service(spec_with(**spec))
    assert warning in is_allowed(service.post(REVIEW, review(document)))
    assert len(service.post(SYNC, sync(document)).json["children"]) == 2


ACCEPTED: dict[str, Json] = {
    "S10 duplicate variables": {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
    "S10 equal tolerations": {"tolerations": [{"key": "a", "operator": "Exists"}] * 2},
    "S11 digit first": {"env": [{"name": "1A", "value": "x"}]},
    "S11 LD_PRELOAD": {"env": [{"name": "LD_PRELOAD", "value": "/x.so"}]},
    "S11 reserved": {"env": [{"name": "MODEL_PATH", "value": "/x"}]},
    "S12 privileged port": {"containerPort": 80},
    "S13 1e3": {"resources": {"memory": "1e3"}},
    "S13 0": {"resources": {"memory": "0"}},
    "S13 1000m": {"resources": {"cpu": "1000m"}},
    "S13 exponent": {"resources": {"memory": "1E"}},
    "S18 free text": {"reasoningBudget": 1, "reasoningBudgetMessage": "stop\r\nhere"},
    "S22 more than GPUs": {"runtime": "vllm", "vllmConfig": {"tensorParallelSize": 10**6}},
    "S46 odd images": {"image": "a//b:c@sha256:zz"},
    "S46 long image": {"image": "r.example/" + "a" * 300},
    "S40 newline in a value": {"env": [{"name": "A", "value": "a\nb"}]},
}


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=list(ACCEPTED))
def test_accepts_odd_values(service: Service, spec: Json) -> None:
    """The children are created; their pods report what does not work."""
    document = inference_service(spec_with(**spec))
    is_allowed(service.post(REVIEW, review(document)))
    answer = service.post(SYNC, sync(document))
    assert (answer.status, len(answer.json["children"])) == (200, 2)


def container(answer: Answer) -> Json:
    deployment = next(child for child in answer.json["children"] if child["kind"] == "Deployment")
    server: Json = deployment["spec"]["template"]["spec"]["containers"][0]
    return server


LITERAL = ["%s%n%d", "{0}", "{{.}}", "${x}", "$(HF_TOKEN)", "`id`", "a b", "'\"\\", "{% import os %}", "#{1+1}", "-x"]


@pytest.mark.parametrize("text", LITERAL)
def test_passes_special_strings_unchanged(service: Service, text: str) -> None:
    """The string is one argument and one value (HTTP-S42)."""
    spec = {"runtime": "generic", "args": [text], "env": [{"name": "A", "value": text}]}
    document = inference_service(spec_with(**spec))
    assert is_allowed(service.post(REVIEW, review(document))) == []
    server = container(service.post(SYNC, sync(document)))
    assert server["args"] == [text]
    assert {"name": "A", "value": text} in server["env"]


def test_writes_quantities_in_canonical_form(service: Service) -> None:
    """Otherwise every sync would see a difference from what the API server stores (HTTP-S13)."""
    document = inference_service(spec_with(resources={"cpu": "1000m", "memory": "1024Mi"}))
    assert container(service.post(SYNC, sync(document)))["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize("namespace", ["kube-system", "default"])
def test_treats_all_namespaces_alike(service: Service, namespace: str) -> None:
    """RBAC decides who may create objects in a namespace (HTTP-S17)."""
    document = inference_service(metadata={"name": "s", "namespace": namespace, "uid": "u"})
    assert is_allowed(service.post(REVIEW, review(document))) == []


def test_rejects_a_child_that_cannot_be_stored(service: Service) -> None:
    """Its record exceeds the limit of annotations. The children are kept, and the condition has the size (HTTP-S24)."""
    document = inference_service(spec_with(env=[{"name": f"A{n}", "value": "x" * 10_000} for n in range(40)]))
    is_denied(service.post(REVIEW, review(document)), "spec.env", "TooLong")
    answer = service.post(SYNC, sync(document))
    is_frozen(answer)
    assert "bytes" in ready(answer)["message"]


def test_truncates_long_values_in_messages(service: Service) -> None:
    """HTTP-S44: answers stay short."""
    document = inference_service(spec_with(runtime="x" * 120_000))
    answer = service.post(REVIEW, review(document))
    is_denied(answer, "spec.runtime", "NotSupported")
    assert len(answer.body) < 4 * 1024
    frozen = service.post(SYNC, sync(document))
    is_frozen(frozen)
    assert len(frozen.body) < 16 * 1024


MODELS: dict[str, tuple[Json, str, tuple[str, ...]]] = {
    "no source": ({}, "spec.source", ("Required",)),
    "one word": ({"source": "word"}, "spec.source", ("Invalid",)),
    "sha256": ({"sha256": "abc"}, "spec.sha256", ("Invalid",)),
    "fraction": ({"hardware": {"memoryFraction": 1.5}}, "spec.hardware.memoryFraction", ("Invalid",)),
    "GPU count": ({"hardware": {"gpu": {"count": 9}}}, "spec.hardware.gpu.count", ("Invalid",)),
    "quantity": ({"resources": {"memory": "lots"}}, "spec.resources.memory", ("Invalid",)),
}


@pytest.mark.parametrize(("spec", "field", "types"), MODELS.values(), ids=list(MODELS))
def test_mistakes_in_a_model_are_denied_at_their_fields(
    service: Service, spec: Json, field: str, types: tuple[str, ...]
) -> None:
    """Models are denied at the field and get no children."""
    document = model({**MODEL_SPEC, **spec} if spec else {"format": "gguf"})
    is_denied(service.post(REVIEW_MODEL, review(document)), field, *types)
    request = sync(document, children={"Job.batch/v1": {}, "PersistentVolumeClaim.v1": {}}, related={})
    answer = service.post(SYNC_MODEL, request)
    assert (ready(answer)["reason"], answer.json["children"]) == ("InvalidSpec", [])
