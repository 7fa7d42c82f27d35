"""The ``modelhooks`` command.

A subcommand is a module of this package with a click command called ``command``. Only the one that is asked
for is imported, so that ``modelhooks serve`` starts without the rest. A command returns its exit status.
"""

import atexit
import gc
import importlib
import io
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from app.desk.files.printing import echo
from app.errors import CommandError

COMMANDS = {
    "serve": "answer Metacontroller's hooks and the API server's admission reviews",
    "validate": "check manifests against the schema and every rule",
    "render": "print the children that manifests lead to",
    "explain": "show why an object is not ready, and what set each value of its pods",
    "fit": "show whether models fit into the memory of their GPUs, with the arithmetic",
    "images": "list the container images of an installation and of manifests",
    "init": "print a commented manifest for a model and a GPU, to start from",
    "status": "list the objects of a cluster, with Ready and the first cause",
    "krm": "render as a function of kustomize or kpt",
    "convert": "convert objects of one family, or Deployments of your own, to another, and list what is lost",
    "diff": "show which children change between two versions of manifests, and whether pods restart",
    "schema": "print the JSON schema of a kind, for editors",
    "certs": "create the CA and the serving certificate, and write them where they are needed",
    "studio": "open a page that shows what manifests become, and why they are not ready",
    "demo": "run the service and drive the examples through it, without a cluster",
    "completion": "print the completion script of a shell",
    "man": "print the manual page",
}
NAME = "modelhooks"
_OPTIONAL = {"studio": "app.studio"}
"""Commands of a package that is not always installed: the service's image lacks it."""


class _Lazy(click.Group):
    """Knows the commands by name and imports the one that runs."""

    def list_commands(self, _: click.Context) -> list[str]:
        return [name for name in COMMANDS if name not in _OPTIONAL or find_spec(_OPTIONAL[name])]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in (commands := self.list_commands(ctx)):
            from app.kube.spelling import closest_name

            if near := closest_name(args[0], commands):
                ctx.fail(f'no such command "{args[0]}"; did you mean "{near}"?')
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except CommandError as error:
            echo((f"{NAME} {ctx.invoked_subcommand}: {line}" for line in str(error).split("\n")), err=True)
            return 2

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        if cmd_name != "serve":  # in all others nearly all objects live until the process ends
            gc.set_threshold(100_000, 20, 50)
            atexit.register(gc.freeze)  # else Python looks for cycles among all of them before it ends
        command: click.Command = importlib.import_module(f"app.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from app.installation import version
        from app.upstream import FOLLOWED

        click.echo("\n  ".join([f"{NAME} {version()}, which follows:", *(upstream.version for upstream in FOLLOWED)]))
        ctx.exit()


group = _Lazy(
    NAME,
    help="Hooks, admission and a command line for LLM serving resources.",
    params=[click.Option(["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_print_version)],
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _open_standard_files() -> None:
    """Open those of the three that the parent closed: the first sockets would get their numbers, and our output."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - for as long as the process runs


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit status: 0, 1 for findings, 2 for wrong usage."""
    _open_standard_files()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them reads about every package there is
    if f"_{NAME.upper()}_COMPLETE" in os.environ:
        group.main(prog_name=NAME)  # answers the shell and ends the process
    try:
        with group.make_context(NAME, sys.argv[1:] if argv is None else list(argv)) as context:
            status = group.invoke(context)
        sys.stdout.flush()  # while a closed pipe can still be answered
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        echo(message.getvalue().splitlines(), err=True)
        return error.exit_code
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is buffered cannot be written either
        if isinstance(error, BrokenPipeError):  # modelhooks render ... | head
            return 0
        echo([f"{NAME}: {error.filename or 'standard output'}: {error.strerror}"], err=True)
        return 2
    except (KeyboardInterrupt, click.Abort):
        return 130
    return int(status or 0)
