"""The effective spec of a service, with its rules, and what the pod templates are made from beside it."""

from msgspec import Raw

from app.hooks.protocol import get
from app.kserve import constants, lora
from app.kserve.llminferenceservice.merged import check_effective
from app.kserve.llminferenceservice.observed import ReconcileContext
from app.kserve.operator import DOCUMENTS
from app.kserve.references import references
from app.kserve.spec.effective import Effective, Merged, combine
from app.kserve.spec.find import find_scheduler_config
from app.kserve.spec.merge import CombineError
from app.kserve.spec.render import has_template, rendered
from app.kserve.workload.topology import propagated
from app.kube import field


def effective_spec(context: ReconcileContext) -> Effective:
    """Build the effective spec of a service. Raises :class:`CombineError`."""
    effective = combine(context)
    errors = check_effective(effective, context.settings.kubernetes_release)
    errors += lora.check_types(effective.spec.model)  # its adapters (KS-7.7)
    errors += lora.check(effective.spec, context.metadata.name, final=True)
    if errors:
        raise CombineError(f"the combined spec is invalid: {field.aggregate(errors)}")
    return effective


# Inputs of pod templates besides the spec: objects as the API server stores them, so that a release cannot change
# them (decisions/0017).

_REACH_PODS = (
    *constants.PROPAGATED_LABELS,
    *constants.PROPAGATED_ANNOTATIONS,
    *constants.PROPAGATED_LWS_ANNOTATIONS,
    f"{constants.GROUP}/",
)
"""Beginnings of the labels and annotations with a meaning for pods."""


def template_inputs(context: ReconcileContext, merged: Merged) -> dict[str, object]:
    """Return what the service refers to; nothing if a part of it cannot be found."""
    metadata, refs = context.metadata, references(merged.document)
    names = {"accounts": [*refs.accounts], "schedulerConfig": [*(refs.scheduler_config or ())]}
    try:
        names, _ = rendered(names, merged.layers, merged.data)
        reference = names["schedulerConfig"]
        scheduler_config = find_scheduler_config(context, *reference) if reference else ""
    except CombineError:
        return {}
    written = [layer for layer in merged.layers if layer.raw]
    templated = any(has_template(layer.spec) for layer in written)
    reach = ("",) if templated else (*_REACH_PODS, context.operator.credentials.storage_secret_name_annotation)
    return {
        "configs": {layer.source: Raw(layer.raw) for layer in written[:-1]},
        "operator": _operator_documents(context),
        "schedulerConfig": scheduler_config,
        "accounts": {name: _account(context, name) for name in names["accounts"]},
        "labels": propagated(metadata.labels, reach),
        "annotations": propagated(metadata.annotations, reach),
        "makesAccounts": context.managed_accounts,
        "makesBundles": context.children.config_maps is not None,
        "mountsCommonBundle": context.has_common_bundle,
    }


def _operator_documents(context: ReconcileContext) -> dict[str, str]:
    config_map = get(context.related.config_maps, constants.OPERATOR_CONFIG, context.operator.system_namespace)
    data = (config_map.data if config_map is not None else None) or {}
    return {key: text for key, text in data.items() if key in DOCUMENTS}


def _account(context: ReconcileContext, name: str) -> list[object]:
    """Return the parts of a ServiceAccount that downloads use: annotations about S3, and names of Secrets."""
    account = context.account(name)
    if account is None or get(context.children.service_accounts, name, context.metadata.namespace) is not None:
        return []
    return [propagated(account.metadata.annotations, (constants.EKS_ROLE, constants.S3_PREFIX)), account.secrets]
