"""The ``modelhooks`` command.

A subcommand is a module of this package with ``add_arguments(parser)`` and ``run(args) -> int``. Only the one that is
asked for is imported, so that ``modelhooks serve`` starts without the rest.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Protocol, cast

COMMANDS = {
    "serve": "answer Metacontroller's hooks and the API server's admission reviews",
    "validate": "check manifests against the schema and every rule",
    "render": "print the children and status that manifests lead to",
    "explain": "say why an object is not ready, and who set each value of its pods",
    "diff": "show which children change between two versions of manifests, and whether pods restart",
    "schema": "print the JSON schema of a kind, for editors",
    "certs": "make the CA and the serving certificate, and write them where they are needed",
    "demo": "run the service and drive the examples through it, without a cluster",
}
"""What each subcommand does, in one line of the help text."""


class Command(Protocol):
    """What a module of this package offers."""

    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the subcommand's arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the result is the exit status."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit status: 0, 1 for findings, 2 for wrong usage."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    name = arguments[0] if arguments else ""
    if name not in COMMANDS:
        _overview().parse_args(arguments)
        raise AssertionError("argparse ends the process for anything but a known command")
    return _run(name, arguments[1:])


def _run(name: str, arguments: list[str]) -> int:
    command = cast("Command", importlib.import_module(f"app.cli.{name}"))
    parser = argparse.ArgumentParser(
        prog=f"modelhooks {name}",
        description=command.__doc__ or COMMANDS[name],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_arguments(parser)
    args = parser.parse_args(arguments)
    try:
        status = command.run(args)
        sys.stdout.flush()  # while a closed pipe can still be answered
    except BrokenPipeError:  # modelhooks render ... | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return status


def _overview() -> argparse.ArgumentParser:
    """The parser for a command line without a known subcommand: help, version, or an error that lists them."""
    width = max(map(len, COMMANDS))
    parser = argparse.ArgumentParser(
        prog="modelhooks",
        description="Hooks, admission and a command line for LLM serving resources.",
        epilog="commands:\n" + "\n".join(f"  {name:{width}}  {text}" for name, text in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"modelhooks {_version()}")
    parser.add_argument("command", choices=list(COMMANDS), metavar="COMMAND", help="one of those below")
    return parser


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # costs 30 ms, and only --version needs it

    try:
        return version("modelhooks")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "unknown"
