"""What a Service's author should know, although the object is accepted. Source: llmaz spec 6.4, 4.4 and T29."""

from __future__ import annotations

from collections.abc import Iterator

from app.kube import field
from app.llmaz import naming
from app.llmaz.names import INFERENCE_SERVICE, LWS_NAME, LWS_WORKER_INDEX
from app.llmaz.service.plan import divides
from app.llmaz.service.types import DEFAULT_RESTART_POLICY, WorkloadTemplate
from app.llmaz.service.validation import TEMPLATE, WORKER, Service
from app.llmaz.skip import annotation_warnings


def warnings(service: Service) -> list[str]:
    template = service.spec.workload_template
    found = [*naming.workload_name_warnings(service.metadata), *annotation_warnings(service.metadata)]
    if template.size == 1 and template.leader_template is None:
        found += _alone(template)
    elif template.sub_group_policy is not None and not divides(template.sub_group_policy, template.size):
        found.append(f"{TEMPLATE.child('subGroupPolicy')}: not used, because subGroupSize does not divide the group")
    return found


def _alone(template: WorkloadTemplate) -> Iterator[str]:
    """Fields that only mean something to a LeaderWorkerSet."""
    if template.restart_policy != DEFAULT_RESTART_POLICY:
        yield f"{TEMPLATE.child('restartPolicy')}: no effect on a Deployment, which restarts a container in its place"
    if template.sub_group_policy is not None:
        yield f"{TEMPLATE.child('subGroupPolicy')}: no effect with one pod per replica"
    labels = (template.worker_template.get("metadata") or {}).get("labels") or {}
    path: field.Path = WORKER.child("metadata", "labels")
    for key in (LWS_NAME, LWS_WORKER_INDEX):
        if key in labels:
            yield f"{path.key(key)}: where LeaderWorkerSet is installed, it refuses other pods with this label"
    if INFERENCE_SERVICE in labels:
        yield f"{path.key(INFERENCE_SERVICE)}: overwritten, it finds the pods"
