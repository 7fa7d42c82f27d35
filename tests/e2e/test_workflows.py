"""The workflows of CI and of a release, checked by actionlint, and the step that makes the chart, run unchanged."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.e2e import binaries
from tests.service import ROOT

pytestmark = pytest.mark.e2e

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))


def test_the_workflows_are_valid() -> None:
    command = [binaries.tool("actionlint"), *WORKFLOWS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_released_chart_has_the_released_image(tmp_path: Path) -> None:
    """Each pod has the image by its digest, and the package has everything that files/ links to."""
    for folder in ("crds", "metacontroller", "manifests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True)
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yaml").read_text())
    (script,) = [step["run"] for step in workflow["jobs"]["chart"]["steps"] if step.get("id") == "package"]
    digest = f"sha256:{'0' * 64}"
    version = yaml.safe_load((ROOT / "manifests/chart/Chart.yaml").read_text())["version"]
    helm = binaries.tool("helm")
    environment = os.environ | {
        "PATH": f"{helm.parent}:{os.environ['PATH']}",
        "GITHUB_REPOSITORY": "owner/modelhooks",
        "GITHUB_REF_NAME": f"v{version}",
        "DIGEST": digest,
    }
    _run(["bash", "-eo", "pipefail", "-c", script], tmp_path, environment)
    rendered = _run([helm, "template", "modelhooks", f"dist/modelhooks-{version}.tgz"], tmp_path, environment)
    assert rendered.count(f"image: ghcr.io/owner/modelhooks@{digest}") == 3
    assert rendered.count("kind: CustomResourceDefinition\n") == 8

    environment["GITHUB_REF_NAME"] = "v99.0.0"
    with pytest.raises(AssertionError):
        _run(["bash", "-eo", "pipefail", "-c", script], tmp_path, environment)


def _run(command: list[str | Path], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
