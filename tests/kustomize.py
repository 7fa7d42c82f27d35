"""What kustomize builds, for the tests of manifests and of the generated files."""

import functools
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from app.kube.base import Json


@functools.cache
def built_once(folder: Path) -> list[Json]:
    """Return the objects of a folder that nobody changes; the caller does not change them either."""
    return built(folder)


def built(folder: Path) -> list[Json]:
    """Return the objects that kustomize builds from a folder."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed; the e2e tests bring their own")
    done = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.load_all(done.stdout, yaml.CSafeLoader))
