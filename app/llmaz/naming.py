"""The rules on the names of the kinds. Source: LZ-OM01, LZ-PG01, LZ-SV01, LZ-N04 and LZ-N05."""

from __future__ import annotations

from collections.abc import Iterator

from app.kube import field
from app.kube.names import is_dns1035_label, is_dns1123_label
from app.kube.objects import ObjectMeta
from app.llmaz.names import NAME_ADVISED, NAME_MAX, load_balancer

NAME = field.Path("metadata").child("name")


def model_name(metadata: ObjectMeta) -> Iterator[field.Error]:
    """An OpenModel's name is the value of a label and part of paths."""
    if metadata.name and not is_dns1123_label(metadata.name):
        yield _not_a_label(metadata.name)


def workload_name(metadata: ObjectMeta) -> Iterator[field.Error]:
    """A Playground's or Service's name is also that of Services, with and without ``-lb``."""
    name = metadata.name
    if not name:
        return
    if not is_dns1123_label(name):
        yield _not_a_label(name)
    elif not is_dns1035_label(name):
        yield field.invalid(NAME, name, "must start with a letter, because Services of this name are made")
    elif len(name) > NAME_MAX:
        yield field.invalid(
            NAME,
            name,
            f"must be no more than {NAME_MAX} characters, because a Service named {load_balancer('<name>')} is made",
        )


def workload_name_warnings(metadata: ObjectMeta) -> Iterator[str]:
    """Names that work by themselves and leave no room for what controllers append."""
    if NAME_ADVISED < len(metadata.name) <= NAME_MAX:
        yield f"{NAME}: more than {NAME_ADVISED} characters; controllers append hashes to it, choose a shorter name"


def names_no_model(name: str) -> bool:
    """Whether a claim's name can be that of no OpenModel; an empty one has an error of its own."""
    return bool(name) and not is_dns1123_label(name)


def no_model(path: field.Path, name: str) -> str:
    """What to say of such a name: often it is the repository's."""
    return (
        f"{path}: no OpenModel can be called {field.go_quote(name)}, so nothing is made; name the OpenModel, not its "
        "repository"
    )


def _not_a_label(name: str) -> field.Error:
    return field.invalid(
        NAME, name, "must be at most 63 lower case letters, digits and dashes, with a letter or digit at both ends"
    )
