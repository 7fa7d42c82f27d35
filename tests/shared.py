"""Recordings and upstream schemas that lie beside the project's own checkout, not in it.

A user's clone has none: the tests that read them skip there. Where they must run, ``MODELHOOKS_SHARED=required`` makes
their absence a failure.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2] / "shared"
GOLDEN = SHARED / "golden"
UPSTREAM = SHARED / "upstream"

needs_shared = pytest.mark.skipif(
    not SHARED.is_dir() and os.environ.get("MODELHOOKS_SHARED") != "required",
    reason="the recordings are not beside this checkout",
)
