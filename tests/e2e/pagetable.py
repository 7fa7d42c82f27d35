"""A table in a page of the documentation that a run beside real programs writes, with the date of the run."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple


class PageTable(NamedTuple):
    """The part of a page between the comments ``<!-- mark -->`` and ``<!-- /mark -->``."""

    page: Path
    mark: str

    def text(self, table: str, seen: str, date: str) -> str:
        """Return the page's text with the table. ``seen``: the programs that answered, for the line below it."""
        begin, end = f"<!-- {self.mark} -->", f"<!-- /{self.mark} -->"
        before, _, rest = self.page.read_text(encoding="utf-8").partition(begin)
        return f"{before}{begin}\n{table}\n\n{seen}, {date}.\n{end}{rest.partition(end)[2]}"

    def write(self, table: str, seen: str) -> None:
        self.page.write_text(self.text(table, seen, f"{datetime.now(UTC):%Y-%m-%d}"), encoding="utf-8")

    def is_current(self, table: str, seen: str) -> bool:
        """Report whether the page has the table and the programs, on whichever day they were seen."""
        text = self.page.read_text(encoding="utf-8")
        written = re.search(rf"^{re.escape(seen)}, (\d{{4}}-\d\d-\d\d)\.$", text, re.MULTILINE)
        return written is not None and self.text(table, seen, written[1]) == text
