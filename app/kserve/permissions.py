"""What the pods of a service may ask of the API server: the rules of its Roles. Source: kserve spec 3.5 and 4.3.

Kubernetes lets nobody hand on a right that they lack, so Metacontroller is given these too, with the component that
declares Roles (9.3).
"""

from __future__ import annotations

from typing import Any

from app.kserve.names import POOL_GROUP, POOL_GROUP_ALPHA

Json = dict[str, Any]

RBAC_GROUP = "rbac.authorization.k8s.io"
RBAC_VERSION = f"{RBAC_GROUP}/v1"

_READ = ["get", "list", "watch"]
_POOL_GROUPS = [POOL_GROUP, POOL_GROUP_ALPHA]

SIDECAR_RULES: tuple[Json, ...] = (
    {"apiGroups": [""], "resources": ["pods"], "verbs": _READ},
    {"apiGroups": _POOL_GROUPS, "resources": ["inferencepools"], "verbs": _READ},
)
"""What a routing sidecar does: it looks for the pods of its pool."""

SCHEDULER_RULES: tuple[Json, ...] = (
    {"apiGroups": [""], "resources": ["pods"], "verbs": _READ},
    {
        "apiGroups": _POOL_GROUPS,
        "resources": ["inferencepools", "inferenceobjectives", "inferencemodels"],
        "verbs": _READ,
    },
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": _READ},
    {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": [*_READ, "create", "update", "patch", "delete"],
    },
)
"""What an endpoint picker does: it watches pods and pools, and several of them elect a leader."""


def role(metadata: Json, rules: tuple[Json, ...]) -> Json:
    """A Role with those rules."""
    return {"apiVersion": RBAC_VERSION, "kind": "Role", "metadata": metadata, "rules": [dict(rule) for rule in rules]}


def binding(metadata: Json, role_name: str, account: str) -> Json:
    """A RoleBinding of a Role to an account of the same namespace."""
    return {
        "apiVersion": RBAC_VERSION,
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "Role", "name": role_name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": metadata["namespace"]}],
    }


def service_account(metadata: Json) -> Json:
    """An account."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
