"""``--exclude`` and .gitignore name the files that git would pass over."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from app.desk.files.folders import _below
from tests.cli.files import Command

FILES = (
    "top.yaml",
    "a/x.yaml",
    "a/b/x.yaml",
    "a/b/c/x.yaml",
    "d/a/x.yaml",
    "#h.yaml",
    "!k.yaml",
    "sp .yaml",
    "x[1].yaml",
    "f1.yaml",
    "fA.yaml",
    "charts/one.yaml",
    "charts/two/three.yaml",
)
PATTERNS = """\
a/**|a/b/**|**|**/|a/|a|/a|a/*|*/a|**/a|a/**/c|a/**/x.yaml|**/b/**|/**/x.yaml|charts/**|charts/|charts|charts/*
*.yaml|/*.yaml|x.yaml|/x.yaml|a/x.yaml|top.yaml|/top.yaml|top.*|t?p.yaml|t*|b/|/b/|a/b|a/b/|d/a|**/x.yaml|**/c/x.yaml
\\#h.yaml|#h.yaml|\\!k.yaml|!k.yaml|sp\\ .yaml|sp .yaml|x\\[1\\].yaml|x[1].yaml|f\\1.yaml|f[0-9].yaml|f[^0-9].yaml
f[!0-9].yaml|f[1A].yaml| top.yaml|top.yaml |[|a\\|!|/|//|***|a**|**a""".replace("\n", "|")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in FILES:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def _ignored_by_git(tree: Path) -> set[str]:
    command = ["git", "-C", str(tree), "ls-files", "--others", "--ignored", "--exclude-standard", "-z"]
    listed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    return {name for name in listed.split("\0") if name}


def _left_out(tree: Path, *exclude: str) -> set[str]:
    read = {str(file.relative_to(tree)) for file in _below(tree, exclude, Counter())}
    return set(FILES) - read


@pytest.mark.parametrize("pattern", sorted(set(PATTERNS.split("|"))))
def test_a_pattern_excludes_what_git_excludes(pattern: str, tree: Path) -> None:
    (tree / ".gitignore").write_text(f"{pattern}\n")
    ignored = _ignored_by_git(tree) & set(FILES)
    assert _left_out(tree) == ignored
    (tree / ".gitignore").unlink()
    assert _left_out(tree, pattern) == ignored


@pytest.mark.parametrize(
    "lines",
    [["*.yaml", "!top.yaml"], ["!top.yaml", "*.yaml"], ["a/*", "!a/b"], ["a", "!a/b/x.yaml"], ["**", "!*/", "!x.yaml"]],
)
def test_the_last_pattern_wins(lines: list[str], tree: Path) -> None:
    (tree / ".gitignore").write_text("\n".join(lines) + "\n")
    assert _left_out(tree) == _ignored_by_git(tree) & set(FILES)


def test_the_file_of_an_inner_folder_wins(tree: Path) -> None:
    (tree / ".gitignore").write_text("x.yaml\n")
    (tree / "a/b/.gitignore").write_text("!x.yaml\n")
    assert _left_out(tree) == _ignored_by_git(tree) & set(FILES) == {"a/x.yaml", "d/a/x.yaml"}


def test_says_that_everything_is_excluded(command: Command, tree: Path) -> None:
    result = command("validate", str(tree), "--exclude", "**")
    assert result.status == 2
    assert f"{len(FILES)} files are excluded by --exclude or a .gitignore" in result.err
