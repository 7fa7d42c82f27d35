"""Warnings about parts of a pod that Kubernetes accepts and that have no effect, or a bad one."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from app.kube import field, objects
from app.kube.embedded.checks import RequiredSince
from app.kube.field import METADATA, Advice, advice, did_you_mean, name_meant, with_hint
from app.kube.quantity import LEAST_MEMORY, is_quantity, missing_unit, parse
from app.kube.regex import regex
from app.kube.spelling import closest_name, nearest
from app.limits import MAX_UNKNOWN_NAMES
from app.workload.devices import Counts, device, device_meant
from app.workload.engines.engine import Engine, serves_tls, tag_meant
from app.workload.engines.parse import Variables
from app.workload.rules.fieldrules import Json, is_port_name
from app.workload.rules.wholepod import LISTS

_OPTION = regex("--?[A-Za-z]")
_REFERENCE = regex(r"\$\$|\$\(([-._a-zA-Z0-9]+)\)")
_SHELL = regex(r"(?<!\$)\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_OF_SERVICES = regex("_SERVICE_(HOST|PORT)|_PORT(_|$)")
_AMOUNT = regex(r"([0-9.]+)([A-Za-z]*)")
"""A quantity without a sign or an exponent: the number and the unit."""
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
_MEDIA = ("Memory", "HugePages")


def duplicate_warnings(variables: Sequence[Json], path: field.Path, runtime: Collection[str]) -> Iterator[Advice]:
    """Warn of repeated names, and of names that the runtime sets too (LK-V-I61)."""
    earlier = set()
    for where, variable in path.each(variables):
        name = variable.get("name")
        if name in earlier:
            yield advice(where, f"{name} is set twice; the last one wins")
        elif name in runtime:
            yield advice(where, f"{name} replaces the value that the runtime's own options set")
        earlier.add(name)


def file_warnings(variables: Sequence[Json], path: field.Path, volumes: Collection[str]) -> Iterator[Advice]:
    """Warn of variables in files of a volume that the pod does not have (LK-V-K07)."""
    for where, variable in path.each(variables):
        file = (variable.get("valueFrom") or {}).get("fileKeyRef")
        if file is not None and file.get("volumeName") not in volumes:
            yield advice(where.child("valueFrom", "fileKeyRef"), "the pod has no volume that provides this file")


def offline_warnings(container: Json, path: field.Path) -> Iterator[Advice]:
    """Warn of a container that gets a model from the hub and may not ask it. ``path`` is the path of its ``env``."""
    for where, variable in path.each(container.get("env") or ()):
        is_offline = (variable or {}).get("name") in _OFFLINE and str(variable.get("value")).lower() in _TRUE
        if is_offline and not container.get("volumeMounts"):
            message = "the container may not ask the hub, and no volume of yours holds the model, so it ends"
            yield advice(where.child("value"), f"{message}; remove {variable['name']}, or mount the model")


_OFFLINE, _TRUE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"), ("1", "on", "yes", "true")
"""The variables that keep the hub's client from asking, and the values that it takes for true."""


def order_warnings(variables: Sequence[Json], path: field.Path, runtime: Collection[str] = ()) -> Iterator[Advice]:
    """Warn of variables whose value refers to a later one, or to themselves; the kubelet leaves such references."""
    names, earlier = {(variable or {}).get("name") for variable in variables}, {*runtime}
    for where, variable in path.each(variables):
        text = (variable or {}).get("value")
        later = [name for name in _references(text or "") if name in names and name not in earlier]
        if later:
            message = f"$({later[0]}) is not replaced: only variables that are set above it are"
            yield advice(where.child("value"), f"{message}; set {later[0]} above, or write its value")
        earlier.add((variable or {}).get("name") or "")


def _references(text: str) -> Iterator[str]:
    """Yield the names of variables that the kubelet replaces; ``$$`` is a dollar sign."""
    return filter(None, (match[1] for match in _REFERENCE.finditer(text)))


def reference_warnings(
    texts: Iterable[tuple[field.Path, str]], names: Collection[str], *, is_whole: bool = False
) -> Iterator[Advice]:
    """Warn of ``$NAME`` where no shell reads it; if ``is_whole``, also of ``$(NAME)`` without such a variable.

    ``is_whole``: ``names`` are all, except those that the kubelet adds, such as ``KUBERNETES_SERVICE_HOST``.
    """
    return islice(_unreplaced(texts, names, is_whole), MAX_UNKNOWN_NAMES)


def _unreplaced(texts: Iterable[tuple[field.Path, str]], names: Collection[str], is_whole: bool) -> Iterator[Advice]:
    """Warn of ``$NAME`` where no shell reads it, and of ``$(NAME)`` without such a variable."""
    for where, text in texts:
        is_variable = _SHELL.fullmatch(text) is not None and text.isupper()
        shell_names = (match[1] or match[2] for match in _SHELL.finditer(text))
        shell = next((name for name in shell_names if is_variable or name in names), "")
        unset = (name for name in _references(text) if name not in names and not _OF_SERVICES.search(name))
        if shell:
            yield advice(where, f"no shell reads it, so that ${shell} is not replaced; write $({shell})")
        elif is_whole and (name := next(unset, "")):
            yield advice(where, f"no variable is named {name}, so that $({name}) is not replaced; add it to env")


def quoted_references(texts: Iterable[tuple[field.Path, str]], names: Collection[str]) -> Iterator[Advice]:
    """Warn of ``$NAME`` that a shell leaves in the words of its script, as it does between single quotes."""
    for where, text in texts:
        if name := next((name for match in _SHELL.finditer(text) if (name := match[1] or match[2]) in names), ""):
            yield advice(where, f"the quotes keep the shell from replacing ${name}; write $({name})")


def probe_port_warnings(value: Json, path: field.Path, name: str, number: int | None) -> Iterator[Advice]:
    """Warn about probes of another port than the container's (LK-V-K14)."""
    for key in ("httpGet", "tcpSocket", "grpc"):
        port, where = (value.get(key) or {}).get("port"), path.child(key, "port")
        if isinstance(port, str) and is_port_name(port) and port != name:
            yield advice(where, f"the container's port is called {name}, not {port}")
        elif isinstance(port, int) and port != (number or port):
            yield advice(where, f"the server listens on port {number}, not {port}")


def path_warnings(probe: Json, path: field.Path, engine: Engine | None, prefix: str = "") -> Iterator[Advice]:
    """Warn of a probe of a path that the engine answers with 404. ``prefix``: what all its paths begin with."""
    where, written = path.child("httpGet", "path"), (probe.get("httpGet") or {}).get("path") or ""
    if engine is None:
        return
    plain = written.removeprefix(prefix)
    suggestion = engine.path_meant(plain) or (plain if plain in ("/health", "/metrics") else "")
    if suggestion and f"{prefix}{suggestion}" != written:
        message = f"{engine} does not serve {written}, so the probe never succeeds"
        yield advice(where, with_hint(message, did_you_mean(f"{prefix}{suggestion}")))


def speaks_http(probe: Json) -> bool:
    """Report whether a probe asks over HTTP without TLS."""
    request = probe.get("httpGet")
    return bool(request) and (request or {}).get("scheme") in (None, "", "HTTP")


def scheme_warnings(probe: Json, path: field.Path, words: Sequence[str], variables: Variables = ()) -> Iterator[Advice]:
    """Warn of a probe of an engine that speaks the other of HTTP and HTTPS. ``words``: its arguments and variables."""
    is_https = (probe.get("httpGet") or {}).get("scheme") == "HTTPS"
    if speaks_http(probe) and serves_tls(words, variables):
        message = "the server speaks HTTPS, so the probe never succeeds; set scheme to HTTPS"
        yield advice(path.child("httpGet"), message)
    elif is_https and not any(name in word.lower() for word in [*words, *dict(variables)] for name in ("ssl", "tls")):
        message = "the server speaks HTTP, so the probe never succeeds; remove scheme"
        yield advice(path.child("httpGet", "scheme"), message)


def handler_warnings(handler: Json, path: field.Path) -> Iterator[Advice]:
    """Warn of a command in one item, and of an address where the kubelet finds no container (LK-V-K41)."""
    yield from command_warnings((handler.get("exec") or {}).get("command") or (), path.child("exec", "command"))
    for key in ("httpGet", "tcpSocket"):
        host = (handler.get(key) or {}).get("host") or ""
        if _is_loopback(host) or host == "0.0.0.0":  # noqa: S104 - an address that is warned of
            message = f"the kubelet connects from the node, where {host} is the node itself; remove host"
            yield advice(path.child(key, "host"), message)


def command_warnings(command: Sequence[str], path: field.Path) -> Iterator[Advice]:
    """Warn of a program and its arguments in one item, which is the program of that whole name."""
    if command and not command[0].strip():
        yield advice(path.index(0), "no program has an empty name; write the program, or remove command")
    elif command and " " in command[0].strip() and "{{" not in command[0]:
        words = field.as_json(command[0].split())
        yield advice(path.index(0), f"no program has this name: write the program and its arguments as items: {words}")


def address_warnings(address: str, path: field.Path) -> Iterator[Advice]:
    """Warn of a server's address that neither the kubelet nor the Service reaches."""
    if _is_loopback(address):
        message = "only the container itself reaches a loopback address: probes fail and the pods never become ready"
        yield advice(path, message)


def _is_loopback(address: str) -> bool:
    return address in ("localhost", "::1") or address.startswith("127.")


def tag_warnings(image: str, path: field.Path, *, is_version: bool) -> Iterator[Advice]:
    """Warn of a release of an engine without the v of its tags. ``is_version``: a separate field has the tag."""
    if corrected := tag_meant(image):
        hint = did_you_mean(corrected.rpartition(":")[2] if is_version else corrected)
        yield advice(path, with_hint("no image has this tag", hint))


def port_warnings(pod: Json, path: field.Path) -> Iterator[Advice]:
    """Warn of containers that listen on one port, which only one of them can have."""
    earlier: dict[tuple[object, object], object] = {}
    for container_path, container in path.child("containers").each(pod.get("containers") or ()):
        for where, port in container_path.child("ports").each((container or {}).get("ports") or ()):
            key = ((port or {}).get("containerPort"), (port or {}).get("protocol") or "TCP")
            owner = earlier.setdefault(key, container.get("name"))
            if owner != container.get("name"):
                yield advice(where.child("containerPort"), f"container {owner} of the pod has port {key[0]} already")


def port_name_warnings(probe: Json, path: field.Path, names: Collection[str]) -> Iterator[Advice]:
    """Warn of a probe of a port by a name that the container, which nothing is merged with, gives to none."""
    for key in ("httpGet", "tcpSocket"):
        port = (probe.get(key) or {}).get("port")
        if isinstance(port, str) and is_port_name(port) and port not in names:
            message = f"no port of the container has the name {port}, so the probe never succeeds"
            yield advice(path.child(key, "port"), f"{message}; write its number")


def unnamed_image(volume: Json, path: field.Path) -> Iterator[RequiredSince]:
    if volume.get("image") is not None and not volume["image"].get("reference"):
        message = "no pod can be created without the name of the image"
        yield RequiredSince.of("1.37", path.child("image", "reference"), message)


def volume_warnings(volumes: Sequence[Json], path: field.Path, mounted: Collection[str]) -> Iterator[Advice]:
    """Warn of volumes that no container mounts, of images without a name, and of media that no kubelet knows."""
    for where, volume in path.each(volumes):
        name, medium = volume.get("name") or "", (volume.get("emptyDir") or {}).get("medium") or "Memory"
        if name not in mounted and "$patch" not in volume:
            yield advice(where, f"no container mounts volume {name}; add it to the container's volumeMounts")
        yield from unnamed_image(volume, where)
        if str(size := (volume.get("emptyDir") or {}).get("sizeLimit")).isdecimal():
            yield from amount_warnings({"sizeLimit": size}, where.child("emptyDir"))
        if medium != "Memory" and not medium.startswith("HugePages"):
            message = f"the kubelet does not know {field.go_quote(medium)}, so the pods cannot start"
            yield advice(where.child("emptyDir", "medium"), with_hint(message, name_meant(nearest(medium, _MEDIA))))


def volumes_used(pod: Json) -> set[str]:
    """Return the names of the volumes that containers of a pod use."""
    containers = [item for name in LISTS for item in pod.get(name) or () if item]
    mounts = [
        mount for name in ("volumeMounts", "volumeDevices") for item in containers for mount in item.get(name) or ()
    ]
    variables = [variable for item in containers for variable in item.get("env") or () if variable]
    files = [(variable.get("valueFrom") or {}).get("fileKeyRef") or {} for variable in variables]
    return {mount.get("name") or "" for mount in mounts if mount} | {file.get("volumeName") or "" for file in files}


def annotation_warnings(metadata: objects.ObservedMeta, known: Mapping[str, Collection[str]]) -> Iterator[Advice]:
    """Warn of misspelt annotations, and of values without effect. The ``known`` values have one, but for ``false``."""
    for key, value in (metadata.annotations or {}).items():
        where, suggestion = METADATA.child("annotations").key(key), closest_name(key, known)
        if key not in known and suggestion:
            yield Advice(with_hint(f"{where}: has no effect", name_meant(suggestion)), where, "no-effect")
        elif key in known and value not in known[key]:
            effective = (item for item in known[key] if item.lower() != "false")
            only = [field.go_quote(item) for item in {item.lower(): item for item in effective}.values()]
            have = f"only {' and '.join(only)} {'have' if only[1:] else 'has'} one"
            yield advice(where, f"{field.go_quote(value)} has no effect; {have}", "no-effect")


def one_of_several(resource: str, count: object) -> str:
    """Return the warning of several parts of GPUs, of which a server uses one; empty for whole GPUs."""
    entry = device(resource)
    if entry is not None and entry.counts is Counts.SLICES:
        return f"a server uses 1 of {count} slices of GPUs; request 1, of a larger profile"
    if entry is not None and entry.counts is Counts.TURNS and entry.plugin.startswith(_TIME_SLICING):
        return f"{count} turns may be of one GPU, and MPS refuses a pod with more than 1; request 1"
    return ""


_TIME_SLICING = "NVIDIA k8s-device-plugin"


def amount_warnings(amounts: Mapping[str, object], path: field.Path) -> Iterator[Advice]:
    """Warn of misspelt devices, and of units that are wrong: more CPUs than a node has, or less than 1Mi of memory."""
    for name, amount in amounts.items():
        suggestion = device_meant(name) if "/" in name else ""
        if suggestion:
            yield advice(path.member(name), with_hint("no known device has this name", name_meant(suggestion)))
        text = str(amount)
        if is_quantity(text) and parse(text) > 1 and (message := one_of_several(name, text)):
            yield advice(path.member(name), message)
        words = _AMOUNT.fullmatch(text)
        if words is None or "/" in name or not is_quantity(text):
            continue
        value, number, unit = parse(text), words[1], words[2]
        if name == "cpu" and value >= 2000:  # no node has as many
            hint = did_you_mean(f"{number}m")
            yield advice(path.member(name), with_hint(f"{text} is {value:f} CPUs", hint))
        elif name.lower().endswith(("memory", "storage", "size", "limit")) and 0 < value < LEAST_MEMORY:
            guesses = (f"{number}M", f"{number}Mi") if unit else (f"{number}{missing_unit(number)}",)
            message = with_hint(f"{text} is {value.normalize():f} bytes", did_you_mean(*guesses))
            yield advice(path.member(name), message)
