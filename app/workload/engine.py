"""The engines that serve models, with the options that each known release accepts.

The releases are the files in ``engines/``, which ``python -m tools.engines`` writes from the engines' publications.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from operator import itemgetter

import msgspec

from app.kube.correction import closest_name

NAMES = {"vllm": "vLLM", "sglang": "SGLang", "llamacpp": "llama.cpp", "tgi": "Text Generation Inference"}
PROGRAMS = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama-server", "tgi": "text-generation-launcher"}
"""The program of each engine, by which a command starts it."""
_REPOSITORIES = {
    "vllm/vllm-openai": "vllm",
    "vllm/vllm-openai-rocm": "vllm",
    "lmsysorg/sglang": "sglang",
    "ghcr.io/ggml-org/llama.cpp": "llamacpp",
    "ghcr.io/ggerganov/llama.cpp": "llamacpp",
    "ghcr.io/huggingface/text-generation-inference": "tgi",
}
_TAG = re.compile(r"(?:server-)?(?:[a-z]+[0-9]*-)?v?([0-9]+(?:\.[0-9]+)+(?:\.post[0-9]+)?)(?:-[a-z0-9.-]+)?")

_NUMBER = re.compile("[0-9]+")
_LONG_OPTION = re.compile("--[a-z][a-z0-9-]+")


class Release(msgspec.Struct, frozen=True):
    engine: str
    version: str
    source: str
    options: Mapping[str, tuple[str, ...]]
    """The options of its command line, each with the values that it takes; none for any value."""
    metrics: frozenset[str]
    paths: frozenset[str]


_FILES = resources.files("app.workload").joinpath("engines").iterdir()
RELEASES = tuple(msgspec.json.decode(f.read_bytes(), type=Release) for f in _FILES if f.name.endswith(".json"))


def _ordered(version: str) -> tuple[int, ...]:
    return tuple(map(int, _NUMBER.findall(version)))


_CATALOGUES = {
    name: sorted(((_ordered(r.version), r) for r in RELEASES if r.engine == name), key=itemgetter(0)) for name in NAMES
}
"""The releases of each engine with their versions, oldest first."""


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine of an image. Between two known releases it accepts what either of them does."""

    name: str
    version: str
    releases: tuple[Release, ...]

    def __str__(self) -> str:
        return f"{NAMES[self.name]} {self.version}"

    def has(self, option: str) -> bool:
        return any(option in release.options for release in self.releases)

    def knows(self, argument: str) -> bool:
        """Return False for an argument that is a long option of none of the releases, nor the beginning of one.

        Spellings that parsers derive are known as well: underscores, ``--no-``, and a path after a dot.
        """
        option = argument.partition("=")[0].partition(".")[0].replace("_", "-")
        if not _LONG_OPTION.fullmatch(option):
            return True
        positive = option.replace("--no-", "--", 1)
        return any(name.startswith((option, positive)) for release in self.releases for name in release.options)

    def is_started_by(self, command: Sequence[str]) -> bool:
        """Return whether a container's command starts the engine; without one, the image's does."""
        return not command or any(PROGRAMS[self.name] in word for word in command)

    def option_meant(self, argument: str) -> str:
        """Return the option that an argument is within a typing error of, or but for its dashes; empty for others."""
        option, equals, _ = argument.partition("=")
        dashed = f"--{option.lstrip('-')}" if equals or option[:1] == "-" != option[1:2] else option
        if dashed != option:
            return dashed if self.has(dashed) and not self.has(option) else ""
        names = {name for release in self.releases for name in release.options}
        return "" if self.knows(argument) else closest_name(option, names)

    def values(self, option: str) -> tuple[str, ...]:
        """Return the values that an option accepts; none if it accepts any."""
        lists = [release.options[option] for release in self.releases if option in release.options]
        return tuple(dict.fromkeys(value for values in lists for value in values)) if all(lists) else ()

    def accepts(self, option: str, value: str) -> bool:
        values = self.values(option)
        return self.has(option) and (not values or value in values)


def engine_of(image: str) -> Engine | None:
    """Return the engine of an image; ``None`` for other images, and versions outside of the catalogued ones."""
    repository, _, tag = image.partition("@")[0].removeprefix("docker.io/").partition(":")
    name, match = _REPOSITORIES.get(repository), _TAG.fullmatch(tag)
    if name is None or match is None:
        return None
    version = _ordered(match[1])
    below = [release for catalogued, release in _CATALOGUES[name] if catalogued <= version][-1:]
    above = [release for catalogued, release in _CATALOGUES[name] if catalogued >= version][:1]
    return Engine(name, match[1], (*below, *above)) if below and above else None
