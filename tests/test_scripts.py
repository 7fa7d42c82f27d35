"""Scripts of other containers: values that a shell would change arrive as they are, in bash and in dash."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from app.kserve.spec import presets
from app.kube.base import Json
from app.llmaz.service.pods import copy_command
from tests.startedpods import HOSTILE, start

ROOT = Path(__file__).parents[1]
SHELLS = [shell for shell in ("bash", "dash") if shutil.which(shell)]
_KUBELETS = re.compile(r"(?<!\$)\$\([-._a-zA-Z0-9]+\)")
"""What the kubelet replaces in a command if the container has a variable of that name."""


@pytest.mark.parametrize("shell", SHELLS)
def test_ollamas_script_takes_any_name(tmp_path: Path, shell: str) -> None:
    """The script's last call of the program has the model's name as one argument."""
    runtime = yaml.safe_load((ROOT / "manifests" / "llmaz-runtimes" / "ollama.yaml").read_text())["spec"]
    text = runtime["recommendedConfigs"][0]["args"][0]
    for place, value in enumerate(HOSTILE):
        root = tmp_path / str(place)
        root.mkdir()
        once = text.replace("ollama serve &\n", "").replace(
            "until ollama list 2>/dev/null | grep -q NAME", "until true"
        )
        container: Json = {"command": runtime["command"], "args": [once, value.replace("$", "$$")]}
        found = start(root, container, "ollama", shell=shell)
        assert (found.argv, (root / "ran").exists()) == (["run", value], False)


@pytest.mark.parametrize("shell", SHELLS)
def test_files_of_any_name_are_copied_from_images(tmp_path: Path, shell: str) -> None:
    for place, value in enumerate(HOSTILE):
        root, target = tmp_path / str(place), tmp_path / str(place) / "to"
        (root / "from").mkdir(parents=True)
        (root / "from" / value).write_text("model")
        start(root, {"command": copy_command(f"{root}/from/{value}", str(target))}, "none", shell=shell)
        assert [path.name for path in target.iterdir()] == [value]
        assert not (root / "ran").exists()


def test_the_kubelet_fills_nothing_into_the_presets_scripts() -> None:
    assert _KUBELETS.findall(str(presets.EDITIONS)) == []
