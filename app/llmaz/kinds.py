"""The family's kinds with what they do."""

from app.hooks.kind import Kind
from app.hooks.protocol import NoObjects
from app.llmaz.absent import kept
from app.llmaz.backendruntime import sync as backendruntime
from app.llmaz.backendruntime.validation import validate as validate_backendruntime
from app.llmaz.backendruntime.warnings import warnings as backendruntime_warnings
from app.llmaz.openmodel import sync as openmodel
from app.llmaz.openmodel.validation import validate as validate_openmodel
from app.llmaz.openmodel.warnings import warnings as openmodel_warnings
from app.llmaz.playground import related as playground_related
from app.llmaz.playground import sync as playground
from app.llmaz.playground.across import across as playground_across
from app.llmaz.playground.validation import validate as validate_playground
from app.llmaz.playground.warnings import warnings as playground_warnings
from app.llmaz.resources import BACKEND_RUNTIME, OPEN_MODEL, PLAYGROUND, SERVICE
from app.llmaz.service import related as service_related
from app.llmaz.service import sync as service
from app.llmaz.service.across import across as service_across
from app.llmaz.service.validation import validate as validate_service
from app.llmaz.service.warnings import update_warnings as service_update_warnings
from app.llmaz.service.warnings import warnings as service_warnings

KINDS = (
    Kind(
        resource=OPEN_MODEL,
        children=NoObjects,
        related=NoObjects,
        sync=openmodel.sync,
        invalid=openmodel.invalid,
        validate=validate_openmodel,
        warnings=openmodel_warnings,
    ),
    Kind(
        resource=BACKEND_RUNTIME,
        children=NoObjects,
        related=NoObjects,
        sync=backendruntime.sync,
        invalid=backendruntime.invalid,
        validate=validate_backendruntime,
        warnings=backendruntime_warnings,
    ),
    Kind(
        resource=PLAYGROUND,
        children=playground_related.Children,
        related=playground_related.Related,
        sync=playground.sync,
        invalid=playground.invalid,
        kept=kept,
        validate=validate_playground,
        warnings=playground_warnings,
        customize=playground_related.customize,
        across=playground_across,
    ),
    Kind(
        resource=SERVICE,
        children=service_related.Children,
        related=service_related.Related,
        sync=service.sync,
        invalid=service.invalid,
        kept=kept,
        validate=validate_service,
        warnings=service_warnings,
        changed=service_update_warnings,
        customize=service_related.customize,
        across=service_across,
    ),
)
