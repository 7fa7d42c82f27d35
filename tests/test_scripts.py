"""Scripts of other containers: values that a shell would change arrive as they are, in bash and in dash."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from app.kserve.spec import presets
from app.kserve.workload.artifacts import MODELCAR_CHECK, MODELCAR_COMMAND
from app.kube.base import Json
from app.llmaz.service.pods import copy_command
from tests.startedpods import HOSTILE, NODE_PATH, start

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


PRE_STOP = ("vllm", "tgi", "llamacpp")
METRICS = {
    "vllm": ("vllm:num_requests_running{NAME} 0.0", "vllm:num_requests_waiting{NAME} 0.0"),
    "tgi": ("tgi_batch_current_size 0", "tgi_queue_size 0"),
    "llamacpp": ("llamacpp:requests_processing 0", "llamacpp:requests_deferred 0"),
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", PRE_STOP)
def test_metrics_are_text_to_the_hooks_before_a_stop(tmp_path: Path, name: str, shell: str) -> None:
    """A model's name is a label of the metrics. The hook ends at once if no request runs, and waits otherwise."""
    runtime = yaml.safe_load((ROOT / "manifests" / "llmaz-runtimes" / f"{name}.yaml").read_text())["spec"]
    script = runtime["lifecycle"]["preStop"]["exec"]["command"][2]
    once = script.replace("/proc/1/fd/1", "told").replace("sleep 5", "echo 5 >waited; exit 7")
    for place, value in enumerate(v for v in HOSTILE if "\n" not in v and "\r" not in v):
        root = tmp_path / str(place)
        root.mkdir()
        lines = [line.replace("NAME", f'name="{value}"') for line in METRICS[name]]
        (root / "metrics").write_text("\n".join([f'other{{name="{value}"}} 1 # {value}', *lines]) + "\n")
        stand_in = root / "bin" / "curl"
        stand_in.parent.mkdir()
        stand_in.write_text(f'#!/bin/sh\ncat "{root}/metrics"\n')
        stand_in.chmod(0o755)
        for counted, code in ((" 0", 0), (" 2", 7)):
            (root / "metrics").write_text(
                re.sub(r" 0(\.0)?$", counted, (root / "metrics").read_text(), flags=re.MULTILINE)
            )
            done = subprocess.run(
                [shell, "-c", once], cwd=root, env={"PATH": f"{stand_in.parent}:{NODE_PATH}"}, check=False, timeout=20
            )
            assert (done.returncode, (root / "ran").exists()) == (code, False), value


@pytest.mark.parametrize("shell", SHELLS)
def test_the_check_of_a_model_image_takes_any_file(tmp_path: Path, shell: str) -> None:
    for place, value in enumerate(HOSTILE):
        models = tmp_path / str(place) / "models"
        models.mkdir(parents=True)
        script = MODELCAR_CHECK.replace("/models", str(models))
        assert subprocess.run([shell, "-c", script], check=False, timeout=20, capture_output=True).returncode == 1
        (models / value).write_text("model")
        done = subprocess.run([shell, "-c", script], cwd=models, check=False, timeout=20, capture_output=True)
        assert (done.returncode, (models / "ran").exists()) == (0, False), value


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_of_a_model_image_links_its_files_only(tmp_path: Path, shell: str) -> None:
    """Whatever files and variables it has: the link is to the root of the shell's own process."""
    for place, value in enumerate(HOSTILE):
        root = tmp_path / str(place)
        root.mkdir()
        (root / value).write_text("model")
        script = MODELCAR_COMMAND.replace("$$", "$").replace("/mnt/models", f"{root}/link")
        script = script.replace("sleep infinity", "echo $$")
        done = subprocess.run(
            [shell, "-c", script],
            cwd=root,
            env={"PATH": NODE_PATH, "V": value},
            check=True,
            timeout=20,
            capture_output=True,
        )
        assert str((root / "link").readlink()) == f"/proc/{done.stdout.decode().strip()}/root/models"
        assert sorted(path.name for path in root.iterdir()) == sorted(["link", value])


def test_the_kubelet_fills_nothing_into_what_a_model_image_runs() -> None:
    assert [_KUBELETS.findall(text) for text in (MODELCAR_CHECK, MODELCAR_COMMAND)] == [[], []]


def test_the_kubelet_fills_nothing_into_the_presets_scripts() -> None:
    assert _KUBELETS.findall(str(presets.EDITIONS)) == []
