"""Warnings about a server's key that is not there."""

from collections.abc import Iterator, Sequence

from app.kube.field import Advice, Path, advice

KEY = "--api-key"


def key_warnings(arguments: Sequence[str], path: Path) -> Iterator[Advice]:
    """Warn of an option for the key of an API that names none: vLLM then answers everybody, and others end."""
    following = [*arguments[1:], ""]
    for position, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        given = value if equals else following[position]
        if option.replace("_", "-") == KEY and (not given or (not equals and given.startswith("-"))):
            yield advice(path.index(position), f"{KEY} has no value, so the server needs no key, or ends: name the key")
