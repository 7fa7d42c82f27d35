"""ServiceAccounts of model-server pods, and what they may ask of the API server. Source: kserve spec 3.5."""

from __future__ import annotations

from typing import Any

from app.kserve import permissions
from app.kserve.llminferenceservice.deployment import metadata
from app.kserve.llminferenceservice.plan import AccountPlan

Json = dict[str, Any]


def accounts(plan: AccountPlan, namespace: str) -> list[Json]:
    """The account, unless it is the user's own, and what it may do."""
    found: list[Json] = []
    if plan.managed:
        found.append(permissions.service_account(metadata(plan.account, namespace, plan.labels)))
    if plan.role:
        found.append(permissions.role(metadata(plan.role, namespace, plan.labels), permissions.SIDECAR_RULES))
        found.append(permissions.binding(metadata(plan.binding, namespace, plan.labels), plan.role, plan.account))
    return found
