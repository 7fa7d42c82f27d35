"""What the real operators answered, replayed through the HTTP hooks: every compared field is equal.

Intended differences are listed beside the recordings, further ones of ours in ``differences/<family>.json`` here, each
with its reason in ``docs/compatibility.md``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.processes import free_port
from tests.shared import GOLDEN, needs_shared

pytestmark = needs_shared

ROOT = Path(__file__).parents[2]
DIFFERENCES = Path(__file__).parent / "differences"


@pytest.mark.parametrize("family", ["llmkube", "llmaz", "kserve"])
def test_parity(family: str) -> None:
    """Each recorded case, in a closed loop until nothing changes."""
    own = DIFFERENCES / f"{family}.json"
    serve = f"{sys.executable} -m app.cli serve --host 127.0.0.1 --port {{port}}"
    command = [sys.executable, "-m", "tests.contract.replay", str(GOLDEN / family), "--serve", serve, "--min", "100"]
    command += ["--port", str(free_port())]
    extra = ["--differences", str(own)] if own.exists() else []
    done = subprocess.run([*command, *extra], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
