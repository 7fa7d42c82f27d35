"""The ``modelhooks`` command as a whole."""

import importlib
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from app import cli

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, "--help"]) == 0
    assert f"Usage: modelhooks {name}" in capsys.readouterr().out
    assert importlib.import_module(f"app.cli.{name}").__doc__


def test_without_a_command_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name}" in shown for name in cli.COMMANDS)


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["--nonsense"], ["explain", "--wit", "x"]])
def test_a_wrong_command_line_ends_with_status_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """An option is never taken for another one that begins alike."""
    assert cli.main(argv) == 2
    assert "Usage: modelhooks" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"modelhooks {version('modelhooks')}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_is_told_how_to_complete(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    assert "_MODELHOOKS_COMPLETE" in capsys.readouterr().out


def test_a_command_is_completed() -> None:
    """As a shell would ask: commands and options by their beginnings."""
    environment = {
        **os.environ,
        "_MODELHOOKS_COMPLETE": "bash_complete",
        "COMP_CWORD": "1",
        "COMP_WORDS": "modelhooks va",
    }
    done = subprocess.run(
        [sys.executable, "-m", "app.cli"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "plain,validate\n"


def test_a_command_loads_none_of_the_others() -> None:
    """What `modelhooks serve` does not import does not delay it."""
    loaded = _python(
        "import sys; from app import cli\n"
        "cli.main(['serve', '--help'])\n"
        "print('loaded', *(m for m in sys.modules if m.startswith('app.')))"
    )

    assert set(loaded.splitlines()[-1].split()) <= {
        "loaded",
        "app.cli",
        "app.cli.serve",
        "app.cli.options",
        "app.cli.kinds",
        "app.kube",
        "app.kube.field",
    }


def test_a_closed_pipe_is_no_error() -> None:
    command = [sys.executable, "-m", "app.cli", "certs"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        error = process.stderr.read()

    assert (process.returncode, error) == (0, b"")


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
