"""ServiceAccounts of model-server pods, and what they may ask of the API server. Source: kserve spec 3.5."""

from __future__ import annotations

from typing import Any

from app.kserve.llminferenceservice.deployment import metadata
from app.kserve.llminferenceservice.plan import AccountPlan
from app.kserve.names import POOL_GROUP, POOL_GROUP_ALPHA

Json = dict[str, Any]

RBAC_GROUP = "rbac.authorization.k8s.io"
RBAC_VERSION = f"{RBAC_GROUP}/v1"

_READ = ["get", "list", "watch"]
SIDECAR_RULES: tuple[Json, ...] = (
    {"apiGroups": [""], "resources": ["pods"], "verbs": _READ},
    {"apiGroups": [POOL_GROUP, POOL_GROUP_ALPHA], "resources": ["inferencepools"], "verbs": _READ},
)
"""What a routing sidecar does: it looks for the pods of its pool."""


def accounts(plan: AccountPlan, namespace: str) -> list[Json]:
    """The account, unless it is the user's own, and what it may do."""
    found: list[Json] = []
    if plan.managed:
        found.append(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(plan.account, namespace, plan.labels)}
        )
    if plan.role:
        found += _permissions(plan, namespace)
    return found


def _permissions(plan: AccountPlan, namespace: str) -> list[Json]:
    role = {
        "apiVersion": RBAC_VERSION,
        "kind": "Role",
        "metadata": metadata(plan.role, namespace, plan.labels),
        "rules": [dict(rule) for rule in SIDECAR_RULES],
    }
    binding = {
        "apiVersion": RBAC_VERSION,
        "kind": "RoleBinding",
        "metadata": metadata(plan.binding, namespace, plan.labels),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "Role", "name": plan.role},
        "subjects": [{"kind": "ServiceAccount", "name": plan.account, "namespace": namespace}],
    }
    return [role, binding]
