"""The ``modelhooks`` command as a whole."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from app import cli

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main([name, "--help"])

    assert exit_.value.code == 0
    assert f"usage: modelhooks {name}" in capsys.readouterr().out
    assert importlib.import_module(f"app.cli.{name}").__doc__


def test_without_a_command_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(["--help"])

    assert exit_.value.code == 0
    shown = capsys.readouterr().out
    assert all(f"  {name}" in shown for name in cli.COMMANDS)


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["--nonsense"]])
def test_a_wrong_command_line_ends_with_status_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(argv)

    assert exit_.value.code == 2
    assert "usage: modelhooks" in capsys.readouterr().err


def test_a_command_loads_none_of_the_others() -> None:
    """What `modelhooks serve` does not import does not delay it."""
    loaded = _python(
        "import sys; from app import cli\n"
        "try: cli.main(['serve', '--help'])\n"
        "except SystemExit: print('loaded', *(m for m in sys.modules if m.startswith('app.cli.')))"
    )

    assert loaded.splitlines()[-1] == "loaded app.cli.serve"


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
