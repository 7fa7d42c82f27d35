"""The command line that starts the server of a container, as far as it can be read from the container."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from app.kube.base import Json
from app.kube.field import Path
from app.kube.regex import regex
from app.workload.engines import shell
from app.workload.engines.engine import ADDITIONAL, Engine, engine_named
from app.workload.engines.grammar import GRAMMARS
from app.workload.engines.parse import Occurrence, Parsed, Variables

_SCRIPT_FOLLOWS = regex(r"-[a-z]*c")
_SHELL = regex(r"(?:.*/)?(?:ba|da|z|a)?sh")
_PYTHON = regex(r"(?:.*/)?python[0-9.]*")


class Started(NamedTuple):
    """An engine that a script starts."""

    name: str
    start: int
    """The position of its first argument."""
    run: shell.ShellCommand
    settings: Mapping[str, str | None]
    """The variables that the script hands to it, beside those of the container; ``None`` for any value."""


class CommandLine(msgspec.Struct, frozen=True, dict=True):
    arguments: Sequence[str]
    path: Path
    """The place of the arguments."""
    engine: Engine | None = None
    """The engine that is started; ``None`` for another program, or an unknown one."""
    words: Sequence[str] = ()
    """Everything that the engine, or the script that starts it, is given."""
    passes: bool = True
    """The arguments reach the program: no shell takes them as its script."""
    is_read: bool = False
    """A shell reads the arguments again, so that it splits them into words and replaces variables."""
    positionals: int | None = None
    """The number of words without an option that the engine still takes; ``None`` where that is not known."""
    variables: Variables = ()
    """The environment of the program, in the order of its container's ``env``."""
    env: Path | None = None
    """The place of the environment; ``None`` without variables."""
    places: Sequence[Path] = ()
    """The places of the arguments that a script has; none where they are items of ``path``."""
    is_open: bool = False
    """There may be other arguments, which only the running script knows."""
    inherited: int | None = None
    """The number of variables that the container has, where its script sets those behind them."""
    branches: Sequence["CommandLine"] = ()
    """The lines of a script that starts one of several; ``arguments`` has what all of them have."""

    @cached_property
    def parsed(self) -> Parsed:
        """The arguments and variables as the engine reads them; as vLLM does where that is not known."""
        return (self.engine or _UNKNOWN).read(self.arguments, self.positionals, self.variables)

    def place(self, at: int) -> Path:
        """Return the place of a word, or of a variable."""
        if at >= 0:
            return self.places[at] if self.places else self.path.index(at)
        if self.inherited is not None and -1 - at >= self.inherited:
            return self.path
        return (self.env or self.path).index(-1 - at).child("value")

    def each(self) -> Iterator[tuple[Path, str]]:
        """Yield the arguments with their places."""
        return ((self.place(at), argument) for at, argument in enumerate(self.arguments))

    def written(self, at: int) -> str:
        """Return a word, or a variable with its value."""
        return self.arguments[at] if at >= 0 else "=".join(self.variables[-1 - at])

    def beside(
        self, arguments: Sequence[str], env: Iterable[Json | None] | None, path: Path, words: Sequence[str] = ()
    ) -> "CommandLine":
        """Return the line with the variables whose options none of all ``arguments`` of the program has."""
        engine = self.engine or _UNKNOWN
        parsed = engine.options_in(arguments)
        without = {name for name, option in parsed.release.variables.items() if parsed.gives(option)}
        container_variables = [*variables_of(env)]
        script_variables = () if self.inherited is None else self.variables[self.inherited :]
        names = without.union(name for name, _ in script_variables)
        variables = [*(("", "") if item[0] in names else item for item in container_variables), *script_variables]
        inherited = None if self.inherited is None else len(container_variables)
        branches = [branch.beside(arguments, env, path, words) for branch in self.branches]
        return replace(
            self, variables=variables, env=path, words=words or self.words, inherited=inherited, branches=branches
        )

    def numbers(self, option: str) -> Iterator[tuple[Occurrence, int]]:
        """Yield an option with its whole number, each time that it is written."""
        for occurrence in self.parsed.all(option):
            if occurrence.value.isdecimal() and len(occurrence.value) < _LONGEST:
                yield occurrence, int(occurrence.value)

    @property
    def takes_model(self) -> bool:
        """Report whether the program takes a word without an option for the model, even if an option names one."""
        return self.engine is not None and self.engine.name == "vllm" and any("api_server" in w for w in self.words)


_LONGEST = 20
_UNKNOWN = Engine("vllm", is_certain=False)


def command_line(container: Json, path: Path) -> CommandLine:
    """Read the command line of a container with which nothing is merged."""
    script = script_line(container, path)
    if script is not None:
        return script
    engine, command = engine_named(container.get("image") or ""), container.get("command") or ()
    return CommandLine(
        container.get("args") or (),
        path.child("args"),
        engine if engine is not None and engine.is_started_by(command) else None,
        words(container),
        passes_arguments(container),
        evaluates(container),
        variables=variables_of(container.get("env")),
        env=path.child("env"),
    )


def script_line(container: Mapping[str, Any], path: Path, fields: Mapping[str, Path] = {}) -> CommandLine | None:
    """Read the command line of the engine that a container's script starts; ``None`` without one, or for several.

    ``fields``: the places of fields that are not in ``path``.
    """
    parts = [(name, container.get(name) or ()) for name in ("command", "args")]
    words = [str(word) for _, part in parts for word in part]
    place = script_place(words)
    if place is None:
        return None
    variables = variables_of(container.get("env"))
    values = {name: None if value == _ELSEWHERE else value for name, value in variables}
    started = _starts(words[place], tuple(values.items()), tuple(words[place + 1 :]))
    if not 0 < len(started) <= _BRANCHES or len({start.name for start in started}) > 1 or not _is_one_of(started):
        return None
    places = [where for name, part in parts for where, _ in (fields.get(name) or path.child(name)).each(part)]
    lines = []
    for name, start, run, settings in started:
        image, arguments = engine_named(container.get("image") or ""), run.words[start:]
        engine = image if image is not None and image.name == name else Engine(name)
        has_more = run.is_open or _may_have_options(engine, arguments)
        line = CommandLine(
            arguments,
            places[place],
            engine,
            run.words,
            positionals=None if has_more else GRAMMARS[name].positionals,
            variables=_with_settings(variables, settings),
            env=fields.get("env") or path.child("env"),
            places=_argument_places(arguments, places[place], words[place + 2 :], places[place + 2 :]),
            is_open=has_more,
            inherited=len(variables),
        )
        lines += [line] if line not in lines else []
    return lines[0] if len(lines) == 1 else _common(lines)


@lru_cache(maxsize=16)
def _starts(script: str, variables: Sequence[tuple[str, str | None]], arguments: Sequence[str]) -> Sequence[Started]:
    """Return what a script starts. Many objects have the script of one preset, which is long."""
    return [*_reached(_started(script, dict(variables), arguments))]


_BRANCHES = 8
"""Branches of a script up to which each is judged."""


def _reached(started: Iterable[Started]) -> Iterator[Started]:
    """Yield what is started up to what always takes the place of the shell."""
    for start in started:
        yield start
        if start.run.is_last and not start.run.may_not_run:
            return


def _is_one_of(started: Sequence[Started]) -> bool:
    """Report whether each run of the script starts at most one of them."""
    return all(first.run.excludes(later.run) for at, first in enumerate(started) for later in started[at + 1 :])


def _with_settings(variables: Variables, settings: Mapping[str, str | None]) -> Variables:
    """Return the variables of a container, and behind them those that its script sets."""
    inherited = [("", "") if item[0] in settings else item for item in variables]
    return [*inherited, *((name, f"$({name})" if value is None else value) for name, value in settings.items())]


def _common(lines: Sequence[CommandLine]) -> CommandLine:
    """Return a line with what all have, which may have more: the options and variables of the same values."""
    first, readings = lines[0], [line.parsed for line in lines]
    strays = [[line.arguments[at] for at in reading.strays] for line, reading in zip(lines, readings, strict=True)]
    positions = [*readings[0].strays] if all(words == strays[0] for words in strays) else []
    for occurrence in readings[0].occurrences:
        values = [[(other.values, other.is_on, other.keys) for other in r.all(occurrence.name)] for r in readings]
        if occurrence.at >= 0 and occurrence.option and all(written == values[0] for written in values):
            positions += range(occurrence.at, occurrence.at + occurrence.width)
    common = sorted({at for at in positions if at < len(first.arguments)})
    arguments, inherited = [first.arguments[at] for at in common], first.inherited or 0
    environments = [dict(line.variables) for line in lines]
    names = {name: None for line in lines for name, _ in line.variables[inherited:]}
    settings = {name: _shared(environment.get(name) for environment in environments) for name in names}
    return replace(
        first,
        arguments=arguments,
        words=[*first.words[: len(first.words) - len(first.arguments)], *arguments],
        positionals=None,
        variables=_with_settings([*lines[0].variables[:inherited]], settings),
        places=[first.places[at] for at in common],
        is_open=True,
        branches=lines,
    )


def _shared(values: Iterable[str | None]) -> str | None:
    """Return the value that all have; ``None`` if they differ."""
    different = {*values}
    return different.pop() if len(different) == 1 else None


def _argument_places(
    arguments: Sequence[str], script: Path, given: Sequence[str], places: Sequence[Path]
) -> list[Path]:
    """Return the places of arguments that a script has, of which it was ``given`` some."""
    result = [script] * len(arguments)
    if (at := _position(arguments, given)) is not None:
        result[at : at + len(given)] = places
    return result


def _may_have_options(engine: Engine, arguments: Sequence[str]) -> bool:
    """Report whether something is replaced, when the script runs, by what may be an option."""
    strays = [arguments[at] for at in engine.options_in(arguments).strays]
    return any(map(_UNKNOWN_WORD.search, strays[GRAMMARS[engine.name].positionals :]))


_UNKNOWN_WORD = regex(r"\$\(|\{\{")
"""Something that is replaced when the script, or a template around it, runs."""


def _position(words: Sequence[str], part: Sequence[str]) -> int | None:
    """Return where words have others among them; ``None`` if they do not, and for none or very many others."""
    target = tuple(part)
    places = range(len(words) - len(target) + 1) if 0 < len(target) <= _FOLLOWED else ()
    return next((at for at in places if words[at : at + len(target)] == target), None)


_FOLLOWED = 100
"""Maximum number of a script's arguments that are located one by one."""


def _started(
    script: str,
    variables: Mapping[str, str | None],
    arguments: Sequence[str],
    settings: Mapping[str, str | None] = {},
    outer: Sequence[shell.ShellCommand] = (),
) -> Iterator[Started]:
    """Yield the engines that a script starts, also by scripts in it.

    ``settings``: the variables that are set outside the script; ``outer``: the commands that run it, the outermost
    first.
    """
    try:
        commands = shell.commands(script, tuple(variables.items()), tuple(arguments))
    except shell.ScriptError:
        return
    for command in commands:
        start = _wrapped(command.words)
        name, _, end = program_of(command.words[start:])
        inner = script_place(command.words[start:])
        if not name and (inner is None or len(outer) == _DEEPEST - 1):
            continue
        environment = {**command.environment(variables), **_of_env(command.words[:start])}
        run = _within(command, outer)
        if name:
            yield Started(name, start + end, run, {**settings, **environment})
        elif inner is not None:
            values, further = {**variables, **environment}, {**settings, **environment}
            yield from _started(
                run.words[start + inner], values, run.words[start + inner + 1 :], further, (*outer, run)
            )


def _of_env(wrapped: Sequence[str]) -> Mapping[str, str | None]:
    """Return the variables that ``env`` sets for the program behind it."""
    settings = (word.partition("=") for word in wrapped if "env" in wrapped and _SETTING.match(word))
    return {name: value for name, _, value in settings}


def _within(command: shell.ShellCommand, outer: Sequence[shell.ShellCommand]) -> shell.ShellCommand:
    """Return a command of a script with what the commands around that script tell of it."""
    if not outer:
        return command
    enclosing, places = outer[-1], tuple(run.place for run in outer)
    return replace(
        command,
        branches=(*enclosing.branches, *(((places, block), branch) for block, branch in command.branches)),
        is_last=command.is_last and enclosing.is_last,
        may_not_run=command.may_not_run or enclosing.may_not_run,
    )


_SETTING = regex(r"[A-Za-z_]\w*=")


def _wrapped(words: Sequence[str]) -> int:
    """Return the position of the program that others in front of it, such as ``exec`` and ``nice -n 5``, start."""
    start = 0
    for at, word in enumerate(words):
        if word.rpartition("/")[2] in _WRAPPERS:
            start = at + 1
        elif not start or not _OF_WRAPPER.match(word):
            return at if start else 0
    return 0


_WRAPPERS = (
    *("exec", "env", "nohup", "time", "nice", "ionice", "numactl", "taskset", "setsid", "stdbuf", "command", "timeout"),
    *("tini", "dumb-init", "opentelemetry-instrument"),
)
_OF_WRAPPER = regex(r"-|[0-9]|[A-Za-z_]\w*=")


def script_place(words: Sequence[str]) -> int | None:
    """Return the position of the script of the shell that words start; ``None`` without one."""
    if not words or not _SHELL.fullmatch(words[0]):
        return None
    flag = next((at for at, word in enumerate(words) if _SCRIPT_FOLLOWS.fullmatch(word)), len(words))
    return flag + 1 if flag + 1 < len(words) else None


def program_of(words: Sequence[str], *, anywhere: bool = False) -> tuple[str, int, int]:
    """Return the engine that words start, and the positions of its program and behind it; no name for another one."""
    plain = ["python" if _PYTHON.fullmatch(word) else word.rpartition("/")[2] for word in words]
    for start in range(len(words) if anywhere else min(1, len(words))):
        for name, grammar in GRAMMARS.items():
            for parts in map(str.split, grammar.starts):
                skipped = 1 if plain[start + 1 : start + 2] == ["-u"] else 0
                if [plain[start], *plain[start + 1 + skipped : start + skipped + len(parts)]] == parts:
                    return name, start, start + skipped + len(parts)
    return "", 0, 0


def variables_of(env: Iterable[Json | None] | None) -> Variables:
    """Return the variables of a container, with a reference for a value from elsewhere."""
    items = [item or {} for item in env or ()]
    return [(str(item.get("name")), _value_of(item)) for item in items]


_ELSEWHERE = "$(valueFrom)"
"""The value of a variable that a Secret or another object has."""


def _value_of(variable: Json) -> str:
    return _ELSEWHERE if variable.get("valueFrom") else str(variable.get("value") or "")


def passes_arguments(container: Mapping[str, Any]) -> bool:
    """Report whether ``args`` reach a server: not if a shell takes them as its script, or its script ignores them."""
    command = [str(part) for part in container.get("command") or ()]
    if command and _SCRIPT_FOLLOWS.fullmatch(command[-1]):
        return False
    scripts = [place + 1 for place, part in enumerate(command[:-1]) if _SCRIPT_FOLLOWS.fullmatch(part)]
    if not scripts:
        return True
    takes = "$@" in command[scripts[0]] or "$*" in command[scripts[0]]
    return takes and len(command) > scripts[0] + 1  # the first word behind the script is its name, as in ``--``


def evaluates(container: Mapping[str, Any]) -> bool:
    """Report whether a script reads the arguments again, as a shell reads words."""
    return any("eval " in str(part) for part in container.get("command") or ())


def words(container: Mapping[str, Any]) -> list[str]:
    """Return the words with which a server is started, as far as the container has them."""
    parts = [str(part) for part in (*(container.get("command") or ()), *(container.get("args") or ()))]
    return parts + [str(v.get("value")) for v in container.get("env") or () if v and v.get("name") == ADDITIONAL]


def split_words(parts: Iterable[str]) -> Iterator[str]:
    """Yield the words of a command line with those of the scripts in it, which are parts with blanks."""
    for part in parts:
        if any(map(str.isspace, part)) and not _JSON.match(part):
            yield from _shell_words(part)
        elif part != "--":  # which is the name of a script
            yield part


_JSON = regex(r"(--[^\s=]+=)?[\[{]")
"""The beginning of an argument in JSON, whose blanks and quotes are its own."""
_ASSIGNED = regex(r"[A-Za-z_]\w*=(?=-)")
"""The beginning of a variable of a script that has options, as scripts of presets collect them."""
_DEEPEST = 3


@lru_cache(maxsize=256)
def _shell_words(script: str, depth: int = 1) -> Sequence[str]:
    """Return the words of a script, and of the scripts that its words are. Many objects have the same one."""
    try:
        raw_words = shlex.split(script, comments=True)
    except ValueError:  # a quote without an end, such as one in a comment
        raw_words = [word.strip("'\"") for word in script.split()]
    words: list[str] = []
    for word in (_ASSIGNED.sub("", word) for word in raw_words):
        is_script = depth < _DEEPEST and any(map(str.isspace, word)) and not _JSON.match(word)
        words += _shell_words(word, depth + 1) if is_script else [word] if word != "--" else []
    return words


def options(arguments: Sequence[str], path: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield each argument's place, the argument up to a ``=``, and what is behind that or else the next argument.

    For programs whose grammar is not known; :meth:`Engine.read` is for engines.
    """
    following = [*arguments[1:], ""]
    for position, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        yield path.index(position), option, value if equals else following[position]
