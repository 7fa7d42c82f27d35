"""The options that all offline commands share, each written once."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import click

from app.desk.cluster.kinds import COMPONENTS, DEFAULT_NAMESPACE, INSTALLATION

CommandT = TypeVar("CommandT", bound=Callable[..., object])

LIVE = "live"
"""In place of a release: the release of the kubeconfig's cluster."""

files = click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(allow_dash=True))


def offline(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options for an :class:`app.desk.cluster.offline.World`, which the command takes as ``world``."""

    @wraps(function)
    def command(
        *,
        related: tuple[str, ...],
        namespace: str,
        without: tuple[str, ...],
        exclude: tuple[str, ...],
        kubernetes: str | None,
        **rest: object,
    ) -> int:
        from app.desk.cluster.offline import World
        from app.settings import Settings

        settings = Settings() if kubernetes is None else Settings(kubernetes_release=kubernetes)
        return function(world=World(namespace, without, settings, related=related, exclude=exclude), **rest)

    decorated: Callable[..., int] = command
    for option in _OFFLINE:
        decorated = option(decorated)
    return decorated


def _release(_context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    from app.settings import minor_release

    if text == LIVE:
        from app.desk.cluster.live import LiveCluster

        return LiveCluster().release()
    try:
        return None if text is None else minor_release(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _facts(_context: click.Context, _option: click.Parameter, paths: tuple[str, ...]) -> object:
    """Return what files of the model tell; ``None`` without any."""
    from app.desk.files.manifests import ManifestError
    from app.workload.fit.modelfile import ModelFileError, facts_in

    try:
        return facts_in(paths) if paths else None
    except ModelFileError as error:
        raise ManifestError(f"--config: {error}") from error


model_files = click.option(
    "--config",
    "facts",
    metavar="FILE",
    multiple=True,
    callback=_facts,
    help="A file of the model: its config.json, model.safetensors.index.json or a .gguf file; repeatable.",
)
_OFFLINE = (
    click.option(
        "--kubernetes",
        metavar="RELEASE",
        callback=_release,
        help=f"Release of the cluster, such as 1.34, or {LIVE} for that of the kubeconfig's cluster: "
        "a field that its API server drops, or a value that it refuses, is a warning.",
    ),
    click.option(
        "--exclude", multiple=True, metavar="PATTERN", help="Exclude files of directories, by a pattern of .gitignore."
    ),
    click.option(
        "--without",
        multiple=True,
        type=click.Choice([*COMPONENTS, INSTALLATION]),
        help="An optional child kind that is not installed; installation: take no object as given.",
    ),
    click.option("--namespace", "-n", default=DEFAULT_NAMESPACE, show_default=True, help="For objects without one."),
    click.option(
        "--with",
        "related",
        multiple=True,
        metavar="FILE",
        type=click.Path(allow_dash=True),
        help="Additional files with objects that the files refer to.",
    ),
)


def output(*choices: str) -> Callable[[CommandT], CommandT]:
    """Add the option for the output format; the first choice is the default."""
    return click.option(
        "--output", "-o", type=click.Choice(choices), default=choices[0], show_default=True, help="Output format."
    )


def doc(text: str | None) -> str:
    """Return a module's docstring as a command's help, whose examples are not wrapped."""
    parts = (text or "").strip("\n").split("\n\n")
    return "\n\n".join(f"\b\n{part}" if part.startswith("  ") else part for part in parts)
