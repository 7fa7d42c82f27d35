"""Which files a command reads when it is given a directory."""

from __future__ import annotations

import fnmatch
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

SUFFIXES = (".yaml", ".yml", ".json")
VENDORED = frozenset({"node_modules", "vendor", "third_party", "site-packages", "__pycache__"})
CHART = "Chart.yaml"
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml")
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def below(directory: Path, exclude: Sequence[str], passed: Counter[str]) -> Iterator[Path]:
    """The manifests of a tree, in order; ``passed`` counts what was left out, by reason.

    Hidden and vendored folders, what .gitignore names, ``exclude`` (as .gitignore has it), Helm's templates, which are
    no manifests before they are rendered, and kustomize's patches, which are parts of objects.
    """
    rules = [*(_Rule(pattern, directory) for pattern in exclude), *_inherited(directory)]
    files = list(_walk(directory, rules, passed))
    patches = {patch for file in files if file.name in KUSTOMIZATIONS for patch in _patches(file)}
    for file in files:
        if file.resolve() in patches:
            passed["kustomize patches"] += 1
        else:
            yield file


def _patches(kustomization: Path) -> Iterator[Path]:
    """The files that a kustomization patches others with. One that cannot be read names none, and is a finding."""
    try:
        document = yaml.load(kustomization.read_bytes(), LOADER)  # noqa: S506 - a safe loader
    except (OSError, yaml.YAMLError, RecursionError):
        return
    if not isinstance(document, dict):
        return
    for key in ("patches", "patchesJson6902", "patchesStrategicMerge"):
        listed = document.get(key)
        for one in listed if isinstance(listed, list) else ():
            path = one.get("path") if isinstance(one, dict) else one
            if isinstance(path, str) and "\n" not in path:  # a patch may stand in the list itself
                yield (kustomization.parent / path).resolve()


def _walk(directory: Path, rules: list[_Rule], passed: Counter[str]) -> Iterator[Path]:
    rules = [*rules, *_rules_of(directory)]
    is_chart = (directory / CHART).exists()
    for entry in sorted(os.scandir(directory), key=lambda one: one.name):
        path = Path(entry.path)
        folder = entry.is_dir(follow_symlinks=False)
        if not folder and path.suffix not in SUFFIXES:
            continue
        reason = _left_out(path, folder, rules, is_chart)
        if reason:
            passed[reason] += sum(file.suffix in SUFFIXES for file in path.rglob("*")) if folder else 1
        elif folder:
            yield from _walk(path, rules, passed)
        elif path.is_file():
            yield path


def _left_out(path: Path, folder: bool, rules: list[_Rule], is_chart: bool) -> str:
    if folder and path.name.startswith("."):
        return "hidden"
    if folder and path.name in VENDORED:
        return "vendored"
    if folder and is_chart and path.name == "templates":
        return "Helm templates"
    ignored = False
    for rule in rules:
        if rule.matches(path, folder):
            ignored = not rule.negated
    return "excluded" if ignored else ""


class _Rule:
    """One line of a .gitignore."""

    def __init__(self, line: str, base: Path) -> None:
        self.negated = line.startswith("!")
        text = line.removeprefix("!")
        self._only_folders = text.endswith("/")
        text = text.rstrip("/")
        self._base = base.absolute()
        self._anchored = "/" in text
        self._pattern = re.compile(_regex(text.lstrip("/")))

    def matches(self, path: Path, folder: bool) -> bool:
        if self._only_folders and not folder:
            return False
        try:
            place = path.absolute().relative_to(self._base)
        except ValueError:
            return False
        return self._pattern.fullmatch(place.as_posix() if self._anchored else path.name) is not None


def _regex(pattern: str) -> str:
    """``**`` is any folders, ``*`` and ``?`` stay within one name."""
    parts = ["(?:.*/)?" if part == "**" else f"{_name_regex(part)}/" for part in pattern.split("/")]
    return "".join(parts).removesuffix("/")


def _name_regex(part: str) -> str:
    """Of one name: fnmatch's, within which nothing crosses a folder."""
    return fnmatch.translate(part).removesuffix(r"\Z").removesuffix(r"\z").replace(".*", "[^/]*")


def _rules_of(directory: Path) -> list[_Rule]:
    file = directory / ".gitignore"
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    return [_Rule(line.strip(), directory) for line in lines if line.strip() and not line.startswith("#")]


def _inherited(directory: Path) -> list[_Rule]:
    """What the folders above say, up to the root of the repository."""
    found: list[_Rule] = []
    here = directory.absolute()
    if (here / ".git").exists():
        return found
    for folder in here.parents:
        found = [*_rules_of(folder), *found]
        if (folder / ".git").exists():
            return found
    return []
