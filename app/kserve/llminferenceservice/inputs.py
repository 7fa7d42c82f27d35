"""Inputs of a service's pod templates besides its own spec (docs/decisions/0017).

They are objects as the API server stores them, so that a release cannot change them.
"""

from msgspec import Raw

from app.hooks.protocol import get
from app.kserve import constants
from app.kserve.llminferenceservice.observed import ReconcileContext, Request, Service, reconcile_context
from app.kserve.operator import DOCUMENTS, OperatorConfigError
from app.kserve.references import references
from app.kserve.spec.effective import merge_layers
from app.kserve.spec.find import find_scheduler_config
from app.kserve.spec.merge import CombineError
from app.kserve.spec.render import has_template, rendered
from app.settings import Settings

_REACH_PODS = (
    *constants.PROPAGATED_LABELS,
    *constants.PROPAGATED_ANNOTATIONS,
    *constants.PROPAGATED_LWS_ANNOTATIONS,
    f"{constants.GROUP}/",
)
"""Beginnings of the labels and annotations with a meaning for pods."""


def template_inputs(service: Service, request: Request, settings: Settings) -> dict[str, object]:
    """Return what the service refers to; nothing where its spec cannot be combined, because its children are kept."""
    metadata = service.metadata
    try:
        context = reconcile_context(service, request, settings)
        merged = merge_layers(context)
        refs = references(merged.document)
        names = {"accounts": [*refs.accounts], "schedulerConfig": [*(refs.scheduler_config or ())]}
        names, _ = rendered(names, merged.layers, merged.data)
        reference = names["schedulerConfig"]
        scheduler_config = find_scheduler_config(context, *reference) if reference else ""
    except (OperatorConfigError, CombineError):
        return {}
    written = [layer for layer in merged.layers if layer.raw]
    templated = any(has_template(layer.spec) for layer in written)
    reach = ("",) if templated else (*_REACH_PODS, context.operator.credentials.storage_secret_name_annotation)
    return {
        "configs": {layer.source: Raw(layer.raw) for layer in written[:-1]},
        "operator": _operator_documents(context),
        "schedulerConfig": scheduler_config,
        "accounts": {name: _account(context, name) for name in names["accounts"]},
        "labels": _beginning(metadata.labels, reach),
        "annotations": _beginning(metadata.annotations, reach),
        "makesAccounts": context.managed_accounts,
        "makesBundles": context.children.config_maps is not None,
        "mountsCommonBundle": context.has_common_bundle,
    }


def _beginning(values: dict[str, str] | None, beginnings: tuple[str, ...]) -> dict[str, str]:
    return {key: value for key, value in (values or {}).items() if key.startswith(beginnings)}


def _operator_documents(context: ReconcileContext) -> dict[str, str]:
    config_map = get(context.related.config_maps, constants.OPERATOR_CONFIG, context.operator.system_namespace)
    data = config_map.data if config_map is not None else None
    return {key: text for key, text in (data or {}).items() if key in DOCUMENTS}


def _account(context: ReconcileContext, name: str) -> list[object]:
    """Return the parts of a ServiceAccount that downloads use: annotations about S3, and names of Secrets."""
    account = context.account(name)
    if account is None or get(context.children.service_accounts, name, context.metadata.namespace) is not None:
        return []
    return [_beginning(account.metadata.annotations, (constants.EKS_ROLE, constants.S3_PREFIX)), account.secrets]
