"""Rules of the Roles of a service's pods. Source: KS-3.5 and KS-4.3.

Kubernetes prevents escalation of privileges, so Metacontroller has these rights too, from the component that declares
Roles (KS-9.3).
"""

import msgspec

from app.kserve.constants import ACCOUNTS, BINDINGS, POOL_GROUP, POOL_GROUP_ALPHA, RBAC_GROUP, ROLES
from app.kube.base import Json
from app.kube.objects import Observed, ObservedObject

_READ = ["get", "list", "watch"]
_POOL_GROUPS = [POOL_GROUP, POOL_GROUP_ALPHA]

SIDECAR_RULES: tuple[Json, ...] = (
    {"apiGroups": [""], "resources": ["pods"], "verbs": _READ},
    {"apiGroups": _POOL_GROUPS, "resources": ["inferencepools"], "verbs": _READ},
)
"""Rights of a routing sidecar, which finds the pods of its pool."""

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
"""Rights of an endpoint picker: it watches pods and pools, and replicas elect a leader."""
_RULES = {"-epp-role": SCHEDULER_RULES, "-kserve-role": SIDECAR_RULES, "-kserve-mn-role": SIDECAR_RULES}
"""The rules of each Role by the end of its name (:class:`app.kserve.names.Names`)."""


def role(metadata: Json, rules: tuple[Json, ...]) -> Json:
    return ROLES.build(metadata, rules=[dict(rule) for rule in rules])


def binding(metadata: Json, role_name: str, account: str) -> Json:
    role_ref = {"apiGroup": RBAC_GROUP, "kind": ROLES.kind, "name": role_name}
    subject = {"kind": ACCOUNTS.kind, "name": account, "namespace": metadata["namespace"]}
    return BINDINGS.build(metadata, roleRef=role_ref, subjects=[subject])


def service_account(metadata: Json) -> Json:
    return ACCOUNTS.build(metadata)


# What is observed of them. A record on one of these never grants anything: it is anybody's who may edit the object, and
# it would be written with Metacontroller's rights. What it may say comes from here, or from what is there already.


class ObservedAccount(ObservedObject):
    def resendable(self, record: Json) -> Json | None:
        return service_account(record["metadata"])


class ObservedRole(ObservedObject):
    def resendable(self, record: Json) -> Json | None:
        rules = next((rules for suffix, rules in _RULES.items() if self.metadata.name.endswith(suffix)), None)
        return None if rules is None or "rules" not in record else role(record["metadata"], rules)


class BindingReference(Observed):
    """The Role of a binding, or one of its subjects."""

    kind: str = ""
    name: str = ""
    namespace: str = ""


class ObservedBinding(ObservedObject):
    """A RoleBinding. Kubernetes never changes the Role of a binding, so the observed one is the one to name."""

    role_ref: BindingReference = msgspec.field(default_factory=BindingReference)
    subjects: list[BindingReference] | None = None

    def resendable(self, record: Json) -> Json | None:
        bound, where = self.role_ref, self.metadata
        subject = self.subjects[0] if self.subjects and len(self.subjects) == 1 else BindingReference()
        ours = bound.kind == "Role" and bound.name.endswith(tuple(_RULES))
        if not ours or (subject.kind, subject.namespace) != ("ServiceAccount", where.namespace):
            return None
        metadata = {**record["metadata"], "namespace": where.namespace}
        return None if "roleRef" not in record else binding(metadata, bound.name, subject.name)
