"""The family's kinds with what they do."""

from dataclasses import replace
from typing import Any

from app.hooks.kind import Kind
from app.hooks.protocol import NoObjects
from app.kserve.conversion import upgrade
from app.kserve.llminferenceservice import checks as service_checks
from app.kserve.llminferenceservice import sync as service
from app.kserve.llminferenceservice.observed import Children, Related, customize
from app.kserve.llminferenceservice.plan import across, explain
from app.kserve.llminferenceserviceconfig import checks as config_checks
from app.kserve.llminferenceserviceconfig import sync as config
from app.kserve.resources import LLM_INFERENCE_SERVICE, LLM_INFERENCE_SERVICE_CONFIG

_KINDS: tuple[Kind[Any, Any], ...] = (
    Kind(
        resource=LLM_INFERENCE_SERVICE,
        children=Children,
        related=Related,
        sync=service.sync,
        invalid=service.invalid,
        kept=service.kept,
        validate=service_checks.validate,
        warnings=service_checks.warnings,
        customize=customize,
        explain=explain,
        across=across,
    ),
    Kind(
        resource=LLM_INFERENCE_SERVICE_CONFIG,
        children=NoObjects,
        related=NoObjects,
        sync=config.sync,
        invalid=config.invalid,
        validate=config_checks.validate,
        warnings=config_checks.warnings,
        changed=config_checks.update_warnings,
        deleted=config_checks.delete_warnings,
    ),
)


def _with_older(kind: Kind[Any, Any]) -> Kind[Any, Any]:
    """The kind with its older versions. The same rules judge them: a spec's type says of which version it is."""
    return replace(kind, older=tuple(replace(kind, resource=r, upgrade=upgrade) for r in kind.resource.older))


KINDS = tuple(map(_with_older, _KINDS))
