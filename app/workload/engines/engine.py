"""The engines that serve models, by image and version, and what their releases accept."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache

import msgspec
from msgspec.structs import replace

from app.kube.field import name_meant, with_hint
from app.kube.regex import regex
from app.kube.spelling import closest_name
from app.workload.address import repository_and_tag
from app.workload.engines.grammar import GRAMMARS, RELEASES, Option, Release, ordered, releases_of
from app.workload.engines.parse import Occurrence, Parsed, Problem, Slip, Variables, is_among, read

NAMES = {"vllm": "vLLM", "sglang": "SGLang", "llamacpp": "llama.cpp", "tgi": "Text Generation Inference"}
PROGRAMS = {name: GRAMMARS[name].program for name in NAMES}
"""The program of each engine, by which a command starts it."""
ADDITIONAL = "VLLM_ADDITIONAL_ARGS"
"""Variable with arguments of vLLM that the scripts of KServe's presets read."""
_LLM_D = "ghcr.io/llm-d/llm-d-cuda"
_REPOSITORIES = {
    _LLM_D: "vllm",
    "vllm/vllm-openai": "vllm",
    "vllm/vllm-openai-rocm": "vllm",
    "lmsysorg/sglang": "sglang",
    "ghcr.io/ggml-org/llama.cpp": "llamacpp",
    "ghcr.io/ggerganov/llama.cpp": "llamacpp",
    "ghcr.io/huggingface/text-generation-inference": "tgi",
}
_VLLM_OF_LLM_D = {"v0.4.0": "0.11.2", "v0.7.0": "0.19.1", "v0.8.0": "0.23.0", "v0.8.1": "0.23.0", "v0.9.0": "0.26.0"}
"""Releases of llm-d's image, with vLLM's in it by llm-d's release notes."""
_TAG = regex(r"(?:server-)?(?:[a-z]+[0-9]*-)?v?([0-9]{1,9}(?:\.[0-9]{1,9})+(?:\.post[0-9]{1,9})?)(?:-[a-z0-9.-]+)?")


class Numbers(msgspec.Struct, frozen=True):
    """The numbers with which an engine can serve, of one option."""

    lowest: int
    highest: float = math.inf
    is_fraction: bool = False
    """The lowest number is excluded."""

    def __contains__(self, number: float) -> bool:
        return self.lowest <= number <= self.highest and not (self.is_fraction and number == self.lowest)

    def __str__(self) -> str:
        if self.is_fraction:
            return f"more than {self.lowest} and at most {self.highest}"
        return f"at least {self.lowest}" if self.highest == math.inf else f"between {self.lowest} and {self.highest}"


_COUNT, _FRACTION = Numbers(1), Numbers(0, 1, is_fraction=True)
_PORT = {"--port": Numbers(1, 65535)}
_NUMBERS = {
    "vllm": {
        **_PORT,
        **dict.fromkeys(("--tensor-parallel-size", "-tp", "--pipeline-parallel-size", "-pp"), _COUNT),
        **dict.fromkeys(("--max-loras", "--max-num-batched-tokens", "--max-num-seqs"), _COUNT),
        "--gpu-memory-utilization": _FRACTION,
        "--max-model-len": Numbers(-1),
        "--sse-keep-alive-interval": Numbers(0),
    },
    "sglang": {
        **_PORT,
        **dict.fromkeys(("--tensor-parallel-size", "--tp-size", "--tp"), _COUNT),
        **dict.fromkeys(("--context-length", "--max-running-requests"), _COUNT),
        "--mem-fraction-static": _FRACTION,
    },
    "llamacpp": {**_PORT, **dict.fromkeys(("--ctx-size", "-c"), Numbers(0))},
    "tgi": {**_PORT, "--num-shard": _COUNT, "--cuda-memory-fraction": _FRACTION},
}
"""Valid numbers of options, which are the same in all releases of the engine."""
_REQUIRED = (
    ("--enable-auto-tool-choice", "--tool-call-parser", True),
    ("--enable-log-outputs", "--enable-log-requests", True),
    ("--lora-modules", "--enable-lora", True),
    ("--tool-call-parser", "--enable-auto-tool-choice", False),
)
"""Options of vLLM, the one that each requires, and whether vLLM ends without that; otherwise it ignores the option."""
_PARSERS = {
    "--tool-call-parser": ("--tool-parser-plugin", "--enable-auto-tool-choice"),
    "--reasoning-parser": ("--reasoning-parser-plugin", "--enable-reasoning"),
}
"""Options of vLLM whose values are case-sensitive, the one whose file adds values, and the switch without which, in
releases that have it, the value is not read."""
_EQUIVALENT = (
    ("--max-model-len", "--context-length", "--ctx-size", "--max-total-tokens"),
    ("--tensor-parallel-size", "--num-shard"),
    ("--max-num-seqs", "--max-running-requests", "--parallel", "--max-concurrent-requests"),
    ("--gpu-memory-utilization", "--mem-fraction-static", "--cuda-memory-fraction"),
    ("--model", "--model-path", "--model-id"),
    ("--served-model-name", "--alias"),
    ("--quantization", "--quantize"),
)
"""Options with the same meaning in different engines."""
_SUCCESSORS = {
    "--speculative-model": "--speculative-config",
    "--num-speculative-tokens": "--speculative-config",
    "--guided-decoding-backend": "--structured-outputs-config",
    "--task": "--runner",
}
"""Options of older releases, and those that have taken their place."""
_MANY = 3
"""Minimum number of catalogued releases for an option that all of them lack to count as unknown."""
_BARE_VERSION = regex(r"[0-9]+\.[0-9]+\.[0-9]+")
_PLAIN_NUMBER = regex(r"[+-]?[0-9]{1,20}(\.[0-9]{0,20})?")
_LONG_OPTION = regex("--[a-z][a-z0-9-]+")


_CATALOGUES = {name: releases_of(name) for name in GRAMMARS}
"""The releases of each engine with their versions, oldest first."""


def _best(readings: Iterator[Parsed]) -> Parsed:
    """Return the first reading with which the engine starts, else the first."""
    first = next(readings)
    return next((reading for reading in itertools.chain([first], readings) if not reading.ends), first)


class Engine(msgspec.Struct, frozen=True):
    """The engine of an image. Between two known releases it accepts what either of them does."""

    name: str
    version: str = ""
    releases: tuple[Release, ...] = ()
    """Empty for an unknown version, of which every option is accepted unless only other engines have it."""
    is_certain: bool = True
    """False if only the preset that the image replaces names the engine."""

    def __str__(self) -> str:
        return f"{NAMES[self.name]} {self.version}".rstrip()

    @property
    def loads_files(self) -> bool:
        """Return whether it loads GGUF files, and no directory."""
        return self.name == "llamacpp"

    def has(self, option: str) -> bool:
        return any(option in release.spellings for release in self.releases)

    def read(self, words: Sequence[str], positionals: int | None = None, variables: Variables = ()) -> Parsed:
        """Read a command line (:func:`~app.workload.engines.parse.read`). A problem is one of each possible release.

        For an unknown version all releases are possible, and newer ones, which have other options and values.
        """
        catalogues = self._catalogues
        if not words and not variables:  # most services have none
            return Parsed(catalogues[-1], ())
        readings = [read(release, words, positionals=positionals, variables=variables) for release in catalogues]
        best = _best(reversed(readings))
        if self.is_certain and len(self.releases) == 1:
            return best
        common = set.intersection(
            *({(problem.at, problem.slip) for problem in reading.problems} for reading in readings)
        )
        problems = [p for p in best.problems if (p.at, p.slip) in common and self._is_sure(p)]
        return replace(best, problems=problems)

    def options_in(self, words: Sequence[str], variables: Variables = ()) -> Parsed:
        """Read a command line for what is given alone; as :meth:`read`, which compares the problems of all releases."""
        return _best(read(release, words, variables=variables) for release in reversed(self._catalogues))

    def _is_sure(self, problem: Problem) -> bool:
        """Report whether a problem that all known releases have is one in the engine's version too."""
        if problem.slip is Slip.STRAY and problem.name.startswith("--model"):
            return True  # no release has two models
        if self.releases or not self.is_certain:
            return self.is_certain
        if problem.slip is Slip.UNKNOWN:
            return bool(self.owners(problem.name) or self.slip_of(problem.name))
        return problem.slip not in (Slip.AMBIGUOUS, Slip.CHOICE, Slip.KEY, Slip.KEY_CHOICE)

    def is_started_by(self, command: Sequence[str]) -> bool:
        """Return whether a container's command starts the engine; without one, the image's does."""
        return not command or any(PROGRAMS[self.name] in word for word in command)

    def option_meant(self, argument: str) -> str:
        """Return the option that an unknown argument misspells, or writes with other dashes; empty for others."""
        option, equals, _ = argument.partition("=")
        dashed = f"--{option.lstrip('-')}" if equals or option[:1] == "-" != option[1:2] else option
        if dashed != option:
            return dashed if self.has(dashed) else ""
        option = _option(argument)
        names = {name for release in self._catalogues for name in release.spellings}
        if option.replace("_", "-") in names:
            return option.replace("_", "-")
        same = (other for group in _EQUIVALENT if option in group for other in group if other in names)
        return closest_name(option.replace("_", "-"), names) or next(same, "")

    def successor_of(self, option: str) -> str:
        """Return the option that has taken the place of one of older releases; empty for others."""
        successor = _SUCCESSORS.get(option.replace("_", "-"), "")
        return successor if successor and self.has(successor) else ""

    def slip_of(self, option: str) -> str:
        """Return the option that another one misspells, for an unknown version of a well-known engine."""
        option = option.replace("_", "-")
        if self.releases or len(_CATALOGUES[self.name]) < _MANY or not _LONG_OPTION.fullmatch(option):
            return ""
        names = _options(self.name)
        close = closest_name(option[2:], [name[2:] for name in names if name[2:4] == option[2:4]])
        return f"--{close}" if close else ""

    @property
    def _catalogues(self) -> Sequence[Release]:
        """The releases; all of the engine if the version is unknown."""
        return self.releases or [release for _, release in _CATALOGUES[self.name]]

    def owners(self, option: str) -> list[str]:
        """Return the other engines that have an option, if this one has neither it nor one that begins with it."""
        option = option.replace("_", "-")
        others = [NAMES[name] for name in NAMES if option in _options(name)] if self.is_certain else []
        is_own = bool(others) and any(name.startswith(option) for name in _options(self.name))
        return [] if is_own else others

    def numbers_instead(self, occurrence: Occurrence, parsed: Parsed) -> str:
        """Return the numbers that an option takes, if its value is another number; else empty."""
        entry = parsed.release.options.get(occurrence.option)
        names = () if entry is None else (occurrence.option, *entry.also)
        numbers = next((_NUMBERS[self.name][name] for name in names if name in _NUMBERS[self.name]), None)
        is_other = (
            numbers is not None and _PLAIN_NUMBER.fullmatch(occurrence.value) and float(occurrence.value) not in numbers
        )
        return str(numbers) if is_other else ""

    def open_options(self, parsed: Parsed) -> set[str]:
        """Return the options that take any value beside the others."""
        return {
            option
            for option, (plugin, switch) in _PARSERS.items()
            if self.name == "vllm" and (parsed.has(plugin) or (self.has(switch) and not parsed.has(switch)))
        }

    def incomplete(self, parsed: Parsed) -> Iterator[tuple[str, str, bool]]:
        """Yield the options without the one that they require, that one, and whether the engine ends without it.

        A configuration file may have any.
        """
        for option, other, ends in _REQUIRED if self.name == "vllm" and not parsed.has("--config") else ():
            if parsed.has(option) and not parsed.has(other) and (not self.releases or self.has(other)):
                yield option, other, ends

    def values(self, option: str) -> tuple[str, ...]:
        """Return the values that an option accepts; none if it accepts any."""
        entries = [entry for release in self.releases if (entry := _entry(release, option)) is not None]
        lists = [entry.values for entry in entries]
        return tuple(dict.fromkeys(value for values in lists for value in values)) if all(lists) else ()

    def metric_problem(self, name: str) -> str:
        """Return why no pod exports a metric with the prefix of an engine; empty for others, and if one may."""
        owner = next((engine for engine, prefix in _METRICS.items() if name.startswith(prefix)), self.name)
        metrics = _metrics(owner)
        if owner != self.name:
            server = f"{self} serves the requests, whose metrics begin with {_METRICS[self.name]}"
            return f"a metric of {NAMES[owner]}, and {server}" if name in metrics else ""
        if not name.startswith(_METRICS[owner]) or name.startswith(tuple(metrics)):
            return ""
        start = len(_METRICS[owner])  # which all names have, so that it says nothing of how near they are
        close = closest_name(name[start:], [metric[start:] for metric in metrics])
        near = (metric for metric, words in metrics.items() if words.issuperset(name.replace(":", "_").split("_")))
        suggestion = f"{name[:start]}{close}" if close else next(near, "")
        return with_hint(f"{self} has no metric of this name", name_meant(suggestion)) if suggestion else ""

    def path_meant(self, path: str, prefix: str = "") -> str:
        """Return the path for probes that another one misspells; empty if another server may serve it.

        ``prefix``: what the server puts in front of all its paths.
        """
        paths = {served for release in self._catalogues for served in release.paths} if self.is_certain else set()
        path = path.removeprefix(prefix)
        return "" if path in paths or not (near := closest_name(path, paths)) else prefix + near

    def default(self, option: str) -> float | None:
        """Return the number that an engine has without an option, by the least of its releases."""
        entries = [_entry(release, option) for release in self._catalogues[-2:]]
        return min((entry.default for entry in entries if entry is not None and entry.default), default=None)

    def accepts(self, option: str, value: str) -> bool:
        entries = [_entry(release, option) for release in self.releases]
        return any(entry is not None and (not entry.values or is_among(value, entry)) for entry in entries)


def _entry(release: Release, option: str) -> Option | None:
    return release.options.get(release.spellings.get(option, ""))


_METRICS = {"vllm": "vllm:", "sglang": "sglang:", "llamacpp": "llamacpp:", "tgi": "tgi_"}
"""The beginnings of the names of an engine's metrics."""


@cache
def _metrics(engine: str) -> Mapping[str, frozenset[str]]:
    """Return the metrics of all releases of an engine with the words of their names, short names first."""
    names = {metric for release in RELEASES if release.engine == engine for metric in release.metrics}
    return {name: frozenset(name.replace(":", "_").split("_")) for name in sorted(names, key=lambda n: (len(n), n))}


@cache
def _options(engine: str) -> frozenset[str]:
    return frozenset(name for release in RELEASES if release.engine == engine for name in release.spellings)


def _option(argument: str) -> str:
    """Return the option of an argument, without a value and a path after a dot."""
    return argument.partition("=")[0].partition(".")[0]


def engine_of(image: str) -> Engine | None:
    """Return the engine of an image; ``None`` for other images, and versions outside of the catalogued ones."""
    repository, tag = repository_and_tag(image)
    name = _REPOSITORIES.get(repository)
    match = _TAG.fullmatch(_VLLM_OF_LLM_D.get(tag, "") if repository == _LLM_D else tag)
    if name is None or match is None:
        return None
    return _of_version(name, match[1])


@lru_cache(maxsize=256)
def _of_version(name: str, text: str) -> Engine | None:
    version = ordered(text)
    below = [release for catalogued, release in _CATALOGUES[name] if catalogued <= version][-1:]
    above = [release for catalogued, release in _CATALOGUES[name] if catalogued >= version][:1]
    releases = below if below == above else below + above
    return Engine(name, text, tuple(releases)) if below and above else None


def tag_meant(image: str) -> str:
    """Return an image of a release whose tag lacks the v with which all of the repository's tags begin; or empty."""
    repository, tag = repository_and_tag(image)
    has_v = repository in ("vllm/vllm-openai", "lmsysorg/sglang") and "@" not in image
    return f"{image.removesuffix(tag)}v{tag}" if has_v and _BARE_VERSION.match(tag) else ""


def engine_named(image: str) -> Engine | None:
    """Return the engine of an image, also of a version that is not catalogued."""
    name = _REPOSITORIES.get(repository_and_tag(image)[0])
    return engine_of(image) or (Engine(name) if name is not None else None)


def engine_of_either(*images: str) -> Engine:
    """Return the engine of catalogued images, of which it has the first's version and accepts what any accepts."""
    engines = [engine for image in images if (engine := engine_of(image)) is not None]
    return replace(engines[0], releases=tuple(release for engine in engines for release in engine.releases))


# What some engines do with options.

BATCH = ("--max-num-seqs", "--max-num-batched-tokens")
"""Options of vLLM: the maximum number of requests in a batch, and of tokens, of which each request has one at least."""


def batch_problem(requests: int | None, tokens: int | None) -> str:
    """Return why vLLM ends with the limits of its batches; empty unless both are known."""
    is_above = requests is not None and tokens is not None and requests > tokens
    return f"vLLM ends with {BATCH[0]} {requests} above {BATCH[1]} {tokens}" if is_above else ""


def path_prefix(arguments: Sequence[str], variables: Variables = ()) -> str:
    """Return the prefix that llama.cpp's paths have by its arguments and variables; empty without one."""
    prefix = Engine("llamacpp").options_in(arguments, variables).value("--api-prefix").rstrip("/")
    return prefix if prefix.startswith("/") else ""


def serves_tls(arguments: Sequence[str], variables: Variables = ()) -> bool:
    """Report whether an engine speaks HTTPS by its arguments and variables."""
    return any(Engine(name).options_in(arguments, variables).gives(*_KEYS) for name in ("vllm", "llamacpp"))


_KEYS = ("--ssl-keyfile", "--ssl-key-file")
"""Options with the key of a certificate: of vLLM and SGLang, and of llama.cpp."""
