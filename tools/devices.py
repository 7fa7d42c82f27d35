"""Generates the table of devices in ``docs/howto/hardware.md`` from ``app/workload/devices.csv``."""

from __future__ import annotations

import re

from app.workload.devices import devices

HEADER = "| Resource | Maker | Counts | Device plugin | Release |\n|---|---|---|---|---|\n"
_ROWS = re.compile(re.escape(HEADER) + r"(?:\|.*\n)*")


def page(text: str) -> str:
    """Return a page with its table of devices brought up to date."""
    rows = (f"| `{d.name}` | {d.maker} | {d.counts} | {d.plugin} | {d.release} |\n" for d in devices())
    return _ROWS.sub(lambda _: HEADER + "".join(rows), text)
