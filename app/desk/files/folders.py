"""Find the manifests among the files and directories of a command line, and read them."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from app.desk.files.manifests import NOT_AN_OBJECT, Manifest, ManifestError, ManifestFiles, looks_like_manifest, values
from app.limits import MAX_FILE_BYTES, MAX_IGNORE_FILE_BYTES

if TYPE_CHECKING:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

YAML_SUFFIXES = (".yaml", ".yml")
SUFFIXES = (*YAML_SUFFIXES, ".json")
VENDORED = frozenset({"node_modules", "vendor", "third_party", "site-packages", "__pycache__"})
CHART = "Chart.yaml"
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml")
TEMPLATES = "templates"
GITIGNORE = ".gitignore"
WORKLOADS = ("Deployment", "StatefulSet")
"""Users' own workloads that ``convert`` reads."""
MAX_LISTED = 5
"""Kinds or files that a message names."""
HELM_TEMPLATE, PATCH, EXCLUDED = "Helm template", "kustomize patch", "excluded file"
HIDDEN, VENDORED_FILE = "hidden file", "vendored file"
"""Reasons to pass over a file, as nouns that can be counted."""


def collect(arguments: Iterable[str], exclude: Sequence[str] = ()) -> ManifestFiles:
    """Read everything in files, directories (recursively) and ``-`` (standard input). A bad file is a finding.

    Raises :class:`ManifestError` for an argument that does not exist.
    """
    reading, arguments = ManifestFiles(), list(arguments)
    patches = _patches_above(path for path in map(Path, arguments) if path.is_file())
    for argument in arguments:
        path = Path(argument)
        if argument == "-":
            _load(reading, sys.stdin.buffer, "<stdin>", whole=True)
            continue
        if not path.exists():
            raise ManifestError("no such file or directory", argument)
        passed = reading.passed_over
        for file in _below(path, exclude, passed) if path.is_dir() else _named(path, exclude, patches, passed):
            name = os.fsencode(file).decode(errors="replace")  # as JSON can have it
            try:
                with file.open("rb") as stream:
                    _load(reading, stream, name, named=not path.is_dir() and file.suffix in YAML_SUFFIXES)
            except OSError as error:
                reading.findings.append(ManifestError(error.strerror or "cannot be read").finding(name))
    return reading


def nothing_served(reading: ManifestFiles) -> str:
    """Return why there is nothing to check, and what to do about it."""
    if kinds := sorted({manifest.kind for manifest in reading.manifests if manifest.kind}):
        hint = "; modelhooks convert writes one from a Deployment or StatefulSet" if {*kinds} & {*WORKLOADS} else ""
        return f"no object of a kind that is served; the files have objects of kind {listed(kinds)}{hint}"
    if reading.passed_over[HELM_TEMPLATE]:
        return "no object of a kind that is served; render the Helm templates first: helm template CHART | …"
    if reading.passed_over[PATCH]:
        return "no object of a kind that is served; build the kustomization first: kubectl kustomize FOLDER | …"
    if excluded := reading.passed_over[EXCLUDED]:
        return f"no object of a kind that is served; {excluded} files are excluded by --exclude or a .gitignore"
    others = f"; passed over: {listed([*reading.others])}" if reading.others else ""
    return f"no object of a kind that is served; the files have no manifest (.yaml, .yml or .json){others}"


def listed(names: Sequence[str]) -> str:
    """Return the first few names, and whether there are more."""
    return f"{', '.join(names[:MAX_LISTED])}{', …' if len(names) > MAX_LISTED else ''}"


def read(arguments: Iterable[str]) -> list[Manifest]:
    """As :func:`collect`, but raise :class:`ManifestError` for the first bad file."""
    reading = collect(arguments)
    if reading.findings:
        first = reading.findings[0]
        raise ManifestError(first.message, first.file, first.line, first.column)
    return reading.manifests


def _load(reading: ManifestFiles, stream: BinaryIO, file: str, *, whole: bool = False, named: bool = False) -> None:
    content, line = stream.read(MAX_FILE_BYTES + 1), 1
    if len(content) > MAX_FILE_BYTES:
        problem = f"must not be larger than {MAX_FILE_BYTES >> 20} MiB"
    elif content.startswith((b"\xff\xfe", b"\xfe\xff")):
        problem = "is UTF-16; save it as UTF-8 (PowerShell: Out-File -Encoding utf8)"
    else:
        try:
            reading.add(content.decode("utf-8-sig"), file, whole=whole, named=named)
        except UnicodeDecodeError as error:
            if not whole and not looks_like_manifest(content.decode("utf-8-sig", "replace")):
                reading.pass_over(file, NOT_AN_OBJECT)
                return
            line = content[: error.start].count(b"\n") + 1
            problem = f"is not UTF-8: byte 0x{content[error.start]:02x}; save the file as UTF-8"
        else:
            return
    reading.findings.append(ManifestError(problem, line=line).finding(file))


def _named(file: Path, exclude: Sequence[str], patches: set[Path], passed: Counter[str]) -> Iterator[Path]:
    """Yield a file of the command line, unless it is excluded, a Helm template or a patch.

    Hidden, vendored and ignored files are read if they are named: those rules only restrict the search of directories.
    """
    absolute_path = file.absolute()
    rules = [_Rules(exclude, Path())] if exclude else []
    reason = PATCH if file.resolve() in patches else ""
    for path in [absolute_path, *absolute_path.parents]:
        if _is_excluded(path, path != absolute_path, rules):
            reason = EXCLUDED
        elif path.name == TEMPLATES and (path.parent / CHART).exists():
            reason = HELM_TEMPLATE
    if reason:
        passed[reason] += 1
    else:
        yield file


def _below(directory: Path, exclude: Sequence[str], passed: Counter[str]) -> Iterator[Path]:
    """Yield the manifests of a tree, in order; ``passed`` counts what is left out, by reason.

    Left out are hidden and vendored folders, what .gitignore names, ``exclude`` (in the syntax of .gitignore), Helm's
    templates, which are not manifests before they are rendered, and kustomize's patches, which are parts of objects.
    """
    rules = [*([_Rules(exclude, directory)] if exclude else []), *_inherited(directory)]
    files = list(_walk(directory, rules, passed))
    patches = {patch for file in files if file.name in KUSTOMIZATIONS for patch in _patches(file)}
    for file in files:
        if file.resolve() in patches:
            passed[PATCH] += 1
        else:
            yield file


def _patches_above(files: Iterable[Path]) -> set[Path]:
    """Return the patches of all kustomizations above these files: kustomize reads only below its folder."""
    folders = {folder for file in files for folder in file.absolute().parents}
    return {patch for folder in folders for name in KUSTOMIZATIONS for patch in _patches(folder / name)}


def _patches(kustomization: Path) -> list[Path]:
    """Return the patch files of a kustomization; none for one that cannot be read, which is a separate finding."""
    if not kustomization.is_file():
        return []
    try:
        documents = values(_text(kustomization, MAX_FILE_BYTES), str(kustomization))
    except (OSError, UnicodeDecodeError, ManifestError):
        return []
    listed = [
        item
        for document in documents
        if isinstance(document, dict)
        for key in ("patches", "patchesJson6902", "patchesStrategicMerge")
        for item in (document[key] if isinstance(document.get(key), list) else ())
    ]
    paths = [item.get("path") if isinstance(item, dict) else item for item in listed]
    named = [path for path in paths if isinstance(path, str) and {"\n", "\0"}.isdisjoint(path)]  # others are inline
    return [(kustomization.parent / path).resolve() for path in named]


def _text(file: Path, limit: int) -> str:
    with file.open("rb") as stream:
        return stream.read(limit).decode()


def _walk(directory: Path, rules: list[_Rules], passed: Counter[str]) -> Iterator[Path]:
    """Yield the files of a directory in the order of their paths. Folders may be nested deeper than calls may be."""
    pending = [(directory, True, rules)]
    while pending:
        place, is_folder, above = pending.pop()
        if not is_folder:
            yield from [place] if place.is_file() else []
            continue
        rules, entries = [*above, *_rules_of(place)], []
        for entry in sorted(os.scandir(place), key=lambda item: item.name, reverse=True):
            path, folder = Path(entry.path), entry.is_dir(follow_symlinks=False)
            if not folder and path.suffix not in SUFFIXES:
                continue
            if reason := _left_out(path, folder, rules):
                passed[reason] += _count_below(path) if folder else 1
            else:
                entries.append((path, folder, rules))
        pending += entries


def _count_below(folder: Path) -> int:
    pending, count = [str(folder)], 0
    while pending:
        for entry in os.scandir(pending.pop()):
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            count += Path(entry.name).suffix in SUFFIXES
    return count


def _left_out(path: Path, folder: bool, rules: list[_Rules]) -> str:
    if folder and path.name.startswith("."):
        return HIDDEN
    if folder and path.name in VENDORED:
        return VENDORED_FILE
    if folder and path.name == TEMPLATES and (path.parent / CHART).exists():
        return HELM_TEMPLATE
    return EXCLUDED if _is_excluded(path, folder, rules) else ""


def _is_excluded(path: Path, folder: bool, rules: Sequence[_Rules]) -> bool:
    """Report whether the last rule that matches excludes the path, as in git."""
    for group in reversed(rules):
        if (excluded := group.excludes(path, folder)) is not None:
            return excluded
    return False


class _Rules:
    """Patterns in the syntax of .gitignore, for the paths below one folder."""

    def __init__(self, lines: Sequence[str], base: Path) -> None:
        from pathspec import GitIgnoreSpec, PathSpec  # most commands look at files that are named

        patterns = [pattern for line in lines for pattern in _pattern(line)]
        self._base = base.absolute()
        self._folders = PathSpec(patterns)
        self._files = GitIgnoreSpec(patterns)  # there a pattern of the file itself wins over one of its folder

    def excludes(self, path: Path, folder: bool) -> bool | None:
        """Return whether the last pattern that matches excludes the path; None if none matches."""
        try:
            place = path.absolute().relative_to(self._base).as_posix()
        except ValueError:
            return None
        return self._folders.check_file(f"{place}/").include if folder else self._files.check_file(place).include


def _pattern(line: str) -> list[GitIgnoreSpecPattern]:
    """Return the pattern of a line; none for a line without one, which git passes over."""
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    try:
        return [GitIgnoreSpecPattern(line)]
    except ValueError:
        return []


def _rules_of(directory: Path) -> list[_Rules]:
    """Return the rules of a folder's .gitignore, which is read only if it is a regular file, as in git."""
    file = directory / GITIGNORE
    if file.is_symlink() or not file.is_file():
        return []
    try:
        lines = _text(file, MAX_IGNORE_FILE_BYTES).splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    return [_Rules(lines, directory)]


def _inherited(directory: Path) -> list[_Rules]:
    """Return the rules of the folders above, up to the root of the repository."""
    inherited: list[_Rules] = []
    absolute_path = directory.absolute()
    for folder in [absolute_path, *absolute_path.parents]:
        if folder != absolute_path:
            inherited = [*_rules_of(folder), *inherited]
        if (folder / ".git").exists():
            return inherited
    return []
