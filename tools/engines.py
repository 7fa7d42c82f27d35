"""Write the catalogue of an engine's release: ``python -m tools.engines SOURCE...``.

A catalogue has the options that the engine's own parser accepts, with their values, and its metrics and paths. It is
read from published files; only llama.cpp's program is run:

- the wheel of vLLM or SGLang (``pip download --no-deps vllm==0.20.0``), whose source is parsed;
- a folder with Debian's package ``llama.cpp-tools`` and its libraries unpacked, whose ``llama-server --help`` is run;
- an unpacked source archive of Text Generation Inference at a tag, whose page of the launcher's options is parsed;
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
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "app" / "workload" / "engines"

Options = dict[str, list[str]]
"""The values of each option; empty for an option with any value or without one."""
Kinds = dict[str, list[str]]
"""The options without a value, as ``switch``, and those with an ``integer`` or a ``number``; no other ones."""


@dataclass
class Catalogue:
    """A release of an engine."""

    engine: str
    version: str
    source: str
    options: Options
    metrics: list[str]
    paths: list[str]
    kinds: Kinds = field(default_factory=dict)

    def write(self) -> Path:
        """Write the release's file and return its path."""
        path = FOLDER / f"{self.engine}-{self.version}.json"
        options = ",\n".join(f"  {json.dumps(name)}: {json.dumps(self.options[name])}" for name in sorted(self.options))
        rest = {name: json.dumps(value) for name, value in vars(self).items() if name not in ("options", "kinds")}
        rest |= {"kinds": json.dumps(self.kinds)} if self.kinds else {}
        lines = [f" {json.dumps(name)}: {text}" for name, text in rest.items()]
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
    r"|parser/reasoning_parser\w*|parser/parser_names|speculative/spec_info)\.py",
}
"""The modules that declare options and their values."""
_METRICS = {"vllm": r'"(vllm:[a-z_]+)"', "sglang": r'"(sglang:[a-z_]+)"'}
_PATHS = re.compile(r'"(/(?:health|health_generate|metrics))"')
_CHECKED_LATER = {
    "vllm": {
        "--quantization": "QuantizationMethods",
        "--kv-cache-dtype": "CacheDType",
        "--reasoning-parser": "_REASONING_PARSERS_TO_REGISTER",
        "--tool-call-parser": "_TOOL_PARSERS_TO_REGISTER",
    },
    "sglang": {"--speculative-algorithm": "SpeculativeAlgorithm"},
}
"""Options whose values the engine checks against a list after parsing."""
_REGISTERED = {"--reasoning-parser": "ReasoningParserManager", "--tool-call-parser": "ToolParserManager"}
"""Classes of vLLM 0.7.3 with which the modules of values register them."""
_SWITCHES = ("store_true", "store_false", "BooleanOptionalAction")
"""Actions of an option without a value."""
_KINDS = {"bool": "switch", "int": "integer", "float": "number"}
_FOLDED = {"vllm": ("--attention-backend",), "sglang": ("--speculative-algorithm",)}
"""Options whose values are case-insensitive."""


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
    options = declared.options()
    for option, listed in _CHECKED_LATER[engine].items():
        if option in options:
            registered = declared.registered.get(_REGISTERED.get(option, ""), [])
            options[option] = declared.values(ast.Name(listed)) or sorted(registered) or options[option]
    for option in _FOLDED[engine]:
        if option in options:
            both = {spelling for value in options[option] for spelling in (value.lower(), value.upper())}
            options[option] = sorted(both)
    everything = "\n".join(texts.values())
    return Catalogue(
        engine,
        version,
        f"{path.name} sha256:{digest}",
        options,
        sorted(set(re.findall(_METRICS[engine], everything))),
        sorted(set(_PATHS.findall(everything))),
        declared.kinds(),
    )


Declared = tuple[list[str], list[str], str]
"""The names of an option, its values, and its kind."""


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
        """Return every option, from the calls and from the annotated fields that become options."""
        options: Options = {}
        for names, values, _ in (*self._called(), *self._annotated()):
            for name in names:
                options[name] = options.get(name) or values
        return options

    def kinds(self) -> Kinds:
        """Return the options of each kind; none whose declarations differ, or that take a list of values."""
        declared: dict[str, set[str]] = {}
        for names, values, kind in (*self._called(), *self._annotated()):
            for name in names:
                declared.setdefault(name, set()).add("" if values else kind)
        return {kind: sorted(name for name in declared if declared[name] == {kind}) for kind in _KINDS.values()}

    def _called(self) -> Iterator[Declared]:
        for call in self.calls:
            names = [item.value for item in call.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
            values: list[str] = []
            for keyword in call.keywords:
                if keyword.arg == "choices":
                    values = self.values(keyword.value)
                elif keyword.arg is None and isinstance(keyword.value, ast.Subscript):
                    values = self._keyword_values(keyword.value)
            yield [name for name in names if name.startswith("-")], values, self._kind(call)

    def _kind(self, call: ast.Call) -> str:
        """Return the kind of an option from its action and type, which win over the field's of the configuration."""
        passed = {keyword.arg: keyword.value for keyword in call.keywords}
        if "nargs" in passed:
            return ""
        if "action" in passed:
            action = passed["action"]
            name = str(action.value) if isinstance(action, ast.Constant) else ast.unparse(action).rpartition(".")[2]
            return "switch" if name in _SWITCHES else ""
        if "type" in passed:
            return _KINDS.get(ast.unparse(passed["type"]), "")
        annotation = self._annotation(passed.get(None))
        return "" if annotation is None else _kind_of(annotation)

    def _annotation(self, keywords: ast.expr | None) -> ast.expr | None:
        """Return the field of ``**model_kwargs["dtype"]``, where ``model_kwargs = get_kwargs(ModelConfig)``.

        Also of ``**{**model_kwargs["dtype"], "default": None}``.
        """
        if isinstance(keywords, ast.Dict) and keywords.keys[:1] == [None]:
            keywords = keywords.values[0]
        if not isinstance(keywords, ast.Subscript) or not isinstance(keywords.slice, ast.Constant):
            return None
        source = self.names.get(keywords.value.id) if isinstance(keywords.value, ast.Name) else None
        if not isinstance(source, ast.Call) or not source.args or not isinstance(source.args[0], ast.Name):
            return None
        return self._fields(source.args[0].id).get(str(keywords.slice.value))

    def _keyword_values(self, keywords: ast.Subscript) -> list[str]:
        annotation = self._annotation(keywords)
        return [] if annotation is None or _has_text(annotation) else self.values(annotation)

    def _fields(self, name: str) -> dict[str, ast.expr]:
        """Return the annotations of a class, including inherited ones."""
        node = self.classes.get(name)
        if node is None:
            return {}
        bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
        inherited = {key: value for base in bases for key, value in self._fields(base).items()}
        declared = [item for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)]
        return inherited | {item.target.id: item.annotation for item in declared if isinstance(item.target, ast.Name)}

    def _annotated(self) -> Iterator[Declared]:
        """Yield fields such as ``tp_size: A[int, Arg(aliases=[...])]``, and those of classes ``...FrontendArgs``."""
        for name in self.classes:
            for field_, annotation in self._fields(name).items():
                option = "--" + field_.replace("_", "-")
                if name.endswith("FrontendArgs"):
                    yield [option], [], _kind_of(annotation)
                elif isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) in ("A", "Annotated"):
                    yield self._argument(option, annotation)

    def _argument(self, option: str, annotation: ast.Subscript) -> Declared:
        type_, *extras = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        keywords = {item.arg: item.value for call in extras if isinstance(call, ast.Call) for item in call.keywords}
        if "no_cli" in keywords or not extras:
            return [], [], ""
        name = self.values(keywords["cli_name"]) if "cli_name" in keywords else [option]
        aliases = self.values(keywords["aliases"]) if "aliases" in keywords else []
        values = self.values(keywords["choices"]) if "choices" in keywords else self.values(type_)
        is_plain = keywords.keys().isdisjoint(("action", "nargs", "type_parser", "const"))
        return [*name, *aliases], values, _kind_of(type_) if is_plain else ""

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


def _kind_of(annotation: ast.expr) -> str:
    """Return the kind of an option by the type of its value; empty for all but one type or ``None``."""
    names = set(re.findall(r"[\w.]+", ast.unparse(annotation))) - {"None", "Optional", "SkipValidation", "Union"}
    return _KINDS.get(names.pop(), "") if len(names) == 1 else ""


def _has_text(annotation: ast.expr) -> bool:
    """Return True if an annotation allows any string."""
    return any(isinstance(node, ast.Name) and node.id == "str" for node in ast.walk(annotation))


# llama.cpp.

_HELP_ROW = re.compile(r"^(-[^\s].*?)(?:\s{2,}|$)")
_LISTED = re.compile(r"[\[{]([\w.|,-]+)[\]}]|allowed values: ([\w, ]+)")
_REMOVED = "the argument has been removed"
"""Description of an option that llama.cpp refuses."""


def _llama_server(root: Path) -> Catalogue:
    program = root / "usr/bin/llama-server"
    folders = {str(path.parent) for path in (root / "usr/lib").rglob("*.so*")}
    loader = [str(next((root / "usr/lib").rglob("ld-linux-*.so.*"))), "--library-path", ":".join(sorted(folders))]

    def run(option: str) -> str:
        command = [*loader, str(program), option]
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - of the package
        return done.stdout + done.stderr

    version = re.search(r"version: (\S+)", run("--version"))
    if version is None:
        raise SystemExit(f"{program} --version prints no version")
    binaries = [path.read_bytes() for path in [program, *(root / "usr/lib").rglob("libllama*.so*")] if path.is_file()]
    words = {word.decode() for data in binaries for word in re.findall(rb"[a-z_/:]{5,40}", data)}
    metrics = sorted(f"llamacpp:{word}" for word in words if word.startswith("requests_"))
    paths = sorted(words & {"/health", "/metrics"})
    source = "llama-server --help of Debian's package llama.cpp-tools"
    return Catalogue("llamacpp", version[1], source, help_options(run("--help")), metrics, paths)


def help_options(text: str) -> Options:
    """Return the options in llama.cpp's help, whose rows begin with a dash and are followed by a description."""
    options: Options = {}
    names: list[str] = []
    for line in text.splitlines():
        if line.startswith("-----"):
            continue
        row = _HELP_ROW.match(re.sub(r",\s+-", ", -", line))
        if row is not None:
            names = [word for word in re.split(r"[,\s]+", row[1]) if re.fullmatch(r"--?[A-Za-z][\w-]*", word)]
            names = [] if _REMOVED in line else names
            options |= {name: [] for name in names}
        listed = _LISTED.search(line)
        if listed is not None and (row is not None or listed[2]):
            values = [value for value in re.split(r"[|,\s]+", listed[1] or listed[2]) if value]
            options |= {name: values for name in names if not options[name]}
    return options


# Source archives.


def _tgi(checkout: Path) -> Catalogue:
    text = (checkout / "docs/source/reference/launcher.md").read_text(encoding="utf-8")
    options: Options = {}
    for block in re.findall(r"```shell\n(.*?)```", text, re.DOTALL):
        names = re.findall(r"^\s*(?:-\w, )?(--[a-z0-9-]+)", block, re.MULTILINE)[:1]
        listed = re.search(r"\[possible values: (.+?)\]", block)
        longer = re.findall(r"^\s+- ([a-z0-9-]+):?", block.partition("Possible values:")[2], re.MULTILINE)
        options |= {name: listed[1].split(", ") if listed else longer for name in names}
    version = checkout.name.rpartition("-")[2]
    rust = "\n".join(path.read_text(encoding="utf-8") for path in checkout.rglob("*.rs"))
    metrics = sorted(set(re.findall(r'"(tgi_[a-z_]+)"', rust)))
    source = f"docs/source/reference/launcher.md and the router's source at the tag v{version}; in no package registry"
    return Catalogue("tgi", version, source, options, metrics, sorted(set(_PATHS.findall(rust))))


def _personaplex(checkout: Path) -> Catalogue:
    declared = Declarations()
    declared.add(ast.parse((checkout / "moshi/moshi/server.py").read_text(encoding="utf-8")))
    commit = checkout.name.rpartition("-")[2]
    source = "moshi/moshi/server.py of NVIDIA/personaplex; no release, and in no package registry"
    return Catalogue("personaplex", commit, source, declared.options(), [], [])


if __name__ == "__main__":
    sys.exit(main())
