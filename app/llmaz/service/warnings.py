"""What a Service's author should know, although the object is accepted. Source: LZ-6.4, LZ-4.4 and LZ-T29."""

from __future__ import annotations

from collections.abc import Iterator

from app.kube import field
from app.kube.base import Json
from app.kube.decode import SPEC
from app.kube.quantity import canonical_value
from app.llmaz import claims, naming
from app.llmaz.names import (
    FLAVORS,
    INFERENCE_SERVICE,
    LWS_NAME,
    LWS_WORKER_INDEX,
    MODEL_FAMILY,
    MODEL_NAME,
    PORT,
    RUNNER,
    load_balancer,
)
from app.llmaz.quantities import Resources, low_limits
from app.llmaz.service.plan import divides
from app.llmaz.service.types import DEFAULT_RESTART_POLICY, ServiceSpec, WorkloadTemplate
from app.llmaz.service.validation import LEADER, TEMPLATE, WORKER, Service, has_runner, is_single, items
from app.llmaz.skip import annotation_warnings
from app.settings import Settings


def warnings(service: Service) -> list[str]:
    spec, template = service.spec, service.spec.workload_template
    found = [*naming.workload_name_warnings(service.metadata), *annotation_warnings(service.metadata)]
    if spec.model_claims is not None:
        found += claims.warnings(spec.model_claims, SPEC.child("modelClaims"))
    found += _alone(template) if is_single(template) else _grouped(template)
    found += _overwritten(spec)
    found += _unreachable(service)
    for pods, path in ((template.worker_template, WORKER), (template.leader_template, LEADER)):
        found += _low_limits(pods or {}, path)
    return found


def update_warnings(service: Service, old: Service, settings: Settings) -> list[str]:
    """What upstream lets an update do, and what cannot come of it."""
    before, after = old.spec.workload_template, service.spec.workload_template
    found = []
    if not has_runner(after.worker_template):
        where = WORKER.child("spec", "containers")
        found.append(f"{where}: nothing is changed until one container is called {RUNNER}; what runs is left as it is")
    if not is_single(before) and not is_single(after) and _each(before) != _each(after):
        path = TEMPLATE.child("subGroupPolicy")
        found.append(f"{path}: a LeaderWorkerSet keeps the subgroups it was made with; delete it to get others")
    return found


def _each(template: WorkloadTemplate) -> int | None:
    """Pods per subgroup, which a LeaderWorkerSet never changes."""
    return template.sub_group_policy.sub_group_size if template.sub_group_policy is not None else None


def _alone(template: WorkloadTemplate) -> Iterator[str]:
    """Fields that only mean something to a LeaderWorkerSet."""
    if template.restart_policy != DEFAULT_RESTART_POLICY:
        yield f"{TEMPLATE.child('restartPolicy')}: no effect on a Deployment, which restarts a container in its place"
    if template.sub_group_policy is not None:
        yield f"{TEMPLATE.child('subGroupPolicy')}: no effect with one pod per replica"
    labels, path = _metadata(template.worker_template, "labels"), WORKER.child("metadata", "labels")
    for key in (LWS_NAME, LWS_WORKER_INDEX):
        if key in labels:
            yield f"{path.key(key)}: where LeaderWorkerSet is installed, it refuses other pods with this label"
    if INFERENCE_SERVICE in labels:
        yield f"{path.key(INFERENCE_SERVICE)}: overwritten, it finds the pods"


def _grouped(template: WorkloadTemplate) -> Iterator[str]:
    """Fields that do not fit the size of a group."""
    if template.size == 1:
        yield f"{WORKER}: not used, because with size 1 the leader is alone; raise size to get workers"
    if template.sub_group_policy is not None and not divides(template.sub_group_policy, template.size):
        yield f"{TEMPLATE.child('subGroupPolicy')}: not used, because subGroupSize does not divide the group"


def _overwritten(spec: ServiceSpec) -> Iterator[str]:
    """Labels and annotations of the pods that tell of the model (LZ-4.3)."""
    pods, path = _serving(spec.workload_template)
    claims_flavors = spec.model_claims is not None and spec.model_claims.inference_flavors
    for kind, keys in (("labels", (MODEL_NAME, MODEL_FAMILY)), ("annotations", (FLAVORS,) if claims_flavors else ())):
        given = _metadata(pods, kind)
        for key in keys:
            if key in given:
                yield f"{path.child('metadata', kind).key(key)}: overwritten, it tells of the model"


def _unreachable(service: Service) -> Iterator[str]:
    """The Service before the pods knows one port (LZ-4.8); an engine that lists others is found by nobody."""
    pods, path = _serving(service.spec.workload_template)
    for position, container in enumerate(items(pods, "containers")):
        ports = [port.get("containerPort") for port in container.get("ports") or () if port]
        if container["name"] == RUNNER and ports and PORT not in ports:
            where = path.child("spec", "containers").index(position).child("ports")
            name = load_balancer(service.metadata.name or "<name>")
            yield f"{where}: {PORT} is not among them, and the Service {name} sends its requests there and nowhere else"


def _serving(template: WorkloadTemplate) -> tuple[Json, field.Path]:
    """The pods that take requests: the leaders, where there are such."""
    if template.leader_template is not None:
        return template.leader_template, LEADER
    return template.worker_template, WORKER


def _metadata(pods: Json, kind: str) -> dict[str, str]:
    found: dict[str, str] = (pods.get("metadata") or {}).get(kind) or {}
    return found


def _low_limits(pods: Json, path: field.Path) -> Iterator[str]:
    """Limits below their requests, with which no pod can be made; a flavor may put both right."""
    for kind in ("initContainers", "containers"):
        for position, container in enumerate(items(pods, kind)):
            where = path.child("spec", kind).index(position).child("resources")
            for low, detail in low_limits(_resources(container), where):
                yield f"{low}: {detail}; no pod can be made, unless the model's flavor says both"


def _resources(container: Json) -> Resources:
    given = container.get("resources") or {}
    return Resources(limits=_amounts(given.get("limits")), requests=_amounts(given.get("requests")))


def _amounts(given: Json | None) -> dict[str, str]:
    """Those that are quantities; a number beyond them has an error of its own."""
    found = ((name, canonical_value(amount)) for name, amount in (given or {}).items())
    return {name: amount for name, amount in found if isinstance(amount, str)}
