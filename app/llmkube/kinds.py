"""The family's kinds with what they do."""

from app.hooks.kind import Kind
from app.llmkube.inferenceservice import checks as inferenceservice_checks
from app.llmkube.inferenceservice import sync as inferenceservice
from app.llmkube.inferenceservice.fitting import fit
from app.llmkube.model import checks as model_checks
from app.llmkube.model import sync as model
from app.llmkube.resources import INFERENCE_SERVICE, MODEL

KINDS = (
    Kind(
        resource=MODEL,
        children=model.Children,
        related=model.Related,
        sync=model.sync,
        invalid=model.invalid,
        validate=model_checks.validate,
        warnings=model_checks.warnings,
        admit=model_checks.admit,
        customize=model.customize,
        judges_changes=False,
    ),
    Kind(
        resource=INFERENCE_SERVICE,
        children=inferenceservice.Children,
        related=inferenceservice.Related,
        sync=inferenceservice.sync,
        invalid=inferenceservice.invalid,
        kept=inferenceservice.kept,
        validate=inferenceservice_checks.validate,
        warnings=inferenceservice_checks.warnings,
        customize=inferenceservice.customize,
        across=inferenceservice_checks.warnings_with_related,
        fit=fit,
        judges_changes=False,
    ),
)
