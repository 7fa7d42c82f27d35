"""The pod of an InferenceService, as its user wrote it."""

from msgspec.structs import replace

from app.kube.base import Json
from app.kube.field import SPEC
from app.llmkube import names
from app.llmkube.inferenceservice.plan import PORT_NAME, InferencePlan
from app.llmkube.inferenceservice.types import InferenceService, InferenceServiceSpec, ProbeOverrides
from app.llmkube.model.types import ModelSpec
from app.llmkube.runtimes.flag import flag_values
from app.llmkube.runtimes.registry import runtime, server_port
from app.llmkube.runtimes.runtime import Runtime, named_engine, read_extra
from app.llmkube.source import Source, SourceClass, source_of
from app.workload.advice.podview import ContainerView, Devices, PodView, RequestPort, ServerPort, Sizes, Weights
from app.workload.engines.commandline import CommandLine, command_line, script_line
from app.workload.engines.images import engine_image

_PURPOSES = ("startup", "liveness", "readiness")
_PLACES = {
    "volumeMounts": SPEC.child("extraVolumeMounts"),
    **{f"{purpose}Probe": SPEC.child("probeOverrides", purpose) for purpose in _PURPOSES},
}


def pod_view(service: InferenceService) -> PodView:
    spec, server = service.spec, runtime(service.spec.runtime)
    used, unused = _lines(spec, server)
    pod = {
        "nodeSelector": spec.node_selector,
        "affinity": spec.affinity,
        "topologySpreadConstraints": spec.topology_spread_constraints,
        "volumes": spec.extra_volumes,
        "imagePullSecrets": spec.image_pull_secrets,
        "securityContext": spec.pod_security_context,
    }
    return PodView(
        pod,
        SPEC,
        places={"volumes": SPEC.child("extraVolumes"), "securityContext": SPEC.child("podSecurityContext")},
        containers=[replace(_container(spec, server, used), unused=unused)],
        refuses_duplicates=False,
        labels={**spec.pod_labels, **names.service_labels(service.metadata.name)},
        labels_field="podLabels",
    )


def _container(spec: InferenceServiceSpec, server: Runtime, line: CommandLine) -> ContainerView:
    overrides = spec.probe_overrides or ProbeOverrides()
    container = {
        "image": spec.image,
        "command": spec.command,
        "env": spec.env,
        "securityContext": spec.security_context,
        "volumeMounts": spec.extra_volume_mounts,
        **{f"{purpose}Probe": getattr(overrides, purpose) for purpose in _PURPOSES},
    }
    # a server that does not read containerPort, and one with a command, may answer probes elsewhere
    is_elsewhere = "args" in server.reads or spec.command or read_extra(spec, server).gives("--port")
    resources = spec.requests.model_dump(by_alias=True, exclude={"gpu", "gpu_sharing"})
    return ContainerView(
        container,
        SPEC,
        base={"image": server.image},
        places=_PLACES,
        line=line,
        port=ServerPort(PORT_NAME, None if is_elsewhere else server_port(spec)),
        requests=_request_port(spec, server),
        alone="serve the model with a kind that has workers",
        fetches=_fetches(spec, server),
        variables=[variable["name"] for variable in server.environment(spec)],
        knows_variables=True,
        amounts=[(SPEC.child("resources"), resources)],
    )


def _request_port(spec: InferenceServiceSpec, server: Runtime) -> RequestPort | None:
    """Return the port of the Service for a server whose own options do not tell it."""
    message = f"probes and the Service use port {server_port(spec)}; set containerPort to {{port}}"
    return RequestPort(server_port(spec), message) if "args" in server.reads else None


def _fetches(spec: InferenceServiceSpec, server: Runtime) -> bool:
    is_mounted = server.mounts_model and not spec.skip_model_init
    return not is_mounted and spec.model_cache is None and engine_image(spec.image or server.image) is not None


def planned_view(
    service: InferenceService, service_plan: InferencePlan, model: ModelSpec, *, is_possible: bool
) -> PodView:
    """Return the view with what the Model adds to the pod.

    ``is_possible``: the sizes of parallelism in fields suit the GPUs.
    """
    spec, server, view = service.spec, service_plan.runtime, pod_view(service)
    options, count, container = server.options(spec), service_plan.gpus.count, service_plan.pod["containers"][0]
    tensor = getattr(options, "tensor_parallel_size", None) or (count if server.divides_layers else 1)
    copies = getattr(options, "data_parallel_size", None) or 1
    limits = (container.get("resources") or {}).get("limits") or {}
    remedy = "set hardware.gpu.count of the Model, or an image for other hardware"
    # a runtime class may give devices to pods that request none
    is_open = bool(spec.runtime_class_name or service_plan.claims_gpus)
    planned = replace(
        view.containers[0],
        base={"image": container["image"]},
        line=view.containers[0].line.beside(container.get("args") or (), spec.env, SPEC.child("env")),
        devices=None if is_open else Devices(limits, SPEC.child("image" if spec.image else "runtime"), remedy),
        sizes=Sizes(count, tensor, copies) if is_possible else None,
        weights=_weights(spec, server, source_of(model)),
    )
    # the downloader runs as the user of the pod
    downloaders = [{"name": step["name"]} for step in service_plan.pod.get("initContainers") or ()]
    return replace(view, containers=[planned], base={"initContainers": downloaders})


def _weights(spec: InferenceServiceSpec, server: Runtime, source: Source) -> Weights | None:
    """Return the repository that a runtime loads, and its quantization, which extraArgs replace (LK-V-X19)."""
    if spec.command or "args" in server.reads or source.kind is not SourceClass.REPOSITORY:
        return None
    methods = {
        path: str(value) for path, option, value in flag_values(spec, server.flags) if option.name == "--quantization"
    }
    if extra := read_extra(spec, server).value("--quantization"):
        methods = {"extraArgs": extra}
    where, method = next(iter(methods.items()), ("modelRef", ""))
    return Weights(source.repository, SPEC.child("modelRef"), method, SPEC.child(*where.split(".")))


def extra_line(spec: InferenceServiceSpec, server: Runtime) -> CommandLine:
    """Return what ``extraArgs`` add to the command line, behind a model where the engine takes one."""
    engine, positionals = named_engine(spec, server), None if spec.command else 0
    return CommandLine(spec.extra_args, SPEC.child("extraArgs"), engine, positionals=positionals)


def _lines(spec: InferenceServiceSpec, server: Runtime) -> tuple[CommandLine, CommandLine]:
    """Return the command line of the server, and the arguments that have no effect on it."""
    container = container_of(spec)
    generic = command_line(container, SPEC)
    words = [*spec.extra_args, *(str(variable.get("name")) for variable in spec.env)]
    extra = extra_line(spec, server)
    extra = replace(extra, engine=extra.engine or generic.engine, words=words, passes=generic.passes)
    if "args" in server.reads:
        return generic, replace(extra, engine=None)
    script = script_line({**container, "args": spec.extra_args}, SPEC, {"args": extra.path})
    is_own = script is not None and len(script.arguments) > (len(spec.extra_args) if generic.passes else 0)
    return script if script is not None and is_own else extra, replace(generic, engine=None)


def container_of(spec: InferenceServiceSpec) -> Json:
    """Return what the user wrote of the container; a runtime with options of its own has no ``args``."""
    server = runtime(spec.runtime)
    args = spec.args if "args" in server.reads else []
    return {"image": spec.image or server.image, "command": spec.command, "args": args, "env": spec.env}
