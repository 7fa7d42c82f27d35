"""Warnings about arguments for a preset's script, which read otherwise before the scripts stopped evaluating them."""

from collections.abc import Iterator, Sequence
from itertools import islice

from app.kserve.spec.presets.parts import SERVER_ENV
from app.kserve.words import UnreadableError, split, unknown_variable, was_evaluated
from app.kube.base import Json
from app.kube.field import Advice, Path, advice
from app.limits import MAX_UNKNOWN_NAMES


def argument_warnings(container: Json, path: Path, *, based: bool) -> Iterator[Advice]:
    """Warn of arguments that a shell would have changed, or that hold a variable that the container does not have.

    ``based``: a config may add variables.
    """
    return islice(_argument_warnings(container, path.child("args"), based), MAX_UNKNOWN_NAMES)


def _argument_warnings(container: Json, path: Path, based: bool) -> Iterator[Advice]:
    """Warn of an argument with a variable that env does not have, or with quotes for a shell that does not read it."""
    yield from _repeated(container, path)
    names = [str(variable.get("name")) for variable in (*SERVER_ENV, *(container.get("env") or ()))]
    for where, argument in path.each(container.get("args") or ()):
        text = str(argument)
        if not based and (name := unknown_variable(text, names)):
            message = f"${name} is passed on as it is, because env has no {name}; no shell reads the arguments"
            yield advice(where, message)
        elif was_evaluated(text, names):
            yield advice(where, "passed on as it is, with blanks, quotes and other characters; no shell reads it")


def _repeated(container: Json, path: Path) -> Iterator[Advice]:
    """Warn of the command among the arguments: the script starts ``vllm serve`` with the model and these."""
    words = [str(word) for word in container.get("args") or ()][:2]
    count = 2 if words == ["vllm", "serve"] else 1 if words[:1] == ["serve"] else 0
    if count:
        message = f"the preset starts vllm serve with the model; leave out {' '.join(words[:count])}"
        yield advice(path.index(0), f"{message}, and the model after it")


def additional_words(text: str) -> Sequence[str] | None:
    """Return the words of ``VLLM_ADDITIONAL_ARGS``; ``None`` where the script cannot read them, and ends."""
    try:
        return split(text)
    except UnreadableError:
        return None
