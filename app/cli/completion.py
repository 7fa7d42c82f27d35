"""Print what a shell has to know to complete modelhooks' command lines.

  modelhooks completion bash > /etc/bash_completion.d/modelhooks
  modelhooks completion zsh > "${fpath[1]}/_modelhooks"
  modelhooks completion fish > ~/.config/fish/completions/modelhooks.fish

A shell that is started afterwards knows them.
"""

import click
from click.shell_completion import get_completion_class

from app.cli.options import doc


@click.command(help=doc(__doc__))
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    from app.cli import NAME, group

    script = get_completion_class(shell)
    assert script is not None, "click knows the shells of the choice"
    click.echo(script(group, {}, NAME, f"_{NAME.upper()}_COMPLETE").source())
    return 0
