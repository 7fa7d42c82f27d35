"""The pod of an InferenceService, as its user wrote it."""

from msgspec.structs import replace

from app.kube.field import SPEC
from app.llmkube import names
from app.llmkube.inferenceservice.plan import PORT_NAME
from app.llmkube.inferenceservice.types import InferenceServiceSpec, ProbeOverrides, Service
from app.llmkube.runtimes.registry import runtime, server_port
from app.llmkube.runtimes.runtime import Runtime, named_engine, read_extra
from app.workload.advice.podview import ContainerView, PodView, ServerPort
from app.workload.engines.commandline import CommandLine, command_line

_PURPOSES = ("startup", "liveness", "readiness")
_PLACES = {
    "volumeMounts": SPEC.child("extraVolumeMounts"),
    **{f"{purpose}Probe": SPEC.child("probeOverrides", purpose) for purpose in _PURPOSES},
}


def pod_view(service: Service) -> PodView:
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
        containers=[_container(spec, server, used), ContainerView({}, SPEC, line=unused)],
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
        variables=[variable["name"] for variable in server.environment(spec)],
        knows_variables=True,
        amounts=[(SPEC.child("resources"), resources)],
    )


def extra_line(spec: InferenceServiceSpec, server: Runtime) -> CommandLine:
    """Return what ``extraArgs`` add to the command line, behind a model where the engine takes one."""
    engine, positionals = named_engine(spec, server), None if spec.command else 0
    return CommandLine(spec.extra_args, SPEC.child("extraArgs"), engine, positionals=positionals)


def _lines(spec: InferenceServiceSpec, server: Runtime) -> tuple[CommandLine, CommandLine]:
    """Return the command line of the server, and the arguments that have no effect on it."""
    container = {"image": spec.image or server.image, "command": spec.command, "args": spec.args, "env": spec.env}
    generic = command_line(container, SPEC)
    words = [*spec.extra_args, *(str(variable.get("name")) for variable in spec.env)]
    extra = extra_line(spec, server)
    extra = replace(extra, engine=extra.engine or generic.engine, words=words, passes=generic.passes)
    used, unused = (generic, extra) if "args" in server.reads else (extra, generic)
    return used, replace(unused, engine=None)
