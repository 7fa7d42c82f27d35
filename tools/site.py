"""A hook of MkDocs that adds the repository's own pages to the documentation's site, and adapts their links.

On GitHub the same files are read in place, so their links stay unchanged there. On the site, a link to a file of the
repository that is not a page becomes plain text.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "readme.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}

_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the repository's own pages."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links between docs/ and the rest of the repository."""
    inside = page.file.src_uri not in PAGES.values()
    base = ROOT / "docs" / page.file.src_uri if inside else ROOT / page.file.src_uri

    def link(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if not target or ":" in target:
            return match[0]
        file = (base.parent / target).resolve()
        if not file.is_relative_to(ROOT):
            return match[0]
        place = file.relative_to(ROOT).as_posix()
        uri = PAGES.get(place, place.removeprefix("docs/") if place.startswith("docs/") else "")
        if uri not in files.src_uris:
            return text
        return f"[{text}]({'../' * page.file.src_uri.count('/')}{uri}{anchor})"

    return _LINK.sub(link, markdown)
