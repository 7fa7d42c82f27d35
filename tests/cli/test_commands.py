"""The ``modelhooks`` command as a whole."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest

from app import cli
from app.cli import man
from app.upstream import FOLLOWED

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
    """An abbreviated option is not accepted."""
    assert cli.main(argv) == 2
    assert "Usage: modelhooks" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"modelhooks {version('modelhooks')}, which follows:",
        *(f"  {upstream.version}" for upstream in FOLLOWED),
    ]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_prints_shell_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    assert "_MODELHOOKS_COMPLETE" in capsys.readouterr().out


def test_the_manual_page_has_every_command_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    """Checked in the page as groff renders it; an invalid request would be reported on standard error."""
    assert cli.main(["man"]) == 0
    page = capsys.readouterr().out
    if shutil.which("groff") is not None:
        command = ["groff", "-man", "-ww", "-Tutf8", "-P-cbou"]
        done = subprocess.run(command, input=page, capture_output=True, text=True, check=True)
        assert done.stderr == ""
    context = click.Context(cli.group)
    for name in cli.COMMANDS:
        shown = cli.group.get_command(context, name)
        assert shown is not None
        assert f".SS {name} " in page
        for option in (o for p in shown.params if isinstance(p, click.Option) for o in p.opts):
            assert option.replace("-", "\\-") in page


def test_the_manual_page_and_the_documentation_say_the_same_of_exit_statuses() -> None:
    """The table in docs/cli.md has the same rows."""
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", (ROOT / "docs" / "cli.md").read_text(), re.MULTILINE)
    assert {status: text.replace("`", "") for status, text in rows} == man.EXIT_STATUS


def test_a_command_is_completed() -> None:
    """The shell completes commands and options."""
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
    """Imports of other commands do not delay `modelhooks serve`."""
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
        "app.desk",
        "app.desk.cluster",
        "app.desk.cluster.kinds",
        "app.desk.files",
        "app.desk.files.printing",
        "app.errors",
        "app.kube",
        "app.kube.field",
        "app.kube.regex",
        "app.kube.spelling",
        "app.limits",
    }


def test_ignores_a_closed_pipe() -> None:
    command = [sys.executable, "-m", "app.cli", "certs"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        error = process.stderr.read()

    assert (process.returncode, error) == (0, b"")


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_the_help_of_completion_has_one_command_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "--help"]) == 0
    shown = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "modelhooks completion bash > /etc/bash_completion.d/modelhooks" in shown


def test_a_full_disk_is_one_line() -> None:
    command = [sys.executable, "-m", "app.cli", "render", "examples/llmkube/quickstart.yaml"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr.decode()) == (2, "modelhooks: standard output: No space left on device\n")


def test_the_demo_names_every_child_in_100_columns(capsys: pytest.CaptureFixture[str]) -> None:
    from app.cli.demo import WIDTH, _show
    from app.desk.cluster.offline import World, settled
    from app.desk.files.folders import read

    cluster = settled(read(["examples", "manifests/llmaz-runtimes"]), World("demo"))
    _show(cluster)
    shown = capsys.readouterr().out
    kinds = {child["kind"] for _, parent in cluster.parents() for child in cluster.children(parent)}
    assert kinds <= {word.strip(",") for word in shown.split()}
    assert max(map(len, shown.splitlines())) <= WIDTH == 100


def test_the_demo_needs_no_source_tree(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """After ``pip install`` the demo uses the examples of the package."""
    from app.cli.demo import _manifests

    monkeypatch.chdir(tmp_path)
    copied = {(manifest.kind, manifest.name) for manifest in _manifests(())}
    monkeypatch.chdir(ROOT)
    assert copied == {(manifest.kind, manifest.name) for manifest in _manifests(()) if manifest.kind != "Kustomization"}
