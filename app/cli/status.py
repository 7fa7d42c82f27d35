"""List every resource of the eight kinds on a cluster, with Ready and the first cause.

Reads the cluster of the kubeconfig, and never writes. As a plugin of kubectl: kubectl modelhooks status.
"""

import time

import click

from app.cli import options
from app.desk.cluster.live import LiveCluster
from app.desk.cluster.rows import Row, list_rows
from app.desk.files import printing

EVERY_SECONDS = 2.0


@click.command(help=options.doc(__doc__))
@click.option("--namespace", "-n", metavar="NAME", help="Only this namespace and cluster-scoped objects. Default: all.")
@click.option("--context", metavar="NAME", help="The kubeconfig's context.")
@click.option("--watch", "-w", is_flag=True, help="Keep running, and print changes every two seconds.")
@options.output("text", "json")
def command(*, namespace: str | None, context: str | None, watch: bool, output: str) -> int:
    source = LiveCluster(context)
    rows = list_rows(source, namespace)
    click.echo(printing.as_json(rows) if output == "json" else table(rows), nl=False)
    while watch:
        time.sleep(EVERY_SECONDS)
        before, rows = rows, list_rows(source, namespace)
        if changed := [row for row in rows if row not in before]:
            click.echo(printing.as_json(changed) if output == "json" else table(changed, head=False), nl=False)
    return 0 if all(row.ready == "True" for row in rows) else 1


def table(rows: list[Row], *, head: bool = True) -> str:
    """Columns for people; the cause comes last and may be long."""
    cells = [(row.namespace or "-", row.object, row.ready, row.cause) for row in rows]
    if head:
        cells = [("NAMESPACE", "OBJECT", "READY", "CAUSE"), *cells] if cells else []
    widths = [max((len(cell[column]) for cell in cells), default=0) for column in range(3)]
    return printing.lines(f"{a:{widths[0]}}  {b:{widths[1]}}  {c:{widths[2]}}  {d}".rstrip() for a, b, c, d in cells)
