"""Extended resources that device plugins offer, by their names.

``devices.csv`` has the names that plugins use; the first that matches counts, and ``*`` matches anything. The last
line of a maker's domain is for names that a plugin takes from hardware, so the domain decides who made a device.
"""

import csv
import re
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib import resources

import msgspec

from app.kube.regex import regex
from app.kube.spelling import closest_name


class Counts(StrEnum):
    """What a resource counts."""

    DEVICES = "devices"
    """Whole devices, over which an engine can split a model."""
    PARTITIONS = "partitions"
    """Parts of devices, or devices of several cores, whose memory is not known."""
    SLICES = "slices"
    """Parts of devices with memory of their own, of which a process can use one."""
    TURNS = "turns"
    """Shares of a device for pods that take turns. Two may be of the same device."""
    FILES = "files"
    """A node's device files, under names that an administrator chose: each may be a GPU."""
    AMOUNT = "amount"
    """The memory or cores of a device."""
    NONE = "none"
    """Nothing that servers compute on."""


class Device(msgspec.Struct, frozen=True):
    name: str
    maker: str
    counts: Counts
    plugin: str
    release: str

    @property
    def is_pattern(self) -> bool:
        return "*" in self.name

    def is_named(self, resource: str) -> bool:
        return fnmatchcase(resource, self.name) if self.is_pattern else resource == self.name


_LONGEST_NAME = 317
"""Length of the longest name of a resource: a domain of 253 characters, a slash, and 63 characters."""
_BY_NAME = regex(r"gpu|tpu|npu|/mig-|gaudi|neuron|ascend|mlu|dcu|/xe|accelerator", re.IGNORECASE)
"""Words for accelerators, in names of domains that the table does not have."""


ONE_EACH = (Counts.SLICES, Counts.TURNS)
"""Of these a process can count on one, however many its pod requests."""


@cache
def devices() -> tuple[Device, ...]:
    text = resources.files(__package__).joinpath("devices.csv").read_text(encoding="utf-8")
    _, *rows = csv.reader(text.splitlines())
    return tuple(Device(name, made_by, Counts(word), plugin, release) for name, made_by, word, plugin, release in rows)


@lru_cache(maxsize=256)
def device(resource: str) -> Device | None:
    """Return what a resource is; ``None`` for one that no known plugin offers."""
    if "/" not in resource or len(resource) > _LONGEST_NAME:
        return None
    return next((entry for entry in devices() if entry.is_named(resource)), None)


def counts(resource: str) -> Counts:
    """Return what a resource counts. ``example.com/gpu`` of an unknown domain counts devices, by its name."""
    entry = device(resource)
    if entry is not None:
        return entry.counts
    if "/" not in resource or not _BY_NAME.search(resource, 0, _LONGEST_NAME):
        return Counts.NONE
    return Counts.DEVICES if resource.endswith("/gpu") else Counts.TURNS


def is_accelerator(resource: str) -> bool:
    """Report whether servers compute on a resource, such as ``amd.com/gpu`` or ``habana.ai/gaudi``."""
    return counts(resource) not in (Counts.NONE, Counts.FILES)


def is_unknown(resource: str) -> bool:
    """Report whether a resource may be an accelerator, as nothing is known of it, or no more than that it is a file."""
    if "/" not in resource or resource.startswith("kubernetes.io/"):
        return False
    return device(resource) is None or counts(resource) is Counts.FILES


def maker(resource: str) -> str:
    """Return who made a device; empty where the name does not tell."""
    entry = device(resource)
    return entry.maker if entry is not None else ""


@cache
def _names() -> dict[str, tuple[str, ...]]:
    """Return the exact names of whole devices, by their domain."""
    exact = [entry.name for entry in devices() if entry.counts is Counts.DEVICES and not entry.is_pattern]
    domains = dict.fromkeys(name.partition("/")[0] for name in exact)
    return {domain: tuple(name for name in exact if name.startswith(f"{domain}/")) for domain in domains}


def device_meant(name: str) -> str:
    """Return the device whose name is misspelt: ``nvidia.com/gpu`` for ``nvidia/gpu`` or ``nvidia.com/gpus``.

    Another letter before a name is another device (``pgpu``, ``vgpu``, ``dpu``), and so is one domain for another.
    """
    entry, (domain, _, rest) = device(name), name.partition("/")
    if entry is not None and not entry.is_pattern:
        return ""
    names = _names().get(domain, ())
    if names:
        near = closest_name(rest, [other.partition("/")[2] for other in names])
        return f"{domain}/{near}" if near and near[0] == rest[:1].lower() else ""
    return _by_words(domain, rest) or ("" if entry else _by_domain(domain, rest))


def _by_words(domain: str, rest: str) -> str:
    """Return the device of which a name has the words, where only one is: ``nvidia/gpu``."""
    words = {*domain.split("."), rest}
    exact = [name for names in _names().values() for name in names]
    alike = [name for name in exact if words <= set(re.split("[./]", name))]
    return alike[0] if len(alike) == 1 else ""


def _by_domain(domain: str, rest: str) -> str:
    near = closest_name(domain, _names())
    return f"{near}/{rest}" if f"{near}/{rest}" in _names().get(near, ()) else ""
