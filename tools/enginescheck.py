"""Compare how command lines are read here with the engines' own parsers: ``python -m tools.enginescheck SOURCE...``.

A source is what :mod:`tools.engines` reads: a wheel of vLLM or SGLang, or a folder with Debian's ``llama.cpp-tools``.
The lines are those of ``tests/engines/lines.toml``, and others that are made of the catalogue of the release: options
with what users do to them. The verdicts of the parser are written to ``tests/engines/corpus``, where a test reads them
without the parsers; the counts are printed.
"""

from __future__ import annotations

import json
import random
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from app.workload.engines.grammar import GRAMMARS, RELEASES, Option, Release
from app.workload.engines.parse import ENDING, Parsed, read
from tools import engines

TESTS = Path(__file__).resolve().parent.parent / "tests" / "engines"
CORPUS = TESTS / "corpus"
_LINES_OF_EACH = 240
_PLACE = re.compile(" at 0x[0-9a-f]+")
"""The place in memory of what a message names, which is another one each time."""
_SEED = 1
_LEFT_OUT = frozenset(
    {
        *("--help", "--version", "--config", "--usage", "--list-devices", "--cache-list", "--completion-bash"),
        *("--chat-template", "--chat-template-file", "--api-key-file", "--grammar-file", "--json-schema-file"),
        *("--log-config-file", "--ui-config-file", "--grpc-port", "--models-dir", "--license"),
    }
)
"""Options that read a file or a variable before anything is judged, or end the program."""
_NUMERALS = (
    *("16", "1k", "32K", "32Ki", "1M", "1.5k", "1.5K", "4_096", "0x10", "1e5", "auto", "none", "None", "", "4096.0"),
    *("4,096", "99%", " 7", "0.5", "-1", "+3", ".5", "inf", "1__0"),
)


def lines_of(release: Release) -> list[list[str]]:
    """Return the command lines for a release, without the program and the model that vLLM takes."""
    written = tomllib.loads((TESTS / "lines.toml").read_text(encoding="utf-8"))[release.engine]
    random_ = random.Random(f"{_SEED}{release.engine}{release.version}")  # noqa: S311 - the same lines each time
    lines: list[list[str]] = []
    names = sorted(
        name
        for name, entry in release.options.items()
        if _LEFT_OUT.isdisjoint((name, *entry.also)) and entry.type != "form"
    )
    while len(lines) < _LINES_OF_EACH:
        name = random_.choice(names)
        variants = list(_variants(release, name, random_))
        lines += random_.sample(variants, min(2, len(variants)))
    required = [["--model-path", "org/model"]] if release.engine == "sglang" else [[]]
    return [*map(shlex.split, written), *([*required[0], *line] for line in lines[:_LINES_OF_EACH])]


def _variants(release: Release, name: str, random_: random.Random) -> Iterator[list[str]]:
    """Yield what users make of an option: spellings, values and numbers of all forms, and repetitions."""
    entry = release.options[name]
    value = _value(entry)
    spelled = random_.choice([name, *entry.also, *entry.off])
    cut = spelled[: random_.randint(4, max(4, len(spelled)))]
    for spelling in (spelled, spelled.replace("-", "_").replace("__", "--", 1), cut, spelled.upper(), f"-{spelled}"):
        yield [spelling, *value]
    yield [spelled, *value, spelled, *value]
    yield [f"--no-{name.removeprefix('--')}", *value]
    yield [f"{name}=" + (value[0] if value else random_.choice(["true", "1", ""]))]
    yield [spelled, *value, random_.choice(["true", "False", "word"])]
    if entry.type == "switch":
        yield [name.replace("--enable-", "--disable-") if "enable" in name else name.replace("disable", "enable")]
        return
    yield [spelled]
    yield [spelled, "--port", "8000"]
    if entry.is_number:
        yield from ([spelled, numeral] for numeral in random_.sample(_NUMERALS, 4))
        yield [f"{name}={random_.choice(_NUMERALS)}"]
    later = engines.CHECKED_LATER.get(release.engine, {})
    for choice in entry.values[:2] if name not in later else ():
        yield from ([spelled, text] for text in (choice.upper(), choice.capitalize(), f"{choice}x", choice))
    if entry.type in ("json", "object", "object-sizes"):
        keys = [*entry.keys] or ["some_key"]
        yield from ([spelled, text] for text in ("{", "{'a': 1}", "true", '{"no_key_of_it": 1}', "a=1", "None", "{}"))
        yield [f"{name}.{random_.choice([*keys, 'no_key_of_it'])}", random_.choice(["x", "1", "true", "{"])]
        for key, choices in entry.choices.items():
            texts = (random_.choice(choices), f"{choices[0]}x", choices[-1].swapcase())
            yield from ([spelled, json.dumps({key: text})] for text in texts)
            yield [f"{name}.{key}", random_.choice(texts)]


def _value(entry: Option) -> list[str]:
    if entry.type == "switch":
        return []
    if entry.values:
        return [entry.values[0]] * (2 if entry.count == "2" else 1)
    texts = {"boolean": "true", "json": "{}", "object": "{}", "object-sizes": "{}", "text": "word", "number": "0.5"}
    return [texts.get(entry.type, "16")] * (2 if entry.count == "2" else 1)


def parsed(release: Release, line: Sequence[str]) -> Parsed:
    """Read a line here."""
    is_known = release.engine != "tgi"
    return read(release, line, positionals=0 if is_known else None)


def ends_here(release: Release, line: Sequence[str]) -> bool:
    """Report whether a line ends the engine, as far as is known here."""
    read_ = parsed(release, line)
    return read_.ends or any(True for _ in engines_incomplete(read_))


def engines_incomplete(read_: Parsed) -> Iterator[str]:
    """Yield the options that end the engine without another one."""
    from app.workload.engines.engine import Engine  # noqa: PLC0415

    engine = Engine(read_.release.engine, read_.release.version, (read_.release,))
    yield from (option for option, _, ends in engine.incomplete(read_) if ends)


def verdicts(source: Path, release: Release, lines: Sequence[Sequence[str]]) -> list[str]:
    """Return why the engine of a source ends with each line; empty for those with which it does not."""
    if source.suffix == ".whl":
        commands = ([["org/model", *line] for line in lines]) if GRAMMARS[release.engine].positionals else lines
        answer: list[str] = json.loads(engines.parser_says(source, "judge", commands))
        return answer
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda line: _llama_says(source, line), lines))


def _llama_says(root: Path, line: Sequence[str]) -> str:
    """Return the error of ``llama-server`` about its arguments; with other arguments it ends as it finds no model."""
    output = engines.llama_server(root, "--model", "/no/model.gguf", "--port", "18599", *line).splitlines()
    return next((text for text in output if text.startswith("error")), "")


def main(sources: Sequence[str]) -> int:
    """Write the corpus of each source, and print its counts."""
    for source in map(Path, sources):
        release = _release_of(source)
        lines = lines_of(release)
        answers = verdicts(source, release, lines)
        rows = [{"line": line, "ends": _PLACE.sub("", text)} for line, text in zip(lines, answers, strict=True)]
        name = f"{release.engine}-{release.version}"
        text = ",\n".join(json.dumps(row) for row in rows)
        (CORPUS / f"{name}.json").write_text(f"[\n{text}\n]\n", encoding="utf-8")
        alarms = [row for row in rows if not row["ends"] and ends_here(release, row["line"])]
        misses = [row for row in rows if row["ends"] and not ends_here(release, row["line"])]
        ending = sum(1 for row in rows if row["ends"])
        print(f"{name}: {len(rows)} lines, {ending} end it, {len(alarms)} false alarms, {len(misses)} missed")
        for what, group in (("false alarm", alarms), ("missed", misses)):
            for row in group:
                problems = [p for p in parsed(release, row["line"]).problems if p.slip in ENDING]
                print(f"  {what}: {shlex.join(row['line'])}  [{row['ends']}] {problems}")
    return 0


def _release_of(source: Path) -> Release:
    words = source.name.split("-")[:2] if source.suffix == ".whl" else ["llamacpp", ""]
    return next(release for release in RELEASES if release.engine == words[0] and release.version.startswith(words[1]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
