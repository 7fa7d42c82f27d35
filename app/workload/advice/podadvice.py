"""Warnings about parts of a pod that Kubernetes accepts and that have no effect, or a bad one."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import prod

from msgspec.structs import replace

from app.kube import field, objects
from app.kube.embedded.checks import RequiredSince
from app.kube.field import METADATA, Advice, advice, did_you_mean, name_meant, with_hint
from app.kube.quantity import LEAST_MEMORY, is_quantity, missing_unit, parse
from app.kube.spelling import closest_name, nearest
from app.limits import MAX_ARGUMENTS, MAX_UNKNOWN_NAMES
from app.workload.advice.keyadvice import KEY, key_warnings
from app.workload.devices import Counts, device, device_meant
from app.workload.engines.commandline import CommandLine
from app.workload.engines.engine import BATCH, Engine, batch_problem, serves_tls, tag_meant
from app.workload.engines.grammar import Option
from app.workload.engines.parse import Parsed, Problem, Slip, Variables, json_of, number_of, with_sizes
from app.workload.fit.gpumodels import dtype_problem
from app.workload.rules.fieldrules import Json, is_port_name
from app.workload.rules.wholepod import LISTS

_DASHES = "\u2013\u2014"
_TWO_WORDS = re.compile(r"(--?[A-Za-z][\w.-]*)\s+(\S.*)", re.DOTALL)
_OPTION = re.compile("--?[A-Za-z]")
_LIKE_JSON = re.compile(r"""['"\\]*\{\s*["'\\]""")
_QUOTED = re.compile(r"""(['"])([^'"{}\[\]]+)\1""")
_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z0-9]+)\)")
_SHELL = re.compile(r"(?<!\$)\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_OF_SERVICES = re.compile("_SERVICE_(HOST|PORT)|_PORT(_|$)")
_AMOUNT = re.compile(r"([0-9.]+)([A-Za-z]*)")
"""A quantity without a sign or an exponent: the number and the unit."""
_TENSOR, _DATA = "tensor", "data"
_SIZES = {
    _TENSOR: ("--tensor-parallel-size", "--tp-size", "--num-shard"),
    "pipeline": ("--pipeline-parallel-size", "--pp-size"),
    _DATA: ("--data-parallel-size", "--dp-size"),
}
"""Options of the engines that set the size of a kind of parallelism. A replica needs as many GPUs as all multiplied."""
_SPREAD = ("--data-parallel-size-local", "--distributed-executor-backend", "--enable-dp-attention", "--nnodes")
"""Options with which sizes share GPUs, or use those of other pods."""
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
    """Warn of a container that gets a model from the hub and may not ask it. ``path`` is that of its ``env``."""
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


def tag_warnings(image: str, path: field.Path, *, is_version: bool = False) -> Iterator[Advice]:
    """Warn of a release of an engine without the v of its tags. ``is_version``: a separate field has the tag."""
    if corrected := tag_meant(image):
        hint = did_you_mean(corrected.rpartition(":")[2] if is_version else corrected)
        yield advice(path, with_hint("no image has this tag", hint))


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
    """Warn of quotes around a value that no shell removes. Those around JSON are told of as such."""
    if line.engine is None:
        return
    parsed = line.parsed
    values = [(given.at, value) for given in parsed.given for value in given.values]
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
    """Report whether a text is JSON, be it with sizes such as 8G, which vLLM reads."""
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
    whole = engine.read(others[:MAX_ARGUMENTS]) if others else parsed
    for option, other, ends in () if line.is_open else engine.incomplete(whole):
        problem = f"{engine} ends with {option} and" if ends else f"{option} has no effect"
        yield advice(path, f"{problem} without {other}; add the latter", "advice" if ends else "no-effect")
    if engine.name == "vllm":
        batch = batch_problem(*(number_of(parsed, option) for option in BATCH))
        problems = (batch, dtype_problem(engine.name, parsed.value("--dtype"), nodes or {}))
        yield from (advice(path, problem) for problem in problems if problem)
    yield from key_warnings(parsed, line.place)
    yield from islice(_rejected(engine, line, parsed, whole), MAX_UNKNOWN_NAMES)


def rejected(line: CommandLine, others: Sequence[str] = ()) -> Iterator[Advice]:
    """Warn of each option, value and number that an engine rejects."""
    engine = line.engine
    if engine is None:
        return
    line = replace(line, arguments=line.arguments[:MAX_ARGUMENTS])
    whole = engine.read([*line.arguments, *others[:MAX_ARGUMENTS]])
    yield from islice(_rejected(engine, line, line.parsed, whole), MAX_UNKNOWN_NAMES)


def _rejected(engine: Engine, line: CommandLine, parsed: Parsed, whole: Parsed) -> Iterator[Advice]:
    """Warn of options, values, numbers and addresses with which the engine does not serve (LK-V-I77)."""
    extended = engine.open_options(whole)
    first = list(islice(_told_once(line, parsed.problems), _JUDGED))
    found = [(problem.at, _rejection(engine, line, parsed, problem)) for problem in first]
    found += _valued_switches(engine, line, parsed)
    for given in parsed.given:
        if numbers := engine.numbers_instead(given, parsed):
            written = line.written(given.at).partition("=")[0]
            message = f"{engine} cannot serve with {written} {given.value}: it must be {numbers}"
            found.append((given.at, advice(line.place(given.at), message)))
        elif given.option in ("--host", "--hostname"):
            found += ((given.at, problem) for problem in address_warnings(given.value, line.place(given.at)))
    left_out = {p.at for p in parsed.problems if p.slip is Slip.CHOICE and (p.option in extended or _is_none(p))}
    for at, warning in sorted(found, key=lambda pair: pair[0]):
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
        is_told = problem.option == KEY or (problem.slip in (Slip.STRAY, Slip.UNKNOWN) and is_quoted)
        if not is_behind and not is_told:
            yield problem


_TYPOGRAPHIC = ("\u2018", "\u2019", "\u201c", "\u201d")
_NAMELESS = (Slip.STRAY, Slip.UNKNOWN, Slip.AMBIGUOUS)


def _is_none(problem: Problem) -> bool:
    """Report whether a parser of vLLM is switched off."""
    return problem.option in ("--reasoning-parser", "--tool-call-parser") and problem.value.lower() == "none"


def _valued_switches(engine: Engine, line: CommandLine, parsed: Parsed) -> Iterator[tuple[int, Advice]]:
    """Yield the warnings of a word behind a switch that is meant as its value."""
    switches = {given.at: given.name for given in parsed.given if given.option and not given.values}
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
    hint = name_meant(engine.option_meant(word)) or _owners(engine, name)
    return with_hint(f"{engine} has no option {name}, and ends with it", hint)


def _stray(engine: Engine, word: str) -> str:
    if word.startswith("--model"):
        return f"{engine} ends with --model beside the model that stands in front of the options; remove it"
    if meant := engine.option_meant(word):
        return with_hint(f"{engine} has no option {word.partition('=')[0]}, and ends with it", name_meant(meant))
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
        case Slip.TWICE:
            return f"{engine} ends with {name} written twice; remove one of them"
        case Slip.STATE:
            return f"{engine} ends with {name} {value}: it must be true or false"
        case Slip.CUT:
            return f"{engine} reads {problem.others[0]} for {name} {value}; write the whole number in digits"
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
        return did_you_mean(f"{int(percent) / 100:g}")
    if entry.type == "size-si" and value[:-1].isdecimal() and value[-1:].upper() == "K":
        return did_you_mean(f"{value[:-1]}Ki")
    return did_you_mean(digits) if digits.isdecimal() else ""


def size_warnings(line: CommandLine, gpus: int, tensor: int = 1, copies: int = 1) -> Iterator[Advice]:
    """Warn of sizes of parallelism that pods or models do not suit. ``tensor`` and ``copies`` are those by default."""
    sizes, last = {_TENSOR: (tensor, "the tensor-parallel size"), _DATA: (copies, "the data-parallel size")}, line.path
    parsed = line.parsed
    for kind, names in _SIZES.items():
        if (given := parsed.last(*names)) is not None:
            sizes[kind] = number_of(parsed, *names) or 0, given.name
    written = [given.at for names in _SIZES.values() for given in parsed.all(*names)]
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


def volume_warnings(volumes: Sequence[Json], path: field.Path, mounted: Collection[str]) -> Iterator[Advice]:
    """Warn of volumes that no container mounts, of images without a name, and of media that no kubelet knows."""
    for where, volume in path.each(volumes):
        name, medium = volume.get("name") or "", (volume.get("emptyDir") or {}).get("medium") or "Memory"
        if name not in mounted and "$patch" not in volume:
            yield advice(where, f"no container mounts volume {name}; add it to the container's volumeMounts")
        if volume.get("image") is not None and not volume["image"].get("reference"):
            message = "no pod can be created without the name of the image"
            yield RequiredSince.of("1.37", where.child("image", "reference"), message)
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
    known = device(resource)
    if known is not None and known.counts is Counts.SLICES:
        return f"a server uses 1 of {count} slices of GPUs; request 1, of a larger profile"
    if known is not None and known.counts is Counts.TURNS and known.plugin.startswith(_TIME_SLICING):
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
