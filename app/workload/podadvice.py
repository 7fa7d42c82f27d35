"""Warnings about parts of a pod that Kubernetes accepts and that have no effect, or a bad one."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from app.kube import field
from app.kube.correction import closest_name
from app.kube.field import Advice, advice, did_you_mean, name_meant, with_hint
from app.kube.quantity import LEAST_MEMORY, is_quantity, missing_unit, parse
from app.workload.fieldrules import Json, is_port_name

_TWO_WORDS = re.compile(r"(--?[A-Za-z][\w.-]*)\s+(\S.*)", re.DOTALL)
_DEVICES = (
    "amd.com/gpu",
    "google.com/tpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "habana.ai/gaudi",
    "nvidia.com/gpu",
    "nvidia.com/vgpu",
)
_AMOUNT = re.compile(r"([0-9.]+)([A-Za-z]*)")
"""A quantity without a sign or an exponent: the number and the unit."""


def env_warnings(
    variables: Sequence[Json], path: field.Path, runtime: Collection[str] = (), volumes: Collection[str] = ()
) -> Iterator[Advice]:
    """Warn about repeated names, names that the runtime sets too, and files without a volume (LK-V-I61, LK-V-K07)."""
    earlier = set()
    for where, variable in path.each(variables):
        name = variable.get("name")
        if name in earlier:
            yield advice(where, f"{name} is set twice; the last one wins")
        elif name in runtime:
            yield advice(where, f"{name} replaces the value that the runtime's own options set")
        earlier.add(name)
        file = (variable.get("valueFrom") or {}).get("fileKeyRef")
        if file is not None and file.get("volumeName") not in volumes:
            yield advice(where.child("valueFrom", "fileKeyRef"), "the pod has no volume that provides this file")


def probe_warnings(value: Json, path: field.Path, ports: Collection[str]) -> Iterator[Advice]:
    """Warn about ports that the container does not name: their probes never succeed (LK-V-K14)."""
    for key in ("httpGet", "tcpSocket"):
        port = (value.get(key) or {}).get("port")
        if isinstance(port, str) and is_port_name(port) and port not in ports:
            message = f"the container's port is called {', '.join(sorted(ports))}, not {port}"
            yield advice(path.child(key, "port"), message)


def security_warnings(pod: Json, container: Json, pod_path: field.Path, container_path: field.Path) -> Iterator[Advice]:
    """Warn about settings that the API server accepts and the kubelet refuses (LK-V-K24, LK-V-K25)."""
    user = container.get("runAsUser") if container.get("runAsUser") is not None else pod.get("runAsUser")
    strict = container.get("runAsNonRoot") if container.get("runAsNonRoot") is not None else pod.get("runAsNonRoot")
    if strict and user == 0:
        where = container_path if container.get("runAsUser") is not None else pod_path
        yield advice(where.child("runAsUser"), "0 contradicts runAsNonRoot: the container will not start")
    for value, path in ((pod, pod_path), (container, container_path)):
        if (value.get("windowsOptions") or {}).get("hostProcess"):
            message = "needs the node's network, which the pod does not have"
            yield advice(path.child("windowsOptions", "hostProcess"), message)


def argument_warnings(arguments: Sequence[str], path: field.Path) -> Iterator[Advice]:
    """Warn of an option and its value in one item, which a server takes for an option of that whole name."""
    for where, argument in path.each(arguments):
        if words := _TWO_WORDS.fullmatch(argument):
            items = f"{field.go_quote(words[1])}, {field.go_quote(words[2])}"
            yield advice(where, f"an option and its value are two items: write {items}")


def resource_warnings(container: Json, path: field.Path) -> Iterator[Advice]:
    """Warn of wrong units in the requests and limits of a container."""
    for kind, amounts in (container.get("resources") or {}).items():
        if isinstance(amounts, dict):
            yield from amount_warnings(amounts, path.child("resources", kind))


def amount_warnings(amounts: Mapping[str, object], path: field.Path) -> Iterator[Advice]:
    """Warn of misspelt devices, and of units that are wrong: more CPUs than a node has, or less than 1Mi of memory."""
    for name, amount in amounts.items():
        meant = closest_name(name, _DEVICES) if "/" in name and name not in _DEVICES else ""
        if meant:
            yield advice(path.member(name), with_hint("no known device has this name", name_meant(meant)))
        text = str(amount)
        words = _AMOUNT.fullmatch(text)
        if words is None or "/" in name or not is_quantity(text):
            continue
        value, number, unit = parse(text), words[1], words[2]
        if name == "cpu" and value >= 2000:  # no node has as many
            hint = did_you_mean(f"{number}m")
            yield advice(path.member(name), with_hint(f"{text} is {value:f} CPUs", hint))
        elif name != "cpu" and 0 < value < LEAST_MEMORY:
            guesses = (f"{number}M", f"{number}Mi") if unit else (f"{number}{missing_unit(number)}",)
            message = with_hint(f"{text} is {value.normalize():f} bytes", did_you_mean(*guesses))
            yield advice(path.member(name), message)
