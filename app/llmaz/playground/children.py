"""The children of a Playground: an inference Service and an autoscaler. Source: LZ-4.1, LZ-4.5."""

from app.kube import desired
from app.kube.base import Json
from app.llmaz.claims import main_first
from app.llmaz.names import INFERENCE_API, PORT, PORT_NAME, RUNNER, SHM_PATH, SHM_VOLUME, SKIP_LOADER
from app.llmaz.playground.plan import PlaygroundPlan
from app.workload.parts import TERMINATION_MESSAGE_POLICY

GRACE_SECONDS = 130
"""Grace period in which a pod finishes its requests."""


def service(plan: PlaygroundPlan) -> Json:
    metadata: Json = {"name": plan.name, "namespace": plan.namespace}
    if plan.skip_annotation is not None:
        metadata["annotations"] = {SKIP_LOADER: plan.skip_annotation}
    return {
        "apiVersion": INFERENCE_API,
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "modelClaims": _claims(plan),
            "replicas": plan.replicas,
            "rolloutStrategy": {"type": "RollingUpdate"},
            "workloadTemplate": {"workerTemplate": {"spec": _pod(plan)}},
        },
    }


def _claims(plan: PlaygroundPlan) -> Json:
    """Return the models in the user's order, each name once, because Metacontroller merges the list by name.

    Only a model that is its own draft is listed twice, and one copy of its files serves both roles.
    """
    roles: Json = {}
    for model in main_first(plan.models):
        roles.setdefault(model.name, model.role)
    names = dict.fromkeys(model.name for model in plan.models)
    claims: Json = {"models": [{"name": name, "role": roles[name]} for name in names]}
    if plan.flavors:
        claims["inferenceFlavors"] = plan.flavors
    return claims


def _pod(plan: PlaygroundPlan) -> Json:
    spec: Json = {"terminationGracePeriodSeconds": GRACE_SECONDS, "containers": [_runner(plan)]}
    if plan.shared_memory is not None:
        memory = {"medium": "Memory", "sizeLimit": plan.shared_memory}
        spec["volumes"] = [{"name": SHM_VOLUME, "emptyDir": memory}]
    return spec


def _runner(plan: PlaygroundPlan) -> Json:
    container = {
        "name": RUNNER,
        "image": plan.image,
        "command": plan.runtime.spec.command,
        "args": plan.args,
        "env": plan.env,
        "resources": plan.resources,
        "ports": [{"name": PORT_NAME, "protocol": "TCP", "containerPort": PORT}],
        "volumeMounts": [{"name": SHM_VOLUME, "mountPath": SHM_PATH}] if plan.shared_memory is not None else None,
        "terminationMessagePolicy": TERMINATION_MESSAGE_POLICY,
    }
    return {key: value for key, value in container.items() if value} | plan.runtime.handlers


def horizontal_pod_autoscaler(plan: PlaygroundPlan) -> desired.HorizontalPodAutoscaler | None:
    if plan.scaling is None:
        return None
    metadata = desired.ObjectMeta(name=plan.name, namespace=plan.namespace)
    return desired.HorizontalPodAutoscaler(metadata=metadata, spec=plan.scaling)
