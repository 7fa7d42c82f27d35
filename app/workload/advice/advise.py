"""Every rule of advice on a pod, and the run of all of them over the pods of an object.

A rule takes a view, and selects the parts that it checks. The advice on a part, such as a probe, is in the module of
such parts (``podadvice``, ``lineadvice``, ``placementadvice``, ``useradvice``).
"""

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from itertools import chain, islice

from msgspec.structs import replace

from app.kube.field import Advice, Path, advice
from app.kube.quantity import is_quantity, parse
from app.kube.regex import regex
from app.limits import MAX_ARGUMENTS, MAX_UNKNOWN_NAMES
from app.workload.advice import lineadvice, placementadvice, podadvice, useradvice
from app.workload.advice.podview import ContainerView, PodView
from app.workload.engines import promptcache
from app.workload.engines.engine import NAMES, path_prefix
from app.workload.engines.weights import not_loadable, other_method
from app.workload.fit.gpumodels import unsuitable_image
from app.workload.rules import wholepod
from app.workload.rules.wholepod import LISTS

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


def service_links(pod: PodView) -> Iterator[Advice]:
    """Warn of variables of Services in the pods of an engine, some of which it takes for settings."""
    if any(container.line.engine is not None for container in pod.containers):
        message = (
            "every Service of the namespace then adds variables, and an engine ends with those of one that is called "
            "vllm, prometheus or master; leave it out"
        )
        yield advice(pod.at("enableServiceLinks"), message)


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


def command(container: ContainerView, _: PodView) -> Iterable[Advice]:
    return podadvice.command_warnings(container.items("command"), container.at("command"))


def arguments(container: ContainerView, _: PodView) -> Iterator[Advice]:
    for line in container.lines:
        if line.passes and not line.is_read:
            yield from lineadvice.argument_warnings(line.each())
            yield from lineadvice.quote_warnings(line)


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
    return lineadvice.option_warnings(line, others, {**pod.nodes, **pod.part("nodeSelector")})


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
    names = {*container.values_of("env", "name"), *container.variables} if texts or line.places else ()
    quoted = islice(podadvice.quoted_references(line.each(), names), MAX_UNKNOWN_NAMES) if line.places else ()
    return chain(podadvice.reference_warnings(texts, names, is_whole=container.knows_variables), quoted)


def requests(container: ContainerView, _: PodView) -> Iterator[Advice]:
    """Warn of a server that listens where no requests arrive."""
    port, line = container.requests, container.line
    if port is None or not (line.arguments or line.variables):
        return
    if port.is_fixed:
        others = ((line.place(occurrence.at), occurrence.value) for occurrence in line.parsed.all("--port"))
        yield from (advice(path, port.message, "no-effect") for path, value in others if value != str(port.number))
        return
    for occurrence, number in line.numbers("--port"):
        if number not in (port.number, *port.others):
            yield advice(line.place(occurrence.at), port.message.format(port=number, option=occurrence.name))


def devices(container: ContainerView, _: PodView) -> Iterator[Advice]:
    """Warn of an image that does not run on the devices of its container (LK-V-X18)."""
    resources, image = container.devices, container.spec.get("image") or container.base.get("image") or ""
    if resources is not None and (problem := unsuitable_image(image, resources.names)):
        yield advice(resources.path, f"{problem}; {resources.remedy}")


def sizes(container: ContainerView, _: PodView) -> Iterator[Advice]:
    """Warn of sizes of parallelism that the GPUs of a pod, or models, do not suit (LK-V-X16)."""
    parallelism, line = container.sizes, container.line
    if parallelism is None or not line.passes:
        return
    yield from lineadvice.size_warnings(line, parallelism.gpus, parallelism.tensor, parallelism.copies)
    if parallelism.path is None or parallelism.gpus < 2 or line.engine is None or line.engine.name not in _USE_ONE:
        return
    if not any(map(_SIZE.search, line.words)):
        yield advice(
            parallelism.path,
            f"{NAMES[line.engine.name]} uses 1 of the {parallelism.gpus} GPUs of a pod; {parallelism.remedy}",
        )


_USE_ONE = ("vllm", "sglang")
"""Engines that use one GPU by default."""
_SIZE = regex(r"[$]|config|parallel|-[tpd]p|pcp|size|ray|nnodes")
"""Parts of words that may make such an engine use more than one GPU."""


def nodes(container: ContainerView, _: PodView) -> Iterator[Advice]:
    """Warn of a server that waits for those of other nodes, and whose pod is a server of its own (LK-V-I93)."""
    line = container.line
    for occurrence in line.parsed.all("--nnodes") if container.alone and line.engine is not None else ():
        if occurrence.value.isdecimal() and occurrence.value.lstrip("0") not in ("", "1"):
            message = (
                f"the server waits for {occurrence.value} nodes, and each pod of the service is a server of its own"
            )
            yield advice(line.place(occurrence.at), f"{message}; remove {occurrence.name}, or {container.alone}")


def weights(container: ContainerView, _: PodView) -> Iterator[Advice]:
    """Warn of weights that an engine cannot load, by the name of their repository."""
    model, engine = container.weights, container.line.engine
    if model is None or engine is None:
        return
    if problem := not_loadable(engine.name, model.repository):
        yield advice(model.path, problem)
    if problem := other_method(engine.name, model.repository, model.method):
        yield advice(model.method_path or model.path, problem)


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
    of_pods(service_links, "enableServiceLinks"),
    of_pods(behind_gates, "tolerations", "hostUsers", *_NO_USER_NAMESPACE),
    of_pods(pull_secrets, "imagePullSecrets"),
    useradvice.root,
    useradvice.host_processes,
    each(useradvice.image_user),
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
    each(nodes),
    each(weights),
    each(offline, "env"),
    of_pods(missing_parts, *LISTS),
)
"""The rules, each with the fields that it judges. One that is added here judges the pods of all kinds."""


def advise(pods: Iterable[PodView]) -> Iterator[Advice]:
    """Run every rule over the pods of one object, of whose arguments only the first are compared."""
    views, rest = [], MAX_ARGUMENTS
    for pod in chain.from_iterable(map(_by_branch, pods)):
        count = sum(len(line.arguments) for container in pod.containers for line in container.lines)
        views.append(pod if count <= rest else _cut(pod, rest))
        rest = max(0, rest - count)
    for rule in RULES:
        yield from islice(_once(chain.from_iterable(map(rule, views))), MAX_UNKNOWN_NAMES)


def _once(warnings: Iterable[Advice]) -> Iterator[Advice]:
    previous: set[Advice] = set()
    for warning in warnings:
        if warning not in previous:
            previous.add(warning)
            yield warning


def _by_branch(pod: PodView) -> Iterator[PodView]:
    """Yield the pod with each of the lines of which a script runs one, or as it is."""
    containers = [replace(c, line=c.line.branches[0]) if c.line.branches else c for c in pod.containers]
    yield replace(pod, containers=containers)
    for place, container in enumerate(pod.containers):
        for line in container.line.branches[1:]:
            other = [*containers[:place], replace(container, line=line), *containers[place + 1 :]]
            yield replace(pod, containers=other)


def advise_further(pods: Iterable[PodView], told: Iterable[PodView]) -> Iterator[Advice]:
    """Run every rule over pods that other objects complete, without the advice on the incomplete ones, ``told``."""
    warnings = [*advise(pods)]
    earlier = {*advise(told)} if warnings else ()
    yield from (warning for warning in warnings if warning not in earlier)


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
