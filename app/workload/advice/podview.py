"""A pod as its user wrote it, and every warning about it.

Each family builds the views of its objects' pods, and :func:`advise` runs the rules in ``RULES`` over them.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import chain, islice
from typing import Any

import msgspec
from msgspec.structs import replace

from app.kube.base import Json
from app.kube.field import Advice, Path, advice
from app.kube.quantity import is_quantity, parse
from app.limits import MAX_ARGUMENTS, MAX_UNKNOWN_NAMES
from app.workload.advice import placementadvice, podadvice
from app.workload.engines import promptcache
from app.workload.engines.commandline import CommandLine, command_line
from app.workload.engines.engine import NAMES, path_prefix
from app.workload.engines.images import ROOT, EngineImage, engine_image
from app.workload.engines.weights import not_loadable, other_method
from app.workload.fit.gpumodels import unsuitable_image
from app.workload.rules import wholepod
from app.workload.rules.wholepod import HOOKS, LISTS

Quantities = Sequence[tuple[Path, Mapping[str, object]]]


class Written(msgspec.Struct, frozen=True):
    """A part of a pod with the places where its user wrote it."""

    spec: Json
    """Its fields as Kubernetes calls them, as far as the user wrote them."""
    path: Path
    base: Json = {}
    """What it is laid over."""
    places: Mapping[str, Path] = {}
    """The places of fields that are not written in ``path``."""

    def part(self, name: str) -> Json:
        return self.spec.get(name) or {}

    def items(self, name: str) -> Sequence[Any]:
        return self.spec.get(name) or ()

    def at(self, name: str) -> Path:
        return self.places.get(name) or self.path.child(name)

    def each(self, name: str) -> Iterator[tuple[Path, Json]]:
        """Yield the items of a list with their places."""
        return ((where, item) for where, item in self.at(name).each(self.items(name)) if item)

    def values_of(self, name: str, key: str) -> set[str]:
        """Return a field of the items of a list, of those that it is laid over too."""
        items = chain.from_iterable(side.get(name) or () for side in (self.base, self.spec))
        return {str((item or {}).get(key) or "") for item in items}


class ServerPort(msgspec.Struct, frozen=True):
    """The only port of a container, which its family opens."""

    name: str
    number: int | None = None
    """``None`` if the server may listen on another."""


class RequestPort(msgspec.Struct, frozen=True):
    """The port that requests go to."""

    number: int
    message: str
    """What is wrong with another port, ``{port}``, that ``{option}`` has."""
    others: Collection[int] = ()
    """Ports that a server may have too."""
    is_fixed: bool = False
    """Nothing that a user writes changes where requests go, so that any other ``--port`` has no effect on it."""


class Devices(msgspec.Struct, frozen=True):
    """All devices that a container gets."""

    names: Collection[str]
    """The names of its resources."""
    path: Path
    remedy: str
    """What a user does who wants other devices."""


class Sizes(msgspec.Struct, frozen=True):
    """The GPUs of a pod, and the sizes of parallelism that its container has without options for them."""

    gpus: int
    tensor: int = 1
    copies: int = 1
    """Copies of the model, which is the data-parallel size."""
    path: Path | None = None
    """Where to warn of GPUs that the engine does not use; ``None`` if something else tells it their number."""
    remedy: str = ""
    """What a user does who wants all to be used."""


class Weights(msgspec.Struct, frozen=True):
    """The repository of the Hugging Face Hub that a server loads."""

    repository: str
    path: Path
    method: str = ""
    """The quantization method that the server is given."""
    method_path: Path | None = None
    """Its place; ``None`` for ``path``."""


class ContainerView(Written, frozen=True, kw_only=True):
    line: CommandLine
    unused: CommandLine | None = None
    """Arguments that have no effect on it."""
    port: ServerPort | None = None
    requests: RequestPort | None = None
    devices: Devices | None = None
    """``None`` if more may be added to them."""
    sizes: Sizes | None = None
    """``None`` if the number of GPUs is not known."""
    weights: Weights | None = None
    fetches: bool = False
    """It gets the model from the hub itself, unless a volume has it."""
    variables: Collection[str] = ()
    """Names of the variables that are set above those of the user."""
    knows_variables: bool = False
    """Nothing sets other variables."""
    tag: Path | None = None
    """The place of the image's tag, where that is a field of its own."""
    amounts: Quantities | None = None
    """Requests, limits and sizes, where they are not in ``resources``."""

    @property
    def lines(self) -> list[CommandLine]:
        return [self.line] if self.unused is None else [self.line, self.unused]

    @property
    def probes(self) -> list[tuple[Json, Path]]:
        return [(self.part(name), self.at(name)) for name in podadvice.PROBES if self.part(name)]

    @property
    def hooks(self) -> list[tuple[Json, Path]]:
        lifecycle, path = self.part("lifecycle"), self.at("lifecycle")
        return [(lifecycle[name], path.child(name)) for name in HOOKS if lifecycle.get(name)]


class PodView(Written, frozen=True, kw_only=True):
    containers: Sequence[ContainerView]
    """Init containers first."""
    is_whole: bool = True
    """Nothing is merged with it but ``base``."""
    refuses_duplicates: bool = True
    """Another rule refuses two items of a list with one name."""
    labels: Mapping[str, str] | None = None
    """The pod's labels; ``None`` where they are not known."""
    nodes: Mapping[str, str] = {}
    """Labels of the nodes that something else selects."""
    labels_field: str | Path = ""
    """The field to which a user adds labels."""
    volumes: Collection[str] = ()
    """Names of volumes that something else mounts."""
    added: Collection[str] = ()
    """Names of volumes and claims that something else adds."""
    open_fields: Collection[str] = ()
    """Fields to which something else may add what is missing."""
    left_out: Collection[str] = ()
    """Names of containers without which the pod is made."""


def containers_of(pod: Json, path: Path, view: Callable[[Json, Path], ContainerView]) -> list[ContainerView]:
    """Return the views of a pod's containers, init containers first."""
    lists = chain.from_iterable(path.child(name).each(pod.get(name) or ()) for name in LISTS)
    return [view(container or {}, where) for where, container in lists]


def whole_container(container: Json, path: Path) -> ContainerView:
    return ContainerView(container, path, line=command_line(container, path))


# The rules, each of a pod or of one container.

PodRule = Callable[[PodView], Iterable[Advice]]
ContainerRule = Callable[[ContainerView, PodView], Iterable[Advice]]


def of_pods(rule: PodRule, *fields: str) -> PodRule:
    """Return the rule for pods in which one of the fields is written."""

    @wraps(rule)
    def of_pod(pod: PodView) -> Iterable[Advice]:
        return rule(pod) if any(map(pod.spec.get, fields)) else ()

    return of_pod


def each(rule: ContainerRule, *fields: str) -> PodRule:
    """Return the rule that judges each container of a pod in which one of the fields is written, or every one."""

    @wraps(rule)
    def of_containers(pod: PodView) -> Iterator[Advice]:
        for container in pod.containers:
            if not fields or any(map(container.spec.get, fields)):
                yield from rule(container, pod)

    return of_containers


def port_conflicts(pod: PodView) -> Iterable[Advice]:
    return podadvice.port_warnings(pod.spec, pod.path)


def node_selector(pod: PodView) -> Iterable[Advice]:
    return placementadvice.selector_warnings(pod.part("nodeSelector"), pod.at("nodeSelector"))


def affinity(pod: PodView) -> Iterable[Advice]:
    return placementadvice.affinity_warnings(pod.part("affinity"), pod.at("affinity"), is_whole=pod.is_whole)


def spread(pod: PodView) -> Iterable[Advice]:
    name = "topologySpreadConstraints"
    if pod.labels is None or not pod.is_whole:
        return ()
    return placementadvice.spread_warnings(pod.items(name), pod.at(name), pod.labels, str(pod.labels_field))


def volumes(pod: PodView) -> Iterable[Advice]:
    containers = {"containers": [container.spec for container in pod.containers]}
    used = {*podadvice.volumes_used(containers), *podadvice.volumes_used(pod.base), *pod.volumes}
    return podadvice.volume_warnings(pod.items("volumes"), pod.at("volumes"), used) if pod.is_whole else ()


def names_of_services(pod: PodView) -> Iterator[Advice]:
    """Warn of a pod in the node's network that asks the node's name server, which knows no Service."""
    fields = {**pod.base, **pod.spec}
    if fields.get("hostNetwork") is True and fields.get("dnsPolicy") in (None, "", "ClusterFirst") and pod.is_whole:
        message = "with hostNetwork the pod does not find Services by name unless it is ClusterFirstWithHostNet"
        yield advice(pod.at("dnsPolicy"), message)


def behind_gates(pod: PodView) -> Iterator[Advice]:
    """Warn of tolerations and user namespaces that API servers refuse without a feature gate."""
    for where, toleration in pod.each("tolerations"):
        if toleration.get("operator") in ("Gt", "Lt"):
            message = "API servers refuse it without the feature gate TaintTolerationComparisonOperators"
            yield advice(where.child("operator"), message)
    fields = {**pod.base, **pod.spec}
    for name, without in _NO_USER_NAMESPACE.items() if fields.get("hostUsers") is False else ():
        if fields.get(name) is True:
            yield advice(pod.at("hostUsers"), f"API servers refuse it beside {name}{without}")


_NO_USER_NAMESPACE = {
    "hostNetwork": " without the feature gate UserNamespacesHostNetworkSupport",
    "hostPID": "",
    "hostIPC": "",
}


def pull_secrets(pod: PodView) -> Iterator[Advice]:
    """Warn of a pull secret that is listed twice."""
    earlier: set[object] = set()
    for where, secret in () if pod.refuses_duplicates else pod.each("imagePullSecrets"):
        if (name := secret.get("name")) in earlier:
            yield advice(where, f"{name} is listed twice")
        earlier.add(name)


def root(pod: PodView) -> Iterator[Advice]:
    """Warn of a user that the API server accepts and the kubelet refuses, by what each container has (LK-V-K24)."""
    told: set[Path] = set()
    for container in _all_containers(pod) if _names_root(pod) else ():
        user, where = _security(container, pod, "runAsUser")
        strict, strict_at = _security(container, pod, "runAsNonRoot")
        if user == ROOT and strict and where is not None and where not in told:
            told.add(where)
            yield advice(where, _contradiction(container, by_default=strict_at is None))


def _contradiction(container: Written, *, by_default: bool) -> str:
    name = container.spec.get("name") or container.base.get("name")
    owner = f"container {name}" if name and (by_default or not container.spec) else "the container"
    if by_default:
        return f"0 contradicts runAsNonRoot, which {owner} has by default: it will not start; set it to false there"
    return f"0 contradicts runAsNonRoot: {owner} will not start"


def _names_root(pod: PodView) -> bool:
    """Report whether the user of the pod, or of a container, is written to be root."""
    return any(part.part("securityContext").get("runAsUser") == ROOT for part in (pod, *pod.containers))


def _all_containers(pod: PodView) -> Iterator[Written]:
    """Yield the containers of the pod, with those that only its base has; the pod itself if none is known."""
    names = {container.spec.get("name") for container in pod.containers}.union(pod.left_out)
    lower = [item for name in LISTS for item in pod.base.get(name) or () if item.get("name") not in names]
    written = (container for container in pod.containers if "$patch" not in container.spec)
    yield from (container for container in written if container.spec.get("name") not in pod.left_out)
    yield from (Written({}, pod.path, base=item) for item in lower)
    if not pod.containers and not lower:
        yield Written({}, pod.path)


def host_processes(pod: PodView) -> Iterator[Advice]:
    """Warn of a setting that the kubelet refuses in a pod without the node's network (LK-V-K25)."""
    has_network = pod.spec.get("hostNetwork") or pod.base.get("hostNetwork")
    for part in (pod, *pod.containers) if pod.is_whole and not has_network else ():
        context, path = part.part("securityContext"), part.at("securityContext")
        if (context.get("windowsOptions") or {}).get("hostProcess"):
            message = "needs the node's network, which the pod does not have"
            yield advice(path.child("windowsOptions", "hostProcess"), message)


def image_user(container: ContainerView, pod: PodView) -> Iterator[Advice]:
    """Warn of an image of an engine that the kubelet refuses, or whose server finds no directory of its own."""
    image = engine_image(container.spec.get("image") or container.base.get("image") or "")
    if image is None:
        return
    user, where = _security(container, pod, "runAsUser")
    strict, strict_at = _security(container, pod, "runAsNonRoot")
    if user is None and strict and image.user == ROOT:
        yield advice(strict_at or container.at("image"), f"{image.image} runs as root, {_NOT_ROOT}")
    elif user not in (None, ROOT, image.user) and image.user == ROOT and not container.items("envFrom"):
        yield from _user_without_home(container, image, where or container.at("image"), user)


_NOT_ROOT = (
    "which runAsNonRoot forbids, so the kubelet does not start it; set runAsNonRoot: false for the container, or "
    "runAsUser, with HOME and USER in env"
)


def _user_without_home(container: ContainerView, image: EngineImage, path: Path, user: object) -> Iterator[Advice]:
    """Warn of a user of an engine's image that has no home directory and no name."""
    is_other = container.items("command") and container.line.engine is None
    names = {*container.values_of("env", "name"), *container.variables}
    absent = [name for name in ("HOME", "USER") if name not in names]
    if absent and image.needs_home and not is_other:
        listed = " and ".join(absent)
        message = f"{image.image} has no user {user}, so its server ends where it asks for a name or a home"
        directory = ", and mount an emptyDir at HOME" if "HOME" in absent else ""
        yield advice(path, f"{message}; set {listed} in env{directory}")


def _security(container: Written, pod: PodView, name: str) -> tuple[Any, Path | None]:
    """Return a setting of a container, and its place where the user wrote it; the container's wins over the pod's."""
    for part in (container, pod):
        written, base = part.part("securityContext").get(name), (part.base.get("securityContext") or {}).get(name)
        if written is not None:
            return written, part.at("securityContext").child(name)
        if base is not None:
            return base, None
    return None, None


def command(container: ContainerView, _: PodView) -> Iterable[Advice]:
    return podadvice.command_warnings(container.items("command"), container.at("command"))


def arguments(container: ContainerView, _: PodView) -> Iterator[Advice]:
    for line in container.lines:
        if line.passes and not line.is_read:
            yield from podadvice.argument_warnings(line.each())
            yield from podadvice.quote_warnings(line)


def handlers(container: ContainerView, pod: PodView) -> Iterator[Advice]:
    is_on_node = pod.spec.get("hostNetwork") or any(port.get("hostPort") for _, port in container.each("ports"))
    for handler, path in () if is_on_node else (*container.probes, *container.hooks):
        yield from podadvice.handler_warnings(handler, path)


def probe_path(container: ContainerView, _: PodView) -> Iterator[Advice]:
    prefix = path_prefix(list(container.line.words), container.line.variables)
    for probe, path in container.probes if container.line.engine is not None else ():
        yield from podadvice.path_warnings(probe, path, container.line.engine, prefix)


def probe_time(container: ContainerView, _: PodView) -> Iterator[Advice]:
    """Warn of limits that SGLang's health checks exceed: it first looks for its answer after a second."""
    engine, names = container.line.engine, container.values_of("env", "name")
    if engine is None or engine.name != "sglang":
        return
    is_quick = engine.version.startswith("0.4.") or "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION" in names
    places: dict[Path, list[str]] = {}
    for name in podadvice.PROBES:
        probe = {**(container.base.get(name) or {}), **container.part(name)}
        path, limit = (probe.get("httpGet") or {}).get("path"), probe.get("timeoutSeconds") or 1
        if limit < 2 and (path == "/health_generate" or (path == "/health" and not is_quick)):
            is_own = bool(container.part(name))
            where = container.at(name).child("timeoutSeconds") if is_own else container.tag or container.at("image")
            places.setdefault(where, []).append(name)
    for where, probes in places.items():
        text = f"{engine} answers a health check after more than a second, so {', '.join(probes)} may fail at any time"
        yield advice(where, f"{text}; write 5 as timeoutSeconds")


def probe_port(container: ContainerView, pod: PodView) -> Iterator[Advice]:
    port, names = container.port, container.values_of("ports", "name")
    for probe, path in container.probes:
        if port is not None:
            yield from podadvice.probe_port_warnings(probe, path, port.name, port.number)
        elif pod.is_whole:
            yield from podadvice.port_name_warnings(probe, path, names)


def probe_scheme(container: ContainerView, pod: PodView) -> Iterator[Advice]:
    for probe, path in container.probes if container.line.engine is not None and pod.is_whole else ():
        yield from podadvice.scheme_warnings(probe, path, container.line.words, container.line.variables)


def amounts(container: ContainerView, _: PodView) -> Iterator[Advice]:
    parts = container.part("resources").items()
    written = [(container.at("resources").child(kind), part) for kind, part in parts if isinstance(part, dict)]
    for path, quantities in written if container.amounts is None else container.amounts:
        yield from podadvice.amount_warnings(quantities, path)


def variables(container: ContainerView, pod: PodView) -> Iterator[Advice]:
    items, path = [item or {} for item in container.items("env")], container.at("env")
    if not pod.refuses_duplicates:
        yield from podadvice.duplicate_warnings(items, path, container.variables)
    if pod.is_whole:
        earlier = {*container.variables, *(item.get("name") or "" for item in container.base.get("env") or ())}
        yield from podadvice.order_warnings(items, path, earlier)
        yield from podadvice.file_warnings(items, path, pod.values_of("volumes", "name"))


def tag(container: ContainerView, _: PodView) -> Iterable[Advice]:
    image, path = container.spec.get("image") or "", container.tag or container.at("image")
    return podadvice.tag_warnings(image, path, is_version=container.tag is not None)


def temporary_files(container: ContainerView, pod: PodView) -> Iterator[Advice]:
    """Warn of a server that ends without a directory for temporary files (LK-V-I84)."""
    engine = container.line.engine
    if engine is None or engine.name not in _WRITES_TO_TMP or not pod.is_whole:
        return
    mounted = {path.rstrip("/") for path in container.values_of("volumeMounts", "mountPath")}
    is_writable = "/tmp" in mounted or "TMPDIR" in container.values_of("env", "name")  # noqa: S108
    if container.part("securityContext").get("readOnlyRootFilesystem") and not is_writable:
        message = f"{NAMES[engine.name]} ends if it cannot write to /tmp; mount a volume there"
        yield advice(container.at("securityContext").child("readOnlyRootFilesystem"), message)


_WRITES_TO_TMP = ("vllm", "sglang", "tgi")


def options(container: ContainerView, pod: PodView) -> Iterable[Advice]:
    line = container.line
    if line.engine is None or not line.passes:
        return ()
    others = " ".join(line.words).split()
    return podadvice.option_warnings(line, others, {**pod.nodes, **pod.part("nodeSelector")})


def prompt_cache(container: ContainerView, pod: PodView) -> Iterator[Advice]:
    """Warn of a limit, else a request, of memory that llama.cpp's prompt cache alone may exceed."""
    line = container.line
    if line.engine is None or not line.engine.loads_files or not line.passes or not pod.is_whole:
        return
    for kind in ("limits", "requests"):
        amount = str((container.part("resources").get(kind) or {}).get("memory") or "")
        if is_quantity(amount):
            message = promptcache.problem(line.parsed, int(parse(amount)), f"the memory of {kind}")
            yield from (advice(container.at("resources").child(kind, "memory"), message),) if message else ()
            return


def references(container: ContainerView, _: PodView) -> Iterable[Advice]:
    """Warn of variables that nothing replaces in an engine's arguments and in paths (LK-V-K40)."""
    line = container.line
    mounts = container.each("volumeMounts")
    texts = [(path.child("subPathExpr"), mount.get("subPathExpr") or "") for path, mount in mounts]
    if line.engine is not None and line.passes and not line.is_read and not line.places:
        texts += line.each()
    names = {*container.values_of("env", "name"), *container.variables} if texts else ()
    return podadvice.reference_warnings(texts, names, is_whole=container.knows_variables)


def requests(container: ContainerView, _: PodView) -> Iterator[Advice]:
    """Warn of a server that listens where no requests arrive."""
    port, line = container.requests, container.line
    if port is None or not (line.arguments or line.variables):
        return
    if port.is_fixed:
        others = ((line.place(given.at), given.value) for given in line.parsed.all("--port"))
        yield from (advice(path, port.message, "no-effect") for path, value in others if value != str(port.number))
        return
    for given, number in line.numbers("--port"):
        if number not in (port.number, *port.others):
            yield advice(line.place(given.at), port.message.format(port=number, option=given.name))


def devices(container: ContainerView, _: PodView) -> Iterator[Advice]:
    """Warn of an image that does not run on the devices of its container (LK-V-X18)."""
    given, image = container.devices, container.spec.get("image") or container.base.get("image") or ""
    if given is not None and (problem := unsuitable_image(image, given.names)):
        yield advice(given.path, f"{problem}; {given.remedy}")


def sizes(container: ContainerView, _: PodView) -> Iterator[Advice]:
    """Warn of sizes of parallelism that the GPUs of a pod, or models, do not suit (LK-V-X16)."""
    given, line = container.sizes, container.line
    if given is None or not line.passes:
        return
    yield from podadvice.size_warnings(line, given.gpus, given.tensor, given.copies)
    if given.path is None or given.gpus < 2 or line.engine is None or line.engine.name not in _USE_ONE:
        return
    if not any(map(_SIZE.search, line.words)):
        yield advice(given.path, f"{NAMES[line.engine.name]} uses 1 of the {given.gpus} GPUs of a pod; {given.remedy}")


_USE_ONE = ("vllm", "sglang")
"""Engines that use one GPU unless they are told another size."""
_SIZE = re.compile(r"[$]|config|parallel|-[tpd]p|pcp|size|ray|nnodes")
"""Parts of words that may make such an engine use more than one GPU."""


def weights(container: ContainerView, _: PodView) -> Iterator[Advice]:
    """Warn of weights that an engine cannot load, by the name of their repository."""
    given, engine = container.weights, container.line.engine
    if given is None or engine is None:
        return
    if problem := not_loadable(engine.name, given.repository):
        yield advice(given.path, problem)
    if problem := other_method(engine.name, given.repository, given.method):
        yield advice(given.method_path or given.path, problem)


def offline(container: ContainerView, _: PodView) -> Iterable[Advice]:
    return podadvice.offline_warnings(container.spec, container.at("env")) if container.fetches else ()


def missing_parts(pod: PodView) -> Iterator[Advice]:
    """Warn of what a pod lacks that the API server requires when the pod is created."""
    for error in wholepod.missing(pod.spec, pod.path, pod.base, pod.added) if pod.is_whole else ():
        if not {*pod.open_fields}.intersection(error.path.segments):
            yield advice(error.path, f"{error.body}; pods without it are refused")


_HANDLERS = (*podadvice.PROBES, "lifecycle")
RULES: tuple[PodRule, ...] = (
    of_pods(port_conflicts, "containers"),
    of_pods(node_selector, "nodeSelector"),
    of_pods(affinity, "affinity"),
    of_pods(spread, "topologySpreadConstraints"),
    of_pods(volumes, "volumes"),
    names_of_services,
    of_pods(behind_gates, "tolerations", "hostUsers", *_NO_USER_NAMESPACE),
    of_pods(pull_secrets, "imagePullSecrets"),
    root,
    host_processes,
    each(image_user),
    each(command, "command"),
    each(arguments),
    each(handlers, *_HANDLERS),
    each(probe_path, *podadvice.PROBES),
    each(probe_time),
    each(probe_port, *podadvice.PROBES),
    each(probe_scheme, *podadvice.PROBES),
    each(amounts),
    each(variables, "env"),
    each(tag, "image"),
    each(temporary_files, "securityContext"),
    each(options),
    each(prompt_cache, "resources"),
    each(references),
    each(requests),
    each(devices),
    each(sizes),
    each(weights),
    each(offline, "env"),
    of_pods(missing_parts, *LISTS),
)
"""The rules, each with the fields that it judges. One that is added here judges the pods of all kinds."""


def advise(pods: Iterable[PodView]) -> Iterator[Advice]:
    """Run every rule over the pods of one object, of whose arguments only the first are compared."""
    views, rest = [], MAX_ARGUMENTS
    for pod in pods:
        count = sum(len(line.arguments) for container in pod.containers for line in container.lines)
        views.append(pod if count <= rest else _cut(pod, rest))
        rest = max(0, rest - count)
    for rule in RULES:
        yield from islice(chain.from_iterable(map(rule, views)), MAX_UNKNOWN_NAMES)


def advise_further(pods: Iterable[PodView], told: Iterable[PodView]) -> Iterator[Advice]:
    """Run every rule over pods of which other objects tell more, without what is told of them alone."""
    earlier = {*advise(told)}
    yield from (warning for warning in advise(pods) if warning not in earlier)


def _cut(pod: PodView, rest: int) -> PodView:
    """Return the view without the arguments behind the first ones of all its containers."""
    containers = []
    for container in pod.containers:
        lines = []
        for line in container.lines:
            lines.append(replace(line, arguments=line.arguments[:rest]))
            rest -= len(lines[-1].arguments)
        containers.append(replace(container, line=lines[0], unused=lines[1] if lines[1:] else None))
    return replace(pod, containers=containers)
