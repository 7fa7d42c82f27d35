"""Print the manual page of modelhooks, made from the commands' own help.

modelhooks man | man --local-file -

modelhooks man > ~/.local/share/man/man1/modelhooks.1
"""

from collections.abc import Iterator

import click

from app.cli.options import doc

EXIT_STATUS = {
    "0": "Nothing wrong; for diff, nothing changes.",
    "1": (
        "Findings (validate: errors, or also warnings with --fail-on warning); something changes (diff); something is "
        "lost (convert); something is not ready (status); a file or object with errors, also if others were printed "
        "(render, explain, fit, images, krm); an object that can have no children (render); an image that is not "
        "pinned (images); a model that does not fit (fit)."
    ),
    "2": (
        "Wrong usage, no such file, nothing to check (validate without --allow-empty), nothing to print, a cluster "
        "that cannot be read."
    ),
    "130": "Interrupted.",
}
"""The meaning of each exit status; docs/cli.md has the same table."""


@click.command(help=doc(__doc__))
def command() -> int:
    click.echo("\n".join(_page()))
    return 0


def _page() -> Iterator[str]:
    from app.cli import COMMANDS, NAME, group

    yield f'.TH {NAME.upper()} 1 "" "{NAME}" "User Commands"'
    yield ".ad l"  # without blanks to widen: the choices of an option are one word
    yield ".SH NAME"
    yield f"{NAME} \\- {_text(group.help or '').rstrip('.')}"
    yield ".SH SYNOPSIS"
    yield f".B {NAME}\n[\\fB\\-\\-version\\fR] \\fICOMMAND\\fR [\\fIARGUMENT\\fR]..."
    yield ".SH COMMANDS"
    context = click.Context(group, info_name=NAME)
    for name in COMMANDS:
        subcommand = group.get_command(context, name)
        assert subcommand is not None, "the group knows its commands"
        yield from _command(name, subcommand, click.Context(subcommand, info_name=name, parent=context))
    yield ".SH EXIT STATUS"
    for status, meaning in EXIT_STATUS.items():
        yield f".TP\n.B {status}\n{_text(meaning)}"
    yield ".SH ENVIRONMENT"
    yield ".TP\n.B NO_COLOR\nNo colour, also on a terminal."
    yield ".TP\n.B KUBECONFIG\nThe cluster of status and explain \\-\\-live."


def _command(name: str, subcommand: click.Command, context: click.Context) -> Iterator[str]:
    usage = " ".join(subcommand.collect_usage_pieces(context))
    yield f".SS {_text(name)} {_text(usage)}"
    for part in (subcommand.help or "").split("\n\n"):
        plain = part.startswith("\b\n")
        lines = [_text(line) for line in part.removeprefix("\b\n").splitlines()]
        yield from ([".PP", ".nf", *lines, ".fi"] if plain else [".PP", *lines])
    for parameter in subcommand.params:
        record = parameter.get_help_record(context)
        if record is not None:
            yield f".TP\n.B {_text(record[0])}\n{_text(record[1])}"


def _text(line: str) -> str:
    """Text of a roff document: hyphens that can be searched for, choices that break, nothing taken for a request."""
    escaped = line.replace("\\", "\\e").replace("-", "\\-").replace("|", "|\\:")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
