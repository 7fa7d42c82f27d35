"""The children that model servers are made of. Source: KS-3.5, KS-3.6 and KS-3.8."""

from app.kserve import permissions
from app.kserve.constants import COMPONENT_WORKLOAD, PUBLIC_PORT
from app.kserve.names import Names, component_labels, workload_selector
from app.kserve.spec.effective import EffectiveSpec
from app.kserve.workload.plan import AccountPlan, DeploymentPlan, GroupPlan, PodPlan
from app.kserve.workload.topology import Labels, for_children, laid_over
from app.kube.base import Json
from app.kube.child import metadata, template_metadata, without_none
from app.kube.objects import ObservedDeployment
from app.kube.resource import DEPLOYMENTS, LEADER_WORKER_SETS, SERVICES


def outlived(observed: ObservedDeployment | None, selector: Labels) -> bool:
    """Report whether its immutable selector is another one: with ``prefill``, the pods change their role.

    One answer leaves such a Deployment out, the next creates it again.
    """
    return observed is not None and (observed.spec.selector.match_labels or selector) != selector


def deployment(plan: DeploymentPlan, namespace: str) -> Json:
    """The strategy is left to Kubernetes: a rolling update."""
    selector = {"matchLabels": plan.selector}
    spec = without_none(selector=selector, template=pod_template(plan.pod), replicas=plan.replicas)
    return DEPLOYMENTS.build(metadata(plan.name, namespace, plan.labels, plan.annotations), spec=spec)


def leader_worker_set(plan: GroupPlan, namespace: str) -> Json:
    """Groups start with their leader and restart as a whole."""
    template = without_none(
        workerTemplate=pod_template(plan.worker),
        leaderTemplate=None if plan.leader is None else pod_template(plan.leader),
        restartPolicy="RecreateGroupOnPodRestart",
        size=plan.size,
        subGroupPolicy=None if plan.sub_group_size is None else {"subGroupSize": plan.sub_group_size},
    )
    spec = without_none(
        leaderWorkerTemplate=template,
        rolloutStrategy={"type": "RollingUpdate"},
        startupPolicy="LeaderCreated",
        replicas=plan.replicas,
    )
    meta = metadata(plan.name, namespace, plan.labels, plan.annotations)
    return LEADER_WORKER_SETS.build(meta, spec=spec)


def workload_service(names: Names, namespace: str, spec: EffectiveSpec, scheme: str) -> Json:
    """It is there in every topology, with a router or without. ``scheme``: what the servers speak."""
    ports = {"port": PUBLIC_PORT, "targetPort": PUBLIC_PORT}
    port = {"name": scheme, "protocol": "TCP", "appProtocol": scheme, **ports}
    labels = laid_over(spec.labels, component_labels(names.service, COMPONENT_WORKLOAD))
    meta = metadata(names.workload_service, namespace, labels, for_children(spec.annotations))
    selector = workload_selector(names.service)
    return SERVICES.build(meta, spec={"type": "ClusterIP", "selector": selector, "ports": [port]})


def accounts(plan: AccountPlan, namespace: str) -> list[Json]:
    """The account, unless it is the user's own, and what it may do."""
    children: list[Json] = []
    if plan.managed:
        children.append(permissions.service_account(metadata(plan.account, namespace, plan.labels)))
    if plan.role:
        children.append(permissions.role(metadata(plan.role, namespace, plan.labels), plan.rules))
        children.append(permissions.binding(metadata(plan.binding, namespace, plan.labels), plan.role, plan.account))
    return children


def pod_template(pod: PodPlan) -> Json:
    return {"metadata": template_metadata(pod.labels, pod.annotations), "spec": pod.spec}
