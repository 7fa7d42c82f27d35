"""Properties of all Models, valid or not."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kube.base import Json
from app.llmkube.download import script
from app.settings import Settings
from tests.builders import NOW
from tests.llmkube.objects import admit, customize, model, observed, sync

pytestmark = pytest.mark.no_cover

text = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=20)
nasty = st.sampled_from(["$(touch x)", "`id`", "'; rm -rf /", '"', "$$", "\\", "a b", "%0a", "{1..9}", "é", "--"])
tail = st.lists(st.one_of(text, nasty), min_size=1, max_size=4).map("".join)

sources = st.one_of(
    st.builds("https://example.com/{}".format, tail),
    st.builds("http://10.0.0.1:8080/{}".format, tail),
    st.builds("pvc://claim/{}".format, tail),
    st.builds("/mnt/{}".format, tail),
    st.builds("file:///mnt/{}".format, tail),
    st.sampled_from(["owner/repo", "https://huggingface.co/o/r", "gpt2", "http://169.254.169.254/", "pvc://", ""]),
    tail,
)
hardware = st.fixed_dictionaries(
    {},
    optional={
        "accelerator": st.sampled_from(["cpu", "metal", "cuda", "rocm", "intel"]),
        "gpu": st.fixed_dictionaries({}, optional={"count": st.integers(-1, 9), "enabled": st.booleans()}),
        "memoryFraction": st.floats(allow_nan=False, allow_infinity=False),
        "memoryBudget": st.sampled_from(["1Gi", "0", "x"]),
    },
)
specs = st.fixed_dictionaries(
    {"source": sources},
    optional={
        "sha256": st.sampled_from(["a" * 64, "B" * 64, "x"]),
        "refreshPolicy": st.sampled_from(["IfNotPresent", "OnChange"]),
        "hardware": hardware,
        "resources": st.fixed_dictionaries({}, optional={"cpu": st.sampled_from(["1", "-1", "x"])}),
        "unknown": st.none() | text,
    },
)
operators = st.builds(
    Settings,
    llmkube_model_cache_path=st.sampled_from(["/models", ""]),
    llmkube_model_cache_size=st.sampled_from(["", "10Gi", "0.5Ti", "big"]),
    llmkube_ca_cert_configmap=st.sampled_from(["", "corp-ca"]),
    llmkube_default_fsgroup=st.sampled_from([0, 102]),
    llmkube_allowed_source_hosts=st.sampled_from([None, (), ("example.com",)]),
)
names = st.sampled_from(["m", "qwen2.5-7b", "m" * 63])
quick = settings(max_examples=200)


def job_states() -> st.SearchStrategy[Json]:
    ended = st.sampled_from(["Complete", "Failed", "Suspended"])
    return st.one_of(
        st.just({"active": 1}),
        st.builds(
            lambda type_, at: {"conditions": [{"type": type_, "status": "True", "lastTransitionTime": at}]},
            ended,
            st.sampled_from(["2020-01-01T00:00:00Z", "2026-01-01T11:59:59Z", ""]),
        ),
    )


@quick
@given(specs, names, operators)
def test_every_model_gets_an_answer(spec: Json, name: str, settings: Settings) -> None:
    """Sync always answers, and reports an invalid spec if and only if admission refuses it."""
    document = model(name=name, **spec)
    answer = sync(document, settings=settings)
    ready = next(c for c in answer["status"]["conditions"] if c["type"] == "Ready")
    assert (ready["reason"] in ("InvalidSpec", "SourceNotAllowed")) is bool(admit(document, settings).errors)
    assert all(child["metadata"]["namespace"] == "ns1" for child in answer["children"])
    assert {rule.get("namespace", "ns1") for rule in customize(document, settings)} <= {"ns1"}


@quick
@given(specs, specs, operators, job_states(), st.sampled_from(["Bound", "Pending", ""]))
def test_it_comes_to_rest_and_loses_no_claim(
    first: Json, second: Json, settings: Settings, job: Json, claim: str
) -> None:
    """After any edit the answers converge, and existing claims are kept."""
    states: dict[str, Json] = {"Job": job, "PersistentVolumeClaim": {"phase": claim}}
    children = [observed(c, states[c["kind"]]) for c in sync(model(**first), settings=settings)["children"]]
    claims = {c["metadata"]["name"] for c in children if c["kind"] == "PersistentVolumeClaim"}
    status: Json = {}
    answers = []
    for _ in range(4):
        answer = sync(model(status=status, **second), children, settings=settings, now=NOW + timedelta(seconds=1))
        present = {(c["kind"], c["metadata"]["name"]): c for c in children}
        children = [
            present.get((c["kind"], c["metadata"]["name"])) or observed(c, states[c["kind"]])
            for c in answer["children"]
        ]
        status = answer["status"]
        answers.append(json.dumps(answer, sort_keys=True))
    assert answers[3] == answers[2]
    assert claims <= {c["metadata"]["name"] for c in children if c["kind"] == "PersistentVolumeClaim"}


@quick
@given(specs, operators)
def test_user_input_is_never_shell_code(spec: Json, settings: Settings) -> None:
    """The script does not depend on the spec; user input appears only in variables, paths and names."""
    for child in sync(model(**spec), settings=settings)["children"]:
        if child["kind"] == "Job":
            container: dict[str, Any] = child["spec"]["template"]["spec"]["containers"][0]
            assert container["command"] == ["sh", "-c", script(in_job=True)]
            assert "args" not in container
