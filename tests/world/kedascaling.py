"""KEDA's operator and metrics server as processes beside the control plane.

KEDA has scalers for some seventy services, whose libraries would need hundreds of further modules, some of which the
module proxy does not serve. A copy with the scaler for Prometheus alone is built; nothing of that scaler is changed.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.e2e import binaries

MODULE = "github.com/kedacore/keda/v2"
_TOOL = "keda"
_KEPT = ("scaler.go", "prometheus_scaler.go", "azure_queue_scaler.go")
"""The last declares a constant that all scalers use."""
_EVERY_ADDRESS = re.compile(r'(?<=metricsBindAddress := fmt\.Sprintf\(")(?=:)')
_OTHER_SCALERS = re.compile(r'^\tcase "(?!prometheus").*:\n(?:\t\t.*\n)+', re.MULTILINE)


def patch(folder: Path) -> Path:
    """Write the patched copy below a folder; return the directory to compile in."""
    tree = binaries.copied_module(_TOOL, MODULE, folder / "keda")
    for file in (tree / "pkg" / "scalers").glob("*.go"):
        if file.name not in _KEPT:
            file.unlink()
    _replace(tree / "pkg" / "scaling" / "scalers_builder.go", _OTHER_SCALERS, "")
    # The page of the metrics server's own metrics, which otherwise listens on every address.
    _replace(
        tree / "cmd" / "adapter" / "main.go",
        re.compile(r'(?<=metricsBindAddress := fmt\.Sprintf\(")(?=:)'),
        "127.0.0.1",
    )
    return tree


def _replace(file: Path, pattern: re.Pattern[str], replacement: str) -> None:
    text, count = pattern.subn(replacement, file.read_text())
    assert count, f"{file} has no {pattern.pattern}"
    file.write_text(text)
