"""Run the stand-in for Metacontroller: `python -m tests.e2e.standin --kubeconfig PATH`."""

from __future__ import annotations

import argparse
import asyncio
import logging
from pathlib import Path

from .api import Api
from .manager import Manager
from .selectors import selector_text


def main() -> None:
    """Parse the flags, which have Metacontroller's names, and run until killed."""
    parser = argparse.ArgumentParser(prog="standin", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument(
        "--workers", type=int, default=5, help="number of parents of one controller that are synced concurrently"
    )
    parser.add_argument("--discovery-interval", type=_seconds, default=5.0, help="interval in seconds, such as 5 or 5s")
    parser.add_argument("--target-label-selector", default="", help="run only controllers with these labels")
    parser.add_argument("--verbose", action="store_true", help="log failed runs and lost watches")
    flags = parser.parse_args()
    logging.basicConfig(
        level=logging.INFO if flags.verbose else logging.WARNING, format="%(asctime)s %(name)s %(message)s"
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)
    asyncio.run(_run(flags))


async def _run(flags: argparse.Namespace) -> None:
    selects = selector_text(flags.target_label_selector)
    await Manager(Api(flags.kubeconfig), flags.workers, flags.discovery_interval, selects).run()


def _seconds(text: str) -> float:
    return float(text.removesuffix("s"))


if __name__ == "__main__":
    main()
