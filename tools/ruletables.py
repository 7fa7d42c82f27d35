"""Generates the lists of rules in ``docs/reference`` from the checks: the first sentences of their docstrings.

A page names the modules of a list in a comment above it, ``<!-- checks: app/llmaz/checks.py … -->``. A function is a
check if it makes an error or an advice itself; each has an item, whose verb shows which, and each item has a check.
The comment ``<!-- rules: Kind … -->`` asks for the rules between fields that are in the CRDs of these kinds, and with
``below=PATH`` or ``outside=PATH`` for a part of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from app.kube.resource import CustomResource
from app.kube.schema.docstrings import documented
from tools import crds

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("app/kserve/README.md", *(f"docs/reference/{name}-rules.md" for name in ("llmkube", "llmaz", "kserve", "pod")))
MODULES = ("app/llmkube", "app/llmaz", "app/kserve", "app/workload")
"""Folders whose checks have to be in a table."""

_VERBS = {"E": ("Reject", "Require"), "W": ("Warn",), "E, W": ("Reject", "Require")}

HELPERS = ("app/workload/rules/fieldrules.py",)
"""Modules of rules that other modules apply to fields."""

RULE_ID = re.compile(r"\b(?:LK|LZ|KS|HTTP)-(?:[A-Z]-?)?[A-Z]{0,2}\d+[a-z]?(?:\.\d+)*\b")

_NAMED_RULE = re.compile(rf"(Warn|Reject|Require)\b.*?{RULE_ID.pattern}", re.DOTALL)
_RANGE = re.compile(rf"{RULE_ID.pattern}(?: to {RULE_ID.pattern})?")
_TABLE = re.compile(r"(<!-- (checks|rules): ([^>]+) -->)\n+(?:\* .*\n)*\n*")
_IDS = re.compile(rf" ?\((?:{RULE_ID.pattern}(?:, | to )?)+\)")
_ROLE = re.compile(r":\w+:`[~.]?([\w.]+)`")
_ANSWER = re.compile(r"Errors|Rule|(Iterator|Iterable|list)\[(\w+\.)?(Error|Advice|Warned|str)\]")
_MAKERS = {
    **dict.fromkeys(("duplicate", "forbidden", "immutable", "invalid", "not_supported"), "E"),
    **dict.fromkeys(("required", "too_long", "type_invalid"), "E"),
    **dict.fromkeys(("Advice", "advice", "no_effect", "_no_effect"), "W"),
}
"""Functions of :mod:`app.kube.field`, and helpers, that make an error (E) or an advice (W)."""


def page(text: str, resources: Sequence[CustomResource]) -> str:
    """Return a page with its lists of rules brought up to date."""

    def table(match: re.Match[str]) -> str:
        names = match[3].split()
        rows = _module_rows(names) if match[2] == "checks" else _schema_rows(names, resources)
        return f"{match[1]}\n\n{''.join(dict.fromkeys(rows))}\n"

    return _TABLE.sub(table, text).rstrip() + "\n"


def unlisted(pages: Sequence[str]) -> list[str]:
    """Return modules with checks that no page names, and modules that pages name and that have none."""
    tables = (match for text in pages for match in _TABLE.finditer(text) if match[2] == "checks")
    named = {name for match in tables for name in match[3].split()}
    files = (file.relative_to(ROOT).as_posix() for folder in MODULES for file in (ROOT / folder).rglob("*.py"))
    present = {name for name in files if name not in HELPERS and any(checks(name))}
    return sorted(named ^ present)


def checks(module: str) -> Iterator[tuple[ast.FunctionDef, str]]:
    """Yield the functions of a module that make errors or advice, or name a rule, with the letters of these."""
    for node in ast.parse((ROOT / module).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and _yields(node):
            letters = {_MAKERS[name] for name in _called(node) if name in _MAKERS}
            named = _NAMED_RULE.match(ast.get_docstring(node) or "")
            if letters:
                yield node, ", ".join(sorted(letters))
            elif named:
                yield node, "W" if named[1] == "Warn" else "E"


def _yields(node: ast.FunctionDef) -> bool:
    """Return whether a function's answer is several errors or advices, or a rule that yields them."""
    answer = ast.unparse(node.returns) if node.returns is not None else ""
    return _ANSWER.fullmatch(answer) is not None


def _called(node: ast.FunctionDef) -> Iterator[str]:
    """Yield the names of called functions that are this module's, or those of :mod:`app.kube.field`."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            match call.func:
                case ast.Name(name) | ast.Attribute(ast.Name("field"), name):
                    yield name


def _module_rows(modules: Sequence[str]) -> Iterator[str]:
    """Yield the items of modules' checks. Raises ``SystemExit`` if a docstring is missing, or has not its verb."""
    for module in modules:
        statements = ast.parse((ROOT / module).read_text(encoding="utf-8")).body
        for _, description in documented(statements):
            if ids := _ids(description):
                yield _item(_sentence(description), ids)
        lines = (ROOT / module).read_text(encoding="utf-8").splitlines()
        for node, letters in checks(module):
            source = " ".join(lines[node.lineno - 1 : node.end_lineno])
            docstring = ast.get_docstring(node)
            if not docstring:
                detail = "makes errors or advice, and has no docstring for the list of rules"
                raise SystemExit(f"{module}: {node.name} {detail}")
            sentence = _sentence(docstring)
            if not sentence.startswith(_VERBS[letters]):
                raise SystemExit(f"{module}: the docstring of {node.name} must begin with one of {_VERBS[letters]}")
            yield _item(sentence, _ids(source))


def _item(sentence: str, ids: str) -> str:
    return f"* {sentence} ({ids})\n" if ids else f"* {sentence}\n"


def _ids(source: str) -> str:
    return ", ".join(sorted({match[0] for match in _RANGE.finditer(source)}))


def _sentence(docstring: str) -> str:
    """Return the first sentence of a docstring, without ids, in Markdown."""
    first = re.split(r"(?<=\.)(?<!e\.g\.)\s", " ".join(docstring.partition("\n\n")[0].split()), maxsplit=1)[0]
    plain = _ROLE.sub(r"`\1`", _IDS.sub("", first)).replace("``", "`")
    return plain.rstrip(".")


def _schema_rows(names: Sequence[str], resources: Sequence[CustomResource]) -> Iterator[str]:
    """Yield the rules of kinds, or a part of them; one that fields of the same name share is given for the first."""
    options = dict(name.split("=") for name in names if "=" in name)
    first: dict[tuple[str, str], str] = {}
    messages: dict[str, list[str]] = {}
    for resource in resources:
        if resource.kind in names:
            for version in crds.custom_resource_definition(resource)["spec"]["versions"]:
                for path, message in _validations(version["schema"]["openAPIV3Schema"], ""):
                    first.setdefault((path.rpartition(".")[2], message), path)
    for (_, message), path in first.items():
        excluded = "outside" in options and path.startswith(options["outside"])
        if path.startswith(options.get("below", "")) and not excluded:
            messages.setdefault(path, []).append(message)
    for path, texts in messages.items():
        yield f"* `{path}`: {'; '.join(texts)}\n"


def _validations(schema: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield path, rule["message"]
    for name, member in schema.get("properties", {}).items():
        yield from _validations(member, f"{path}.{name}" if path else name)
    for key, suffix in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(key), dict):
            yield from _validations(schema[key], path + suffix)
