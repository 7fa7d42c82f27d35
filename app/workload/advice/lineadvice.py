"""Warnings about the words of a command line: what its engine rejects, and what it takes otherwise than it is meant."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import prod

from msgspec.structs import replace

from app.kube import field
from app.kube.field import Advice, advice, did_you_mean, name_meant, with_hint
from app.kube.regex import regex
from app.kube.spelling import nearest
from app.limits import MAX_ARGUMENTS, MAX_UNKNOWN_NAMES
from app.workload.advice.podadvice import address_warnings
from app.workload.engines.commandline import CommandLine
from app.workload.engines.engine import BATCH, Engine, batch_problem
from app.workload.engines.grammar import Option
from app.workload.engines.parse import Parsed, Problem, Slip, json_of, number_of, with_sizes
from app.workload.fit.gpumodels import dtype_problem

_DASHES = "\u2013\u2014"
_TWO_WORDS = regex(r"(--?[A-Za-z][\w.-]*)\s+(\S.*)", re.DOTALL)
_LIKE_JSON = regex(r"""['"\\]*\{\s*["'\\]""")
_QUOTED = regex(r"""(['"])([^'"{}\[\]]+)\1""")
_TENSOR, _DATA = "tensor", "data"
_SIZES = {
    _TENSOR: ("--tensor-parallel-size", "--tp-size", "--num-shard"),
    "pipeline": ("--pipeline-parallel-size", "--pp-size"),
    _DATA: ("--data-parallel-size", "--dp-size"),
}
"""Options of the engines that set the size of a kind of parallelism. A replica needs as many GPUs as all multiplied."""
_SPREAD = ("--data-parallel-size-local", "--distributed-executor-backend", "--enable-dp-attention", "--nnodes")
"""Options with which sizes share GPUs, or use those of other pods."""


def argument_warnings(arguments: Iterable[tuple[field.Path, str]]) -> Iterator[Advice]:
    """Warn of an option and its value in one item, of dashes of prose, and of what is almost JSON."""
    return islice(_argument_problems(arguments), MAX_UNKNOWN_NAMES)


def _argument_problems(arguments: Iterable[tuple[field.Path, str]]) -> Iterator[Advice]:
    """Warn of an option and its value in one item, of dashes of prose, and of what is almost JSON."""
    for where, argument in arguments:
        if argument.startswith(tuple(_DASHES)):
            suggestion = f"--{argument.lstrip('-' + _DASHES)}"
            yield advice(where, with_hint("begins with a dash that is not the one of options", name_meant(suggestion)))
        if words := _TWO_WORDS.fullmatch(argument):
            items = f"{field.go_quote(words[1])}, {field.go_quote(words[2])}"
            yield advice(where, f"an option and its value are two items: write {items}")
        elif problem := _json_problem(argument):
            yield advice(where, problem)


def quote_warnings(line: CommandLine) -> Iterator[Advice]:
    """Warn of quotes around a value that no shell removes. Quotes around JSON have another warning."""
    if line.engine is None:
        return
    parsed = line.parsed
    values = [(occurrence.at, value) for occurrence in parsed.occurrences for value in occurrence.values]
    values += [(at, line.arguments[at]) for at in parsed.strays]
    for at, value in islice(sorted(values), MAX_UNKNOWN_NAMES):
        if (match := _QUOTED.fullmatch(value)) and not _LIKE_JSON.match(value):
            message = f"no shell removes the quotes around {match[2]}, so that {line.engine} gets them; leave them out"
            yield advice(line.place(at), message)


def _json_problem(argument: str) -> str:
    """Return the problem of an argument, or its value, that begins like a JSON object and cannot be read as one."""
    value = argument.partition("=")[2] if argument.startswith("-") else argument
    if not _LIKE_JSON.match(value) or "{{" in value or "$(" in value or _is_json(value):
        return ""
    if value[0] in "'\"" and _is_json(value[1:-1]):
        return "no shell removes the quotes around the value, so it is not valid JSON; leave them out"
    return "the value is not valid JSON"


def _is_json(text: str) -> bool:
    """Report whether a string is JSON, possibly with sizes such as 8G, which vLLM reads."""
    return json_of(text) is not None or json_of(with_sizes(text)) is not None


def option_warnings(
    line: CommandLine, others: Sequence[str] = (), nodes: Mapping[str, str] | None = None
) -> Iterator[Advice]:
    """Warn of options and values that an engine rejects, with what they are meant for.

    ``others``: all words of the command line, if it has more; ``nodes``: the labels of the nodes that are selected.
    """
    engine, path = line.engine, line.path
    if engine is None:
        return
    line = replace(line, arguments=line.arguments[:MAX_ARGUMENTS])
    parsed = line.parsed
    full_line = engine.read(others[:MAX_ARGUMENTS]) if others else parsed
    for option, other, ends in () if line.is_open else engine.incomplete(full_line):
        problem = f"{engine} ends with {option} and" if ends else f"{option} has no effect"
        yield advice(path, f"{problem} without {other}; add the latter", "advice" if ends else "no-effect")
    if engine.name == "vllm":
        batch = batch_problem(*(number_of(parsed, option) for option in BATCH))
        problems = (batch, dtype_problem(engine.name, parsed.value("--dtype"), nodes or {}))
        yield from (advice(path, problem) for problem in problems if problem)
    yield from _key_warnings(line)
    yield from islice(_rejected(engine, line, parsed, full_line), MAX_UNKNOWN_NAMES)


_KEY = "--api-key"


def _key_warnings(line: CommandLine) -> Iterator[Advice]:
    """Warn of an option for the key of an API that names none: vLLM then answers everybody, and others end."""
    for occurrence in line.parsed.all(_KEY):
        if not occurrence.value or occurrence.value.startswith("-"):
            message = f"{occurrence.name} has no value, so the server needs no key, or ends: name the key"
            yield advice(line.place(occurrence.at), message)


def rejected(line: CommandLine, others: Sequence[str] = ()) -> Iterator[Advice]:
    """Warn of each option, value and number that an engine rejects."""
    engine = line.engine
    if engine is None:
        return
    line = replace(line, arguments=line.arguments[:MAX_ARGUMENTS])
    full_line = engine.read([*line.arguments, *others[:MAX_ARGUMENTS]])
    yield from islice(_rejected(engine, line, line.parsed, full_line), MAX_UNKNOWN_NAMES)


def _rejected(engine: Engine, line: CommandLine, parsed: Parsed, full_line: Parsed) -> Iterator[Advice]:
    """Warn of options, values, numbers and addresses with which the engine does not serve (LK-V-I77)."""
    extended = engine.open_options(full_line)
    first = list(islice(_told_once(line, parsed.problems), _JUDGED))
    rejections = [(problem.at, _rejection(engine, line, parsed, problem)) for problem in first]
    rejections += _valued_switches(engine, line, parsed)
    for occurrence in parsed.occurrences:
        if numbers := engine.numbers_instead(occurrence, parsed):
            written = line.written(occurrence.at).partition("=")[0]
            message = f"{engine} cannot serve with {written} {occurrence.value}: it must be {numbers}"
            rejections.append((occurrence.at, advice(line.place(occurrence.at), message)))
        elif occurrence.option in ("--host", "--hostname"):
            rejections += (
                (occurrence.at, problem) for problem in address_warnings(occurrence.value, line.place(occurrence.at))
            )
    left_out = {p.at for p in parsed.problems if p.slip is Slip.CHOICE and (p.option in extended or _is_none(p))}
    for at, warning in sorted(rejections, key=lambda pair: pair[0]):
        if warning is not None and at not in left_out:
            yield warning


def _told_once(line: CommandLine, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the problems but for words behind a wrong one, and for words that are wrong for any program."""
    wrong = -2
    for problem in problems:
        is_behind = problem.slip is Slip.STRAY and problem.at == wrong + 1
        wrong = problem.at if problem.slip in _NAMELESS else wrong
        word = line.written(problem.at)
        is_quoted = word.startswith(_TYPOGRAPHIC) or any(argument_warnings([(line.path, word)]))
        is_told = problem.option == _KEY or (problem.slip in (Slip.STRAY, Slip.UNKNOWN) and is_quoted)
        if not is_behind and not is_told:
            yield problem


_TYPOGRAPHIC = ("\u2018", "\u2019", "\u201c", "\u201d")
_NAMELESS = (Slip.STRAY, Slip.UNKNOWN, Slip.AMBIGUOUS)


def _is_none(problem: Problem) -> bool:
    """Report whether a parser of vLLM is switched off."""
    return problem.option in ("--reasoning-parser", "--tool-call-parser") and problem.value.lower() == "none"


def _valued_switches(engine: Engine, line: CommandLine, parsed: Parsed) -> Iterator[tuple[int, Advice]]:
    """Yield the warnings of a word behind a switch that is meant as its value."""
    switches = {
        occurrence.at: occurrence.name
        for occurrence in parsed.occurrences
        if occurrence.option and not occurrence.values
    }
    for at in parsed.strays:
        name, word = switches.get(at - 1), line.arguments[at]
        if name is not None and word.lower() in _BOOLEANS and "=" not in line.arguments[at - 1] and engine.is_certain:
            ends = f"and takes {word} for the model" if line.takes_model else "and ends with one"
            message = f"{engine} takes no value for {name}, {ends}; write {name} alone, or leave it out"
            yield at - 1, advice(line.place(at - 1), message)


_BOOLEANS = ("true", "false", "yes", "no", "on", "off", "1", "0")


def _rejection(engine: Engine, line: CommandLine, parsed: Parsed, problem: Problem) -> Advice | None:
    """Return the warning of what is wrong with a word; ``None`` where another one tells it."""
    where, word = line.place(problem.at), line.written(problem.at)
    name = word.partition("=")[0]
    match problem.slip:
        case Slip.UNKNOWN:
            return advice(where, _unknown(engine, word, name))
        case Slip.JOINED:
            items = f"{field.go_quote(name)}, {field.go_quote(problem.value)}"
            return advice(where, f"{engine} ends with {word}: an option and its value are two items: write {items}")
        case Slip.AMBIGUOUS:
            names = " or ".join(problem.others[:_NAMED]) + (" or others" if len(problem.others) > _NAMED else "")
            return advice(where, f"{engine} ends with {name}, which may be {names}; write one of them in full")
        case Slip.STRAY:
            is_told = problem.at and word.lower() in _BOOLEANS and line.arguments[problem.at - 1].startswith("-")
            return None if is_told else advice(where, _stray(engine, word))
        case Slip.NO_VALUE:
            message = f"{engine} takes no value for {name}, and ends with one; write {name} alone, or leave it out"
            return advice(where, message)
        case Slip.JSON if _LIKE_JSON.match(problem.value):
            return None  # which is told of any argument
        case Slip.REPLACED:
            message = f"no effect beside {problem.others[0]}, which replaces all of {name}; write one or the other"
            return advice(where, message, "no-effect")
        case Slip.UNREAD:
            message = f"{engine} reads no file with {word}; write {field.go_quote(name)} and the file as two items"
            return advice(where, message)
        case _:
            return advice(where, _value_problem(engine, name, problem, parsed))


_NAMED = 3
_JUDGED = 4 * MAX_UNKNOWN_NAMES
"""Problems of which a message is made; some have another one already."""


def _unknown(engine: Engine, word: str, name: str) -> str:
    if not engine.releases and (slip := engine.slip_of(name)):
        return f"no known release of {engine} has the option {name}{name_meant(slip)}"
    if successor := engine.successor_of(name):  # which takes another value
        return f"{engine} has no option {name}, and ends with it; {successor} has taken its place"
    hint = name_meant(engine.option_meant(word)) or _owners(engine, name)
    return with_hint(f"{engine} has no option {name}, and ends with it", hint)


def _stray(engine: Engine, word: str) -> str:
    if word.startswith("--model"):
        return f"{engine} ends with --model beside the model that stands in front of the options; remove it"
    if suggestion := engine.option_meant(word):
        return with_hint(f"{engine} has no option {word.partition('=')[0]}, and ends with it", name_meant(suggestion))
    return f"{field.render(word)} is not an option, and {engine} ends with it"


def _owners(engine: Engine, option: str) -> str:
    names = engine.owners(option)
    return f"; it is an option of {' and '.join(names)}" if names else ""


def _value_problem(engine: Engine, name: str, problem: Problem, parsed: Parsed) -> str:
    """Return why an engine does not start with the value of an option, or what it makes of it."""
    entry, value = parsed.release.options[problem.option], problem.value
    match problem.slip:
        case Slip.MISSING:
            return f"{engine} ends without a value for {name}{_supported(entry) or _must_be(entry)}"
        case Slip.CHOICE if value.startswith("-"):
            return f"{engine} ends without a value for {name}{_supported(entry)}"
        case Slip.CHOICE:
            near = nearest(value, entry.values) if entry.type != "integer" else ""
            hint = name_meant(near) or _supported(entry)
            return with_hint(f"{engine} does not take {value} for {name}, and ends with it", hint)
        case Slip.KEY:
            hint = name_meant(nearest(value, entry.keys))
            return with_hint(f"{engine} ends with the key {value} of {name}, which it does not have", hint)
        case Slip.KEY_CHOICE:
            hint = name_meant(nearest(value, problem.others)) or f"; supported: {', '.join(problem.others)}"
            return with_hint(
                f"{engine} does not take {value} for {problem.key} of {problem.option}, and ends with it", hint
            )
        case Slip.TWICE:
            return f"{engine} ends with {name} written twice; remove one of them"
        case Slip.STATE:
            return f"{engine} ends with {name} {value}: it must be true or false"
        case Slip.CUT:
            number = "the whole number in digits" if entry.is_whole else "a number alone, such as 0.5"
            return f"{engine} reads {problem.others[0]} for {name} {value}; write {number}"
        case Slip.JSON:
            key, equals, single = value.partition("=")
            hint = f", or {name}.{key} {single}" if equals and key.isidentifier() else ""
            return f"{engine} ends with {name} {value}: it must be JSON{hint}"
        case _:
            return f"{engine} ends with {name} {value}{_must_be(entry)}{_number_meant(value, entry)}"


def _supported(entry: Option) -> str:
    values = sorted(entry.values, key=int) if entry.type == "integer" else entry.values
    return f"; supported: {', '.join(values)}" if values else ""


def _must_be(entry: Option) -> str:
    if entry.type == "number":
        return ": it must be a number"
    return ": it must be a whole number" if entry.is_whole else ""


def _number_meant(value: str, entry: Option) -> str:
    """Suggest a number without what separates its digits, the unit that is read, or the fraction for a percentage."""
    digits, percent = value.replace(",", ""), value.removesuffix("%")
    if value != percent and percent.isdecimal() and len(percent) <= len("100"):
        is_share = (entry.default or 0) <= 1
        share = float(f"0.{percent}") if is_share and int(percent) > 100 else int(percent) / 100
        return did_you_mean(f"{share:g}")
    if entry.type == "size-si" and value[:-1].isdecimal() and value[-1:].upper() == "K":
        return did_you_mean(f"{value[:-1]}Ki")
    return did_you_mean(digits) if digits.isdecimal() else ""


def size_warnings(line: CommandLine, gpus: int, tensor: int = 1, copies: int = 1) -> Iterator[Advice]:
    """Warn of sizes of parallelism that pods or models do not suit. ``tensor`` and ``copies`` are those by default."""
    sizes, last = {_TENSOR: (tensor, "the tensor-parallel size"), _DATA: (copies, "the data-parallel size")}, line.path
    parsed = line.parsed
    for kind, names in _SIZES.items():
        if (occurrence := parsed.last(*names)) is not None:
            sizes[kind] = number_of(parsed, *names) or 0, occurrence.name
    written = [occurrence.at for names in _SIZES.values() for occurrence in parsed.all(*names)]
    last = line.place(max(written)) if written else last
    if message := uneven(sizes[_TENSOR][0]):
        yield advice(line.path, message)
    if parsed.gives(*_SPREAD):
        sizes = {_TENSOR: sizes[_TENSOR]}
    needed = prod(size for size, _ in sizes.values())
    if needed > gpus > 0:
        product = " times ".join(name for size, name in sizes.values() if size > 1)
        yield advice(last, f"{product} is {needed}, but a pod has {gpus} GPU{'s' if gpus > 1 else ''}")


def uneven(size: int) -> str:
    """Return the warning of a tensor-parallel size that is not a power of two; empty for others."""
    message = f"the tensor-parallel size is {size}: the server ends unless it divides the model's attention heads"
    return message if size > 0 and size & (size - 1) else ""
