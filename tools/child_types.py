"""Write tests/contract/child_types.json, the fields of the kinds of children: ``python -m tools.child_types``.

The source is the OpenAPI document of the test suite's control plane, as in :mod:`tools.embedded_types`. It does not
have the kinds of other projects, of which only the pods are checked.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

from tools import embedded_types
from tools.embedded_types import ROOT, served

TABLE = ROOT / "tests" / "contract" / "child_types.json"
ROOTS = {
    "api/v1": [
        f"io.k8s.api.core.v1.{kind}"
        for kind in ("ConfigMap", "PersistentVolumeClaim", "Secret", "Service", "ServiceAccount")
    ],
    "apis/apps/v1": ["io.k8s.api.apps.v1.Deployment"],
    "apis/batch/v1": ["io.k8s.api.batch.v1.Job"],
    "apis/autoscaling/v2": ["io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler"],
    "apis/policy/v1": ["io.k8s.api.policy.v1.PodDisruptionBudget"],
    "apis/rbac.authorization.k8s.io/v1": [f"io.k8s.api.rbac.v1.{kind}" for kind in ("Role", "RoleBinding")],
    "apis/resource.k8s.io/v1": ["io.k8s.api.resource.v1.ResourceClaimTemplate"],
}
"""Kinds by the document that has them."""


def main() -> None:
    schemas, version = served(tuple(ROOTS))
    types = json.loads(embedded_types.table(schemas, [root for roots in ROOTS.values() for root in roots]))
    source = f"Kubernetes {version}, {datetime.now(UTC):%Y-%m-%d}"
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(fields)}" for name, fields in types.items())
    TABLE.write_text(f'{{\n "source": {json.dumps(source)},\n "types": {{\n{lines}\n }}\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
