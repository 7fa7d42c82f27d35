"""What a service and its Model say that does not fit together: for ``modelhooks validate`` on files that hold both.

Admission sees the service alone, so these are no admission warnings. In the cluster they show in ``Ready``, where they
keep pods from running. Rule numbers are those of llmkube spec 6.3 and 6.5.
"""

from __future__ import annotations

from typing import Any

from app.hooks.protocol import SyncRequest, one
from app.kube.resource import Resource
from app.llmkube.inferenceservice import models
from app.llmkube.inferenceservice.causes import contradictions
from app.llmkube.inferenceservice.observed import Related
from app.llmkube.inferenceservice.plan import plan, proposing_model
from app.llmkube.inferenceservice.types import InferenceServiceSpec, InferenceServiceStatus
from app.llmkube.source import METAL
from app.llmkube.together import findings
from app.settings import Settings
from app.workload.cause import Stage

Service = Resource[InferenceServiceSpec, InferenceServiceStatus]


def across(service: Service, request: SyncRequest[Any, Any], settings: Settings) -> list[str]:
    """One line for each contradiction; none where the Model is not among the related objects."""
    related: Related = request.related or Related()
    metadata, spec = service.metadata, service.spec
    model = models.decode(one(related.models, spec.model_ref, metadata.namespace))
    if model is None:
        return []
    if model.spec.hardware and model.spec.hardware.accelerator == METAL:
        return findings(model.spec, spec)
    proposer = models.decode(one(related.models, proposing_model(spec), metadata.namespace))
    wanted = plan(metadata, spec, model, proposer, operator_claim=False, settings=settings)
    causes = contradictions(spec, wanted, model)
    broken = [f"spec: {cause.text}" for cause in causes if cause.stage is Stage.SPEC]
    return [*broken, *findings(model.spec, spec)]
