"""A user who edits the record on an account, a Role or a binding gains no permissions by it."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson
import pytest

from app.hooks.kept import keep_child
from app.kserve.constants import RBAC_GROUP, ROLES
from app.kserve.names import Names
from app.kserve.permissions import (
    SCHEDULER_RULES,
    SIDECAR_RULES,
    ObservedAccount,
    ObservedBinding,
    ObservedRole,
    binding,
    role,
    service_account,
)
from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from app.kube.objects import ObservedObject

LONG = "a" * 60
EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]


def metadata(name: str, **over: Any) -> Json:
    return {"name": name, "namespace": "team", **over}


def kept(type_: type[ObservedObject], there: Json, record: Json) -> Json:
    annotations = {LAST_APPLIED: orjson.dumps(record).decode()}
    document = {**there, "metadata": {**there["metadata"], "annotations": annotations}}
    return keep_child(msgspec.json.decode(orjson.dumps(document), type=type_))


def named(document: Json) -> Json:
    return {key: document[key] for key in ("apiVersion", "kind", "metadata")}


@pytest.mark.parametrize("service", ["x", LONG])
@pytest.mark.parametrize(
    ("name", "rules"),
    [("role", SIDECAR_RULES), ("multi_node_role", SIDECAR_RULES), ("scheduler_role", SCHEDULER_RULES)],
)
def test_the_rules_of_a_role_are_ours(service: str, name: str, rules: tuple[Json, ...]) -> None:
    """A kept Role always has the service's rules, even if its record or the Role itself was edited."""
    recorded = role(metadata(getattr(Names(service), name), labels={"app": "x"}), rules)
    assert kept(ObservedRole, recorded, recorded) == recorded
    assert (
        kept(ObservedRole, {**recorded, "rules": []}, {**recorded, "rules": EVERYTHING, "aggregationRule": {}})
        == recorded
    )


def test_a_role_of_another_name_is_named_only() -> None:
    """For a Role that the service did not create, only apiVersion, kind and metadata are sent."""
    adopted = role(metadata("x-epp"), ())
    assert kept(ObservedRole, adopted, {**adopted, "rules": EVERYTHING}) == named(adopted)


def test_a_binding_binds_whom_it_binds() -> None:
    """Role and account are those of the observed binding, which the API server has authorized."""
    recorded = binding(metadata("x-epp-rb", labels={"app": "x"}), "x-epp-role", "own")
    forged = {
        **recorded,
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "evil", "namespace": "other"}],
    }
    assert kept(ObservedBinding, recorded, recorded) == recorded
    assert kept(ObservedBinding, recorded, forged) == recorded


@pytest.mark.parametrize(
    "over",
    [
        {"roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": "x-epp-role"}},
        {"roleRef": {"apiGroup": RBAC_GROUP, "kind": "Role", "name": "admin"}},
        {"subjects": []},
        {"subjects": [{"kind": "User", "name": "jane", "namespace": "team"}]},
        {"subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "other"}]},
        {"subjects": [{"kind": "ServiceAccount", "name": n, "namespace": "team"} for n in "ab"]},
    ],
)
def test_a_binding_that_is_not_of_our_form_is_named_only(over: Json) -> None:
    """A binding that differs from the service's is not the service's, even if its record claims so."""
    recorded = binding(metadata("x-epp-rb"), "x-epp-role", "own")
    assert kept(ObservedBinding, {**recorded, **over}, recorded) == named(recorded)


def test_an_account_has_metadata_and_nothing_else() -> None:
    """A kept account has no secrets and no tokens."""
    recorded = service_account(metadata("x-epp-sa", labels={"app": "x"}))
    forged = {**recorded, "secrets": [{"name": "token"}], "imagePullSecrets": [{"name": "a"}]}
    assert kept(ObservedAccount, recorded, forged) == recorded
    assert ROLES.api_version not in str(kept(ObservedAccount, recorded, forged))
