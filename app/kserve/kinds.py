"""The family's kinds with what they do."""

from app.hooks.kind import Kind
from app.hooks.protocol import NoObjects
from app.kserve.llminferenceservice import checks as service_rules
from app.kserve.llminferenceservice import sync as service
from app.kserve.llminferenceservice.explain import across, explain
from app.kserve.llminferenceservice.observed import Children, Related, customize
from app.kserve.llminferenceservice.warnings import warnings as service_warnings
from app.kserve.llminferenceserviceconfig import checks as config_rules
from app.kserve.llminferenceserviceconfig import sync as config
from app.kserve.resources import LLM_INFERENCE_SERVICE, LLM_INFERENCE_SERVICE_CONFIG

KINDS = (
    Kind(
        resource=LLM_INFERENCE_SERVICE,
        children=Children,
        related=Related,
        sync=service.sync,
        invalid=service.invalid,
        kept=service.kept,
        validate=service_rules.validate,
        warnings=service_warnings,
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
        validate=config_rules.validate,
        warnings=config_rules.warnings,
        changed=config_rules.update_warnings,
        deleted=config_rules.delete_warnings,
    ),
)
