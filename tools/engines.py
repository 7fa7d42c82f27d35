"""Write the catalogue of an engine's release: ``python -m tools.engines SOURCE...``.

A catalogue has the options that the engine's own parser accepts, with what it knows of their values, and its metrics
and paths. It is read from what is published:

- the wheel of vLLM or SGLang (``pip download --no-deps vllm==0.20.0``), whose parser is run with stand-ins for torch
  (:mod:`tools.engineparsers`), in an environment that is made once below ``~/.cache/modelhooks``;
- a folder with Debian's package ``llama.cpp-tools`` and its libraries unpacked, whose ``llama-server`` is run, for its
  help, and with each option before a word that is not a number;
- an unpacked source archive of Text Generation Inference at a tag, whose page of the launcher's options is read, with
  the types of the launcher's ``Args``;
- an unpacked source archive of PersonaPlex at a commit, whose ``server.py`` is parsed. The folders of both are named as
  in GitHub's archives: ``text-generation-inference-3.3.7``.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "app" / "workload" / "engines" / "releases"

NEEDED = (
    *("aiohttp", "cachetools", "cbor2", "cloudpickle", "fastapi", "mistral_common", "msgspec", "numpy", "openai"),
    *("openai-harmony", "orjson", "packaging", "pillow", "prometheus_client", "psutil", "py-cpuinfo", "pybase64"),
    *("pydantic", "pydantic-settings", "pyyaml", "pyzmq", "regex", "requests", "setuptools", "tqdm"),
    *("transformers==5.16.1", "typing_extensions", "uvloop"),
)
"""Packages that the parsers of vLLM and SGLang need beside stand-ins."""
PARSERS = Path(__file__).resolve().parent / "engineparsers.py"
CACHE = Path.home() / ".cache" / "modelhooks" / "engines"

Options = dict[str, dict[str, Any]]
"""The options by name, as :class:`app.workload.engines.commandline.Option` has them."""


@dataclass
class Catalogue:
    """A release of an engine."""

    engine: str
    version: str
    source: str
    options: Options
    metrics: list[str]
    paths: list[str]

    def write(self) -> Path:
        """Write the release's file and return its path."""
        path = FOLDER / f"{self.engine}-{self.version}.json"
        entries = {name: {key: value for key, value in entry.items() if value} for name, entry in self.options.items()}
        options = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entries[name])}" for name in sorted(entries))
        lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in vars(self).items() if name != "options"]
        text = ",\n".join([*lines, f' "options": {{\n{options}\n }}'])
        path.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")
        return path


def main(argv: Sequence[str] | None = None) -> int:
    """Write the catalogues of the given sources."""
    parser = argparse.ArgumentParser(prog="python -m tools.engines", description="Write the catalogues of engines.")
    parser.add_argument(
        "sources", nargs="+", type=Path, help="a wheel, or a folder with unpacked packages or an archive"
    )
    for source in parser.parse_args(argv).sources:
        print(f"wrote {read(source).write()}")
    return 0


def read(source: Path) -> Catalogue:
    """Read the catalogue of a source. Raises ``SystemExit`` for an unknown one."""
    if source.suffix == ".whl":
        return _wheel(source)
    if (source / "usr/bin/llama-server").is_file():
        return _llama_server(source)
    if (source / "docs/source/reference/launcher.md").is_file():
        return _tgi(source)
    if (source / "moshi/moshi/server.py").is_file():
        return _personaplex(source)
    raise SystemExit(
        f"{source}: neither a wheel, nor a folder with llama-server, nor the source of an engine that is known"
    )


# Wheels: vLLM and SGLang.

_FILES = {
    "vllm": r"vllm/(engine/arg_utils|entrypoints/(?:openai|common)/cli_args|config\b.*|entrypoints/cli/serve"
    r"|model_executor/layers/quantization/__init__|v1/attention/backends/registry|attention/backends/registry"
    r"|(?:entrypoints/openai/)?tool_parsers/__init__|reasoning/__init__"
    r"|entrypoints/openai/(?:tool|reasoning)_parsers/\w+)\.py",
    "sglang": r"sglang/srt/(server_args|arg_groups/.*|function_call/function_call_parser|function_call/parser_names"
    r"|parser/reasoning_parser\w*|parser/parser_names|speculative/spec_(?:info|registry))\.py",
}
"""The modules that declare options and their values."""
_METRICS = {"vllm": r'"(vllm:[a-z0-9_]+)"', "sglang": r'"(sglang:[a-z0-9_]+)"'}
_PATHS = re.compile(r'"(/(?:health|health_generate|metrics))"')
CHECKED_LATER = {
    "vllm": {
        "--attention-backend": "AttentionBackendEnum",
        "--mm-encoder-attn-backend": "AttentionBackendEnum",
        "--mamba-backend": "MambaBackendEnum",
        "--quantization": "QuantizationMethods",
        "--kv-cache-dtype": "CacheDType",
        "--reasoning-parser": "_REASONING_PARSERS_TO_REGISTER",
        "--tool-call-parser": "_TOOL_PARSERS_TO_REGISTER",
    },
    "sglang": {"--speculative-algorithm": "SpeculativeAlgorithm"},
}
"""Options whose values the engine checks against a list after parsing."""
_ALIASES = {"--speculative-algorithm": "_RESERVED_ALIASES"}
"""Lists of further names of such values."""
_REGISTERED = {"--reasoning-parser": "ReasoningParserManager", "--tool-call-parser": "ToolParserManager"}
"""Classes of vLLM 0.7.3 with which the modules of values register them."""
_EXACT = ("--reasoning-parser", "--tool-call-parser")
"""Of the options whose values are checked later, those whose case counts."""
_FOLDED = {"vllm": ("--attention-backend",), "sglang": ("--speculative-algorithm",)}
"""Other options whose values are case-insensitive."""


def _wheel(path: Path) -> Catalogue:
    engine, version = path.name.split("-")[:2]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    with zipfile.ZipFile(path) as wheel:
        names = [name for name in wheel.namelist() if name.endswith(".py") and "/test" not in name]
        texts = {name: wheel.read(name).decode() for name in names}
    declared = Declarations()
    for name, text in texts.items():
        if re.fullmatch(_FILES[engine], name):
            declared.add(ast.parse(text))
    options = catalogued(json.loads(parser_says(path, "describe")))
    for option, listed in CHECKED_LATER[engine].items():
        if option in options and not options[option].get("values"):
            registered = declared.registered.get(_REGISTERED.get(option, ""), [])
            aliases = declared.values(ast.Name(_ALIASES[option])) if option in _ALIASES else []
            options[option]["values"] = [*declared.values(ast.Name(listed)), *aliases] or sorted(registered)
            options[option]["folds"] = option not in _EXACT
    for option in _FOLDED[engine]:
        if option in options:
            options[option]["folds"] = True
    everything = "\n".join(texts.values())
    return Catalogue(
        engine,
        version,
        f"{path.name} sha256:{digest}",
        options,
        sorted(set(re.findall(_METRICS[engine], everything))),
        sorted(set(_PATHS.findall(everything))),
    )


def catalogued(described: Iterable[dict[str, Any]]) -> Options:
    """Return the options of a parser by their first long name, with their other names as ``also`` and ``off``."""
    options: Options = {}
    for entry in described:
        names, off = entry.pop("names"), entry.pop("off", [])
        name = next((name for name in names if name.startswith("--") and name not in off), names[0])
        also = sorted({*names} - {name, *off})
        options[name] = {"type": entry.pop("type"), "also": also, "off": off, **entry}
        if options[name]["type"] == "text":
            del options[name]["type"]
    return options


def python() -> Path:
    """Return the interpreter that has what the engines' modules need beside stand-ins; make its environment once."""
    interpreter = CACHE / "parsers" / "bin" / "python"
    if not interpreter.exists():
        venv.create(CACHE / "parsers", with_pip=True)
        subprocess.run([str(interpreter), "-m", "pip", "install", "--quiet", *NEEDED], check=True)  # noqa: S603 - names above
    return interpreter


def parser_says(wheel: Path, request: str, lines: Sequence[Sequence[str]] = ()) -> str:
    """Return what the own parser of a wheel answers (:mod:`tools.engineparsers`)."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder, [name for name in archive.namelist() if name.endswith((".py", ".json"))])
        command = [str(python()), str(PARSERS), folder, request]
        done = subprocess.run(command, input=json.dumps(lines), capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise SystemExit(f"{wheel.name}: its parser could not be run:\n{done.stderr[-2000:]}")
    return done.stdout


@dataclass
class Declarations:
    """Declarations of modules: names with their expressions, classes with their fields, and the calls of a parser.

    ``registered`` has the names that decorators register, by the class of the registry.
    """

    names: dict[str, ast.expr] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    calls: list[ast.Call] = field(default_factory=list)
    registered: dict[str, list[str]] = field(default_factory=dict)

    def add(self, tree: ast.Module) -> None:
        """Add a module's declarations."""
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                self.classes[node.name] = node
            elif isinstance(node, ast.FunctionDef):
                returned = [item.value for item in ast.walk(node) if isinstance(item, ast.Return) and item.value]
                if returned:
                    self.names.setdefault(node.name, returned[-1])
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.names[node.targets[0].id] = node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                self.names.setdefault(node.target.id, node.value)
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
                self.calls.append(node)
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "register_module":
                names = [text for argument in node.args for text in self.values(argument)]
                self.registered.setdefault(ast.unparse(node.func).partition(".")[0], []).extend(names)

    def options(self) -> Options:
        """Return the options of the calls."""
        return {name: entry for call in self.calls for name, entry in self._called(call)}

    def _called(self, call: ast.Call) -> Iterator[tuple[str, dict[str, Any]]]:
        passed = {keyword.arg: keyword.value for keyword in call.keywords}
        names = [text for argument in call.args for text in self.values(argument)]
        action = passed.get("action")
        if isinstance(action, ast.Constant) and action.value in ("store_true", "store_false"):
            entry: dict[str, Any] = {"type": "switch"}
        else:
            entry = {"type": _NUMBERS.get(ast.unparse(passed["type"]), "")} if "type" in passed else {}
            entry |= {"values": self.values(passed["choices"])} if "choices" in passed else {}
        yield names[0], {**entry, "also": names[1:]}

    def values(self, node: ast.expr, seen: tuple[str, ...] = ()) -> list[str]:
        """Return the strings of an expression: a list, a ``Literal``, an enumeration's members, or a sum of these."""
        if isinstance(node, ast.Constant):
            return [node.value] if isinstance(node.value, str) else []
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name in self.classes:
            return self._members(self.classes[name])
        if name in self.names and name not in seen:
            return self.values(self.names[name], (*seen, name))
        return [text for part in _parts(node) for text in self.values(part, seen)]

    def _members(self, node: ast.ClassDef) -> list[str]:
        """Return the members of an enumeration except ``None`` and the empty string."""
        if not any("Enum" in ast.unparse(base) for base in node.bases):
            return []
        assigned = [item for item in node.body if isinstance(item, ast.Assign)]
        return [
            item.targets[0].id
            for item in assigned
            if isinstance(item.targets[0], ast.Name)
            and item.targets[0].id != "NONE"
            and not (isinstance(item.value, ast.Constant) and not item.value.value)
        ]


def _parts(node: ast.expr) -> list[ast.expr]:
    """Return the expressions that an expression's values come from."""
    match node:
        case ast.Attribute(attr="keys" | "__args__", value=inner) | ast.Starred(value=inner):
            return [inner]
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return items
        case ast.Dict(keys=keys):
            return [key for key in keys if key is not None]
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Subscript(value=ast.Name(id="Literal" | "Optional" | "Union"), slice=inner):
            return [inner]
        case ast.Call(func=function, args=arguments):
            return arguments[:1] or [function]
    return []


_NUMBERS = {"int": "integer", "float": "number"}


# llama.cpp.

_HELP_ROW = re.compile(r"^(-[^\s].*?)(?:\s{2,}|$)")
_BULLET = re.compile(r"\s+- ([\w+-]+): ")
_VARIABLE = re.compile(r"[(\[]env: (\w+)[=)]")
_TWO_VALUES = re.compile(r"[A-Z]+ [A-Z]+$")
_LISTED = re.compile(r"[\[{]([\w.|,-]+)[\]}]|allowed values: ([\w, ]+)")
_REMOVED = "the argument has been removed"
"""Description of an option that llama.cpp refuses."""


def llama_server(root: Path, *words: str) -> str:
    """Return what the program of unpacked packages prints."""
    root = root.resolve()
    folders = {str(path.parent) for path in (root / "usr/lib").rglob("*.so*")}
    loader = str(next((root / "usr/lib").rglob("ld-linux-*.so.*")))
    command = [loader, "--library-path", ":".join(sorted(folders)), str(root / "usr/bin/llama-server"), *words]
    with tempfile.TemporaryDirectory() as folder:  # some options make files
        done = subprocess.run(  # noqa: S603 - of the package
            command, capture_output=True, text=True, check=False, timeout=30, cwd=folder
        )
    return done.stdout + done.stderr


def _llama_server(root: Path) -> Catalogue:
    program = root / "usr/bin/llama-server"

    def run(*words: str) -> str:
        return llama_server(root, *words)

    version = re.search(r"version: (\S+)", run("--version"))
    if version is None:
        raise SystemExit(f"{program} --version prints no version")
    binaries = [path.read_bytes() for path in [program, *(root / "usr/lib").rglob("libllama*.so*")] if path.is_file()]
    words = {word.decode() for data in binaries for word in re.findall(rb"[a-z_/:]{5,40}", data)}
    metrics = sorted(f"llamacpp:{word}" for word in words if word.startswith("requests_"))
    paths = sorted(words & {"/health", "/metrics"})
    source = "llama-server --help of Debian's package llama.cpp-tools"
    options = help_options(run("--help"))
    for name in options:
        listed = options[name].pop("listed", [])
        entry: dict[str, Any] = kind_by(run(name, *_TRIED)) if name not in _ENDING else {"type": "switch"}
        if entry.get("type") == "integer" and options[name].get("count") != "2":
            entry["words"] = [word for word in _WORDS if not kind_by(run(name, word, _TRIED[1]))]
            entry = entry if not kind_by(run(name, "7", _TRIED[1])) else {"type": "form"}
        if entry.get("type") == "form" and (options[name].get("values") or listed):
            entry = {"values": options[name].get("values") or listed}
        if {"on", "off"} <= {*options[name].get("values", ())}:
            entry["words"] = [word for word in _STATES if not kind_by(run(name, word, _TRIED[1]))]
        options[name] |= entry
    return Catalogue("llamacpp", version[1], source, options, metrics, paths)


_TRIED = ("no-number", "--no-option")
"""Words tried behind an option: its first error shows whether it reads no value, a number, one word or several."""
_WORDS = ("all", "auto")
"""Words that some options take instead of a number."""
_STATES = ("true", "enabled", "1", "false", "disabled", "0", "-1")
"""Words that some options take instead of those that their help lists: on, off and auto."""
_ENDING = ("--help", "--version", "--cache-list", "--completion-bash", "--list-devices")
"""Options with which the program prints something and ends."""


def kind_by(told: str) -> dict[str, Any]:
    """Return the type of an option by llama.cpp's error about the option with :data:`_TRIED`."""
    first = next((line for line in told.splitlines() if line.startswith("error")), "")
    if first.endswith(f"invalid argument: {_TRIED[0]}"):
        return {"type": "switch"}
    if first.endswith((": stoi", ": stol", ": stoul", ": stoll", ": stoull")):
        return {"type": "integer"}
    if first.endswith((": stof", ": stod")):
        return {"type": "number"}
    if "[json.exception" in first:
        return {"type": "json"}
    return {"type": "form"} if "while handling" in first else {}


def help_options(text: str) -> Options:
    """Return the options in llama.cpp's help, whose rows begin with a dash and are followed by a description."""
    options: Options = {}
    entry: dict[str, Any] = {}
    for line in text.splitlines():
        if line.startswith("-----"):
            continue
        row = _HELP_ROW.match(re.sub(r",\s+-", ", -", line))
        if row is not None:
            names = [word for word in re.split(r"[,\s]+", row[1]) if re.fullmatch(r"--?[A-Za-z][\w-]*", word)]
            entry = _row(names, options) if names and _REMOVED not in line else {}
            entry["listed"] = []
            entry |= {"count": "2"} if _TWO_VALUES.search(row[1]) else {}
        if row is None and (bullet := _BULLET.match(line)) is not None:
            entry.setdefault("listed", []).append(bullet[1])
        if (variable := _VARIABLE.search(line)) is not None:
            entry["variable"] = variable[1]
        listed = _LISTED.search(line)
        if listed is not None and (row is not None or listed[2]):
            entry.setdefault("values", [value for value in re.split(r"[|,\s]+", listed[1] or listed[2]) if value])
    return options


def _row(names: Sequence[str], options: Options) -> dict[str, Any]:
    """Add the options of a row: ``--perf, --no-perf`` are two spellings of one."""
    name = next((name for name in names if name.startswith("--")), names[0])
    off = [other for other in names if other.startswith(("--no-", "-no")) and other != name]
    options[name] = {"also": [other for other in names if other not in (name, *off)], "off": off}
    return options[name]


# Source archives.


def _tgi(checkout: Path) -> Catalogue:
    text = (checkout / "docs/source/reference/launcher.md").read_text(encoding="utf-8")
    launcher = (checkout / "launcher/src/main.rs").read_text(encoding="utf-8")
    types, lists = launcher_types(launcher), {f"--{name.replace('_', '-')}" for name in _LISTS.findall(launcher)}
    options: Options = {}
    for block in re.findall(r"```shell\n(.*?)```", text, re.DOTALL):
        listed = re.search(r"\[possible values: (.+?)\]", block)
        longer = re.findall(r"^\s+- ([a-z0-9-]+):?", block.partition("Possible values:")[2], re.MULTILINE)
        for short, name in re.findall(r"^\s*(?:(-\w), )?(--[a-z0-9-]+)", block, re.MULTILINE)[:1]:
            aliases = {other for earlier in options.values() for other in earlier["also"]}  # the first of two has it
            entry = {
                "also": [short] if short and short not in aliases else [],
                "values": listed[1].split(", ") if listed else longer,
            }
            variable = _VARIABLE.search(block)
            entry |= {"repeats": name in lists, "variable": variable[1] if variable else ""}
            options[name] = {"type": types.get(name, "switch"), **entry}
    version = checkout.name.rpartition("-")[2]
    rust = "\n".join(path.read_text(encoding="utf-8") for path in checkout.rglob("*.rs"))
    metrics = sorted(set(re.findall(r'"(tgi_[a-z0-9_]+)"', rust)))
    source = f"docs/source/reference/launcher.md and the router's source at the tag v{version}; in no package registry"
    return Catalogue("tgi", version, source, options, metrics, sorted(set(_PATHS.findall(rust))))


_LISTS = re.compile(r"^    (\w+): (?:Option<)?Vec<", re.MULTILINE)
_RUST = {"bool": "switch", "f32": "number", "f64": "number", **dict.fromkeys(("u16", "u32", "u64", "usize"), "integer")}


def launcher_types(source: str) -> dict[str, str]:
    """Return the types of the options of TGI's launcher, which are the fields of its struct ``Args``."""
    body = source.partition("struct Args {")[2].partition("\n}\n")[0]
    declared = re.findall(r"^    (\w+): (?:Option<)?(\w+)[<>\w]*,", body, re.MULTILINE)
    optional = set(re.findall(r"^    (\w+): Option<bool>,", body, re.MULTILINE))
    return {f"--{name.replace('_', '-')}": "" if name in optional else _RUST.get(kind, "") for name, kind in declared}


def _personaplex(checkout: Path) -> Catalogue:
    declared = Declarations()
    declared.add(ast.parse((checkout / "moshi/moshi/server.py").read_text(encoding="utf-8")))
    commit = checkout.name.rpartition("-")[2]
    source = "moshi/moshi/server.py of NVIDIA/personaplex; no release, and in no package registry"
    return Catalogue("personaplex", commit, source, declared.options(), [], [])


if __name__ == "__main__":
    sys.exit(main())
