"""The rules that the kinds of the family share: names, accelerators, and the annotation of the loader.

Source: LZ-OM01, LZ-PG01, LZ-SV01, LZ-N04, LZ-N05, LZ-N32.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from app.kube import field
from app.kube.names import is_dns1035_label, is_dns1123_label
from app.kube.objects import ObjectMeta
from app.kube.rawchecks import METADATA
from app.llmaz.names import NAME_ADVISED, NAME_MAX, SKIP_LOADER, load_balancer
from app.llmaz.quantities import Resources

NAME = METADATA.child("name")


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
        yield field.invalid(NAME, name, "must start with a letter, because Services with this name are created")
    elif len(name) > NAME_MAX:
        yield field.invalid(
            NAME,
            name,
            f"must be no more than {NAME_MAX} characters, because a Service named {load_balancer('<name>')} is created",
        )


def _not_a_label(name: str) -> field.Error:
    return field.invalid(
        NAME, name, "must be at most 63 lower case letters, digits and dashes, and start and end with a letter or digit"
    )


def workload_warnings(metadata: ObjectMeta) -> Iterator[field.Advice]:
    """Names that leave no room for what controllers append, and values of the loader's annotation without a meaning."""
    if NAME_ADVISED < len(metadata.name) <= NAME_MAX:
        yield field.advice(
            NAME,
            f"longer than {NAME_ADVISED} characters; choose a shorter name, because controllers append hashes to it",
        )
    value = (metadata.annotations or {}).get(SKIP_LOADER)
    if value not in (None, "true", "false"):
        where = METADATA.child("annotations").key(SKIP_LOADER)
        yield field.advice(where, f'{field.go_quote(value)} has no effect; only "true" has one', "no-effect")


def claim_warnings(name: str, path: field.Path) -> Iterator[field.Advice]:
    """A claimed name that no OpenModel can have, often the repository's; an empty one has an error of its own."""
    if name and not is_dns1123_label(name):
        yield field.advice(
            path,
            f"no OpenModel can be named {field.go_quote(name)}, so nothing is created; use the name of the OpenModel, "
            "not that of its repository",
        )


def accelerator_warnings(resources: Resources | None, path: field.Path) -> Iterator[field.Advice]:
    """Warn of accelerators outside of a model's flavors, which override them."""
    for kind, amounts in (("limits", resources.limits), ("requests", resources.requests)) if resources else ():
        for name in amounts or ():
            if "/" in name:
                where = path.child(kind).key(name)
                yield field.advice(
                    where, "a model's flavor that lists this resource overrides it; request accelerators in the flavor"
                )


def under_upstreams_path(path: str, error: field.Error) -> field.Error:
    """The error under the path that upstream's webhook reports, some of which are odd, for programs that match on it.

    ``modelhooks validate`` still points at the true place, which the error's text names too.
    """
    return replace(error, path=field.Path(path), place=error.path)
