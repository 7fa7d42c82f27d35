"""Names of the children of an LLMInferenceService."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kserve.names import Names, child_name

QWEN = "qwen2-7b-instruct-single-no-scheduler"


@pytest.mark.parametrize(
    ("parent", "suffix", "name"),
    [
        ("my-llm", "-kserve", "my-llm-kserve"),
        ("a" * 56, "-kserve", "a" * 56 + "-kserve"),
        ("a" * 57, "-kserve", "a" * 24 + "652b906d60af96844ebd21b674f35e93-kserve"),
        (QWEN, "-kserve-self-signed-certs", f"{QWEN}-kserve-self-signed-certs"),
        (
            f"{QWEN}-long",
            "-kserve-self-signed-certs",
            "qwen2-cc80bb5b3eb19240f522e257c4c18678-kserve-self-signed-certs",
        ),
        (
            f"{QWEN}-longest",
            "-kserve-router-scheduler",
            "qwen2-7be70e28c1d25a5af89192840db1d8bc7-kserve-router-scheduler",
        ),
        (
            "team-a",
            "-this-is-a-very-long-llm-inference-service-name-used-for-tests-epp-auth-rb",
            "team-a002046f3002ef3b2c16e92ba8ddd43d4-this-is-a-very-long-llm",
        ),
    ],
)
def test_names_of_children_are_upstreams(parent: str, suffix: str, name: str) -> None:
    """These are the vectors of KS-3.1."""
    assert child_name(parent, suffix) == name


names = st.from_regex(re.compile(r"[a-z]([-a-z0-9]{0,120}[a-z0-9])?", re.ASCII), fullmatch=True)


@given(names, names.map(lambda name: f"-{name}"))
def test_child_names_are_dns_labels(parent: str, suffix: str) -> None:
    """Names of any length give a valid label, and always the same one."""
    name = child_name(parent, suffix)
    assert len(name) <= 63
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)
    assert child_name(parent, suffix) == name


@given(names)
def test_objects_of_one_kind_have_different_names(service: str) -> None:
    """Deployments, Services, LeaderWorkerSets, accounts and Roles of a service have distinct names."""
    of = Names(service)
    assert len({of.main, of.prefill, of.scheduler}) == 3
    assert of.multi_node != of.multi_node_prefill
    assert of.workload_service != of.scheduler_service
    assert len({of.main, of.multi_node, of.multi_node_prefill, of.scheduler_account}) == 4
    assert len({of.role, of.multi_node_role, of.scheduler_role}) == 3


@given(names)
def test_pods_of_groups_can_have_their_labels(service: str) -> None:
    """Labels append the group's index, up to 999, and a hash to the LeaderWorkerSet's name."""
    of = Names(service)
    for name, plain in (
        (of.multi_node, f"{service}-kserve-mn"),
        (of.multi_node_prefill, f"{service}-kserve-mn-prefill"),
    ):
        assert name == plain if len(plain) <= 50 else len(f"{name}-999-1234567890") <= 63
