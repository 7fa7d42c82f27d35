"""What a service and the configs it names say that cannot be combined: for ``modelhooks validate`` on files with both.

In the cluster it is the condition ``PresetsCombined``.
"""

from __future__ import annotations

from app.hooks.protocol import one
from app.kserve.layers import CombineError, MissingConfigMapError
from app.kserve.llminferenceservice.objects import Related
from app.kserve.llminferenceservice.plan import MissingAccountError, WorkloadError, workload_plan
from app.kserve.llminferenceservice.sync import Request, Service, effective_spec, is_stopped, surroundings
from app.kserve.operator import OperatorConfigError
from app.settings import Settings


def across(service: Service, request: Request, settings: Settings) -> list[str]:
    """Why there would be no pods; nothing where an object that the service names is not among the related ones."""
    related = request.related or Related()
    places = (service.metadata.namespace, settings.kserve_system_namespace)
    named = [reference.name or "" for reference in service.spec.base_refs or ()]
    if is_stopped(service.metadata) or not named:
        return []
    if any(all(one(related.configs, name, place) is None for place in places) for name in named):
        return []
    try:
        around = surroundings(service, request, settings)
        workload_plan(effective_spec(service, request, around, settings).spec, around)
    except (MissingConfigMapError, MissingAccountError):
        return []
    except (OperatorConfigError, CombineError, WorkloadError) as error:
        return [f"spec.baseRefs: {error}"]
    return []
