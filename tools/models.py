"""Make rows of the table of models from their configurations, or compare the table with configurations.

``python -m tools.models REPOSITORY config.json [--source ADDRESS] [--billions NUMBER]`` prints the line of a model for
``app/workload/fit/models.csv``. ``--source`` is where the file came from, if that is not the repository itself.
``python -m tools.models --check FOLDER`` compares the table with the files ``owner--name_config.json`` of a folder, and
prints what differs; 1 is the exit status then.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from app.workload.fit.gpumodels import MIB
from app.workload.fit.modelconfig import facts_of
from app.workload.fit.models import Ends, Shape, shape_of

TABLE = Path(__file__).resolve().parent.parent / "app" / "workload" / "fit" / "models.csv"
_FILE = "_config.json"
_COMPARED = ("layers", "kv_heads", "head", "queries", "windowed", "is_latent", "index")


def row(repository: str, config: Mapping[str, object], *, source: str = "", billions: str = "") -> dict[str, str]:
    """Return the columns of a model. Raises ``ValueError`` for a configuration that does not tell its shape."""
    facts = facts_of(config)
    shape = facts.shape if facts is not None else None
    if shape is None or shape.ends[0] == 0:
        raise ValueError(f"{repository}: the configuration does not tell which layers have a cache")
    bits = shape.bits or (_UNQUANTIZED, _UNQUANTIZED)
    columns: dict[str, object] = {
        "name": repository.rpartition("/")[2].lower().removesuffix("-instruct").removesuffix("-it"),
        "repository": repository,
        "billions": billions or _ends(shape.billions),
        "layers": shape.layers,
        "queries": shape.queries,
        "heads": "latent" if shape.is_latent else shape.kv_heads,
        "width": shape.head,
        "context": shape.context,
        "windowed": shape.windowed,
        "window": shape.window if shape.windowed else 0,
        "windowed_heads": shape.windowed_heads,
        "windowed_width": shape.windowed_width,
        "index": shape.index,
        "state": -(-shape.state // MIB),
        "bits": _ends(bits) if bits[0] < _UNQUANTIZED else "",
        "format": shape.format,
        "share": "" if shape.ends[1] == 1 else _ends(shape.ends),
        "source": source,
    }
    return {name: str(value) if value else "" for name, value in columns.items()}


_UNQUANTIZED = 16


def _ends(ends: Ends) -> str:
    least, most = (f"{end:.4g}" for end in ends)
    return "" if not ends[0] else least if least == most else f"{least}-{most}"


def differences(repository: str, shape: Shape) -> Iterator[str]:
    """Yield what the table has otherwise than a configuration tells, of a model that it has."""
    entry = shape_of([repository])
    if entry is None or not shape.ends[0]:
        return
    for name in _COMPARED:
        ours, theirs = getattr(entry, name), getattr(shape, name)
        if ours != theirs:
            yield f"{repository}: {name} is {ours}, and {theirs} in the configuration"
    least, most = entry.billions
    if shape.billions[0] and not (least <= shape.billions[1] and shape.billions[0] <= most):
        yield f"{repository}: {_ends(entry.billions)} billions, and {_ends(shape.billions)} by the configuration"


def check(folder: Path) -> list[str]:
    """Return what differs between the table and the configurations of a folder."""
    lines: list[str] = []
    for path in sorted(folder.glob(f"*{_FILE}")):
        facts = facts_of(json.loads(path.read_text(encoding="utf-8")))
        if facts is not None and facts.shape is not None:
            lines += differences(path.name.removesuffix(_FILE).replace("--", "/"), facts.shape)
    return lines


def line(columns: Mapping[str, str]) -> str:
    """Return a row as the table has it."""
    with TABLE.open(encoding="utf-8") as file:
        names = next(csv.reader(file))
    out = io.StringIO()
    csv.DictWriter(out, names, lineterminator="").writerow(dict(columns))
    return out.getvalue()


def main(arguments: Sequence[str]) -> int:
    """Print a row, or what differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.models")
    parser.add_argument("repository", nargs="?", default="")
    parser.add_argument("config", nargs="?", type=Path)
    parser.add_argument("--source", default="")
    parser.add_argument("--billions", default="")
    parser.add_argument("--check", type=Path)
    options = parser.parse_args(arguments)
    if options.check is not None:
        lines = check(options.check)
        print("\n".join(lines) or "nothing differs")
        return 1 if lines else 0
    if options.config is None:
        parser.error("a repository and its config.json are needed")
    try:
        config = json.loads(options.config.read_text(encoding="utf-8"))
        print(line(row(options.repository, config, source=options.source, billions=options.billions)))
    except ValueError as error:
        parser.exit(1, f"{error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
