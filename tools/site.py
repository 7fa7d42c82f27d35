"""Hook of MkDocs (mkdocs.yml): add the repository's own pages to the site, and adapt links between files.

On GitHub the same files are read in place, so their links stay unchanged. On the site a link to an example leads to its
manifest at the end of the page, and a link to a page outside the site leads to the repository. One to any other file
outside it becomes plain text.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/modelhooks/modelhooks/blob/main/"
PAGES = {"README.md": "readme.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
SEARCH_BOOSTS = {
    "compatibility": 0.25,
    "fields": 0.1,
    "devices.md": 0.1,
    "reference": 0.1,
    "changelog.md": 0.05,
}
"""Folders and pages that come last in search results."""
SEARCH_WORDS: dict[str, str] = tomllib.loads((ROOT / "tools" / "searchwords.toml").read_text())
"""Words that readers search for, and the titles of a page do not have."""

_QUESTION = "How do I "
_IMAGE_OF_DOCS = re.compile(r"(!\[[^\]]*\]\()docs/")
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the repository's own pages."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links between docs/ and the rest of the repository, and append the examples that the page links to."""
    inside = page.file.src_uri not in PAGES.values()
    base = ROOT / "docs" / page.file.src_uri if inside else ROOT / page.file.src_uri
    examples: dict[str, None] = {}
    if (folder := page.file.src_uri.partition("/")[0]) in SEARCH_BOOSTS:
        page.meta["search"] = {"boost": SEARCH_BOOSTS[folder]}
    if isinstance(page.title, str) and page.title.startswith(_QUESTION):
        task = page.title.removeprefix(_QUESTION).removesuffix("?")
        page.title = task[0].upper() + task[1:]  # of the navigation; the page has its heading
    if words := SEARCH_WORDS.get(page.file.src_uri):
        page.meta["tags"] = words.split()
    if folder in ("fields", "troubleshooting"):
        page.meta["hide"] = ["toc"]  # wide tables need the room

    def link(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if not target or ":" in target:
            return match[0]
        resolved = (base.parent / target).resolve()
        if not resolved.is_relative_to(ROOT):
            return match[0]
        place = resolved.relative_to(ROOT).as_posix()
        if place.startswith("examples/") and resolved.is_file():
            examples[place] = None
            return f"[{text}](#{_anchor(place)})"
        uri = PAGES.get(place, place.removeprefix("docs/") if place.startswith("docs/") else "")
        if uri not in files.src_uris:
            return f"[{text}]({REPOSITORY}{place}{anchor})" if place.endswith(".md") else text
        return f"[{text}]({'../' * page.file.src_uri.count('/')}{uri}{anchor})"

    linked = _LINK.sub(link, markdown if inside else _IMAGE_OF_DOCS.sub(r"\1", markdown))
    return linked + "".join(_manifest(place) for place in examples)


def _anchor(place: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", place)


def _manifest(place: str) -> str:
    """Return an example as a section of a page."""
    return f"\n\n## {place} {{: #{_anchor(place)} }}\n\n```yaml\n{(ROOT / place).read_text()}```\n"
