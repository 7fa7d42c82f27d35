"""The releases of engines, the options of each, and how its parser reads a command line.

The releases are the JSON files in ``releases/``, which ``python -m tools.engines`` writes from the engines'
publications. :data:`GRAMMARS` has what is the same in all releases of an engine.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import takewhile
from operator import itemgetter
from typing import Literal

import msgspec
from msgspec.structs import force_setattr

from app.kube.regex import regex

Kind = Literal[
    "text",
    "form",
    "switch",
    "boolean",
    "integer",
    "number",
    "size",
    "size-or-auto",
    "size-si",
    "json",
    "object",
    "object-sizes",
    "text-or-json",
    "pair-or-json",
]


_SIZES = ("size", "size-or-auto", "size-si")


class Option(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    also: tuple[str, ...] = ()
    """Its other spellings."""
    off: tuple[str, ...] = ()
    """The spellings that switch it off."""
    type: Kind = "text"
    """``size`` reads 32k and 32K, ``size-si`` 32k and 32Ki, ``object`` JSON; the engine alone knows which text is of a
    ``form``."""
    count: str = ""
    """How many values it takes, as argparse calls it: ``?`` none or one, ``+`` and ``*`` several; empty for one."""
    repeats: bool = False
    """It may be written several times, for an engine that ends with other options written twice."""
    optional: bool = False
    """The empty string and ``None`` stand for no value."""
    values: tuple[str, ...] = ()
    """All values that it takes; empty for any of its type."""
    folds: bool = False
    """Case, and a dash or an underscore, do not count in ``values``."""
    default: float | None = None
    """The number without the option, of those that take one with a fraction."""
    words: tuple[str, ...] = ()
    """Words that it takes instead of a number."""
    keys: tuple[str, ...] = ()
    """All keys of its object; empty for any."""
    choices: Mapping[str, tuple[str, ...]] = {}
    """All values of a key of its object, of those that have a list of them."""
    variable: str = ""
    """The environment variable that gives its value where no word does; empty if none does."""

    @property
    def is_whole(self) -> bool:
        """Report whether its value is a whole number, be it one with a unit."""
        return self.type == "integer" or self.type in _SIZES

    @property
    def is_number(self) -> bool:
        return self.type == "number" or self.is_whole


class Grammar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    dashes: bool = False
    """It reads an underscore in the name of an option as a dash."""
    prefixes: bool = False
    """It reads the beginning of one option's name as that option."""
    dotted: bool = False
    """It reads ``--option.key value`` as an object, which replaces what the option has elsewhere."""
    repeats: bool = True
    """Of an option that is written twice the last one counts; else the engine ends."""
    assigns: bool = True
    """It reads ``--option=value``."""
    takes_any: bool = False
    """It takes the next word as the value even if that begins with a dash."""
    numbers: Literal["python", "digits", "leading"] = "python"
    """Which words are numbers: Python's, Rust's, or those that begin with digits, of which the rest is not read."""
    positionals: int = 0
    """How many words it takes that belong to no option."""
    opens: bool = False
    """It reads the file of ``--config`` if that is a word of its own."""
    program: str = ""
    """The program by which a command starts it."""
    starts: tuple[str, ...] = ()
    """All the words by which a command starts it; ``python`` stands for any version of it."""
    on: tuple[str, ...] = ()
    """The values of a variable that switch an option on."""
    off: tuple[str, ...] = ()
    """Those that leave it off. The engine ends with others, unless nothing else switches the option off."""
    negates: tuple[str, str] = ("", "")
    """The beginning of a variable, and the one that switches its option off instead, whatever the value."""


_FOLDER = resources.files(__package__)
GRAMMARS = {
    "vllm": Grammar(  # argparse, with a parser class of its own
        dashes=True,
        prefixes=True,
        dotted=True,
        opens=True,
        positionals=1,
        program="vllm",
        starts=(
            "vllm serve",
            "python -m vllm.entrypoints.openai.api_server",
            "python -m vllm.entrypoints.cli.main serve",
        ),
    ),
    "sglang": Grammar(  # argparse
        prefixes=True, opens=True, program="sglang", starts=("python -m sglang.launch_server", "sglang serve")
    ),
    "llamacpp": Grammar(  # its own loop over the words
        dashes=True,
        assigns=False,
        takes_any=True,
        numbers="leading",
        on=("on", "enabled", "true", "1"),
        off=("off", "disabled", "false", "0"),
        negates=("LLAMA_ARG_", "LLAMA_ARG_NO_"),
        program="llama-server",
        starts=("llama-server",),
    ),
    "tgi": Grammar(  # clap
        repeats=False,
        numbers="digits",
        on=("true",),
        off=("false",),
        program="text-generation-launcher",
        starts=("text-generation-launcher",),
    ),
    "personaplex": Grammar(prefixes=True),  # argparse
}
"""How each engine's parser reads a command line, beside what the catalogues say of its options. Compared with the
parsers themselves by ``make engines-check``."""


class Release(msgspec.Struct, frozen=True):
    engine: str
    version: str
    source: str
    options: Mapping[str, Option]
    """The options of its command line, each by one of its spellings."""
    metrics: frozenset[str]
    paths: frozenset[str]
    spellings: Mapping[str, str] = {}
    """The options by all their spellings."""
    names: Sequence[str] = ()
    """The spellings, sorted."""
    variables: Mapping[str, str] = {}
    """The options by their environment variables."""
    negatives: Mapping[str, str] = {}
    """The options by the variables that switch them off."""

    def __post_init__(self) -> None:
        spelled = {name: option for option, entry in self.options.items() for name in (*entry.also, *entry.off)}
        force_setattr(self, "spellings", {**spelled, **{name: name for name in self.options}})
        force_setattr(self, "names", sorted(self.spellings))
        named = {entry.variable: option for option, entry in self.options.items() if entry.variable}
        force_setattr(self, "variables", named)
        usual, negative = GRAMMARS[self.engine].negates
        switches = {name: option for name, option in named.items() if self.options[option].off}
        off = {name.replace(usual, negative, 1): option for name, option in switches.items() if negative}
        force_setattr(self, "negatives", off)

    def beginning_with(self, prefix: str) -> list[str]:
        """Return the spellings that begin with a prefix."""
        start = bisect_left(self.names, prefix)
        return list(takewhile(lambda name: name.startswith(prefix), self.names[start:]))


RELEASES = tuple(
    msgspec.json.decode(file.read_bytes(), type=Release)
    for file in _FOLDER.joinpath("releases").iterdir()
    if file.name.endswith(".json")
)
_NUMBER = regex("[0-9]+")


def ordered(version: str) -> tuple[int, ...]:
    return tuple(map(int, _NUMBER.findall(version)))


def releases_of(engine: str) -> list[tuple[tuple[int, ...], Release]]:
    """Return the releases of an engine with their versions, oldest first."""
    return sorted(((ordered(r.version), r) for r in RELEASES if r.engine == engine), key=itemgetter(0))
