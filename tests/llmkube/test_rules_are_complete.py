"""Every rule of the spec's catalogue has a test, and every field without effect a warning."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.kube.fieldtable import FieldTable, Use, markdown, problems
from app.kube.resource import CustomResource
from app.llmkube.inferenceservice.fields import FIELDS as SERVICE_FIELDS
from app.llmkube.model.fields import FIELDS as MODEL_FIELDS
from app.llmkube.resources import INFERENCE_SERVICE, MODEL
from tests.llmkube.objects import errors, model, service, sync, warned
from tests.shared import GOLDEN, UPSTREAM, needs_shared

HERE = Path(__file__).parent

ELSEWHERE = {
    "V-M10": "a changed source is judged anew: model/test_sync.py",
    "V-I57": "test_a_service_can_be_named_after_it",
    "V-I58": "two services whose names differ by a dot: the Service's owner decides, NameConflict in the status",
    "V-I64": "needs the Model: a line of Ready's message, not of admission",
    "V-I42": "needs the Model, as V-I64",
    "V-I25": "allowed without a word",
    "V-I60": "allowed without a word",
    "V-I62": "allowed without a word",
    "V-M01": "test_a_missing_source_is_refused",
    "V-M09": "test_metadata_services_are_never_a_source",
    "V-M35": "test_a_name_that_no_label_can_carry_is_refused",
}


def numbers(letter: str, last: int) -> set[str]:
    return {f"V-{letter}{number:02}" for number in range(1, last + 1)}


def tabled() -> set[str]:
    """The rules that stand in a table of cases."""
    texts = [(HERE / kind / "test_validation.py").read_text() for kind in ("model", "inferenceservice")]
    return {rule for text in texts for rule in re.findall(r'"(V-[MIK]\d\d)"', text)}


def test_every_rule_has_a_case() -> None:
    wanted = numbers("M", 35) | numbers("I", 66) | numbers("K", 27)
    assert wanted - tabled() - ELSEWHERE.keys() == set()


def test_every_exception_is_one() -> None:
    """A rule that got a case needs no excuse any more."""
    assert tabled() & ELSEWHERE.keys() == set()


@pytest.mark.parametrize(
    ("resource", "table"),
    [(MODEL, MODEL_FIELDS), (INFERENCE_SERVICE, SERVICE_FIELDS)],
    ids=["Model", "InferenceService"],
)
def test_every_field_is_classified(resource: CustomResource, table: FieldTable) -> None:
    """Nothing is ignored silently (design, decision 7), and the documentation has a row for it."""
    assert problems(resource, table) == []
    rows = [line for line in markdown(resource, table).splitlines() if line.startswith("| `")]
    assert len(rows) == len(table)
    assert all(row.count(" | ") == 3 for row in rows)


EXAMPLES: dict[str, Any] = {
    "quantization": "Q4",
    "hardware.gpu.enabled": True,
    "hardware.gpu.memory": "8Gi",
    "resources.gpuMemory": "8Gi",
}
"""A value for each field without effect."""


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (make, path)
        for make, table in ((model, MODEL_FIELDS), (service, SERVICE_FIELDS))
        for path, treatment in table.items()
        if treatment.use is Use.NO_EFFECT
    ],
)
def test_a_field_without_effect_is_warned_of(make: Any, path: str) -> None:
    first, *rest = path.split(".")
    value: Any = EXAMPLES[path]
    for name in reversed(rest):
        value = {name: value}
    assert [text for text in warned(make(**{first: value})) if f"spec.{path}" in text and "no effect" in text]


def samples() -> list[Any]:
    """Upstream's sample manifests of our kinds."""
    files = sorted((UPSTREAM / "llmkube" / "samples").glob("*.yaml"))
    documents = [document for file in files for document in yaml.safe_load_all(file.read_text()) if document]
    ours = (MODEL.kind, INFERENCE_SERVICE.kind)
    return [d for d in documents if d["apiVersion"] == MODEL.api_version and d["kind"] in ours]


@needs_shared
def test_every_sample_of_upstream_is_admitted() -> None:
    """A user of the Go operator changes nothing in their manifests."""
    found = samples()
    assert len(found) > 30
    for document in found:
        document["metadata"].setdefault("namespace", "default")
        document["metadata"].setdefault("uid", "u")
        assert errors(document) == [], document["metadata"]["name"]
        assert sync(document)["status"]["phase"]


@needs_shared
def test_what_the_recordings_call_a_mistake_is_one() -> None:
    """Each recorded case that the design refuses breaks a rule here, and no other case does."""
    for file in sorted((GOLDEN / "llmkube").glob("*.json")):
        case = json.loads(file.read_text())
        parents = [o for o in case["objects"] if o["apiVersion"] == MODEL.api_version]
        broken = any(errors(document) for document in parents)
        assert broken == case.get("designRejects", "").startswith("V-"), case["name"]
