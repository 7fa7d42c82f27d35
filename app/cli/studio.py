"""Open a page that shows what manifests become, and why they are not ready.

The page is served on the loopback interface of this machine, at an address with a token that is printed. Nothing is
loaded from elsewhere, and nothing is written to a cluster. FILE is a manifest or a directory of them, to begin with.
"""

import asyncio
import gc
import os
import socket
import webbrowser
from collections.abc import Sequence
from types import FrameType

import click
import uvicorn

from app.cli import options
from app.desk.cluster.live import LiveCluster
from app.desk.files import printing
from app.desk.files.folders import collect
from app.errors import CommandError
from app.studio import guard, models, routes
from app.studio.live import Live

LOOPBACK = "127.0.0.1"


@click.command(help=options.doc(__doc__))
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path())
@click.option("--live", is_flag=True, help="Also show the kubeconfig's cluster; read-only.")
@click.option("--context", metavar="NAME", help="With --live: the kubeconfig's context.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Default: a free port.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def command(*, files: tuple[str, ...], live: bool, context: str | None, port: int, no_browser: bool) -> int:
    """Serve until interrupted; 2 when a file or the cluster cannot be read, or the port is taken."""
    documents = _documents(files)
    cluster = Live(LiveCluster(context)) if live else None
    try:
        listening = socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise CommandError(f"cannot listen on {LOOPBACK}:{port}: {error.strerror}") from None
    authority, token = f"{LOOPBACK}:{listening.getsockname()[1]}", guard.new_token()
    address = f"http://{authority}/{token}/"
    click.echo(f"The studio is at {address} until this is interrupted (Ctrl-C).")
    if not routes.has_page():
        printing.warn("studio", [routes.NOT_BUILT.strip()])
    app = guard.Guard(routes.create_app(documents, cluster), token, authority)
    server = _Server(uvicorn.Config(app, access_log=False, log_level="warning", server_header=False, ws="none"))
    server.opened = "" if no_browser else address
    gc.freeze()
    asyncio.run(server.serve([listening]))
    return 0


class _Server(uvicorn.Server):
    """Opens the browser when requests are answered, and ends at once when interrupted."""

    opened = ""

    def handle_exit(self, sig: int, _: FrameType | None) -> None:
        """Exit at once: nothing has to be saved, and a graph that is being computed cannot be stopped."""
        os._exit(128 + sig)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.opened:
            await asyncio.to_thread(webbrowser.open, self.opened)


def _documents(files: Sequence[str]) -> list[models.Document]:
    reading = collect(files)
    return [models.Document(name=name, text="\n".join(lines) + "\n") for name, lines in reading.lines.items()]
