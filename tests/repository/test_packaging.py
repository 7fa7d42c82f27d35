"""The installed package has everything of this tree: data files, dependencies, and their pinned lists."""

import re
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LISTS = sorted((ROOT / "requirements").glob("*.txt"))


def test_every_data_file_is_part_of_the_package() -> None:
    """Otherwise the image lacks the file, which a checkout does not show."""
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["app"]
    built_from = ROOT / "app" / "studio" / "page"  # the package has what is built from it
    data = [
        p.relative_to(ROOT / "app")
        for p in (ROOT / "app").rglob("*")
        if p.is_file() and "__pycache__" not in p.parts and not p.is_relative_to(built_from)
    ]

    missing = [
        p for p in data if p.suffix not in {".py", ".md"} and not any(fnmatch(str(p), pattern) for pattern in patterns)
    ]
    assert missing == []


def test_every_dependency_is_pinned() -> None:
    wanted = {_name(requirement) for requirement in PROJECT["project"]["dependencies"]}

    assert wanted <= _pinned("runtime")
    assert _pinned("runtime") <= _pinned("dev")
    assert _pinned("build") <= _pinned("dev")


def test_the_development_list_has_the_runtimes_versions() -> None:
    versions = {name: set(_versions(name)) for name in ("runtime", "dev", "build")}

    assert versions["runtime"] | versions["build"] <= versions["dev"]


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_every_pinned_package_has_hashes_and_no_list_names_an_index(path: Path) -> None:
    text = path.read_text()
    entries = re.split(r"^(?=\S)", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE), flags=re.MULTILINE)

    assert [entry for entry in entries if entry.strip() and "--hash=sha256:" not in entry] == []
    assert "://" not in text
    assert "--index" not in text


def test_imports_are_dependencies() -> None:
    """An indirect dependency may disappear with the next lists."""
    requirements = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["cluster"]]
    declared = {_name(requirement).replace("-", "_") for requirement in requirements} | {"app", "yaml"}
    declared |= {"prometheus_client", "pydantic_core"}  # the packages that wrap them pin their versions
    pattern = re.compile(r"^\s*(?:from|import) (\w+)", re.MULTILINE)
    sources = [p for p in (ROOT / "app").rglob("*.py") if "node_modules" not in p.parts]
    imported = {name for p in sources for name in pattern.findall(_code(p.read_text()))}

    assert imported - set(sys.stdlib_module_names) - declared == set()


def _code(text: str) -> str:
    """Return the code without strings in triple quotes, which may have a line like an import."""
    return re.sub(r'"""(?:.|\n)*?"""', "", text)


def _name(requirement: str) -> str:
    return re.split(r"[\[<>=!~ ;]", requirement, maxsplit=1)[0].lower()


def _versions(name: str) -> list[str]:
    return re.findall(r"^(\S+==\S+)", (ROOT / "requirements" / f"{name}.txt").read_text(), re.MULTILINE)


def _pinned(name: str) -> set[str]:
    return {version.partition("==")[0].lower() for version in _versions(name)}
