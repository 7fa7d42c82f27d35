"""Roles of a service, and Metacontroller's permission to create them."""

from __future__ import annotations

import pytest
import yaml

from app.kserve.constants import ACCOUNTS
from app.kserve.kinds import LLM_INFERENCE_SERVICE
from app.kserve.permissions import SCHEDULER_RULES, SIDECAR_RULES
from app.kube.base import Json
from tools import generate


def triples(rules: list[Json]) -> set[tuple[str, str, str]]:
    """Return every (group, resource, verb)."""
    return {(g, r, v) for rule in rules for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}


@pytest.mark.parametrize("rules", [SIDECAR_RULES, SCHEDULER_RULES], ids=["sidecar", "scheduler"])
def test_metacontroller_holds_every_right_that_a_role_hands_on(rules: tuple[Json, ...]) -> None:
    """A Role may only grant permissions that its creator has; the component alone must be sufficient."""
    role = yaml.safe_load(generate.component([LLM_INFERENCE_SERVICE], ACCOUNTS.component, "1")["rbac.yaml"])
    assert triples(list(rules)) <= triples(role["rules"])


def test_metacontroller_may_not_hand_on_anything_else() -> None:
    """With ``escalate`` or ``bind``, Metacontroller could make itself a cluster administrator."""
    role = yaml.safe_load(generate.component([LLM_INFERENCE_SERVICE], ACCOUNTS.component, "1")["rbac.yaml"])
    assert not {verb for _, _, verb in triples(role["rules"])} & {"escalate", "bind", "impersonate", "*"}
