"""The children of a Playground: an inference Service and an autoscaler. Source: LZ-4.1, LZ-4.5."""

from app.kube.base import Json
from app.kube.child import child, metadata
from app.kube.podspec import normalised
from app.llmaz.claims import ModelClaims, main_first
from app.llmaz.names import GRACE_SECONDS, INFERENCE_API, PORT, PORT_NAME, RUNNER, SHM_PATH, SHM_VOLUME, SKIP_LOADER
from app.llmaz.playground.plan import PlaygroundPlan
from app.llmaz.playground.types import Playground
from app.workload.parts import TERMINATION_MESSAGE_POLICY


def service(playground: Playground, plan: PlaygroundPlan) -> Json:
    owner = playground.metadata
    copied = {key: text for key, text in (owner.annotations or {}).items() if key == SKIP_LOADER}
    spec = {
        "modelClaims": _claims(playground.spec.claims),
        "replicas": playground.spec.replicas,
        "rolloutStrategy": {"type": "RollingUpdate"},
        "workloadTemplate": {"workerTemplate": {"spec": _pod(plan)}},
    }
    return child(INFERENCE_API, "Service", metadata(owner.name, owner.namespace, annotations=copied), spec=spec)


def _claims(claims: ModelClaims) -> Json:
    """Return the models in the user's order, each name once, because Metacontroller merges the list by name.

    Only a model that is its own draft is listed twice, and one copy of its files serves both roles.
    """
    roles: Json = {}
    models, chosen = claims.models or [], claims.inference_flavors
    for model in main_first(models):
        roles.setdefault(model.name, model.role)
    names = dict.fromkeys(model.name for model in models)
    sent: Json = {"models": [{"name": name, "role": roles[name]} for name in names]}
    return {**sent, "inferenceFlavors": chosen} if chosen else sent


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
        "command": plan.runtime.command,
        "args": plan.args,
        "env": plan.env,
        "resources": plan.resources,
        "ports": [{"name": PORT_NAME, "protocol": "TCP", "containerPort": PORT}],
        "volumeMounts": [{"name": SHM_VOLUME, "mountPath": SHM_PATH}] if plan.shared_memory is not None else None,
        "terminationMessagePolicy": TERMINATION_MESSAGE_POLICY,
    }
    handlers = {"lifecycle": plan.runtime.lifecycle, **plan.runtime.probes}
    hooks = {name: normalised(handler) for name, handler in handlers.items() if handler is not None}
    return {key: value for key, value in container.items() if value} | hooks


def horizontal_pod_autoscaler(playground: Playground, plan: PlaygroundPlan) -> Json | None:
    if plan.scaling is None:
        return None
    meta = metadata(playground.metadata.name, playground.metadata.namespace)
    return child("autoscaling/v2", "HorizontalPodAutoscaler", meta, spec=plan.scaling)
